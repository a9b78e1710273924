//! Articles that no model was trained with, in a release of format 2 that `docs/examples/export_open_release.py` makes.

use atelier::config::Limits;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Service, foreign_release::run_example};
use crate::harness::{TestDatabase, contracts, tools};

contracts!(
    a_copy_of_an_article_stands_beside_it needs tools::onnx,
    a_new_article_counts_in_an_outfit needs tools::onnx,
    changes_give_the_answers_of_a_catalogue_that_is_read_as_a_whole needs tools::onnx,
    an_article_with_unknown_values_has_those_that_are_known needs tools::onnx,
    the_same_model_in_format_1_gives_the_same_answers needs tools::onnx,
);

/// A folder with the example release `open`.
async fn open_release() -> TempDir {
    let models = tempfile::tempdir().unwrap();
    run_example("export_open_release.py", &models.path().join("open")).await;
    models
}

async fn serve(db: &TestDatabase, models: &TempDir) -> Service {
    let service = Service::start_in(db, Limits::default(), models.path().to_owned()).await;
    let articles = std::fs::read(models.path().join("open/articles.jsonl")).unwrap();
    let brought = service.post("/articles/bulk", "application/x-ndjson", articles).await;
    assert_eq!(brought.status(), 200);
    service.ask_ok("/releases/open/activate", &json!({})).await;
    service
}

/// The suggestions for the coat of a sporty outfit in blue, with their probabilities.
async fn coats(service: &Service, k: usize) -> Vec<(String, f64)> {
    let request = json!({
        "outfit": ["sporty-blue-shirt", "sporty-blue-trousers", null, "sporty-blue-shoes"],
        "features": {"style": "sporty"}, "k": k, "filters": {"types": {"2": ["coat"]}}
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
    let status = service.put(&format!("/articles/{id}"), attributes).await.status();
    assert!(status.is_success(), "{status}");
}

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
    assert_eq!(service.delete("/articles/anorak").await.status(), 204);
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        let after = coats(service, 250).await;
        assert_eq!(after.len(), 6);
        assert!((after[0].1 - before[0].1).abs() < 1e-9);
    }
}

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
        assert_eq!(service.delete(&format!("/articles/{gone}")).await.status(), 204);
    }
    let bulk: String = (0..40)
        .map(|number| format!("{{\"id\": \"many-{number}\", \"type\": \"coat\", \"colour\": \"blue\"}}\n"))
        .collect();
    assert_eq!(service.post("/articles/bulk", "application/x-ndjson", bulk.into_bytes()).await.status(), 200);
    put(&service, "classic-red-coat", &json!({"type": "coat", "style": "classic", "colour": "red"})).await;
    replica.releases.refresh().await.unwrap();
    let changed = coats(&service, 250).await;
    assert_eq!(coats(&replica, 250).await, changed);
    let ids: Vec<&str> = changed.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids.len(), 5 + 3 + 40, "{ids:?}");
    assert!(["new-0", "new-1", "new-4", "classic-red-coat"].iter().all(|id| ids.contains(id)));
    assert!(!["new-2", "new-3", "sporty-blue-coat"].iter().any(|id| ids.contains(id)), "{ids:?}");
    // The same release, loaded again, reads the whole catalogue.
    service.ask_ok("/releases/open/activate", &json!({})).await;
    let whole = coats(&service, 250).await;
    assert_eq!(whole.len(), changed.len());
    for (id, changed) in &changed {
        let (_, whole) = whole.iter().find(|(other, _)| other == id).unwrap();
        assert!((changed - whole).abs() < 1e-9, "{id}: {changed}, {whole}");
    }
}

async fn a_new_article_counts_in_an_outfit(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    put(&service, "runners", &json!({"type": "shoes", "style": "sporty", "colour": "red"})).await;
    let ask = async |shoes: &str| {
        let request = json!({"outfit": ["classic-black-shirt", null, shoes], "k": 250, "explain": true});
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

async fn an_article_with_unknown_values_has_those_that_are_known(db: TestDatabase) {
    let models = open_release().await;
    let service = serve(&db, &models).await;
    put(&service, "odd", &json!({"type": "coat", "style": "baroque", "colour": "mauve"})).await;
    let all = coats(&service, 250).await;
    let place = all.iter().position(|(id, _)| id == "odd").unwrap();
    assert_eq!(place, all.len() - 1, "it goes with nothing but is a coat: {all:?}");
    assert!(all[place].1 > 0.0);
}

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
        assert!((open - closed).abs() < 1e-6, "{id}: {open}, {closed}");
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
