//! Articles that no model was trained with, in a release of format 2 that `docs/examples/export_open_release.py` makes.

use atelier::config::Limits;
use atelier_core::domain::{ArticleId, Role};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    harness::{
        Fixture, Html, ONNX_RUNTIME, Service, TestDatabase, apply, ids,
        json::{codes, list, number, with},
        model_server::ModelServer,
        on_sqlite, pick, tools,
    },
    releases::foreign_release::run_example,
};

/// A service with the example release `open`, its articles, and the folder of releases.
struct Open(Service, TempDir);

impl Fixture for Open {
    async fn prepare(db: &TestDatabase) -> Self {
        let models = tempfile::tempdir().unwrap();
        run_example("export_open_release.py", &models.path().join("open")).await;
        let service = Service::of(db, &models).await;
        activate_open(&service, &models).await;
        Self(service, models)
    }
}

/// Brings in the release's articles.
async fn activate_open(service: &Service, models: &TempDir) {
    let articles = std::fs::read(models.path().join("open/articles.jsonl")).unwrap();
    service.lines("/articles/bulk", articles).is(200).await;
    service.ask_ok("/releases/open/activate?force=true", json!({})).await;
}

/// A request for the coat of a sporty outfit in blue.
fn question(more: Value) -> Value {
    let outfit = json!(["sporty-blue-shirt", "sporty-blue-trousers", null, "sporty-blue-shoes"]);
    let filters = json!({"types": {"2": ["coat"]}});
    with(json!({"outfit": outfit, "features": {"style": "sporty"}, "filters": filters}), more)
}

/// Suggestions with their probabilities.
fn read(suggestions: &Value) -> Vec<(String, f64)> {
    let probabilities = list(suggestions).iter().map(|one| number(&one["probability"]));
    ids(suggestions).into_iter().zip(probabilities).collect()
}

async fn coats(service: &Service, k: usize) -> Vec<(String, f64)> {
    let answer = service.complete(question(json!({"k": k, "probability": true}))).await;
    assert_eq!(answer["warnings"], json!([]), "{answer:#}");
    read(&answer["blanks"][0]["suggestions"])
}

fn names(suggestions: &[(String, f64)]) -> Vec<&str> {
    suggestions.iter().map(|(id, _)| id.as_str()).collect()
}

/// PUTs an article and returns its warnings.
async fn put(service: &Service, id: &str, attributes: Value) -> Value {
    let answer = service.put(format!("/articles/{id}"), attributes).await;
    assert!(answer.is_ok(), "{answer:?}");
    answer.json()["warnings"].take()
}

