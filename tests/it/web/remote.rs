//! Inference at a model server over the Open Inference Protocol.

use std::{sync::Arc, time::Instant};

use atelier::config::Limits;
use atelier_core::util::http_client::Origin;
use atelier_engine::{
    inference::{Engine, LoadError, Serving},
    onnx_runtime::OnnxRuntime,
};
use serde_json::{Value, json};

use super::{ONNX_RUNTIME, SETTINGS, Service, engine, models, until};
use crate::demo;
use crate::harness::{
    TestDatabase, apply,
    model_server::{Manner, ModelServer},
    on_sqlite,
};

/// A service with the demo's catalogue, and its model server.
async fn asking(db: &TestDatabase, limits: Limits) -> (Service, ModelServer) {
    let server = ModelServer::start(&runtime().await, models(), "127.0.0.1:0").await;
    (Service::asking(db, limits, server.origin.clone()).await, server)
}

/// For the model server: the service needs none.
async fn runtime() -> OnnxRuntime {
    tokio::task::spawn_blocking(|| ONNX_RUNTIME.clone()).await.unwrap()
}

async fn load(origin: Origin) -> Result<Serving, LoadError> {
    let engine = Engine::new(origin, SETTINGS);
    tokio::task::spawn_blocking(move || engine.load(&models().join("demo"))).await.unwrap()
}

#[apply(on_sqlite)]
async fn a_model_server_answers_like_a_session(db: TestDatabase) {
    let (service, server) = asking(&db, Limits::default()).await;
    let mut questions = Vec::new();
    for method in demo::methods() {
        questions.push(json!({"customer": "c-014871", "method": method.as_str(), "k": 20,
            "outfit": ["a-00315", null, "a-00587", "a-00170", null]}));
        questions.push(json!({"features": {}, "method": method.as_str(), "k": 20, "outfit": [null]}));
    }
    let mut remote: Vec<Vec<Value>> = Vec::new();
    for manner in [Manner::Bytes, Manner::Numbers] {
        server.answer(manner);
        let mut answers = Vec::new();
        for question in &questions {
            answers.push(service.ask_ok("/complete", question).await);
        }
        remote.push(answers);
    }
    assert_eq!(service.json("/readyz").await["device"], "remote");
    let local = || engine().load(&models().join("demo"));
    let local = tokio::task::spawn_blocking(local).await.unwrap().unwrap();
    service.releases.serve_loaded(Arc::new(local)).await.unwrap();
    for (place, question) in questions.iter().enumerate() {
        let local = service.ask_ok("/complete", question).await;
        assert_eq!(local["device"], "cpu");
        for answers in &remote {
            assert_eq!(answers[place]["device"], "remote");
            same(&answers[place], &local);
        }
    }
    // A large batch is one run.
    let items: Vec<Value> = questions.iter().cycle().take(100).cloned().collect();
    service.releases.serve("demo").await.unwrap();
    let batch = service.ask_ok("/complete/batch", &json!({"items": items})).await;
    let batch = batch["items"].as_array().unwrap();
    assert_eq!(batch.len(), 100);
    batch.iter().zip(remote[0].iter().cycle()).for_each(|(one, other)| same(one, other));
}

fn same(one: &Value, other: &Value) {
    let (blanks, others) = (one["blanks"].as_array(), other["blanks"].as_array());
    let (blanks, others) = (blanks.unwrap_or_else(|| panic!("{one}")), others.unwrap());
    assert_eq!(blanks.len(), others.len());
    for (blank, other) in blanks.iter().zip(others) {
        let suggestions = |blank: &Value| blank["suggestions"].as_array().unwrap().clone();
        let (suggestions, others) = (suggestions(blank), suggestions(other));
        assert_eq!(suggestions.len(), 20);
        for (suggestion, other) in suggestions.iter().zip(&others) {
            let share = |suggestion: &Value| suggestion["share"].as_f64().unwrap();
            let (a, b) = (share(suggestion), share(other));
            assert!((a - b).abs() < 5e-5, "{a} {b}");
            // Suggestions of equal shares may change places by rounding.
            assert!(suggestion["article"] == other["article"] || (a - b).abs() < 1e-6 * a);
        }
    }
}

#[apply(on_sqlite)]
async fn a_failing_model_server_is_reported_and_used_again(db: TestDatabase) {
    let limits = Limits { deadline_ms: 1000, ..Limits::default() };
    let (service, server) = asking(&db, limits).await;
    let question = json!({"customer": "c-014871", "outfit": ["a-00315", null, "a-00587", "a-00170"]});
    let ask = async || {
        let body = question.to_string();
        let answer = service.post("/complete", "application/json", body).await;
        let retry = answer.header("retry-after").to_owned();
        (answer.status(), retry, answer.json())
    };
    server.answer(Manner::Failing);
    let (status, retry, problem) = ask().await;
    assert_eq!((status, retry.as_str(), problem["code"].as_str()), (503, "1", Some("unavailable")));
    assert!(!problem.to_string().contains("memory"), "no internals: {problem}");
    until!(service.get("/readyz").await.status() == 503);

    server.answer(Manner::Endless);
    let (status, _, problem) = ask().await;
    assert_eq!((status, problem["code"].as_str()), (503, Some("unavailable")), "before the deadline");

    server.answer(Manner::Silent);
    let began = Instant::now();
    let (status, _, problem) = ask().await;
    assert_eq!((status, problem["code"].as_str()), (504, Some("deadline")));
    assert!(began.elapsed() >= limits.deadline());

    // On a busy machine the first answers may come too late.
    let recovers = async || {
        for _ in 0..20 {
            if ask().await.0 == 200 {
                return true;
            }
        }
        false
    };
    server.answer(Manner::Bytes);
    assert!(recovers().await, "the server is used again");

    let origin = server.origin.clone();
    server.stop().await;
    let (status, _, problem) = ask().await;
    assert_eq!((status, problem["code"].as_str()), (503, Some("unavailable")), "{problem}");
    let address = origin.to_string().replace("http://", "");
    let _back = ModelServer::start(&runtime().await, models(), &address).await;
    assert!(recovers().await, "no restart is needed");
    let metrics = service.get("/metrics").await.text();
    let ours = "atelier_requests_rejected_total{method=\"match\",reason=\"model-unreachable\"} ";
    let counted = metrics.lines().find_map(|line| line.strip_prefix(ours));
    assert!(counted.unwrap().parse::<u32>().unwrap() >= 3, "{metrics}");
}

#[apply(on_sqlite)]
async fn an_unreachable_or_incomplete_model_server_is_refused(_: TestDatabase) {
    let closed = Origin::parse("http://127.0.0.1:9").unwrap();
    let error = load(closed).await.unwrap_err().to_string();
    let expected = "http://127.0.0.1:9/v2/models/demo-none: http://127.0.0.1:9 cannot be reached: ";
    assert!(error.starts_with(expected), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let server = ModelServer::start(&runtime().await, folder.path().to_owned(), "127.0.0.1:0").await;
    let error = load(server.origin.clone()).await.unwrap_err().to_string();
    assert!(error.contains("/v2/models/demo-none: the server answered 404"), "{error}");
}
