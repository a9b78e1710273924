use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read, Write},
    mem,
    net::{TcpListener, TcpStream},
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use atelier_engine::release::Release;
use serde_json::{Value, json};

use super::{REQUIRE_KEY, atelier, fill, path, run, stderr, write_tables};
use crate::{
    harness::{TestDatabase, apply, model_server::ModelServer, on_postgres, on_sqlite, tls::Tls, tools},
    web::{
        ONNX_RUNTIME,
        foreign_release::{ENDLESS, export_changed},
        models, tickets, until,
    },
};

/// A running `atelier serve`, with its address and the link that signs the first admin in.
pub(super) struct Served {
    child: Child,
    said: BufReader<ChildStdout>,
    log: BufReader<ChildStderr>,
    logged: String,
    pub(super) url: String,
    pub(super) link: String,
}

/// A test that fails leaves nothing that runs.
impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

impl Served {
    /// In a folder of the test, whose `models` it serves.
    pub(super) async fn start(db: &TestDatabase, folder: &Path) -> Self {
        Self::launch(atelier(db, &["serve", "--address", "127.0.0.1:0"]), folder).await
    }

    pub(super) async fn launch(mut command: Command, folder: &Path) -> Self {
        command.current_dir(folder);
        tokio::task::spawn_blocking(move || {
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let (mut said, mut first) = (BufReader::new(child.stdout.take().unwrap()), String::new());
            said.read_line(&mut first).unwrap();
            let Some(link) = first.trim().strip_prefix("Atelier is at ") else {
                let stderr = stderr(&child.wait_with_output().unwrap());
                panic!("it stopped: {stderr}");
            };
            let (link, _) = link.split_once(" (signs admin in once, ").expect("it signs the first admin in");
            let (url, _) = link.split_once("sign-in/").expect("it is a link to sign in by");
            let log = BufReader::new(child.stderr.take().unwrap());
            let (url, link) = (url.to_owned(), link.to_owned());
            Self { child, said, log, logged: String::new(), url, link }
        })
        .await
        .unwrap()
    }

    /// What it prints after the address, or nothing at its end.
    pub(super) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line
    }

    /// Reads the log up to a line with these words.
    fn until_logged(&mut self, words: &str) {
        while !self.logged.contains(words) {
            assert!(self.log.read_line(&mut self.logged).unwrap() > 0, "it ended: {}", self.logged);
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) async fn get(&self, path: &str) -> String {
        let answer = reqwest::get(format!("{}{path}", self.url)).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.text().await.unwrap()
    }

    /// Sends SIGKILL.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// The status of the answer.
    pub(super) async fn ask(&self, path: &str) -> u16 {
        reqwest::get(format!("{}{path}", self.url)).await.unwrap().status().as_u16()
    }

    /// Sends SIGTERM and returns the log.
    pub(super) async fn stop(mut self) -> String {
        tokio::task::spawn_blocking(move || {
            let id = self.child.id().to_string();
            assert!(Command::new("kill").arg(&id).status().unwrap().success());
            assert_eq!(self.child.wait().unwrap().code(), Some(0));
            self.log.read_to_string(&mut self.logged).unwrap();
            mem::take(&mut self.logged)
        })
        .await
        .unwrap()
    }
}

#[apply(on_sqlite)]
async fn prints_a_working_link_and_stops_on_sigterm(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&db, folder.path()).await;
    assert!(served.get("livez").await.contains("alive"));
    let welcome = reqwest::get(&served.link).await.unwrap().text().await.unwrap();
    assert!(welcome.contains("Welcome, admin"), "{welcome}");
    let log = served.stop().await;
    assert!(log.contains("in models, so no outfit can be completed"), "{log}");
    assert!(log.contains("\"message\":\"stopped\""), "JSON without a terminal: {log}");
}

#[apply(on_sqlite)]
async fn is_not_ready_before_it_stops(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let unready = ["--set", "server.unready_ms=3600000", "--address", "127.0.0.1:0"];
    let served =
        Served::launch(atelier(&db, &[&unready[..], &["--models", path(&models())]].concat()), folder.path())
            .await;
    assert_eq!(served.ask("readyz").await, 200);
    served.signal("TERM");
    until!(served.ask("readyz").await == 503);
    let problem: Value = reqwest::get(format!("{}readyz", served.url)).await.unwrap().json().await.unwrap();
    assert_eq!(problem["code"], "stopping");
    assert_eq!(served.ask("livez").await, 200, "a load balancer still sends requests");
    // A second signal ends the wait.
    let log = served.stop().await;
    assert!(log.contains("told to stop: not ready any more, and stopping in 3600s"), "{log}");
    assert!(!log.contains("\"level\":\"ERROR\""), "{log}");
}

