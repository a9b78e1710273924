use serde_json::{Value, json};

use super::{Demo, Service, header};
use crate::harness::{Kind, TestDatabase, apply, contract};

#[apply(contract)]
async fn a_service_is_alive_and_ready(Demo(service): Demo, db: TestDatabase) {
    let alive: Value = service.get("/livez").await.json().await.unwrap();
    assert_eq!(alive, json!({"status": "alive"}));
    let ready: Value = service.get("/readyz").await.json().await.unwrap();
    assert_eq!(ready["status"], "ready");
    assert_eq!(ready["database"], if db.kind == Kind::Sqlite { "SQLite" } else { "Postgres" });
    assert!(ready["onnx_runtime"].as_str().unwrap().starts_with("ORT Build Info"), "{ready}");
    assert_eq!(ready["release"], "demo");
    assert_eq!(ready["device"], "cpu");

    let without = Service::start(&db).await;
    let answer = without.get("/readyz").await;
    assert_eq!(answer.status(), 503, "no release is live");
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "no-release");
}

#[apply(contract)]
async fn a_service_without_a_database_is_not_ready(service: Service) {
    service.store.close().await;
    let answer = service.get("/readyz").await;
    assert_eq!(answer.status(), 503);
    assert_eq!(header(&answer, "retry-after"), "1");
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "unavailable");
    assert_eq!(problem["detail"], "the log has the cause under this request's id", "no internals");
    assert_eq!(service.get("/livez").await.status(), 200, "still alive");
}

#[apply(contract)]
async fn requests_in_progress_are_finished(service: Service) {
    assert_eq!(service.get("/livez").await.status(), 200);
    let (url, http) = (service.url.clone(), service.http.clone());
    service.stop().await;
    assert!(http.get(format!("{url}/livez")).send().await.is_err(), "the port is closed");
}
