//! Backups, by the commands that docs/operations.md shows.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use reqwest::Method;
use serde_json::json;
use sqlx::Connection;

use crate::{
    cli::{atelier, done, file, fill, path, refused, serve::Served, serve_demo},
    harness::{Html, Kind, TestDatabase, apply, contract, models, on_postgres, on_sqlite, tools},
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

#[apply(on_postgres)]
async fn postgres_has_tools_of_its_own(db: TestDatabase) {
    for verb in ["backup", "restore"] {
        let said = refused(atelier(&db, &[verb, "atelier.backup"])).await;
        said.has(["for Postgres use pg_dump and pg_restore"]);
    }
}
