//! Releases whose data has articles that no training outfit has.

use std::fs;

use atelier::config::Limits;
use atelier_core::domain::Role;
use serde_json::{Value, json};

use super::{
    lack::{demo_but, replace},
    line, text,
};
use crate::{
    harness::{TestDatabase, apply, on_sqlite},
    web::Service,
};

#[apply(on_sqlite)]
async fn new_articles_have_a_table(db: TestDatabase) {
    let scores = |rank: f64| {
        let figure = |mean: f64| json!({"mean": mean, "standard_error": null});
        json!({"slots": 1234, "cross_entropy": figure(5.4321), "recall_at_1": figure(0.0123),
            "recall_at_5": figure(0.0456), "recall_at_250": figure(0.5), "mean_rank": figure(rank)})
    };
    let answered = json!({"any": scores(314.22), "told_type": scores(9.26)});
    let folder = demo_but(|demo, manifest| {
        // Fewer models load faster.
        manifest["methods"]
            .as_array_mut()
            .unwrap()
            .retain(|one| one["method"] == "none" || one["method"] == "gsu");
        let path = demo.join("evaluation.json");
        let mut file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let comparison = &mut file["comparison"];
        comparison["new_article_baselines"] = json!([{"baseline": "popularity, told the type", "knows_type": true, "new": answered, "known": answered}]);
        let methods = comparison["methods"].as_array_mut().unwrap();
        for method in &mut *methods {
            method.as_object_mut().unwrap().remove("new_articles");
        }
        let gsu = methods.iter_mut().find(|method| method["method"] == "gsu").unwrap();
        let share = |mean: f64| json!({"mean": mean, "standard_error": null});
        gsu["new_articles"] = json!({"new": answered, "known": answered, "shares": {
            "of_articles": share(0.1), "of_answers": share(0.104), "of_probability": share(0.093),
            "of_probability_within_type": share(0.094), "of_first_five": share(0.08)}});
        replace(demo, manifest, "evaluation.json", file.to_string().as_bytes());
    });
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    service.releases.serve("demo").await.unwrap();
    let analyst = service.signed_in(Role::Analyst).await;
    let html = analyst.page("/evaluation").await;
    let (_, section) = html.split_once("<h2 id=\"new-articles\">").expect("there is a section");
    let said = text(section);
    assert!(
        said.contains("In 1,234 slots, 10.4 % of all, the missing article is in no training outfit"),
        "{said}"
    );
    assert!(said.contains("cannot suggest new ones: none, c, np, gs, latent,"), "{said}");
    let cells = |name: &str| text(&line(section, name));
    assert!(cells("gsu").contains("1.23 4.56 314.2 5.432 1.23 4.56 9.3 5.432 9.3 %"), "{}", cells("gsu"));
    let baseline = cells("popularity, told the type");
    assert!(baseline.contains("type 1.23 4.56 314.2 5.432 1.23 4.56 9.3 5.432"), "{baseline}");

    // Most releases have none.
    let plain = demo_but(|demo, manifest| {
        let path = demo.join("evaluation.json");
        let mut file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        file["comparison"].as_object_mut().unwrap().remove("new_article_baselines");
        for method in file["comparison"]["methods"].as_array_mut().unwrap() {
            method.as_object_mut().unwrap().remove("new_articles");
        }
        replace(demo, manifest, "evaluation.json", file.to_string().as_bytes());
    });
    let service = Service::start_in(&db, Limits::default(), plain.path().to_owned()).await;
    service.releases.serve("demo").await.unwrap();
    let html = service.signed_in(Role::Analyst).await.page("/evaluation").await;
    assert!(!html.contains("new-articles") && html.contains("Table 1"), "{html}");
}
