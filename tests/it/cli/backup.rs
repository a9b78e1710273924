//! Backups, by the commands that docs/operations.md shows.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use atelier::{
    people::{Access, Opens},
    platform::db::Name,
};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection;

use crate::{
    cli::{atelier, done, file, fill, path, refused, serve::Served, serve_demo},
    harness::{
        Call, Html, Kind, TestDatabase, apply, browser, contract, models, now, on_postgres, on_sqlite, pick,
        tools, until,
    },
};

/// The commands of the section, for a database of this kind, that begin with one of these words.
fn commands(kind: Kind, words: &[&str]) -> String {
    let page = include_str!("../../../docs/operations.md");
    let section = page.split("\n## Backup and restore\n").nth(1).unwrap();
    let of_sqlite = section.split("# SQLite").nth(1).unwrap();
    let (of_sqlite, of_postgres) = of_sqlite.split_once("\n# Postgres").unwrap();
    let block = if kind == Kind::Sqlite { of_sqlite } else { of_postgres.split("```").next().unwrap() };
    let chosen: Vec<&str> =
        block.lines().filter(|line| words.iter().any(|word| line.starts_with(word))).collect();
    assert_eq!(chosen.len(), words.len(), "{block}");
    chosen.join("\n")
}

async fn shell(commands: &str, db: &TestDatabase, folder: &Path) {
    let programs = Path::new(env!("CARGO_BIN_EXE_atelier")).parent().unwrap();
    let mut command = Command::new("sh");
    command.args(["-euc", commands]).current_dir(folder).env("DATABASE_URL", &db.url);
    command.env("PATH", format!("{}:{}", path(programs), env::var("PATH").unwrap()));
    done(command).await;
}

/// What is in the database at this URL.
async fn everything(db: &TestDatabase, url: &str, folder: &Path) -> Vec<String> {
    let mut export = atelier(db, &["export", "--force", path(folder), "--database", url]);
    export.env("ATELIER__MODELS__FOLDER", models());
    done(export).await;
    ["articles", "customers", "outfits"]
        .map(|table| fs::read_to_string(folder.join(format!("{table}.jsonl"))).unwrap())
        .into()
}

#[apply(contract)]
#[needs(pg_dump)]
async fn what_was_lost_after_a_backup_comes_back(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fill(&db).await;
    let before = everything(&db, &db.url, &folder.join("before")).await;
    let served = Served::launch(serve_demo(&db, &[])).await;
    let store = async |age: u8| {
        let features = json!({"features": {"age": age}});
        served.call(Method::PUT, "customers/c-000010").json(features).is(200).await;
    };
    store(41).await;
    // What is not yet in SQLite's file itself is in the backup, too.
    let back_up = if db.kind == Kind::Sqlite { "atelier backup" } else { "pg_dump" };
    shell(&commands(db.kind, &[back_up]), &db, folder).await;
    store(77).await;
    served.stop().await;
    let restored = match db.kind {
        Kind::Sqlite => {
            shell(&commands(db.kind, &["atelier restore"]), &db, folder).await;
            db.url.clone()
        }
        Kind::Postgres => {
            let (address, name) = db.url.rsplit_once('/').unwrap();
            let name = format!("{name}_restored");
            let restore = commands(db.kind, &["createdb", "pg_restore"]);
            assert_eq!(restore.matches("restored").count(), 2);
            shell(&restore.replace("restored", &name), &db, folder).await;
            format!("{address}/{name}")
        }
    };
    let after = everything(&db, &restored, &folder.join("after")).await;
    if db.kind == Kind::Postgres {
        let (_, name) = restored.rsplit_once('/').unwrap();
        shell(&format!("dropdb --maintenance-db=\"$DATABASE_URL\" {name}"), &db, folder).await;
    }
    after[1].has(["\"id\":\"c-000010\",\"features\":{\"age\":41}"]);
    let others = |customers: &str| -> Vec<String> {
        customers.lines().filter(|line| !line.contains("c-000010")).map(ToOwned::to_owned).collect()
    };
    assert_eq!((&after[0], others(&after[1]), &after[2]), (&before[0], others(&before[1]), &before[2]));
}

fn pg_dump() -> Result<(), String> {
    tools::there("pg_dump")
}

#[apply(on_sqlite)]
async fn a_backup_is_private_and_complete_and_of_any_version(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("atelier.backup");
    db.open().await.close().await;
    let mut raw = db.raw().await;
    sqlx::raw_sql("update _sqlx_migrations set version = 99").execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();
    let backup = || atelier(&db, &["backup", path(&file)]);
    done(backup()).await;
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    refused(backup()).await.has(["atelier.backup already exists; name another file"]);
    let restore = atelier(&db, &["restore", "--force", path(&file)]);
    refused(restore).await.has(["has version 99, and this Atelier supports up to 1"]);
}

