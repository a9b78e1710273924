//! `atelier` without a database, and `atelier demo`.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::{REQUIRE_KEY, atelier, path, run, serve::Served, stderr, write_tables};
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
    for (verb, status) in [("serve", 201), ("demo", 200)] {
        let command = without_database(home.path(), &[verb, "--address", "127.0.0.1:0"]);
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
        &["key", "create", "--label", "shop", "--scope", "complete"],
    ] {
        let output = run(without_database(home.path(), arguments)).await;
        assert_eq!(output.status.code(), Some(2));
        let command = format!("atelier --database sqlite:shop.db {}", arguments.join(" "));
        assert_eq!(stderr(&output), format!("atelier: no database is named; run `{command}`\n"));
    }
}

/// As `docker run … atelier demo` does, where `DATABASE_URL` names a file of the volume.
#[apply(contract)]
async fn demo_serves_the_demo_world_and_prints_a_key_once(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = atelier(&db, &["demo", "--address", "127.0.0.1:0", "--models", path(&models())]);
        command.env_remove(REQUIRE_KEY);
        Served::launch(command, folder.path())
    };
    let mut served = start().await;
    let line = served.next_line();
    let key = line.trim_end().strip_prefix("API key for programs, shown only now: ").expect(&line);
    let http = reqwest::Client::new();
    let ask = async |served: &Served, path: &str| {
        http.get(format!("{}{path}", served.url)).bearer_auth(key).send().await.unwrap()
    };
    let outfit = "{\"customer\": \"c-014871\", \"outfit\": [\"a-00315\", \"a-01317\", null], \"k\": 1}";
    for (key, status) in [(key, 200), ("", 401)] {
        let request = http.post(format!("{}complete", served.url)).bearer_auth(key);
        let answer = request.header("content-type", "application/json").body(outfit).send().await.unwrap();
        assert_eq!(answer.status(), status, "{}", answer.text().await.unwrap());
    }
    assert_eq!(ask(&served, "readyz").await.json::<Value>().await.unwrap()["demo"], false);
    assert_eq!(ask(&served, "articles/a-00315").await.status(), 200);
    assert_eq!(ask(&served, "feeds").await.status(), 403, "an admin signs in, or makes another key");
    let welcome = reqwest::get(&served.link).await.unwrap().text().await.unwrap();
    assert!(welcome.contains("Welcome, admin"), "{welcome}");
    served.stop().await;
    let mut served = start().await;
    assert_eq!(ask(&served, "articles/a-00315").await.status(), 200, "the key stays");
    served.signal("TERM");
    assert_eq!(served.next_line(), "", "nothing follows the address");
    let log = served.stop().await;
    assert!(log.contains("the database has articles: they are served, and no API key is made"), "{log}");
}

#[apply(on_sqlite)]
async fn demo_without_a_demo_world_says_so(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["demo", "--address", "127.0.0.1:0"]);
    command.current_dir(folder.path());
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("was not filled: it has customers, or models/demo has no demo world"), "{said}");
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
    let served = Served::launch(atelier(&db, &["demo", "--address", "127.0.0.1:0"]), folder.path()).await;
    let log = served.stop().await;
    for part in ["left out: ", "articles.jsonl, line 21: ", "a price is a number", "(article \\\"coat-1\\\")"]
    {
        assert!(log.contains(part), "{part} is not in {log}");
    }
    let store = db.open().await;
    assert_eq!((store.articles().count().await, store.outfits().count().await), (Ok(20), Ok(31)));
}
