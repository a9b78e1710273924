//! Articles that no model was trained with, in a release of format 2 that `docs/examples/export_open_release.py` makes.

use atelier::config::Limits;
use atelier_core::domain::{ArticleId, Role};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ONNX_RUNTIME, Service, foreign_release::run_example};
use crate::harness::{TestDatabase, apply, model_server::ModelServer, on_sqlite, tools};

/// A folder with the example release `open`.
async fn open_release() -> TempDir {
    let models = tempfile::tempdir().unwrap();
    run_example("export_open_release.py", &models.path().join("open")).await;
    models
}

async fn serve(db: &TestDatabase, models: &TempDir) -> Service {
    let service = Service::start_in(db, Limits::default(), models.path().to_owned()).await;
    activate_open(&service, models).await;
    service
}

/// Brings in the release's articles.
async fn activate_open(service: &Service, models: &TempDir) {
    let articles = std::fs::read(models.path().join("open/articles.jsonl")).unwrap();
    service.post("/articles/bulk", "application/x-ndjson", articles).is(200).await;
    service.ask_ok("/releases/open/activate?force=true", &json!({})).await;
}

/// The suggestions for the coat of a sporty outfit in blue, with their probabilities.
async fn coats(service: &Service, k: usize) -> Vec<(String, f64)> {
    let request = json!({
        "outfit": ["sporty-blue-shirt", "sporty-blue-trousers", null, "sporty-blue-shoes"],
        "features": {"style": "sporty"}, "k": k, "probability": true, "filters": {"types": {"2": ["coat"]}}
    });
    let answer = service.ask_ok("/complete", &request).await;
    assert_eq!(answer["warnings"], json!([]), "{answer:#}");
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().clone();
    let about = |suggestion: &Value| {
        let id = suggestion["article"]["id"].as_str().unwrap().to_owned();
        (id, suggestion["probability"].as_f64().unwrap())
    };
    suggestions.iter().map(about).collect()
}

