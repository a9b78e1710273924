use serde_json::{Value, json};

use super::Service;
use crate::harness::{TestDatabase, apply, on_sqlite};

#[apply(on_sqlite)]
async fn an_unknown_path_is_a_problem(db: TestDatabase) {
    let answer = Service::start(&db).await.get("/no/such?x=1").is(404).await;
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let id = answer.header("x-request-id").to_owned();
    let problem: Value = answer.json();
    let expected = json!({
        "type": "/docs/problems#not-found", "title": "Not found", "status": 404,
        "detail": "no page or resource has the path /no/such", "code": "not-found", "request_id": id,
    });
    assert_eq!(problem, expected);
}

#[apply(on_sqlite)]
async fn a_wrong_method_is_a_problem(service: Service) {
    let answer = service.delete("/livez").is(405).await;
    assert_eq!(answer.header("allow"), "GET,HEAD");
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let problem: Value = answer.json();
    assert_eq!(problem["code"], "method-not-allowed");
    assert_eq!(problem["detail"], "/livez does not support DELETE");
}

#[apply(on_sqlite)]
async fn browsers_get_a_page(db: TestDatabase) {
    let answer = Service::start(&db).await.page("/<script>").is(404).await;
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let html = answer.text();
    assert!(html.contains("<h1>There is nothing here</h1>"), "{html}");
    assert!(!html.contains("<script>"), "{html}");
}

#[apply(on_sqlite)]
async fn request_ids_are_kept_or_made(service: Service) {
    let send = |id: &str| service.get("/livez").header("x-request-id", id);
    assert_eq!(send("shop-17").await.header("x-request-id"), "shop-17");
    for unusable in ["", "two words", &"x".repeat(129)] {
        let answer = send(unusable).await;
        assert_eq!(answer.header("x-request-id").len(), 36, "a UUID instead of {unusable:?}");
    }
}

#[apply(on_sqlite)]
async fn the_page_of_routes_shows_what_a_patch_is(db: TestDatabase) {
    let html = Service::start(&db).await.page("/docs").await.text();
    let text = html.replace("&#34;", "\"").replace("&quot;", "\"");
    assert!(text.contains(r#""state": "off""#), "the example of PATCH /rules/{{name}}");
}

#[apply(on_sqlite)]
async fn every_problem_is_explained(db: TestDatabase) {
    let html = Service::start(&db).await.page("/docs/problems").await.text();
    for kind in atelier::platform::http::KINDS {
        assert!(html.contains(&format!("<section id=\"{}\">", kind.code())), "{}", kind.code());
    }
}
