//! What the service leaves about customers in its log and files, even if it is killed.

use std::{
    fs,
    io::Write,
    net::TcpStream,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection};

use super::{atelier, fill, path, serve::Served};
use crate::{
    harness::{TestDatabase, apply, contract, on_sqlite},
    store::erasing::count,
    web::models,
};

const WHO: &str = "erika-4711";

async fn start(db: &TestDatabase, folder: &Path) -> Served {
    Served::launch(atelier(db, &["serve", "--address", "127.0.0.1:0"]), folder).await
}

async fn send(served: &Served, method: &str, path: &str, body: Option<Value>) -> (u16, String) {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = Client::new().request(method, format!("{}{path}", served.url));
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[apply(contract)]
async fn the_log_names_no_customer(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["serve", "--address", "127.0.0.1:0"]);
    command.env("RUST_LOG", "debug,ort=warn,hyper=info");
    let served = Served::launch(command, folder.path()).await;
    let customer = format!("customers/{WHO}");
    let features = json!({"features": {"name": WHO}});
    for (method, path, body, expected) in [
        ("PUT", &*customer, Some(features), 201),
        ("PUT", &*customer, Some(json!({"features": {"age": WHO}})), 422),
        ("GET", &*customer, None, 200),
        ("GET", &*format!("{customer}/export"), None, 200),
        ("GET", &*format!("{customer}/outfits?cursor={WHO}"), None, 422),
        ("GET", &*format!("customers?search={WHO}&cursor={WHO}"), None, 200),
        ("POST", &*customer, None, 405),
        (WHO, &*customer, None, 405),
        ("GET", &*format!("nowhere/{WHO}?customer={WHO}"), None, 404),
        ("GET", &*format!("side-by-side?customer={WHO}"), None, 200),
        ("POST", "complete", Some(json!({"customer": WHO, "outfit": [null, null, null, null]})), 503),
        ("POST", "outfits", Some(json!({"customer": WHO, "articles": ["a", "b", "c", "d"]})), 422),
    ] {
        let (status, text) = send(&served, method, path, body).await;
        assert_eq!(status, expected, "{method} {path}: {text}");
    }
    // A damaged row is a 500, whose cause is logged.
    let mut raw = db.raw().await;
    for damaged in [format!("{{\"name\":{{\"{WHO}\":1}}}}"), format!("\"{WHO}\""), format!("{{\"{WHO}")] {
        let update = sqlx::query("update customers set features = $1").bind(damaged);
        update.execute(&mut raw).await.unwrap();
        assert_eq!(send(&served, "GET", &customer, None).await.0, 500);
    }
    drop(raw);
    assert_eq!(send(&served, "DELETE", &customer, None).await.0, 204);
    let log = served.stop().await;
    assert!(
        log.contains("\"route\":\"/customers/{id}\"") && log.contains("a row of table customers is damaged"),
        "{log}"
    );
    let lines: Vec<_> = log.lines().filter(|line| line.contains(WHO)).collect();
    assert!(lines.is_empty(), "{lines:#?}");
}

/// An erased customer of the demo, with an outfit, feedback and entries in the audit log.
#[apply(on_sqlite)]
async fn an_erased_id_is_in_no_file(db: TestDatabase) {
    let files = db.folder().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fill(&db).await;
    let command = atelier(&db, &["serve", "--address", "127.0.0.1:0", "--models", path(&models())]);
    let served = Served::launch(command, folder.path()).await;
    let customer = format!("customers/{WHO}");
    for age in [28, 29] {
        let (status, _) = send(&served, "PUT", &customer, Some(json!({"features": {"age": age}}))).await;
        assert!([200, 201].contains(&status));
    }
    let asked = json!({"customer": WHO, "outfit": [null, null, null, null], "k": 4});
    let (_, answer) = send(&served, "POST", "complete", Some(asked)).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let suggested = answer["blanks"][0]["suggestions"].as_array().unwrap().iter();
    let articles: Vec<&Value> = suggested.map(|suggestion| &suggestion["article"]["id"]).collect();
    let event = json!({"id": format!("{WHO} 1"), "completion_id": answer["completion_id"], "kind": "shown",
                       "slot": 0, "article": articles[0], "customer": WHO});
    let (status, text) = send(&served, "POST", "feedback", Some(event)).await;
    assert_eq!(status, 200, "{text}");
    let outfit = json!({"customer": WHO, "articles": articles});
    assert_eq!(send(&served, "POST", "outfits", Some(outfit)).await.0, 201);
    assert!(count(files, WHO) > 0, "the search finds what is there");

    assert_eq!(send(&served, "DELETE", &customer, None).await.0, 204);
    assert_eq!(count(files, WHO), 0, "while it runs");
    served.stop().await;
    assert_eq!(count(files, WHO), 0, "after it stopped");
}