#[apply(on_sqlite)]
async fn a_taken_port_is_reported(db: TestDatabase) {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(atelier(&db, &["serve", "--address", &address, "--models", path(&models())])).await;
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("atelier: server.address (--address): cannot listen on {address}");
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    assert!(db.folder().unwrap().read_dir().unwrap().next().is_none(), "not even a file");
    assert_is_empty(&db).await;
}

/// Two processes over one database: what one stores, the other suggests. How long that took is printed; the deadline is for
/// busy machines.
#[apply(on_postgres)]
async fn a_change_reaches_another_replica(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let models = models();
    let start = || {
        let arguments = ["serve", "--address", "127.0.0.1:0", "--models", path(&models)];
        Served::launch(atelier(&db, &arguments), folder.path())
    };
    fill(&db).await;
    let writer = start().await;
    let replica = start().await;
    let http = reqwest::Client::new();
    let release = Release::open(&models.join("demo")).unwrap();
    let new = &release.articles()[release.vocabulary().len()..];
    let request = json!({
        "outfit": ["a-00315", null, "a-00587", "a-00170"], "method": "match", "k": 250,
        "filters": {"types": {"1": [new[0].kind()]}, "in_stock": false}
    });
    let suggestions = async |served: &Served| -> Vec<Value> {
        let answer = http.post(format!("{}complete", served.url)).json(&request).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let mut answer: Value = answer.json().await.unwrap();
        serde_json::from_value(answer["blanks"][0]["suggestions"].take()).unwrap()
    };
    let is_new = |id: &str| new.iter().any(|article| article.id.as_str() == id);
    let find = |all: &[Value], id: &str| all.iter().position(|one| one["article"]["id"] == id);
    let before = suggestions(&replica).await;
    let twin = before.iter().find(|one| is_new(one["article"]["id"].as_str().unwrap()));
    let mut copy = twin.expect("a new article is suggested")["article"].clone();
    let twin = copy["id"].as_str().unwrap().to_owned();
    copy.as_object_mut().unwrap().remove("id");
    let id = format!("{twin}-copy");
    let address = format!("{}articles/{id}", writer.url);

    let wait = async |present: bool| {
        let began = Instant::now();
        loop {
            let all = suggestions(&replica).await;
            if find(&all, &id).is_some() == present {
                return (all, began.elapsed().as_millis());
            }
            assert!(began.elapsed() < Duration::from_secs(20), "present: {present}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert_eq!(http.put(&address).json(&copy).send().await.unwrap().status(), 201);
    let (with_copy, came) = wait(true).await;
    let place = find(&with_copy, &twin).unwrap();
    assert_eq!(find(&with_copy, &id), Some(place + 1), "beside its twin, in the order of their ids");
    assert_eq!(with_copy[place]["share"], with_copy[place + 1]["share"]);
    assert_eq!(http.delete(&address).send().await.unwrap().status(), 204);
    let (without, went) = wait(false).await;
    assert_eq!(without.len(), before.len());
    println!(
        "another replica suggests an article {came} ms after it was stored, and {went} ms after its deletion no more"
    );
    replica.stop().await;
    writer.stop().await;
}

/// A folder of releases with a copy of the demo release.
fn copy_demo() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("demo");
    fs::create_dir(&release).unwrap();
    for entry in fs::read_dir(models().join("demo")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, release.join(path.file_name().unwrap())).unwrap();
    }
    folder
}

async fn assert_is_empty(db: &TestDatabase) {
    let store = db.open().await;
    assert_eq!((store.articles().count().await, store.customers().count().await), (Ok(0), Ok(0)));
    store.close().await;
}

#[apply(on_sqlite)]
async fn the_flags_of_serve_need_no_verb(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::launch(atelier(&db, &["--address", "127.0.0.1:0"]), folder.path()).await;
    assert!(!served.url.ends_with(":8080/") && served.get("livez").await.contains("alive"));
    served.stop().await;
    // Before the verb they count, too; behind it they count more.
    let twice = ["--address", "nonsense", "--device", "cpu", "serve", "--address", "127.0.0.1:0"];
    let served = Served::launch(atelier(&db, &twice), folder.path()).await;
    assert!(served.get("livez").await.contains("alive"));
    served.stop().await;
}

#[apply(on_sqlite)]
async fn what_cannot_be_served_leaves_the_database_empty(db: TestDatabase) {
    // The demo's data with one damaged model.
    let folder = copy_demo();
    fs::write(folder.path().join("demo/gsu.onnx"), "damaged").unwrap();
    let damaged = path(folder.path());
    let demo = models();
    for (arguments, said) in [
        (&["--models", damaged][..], "demo/gsu.onnx"),
        (&["--models", path(&demo), "--release", "sprng"], "models.release (--release): there is no release"),
        (&["--models", path(&demo), "--address", "127.0.0.1"], "server.address: expected HOST:PORT"),
        (
            &["--models", path(&demo), "--address", "192.0.2.1:80"],
            "server.address (--address): cannot listen on",
        ),
        (&["--models", path(&demo), "--set", "limits.page=2"], "limits.page_default (50) must be at most"),
    ] {
        let mut command = atelier(&db, &[&["serve"], arguments].concat());
        command.env("ATELIER__SERVER__ADDRESS", "127.0.0.1:0");
        let output = run(command).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
        assert_is_empty(&db).await;
    }
}

#[apply(on_sqlite)]
async fn a_bad_setting_is_named_with_its_origin(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("atelier.toml"), "[limits]\nkey_rate = \"many\"\n").unwrap();
    let output = run(atelier(&db, &["--config", path(&folder.path().join("atelier.toml"))])).await;
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "atelier: limits.key_rate (the configuration file {}/atelier.toml, line 2): invalid type: string \"many\", \
         expected u32\n",
        folder.path().display()
    );
    assert_eq!(stderr(&output), expected);
    for (variable, value, said) in [
        (
            "ATELIER__SERVER__ADDRESS",
            "foo",
            "found \"foo\" (server.address is from ATELIER__SERVER__ADDRESS)",
        ),
        (
            "ATELIER__SERVER__ADDRESS",
            "256.0.0.1:80",
            "server.address (ATELIER__SERVER__ADDRESS): cannot listen on",
        ),
        ("ATELIER__ENGINE__DEVICE", "gpu", "engine.device (ATELIER__ENGINE__DEVICE): unknown variant `gpu`"),
        (
            "ATELIER__ACCESS__REQUIRE_KEY",
            "maybe",
            "access.require_key (ATELIER__ACCESS__REQUIRE_KEY): invalid type",
        ),
        ("ATELIER__CACHE__FOLDERS", "/x", "cache.folders (ATELIER__CACHE__FOLDERS): unknown field `folders`"),
        (
            "ATELIER__MODELS__FOLDER",
            "/nowhere",
            "models.folder (ATELIER__MODELS__FOLDER): cannot read the folder",
        ),
        (
            "ATELIER__SHOP__SYNONYMS",
            "/nowhere",
            "shop.synonyms (ATELIER__SHOP__SYNONYMS): cannot read the file of synonyms, /nowhere",
        ),
        (
            "ATELIER__SHOP__SYNONYMS",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            "/Cargo.toml, line 1: expected words with commas",
        ),
        ("DATABASE_URL", "foo", "database.url (DATABASE_URL): \"foo\" is not a database URL"),
    ] {
        let mut command = atelier(&db, &[]);
        if variable == "DATABASE_URL" {
            command = Command::new(env!("CARGO_BIN_EXE_atelier"));
        }
        command.current_dir(folder.path().parent().unwrap()).env(variable, value);
        if variable != "ATELIER__SERVER__ADDRESS" {
            command.env("ATELIER__SERVER__ADDRESS", "127.0.0.1:0");
        }
        let output = run(command).await;
        assert_eq!(output.status.code(), Some(1), "{variable}={value}");
        assert!(stderr(&output).contains(said), "{variable}={value}: {}", stderr(&output));
    }
}

