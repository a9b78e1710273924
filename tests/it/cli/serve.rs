use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::{atelier, path, run, said, write_tables};
use crate::harness::{Kind, TestDatabase, contracts, tools};

contracts!(
    prints_a_link_that_answers_and_stops_when_told,
    fills_an_empty_database_once,
    a_taken_port_is_said_so,
    a_release_that_does_not_fit_is_refused,
    a_named_release_must_be_there,
    a_caller_that_never_finishes_does_not_keep_it_alive,
    a_variable_that_is_no_text_is_no_matter,
    programs_need_a_key_on_any_other_address,
    programs_need_a_key_where_the_settings_say_so,
    a_terminal_is_told_in_text needs tools::script,
    models_at_a_server_need_no_library_here,
    what_nobody_reads_of_a_url_reaches_no_log,
);

/// A served `atelier`, with its address and the link that signs the first admin in.
pub(super) struct Served {
    child: Child,
    pub(super) url: String,
    link: String,
}

impl Served {
    /// In a working folder of the test's own, whose `models` it serves.
    async fn start(db: &TestDatabase, folder: &Path) -> Self {
        Self::of(atelier(db, &["serve", "--address", "127.0.0.1:0"]), folder).await
    }

    pub(super) async fn of(mut command: Command, folder: &Path) -> Self {
        command.current_dir(folder);
        tokio::task::spawn_blocking(move || {
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut first = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
            let link = first.trim().strip_prefix("Atelier is at ").expect("it prints a link").to_owned();
            let (link, _) = link.split_once(" (signs admin in once, ").expect("it signs the first admin in");
            let (url, _) = link.split_once("sign-in/").expect("it is a link to sign in by");
            Self { child, url: url.to_owned(), link: link.to_owned() }
        })
        .await
        .unwrap()
    }

    pub(super) async fn get(&self, path: &str) -> String {
        let answer = reqwest::get(format!("{}{path}", self.url)).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.text().await.unwrap()
    }

    /// SIGTERM, and what it said until it was gone.
    pub(super) async fn stop(mut self) -> String {
        tokio::task::spawn_blocking(move || {
            let id = self.child.id().to_string();
            assert!(Command::new("kill").arg(&id).status().unwrap().success());
            assert_eq!(self.child.wait().unwrap().code(), Some(0));
            let mut said = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            said
        })
        .await
        .unwrap()
    }
}

async fn prints_a_link_that_answers_and_stops_when_told(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&db, folder.path()).await;
    assert!(served.get("livez").await.contains("alive"));
    let welcome = reqwest::get(&served.link).await.unwrap().text().await.unwrap();
    assert!(welcome.contains("Welcome, admin"), "{welcome}");
    let log = served.stop().await;
    assert!(log.contains("in models, so no outfit can be completed"), "{log}");
    assert!(log.contains("\"message\":\"stopped\""), "JSON where there is no terminal: {log}");
}

async fn fills_an_empty_database_once(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("models/demo");
    fs::create_dir_all(&demo).unwrap();
    write_tables(&demo, 30);
    let served = Served::start(&db, folder.path()).await;
    assert!(served.get("customers?n=1").await.contains("c-00000"));
    served.stop().await;
    let store = db.open().await;
    assert_eq!(store.outfits().count().await, Ok(31));
    let gone = store.customers().list("", None, 1).await.unwrap().remove(0);
    store.customers().erase(&gone.id).await.unwrap();
    store.close().await;

    Served::start(&db, folder.path()).await.stop().await;
    assert_eq!(db.open().await.customers().count().await, Ok(29), "what was erased stays erased");
}

async fn a_taken_port_is_said_so(db: TestDatabase) {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(atelier(&db, &["serve", "--address", &address])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains(&format!("atelier: cannot listen on {address}")), "{}", said(&output));
}

async fn a_release_that_does_not_fit_is_refused(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    fs::create_dir(models.path().join("demo")).unwrap();
    fs::write(models.path().join("demo/release.json"), "{\"format\":7}").unwrap();
    let output =
        run(atelier(&db, &["serve", "--address", "127.0.0.1:0", "--models", path(models.path())])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("demo/release.json: format 7, expected 1"), "{}", said(&output));
}

async fn a_named_release_must_be_there(db: TestDatabase) {
    let output = run(atelier(&db, &["serve", "--address", "127.0.0.1:0", "--release", "sprng"])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("there is no release \"sprng\" in models: release.json is missing"),
        "{}",
        said(&output)
    );
}

