//! Releases whose data has articles that no training outfit has.

use std::fs;

use atelier_core::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    analysis::evaluation::{
        lack::{demo_but, keep_two_methods, replace},
        line, text,
    },
    harness::{Html, Service, TestDatabase, apply, on_sqlite},
};

/// The demo release with a comparison that has no figures about new articles, or others.
fn folder(change: impl FnOnce(&mut Value)) -> TempDir {
    demo_but(|demo, manifest| {
        keep_two_methods(manifest);
        let mut file: Value =
            serde_json::from_slice(&fs::read(demo.join("evaluation.json")).unwrap()).unwrap();
        let comparison = &mut file["comparison"];
        comparison.as_object_mut().unwrap().remove("new_article_baselines");
        for method in comparison["methods"].as_array_mut().unwrap() {
            method.as_object_mut().unwrap().remove("new_articles");
        }
        change(comparison);
        replace(demo, manifest, "evaluation.json", file.to_string().as_bytes());
    })
}

async fn evaluation_page(db: &TestDatabase, folder: &TempDir) -> String {
    let service = Service::of(db, folder).await;
    service.releases.serve("demo").await.unwrap();
    service.signed_in(Role::Analyst).await.page("/evaluation").await
}

#[apply(on_sqlite)]
async fn new_articles_have_a_table(db: TestDatabase) {
    let figure = |mean: f64| json!({"mean": mean, "standard_error": null});
    let scores = |rank: f64| {
        json!({"slots": 1234, "cross_entropy": figure(5.4321), "recall_at_1": figure(0.0123),
            "recall_at_5": figure(0.0456), "recall_at_250": figure(0.5), "mean_rank": figure(rank)})
    };
    let answered = json!({"any": scores(314.22), "told_type": scores(9.26)});
    let folder_with_figures = folder(|comparison| {
        comparison["new_article_baselines"] = json!([{"baseline": "popularity, told the type", "knows_type": true, "new": answered, "known": answered}]);
        let mut methods = comparison["methods"].as_array_mut().unwrap().iter_mut();
        let gsu = methods.find(|method| method["method"] == "gsu").unwrap();
        gsu["new_articles"] = json!({"new": answered, "known": answered, "shares": {
            "of_articles": figure(0.1), "of_answers": figure(0.104), "of_probability": figure(0.093),
            "of_probability_within_type": figure(0.094), "of_first_five": figure(0.08)}});
    });
    let html = evaluation_page(&db, &folder_with_figures).await;
    let (_, section) = html.split_once("<h2 id=\"new-articles\">").expect("there is a section");
    let expected = [
        "In 1,234 further slots, 10.4 % of these and the others, the missing article is in no training outfit",
        "cannot suggest new ones: none, c, np, gs, latent,",
    ];
    text(section).has(expected);
    let gsu = "1.23 4.56 314.2 5.432 1.23 4.56 9.3 5.432 9.3 %";
    text(&line(section, "gsu")).has([gsu]);
    let baseline = "type 1.23 4.56 314.2 5.432 1.23 4.56 9.3 5.432";
    text(&line(section, "popularity, told the type")).has([baseline]);

    // Most releases have none.
    let html = evaluation_page(&db, &folder(|_| {})).await;
    html.lacks(["new-articles"]);
    html.has(["Table 1"]);
}