#[apply(on_sqlite)]
async fn a_folder_that_cannot_be_used_is_said_once(db: TestDatabase) {
    // Not even root can make a folder below a file.
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = format!("{}/below", file.path().display());
    let serve = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atelier"));
        command.args(["serve", "--address", "127.0.0.1:0"]).args(arguments).env_remove("DATABASE_URL");
        command
    };
    let database = format!("sqlite:{below}/atelier.db");
    let cache = format!("cache.folder={below}");
    let mut fetching = serve(&["--database", &db.url, "--set", &cache]);
    fetching.env_remove("ORT_DYLIB_PATH");
    for (command, setting) in [
        (serve(&["--database", &database]), "database.url (--database)"),
        (serve(&["--database", &db.url, "--models", &below]), "models.folder (--models)"),
        (fetching, "cache.folder (--set cache.folder)"),
    ] {
        let output = run(command).await;
        assert_eq!(output.status.code(), Some(1), "{setting}");
        let said = stderr(&output);
        assert!(said.contains(&format!("atelier: {setting}: ")), "{said}");
        assert_eq!(said.matches(&below).count(), 1, "{setting}: {said}");
        assert_eq!(said.matches("os error").count(), 1, "{setting}: {said}");
    }
}

#[apply(on_sqlite)]
async fn a_release_that_does_not_fit_is_refused(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    fs::create_dir(models.path().join("demo")).unwrap();
    fs::write(models.path().join("demo/release.json"), "{\"format\":7}").unwrap();
    let output =
        run(atelier(&db, &["serve", "--address", "127.0.0.1:0", "--models", path(models.path())])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("demo/release.json: format 7, expected 1"), "{}", stderr(&output));
}

