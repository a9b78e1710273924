//! `atelier` without a database, and `atelier demo`.

use std::{fs, path::Path, process::Command};

use super::{atelier, fill, path, run, serve::Served, stderr, write_tables};
use crate::{
    harness::{TestDatabase, apply, contract, on_sqlite},
    web::models,
};

/// The built `atelier` in a home of the test's, without a database.
fn without_database(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atelier"));
    command.args(arguments).current_dir(home).env("XDG_DATA_HOME", home);
    command.env_remove("DATABASE_URL").env("ATELIER__MODELS__FOLDER", models());
    command
}

#[apply(on_sqlite)]
async fn the_demo_has_a_database_of_its_own(_: TestDatabase) {
    let home = tempfile::tempdir().unwrap();
    for status in [201, 200] {
        let command = without_database(home.path(), &["serve", "--address", "127.0.0.1:0"]);
        let served = Served::launch(command, home.path()).await;
        assert!(home.path().join("atelier/atelier-demo.db").exists());
        assert!(served.get("readyz").await.contains("\"demo\":true"));
        let http = reqwest::Client::new();
        let article =
            http.put(format!("{}articles/new", served.url)).header("content-type", "application/json");
        let answer = article.body("{\"type\": \"coat\"}").send().await.unwrap();
        assert_eq!(answer.status(), status, "it keeps what it was told");
        let line = "{\"id\": \"c-ID\", \"features\": {}}\n";
        let stream: String = (0..2001).map(|number| line.replace("ID", &format!("new-{number}"))).collect();
        let bulk =
            http.post(format!("{}customers/bulk", served.url)).header("content-type", "application/x-ndjson");
        assert_eq!(bulk.body(stream).send().await.unwrap().status(), 403);
        let welcome = reqwest::get(&served.link).await.unwrap().text().await.unwrap();
        assert!(
            welcome.contains("Welcome, admin") && welcome.contains("nothing here is private"),
            "{welcome}"
        );
        let output = run(without_database(home.path(), &["sign-in-link"])).await;
        assert!(String::from_utf8(output.stdout).unwrap().contains(&served.url));
        let log = served.stop().await;
        let first = log.lines().next().unwrap();
        assert!(
            first.contains("Demo: nothing here is private. Start a shop with `atelier --database"),
            "{log}"
        );
    }
}

#[apply(on_sqlite)]
async fn the_demo_is_for_this_machine_only(_: TestDatabase) {
    let home = tempfile::tempdir().unwrap();
    let output = run(without_database(home.path(), &["--address", "0.0.0.0:0"])).await;
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("server.address (--address): the demo listens on loopback addresses only"),
        "{said}"
    );
    assert!(said.contains("`atelier --database sqlite:shop.db --address 0.0.0.0:0`"), "{said}");
    for variable in ["DATABASE_URL", "ATELIER__DATABASE__URL"] {
        let mut command = without_database(home.path(), &["--address", "127.0.0.1:0"]);
        command.env(variable, "");
        let output = run(command).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&format!("database.url is from {variable}")), "{}", stderr(&output));
    }
    assert!(!home.path().join("atelier").exists());
}

#[apply(on_sqlite)]
async fn other_verbs_need_a_database(_: TestDatabase) {
    let home = tempfile::tempdir().unwrap();
    for arguments in [
        &["import", "--articles", "articles.csv"][..],
        &["export", "out"],
        &["demo"],
        &["key", "create", "--label", "shop", "--scope", "complete"],
    ] {
        let output = run(without_database(home.path(), arguments)).await;
        assert_eq!(output.status.code(), Some(2));
        let command = format!("atelier --database sqlite:shop.db {}", arguments.join(" "));
        assert_eq!(stderr(&output), format!("atelier: no database is named; run `{command}`\n"));
    }
}

#[apply(contract)]
async fn demo_fills_an_empty_database_once(db: TestDatabase) {
    fill(&db).await;
    let store = db.open().await;
    let articles = store.articles().count().await.unwrap();
    assert!(articles > 1000 && store.customers().count().await.unwrap() > 0);
    store.close().await;
    let output = run(atelier(&db, &["--models", path(&models()), "demo"])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("was not filled: it has articles or customers"), "{}", stderr(&output));
    assert_eq!(db.open().await.articles().count().await, Ok(articles));
}

/// As a version that did not check prices wrote them.
#[apply(contract)]
async fn bad_rows_of_a_release_are_left_out(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("demo");
    fs::create_dir(&release).unwrap();
    write_tables(&release, 30);
    let articles = release.join("articles.jsonl");
    let lines = fs::read_to_string(&articles).unwrap();
    let bad = "{\"id\":\"coat-1\",\"type\":\"coat\",\"price\":\"ask us\"}\n";
    fs::write(&articles, lines + bad).unwrap();
    let output = run(atelier(&db, &["--models", path(folder.path()), "demo"])).await;
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    for part in ["left out: ", "articles.jsonl, line 21: ", "a price is a number", "(article \"coat-1\")"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let store = db.open().await;
    assert_eq!((store.articles().count().await, store.outfits().count().await), (Ok(20), Ok(31)));
}