async fn put(service: &Service, id: &str, attributes: &Value) {
    let put = service.put(format!("/articles/{id}"), attributes).await;
    assert!(put.is_ok(), "{put:?}");
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_copy_of_an_article_stands_beside_it(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    let replica = Service::start_in(&db, Limits::default(), models.path().to_owned()).await;
    replica.releases.refresh().await.unwrap();
    let before = coats(&service, 3).await;
    assert_eq!(before[0].0, "sporty-blue-coat");
    assert_eq!(coats(&replica, 3).await, before);

    let copy = json!({"type": "coat", "style": "sporty", "colour": "Blue", "price": 110});
    put(&service, "anorak", &copy).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        let after = coats(service, 3).await;
        let (twins, others) = after.split_at(2);
        let mut ids: Vec<&str> = twins.iter().map(|(id, _)| id.as_str()).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["anorak", "sporty-blue-coat"]);
        assert!((twins[0].1 - twins[1].1).abs() < 1e-9, "{twins:?}");
        assert!(twins[0].1 < before[0].1, "they share what one of them had");
        assert_eq!(others[0].0, before[1].0);
    }
    // Another colour, another row; and gone when it is deleted.
    put(&service, "anorak", &json!({"type": "coat", "style": "classic", "colour": "red"})).await;
    let changed = coats(&service, 250).await;
    assert_eq!((changed[0].0.as_str(), changed.len()), ("sporty-blue-coat", 7));
    assert_ne!(changed[1].0, "anorak");
    service.delete("/articles/anorak").is(204).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        let after = coats(service, 250).await;
        assert_eq!(after.len(), 6);
        assert!((after[0].1 - before[0].1).abs() < 1e-9);
    }
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn equally_likely_articles_are_in_the_order_of_their_ids(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    // With its twin of the release, in the order in which they arrive: each takes a place of its own.
    let coat = json!({"type": "coat", "style": "sporty", "colour": "blue"});
    for id in ["z", "m", "a", "tunic", "Z"] {
        put(&service, id, &coat).await;
    }
    let sorted = ["Z", "a", "m", "sporty-blue-coat", "tunic", "z"];
    let ids = async |service: &Service, k: usize| -> Vec<String> {
        coats(service, k).await.into_iter().map(|(id, _)| id).take(6).collect()
    };
    let replica = Service::start_in(&db, Limits::default(), models.path().to_owned()).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        assert_eq!(ids(service, 250).await, sorted);
        for k in 1..6 {
            assert_eq!(ids(service, k).await, sorted[..k], "cut within them");
        }
    }
    // Without a filter, and when an article is added to the replica, which has read the others as a whole.
    put(&service, "b", &coat).await;
    replica.releases.refresh().await.unwrap();
    let request = json!({
        "outfit": ["sporty-blue-shirt", "sporty-blue-trousers", null, "sporty-blue-shoes"],
        "features": {"style": "sporty"}, "k": 250
    });
    let unfiltered = async |service: &Service| -> Vec<String> {
        let answer = service.ask_ok("/complete", &request).await;
        let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap();
        let ids = suggestions.iter().map(|one| one["article"]["id"].as_str().unwrap().to_owned());
        ids.filter(|id| sorted.contains(&id.as_str()) || id == "b").collect()
    };
    let expected = ["Z", "a", "b", "m", "sporty-blue-coat", "tunic", "z"];
    assert_eq!(unfiltered(&service).await, expected);
    assert_eq!(unfiltered(&replica).await, expected);
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn changes_give_the_answers_of_a_catalogue_that_is_read_as_a_whole(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    let replica = Service::start_in(&db, Limits::default(), models.path().to_owned()).await;
    // New, changed, of another type, deleted; one by one and many in one request.
    for number in 0..5 {
        let article = json!({"type": "coat", "style": "sporty", "colour": "red", "price": 10 + number});
        put(&service, &format!("new-{number}"), &article).await;
    }
    put(&service, "new-1", &json!({"type": "coat", "style": "classic", "colour": "blue"})).await;
    put(&service, "new-2", &json!({"type": "shoes", "style": "sporty", "colour": "blue"})).await;
    put(&service, "sporty-red-coat", &json!({"type": "coat", "style": "classic", "colour": "black"})).await;
    for gone in ["new-3", "sporty-blue-coat", "classic-red-coat"] {
        service.delete(&format!("/articles/{gone}")).is(204).await;
    }
    let bulk: Vec<String> = (0..40)
        .map(|number| format!("{{\"id\": \"many-{number}\", \"type\": \"coat\", \"colour\": \"blue\"}}"))
        .collect();
    let bulk = bulk.join("\n");
    service.post("/articles/bulk", "application/x-ndjson", bulk.into_bytes()).is(200).await;
    put(&service, "classic-red-coat", &json!({"type": "coat", "style": "classic", "colour": "red"})).await;
    replica.releases.refresh().await.unwrap();
    let changed = coats(&service, 250).await;
    assert_close(&coats(&replica, 250).await, &changed);
    let ids: Vec<&str> = changed.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids.len(), 5 + 3 + 40, "{ids:?}");
    assert!(["new-0", "new-1", "new-4", "classic-red-coat"].iter().all(|id| ids.contains(id)));
    assert!(!["new-2", "new-3", "sporty-blue-coat"].iter().any(|id| ids.contains(id)), "{ids:?}");
    // The same release, loaded again, reads the whole catalogue.
    service.ask_ok("/releases/open/activate?force=true", &json!({})).await;
    assert_close(&coats(&service, 250).await, &changed);
}