#[apply(on_sqlite)]
async fn a_release_for_another_catalogue_is_reported_at_the_start(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path(), 3);
    let imported = run(atelier(&db, &["import", path(folder.path())])).await;
    assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
    let mut command = atelier(&db, &["serve", "--address", "127.0.0.1:0", "--device", "cpu"]);
    command.args(["--models", path(&models())]);
    let served = Served::launch(command, folder.path()).await;
    let ready = served.get("readyz").await;
    assert!(ready.contains("\"both\":0,\"only_in_catalogue\":20,\"only_in_release\":1451"), "{ready}");
    let log = served.stop().await;
    assert!(log.contains("the live release has none of the catalogue's articles"), "{log}");
    assert!(log.contains("\"level\":\"ERROR\"") && log.contains("\"only_in_catalogue\":20"), "{log}");
}

#[apply(on_sqlite)]
async fn a_named_release_must_be_there(db: TestDatabase) {
    let output = run(atelier(&db, &["serve", "--address", "127.0.0.1:0", "--release", "sprng"])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("there is no release \"sprng\" in models: release.json is missing"),
        "{}",
        stderr(&output)
    );
}

#[apply(on_sqlite)]
async fn a_refused_release_is_loaded_again_when_its_files_change(db: TestDatabase) {
    let models = tickets::folder();
    let model = models.path().join("next/gsu.onnx");
    let sound = fs::read(&model).unwrap();
    let mut unsound = sound.clone();
    *unsound.last_mut().unwrap() ^= 1;
    fs::write(&model, unsound).unwrap();
    let store = db.open().await;
    store.settings().get_or_set("release", "next").await.unwrap();
    store.close().await;
    let command = atelier(&db, &["serve", "--address", "127.0.0.1:0", "--models", path(models.path())]);
    let served = Served::launch(command, models.path()).await;
    let live = async || served.get("readyz").await.contains("\"release\":\"next\"");
    assert!(!live().await);
    fs::write(&model, sound).unwrap();
    until!(live().await);
    let log = served.stop().await;
    assert_eq!(log.matches("gsu.onnx: SHA-256").count(), 1, "once for files that stay the same: {log}");
}

fn no_gpu() -> Result<(), String> {
    if Path::new("/dev/nvidiactl").exists() { Err("this machine has a GPU".into()) } else { Ok(()) }
}

#[apply(on_sqlite)]
#[needs(no_gpu)]
async fn a_device_that_is_missing_is_named_by_its_setting(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.jsonl"), "{\"customer\":\"c\",\"articles\":[null]}\n").unwrap();
    let (parts, models) = (path(folder.path()), models());
    let out = folder.path().join("out");
    for verb in [
        &["serve", "--address", "127.0.0.1:0"][..],
        &["complete", "--input", parts, "--output", path(&out), "--customers", "/nowhere"],
    ] {
        let flags = ["--models", path(&models), "--device", "cuda"];
        let output = run(atelier(&db, &[verb, &flags].concat())).await;
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(said.contains("atelier: engine.device (--device): "), "{said}");
        assert_eq!(said.matches("ONNX Runtime rejects it on cuda").count(), 1, "{said}");
    }
}

