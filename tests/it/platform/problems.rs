//! Problems as a whole; `routes` asks those of every operation.

use serde_json::json;

use crate::harness::{Html, Service, apply, on_sqlite};

#[apply(on_sqlite)]
async fn an_unknown_path_is_a_problem(service: Service) {
    let answer = service.get("/no/such?x=1").await;
    let expected = json!({
        "type": "/docs/problems#not-found", "title": "Not found", "status": 404, "code": "not-found",
        "detail": "no page or resource has the path /no/such", "request_id": answer.header("x-request-id"),
    });
    assert_eq!(answer.assert_problem(404, &[]), expected);
}

#[apply(on_sqlite)]
async fn browsers_get_a_page(service: Service) {
    let answer = service.page("/<script>").is(404).await;
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let back = "<a class=\"button\" href=\"/\" hx-boost=\"false\">Back to Studio</a>";
    answer.text().has(["<h1>There is nothing here</h1>", back]).lacks(["<script>"]);
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
async fn every_problem_is_explained(service: Service) {
    let html = service.page("/docs/problems").await.text();
    html.has(atelier::platform::http::KINDS.iter().map(|kind| format!("<section id=\"{}\">", kind.code())));
}