#[apply(on_sqlite)]
async fn a_restore_replaces_no_database_by_mistake(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("atelier.backup");
    let text = file(&folder, "notes", "Coats and boots.\n".repeat(100));
    let (foreign, none) = (file(&folder, "foreign.db", ""), folder.path().join("none"));
    let store = db.open().await;
    // A store connects with its first query.
    assert_eq!(store.articles().count().await, Ok(0));
    done(atelier(&db, &["backup", path(&backup)])).await;
    let restore = |arguments: &[&str]| atelier(&db, &[&["restore"], arguments].concat());
    let existing = "atelier.db already exists; replace it with --force";
    refused(restore(&[path(&backup)])).await.has([existing]);
    let used = "atelier.db is in use; stop the service first";
    refused(restore(&["--force", path(&backup)])).await.has([used]);
    store.close().await;
    for (file, said) in [
        (text, "the file is not a SQLite database"),
        (foreign, "foreign.db is not a database of Atelier's"),
        (none, "none: No such file"),
    ] {
        refused(restore(&["--force", path(&file)])).await.has([said]);
    }
    // A damaged database is what a backup is for. Its log must not be applied to the backup.
    let database = db.folder().unwrap().join("atelier.db");
    fs::write(&database, "damaged".repeat(1000)).unwrap();
    fs::write(database.with_extension("db-wal"), "damaged".repeat(1000)).unwrap();
    done(restore(&["--force", path(&backup)])).await;
    assert_eq!(db.open().await.articles().count().await, Ok(0));
    let names = fs::read_dir(db.folder().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name.to_string_lossy().starts_with("atelier.db")));
}

/// Issue 65: anyone with the file had the feeds' passwords, and could sign customers and completion ids.
#[apply(on_sqlite)]
async fn a_backup_has_no_secrets_and_a_restore_says_which_are_needed(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("atelier.backup");
    let served = Served::launch(serve_demo(&db, &[])).await;
    let query = "https://shop.example/feed.xml?token=hush-query&lang=de";
    let header = json!({"url": "https://shop.example/f.csv", "authorization": "Bearer hush-header"});
    for (name, body) in [
        ("open", json!({"url": "https://shop.example/open.csv"})),
        ("query", json!({"url": query})),
        ("header", header.clone()),
        ("basic", json!({"url": "https://me:hush-basic@shop.example/f.csv"})),
    ] {
        served.call(Method::PUT, &format!("feeds/{name}")).json(body).is(201).await;
    }
    let store = db.open().await;
    let pages = Opens::Pages(vec!["https://shop.example".parse().unwrap()]);
    let (_, key) =
        Access::new(store.clone()).issue_key(&Name::new("Page").unwrap(), &pages, None, now()).await.unwrap();
    store.close().await;
    let mut raw = db.raw().await;
    let tickets = sqlx::query_scalar::<_, String>("select value from settings where name = 'tickets'");
    let tickets: Value = serde_json::from_str(&tickets.fetch_one(&mut raw).await.unwrap()).unwrap();
    raw.close().await.unwrap();
    let secrets = [
        "hush-query",
        "hush-header",
        "bWU6aHVzaC1iYXNpYw==",
        &key.publishable.unwrap().secret.0,
        tickets[0]["key"].as_str().unwrap(),
    ];
    let has = |file: &Path, secret: &str| {
        fs::read(file)
            .is_ok_and(|bytes| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
    };
    done(atelier(&db, &["backup", path(&file)])).await;
    served.stop().await;
    let database = db.folder().unwrap().join("atelier.db");
    for secret in secrets {
        assert!(has(&database, secret) && !has(&file, secret), "{secret}");
    }

    // A copy that another tool made has them all.
    let raw = folder.path().join("raw.db");
    fs::copy(&database, &raw).unwrap();
    let said = done(atelier(&db, &["restore", "--force", path(&raw)])).await;
    said.has([
        "a copy that `atelier backup` did not make",
        "it has the secrets of feeds, publishable keys and completion ids",
        "only if",
        "raw.db-wal was copied",
    ]);
    said.lacks(["a backup has no secrets"]);

    let said = done(atelier(&db, &["restore", "--force", path(&file)])).await;
    said.has([
        "completion ids from before the restore are unknown",
        "store these feeds again with their credentials: basic, header, query\n",
        "the secrets of these publishable keys are gone, so create others: Page\n",
    ]);
    let served = Served::launch(serve_demo(&db, &[])).await;
    let lacks =
        "its credentials were left out of the backup that was restored; store the feed again with them";
    for (name, pointer) in [("query", "/url"), ("header", "/authorization"), ("basic", "/authorization")] {
        let feed: Value = serde_json::from_str(&served.get(&format!("feeds/{name}")).await).unwrap();
        let state = pick(&feed, "has_credentials state/failures state/failure");
        assert_eq!(state, json!([false, 2, lacks]), "{name}");
        // Nothing is sent to the shop's server without them.
        let begun = served.call(Method::POST, &format!("feeds/{name}/fetch")).is(202).await;
        let import = begun.header("location").trim_start_matches('/').to_owned();
        until!(served.get(&import).await.contains(lacks));
        let again = json!({"url": feed["url"]});
        served.call(Method::PUT, &format!("feeds/{name}")).json(again).await.assert_problem(422, &[pointer]);
    }
    let open: Value = serde_json::from_str(&served.get("feeds/open").await).unwrap();
    assert_eq!((&open["state"]["failures"], &open["state"]["failure"]), (&json!(0), &Value::Null));
    let form = [("link", served.secret()), ("password", "")];
    let entered = Call(browser().post(format!("{}sign-in/link", served.url))).form(&form).is(303).await;
    let cookie = entered.header("set-cookie").split(';').next().unwrap();
    let page = served.call(Method::GET, "operations/feeds").header("cookie", cookie);
    page.is(200).await.text().has(["The feed basic failed ", lacks]);
    let stored = served.call(Method::PUT, "feeds/header").json(header).is(200).await;
    assert_eq!(pick(&stored.json(), "has_credentials state/failure"), json!([true, null]));
    served.stop().await;
}

#[apply(on_postgres)]
async fn postgres_has_tools_of_its_own(db: TestDatabase) {
    for verb in ["backup", "restore"] {
        let said = refused(atelier(&db, &[verb, "atelier.backup"])).await;
        said.has(["for Postgres use pg_dump and pg_restore"]);
    }
}
