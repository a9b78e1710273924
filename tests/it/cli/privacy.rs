//! What the service leaves about customers in its log and files, even if it is killed.

use std::{fs, io::Write, net::TcpStream, path::Path, process::Command};

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection;

use crate::{
    cli::{serve, serve::Served},
    customers::sql::erasing::count,
    harness::{Html, TestDatabase, apply, contract, on_sqlite, until},
};

const WHO: &str = "erika-4711";

async fn store(served: &Served, customer: &str, features: Value) {
    let body = json!({"features": features});
    served.call(Method::PUT, &format!("customers/{customer}")).json(body).is(201).await;
}

#[apply(contract)]
async fn the_log_names_no_customer(db: TestDatabase) {
    let mut command = serve(&db, &[]);
    command.env("RUST_LOG", "debug,ort=warn,hyper=info");
    let served = Served::launch(command).await;
    let customer = format!("customers/{WHO}");
    store(&served, WHO, json!({"name": WHO})).await;
    for (method, path, body, expected) in [
        ("PUT", &*customer, Some(json!({"features": {"age": WHO}})), 422),
        ("GET", &*customer, None, 200),
        ("GET", &*format!("{customer}/export"), None, 200),
        ("GET", &*format!("{customer}/outfits?cursor={WHO}"), None, 422),
        ("GET", &*format!("customers?search={WHO}&cursor=after:{WHO}"), None, 200),
        ("POST", &*customer, None, 405),
        (WHO, &*customer, None, 405),
        ("GET", &*format!("nowhere/{WHO}?customer={WHO}"), None, 404),
        ("GET", &*format!("side-by-side?customer={WHO}"), None, 200),
        ("POST", "complete", Some(json!({"customer": WHO, "outfit": [null, null, null, null]})), 503),
        ("POST", "outfits", Some(json!({"customer": WHO, "articles": ["a", "b", "c", "d"]})), 422),
    ] {
        let mut call = served.call(Method::from_bytes(method.as_bytes()).unwrap(), path);
        if let Some(body) = body {
            call = call.json(body);
        }
        call.is(expected).await;
    }
    // A damaged row is a 500, whose cause is logged.
    let mut raw = db.raw().await;
    for damaged in [format!("{{\"name\":{{\"{WHO}\":1}}}}"), format!("\"{WHO}\""), format!("{{\"{WHO}")] {
        let update = sqlx::query("update customers set features = $1").bind(damaged);
        update.execute(&mut raw).await.unwrap();
        assert_eq!(served.ask(&customer).await, 500);
    }
    drop(raw);
    served.call(Method::DELETE, &customer).is(204).await;
    let log = served.stop().await;
    log.has(["\"route\":\"/customers/{id}\"", "a row of table customers is damaged"]);
    let lines: Vec<_> = log.lines().filter(|line| line.contains(WHO)).collect();
    assert!(lines.is_empty(), "{lines:#?}");
}

/// A backup keeps the log from being emptied, and then the service is killed.
#[apply(on_sqlite)]
async fn a_kill_after_an_erasure_leaves_nothing(db: TestDatabase) {
    let files = db.folder().unwrap();
    let mut served = Served::launch(serve(&db, &[])).await;
    store(&served, WHO, json!({})).await;
    // A transaction that goes on reading the database as it is now.
    let mut backup = db.raw().await;
    sqlx::raw_sql("begin; select count(*) from customers").execute(&mut backup).await.unwrap();
    served.call(Method::DELETE, &format!("customers/{WHO}")).is(204).await;
    assert!(count(files, WHO) > 0, "the reader keeps the log");
    store(&served, "other", json!({})).await;
    served.kill();
    sqlx::raw_sql("rollback").execute(&mut backup).await.unwrap();
    backup.close().await.unwrap();

    let served = Served::launch(serve(&db, &[])).await;
    until!(count(files, WHO) == 0);
    served.stop().await;
}

#[apply(on_sqlite)]
async fn a_kill_during_an_upload_leaves_nothing(db: TestDatabase) {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = serve(&db, &[]);
    command.current_dir(folder.path()).env("TMPDIR", temporary.path());
    let mut served = Served::launch(command).await;
    let line = format!("{{\"id\":\"{WHO}\",\"features\":{{}}}}\n").repeat(20_000);
    let mut caller = TcpStream::connect(served.address()).unwrap();
    let head =
        "POST /customers/bulk HTTP/1.1\r\nContent-Type: application/x-ndjson\r\nContent-Length: 9000000";
    caller.write_all(format!("{head}\r\nHost: {}\r\n\r\n{line}", served.address()).as_bytes()).unwrap();
    until!(holds_upload(served.id(), temporary.path()));
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
