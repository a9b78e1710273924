//! A release and a catalogue that do not fit: which of the two lacks what is said everywhere.

use atelier::config::Limits;
use atelier_core::domain::Role;
use serde_json::{Value, json};

use super::{Demo, Service, models};
use crate::harness::{TestDatabase, apply, on_sqlite};

/// A service whose shop sells two ponchos.
async fn shop(db: &TestDatabase) -> Service {
    let service = Service::start_in(db, Limits::default(), models()).await;
    for id in ["p-1", "p-2"] {
        service.put(&format!("/articles/{id}"), &json!({"type": "poncho"})).await;
    }
    service
}

#[apply(on_sqlite)]
async fn a_release_for_another_catalogue_must_be_forced(db: TestDatabase) {
    let service = shop(&db).await;
    for query in ["", "?force=false"] {
        let (status, problem) = service.ask(&format!("/releases/demo/activate{query}"), &json!({})).await;
        assert_eq!((status, &problem["code"]), (409, &json!("release-refused")), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        let start = "release demo has none of the catalogue's articles (2), so only match can suggest them, by their attributes alone";
        assert!(detail.starts_with(start), "{detail}");
        assert!(detail.ends_with("force it with the query parameter force=true"), "{detail}");
    }
    assert_eq!(service.json("/releases").await["active"], Value::Null);
    let (status, problem) = service.ask("/releases/demo/activate?forse=true", &json!({})).await;
    assert_eq!(status, 422, "{problem}");

    service.ask_ok("/releases/demo/activate?force=true", &json!({})).await;
    let ready: Value = service.get("/readyz").await.json();
    let expected = json!({"both": 0, "only_in_catalogue": 2, "only_in_release": 1451});
    assert_eq!((&ready["release"], &ready["articles"]), (&json!("demo"), &expected));
    let metrics = service.get("/metrics").await.text();
    for (state, count) in [("known", 0), ("new", 2), ("retired", 1451)] {
        assert!(metrics.contains(&format!("atelier_articles{{state=\"{state}\"}} {count}\n")), "{metrics}");
    }
    // The alert that nothing can be suggested does not fire for an open method.
    for (method, count) in [("gsu", 0), ("match", 2)] {
        let expected = format!("atelier_suggestible_articles{{method=\"{method}\"}} {count}\n");
        assert!(metrics.contains(&expected), "{metrics}");
    }
    let operations = service.signed_in(Role::Admin).await.page("/operations").await;
    assert!(
        operations.contains("catalogue’s articles</strong>, so only match can suggest them"),
        "{operations}"
    );
    assert!(operations.contains("<dt>articles only in the release</dt><dd>1,451</dd>"), "{operations}");
}

#[apply(on_sqlite)]
async fn a_release_that_knows_under_half_must_be_forced(db: TestDatabase) {
    let service = shop(&db).await;
    service.put("/articles/a-00315", &json!({"type": "blouse"})).await;
    let (status, problem) = service.ask("/releases/demo/activate", &json!({})).await;
    assert_eq!(status, 409, "{problem}");
    let start = "release demo has 1 of the catalogue's 3 articles (33.3 %, at least 50.0 % by models.least_known), and as for the others \
                 only match can suggest them, by their attributes alone; ";
    assert!(problem["detail"].as_str().unwrap().starts_with(start), "{problem}");
    service.put("/articles/a-01317", &json!({"type": "skirt"})).await;
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    service.delete("/articles/a-01317").await;
    assert_eq!(service.ask("/releases/demo/activate", &json!({})).await.0, 409, "a reload, too");
    service.ask_ok("/releases/demo/activate?force=true", &json!({})).await;
}

#[apply(on_sqlite)]
async fn the_page_asks_before_it_forces(db: TestDatabase) {
    let service = shop(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    let asked = admin.page("/operations/releases/demo").await;
    assert!(!asked.contains("name=\"force\""), "{asked}");
    let refused = admin.post("/operations/releases/demo", &[("before", "")]).is(409).await;
    let html = refused.text();
    assert!(html.contains("release demo has none of the catalogue&#39;s articles (2)"), "{html}");
    assert!(html.contains("<input type=\"hidden\" name=\"force\" value=\"true\">"), "{html}");
    assert!(html.contains("Activate demo anyway</button>"), "{html}");
    assert_eq!(service.json("/releases").await["active"], Value::Null);
    let done = admin.post("/operations/releases/demo", &[("before", ""), ("force", "true")]).await;
    assert_eq!((done.status(), done.header("location")), (303, "/operations/releases"));
    assert_eq!(service.json("/releases").await["active"], "demo");
}

#[apply(on_sqlite)]
async fn an_empty_catalogue_can_be_filled_later(db: TestDatabase) {
    let service = Service::start_in(&db, Limits::default(), models()).await;
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    let both = async || service.get("/readyz").await.json()["articles"].take();
    assert_eq!(both().await, json!({"both": 0, "only_in_catalogue": 0, "only_in_release": 1451}));
    service.put("/articles/p-1", &json!({"type": "poncho"})).await;
    assert_eq!(both().await, json!({"both": 0, "only_in_catalogue": 1, "only_in_release": 1451}));
    let answer = service.ask_ok("/complete", &json!({"outfit": [null], "method": "gsu"})).await;
    let detail = "release demo was trained with none of the catalogue's articles (1), and gsu suggests no new ones, so there is nothing to \
         suggest for slot 0";
    assert_eq!(answer["warnings"][0], json!({"code": "nothing-admissible", "detail": detail}), "{answer}");
    // A reload is an activation.
    assert_eq!(service.ask("/releases/demo/activate", &json!({})).await.0, 409);
    service.bring_in_demo().await;
    service.releases.refresh().await.unwrap();
    assert_eq!(both().await, json!({"both": 1451, "only_in_catalogue": 50, "only_in_release": 0}));
    service.ask_ok("/releases/demo/activate", &json!({})).await;
}

#[apply(on_sqlite)]
async fn an_answer_says_which_side_lacks_a_type(Demo(service): Demo) {
    service.put("/articles/p-1", &json!({"type": "poncho"})).await;
    let lacks = async |kind: &str| {
        let request = json!({"outfit": [null], "method": "gsu", "filters": {"types": {"0": [kind]}}});
        let (status, problem) = service.ask("/complete", &request).await;
        assert_eq!(status, 422, "{problem}");
        problem["errors"][0]["detail"].as_str().unwrap().to_owned()
    };
    let poncho = lacks("poncho").await;
    assert!(
        poncho.starts_with(
            "release demo was trained with none of the catalogue's articles of type \"poncho\" (1)"
        ),
        "{poncho}"
    );
    let cape = lacks("cape").await;
    assert!(
        cape.starts_with("the catalogue has no articles of type \"cape\"; types that can be suggested"),
        "{cape}"
    );
}