/// A backup keeps the log from being emptied, and then the service is killed.
#[apply(on_sqlite)]
async fn a_kill_after_an_erasure_leaves_nothing(db: TestDatabase) {
    let files = db.folder().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut served = start(&db, folder.path()).await;
    let customer = format!("customers/{WHO}");
    assert_eq!(send(&served, "PUT", &customer, Some(json!({"features": {}}))).await.0, 201);
    let mut backup = read_old_state(&db).await;
    assert_eq!(send(&served, "DELETE", &customer, None).await.0, 204);
    assert!(count(files, WHO) > 0, "the reader keeps the log");
    assert_eq!(send(&served, "PUT", "customers/other", Some(json!({"features": {}}))).await.0, 201);
    served.kill();
    sqlx::raw_sql("rollback").execute(&mut backup).await.unwrap();
    backup.close().await.unwrap();

    let served = start(&db, folder.path()).await;
    let began = Instant::now();
    while count(files, WHO) > 0 {
        assert!(began.elapsed() < Duration::from_mins(1), "the erased id stays in the files");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    served.stop().await;
}

/// A transaction that goes on reading the database as it is now.
async fn read_old_state(db: &TestDatabase) -> AnyConnection {
    let mut reader = db.raw().await;
    sqlx::raw_sql("begin; select count(*) from customers").execute(&mut reader).await.unwrap();
    reader
}

#[apply(on_sqlite)]
async fn a_kill_during_an_upload_leaves_nothing(db: TestDatabase) {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = atelier(&db, &["serve", "--address", "127.0.0.1:0"]);
    command.env("TMPDIR", temporary.path());
    let mut served = Served::launch(command, folder.path()).await;
    let address = served.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let line = format!("{{\"id\":\"{WHO}\",\"features\":{{}}}}\n").repeat(20_000);
    let mut caller = TcpStream::connect(&address).unwrap();
    let head =
        "POST /customers/bulk HTTP/1.1\r\nContent-Type: application/x-ndjson\r\nContent-Length: 9000000";
    caller.write_all(format!("{head}\r\nHost: {address}\r\n\r\n{line}").as_bytes()).unwrap();
    let began = Instant::now();
    while !holds_upload(served.id(), temporary.path()) {
        assert!(began.elapsed() < Duration::from_mins(1), "the upload is not stored");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    served.kill();
    for folder in [temporary.path(), folder.path(), db.folder().unwrap()] {
        let left: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        let found = Command::new("grep").args(["-rlF", WHO]).arg(folder).output().unwrap().stdout;
        assert!(found.is_empty(), "{} in {left:?}", String::from_utf8_lossy(&found));
    }
}

/// Whether the process has a file of the folder open with a good part of the upload in it.
fn holds_upload(process: u32, folder: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    open.filter_map(|entry| Some(entry.ok()?.path())).any(|descriptor| {
        fs::read_link(&descriptor).is_ok_and(|target| target.starts_with(folder))
            && fs::metadata(&descriptor).is_ok_and(|file| file.len() > 100_000)
    })
}
