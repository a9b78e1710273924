//! `atelier` without a database, and `atelier demo`.

use std::{fs, path::Path, process::Command};

use reqwest::Method;
use serde_json::json;

use crate::{
    cli::{REQUIRE_KEY, atelier, ended, path, printed, refused, serve::Served, write_tables},
    harness::{Html, TestDatabase, apply, contract, models, on_sqlite},
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
    for (verb, status) in [("serve", 201), ("demo", 200)] {
        let mut served =
            Served::launch(without_database(home.path(), &[verb, "--address", "127.0.0.1:0"])).await;
        assert_eq!(served.next_line(), format!("A product page of a shop: {}demo/shop\n", served.url));
        assert!(home.path().join("atelier/atelier-demo.db").exists());
        served.get("readyz").await.has(["\"demo\":true"]);
        // It keeps what it was told.
        served.call(Method::PUT, "articles/new").json(json!({"type": "coat"})).is(status).await;
        let customer = |number| json!({"id": format!("c-new-{number}"), "features": {}}).to_string();
        let stream = (0..2001).map(customer).collect::<Vec<_>>().join("\n");
        served.call(Method::POST, "customers/bulk").body("application/x-ndjson", stream).is(403).await;
        served.welcome().await.has(["Welcome, admin", "nothing here is private"]);
        printed(without_database(home.path(), &["sign-in-link"])).await.has([&served.url]);
        let log = served.stop().await;
        let said = "Demo: nothing here is private. Start a shop with `atelier --database";
        log.lines().next().unwrap().has([said]);
    }
}

#[apply(on_sqlite)]
async fn the_demo_is_for_this_machine_only(_: TestDatabase) {
    let home = tempfile::tempdir().unwrap();
    let said = refused(without_database(home.path(), &["--address", "0.0.0.0:0"])).await;
    let loopback = "server.address (--address): the demo listens on loopback addresses only";
    said.has([loopback, "`atelier --database sqlite:shop.db --address 0.0.0.0:0`"]);
    for variable in ["DATABASE_URL", "ATELIER__DATABASE__URL"] {
        let mut command = without_database(home.path(), &["--address", "127.0.0.1:0"]);
        command.env(variable, "");
        refused(command).await.has([&format!("database.url is from {variable}")]);
    }
    assert!(!home.path().join("atelier").exists());
}

#[apply(on_sqlite)]
async fn other_verbs_need_a_database(_: TestDatabase) {
    let home = tempfile::tempdir().unwrap();
    for arguments in [
        &["import", "--articles", "articles.csv"][..],
        &["export", "out"],
        &["key", "create", "--label", "shop", "--scope", "complete"],
    ] {
        let said = ended(without_database(home.path(), arguments), 2).await;
        let command = format!("atelier --database sqlite:shop.db {}", arguments.join(" "));
        assert_eq!(said, format!("atelier: no database is named; run `{command}`\n"));
    }
}

/// As `docker run … atelier demo` does, where `DATABASE_URL` names a file of the volume.
#[apply(contract)]
async fn demo_serves_the_demo_world_and_prints_a_key_once(db: TestDatabase) {
    let start = || {
        let mut command = atelier(&db, &["demo", "--address", "127.0.0.1:0", "--models", path(&models())]);
        command.env_remove(REQUIRE_KEY);
        Served::launch(command)
    };
    let mut served = start().await;
    let line = served.next_line();
    let key = line.trim_end().strip_prefix("API key for programs, shown only now: ").expect(&line);
    let outfit = json!({"customer": "c-014871", "outfit": ["a-00315", "a-01317", null], "k": 1});
    for (key, status) in [(key, 200), ("", 401)] {
        served.call(Method::POST, "complete").key(key).json(&outfit).is(status).await;
    }
    let ask = |served: &Served, path: &str| served.call(Method::GET, path).key(key);
    assert_eq!(ask(&served, "readyz").ok().await["demo"], false);
    ask(&served, "articles/a-00315").ok().await;
    // An admin signs in, or makes another key.
    ask(&served, "feeds").is(403).await;
    served.welcome().await.has(["Welcome, admin"]);
    served.stop().await;
    let mut served = start().await;
    // The key stays.
    ask(&served, "articles/a-00315").ok().await;
    served.signal("TERM");
    assert_eq!(served.next_line(), "", "nothing follows the address");
    let said = "the database has articles: they are served, and no API key is made";
    served.stop().await.has([said]);
}

#[apply(on_sqlite)]
async fn demo_without_a_demo_world_says_so(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["demo", "--address", "127.0.0.1:0"]);
    command.current_dir(folder.path());
    let said = "was not filled: it has customers, or models/demo has no demo world";
    refused(command).await.has([said]);
}

#[apply(on_sqlite)]
async fn bad_rows_of_a_release_are_left_out(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("models/demo");
    fs::create_dir_all(&release).unwrap();
    write_tables(&release, 30);
    let articles = release.join("articles.jsonl");
    let lines = fs::read_to_string(&articles).unwrap();
    let bad = "{\"id\":\"coat-1\",\"type\":\"coat\",\"price\":\"ask us\"}\n";
    fs::write(&articles, lines + bad).unwrap();
    let mut command = atelier(&db, &["demo", "--address", "127.0.0.1:0"]);
    command.current_dir(folder.path());
    let log = Served::launch(command).await.stop().await;
    let article = "(article \\\"coat-1\\\")";
    log.has(["left out: ", "articles.jsonl, line 21: ", "a price is a number", article]);
    let store = db.open().await;
    assert_eq!((store.articles().count().await, store.outfits().count().await), (Ok(20), Ok(31)));
}
