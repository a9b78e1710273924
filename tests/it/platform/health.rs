use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use atelier_core::domain::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;

use crate::harness::{Demo, Kind, Service, TestDatabase, apply, contract, json::text, on_sqlite, until};

#[apply(contract)]
async fn a_service_is_alive_and_ready(Demo(service): Demo, db: TestDatabase) {
    assert_eq!(service.json("/livez").await, json!({"status": "alive"}));
    let ready = service.json("/readyz").await;
    let said = ["status", "database", "release", "device"].map(|name| &ready[name]);
    let database = if db.kind == Kind::Sqlite { "SQLite" } else { "Postgres" };
    assert_eq!(json!(said), json!(["ready", database, "demo", "cpu"]));
    assert!(text(&ready["onnx_runtime"]).starts_with("ORT Build Info"), "{ready}");

    let without = Service::start(&db).await;
    assert_eq!(without.get("/readyz").await.assert_problem(503, &[])["code"], "no-release");
}

#[apply(on_sqlite)]
async fn a_service_without_a_database_is_not_ready(Demo(service): Demo) {
    service.store.close().await;
    until!(service.get("/readyz").await.status() == 503);
    let answer = service.get("/readyz").await;
    assert_eq!(answer.header("retry-after"), "1");
    let problem = answer.assert_problem(503, &[]);
    let detail =
        "the database does not answer: requests that need it are refused without waiting (breaker open)";
    assert_eq!((&problem["code"], &problem["detail"]), (&json!("unavailable"), &json!(detail)));
    let metrics = service.get("/metrics").await.text();
    assert!(metrics.contains("\natelier_database_breaker_open 1\n"), "{metrics}");
    service.get("/livez").is(200).await;
}

/// As a backup does that is restored over the file, or a clean-up, while the service runs.
#[apply(on_sqlite)]
async fn a_file_that_is_gone_or_damaged_is_not_ready(db: TestDatabase) {
    let path = db.url.trim_start_matches("sqlite:").split('?').next().unwrap().to_owned();
    let damages: [fn(&str); 5] = [
        |path| fs::remove_file(path).unwrap(),
        |path| {
            fs::copy(path, format!("{path}.new")).unwrap();
            fs::rename(format!("{path}.new"), path).unwrap();
        },
        |path| OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap(),
        |path| OpenOptions::new().write(true).open(path).unwrap().write_all(&[7; 4096]).unwrap(),
        |path| {
            OpenOptions::new().write(true).open(path).unwrap().write_all_at(&vec![7; 200_000], 4096).unwrap();
        },
    ];
    Service::demo(&db).await.stop().await;
    fs::copy(&path, format!("{path}.good")).unwrap();
    for (number, damage) in damages.into_iter().enumerate() {
        let service = Service::start(&db).await;
        service.serve_demo().await;
        service.store.ping().await.unwrap();
        assert!(service.get("/readyz").await.is_ok(), "{number}: before");
        damage(&path);
        until!(!service.get("/readyz").await.is_ok());
        service.store.close().await;
        service.stop().await;
        for end in ["-wal", "-shm"] {
            let _ = fs::remove_file(format!("{path}{end}"));
        }
        fs::copy(format!("{path}.good"), &path).unwrap();
    }
}

/// All connections of the database are in use, and the threads that compute are busy.
#[apply(contract)]
async fn a_busy_service_is_alive_and_ready(Demo(service): Demo) {
    let mut imports = vec![service.store.import(Timestamp::from_millis(1)).await.unwrap()];
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let store = service.store.clone();
        waiting.spawn(async move { store.import(Timestamp::from_millis(1)).await.map(drop) });
    }
    let busy = Arc::new(AtomicBool::new(true));
    for _ in 0..2 {
        let busy = Arc::clone(&busy);
        waiting.spawn(async move {
            while busy.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            Ok(())
        });
    }
    // Outside of the runtime, all of whose threads are busy.
    let url = service.url.clone();
    let asked = std::thread::spawn(move || {
        let ask = async |path: &str| reqwest::get(format!("{url}{path}")).await.unwrap().status();
        let answers = async {
            // Longer than the second between two checks of the database and the model.
            for _ in 0..6 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                assert_eq!([ask("/livez").await, ask("/readyz").await], [200, 200]);
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(Duration::from_mins(1), answers).await })
    });
    let asked = asked.join();
    busy.store(false, Ordering::Relaxed);
    asked.unwrap().expect("answers although the threads are busy");
    waiting.shutdown().await;
    imports.clear();
}