#[apply(on_sqlite)]
async fn flags_of_serve_before_a_verb_that_ignores_them_are_refused(db: TestDatabase) {
    for (flags, said) in [
        (
            ["--address", "127.0.0.1:0"],
            "only `serve`, `demo`, `check-health` and `sign-in-link` read --address",
        ),
        (["--models", "/nowhere"], "only `serve`, `complete`, `looks` and `demo` read --models"),
        (["--device", "cpu"], "only `serve`, `complete`, `looks` and `demo` read --device"),
    ] {
        let output = run(atelier(&db, &[&flags[..], &["import", "/nowhere"]].concat())).await;
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).starts_with(&format!("error: {said}\n")), "{}", stderr(&output));
    }
    let output = run(atelier(&db, &["--address", "127.0.0.1:9", "check-health"])).await;
    assert!(stderr(&output).contains("127.0.0.1:9 cannot be reached"), "{}", stderr(&output));
}

/// Half a request delays a graceful stop; a second signal ends it.
#[apply(on_sqlite)]
async fn an_unfinished_request_does_not_prevent_a_stop(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::start(&db, folder.path()).await;
    let address = served.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut caller = TcpStream::connect(address).unwrap();
    caller.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
    served.get("livez").await;
    served.signal("TERM");
    served.until_logged("stopping: running requests finish");
    let log = served.stop().await;
    assert!(log.contains("stopped again: cancelling running requests"), "{log}");
}

#[apply(on_sqlite)]
async fn only_variables_of_atelier_must_be_utf8(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["import", path(folder.path())]);
    command.env("ODD", OsStr::from_bytes(b"\xff"));
    assert!(stderr(&run(command).await).contains("nothing to import"));
    let mut command = atelier(&db, &["import", path(folder.path())]);
    command.env("ATELIER__SERVER__ADDRESS", OsStr::from_bytes(b"\xff"));
    assert_eq!(
        stderr(&run(command).await),
        "atelier: the variable ATELIER__SERVER__ADDRESS is not valid UTF-8\n"
    );
}

#[apply(on_sqlite)]
async fn api_keys_are_required_on_other_addresses(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["serve", "--address", "0.0.0.0:0"]);
    command.env_remove(REQUIRE_KEY);
    let served = Served::launch(command, folder.path()).await;
    assert!(served.url.starts_with("http://localhost:"), "a browser can open it: {}", served.url);
    assert_eq!(reqwest::get(format!("{}articles", served.url)).await.unwrap().status(), 401);
    assert!(served.get("livez").await.contains("alive"));
    // Secrets must not be in the log.
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
    assert!(
        log.contains("\"route\":\"/articles\"") && log.contains("\"route\":\"/sign-in/{link}\""),
        "{log}"
    );
    assert!(!log.contains("5ec3e7") && !log.contains(&link), "{log}");
}

#[apply(on_sqlite)]
async fn a_setting_that_requires_no_keys_warns(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    for (value, status) in [("true", 401), ("false", 200)] {
        let mut command = atelier(&db, &["serve", "--address", "0.0.0.0:0"]);
        command.env(REQUIRE_KEY, value);
        let served = Served::launch(command, folder.path()).await;
        assert_eq!(served.ask("articles").await, status);
        let log = served.stop().await;
        assert_eq!(log.contains("access.require_key is false: every program"), status == 200, "{log}");
    }
}

/// `script` gives it a terminal.
#[apply(on_sqlite)]
#[needs(tools::script)]
async fn a_terminal_gets_text_logs(db: TestDatabase) {
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
    command.env_remove("DATABASE_URL").env_remove("NO_COLOR").env("RUST_LOG", "=").stdin(Stdio::null());
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("WARN") && told.contains("RUST_LOG== is invalid"), "{told}");
    assert!(!told.contains("\"message\""), "text on a terminal: {told}");
    assert!(told.contains(&format!("cannot listen on {address}")), "{told}");
}

