//! Inference at a model server over the Open Inference Protocol.

use std::{sync::Arc, time::Instant};

use atelier::config::Limits;
use atelier_core::util::http_client::Origin;
use atelier_engine::{
    inference::{Engine, LoadError, Serving},
    onnx_runtime::OnnxRuntime,
};
use serde_json::{Value, json};

use crate::{
    demo,
    harness::{
        ONNX_RUNTIME, SETTINGS, Service, TestDatabase, apply, engine,
        json::{list, number},
        model_server::{Manner, ModelServer},
        models, on_sqlite, until,
    },
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
    let ask = async |device: &str| {
        let mut answers = Vec::new();
        for question in &questions {
            let answer = service.complete(question).await;
            assert_eq!(answer["device"], device);
            answers.push(answer);
        }
        answers
    };
    server.answer(Manner::Bytes);
    let mut remote = ask("remote").await;
    server.answer(Manner::Numbers);
    remote.extend(ask("remote").await);
    assert_eq!(service.json("/readyz").await["device"], "remote");
    // A large batch is one run.
    let items: Vec<Value> = questions.iter().cycle().take(100).cloned().collect();
    let batch = service.ask_ok("/complete/batch", json!({"items": items})).await;
    assert_eq!(list(&batch["items"]).len(), 100);
    remote.extend_from_slice(list(&batch["items"]));
    let local = || engine().load(&models().join("demo"));
    let local = tokio::task::spawn_blocking(local).await.unwrap().unwrap();
    service.releases.serve_loaded(Arc::new(local)).await.unwrap();
    let local = ask("cpu").await;
    remote.iter().zip(local.iter().cycle()).for_each(|(one, other)| assert_same(one, other));
}

fn assert_same(one: &Value, other: &Value) {
    let (blanks, others) = (list(&one["blanks"]), list(&other["blanks"]));
    assert_eq!(blanks.len(), others.len());
    for (blank, other) in blanks.iter().zip(others) {
        let (suggestions, others) = (list(&blank["suggestions"]), list(&other["suggestions"]));
        assert_eq!((suggestions.len(), others.len()), (20, 20));
        for (one, other) in suggestions.iter().zip(others) {
            let (a, b) = (number(&one["share"]), number(&other["share"]));
            assert!((a - b).abs() < 5e-5, "{a} {b}");
            // Suggestions of equal shares may change places by rounding.
            assert!(one["article"] == other["article"] || (a - b).abs() < 1e-6 * a);
        }
    }
}

#[apply(on_sqlite)]
async fn a_failing_model_server_is_reported_and_used_again(db: TestDatabase) {
    let limits = Limits { deadline_ms: 1000, ..Limits::default() };
    let (service, server) = asking(&db, limits).await;
    let question = json!({"customer": "c-014871", "outfit": ["a-00315", null, "a-00587", "a-00170"]});
    let ask = || service.send("/complete", &question);
    let refused = async |status: u16, code: &str| {
        let answer = ask().await;
        assert_eq!(answer.assert_problem(status, &[])["code"], code, "{}", answer.text());
        answer
    };
    server.answer(Manner::Failing);
    let failed = refused(503, "unavailable").await;
    assert_eq!(failed.header("retry-after"), "1");
    assert!(!failed.text().contains("memory"), "no internals: {}", failed.text());
    until!(service.get("/readyz").await.status() == 503);

    server.answer(Manner::Endless);
    refused(503, "unavailable").await; // Before the deadline.

    server.answer(Manner::Silent);
    let began = Instant::now();
    refused(504, "deadline").await;
    assert!(began.elapsed() >= limits.deadline());

    // On a busy machine the first answers may come too late.
    let recovers = async || {
        for _ in 0..20 {
            if ask().await.is_ok() {
                return true;
            }
        }
        false
    };
    server.answer(Manner::Bytes);
    assert!(recovers().await, "the server is used again");

    let origin = server.origin.clone();
    server.stop().await;
    refused(503, "unavailable").await;
    let address = origin.to_string().replace("http://", "");
    let _back = ModelServer::start(&runtime().await, models(), &address).await;
    assert!(recovers().await, "no restart is needed");
    let metrics = service.get("/metrics").await.text();
    let ours = "atelier_requests_rejected_total{method=\"match\",reason=\"model-unreachable\"} ";
    let counted = metrics.lines().find_map(|line| line.strip_prefix(ours));
    assert!(counted.unwrap().parse::<u32>().unwrap() >= 3, "{metrics}");
}

#[apply(on_sqlite)]
async fn an_incomplete_model_server_is_refused(_: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let server = ModelServer::start(&runtime().await, folder.path().to_owned(), "127.0.0.1:0").await;
    let error = load(server.origin.clone()).await.unwrap_err().to_string();
    assert!(error.contains("/v2/models/demo-none: the server answered 404"), "{error}");
}
