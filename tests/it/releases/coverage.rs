//! A release and a catalogue that do not fit: which of the two lacks what is said everywhere.

use atelier_core::domain::Role;
use serde_json::{Value, json};

use crate::{
    harness::{Call, Demo, Html, Service, TestDatabase, apply, assert_has, models, on_sqlite},
    releases::operations::releases::two_releases,
};

/// A service whose shop sells two ponchos.
async fn shop(db: &TestDatabase) -> Service {
    let service = Service::of(db, models()).await;
    for id in ["p-1", "p-2"] {
        service.put(format!("/articles/{id}"), json!({"type": "poncho"})).is(201).await;
    }
    service
}

fn activate(service: &Service, query: &str) -> Call {
    service.send(format!("/releases/demo/activate{query}"), json!({}))
}

#[apply(on_sqlite)]
async fn a_release_that_knows_under_half_of_the_catalogue_must_be_forced(db: TestDatabase) {
    let service = shop(&db).await;
    for query in ["", "?force=false"] {
        let problem = activate(&service, query).is(409).await.json();
        assert_eq!(problem["code"], "release-refused");
        let detail = problem["detail"].as_str().unwrap();
        let start = "release demo has none of the catalogue's articles (2), so only match can suggest them, by their attributes alone";
        assert!(detail.starts_with(start), "{detail}");
        detail.has(["; import the 1451 articles that it was trained with and the catalogue lacks, "]);
        assert!(detail.ends_with("force it with the query parameter force=true"), "{detail}");
    }
    assert_eq!(service.json("/releases").await["active"], Value::Null);
    activate(&service, "?forse=true").is(422).await;

    activate(&service, "?force=true").is(200).await;
    let articles = json!({"both": 0, "only_in_catalogue": 2, "only_in_release": 1451});
    assert_has(&service.get("/readyz").await.json(), json!({"release": "demo", "articles": articles}));
    // The alert that nothing can be suggested does not fire for an open method.
    let metrics = [
        "atelier_articles{state=\"known\"} 0\n",
        "atelier_articles{state=\"new\"} 2\n",
        "atelier_articles{state=\"retired\"} 1451\n",
        "atelier_suggestible_articles{method=\"gsu\"} 0\n",
        "atelier_suggestible_articles{method=\"match\"} 2\n",
    ];
    service.get("/metrics").await.text().has(metrics);
    let operations = service.signed_in(Role::Admin).await.page("/operations").await;
    let only_match = "catalogue’s articles</strong>, so only match can suggest them";
    operations.has([only_match, "<dt>articles only in the release</dt><dd>1,451</dd>"]);

    // A reload is an activation, too.
    service.put("/articles/a-00315", json!({"type": "blouse"})).is(201).await;
    let problem = activate(&service, "").is(409).await.json();
    let start = "release demo has 1 of the catalogue's 3 articles (33.3 %, at least 50.0 % by models.least_known), and as for the others \
                 only match can suggest them, by their attributes alone; ";
    assert!(problem["detail"].as_str().unwrap().starts_with(start), "{problem}");
    service.put("/articles/a-01317", json!({"type": "skirt"})).is(201).await;
    activate(&service, "").is(200).await;
    service.delete("/articles/a-01317").is(204).await;
    activate(&service, "").is(409).await;
}

/// Importing articles would not help: the catalogue has all that it was trained with.
#[apply(on_sqlite)]
async fn a_release_of_few_articles_is_to_be_trained_with_more_outfits(db: TestDatabase) {
    let folder = two_releases();
    let service = Service::filled(&db, &folder).await;
    activate(&service, "").is(200).await;
    let ponchos = (0..1500).map(|number| format!("{{\"id\":\"p-{number}\",\"type\":\"poncho\"}}\n"));
    service.lines("/articles/bulk", ponchos.collect::<String>()).ok().await;
    let said = [
        "1451 of the catalogue's 3000 articles (48.4 %, at least 50.0 %",
        "; train it with more outfits of these articles, such as those of earlier orders (atelier import --orders), ",
    ];
    let refused = service.send("/releases/less/activate", json!({})).is(409).await.json();
    refused["detail"].as_str().unwrap().has(said).has(["or force it"]);
    let arms = json!([{"name": "today", "share": 1}, {"name": "new", "release": "less", "share": 1}]);
    let running = json!({"arms": arms, "state": "running"});
    let problem = service.put("/experiments/autumn", running).await.assert_problem(422, &["/arms/1/release"]);
    problem["errors"][0]["detail"].as_str().unwrap().has(said).has(["or compare another release"]);
}

#[apply(on_sqlite)]
async fn the_page_asks_before_it_forces(db: TestDatabase) {
    let service = shop(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    let page = "/operations/releases/demo";
    admin.page(page).await.lacks(["name=\"force\" value=\"true\""]);
    let refused = admin.post(page, &[("before", "")]).is(409).await.text();
    let expected = [
        "release demo has none of the catalogue&#39;s articles (2)",
        "<input type=\"hidden\" name=\"force\" value=\"true\">",
        "Activate demo anyway</button>",
    ];
    refused.has(expected);
    assert_eq!(service.json("/releases").await["active"], Value::Null);
    let done = admin.post(page, &[("before", ""), ("force", "true")]).is(303).await;
    assert!(done.header("location").starts_with("/operations/releases?undo="));
    assert_eq!(service.json("/releases").await["active"], "demo");
}

#[apply(on_sqlite)]
async fn an_empty_catalogue_can_be_filled_later(db: TestDatabase) {
    let service = Service::of(&db, models()).await;
    activate(&service, "").is(200).await;
    let articles = async || service.get("/readyz").await.json()["articles"].take();
    assert_eq!(articles().await, json!({"both": 0, "only_in_catalogue": 0, "only_in_release": 1451}));
    service.put("/articles/p-1", json!({"type": "poncho"})).is(201).await;
    assert_eq!(articles().await, json!({"both": 0, "only_in_catalogue": 1, "only_in_release": 1451}));
    let answer = service.ask_ok("/complete", json!({"outfit": [null], "method": "gsu"})).await;
    let detail = "release demo was trained with none of the catalogue's articles (1), and gsu suggests no new ones, so there is nothing to \
         suggest for slot 0";
    assert_eq!(answer["warnings"][0], json!({"code": "nothing-admissible", "detail": detail}), "{answer}");
    // A reload is an activation.
    activate(&service, "").is(409).await;
    service.bring_in_demo().await;
    service.releases.refresh().await.unwrap();
    assert_eq!(articles().await, json!({"both": 1451, "only_in_catalogue": 50, "only_in_release": 0}));
    activate(&service, "").is(200).await;
}

#[apply(on_sqlite)]
async fn an_answer_says_which_side_lacks_a_type(Demo(service): Demo) {
    service.put("/articles/p-1", json!({"type": "poncho"})).is(201).await;
    for (kind, start) in [
        ("poncho", "release demo was trained with none of the catalogue's articles of type \"poncho\" (1)"),
        ("cape", "the catalogue has no articles of type \"cape\"; types that can be suggested"),
    ] {
        let request = json!({"outfit": [null], "method": "gsu", "filters": {"types": {"0": [kind]}}});
        let problem = service.send("/complete", request).is(422).await.json();
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.starts_with(start), "{detail}");
    }
}