/// Half a request holds a graceful stop up; being told a second time ends it.
async fn a_caller_that_never_finishes_does_not_keep_it_alive(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&db, folder.path()).await;
    let address = served.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut caller = TcpStream::connect(address).unwrap();
    caller.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
    served.get("livez").await;
    let id = served.child.id().to_string();
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    tokio::time::sleep(Duration::from_millis(300)).await;
    let log = served.stop().await;
    assert!(log.contains("stopped again: cancelling running requests"), "{log}");
}

async fn a_variable_that_is_no_text_is_no_matter(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["import", path(folder.path())]);
    command.env("ODD", OsStr::from_bytes(b"\xff"));
    assert!(said(&run(command).await).contains("nothing to import"));
    let mut command = atelier(&db, &["import", path(folder.path())]);
    command.env("ATELIER__SERVER__ADDRESS", OsStr::from_bytes(b"\xff"));
    assert_eq!(
        said(&run(command).await),
        "atelier: the variable ATELIER__SERVER__ADDRESS is not valid UTF-8\n"
    );
}

async fn programs_need_a_key_on_any_other_address(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::of(atelier(&db, &["serve", "--address", "0.0.0.0:0"]), folder.path()).await;
    assert!(served.url.starts_with("http://localhost:"), "a browser can open it: {}", served.url);
    assert_eq!(reqwest::get(format!("{}articles", served.url)).await.unwrap().status(), 401);
    assert!(served.get("livez").await.contains("alive"));
    // What opens a door must not be read in a log.
    let wrong = format!("atl_{}", "5ec3e7".repeat(11));
    for header in ["authorization", "x-api-key"] {
        let request = reqwest::Client::new().get(format!("{}articles", served.url));
        let answer = request.header(header, format!("Bearer {wrong}")).send().await.unwrap();
        assert_eq!(answer.status(), 401);
    }
    reqwest::get(&served.link).await.unwrap();
    let link = served.link.rsplit_once('/').unwrap().1.to_owned();
    let log = served.stop().await;
    assert!(log.contains("programs need an API key"), "{log}");
    assert!(log.contains("\"path\":\"/articles\"") && log.contains("\"path\":\"/sign-in/\""), "{log}");
    assert!(!log.contains("5ec3e7") && !log.contains(&link), "{log}");
}

async fn programs_need_a_key_where_the_settings_say_so(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["serve", "--address", "127.0.0.1:0"]);
    command.env("ATELIER__ACCESS__REQUIRE_KEY", "true");
    let served = Served::of(command, folder.path()).await;
    assert_eq!(reqwest::get(format!("{}articles", served.url)).await.unwrap().status(), 401);
    served.stop().await;
    let served = Served::start(&db, folder.path()).await;
    assert!(served.get("articles").await.contains("\"items\":[]"));
    served.stop().await;
}

/// As somebody at a terminal starts it: `script` is one.
async fn a_terminal_is_told_in_text(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let served = atelier(&db, &["serve", "--address", &address]);
    let words = [served.get_program()].into_iter().chain(served.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--return", "--command", &line.join(" "), "/dev/null"])
        .current_dir(folder.path());
    command.env_remove("DATABASE_URL").env_remove("NO_COLOR").stdin(Stdio::null());
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("WARN") && told.contains("in models, so no outfit can be completed"), "{told}");
    assert!(!told.contains("\"message\""), "text where there is a terminal: {told}");
    assert!(told.contains(&format!("atelier: cannot listen on {address}")), "{told}");
}

async fn models_at_a_server_need_no_library_here(db: TestDatabase) {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let remote = "engine.remote=http://127.0.0.1:9";
    let address = ["--address", "127.0.0.1:0", "--models", path(&models)];
    let mut command = atelier(&db, &[&["--set", remote, "serve"], &address[..]].concat());
    command.env("ORT_DYLIB_PATH", "/nowhere/libonnxruntime.so");
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(
        said.contains("demo-none: http://127.0.0.1:9 cannot be reached") && !said.contains("nowhere"),
        "{said}"
    );
}

async fn what_nobody_reads_of_a_url_reaches_no_log(db: TestDatabase) {
    if db.kind == Kind::Sqlite {
        // Its URLs have no parameters.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut other = db.clone();
    other.url.push_str(if db.url.contains('?') { "&" } else { "?" });
    other.url.push_str("api_key=hunter2&application_name=atelier");
    let served = Served::start(&other, folder.path()).await;
    assert!(served.get("customers").await.contains("items"));
    let log = served.stop().await;
    assert!(log.contains("\"left_out\":1"), "{log}");
    assert!(!log.contains("hunter2") && !log.contains("api_key"), "{log}");
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}
