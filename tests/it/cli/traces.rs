//! Traces: what an OpenTelemetry collector gets, and what happens if it is away.

use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use reqwest::Method;
use serde_json::json;

use crate::{
    cli::{fill, path, serve::Served, serve_demo},
    harness::{TestDatabase, apply, collector, on_sqlite, tls::Tls, tools},
};

#[apply(on_sqlite)]
async fn a_completion_is_sent_in_the_callers_trace(db: TestDatabase) {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const CALLER: &str = "00f067aa0ba902b7";
    let (url, spans) = collector::start().await;
    fill(&db).await;
    let served = serve(&db, &url, &[]).await;
    let complete = || {
        let body = json!({"customer": "c-000010", "outfit": [null, null, null, null], "method": "gsu"});
        served.call(Method::POST, "complete").json(body)
    };
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let answer = complete().header("traceparent", &parent).header("x-request-id", "mine").is(200).await;
    assert_eq!(answer.header("traceparent"), parent);
    complete().header("x-request-id", "no-trace").is(200).await;
    let log = served.stop().await;

    let spans = spans.lock().unwrap().clone();
    let named = |trace: &str, name: &str| -> Vec<collector::Span> {
        spans.iter().filter(|span| span.trace == trace && span.name == name).cloned().collect()
    };
    let [request] = &named(TRACE, "POST /complete")[..] else { panic!("one request: {spans:?}") };
    assert_eq!((request.parent.as_str(), request.kind), (CALLER, SpanKind::Server));
    assert_eq!(request.attributes["http.response.status_code"], 200);
    assert_eq!(request.attributes["http.route"], "/complete");
    assert_eq!(request.attributes["atelier.request_id"], "mine");
    for (name, counts) in [("database: customer", None), ("queue gsu", Some(4)), ("model gsu", Some(4))] {
        let [part] = &named(TRACE, name)[..] else { panic!("one {name}: {spans:?}") };
        assert_eq!(part.parent, request.id, "{name}");
        assert!(
            request.began <= part.began && part.began <= part.ended && part.ended <= request.ended,
            "{name}"
        );
        assert_eq!(part.attributes.get("questions").map(|count| count.as_i64().unwrap()), counts, "{name}");
    }

    // Without the caller's trace it starts a new one, and the log names it.
    let own = spans.iter().find(|span| span.trace != TRACE && span.name == "POST /complete").unwrap();
    assert_eq!((own.parent.as_str(), &own.attributes["atelier.request_id"]), ("", &json!("no-trace")));
    let line = log.lines().find(|line| line.contains("\"id\":\"no-trace\"")).unwrap();
    assert!(line.contains(&format!("\"trace_id\":\"{}\"", own.trace)), "{line}");
    assert!(!log.contains("dropping traces"), "{log}");
}

#[apply(on_sqlite)]
async fn an_unreachable_collector_is_one_warning_and_no_failed_request(db: TestDatabase) {
    // A port without a listener.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let served = serve(&db, &format!("http://{gone}"), &[("OTEL_BSP_SCHEDULE_DELAY", "20")]).await;
    // Each is a batch of its own, which fails.
    for _ in 0..10 {
        assert!(served.get("articles").await.contains("items"));
        tokio::time::sleep(std::time::Duration::from_millis(40)).await;
    }
    let log = served.stop().await;
    assert_eq!(log.matches("dropping traces").count(), 1, "{log}");
    assert!(log.contains(&format!("http://{gone} cannot be reached")), "{log}");
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_collector_behind_tls_takes_traces(db: TestDatabase) {
    let (url, spans) = collector::start().await;
    let tls = Tls::start(url.replace("http://", "")).await;
    let authority = tls.authority();
    let collector = format!("https://me:hunter2@localhost:{}", tls.port);
    let served = serve(&db, &collector, &[("SSL_CERT_FILE", path(&authority))]).await;
    assert!(served.get("articles").await.contains("items"));
    let log = served.stop().await;
    assert!(spans.lock().unwrap().iter().any(|span| span.name == "GET /articles"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}

/// With the demo release and a collector.
async fn serve(db: &TestDatabase, collector: &str, variables: &[(&str, &str)]) -> Served {
    let mut command = serve_demo(db, &["--set", &format!("telemetry.collector={collector}")]);
    command.envs(variables.iter().copied());
    Served::launch(command).await
}