/// The same articles with the same probabilities, but for rounding: sums are taken in the order of places, which a change
/// does not move.
fn assert_close(some: &[(String, f64)], others: &[(String, f64)]) {
    assert_eq!(some.len(), others.len());
    for (id, one) in some {
        let (_, other) = others.iter().find(|(other, _)| other == id).unwrap();
        assert!((one / other - 1.0).abs() < 1e-4, "{id}: {one}, {other}");
    }
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_new_article_counts_in_an_outfit(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    put(&service, "runners", &json!({"type": "shoes", "style": "sporty", "colour": "red"})).await;
    let ask = async |shoes: &str| {
        let request = json!({"outfit": ["classic-black-shirt", null, shoes], "k": 250, "explain": true, "probability": true});
        let answer = service.ask_ok("/complete", &request).await;
        let codes: Vec<&Value> =
            answer["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
        assert_eq!(codes, ["short-outfit"], "{answer:#}");
        let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().clone();
        let probability = |suggestion: &Value| {
            (suggestion["article"]["id"].clone(), suggestion["probability"].as_f64().unwrap())
        };
        suggestions
            .iter()
            .map(probability)
            .filter(|(id, _)| id != "runners" && id != "sporty-red-shoes")
            .collect()
    };
    let new: Vec<(Value, f64)> = ask("runners").await;
    let known: Vec<(Value, f64)> = ask("sporty-red-shoes").await;
    assert_eq!(new.len(), 22);
    for ((id, new), (_, known)) in new.iter().zip(&known) {
        assert!((new - known).abs() < 1e-9, "{id}: {new}, {known}");
    }
    let scored = service.ask_ok("/score", &json!({"outfit": ["sporty-red-shirt", "runners"]})).await;
    assert_eq!(scored["articles"].as_array().unwrap().len(), 2, "{scored}");
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn an_article_with_unknown_values_has_those_that_are_known(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    let before = coats(&service, 250).await;
    put(&service, "odd", &json!({"type": "coat", "style": "baroque", "colour": "mauve"})).await;
    put(&service, "bare", &json!({"type": "coat"})).await;
    put(&service, "half", &json!({"type": "coat", "style": "sporty"})).await;
    let all = coats(&service, 250).await;
    let of = |id: &str| all.iter().find(|(other, _)| other == id).unwrap().1;
    assert!((of("odd") - of("bare")).abs() < 1e-9, "what is unknown counts as what is not said: {all:?}");
    let mean = all.iter().map(|(_, probability)| probability).sum::<f64>() / 9.0;
    assert!(of("bare") < mean, "an average coat is no favourite: {all:?}");
    assert!(of("bare") < of("half") && of("half") < of("sporty-blue-coat"), "{all:?}");

    // What a model was trained with it still knows when a feed no longer says it.
    put(&service, "sporty-blue-coat", &json!({"type": "coat"})).await;
    assert_eq!(coats(&service, 250).await, all);
    for id in ["odd", "bare", "half"] {
        service.delete(&format!("/articles/{id}")).is(204).await;
    }
    assert_eq!(coats(&service, 250).await, before);
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn the_same_model_in_format_1_gives_the_same_answers(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    let open = coats(&service, 6).await;
    // The same model as one file, in format 1.
    run_example("export_release.py", &models.path().join("closed")).await;
    service.ask_ok("/releases/closed/activate", &json!({})).await;
    let closed = coats(&service, 6).await;
    assert_eq!(open.len(), 6);
    for ((id, open), (other, closed)) in open.iter().zip(&closed) {
        assert_eq!(id, other);
        assert!((open / closed - 1.0).abs() < 1e-4, "{id}: {open}, {closed}");
    }
    // A closed method does not know what is new, and says so.
    put(&service, "anorak", &json!({"type": "coat", "style": "sporty", "colour": "blue"})).await;
    assert_eq!(coats(&service, 250).await.len(), 6);
    let answer = service.ask_ok("/complete", &json!({"outfit": ["anorak", null, "sporty-blue-shoes"]})).await;
    let codes: Vec<&Value> =
        answer["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["article-not-in-release", "short-outfit"], "{answer:#}");
    put(&service, "cap", &json!({"type": "hat", "style": "sporty", "colour": "blue"})).await;
    let request = json!({"outfit": ["sporty-blue-shirt", null], "filters": {"types": {"1": ["hat"]}}});
    let (status, problem) = service.ask("/complete", &request).await;
    assert_eq!(status, 422, "{problem}");
    let detail = problem["errors"][0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("none of the catalogue's articles of type \"hat\" (1), and c suggests no new"),
        "{detail}"
    );
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_server_may_have_the_whole_model_of_a_release_with_tables(db: TestDatabase) {
    let models = open_release().await;
    let local = serve(&db, &models).await;
    let expected = coats(&local, 6).await;
    // As `atelier-training export --whole` makes them.
    let whole = tempfile::tempdir().unwrap();
    run_example("export_release.py", &whole.path().join("open")).await;
    let runtime = tokio::task::spawn_blocking(|| ONNX_RUNTIME.clone()).await.unwrap();
    for (folder, is_open) in [(whole.path(), false), (models.path(), true)] {
        let server = ModelServer::start(&runtime, folder.to_owned(), "127.0.0.1:0").await;
        let origin = server.origin.clone();
        let service = Service::start_remote(&db, Limits::default(), models.path().to_owned(), origin).await;
        activate_open(&service, &models).await;
        assert_close(&coats(&service, 6).await, &expected);
        put(&service, "anorak", &json!({"type": "coat", "style": "sporty", "colour": "blue"})).await;
        assert_eq!(coats(&service, 250).await.len(), 6 + usize::from(is_open), "closed without the tables");
        let open = if is_open { json!(["c"]) } else { json!([]) };
        assert_eq!(service.json("/coverage").await["open_methods"], open);
        let outfit = json!({"outfit": ["anorak", null, "sporty-blue-shoes"]});
        let answer = service.ask_ok("/complete", &outfit).await;
        let warned = answer.to_string().contains("article-not-in-release");
        assert_eq!(warned, !is_open, "{answer:#}");
        service.delete("/articles/anorak").is(204).await;
    }
}

/// PUTs an article and returns its warnings.
async fn warnings(service: &Service, id: &str, attributes: &Value) -> Value {
    let answer = service.put(&format!("/articles/{id}"), attributes).await;
    assert!(answer.is_ok());
    answer.json()["warnings"].take()
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn what_a_release_does_not_know_of_a_stored_article_is_said(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    let coat =
        json!({"type": "coat", "style": "sporty", "colour": "Blue", "price": 110, "name": "unheard-of"});
    assert_eq!(warnings(&service, "anorak", &coat).await, json!([]));
    let odd = json!({"type": "coat", "style": "sporty", "colour": "Chartreuse"});
    let expected = "colour \"chartreuse\" is new to release open: the article is ranked by its type and other attributes \
                    until a release is trained with it";
    assert_eq!(warnings(&service, "odd", &odd).await, json!([{"pointer": "/colour", "detail": expected}]));
    let known = warnings(&service, "sporty-blue-coat", &odd).await;
    assert_eq!(known, json!([]), "it has a vector of its own");
    let poncho = json!({"type": "poncho", "style": "sporty", "warnings": "dry clean only"});
    let expected = "type \"poncho\" is new to release open: the article is ranked by its other attributes until a release is \
                    trained with it";
    let unsaid = |attribute: &str| {
        format!(
            "the article has no {attribute}, which other articles have: it counts as an average one there"
        )
    };
    assert_eq!(
        warnings(&service, "poncho", &poncho).await,
        json!([{"pointer": "/type", "detail": expected}, {"pointer": "", "detail": unsaid("colour")}])
    );
    // A name in another spelling.
    let red = json!({"type": "coat", "style": "sporty", "color": "red"});
    assert_eq!(warnings(&service, "red", &red).await, json!([{"pointer": "", "detail": unsaid("colour")}]));
    assert_eq!(service.json("/articles/poncho").await["warnings"], "dry clean only");

    let lines = [("one", "mauve"), ("two", "Mauve"), ("three", "chartreuse"), ("four", "blue")]
        .map(|(id, colour)| json!({"id": id, "type": "coat", "colour": colour}).to_string() + "\n");
    let answer = service.post("/articles/bulk", "application/x-ndjson", lines.concat()).await;
    let brought: Value = answer.json();
    let rest = "is new to release open: until a release is trained with it, only the type and other attributes count";
    let no_style = "new articles have no style (4), which other articles have: they count as average there";
    let expected = json!([
        {"detail": format!("colour \"mauve\" of 2 articles {rest}")},
        {"detail": format!("colour \"chartreuse\" of 1 article {rest}")},
        {"detail": no_style},
    ]);
    assert_eq!((&brought["added"], &brought["warnings"]), (&json!(4), &expected));
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_closed_release_warns_of_every_new_article(db: TestDatabase) {
    let models = open_release().await;
    run_example("export_release.py", &models.path().join("closed")).await;
    let service = serve(&db, &models).await;
    service.ask_ok("/releases/closed/activate", &json!({})).await;
    let detail =
        "the article is new to release closed, which suggests only articles that it was trained with";
    let coat = json!({"type": "coat", "colour": "chartreuse"});
    assert_eq!(warnings(&service, "anorak", &coat).await, json!([{"pointer": "", "detail": detail}]));
    assert_eq!(warnings(&service, "sporty-blue-coat", &coat).await, json!([]));
    let line = json!({"id": "parka", "type": "coat"}).to_string();
    let answer = service.post("/articles/bulk", "application/x-ndjson", line).await;
    let brought: Value = answer.json();
    let detail = "1 article is new to release closed, which suggests only articles that it was trained with";
    assert_eq!(brought["warnings"], json!([{"detail": detail}]));
    let coverage = service.json("/coverage").await;
    assert_eq!((&coverage["new"], &coverage["unknown"]), (&json!(2), &json!([])));
    assert_eq!(coverage["open_methods"], json!([]));
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn coverage_counts_new_articles_and_their_feedback(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    put(&service, "anorak", &json!({"type": "coat", "style": "sporty", "colour": "blue"})).await;
    put(&service, "cape", &json!({"type": "cape", "style": "sporty", "colour": "mauve"})).await;
    put(&service, "beret", &json!({"type": "hat", "style": "sporty", "colour": "mauve"})).await;
    service.delete("/articles/classic-red-shirt").is(204).await;
    let request = json!({
        "outfit": ["sporty-blue-shirt", "sporty-blue-trousers", null, "sporty-blue-shoes"],
        "features": {"style": "sporty"}, "k": 3, "filters": {"types": {"2": ["coat"]}}
    });
    let answer = service.ask_ok("/complete", &request).await;
    let event = |id: &str, kind: &str, article: &str| json!({"id": id, "completion_id": answer["completion_id"], "kind": kind, "slot": 2, "article": article});
    let third = answer["blanks"][0]["suggestions"][2]["article"]["id"].as_str().unwrap();
    let events = [
        event("1", "accepted", "anorak"),
        event("2", "accepted", "anorak"),
        event("3", "shown", "sporty-blue-coat"),
        event("4", "rejected", third),
    ];
    service.ask_ok("/feedback", &json!(events)).await;

    let coverage = service.json("/coverage").await;
    let known = coverage["known"].as_u64().unwrap();
    assert_eq!((known, &coverage["new"], &coverage["retired"]), (23, &json!(3), &json!(1)), "{coverage:#}");
    assert_eq!((&coverage["release"], &coverage["more_unknown"]), (&json!("open"), &json!(0)));
    assert_eq!(coverage["open_methods"], json!(["c"]));
    let unknown = coverage["unknown"].as_array().unwrap();
    assert_eq!(unknown[0], json!({"attribute": "colour", "value": "mauve", "articles": 2}));
    assert!(unknown.contains(&json!({"attribute": "type", "value": "cape", "articles": 1})), "{coverage:#}");
    let counts = |articles: &str| {
        let of = &coverage["feedback"][articles];
        ["shown", "accepted", "rejected", "bought"].map(|kind| of[kind].as_u64().unwrap())
    };
    assert_eq!((counts("known"), counts("new")), ([2, 0, 1, 0], [1, 1, 0, 0]));
    assert_eq!(coverage["feedback"]["new"]["acceptance"]["value"], 1.0);
    let metrics = service.get("/metrics").await.text();
    for (state, count) in [("known", 23), ("new", 3), ("retired", 1)] {
        assert!(metrics.contains(&format!("atelier_articles{{state=\"{state}\"}} {count}\n")), "{metrics}");
    }
    // Of three suggestions one is new. Its second acceptance is the same again.
    for expected in [
        "atelier_suggestions_total{article=\"new\"} 1",
        "atelier_suggestions_total{article=\"known\"} 2",
        "atelier_feedback_events_total{event=\"accepted\",article=\"new\"} 1",
        "atelier_feedback_events_total{event=\"shown\",article=\"known\"} 1",
        "atelier_feedback_events_total{event=\"rejected\",article=\"known\"} 1",
        "atelier_feedback_events_total{event=\"accepted\",article=\"known\"} 0",
        "atelier_suggestible_articles{method=\"c\"} 26",
    ] {
        assert!(metrics.lines().any(|line| line == expected), "{expected} is missing in {metrics}");
    }

    let html = service.signed_in(Role::Admin).await.page("/operations/articles").await;
    assert!(html.contains("<dt>new</dt><dd>3</dd>"), "{html}");
    assert!(html.contains("<td>colour</td><td>mauve</td><td class=\"number\">2</td>"), "{html}");
    assert!(html.contains("New articles are suggested by c."), "{html}");
    assert!(html.contains("<th scope=\"row\">new</th><td class=\"number\">1</td>"), "{html}");
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn the_studio_marks_new_articles(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    put(&service, "anorak", &json!({"type": "coat", "style": "sporty", "colour": "blue"})).await;
    put(&service, "runners", &json!({"type": "shoes", "style": "sporty", "colour": "red"})).await;
    let stylist = service.signed_in(Role::Stylist).await;
    let outfit = "slot=sporty-blue-shirt&slot=sporty-blue-trousers&slot=&slot=";
    let count = |html: &str| html.matches("<span class=\"new\"").count();
    let one = stylist.page(&format!("/studio?{outfit}sporty-blue-shoes&type=2:coat")).await;
    assert_eq!(count(&one), 1, "the suggested anorak: {one}");
    let note = "New: added after the release was trained, so ranked by its type and attributes.";
    assert!(one.contains(note), "{one}");
    let shirts = stylist.page("/studio?slot=&slot=sporty-blue-shoes&type=0:shirt").await;
    assert_eq!((count(&shirts), shirts.contains(note)), (0, false), "{shirts}");
    let both = stylist.page(&format!("/studio?{outfit}runners&type=2:coat")).await;
    assert_eq!(count(&both), 2, "and the runners of the outfit: {both}");
    let found = stylist.page(&format!("/studio?{outfit}runners&type=2:coat&pick=2&search=anorak")).await;
    assert_eq!(count(&found), 3, "and what was found: {found}");
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn an_article_is_placed_by_its_embedding(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    let before = coats(&service, 1).await;
    put(&service, "unseen", &json!({"type": "coat"})).await;
    let place = |all: &[(String, f64)]| all.iter().position(|(id, _)| id == "unseen").unwrap();
    assert!(place(&coats(&service, 250).await) > 1, "only its type is known");
    // Styles: classic, sporty; colours: black, blue, red.
    let seen = json!({"type": "coat", "embedding": [0, 1, 0, 1, 0]});
    let said = warnings(&service, "unseen", &seen).await.to_string();
    assert!(said.contains("no colour") && !said.contains("embedding"), "{said}");
    let all = coats(&service, 2).await;
    let mut ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [before[0].0.as_str(), "unseen"]);

    // It is kept, and in no answer.
    let bare = json!({"id": "unseen", "type": "coat"});
    assert_eq!(service.json("/articles/unseen").await, bare);
    let answer = service.ask_ok("/complete", &json!({"outfit": ["unseen", null], "k": 250})).await;
    assert!(!answer.to_string().contains("embedding"), "{answer}");
    let id = ArticleId::new("unseen").unwrap();
    let stored = service.store.articles().get(&id).await.unwrap().unwrap();
    assert_eq!(stored.embedding().unwrap().to_json(), json!([0, 1, 0, 1, 0]));
    service.put("/articles/unseen", &seen).is(200).await;
    assert_eq!(service.store.articles().get(&id).await.unwrap(), Some(stored));

    // What cannot be read is refused, what another encoder made is said.
    for wrong in [json!([]), json!([1, "x"]), json!("a picture"), json!([1e300])] {
        let answer = service.put("/articles/odd", &json!({"type": "coat", "embedding": wrong})).await;
        assert_eq!(answer.status(), 422, "{wrong}");
        let problem: Value = answer.json();
        assert_eq!(problem["errors"][0]["pointer"], "/embedding", "{problem}");
    }
    // One of another scale does not outweigh what else is known.
    let far = json!({"type": "coat", "style": "sporty", "colour": "red", "embedding": [0, 1e30, 0, 1e30, 0]});
    let detail = "the embedding is far from those that release open was trained with, and counts only in part; check its encoder \
                  and its scale";
    assert_eq!(warnings(&service, "far", &far).await, json!([{"pointer": "/embedding", "detail": detail}]));
    let all = coats(&service, 250).await;
    assert!(
        all.iter().all(|(_, share)| share.is_finite()) && all.iter().any(|(id, _)| id == "far"),
        "{all:?}"
    );
    service.delete("/articles/far").is(204).await;
    let longer = json!({"type": "coat", "style": "sporty", "colour": "red", "embedding": [0, 1, 0]});
    let detail = "the embedding has 3 numbers, and release open was trained with 5: it does not count";
    assert_eq!(
        warnings(&service, "longer", &longer).await,
        json!([{"pointer": "/embedding", "detail": detail}])
    );

    // Lists of several encoders stand side by side, and come one by one.
    let wrong = json!({"type": "coat", "embedding": {"image": [1], "text": []}});
    service.put("/articles/odd", &wrong).is(422).await;
    let pictured =
        json!({"type": "coat", "style": "sporty", "colour": "red", "embedding": {"image": [0.5, 2]}});
    let detail =
        "the embedding \"image\" has 2 numbers, and release open was trained with none: it does not count";
    assert_eq!(
        warnings(&service, "odd", &pictured).await,
        json!([{"pointer": "/embedding", "detail": detail}])
    );
    let text = json!({"id": "odd", "embedding": {"text": [1]}});
    service.post("/articles/bulk?mode=merge", "application/x-ndjson", text.to_string()).is(200).await;
    let stored = service.store.articles().get(&ArticleId::new("odd").unwrap()).await.unwrap().unwrap();
    assert_eq!(stored.embedding().unwrap().to_json(), json!({"image": [0.5, 2], "text": [1]}));
}