#[apply(on_sqlite)]
async fn a_model_server_needs_no_local_library(db: TestDatabase) {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let remote = "engine.remote=http://127.0.0.1:9";
    let address = ["--address", "127.0.0.1:0", "--models", path(&models)];
    let mut command = atelier(&db, &[&["--set", remote, "serve"], &address[..]].concat());
    command.env("ORT_DYLIB_PATH", "/nowhere/libonnxruntime.so");
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(1));
    let stderr = stderr(&output);
    assert!(
        stderr.contains("atelier: engine.remote (--set engine.remote): ")
            && stderr.contains("demo-none: http://127.0.0.1:9 cannot be reached")
            && !stderr.contains("nowhere"),
        "{stderr}"
    );
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_model_server_behind_tls_gets_the_credentials(db: TestDatabase) {
    let runtime = tokio::task::spawn_blocking(|| ONNX_RUNTIME.clone()).await.unwrap();
    let models = models();
    let server = ModelServer::start(&runtime, models.clone(), "127.0.0.1:0").await;
    let tls = Tls::start(server.origin.to_string().replace("http://", "")).await;
    let remote = format!("engine.remote=https://me:hunter2@localhost:{}", tls.port);
    let serve = || {
        let address = ["--address", "127.0.0.1:0", "--models", path(&models)];
        atelier(&db, &[&["--set", &remote, "serve"], &address[..]].concat())
    };
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve();
    command.env("SSL_CERT_FILE", tls.certificate());
    let service = Served::launch(command, folder.path()).await;
    assert!(service.get("readyz").await.contains("\"device\":\"remote\""));
    assert_eq!(server.authorization().as_deref(), Some("Basic bWU6aHVudGVyMg=="));
    let log = service.stop().await;
    assert!(!log.contains("hunter2") && !log.contains("bWU6"), "{log}");

    // Without SSL_CERT_FILE the certificate is not trusted.
    let output = run(serve()).await;
    assert_eq!(output.status.code(), Some(1));
    let stderr = stderr(&output);
    let expected = format!("TLS with https://localhost:{} failed: ", tls.port);
    assert!(stderr.contains(&expected) && stderr.contains("SSL_CERT_FILE"), "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

#[apply(on_postgres)]
async fn unused_url_parameters_are_not_logged(db: TestDatabase) {
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

/// The first is stored at once, the others of the minute together.
#[apply(on_sqlite)]
async fn a_stop_stores_the_failed_sign_ins(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&db, folder.path()).await;
    let client = reqwest::Client::new();
    for name in ["ada", "bea", "cleo"] {
        let request = client.post(format!("{}sign-in", served.url));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.body(format!("name={name}&password=a+wrong+password")).send().await.unwrap();
        assert_eq!(answer.status(), 401);
    }
    served.stop().await;
    let entries = db.open().await.audit().list(None, 100).await.unwrap();
    let failed = entries.iter().filter(|entry| entry.action == "sign-in.failed");
    let attempts: u64 = failed.map(|entry| entry.details["attempts"].as_u64().unwrap()).sum();
    assert_eq!(attempts, 3, "{entries:?}");
}

/// ONNX Runtime crashed at exit on a GPU, because its environment was not released.
#[apply(on_sqlite)]
async fn a_stop_releases_onnx_runtime(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["--address", "127.0.0.1:0", "--models", path(&models())]);
    command.env("RUST_LOG", "atelier=debug");
    let served = Served::launch(command, folder.path()).await;
    assert_eq!(served.ask("readyz").await, 200);
    let log = served.stop().await;
    assert!(log.contains("\"message\":\"ONNX Runtime is released\""), "{log}");
}

/// Its trial would go on for longer than an operator waits.
#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_stop_ends_a_trial_that_never_ends(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    fs::create_dir(&models).unwrap();
    export_changed(ENDLESS, &models.join("changed")).await;
    let mut command = atelier(&db, &["--address", "127.0.0.1:0"]);
    command.args(["--set", "limits.deadline_ms=1000", "--set", "server.drain_ms=1000"]);
    let served = Served::launch(command, folder.path()).await;
    let address = format!("{}releases/changed/activate", served.url);
    tokio::spawn(reqwest::Client::new().post(address).json(&json!({})).send());
    // It starts with the process's first run of a model, which is the trial's.
    until!(has_thread(served.id(), "model-deadlines"));
    let began = Instant::now();
    let log = served.stop().await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(log.contains("cancelling requests that are still running"), "the trial ended: {log}");
}

fn has_thread(process: u32, name: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.any(|found| found.trim_end() == name)
}

/// As when the disk of the spool is full.
#[apply(on_sqlite)]
async fn an_import_that_cannot_be_spooled_may_be_sent_again(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atelier(&db, &["--address", "127.0.0.1:0"]);
    command.env("TMPDIR", folder.path().join("missing")).env(REQUIRE_KEY, "false");
    let served = Served::launch(command, folder.path()).await;
    let import = reqwest::Client::new().post(format!("{}articles/bulk", served.url)).body("{}");
    let answer = import.header("content-type", "application/x-ndjson").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    served.stop().await;
}
