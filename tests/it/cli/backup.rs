//! Backups, by the commands that docs/operations.md shows.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use sqlx::Connection;

use super::{atelier, fill, path, run, serve::Served, stderr};
use crate::{
    harness::{Kind, TestDatabase, apply, contract, on_postgres, on_sqlite, tools},
    web::models,
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
    let output = run(command).await;
    assert!(output.status.success(), "{commands}: {}", stderr(&output));
}

/// What is in the database at this URL.
async fn everything(db: &TestDatabase, url: &str, folder: &Path) -> Vec<String> {
    let mut export = atelier(db, &["export", "--force", path(folder), "--database", url]);
    export.env("ATELIER__MODELS__FOLDER", models());
    let output = run(export).await;
    assert!(output.status.success(), "{}", stderr(&output));
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
    let mut serve = atelier(&db, &["serve", "--address", "127.0.0.1:0"]);
    serve.env("ATELIER__MODELS__FOLDER", models());
    let served = Served::launch(serve, folder).await;
    let customer = format!("{}customers/c-000010", served.url);
    let store = |age: u8| {
        let request = reqwest::Client::new().put(&customer).header("content-type", "application/json");
        request.body(format!("{{\"features\": {{\"age\": {age}}}}}")).send()
    };
    assert_eq!(store(41).await.unwrap().status(), 200);
    // What is not yet in SQLite's file itself is in the backup, too.
    shell(
        commands(db.kind, if db.kind == Kind::Sqlite { &["atelier backup"] } else { &["pg_dump"] }).as_str(),
        &db,
        folder,
    )
    .await;
    assert_eq!(store(77).await.unwrap().status(), 200);
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
    assert!(
        after[1].contains("\"id\":\"c-000010\",\"features\":{\"age\":41}"),
        "the change before the backup"
    );
    let others = |customers: &str| -> Vec<String> {
        customers.lines().filter(|line| !line.contains("c-000010")).map(ToOwned::to_owned).collect()
    };
    assert_eq!((&after[0], others(&after[1]), &after[2]), (&before[0], others(&before[1]), &before[2]));
}

fn pg_dump() -> Result<(), String> {
    tools::there("pg_dump")
}

fn refused(output: &Output, reason: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    assert!(stderr(output).contains(reason), "{}", stderr(output));
}

#[apply(on_sqlite)]
async fn a_backup_is_private_and_complete_and_of_any_version(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("atelier.backup");
    refused(&run(atelier(&db, &["backup", path(&file)])).await, "there is no database at sqlite:");
    db.open().await.close().await;
    let mut raw = db.raw().await;
    sqlx::raw_sql("update _sqlx_migrations set version = 99").execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();
    let output = run(atelier(&db, &["backup", path(&file)])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    refused(
        &run(atelier(&db, &["backup", path(&file)])).await,
        "atelier.backup already exists; name another file",
    );
    let restore = atelier(&db, &["restore", "--force", path(&file)]);
    refused(&run(restore).await, "has version 99, and this Atelier supports up to 1");
}

#[apply(on_sqlite)]
async fn a_restore_replaces_no_database_by_mistake(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let [backup, text, foreign] =
        ["atelier.backup", "notes", "foreign.db"].map(|name| folder.path().join(name));
    let store = db.open().await;
    // A store connects with its first query.
    assert_eq!(store.articles().count().await, Ok(0));
    let output = run(atelier(&db, &["backup", path(&backup)])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    fs::write(&text, "Coats and boots.\n".repeat(100)).unwrap();
    fs::write(&foreign, "").unwrap();
    let restore = async |arguments: &[&str]| run(atelier(&db, &[&["restore"], arguments].concat())).await;
    refused(&restore(&[path(&backup)]).await, "atelier.db already exists; replace it with --force");
    refused(&restore(&["--force", path(&backup)]).await, "atelier.db is in use; stop the service first");
    store.close().await;
    refused(&restore(&["--force", path(&text)]).await, "the file is not a SQLite database");
    refused(&restore(&["--force", path(&foreign)]).await, "foreign.db is not a database of Atelier's");
    refused(&restore(&["--force", path(&folder.path().join("none"))]).await, "none: No such file");
    // A damaged database is what a backup is for. Its log must not be applied to the backup.
    let database = db.folder().unwrap().join("atelier.db");
    fs::write(&database, "damaged".repeat(1000)).unwrap();
    fs::write(database.with_extension("db-wal"), "damaged".repeat(1000)).unwrap();
    let output = restore(&["--force", path(&backup)]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(db.open().await.articles().count().await, Ok(0));
    let names = fs::read_dir(db.folder().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name.to_string_lossy().starts_with("atelier.db")));
}

#[apply(on_postgres)]
async fn postgres_has_tools_of_its_own(db: TestDatabase) {
    for verb in ["backup", "restore"] {
        let output = run(atelier(&db, &[verb, "atelier.backup"])).await;
        refused(&output, "for Postgres use pg_dump and pg_restore");
    }
}