async fn delete(service: &Service, ids: &[&str]) {
    for id in ids {
        service.delete(format!("/articles/{id}")).is(204).await;
    }
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_copy_of_an_article_stands_beside_it(Open(service, models): Open, db: TestDatabase) {
    let replica = Service::of(&db, &models).await;
    replica.releases.refresh().await.unwrap();
    let before = coats(&service, 3).await;
    assert_eq!(before[0].0, "sporty-blue-coat");
    assert_eq!(coats(&replica, 3).await, before);

    let copy = json!({"type": "coat", "style": "sporty", "colour": "Blue", "price": 110});
    put(&service, "anorak", copy).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        let after = coats(service, 3).await;
        assert_eq!(names(&after), ["anorak", "sporty-blue-coat", &before[1].0], "in the order of their ids");
        assert!((after[0].1 - after[1].1).abs() < 1e-9, "{after:?}");
        assert!(after[0].1 < before[0].1, "they share what one of them had");
        assert_eq!(names(&coats(service, 1).await), ["anorak"], "cut within them");
    }
    // Another colour, another row; another type, other suggestions; and gone when it is deleted.
    let red = json!({"id": "anorak", "type": "coat", "style": "classic", "colour": "red"});
    let lines = format!("{red}\n{}\n", json!({"id": "sporty-red-coat", "type": "hat"}));
    service.lines("/articles/bulk", lines).is(200).await;
    let changed = coats(&service, 250).await;
    assert_eq!((changed[0].0.as_str(), changed.len()), ("sporty-blue-coat", 6));
    assert_ne!(changed[1].0, "anorak");
    replica.releases.refresh().await.unwrap();
    assert_close(&coats(&replica, 250).await, &changed);
    // The same release, loaded again, reads the whole catalogue.
    service.ask_ok("/releases/open/activate?force=true", json!({})).await;
    assert_close(&coats(&service, 250).await, &changed);
    put(&service, "sporty-red-coat", json!({"type": "coat", "style": "sporty", "colour": "red"})).await;
    delete(&service, &["anorak"]).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        let after = coats(service, 250).await;
        assert_eq!(after.len(), 6);
        assert!((after[0].1 - before[0].1).abs() < 1e-9);
    }
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
async fn a_new_article_counts_in_an_outfit(Open(service, _models): Open) {
    put(&service, "runners", json!({"type": "shoes", "style": "sporty", "colour": "red"})).await;
    let ask = async |shoes: &str| {
        let request = json!({"outfit": ["classic-black-shirt", null, shoes], "k": 250, "explain": true, "probability": true});
        let answer = service.complete(request).await;
        assert_eq!(codes(&answer["warnings"]), ["short-outfit"], "{answer:#}");
        let mut others = read(&answer["blanks"][0]["suggestions"]);
        others.retain(|(id, _)| id != "runners" && id != "sporty-red-shoes");
        others
    };
    let (new, known) = (ask("runners").await, ask("sporty-red-shoes").await);
    assert_eq!(new.len(), 22);
    for ((id, new), (_, known)) in new.iter().zip(&known) {
        assert!((new - known).abs() < 1e-9, "{id}: {new}, {known}");
    }
    let scored = service.ask_ok("/score", json!({"outfit": ["sporty-red-shirt", "runners"]})).await;
    assert_eq!(list(&scored["articles"]).len(), 2, "{scored}");
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn an_article_with_unknown_values_has_those_that_are_known(Open(service, _models): Open) {
    let before = coats(&service, 250).await;
    put(&service, "odd", json!({"type": "coat", "style": "baroque", "colour": "mauve"})).await;
    put(&service, "bare", json!({"type": "coat"})).await;
    put(&service, "half", json!({"type": "coat", "style": "sporty"})).await;
    let all = coats(&service, 250).await;
    let of = |id: &str| all.iter().find(|(other, _)| other == id).unwrap().1;
    assert!((of("odd") - of("bare")).abs() < 1e-9, "what is unknown counts as what is not said: {all:?}");
    let mean = all.iter().map(|(_, probability)| probability).sum::<f64>() / 9.0;
    assert!(of("bare") < mean, "an average coat is no favourite: {all:?}");
    assert!(of("bare") < of("half") && of("half") < of("sporty-blue-coat"), "{all:?}");

    // What a model was trained with it still knows when a feed no longer says it.
    put(&service, "sporty-blue-coat", json!({"type": "coat"})).await;
    assert_eq!(coats(&service, 250).await, all);
    delete(&service, &["odd", "bare", "half"]).await;
    assert_eq!(coats(&service, 250).await, before);
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn the_same_model_in_format_1_gives_the_same_answers_and_knows_nothing_new(
    Open(service, models): Open,
) {
    let open = coats(&service, 6).await;
    // The same model as one file, in format 1.
    run_example("export_release.py", &models.path().join("closed")).await;
    service.ask_ok("/releases/closed/activate", json!({})).await;
    let closed = coats(&service, 6).await;
    assert_eq!((names(&open), open.len()), (names(&closed), 6));
    assert_close(&open, &closed);
    // A closed method does not know what is new, and says so.
    let detail =
        "the article is new to release closed, which suggests only articles that it was trained with";
    let coat = json!({"type": "coat", "style": "sporty", "colour": "chartreuse"});
    assert_eq!(put(&service, "anorak", coat.clone()).await, json!([{"pointer": "", "detail": detail}]));
    assert_eq!(put(&service, "sporty-blue-coat", coat).await, json!([]));
    assert_eq!(coats(&service, 250).await.len(), 6);
    let answer = service.complete(json!({"outfit": ["anorak", null, "sporty-blue-shoes"]})).await;
    assert_eq!(codes(&answer["warnings"]), ["article-not-in-release", "short-outfit"], "{answer:#}");
    let line = json!({"id": "cap", "type": "hat"}).to_string();
    let brought = service.lines("/articles/bulk", line).ok().await;
    assert_eq!(brought["warnings"], json!([{"detail": detail.replace("the", "1")}]));
    let coverage = service.json("/coverage").await;
    assert_eq!(pick(&coverage, "new unknown open_methods"), json!([2, [], []]));
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_server_may_have_the_whole_model_of_a_release_with_tables(
    Open(local, models): Open,
    db: TestDatabase,
) {
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
        put(&service, "anorak", json!({"type": "coat", "style": "sporty", "colour": "blue"})).await;
        assert_eq!(coats(&service, 250).await.len(), 6 + usize::from(is_open), "closed without the tables");
        let open = if is_open { json!(["c"]) } else { json!([]) };
        assert_eq!(service.json("/coverage").await["open_methods"], open);
        let answer = service.complete(json!({"outfit": ["anorak", null, "sporty-blue-shoes"]})).await;
        let warned = codes(&answer["warnings"]).contains(&"article-not-in-release");
        assert_eq!(warned, !is_open, "{answer:#}");
        delete(&service, &["anorak"]).await;
    }
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn what_a_release_does_not_know_of_a_stored_article_is_said(Open(service, _models): Open) {
    let expected = |pointer: &str, detail: &str| json!({"pointer": pointer, "detail": detail});
    let colour = expected(
        "",
        "the article has no colour, which other articles have: it counts as an average one there",
    );
    let rest = "is new to release open: until a release is trained with it, only the";
    let chartreuse = &format!("colour \"chartreuse\" {rest} type and other attributes count");
    let poncho = &format!("type \"poncho\" {rest} other attributes count");
    for (id, attributes, warnings) in [
        ("anorak", json!({"type": "coat", "colour": "Blue", "price": 110, "name": "unheard-of"}), json!([])),
        ("odd", json!({"type": "coat", "colour": "Chartreuse"}), json!([expected("/colour", chartreuse)])),
        // It has a vector of its own.
        ("sporty-blue-coat", json!({"type": "coat", "colour": "Chartreuse"}), json!([])),
        (
            "poncho",
            json!({"type": "poncho", "warnings": "dry clean only"}),
            json!([expected("/type", poncho), colour]),
        ),
        // A name in another spelling.
        ("red", json!({"type": "coat", "color": "red"}), json!([colour])),
    ] {
        let sporty = with(attributes, json!({"style": "sporty"}));
        assert_eq!(put(&service, id, sporty).await, warnings, "{id}");
    }
    assert_eq!(service.json("/articles/poncho").await["warnings"], "dry clean only");

    let lines = [("one", "mauve"), ("two", "Mauve"), ("three", "chartreuse"), ("four", "blue")]
        .map(|(id, colour)| json!({"id": id, "type": "coat", "colour": colour}).to_string() + "\n");
    let brought = service.lines("/articles/bulk", lines.concat()).ok().await;
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
async fn coverage_counts_new_articles_and_their_feedback(Open(service, _models): Open) {
    for (id, kind, colour) in
        [("anorak", "coat", "blue"), ("cape", "cape", "mauve"), ("beret", "hat", "mauve")]
    {
        put(&service, id, json!({"type": kind, "style": "sporty", "colour": colour})).await;
    }
    delete(&service, &["classic-red-shirt"]).await;
    let answer = service.complete(question(json!({"k": 3}))).await;
    let suggested = ids(&answer["blanks"][0]["suggestions"]);
    // The second acceptance is the same again.
    let (coat, last) = ("sporty-blue-coat", suggested[2].as_str());
    let events = [("accepted", "anorak"), ("accepted", "anorak"), ("shown", coat), ("rejected", last)];
    let events = (0..).zip(events).map(|(id, (kind, article))| {
        json!({"id": id.to_string(), "completion_id": answer["completion_id"], "kind": kind, "slot": 2, "article": article})
    });
    service.ask_ok("/feedback", json!(events.collect::<Vec<_>>())).await;

    let coverage = service.json("/coverage").await;
    let counted = pick(&coverage, "release known new retired more_unknown open_methods");
    assert_eq!(counted, json!(["open", 23, 3, 1, 0, ["c"]]), "{coverage:#}");
    let unknown = list(&coverage["unknown"]);
    assert_eq!(unknown[0], json!({"attribute": "colour", "value": "mauve", "articles": 2}));
    assert!(unknown.contains(&json!({"attribute": "type", "value": "cape", "articles": 1})), "{coverage:#}");
    for (articles, counts) in [("known", json!([2, 0, 1, 0])), ("new", json!([1, 1, 0, 0]))] {
        let found = pick(&coverage["feedback"][articles], "shown accepted rejected bought");
        assert_eq!(found, counts, "{articles}");
    }
    assert_eq!(coverage["feedback"]["new"]["acceptance"]["value"], 1.0);
    let metrics = [
        "atelier_articles{state=\"known\"} 23",
        "atelier_articles{state=\"new\"} 3",
        "atelier_articles{state=\"retired\"} 1",
        "atelier_suggestions_total{article=\"new\"} 1",
        "atelier_suggestions_total{article=\"known\"} 2",
        "atelier_feedback_events_total{event=\"accepted\",article=\"new\"} 1",
        "atelier_feedback_events_total{event=\"shown\",article=\"known\"} 1",
        "atelier_feedback_events_total{event=\"rejected\",article=\"known\"} 1",
        "atelier_feedback_events_total{event=\"accepted\",article=\"known\"} 0",
        "atelier_suggestible_articles{method=\"c\"} 26",
    ];
    service.get("/metrics").await.text().has(metrics.map(|line| format!("\n{line}\n")));
    service.signed_in(Role::Admin).await.page("/operations/articles").await.has([
        "<dt>new</dt><dd>3</dd>",
        "<td>colour</td><td>mauve</td><td class=\"number\">2</td>",
        "New articles are suggested by c.",
        "<th scope=\"row\">new</th><td class=\"number\">1</td>",
    ]);
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn the_studio_marks_new_articles(Open(service, _models): Open) {
    put(&service, "anorak", json!({"type": "coat", "style": "sporty", "colour": "blue"})).await;
    put(&service, "runners", json!({"type": "shoes", "style": "sporty", "colour": "red"})).await;
    let stylist = service.signed_in(Role::Stylist).await;
    let worn = "slot=sporty-blue-shirt&slot=sporty-blue-trousers&slot=&slot=";
    // The suggested anorak, the runners of the outfit, what is found.
    for (query, expected) in [
        ("slot=&slot=sporty-blue-shoes&type=0:shirt", 0),
        (&*format!("{worn}sporty-blue-shoes&type=2:coat"), 1),
        (&*format!("{worn}runners&type=2:coat"), 2),
        (&*format!("{worn}runners&type=2:coat&pick=2&search=anorak"), 3),
    ] {
        let html = stylist.page(format!("/studio?{query}")).await;
        assert_eq!(html.matches("<span class=\"new\"").count(), expected, "{query}: {html}");
        let note = "New: added after the release was trained, so ranked by its type and attributes.";
        assert_eq!(html.contains(note), expected > 0, "{query}: {html}");
    }
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn an_article_is_placed_by_its_embedding(Open(service, _models): Open) {
    put(&service, "unseen", json!({"type": "coat"})).await;
    let place = async |id: &str| names(&coats(&service, 250).await).iter().position(|other| *other == id);
    assert!(place("unseen").await > Some(1), "only its type is known");
    // Styles: classic, sporty; colours: black, blue, red.
    let seen = json!({"type": "coat", "embedding": [0, 1, 0, 1, 0]});
    let said = put(&service, "unseen", seen.clone()).await.to_string();
    assert!(said.contains("no colour") && !said.contains("embedding"), "{said}");
    assert!(place("unseen").await <= Some(1) && place("sporty-blue-coat").await <= Some(1));

    // It is kept, and in no answer.
    assert_eq!(service.json("/articles/unseen").await, json!({"id": "unseen", "type": "coat"}));
    let answer = service.complete(json!({"outfit": ["unseen", null], "k": 250})).await;
    assert!(!answer.to_string().contains("embedding"), "{answer}");
    let stored = async |id: &str| {
        let article = service.store.articles().get(&ArticleId::new(id).unwrap()).await.unwrap().unwrap();
        article.embedding().unwrap().to_json()
    };
    for _ in 0..2 {
        assert_eq!(stored("unseen").await, json!([0, 1, 0, 1, 0]));
        service.put("/articles/unseen", &seen).is(200).await;
    }

    // What cannot be read is refused, what another encoder made is said.
    for wrong in [json!([1, "x"]), json!({"image": [1], "text": []})] {
        let odd = json!({"type": "coat", "embedding": wrong});
        service.put("/articles/odd", odd).await.assert_problem(422, &["/embedding"]);
    }
    for (id, embedding, detail) in [
        // One of another scale does not outweigh what else is known.
        (
            "far",
            json!([0, 1e30, 0, 1e30, 0]),
            "the embedding is far from those that release open was trained with, and counts only in part; check its encoder \
             and its scale",
        ),
        (
            "longer",
            json!([0, 1, 0]),
            "the embedding has 3 numbers, and release open was trained with 5: it does not count",
        ),
        (
            "odd",
            json!({"image": [0.5, 2]}),
            "the embedding \"image\" has 2 numbers, and release open was trained with none: it does not count",
        ),
    ] {
        let article = json!({"type": "coat", "style": "sporty", "colour": "red", "embedding": embedding});
        let warnings = json!([{"pointer": "/embedding", "detail": detail}]);
        assert_eq!(put(&service, id, article).await, warnings, "{id}");
        let all = coats(&service, 250).await;
        assert!(all.iter().all(|(_, share)| share.is_finite()), "{id}: {all:?}");
        assert!(names(&all).contains(&id), "{all:?}");
    }
    // Lists of several encoders stand side by side, and come one by one.
    let line = json!({"id": "odd", "embedding": {"text": [1]}}).to_string();
    service.lines("/articles/bulk?mode=merge", line).is(200).await;
    assert_eq!(stored("odd").await, json!({"image": [0.5, 2], "text": [1]}));
}
