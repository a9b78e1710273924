//! Problems as a whole; `routes` asks those of every operation.

use reqwest::Method;
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
async fn only_valid_trace_parents_are_kept(service: Service) {
    let send = |parent: &str| service.get("/livez").header("traceparent", parent);
    let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    // A later version may have more fields.
    for kept in [valid, &format!("01{}-more", &valid[2..])] {
        assert_eq!(send(kept).await.header("traceparent"), kept);
    }
    for ignored in [
        String::new(),
        format!("{valid}-more"),
        format!("ff{}", &valid[2..]),
        valid.to_uppercase(),
        valid.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
        valid.replace("00f067aa0ba902b7", "00f067"),
    ] {
        assert_eq!(send(&ignored).await.header("traceparent"), "", "{ignored}");
    }
}

#[apply(on_sqlite)]
async fn malformed_bodies_say_where_parsing_stopped(service: Service) {
    let put = |body: &[u8]| service.call(Method::PUT, "/customers/c").body("application/json", body.to_vec());
    for (body, detail) in [
        (
            "{\"features\":\n [,]}",
            "line 2, column 3: not JSON: expected a value: a string in double quotes, ",
        ),
        ("{\"features\": {}} {}", "line 1, column 18: not JSON: unexpected text after the end"),
        (
            "{\"features\\ud800\": {}}",
            "line 1, column 17: not JSON: a \\u in a string is not a whole character",
        ),
        ("[1", "line 1, column 2: not JSON: it ends too early"),
        ("{\"features\": {\"age\": NaN}}", "line 1, column "),
        // Also after a wrong type.
        ("{\"features\": 7, \"more\": \"\\ud800\"}", "line 1, column "),
    ] {
        let problem = put(body.as_bytes()).await.assert_problem(400, &[]);
        let expected = format!("the body cannot be read at {detail}");
        assert!(problem["detail"].as_str().unwrap().starts_with(&expected), "{body}: {problem}");
    }
    let empty = put(b"").await.assert_problem(400, &[]);
    assert_eq!(empty["detail"], "the body is empty; expected a JSON object");
    for body in [&b"{\"features\": {}, \"more\xFF\": 1}"[..], b"{\"features\": {\"more\": \"\xFF\"}}"] {
        let byte = body.iter().position(|byte| *byte == 0xFF).unwrap() + 1;
        let problem = put(body).await.assert_problem(400, &[]);
        let expected = format!("the body cannot be read: not UTF-8 text from byte {byte} on");
        assert_eq!(problem["detail"], expected);
    }
    for deep in ["[".repeat(100_000), format!("{{\"features\":{}", "[".repeat(100_000))] {
        put(deep.as_bytes()).await.assert_problem(400, &[]);
    }
}

#[apply(on_sqlite)]
async fn errors_in_a_query_name_the_parameter(service: Service) {
    for (query, parameter, detail) in [
        ("n=-1", "n", "invalid digit found in string"),
        ("n=1&n=2", "n", "duplicate field `n`"),
        (
            "serach=x",
            "serach",
            "unknown field `serach`, expected one of `search`, `type`, `cursor`, `n`, or `where`",
        ),
    ] {
        let problem = service.get(format!("/articles?{query}")).await.assert_problem(422, &[]);
        assert_eq!(problem["errors"], json!([{"parameter": parameter, "detail": detail}]));
    }
    for query in ["search=%C3%84rmel+50%25&n=3", "search=50%"] {
        service.get(format!("/articles?{query}")).is(200).await;
    }
    for query in ["search=%ff", "%C3=1", "search=%C3&n=%84"] {
        let problem = service.get(format!("/articles?{query}")).await.assert_problem(400, &[]);
        assert_eq!(problem["detail"], "the query is not valid UTF-8 after percent-decoding");
    }
}

#[apply(on_sqlite)]
async fn every_problem_is_explained(service: Service) {
    let html = service.page("/docs/problems").await.text();
    html.has(atelier::platform::http::KINDS.iter().map(|kind| format!("<section id=\"{}\">", kind.code())));
}
