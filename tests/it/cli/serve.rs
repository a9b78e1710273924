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

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    cli::{
        REQUIRE_KEY, atelier, copy_demo, ended, file, fill, import_tables, path, refused, run, serve,
        serve_demo, stderr,
    },
    completion::tickets,
    harness::{
        Call, Html, ONNX_RUNTIME, TestDatabase, apply, entries, ids, model_server::ModelServer, models,
        on_postgres, on_sqlite, tls::Tls, tools, until,
    },
    releases::{
        foreign_release::{ENDLESS, GREEDY, export_changed, run_example},
        operations::releases::two_releases,
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
    _folder: TempDir,
}

/// A test that fails leaves nothing that runs.
impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

impl Served {
    /// In an empty folder, unless the command has one. A service without `--models` serves the folder's `models`.
    pub(super) async fn launch(mut command: Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if command.get_current_dir().is_none() {
            command.current_dir(folder.path());
        }
        tokio::task::spawn_blocking(move || {
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let (mut said, mut first) = (BufReader::new(child.stdout.take().unwrap()), String::new());
            said.read_line(&mut first).unwrap();
            let Some(link) = first.trim().strip_prefix("Atelier is at ") else {
                panic!("it stopped: {}", stderr(&child.wait_with_output().unwrap()));
            };
            let (link, _) = link.split_once(" (signs admin in once, ").expect("it signs the first admin in");
            let (url, _) = link.split_once("sign-in/").expect("it is a link to sign in by");
            let log = BufReader::new(child.stderr.take().unwrap());
            let (url, link) = (url.to_owned(), link.to_owned());
            Self { child, said, log, logged: String::new(), url, link, _folder: folder }
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

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1.trim_end_matches('/')
    }

    /// The secret of the link.
    pub(super) fn secret(&self) -> &str {
        self.link.rsplit_once('/').unwrap().1
    }

    pub(super) fn call(&self, method: Method, path: &str) -> Call {
        Call(reqwest::Client::new().request(method, format!("{}{path}", self.url)))
    }

    pub(super) async fn get(&self, path: &str) -> String {
        self.call(Method::GET, path).is(200).await.text()
    }

    /// The status of the answer.
    pub(super) async fn ask(&self, path: &str) -> u16 {
        self.call(Method::GET, path).await.status
    }

    /// What the link shows.
    pub(super) async fn welcome(&self) -> String {
        reqwest::get(&self.link).await.unwrap().text().await.unwrap()
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

    /// Sends SIGTERM and returns the log.
    pub(super) async fn stop(mut self) -> String {
        tokio::task::spawn_blocking(move || {
            self.signal("TERM");
            assert_eq!(self.child.wait().unwrap().code(), Some(0));
            self.log.read_to_string(&mut self.logged).unwrap();
            mem::take(&mut self.logged)
        })
        .await
        .unwrap()
    }
}

/// Its flags need no verb. Before the verb they count, too; behind it they count more.
#[apply(on_sqlite)]
async fn prints_a_working_link_and_stops_on_sigterm(db: TestDatabase) {
    let twice = ["--address", "nonsense", "--device", "cpu", "serve", "--address", "127.0.0.1:0"];
    for arguments in [&twice[4..], &twice[5..], &twice] {
        let served = Served::launch(atelier(&db, arguments)).await;
        assert!(!served.url.ends_with(":8080/"), "{arguments:?}: {}", served.url);
        served.get("livez").await.has(["alive"]);
        served.welcome().await.has(["Welcome, admin"]);
        // JSON without a terminal.
        served.stop().await.has(["in models, so no outfit can be completed", "\"message\":\"stopped\""]);
    }
}

/// A thread writes them after the answers.
#[apply(on_sqlite)]
async fn a_stop_loses_no_line_of_the_log(db: TestDatabase) {
    let served = Served::launch(serve(&db, &[])).await;
    let ids: Vec<String> = (0..100).map(|number| format!("r-{number}\"\\")).collect();
    for id in &ids {
        served.call(Method::GET, "livez").header("x-request-id", id).is(200).await;
    }
    let log = served.stop().await;
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let logged: Vec<Value> = lines.map(|line| line["span"]["id"].clone()).filter(Value::is_string).collect();
    assert_eq!(logged, ids);
}

#[apply(on_sqlite)]
async fn is_not_ready_before_it_stops(db: TestDatabase) {
    let mut command = serve_demo(&db, &["--set", "server.unready_ms=3600000"]);
    command.env("RUST_LOG", "atelier=debug");
    let served = Served::launch(command).await;
    assert_eq!(served.ask("readyz").await, 200);
    served.signal("TERM");
    until!(served.ask("readyz").await == 503);
    assert_eq!(served.call(Method::GET, "readyz").is(503).await.json()["code"], "stopping");
    assert_eq!(served.ask("livez").await, 200, "a load balancer still sends requests");
    // A second signal ends the wait.
    let log = served.stop().await;
    log.has(["told to stop: not ready any more, and stopping in 3600s"]);
    // It crashed at exit on a GPU, because its environment was not released.
    log.has(["\"message\":\"ONNX Runtime is released\""]).lacks(["\"level\":\"ERROR\""]);
}

/// Two processes over one database: what one stores, the other suggests.
#[apply(on_postgres)]
async fn a_change_reaches_another_replica(db: TestDatabase) {
    fill(&db).await;
    let (writer, replica) =
        (Served::launch(serve_demo(&db, &[])).await, Served::launch(serve_demo(&db, &[])).await);
    // Of a type that nothing else has.
    let asked =
        json!({"outfit": ["a-00315", null], "method": "match", "filters": {"types": {"1": ["zeppelin"]}}});
    let suggested = async || {
        let answer = replica.call(Method::POST, "complete").json(&asked).await.json();
        answer["blanks"][0]["suggestions"][0]["article"]["id"] == "new"
    };
    assert!(!suggested().await);
    writer.call(Method::PUT, "articles/new").json(json!({"type": "zeppelin"})).is(201).await;
    until!(suggested().await);
    writer.call(Method::DELETE, "articles/new").is(204).await;
    until!(!suggested().await);
    replica.stop().await;
    writer.stop().await;
}

#[apply(on_sqlite)]
async fn what_cannot_be_served_leaves_the_database_empty(db: TestDatabase) {
    // The demo's data with one damaged model.
    let (folder, release) = copy_demo();
    fs::write(release.join("gsu.onnx"), "damaged").unwrap();
    let (damaged, demo) = (path(folder.path()), models());
    let demo = path(&demo);
    for (arguments, said) in [
        (&["--models", damaged][..], "demo/gsu.onnx"),
        (&["--models", demo, "--release", "sprng"], "models.release (--release): there is no release"),
        (&["--models", demo, "--address", "127.0.0.1"], "server.address: expected HOST:PORT"),
        (&["--models", demo, "--address", "192.0.2.1:80"], "server.address (--address): cannot listen on"),
        (&["--models", demo, "--set", "limits.page=2"], "limits.page_default (50) must be at most"),
    ] {
        let mut command = atelier(&db, &[&["serve"], arguments].concat());
        command.env("ATELIER__SERVER__ADDRESS", "127.0.0.1:0");
        refused(command).await.has([said]);
        let store = db.open().await;
        let counts = (store.articles().count().await, store.customers().count().await);
        assert_eq!(counts, (Ok(0), Ok(0)), "{arguments:?}");
        store.close().await;
    }
}

#[apply(on_sqlite)]
async fn a_bad_setting_is_named_with_its_origin(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let config = file(&folder, "atelier.toml", "[limits]\nkey_rate = \"many\"\n");
    let expected = format!(
        "atelier: limits.key_rate (the configuration file {}, line 2): invalid type: string \"many\", expected u32\n",
        config.display()
    );
    assert_eq!(refused(atelier(&db, &["--config", path(&config)])).await, expected);
    let no_words = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (variable, value, said) in [
        ("ATELIER__SERVER__ADDRESS", "foo", "\"foo\" (server.address is from ATELIER__SERVER__ADDRESS)"),
        ("ATELIER__ENGINE__DEVICE", "gpu", "engine.device (ATELIER__ENGINE__DEVICE): unknown variant `gpu`"),
        ("ATELIER__MODELS__FOLDER", "/no", "models.folder (ATELIER__MODELS__FOLDER): cannot read the folder"),
        (
            "ATELIER__SHOP__SYNONYMS",
            "/no",
            "shop.synonyms (ATELIER__SHOP__SYNONYMS): cannot read the file of synonyms, /no",
        ),
        ("ATELIER__SHOP__SYNONYMS", no_words, "/Cargo.toml, line 1: expected words with commas"),
        ("DATABASE_URL", "foo", "database.url (DATABASE_URL): \"foo\" is not a database URL"),
    ] {
        let mut command = atelier(&db, &[]);
        if variable == "DATABASE_URL" {
            command = Command::new(env!("CARGO_BIN_EXE_atelier"));
        }
        command.current_dir(std::env::temp_dir()).env("ATELIER__SERVER__ADDRESS", "127.0.0.1:0");
        command.env(variable, value);
        refused(command).await.has([said]);
    }
}

#[apply(on_sqlite)]
async fn a_folder_that_cannot_be_used_is_said_once(db: TestDatabase) {
    // Not even root can make a folder below a file.
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = format!("{}/below", file.path().display());
    let mut other = db.clone();
    other.url = format!("sqlite:{below}/atelier.db");
    for (mut command, setting) in [
        (serve(&other, &[]), "database.url (--database)"),
        (serve(&db, &["--models", &below]), "models.folder (--models)"),
        (serve(&db, &["--set", &format!("cache.folder={below}")]), "cache.folder (--set cache.folder)"),
    ] {
        command.env_remove("ORT_DYLIB_PATH");
        let said = refused(command).await;
        said.has([&format!("atelier: {setting}: ")]);
        for once in [&below, "os error"] {
            assert_eq!(said.matches(once).count(), 1, "{setting}: {said}");
        }
    }
}

#[apply(on_sqlite)]
async fn a_release_for_another_catalogue_is_reported_at_the_start(db: TestDatabase) {
    import_tables(&db, 3).await;
    let served = Served::launch(serve_demo(&db, &[])).await;
    served.get("readyz").await.has(["\"both\":0,\"only_in_catalogue\":20,\"only_in_release\":1451"]);
    let said = "the live release has none of the catalogue's articles";
    served.stop().await.has([said, "\"level\":\"ERROR\"", "\"only_in_catalogue\":20"]);
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
    let served = Served::launch(serve(&db, &["--models", path(models.path())])).await;
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
    file(&folder, "one.jsonl", "{\"customer\":\"c\",\"articles\":[null]}\n");
    let (out, models) = (folder.path().join("out"), models());
    for verb in [
        &["serve", "--address", "127.0.0.1:0"][..],
        &["complete", "--input", path(folder.path()), "--output", path(&out), "--customers", "/nowhere"],
    ] {
        let flags = ["--models", path(&models), "--device", "cuda"];
        let said = refused(atelier(&db, &[verb, &flags].concat())).await;
        said.has(["atelier: engine.device (--device): "]);
        assert_eq!(said.matches("ONNX Runtime rejects it on cuda").count(), 1, "{said}");
    }
}

#[apply(on_sqlite)]
async fn flags_of_serve_before_a_verb_that_ignores_them_are_refused(db: TestDatabase) {
    for (flag, readers) in [
        ("--address", "`serve`, `demo`, `check-health` and `sign-in-link`"),
        ("--models", "`serve`, `complete`, `looks` and `demo`"),
        ("--device", "`serve`, `complete`, `looks` and `demo`"),
    ] {
        let value = if flag == "--device" { "cpu" } else { "127.0.0.1:0" };
        let said = ended(atelier(&db, &[flag, value, "import", "/nowhere"]), 2).await;
        assert!(said.starts_with(&format!("error: only {readers} read {flag}\n")), "{said}");
    }
    let said = stderr(&run(atelier(&db, &["--address", "127.0.0.1:9", "check-health"])).await);
    said.has(["127.0.0.1:9 cannot be reached"]);
}

/// Half a request delays a graceful stop; a second signal ends it.
#[apply(on_sqlite)]
async fn an_unfinished_request_does_not_prevent_a_stop(db: TestDatabase) {
    let mut served = Served::launch(serve(&db, &[])).await;
    let mut caller = TcpStream::connect(served.address()).unwrap();
    caller.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
    served.get("livez").await;
    served.signal("TERM");
    served.until_logged("stopping: running requests finish");
    served.stop().await.has(["stopped again: cancelling running requests"]);
}

#[apply(on_sqlite)]
async fn only_variables_of_atelier_must_be_utf8(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    for (variable, said) in [
        ("ODD", "nothing to import"),
        ("ATELIER__SERVER__ADDRESS", "atelier: the variable ATELIER__SERVER__ADDRESS is not valid UTF-8\n"),
    ] {
        let mut command = atelier(&db, &["import", path(folder.path())]);
        command.env(variable, OsStr::from_bytes(b"\xff"));
        refused(command).await.has([said]);
    }
}

#[apply(on_sqlite)]
async fn a_setting_that_requires_no_keys_warns(db: TestDatabase) {
    for (setting, status, said) in [
        (None, 401, "programs need an API key"),
        (Some("true"), 401, "programs need an API key"),
        (Some("false"), 200, "access.require_key is false: every program"),
    ] {
        let mut command = atelier(&db, &["serve", "--address", "0.0.0.0:0"]);
        command.env_remove(REQUIRE_KEY).envs(setting.map(|value| (REQUIRE_KEY, value)));
        let served = Served::launch(command).await;
        assert!(served.url.starts_with("http://localhost:"), "a browser can open it: {}", served.url);
        assert_eq!((served.ask("articles").await, served.ask("livez").await), (status, 200), "{setting:?}");
        served.stop().await.has([said]);
    }
}

/// `script` gives it a terminal.
#[apply(on_sqlite)]
#[needs(tools::script)]
async fn a_terminal_gets_text_logs(db: TestDatabase) {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let served = atelier(&db, &["serve", "--address", &address]);
    let words = [served.get_program()].into_iter().chain(served.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line.join(" "), "/dev/null"]);
    command.current_dir(db.folder().unwrap()).stdin(Stdio::null());
    command.env_remove("DATABASE_URL").env_remove("NO_COLOR").env("RUST_LOG", "=");
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    let taken = format!("atelier: server.address (--address): cannot listen on {address}");
    told.has(["WARN", "RUST_LOG== is invalid", &taken]);
    assert!(!told.contains("\"message\""), "text on a terminal: {told}");
}

#[apply(on_sqlite)]
async fn a_model_server_needs_no_local_library(db: TestDatabase) {
    let mut command = serve(&db, &["--set", "engine.remote=http://127.0.0.1:9"]);
    command.arg("--models").arg(models()).env("ORT_DYLIB_PATH", "/nowhere/libonnxruntime.so");
    let said = refused(command).await;
    let unreachable = "demo-none: http://127.0.0.1:9 cannot be reached";
    said.has(["atelier: engine.remote (--set engine.remote): ", unreachable]);
    assert!(!said.contains("nowhere"), "{said}");
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_model_server_behind_tls_gets_the_credentials(db: TestDatabase) {
    let runtime = tokio::task::spawn_blocking(|| ONNX_RUNTIME.clone()).await.unwrap();
    let server = ModelServer::start(&runtime, models(), "127.0.0.1:0").await;
    let tls = Tls::start(server.origin.to_string().replace("http://", "")).await;
    let remote = format!("engine.remote=https://me:hunter2@localhost:{}", tls.port);
    let mut command = serve(&db, &["--set", &remote]);
    command.arg("--models").arg(models()).env("SSL_CERT_FILE", tls.authority());
    let service = Served::launch(command).await;
    service.get("readyz").await.has(["\"device\":\"remote\""]);
    assert_eq!(server.authorization().as_deref(), Some("Basic bWU6aHVudGVyMg=="));
    let log = service.stop().await;
    assert!(!log.contains("hunter2") && !log.contains("bWU6"), "{log}");

    // Without SSL_CERT_FILE the certificate is not trusted.
    let mut untrusting = serve(&db, &["--set", &remote]);
    untrusting.arg("--models").arg(models());
    let said = refused(untrusting).await;
    said.has([&format!("TLS with https://localhost:{} failed: ", tls.port), "SSL_CERT_FILE"]);
    assert!(!said.contains("hunter2"), "{said}");
}

#[apply(on_postgres)]
async fn unused_url_parameters_are_not_logged(db: TestDatabase) {
    let mut other = db.clone();
    other.url.push_str(if db.url.contains('?') { "&" } else { "?" });
    other.url.push_str("api_key=hunter2&application_name=atelier");
    let served = Served::launch(serve(&other, &[])).await;
    served.get("customers").await.has(["items"]);
    let log = served.stop().await;
    log.has(["\"left_out\":1"]);
    assert!(!log.contains("hunter2") && !log.contains("api_key"), "{log}");
    for line in log.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

/// The first is stored at once, the others of the minute together.
#[apply(on_sqlite)]
async fn a_stop_stores_the_failed_sign_ins(db: TestDatabase) {
    let served = Served::launch(serve(&db, &[])).await;
    for name in ["ada", "bea", "cleo"] {
        let form = [("name", name), ("password", "a wrong password")];
        served.call(Method::POST, "sign-in").form(&form).is(401).await;
    }
    served.stop().await;
    let entries = entries(&db.open().await, 100).await;
    let failed = entries.iter().filter(|entry| entry.action == "sign-in.failed");
    let attempts: u64 = failed.map(|entry| entry.details["attempts"].as_u64().unwrap()).sum();
    assert_eq!(attempts, 3, "{entries:?}");
}

/// Its trial would go on for longer than an operator waits.
#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_stop_ends_a_trial_that_never_ends(db: TestDatabase) {
    let (folder, _) = copy_demo();
    export_changed(ENDLESS, &folder.path().join("changed")).await;
    let limits = ["--set", "limits.deadline_ms=1000", "--set", "server.drain_ms=1000"];
    // Without a live release this process tries it, else another one.
    for release in ["", "demo"] {
        let mut command = serve(&db, &limits);
        command.args(["--models", path(folder.path()), "--device", "cpu"]);
        if !release.is_empty() {
            command.args(["--release", release]);
        }
        let served = Served::launch(command).await;
        let activate = served.call(Method::POST, "releases/changed/activate?force=true").json(json!({}));
        tokio::spawn(activate.into_future());
        // It starts with the process's first run of a model, which is the trial's.
        let trial = || if release.is_empty() { Some(served.id()) } else { find_child(served.id()) };
        until!(trial().is_some_and(|process| has_thread(process, "model-deadlines")));
        let (process, began) = (trial().unwrap(), Instant::now());
        let log = served.stop().await;
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        log.has(["cancelling requests that are still running"]);
        until!(!has_thread(process, "model-deadlines"));
    }
}

/// The process that another one started.
fn find_child(process: u32) -> Option<u32> {
    let mut threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    threads.find_map(|thread| {
        let children = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    })
}

fn has_thread(process: u32, name: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let mut names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.any(|found| found.trim_end() == name)
}

/// Issue 65: it passed, as there was memory for it while nothing else ran, or took the whole service with it.
#[apply(on_sqlite)]
#[needs(tools::onnx_in_memory_group)]
async fn a_release_that_takes_more_memory_than_is_left_is_refused(db: TestDatabase) {
    let (folder, _) = copy_demo();
    export_changed(GREEDY, &folder.path().join("changed")).await;
    run_example("export_release.py", &folder.path().join("example")).await;
    let group = tools::MemoryGroup::new(1 << 30).unwrap();
    let command = serve(&db, &["--models", path(folder.path()), "--release", "demo", "--device", "cpu"]);
    let served = Served::launch(group.hold(&command)).await;
    let activate = async |name: &str| {
        served.call(Method::POST, &format!("releases/{name}/activate?force=true")).json(json!({})).await
    };
    let refused = activate("changed").await.assert_problem(409, &[]);
    let detail = refused["detail"].as_str().unwrap();
    let (_, said) = detail.split_once("its trial run took more than ").expect(detail);
    let (megabytes, _) = said.split_once(" MB, which is what is left for it").expect(detail);
    assert!((100..1073).contains(&megabytes.parse().unwrap()), "{detail}");
    // The live one still answers, and one that fits is served.
    assert_eq!(served.ask("readyz").await, 200);
    for name in ["example", "demo"] {
        let activated = activate(name).await;
        assert_eq!(activated.status, 200, "{}", activated.text());
    }
    // What it took is remembered, and is more than is left now.
    group.leave(16 << 20).unwrap();
    let refused = activate("demo").await.assert_problem(409, &[]);
    refused["detail"].as_str().unwrap().has([
        "it took ",
        " MB in its trial run, and ",
        " MB are left for it",
    ]);
    let log = served.stop().await;
    let passed = log.lines().find(|line| line.contains("a release passed its trial")).expect(&log);
    let passed: Value = serde_json::from_str(passed).unwrap();
    let taken = passed["memory_bytes"].as_u64().expect(&log);
    assert!((1_000_000..1_000_000_000).contains(&taken), "{taken}");
}

/// Issue 65: it had one session, and answered few questions at a time.
#[apply(on_sqlite)]
async fn a_trial_takes_what_serving_takes(db: TestDatabase) {
    let folder = two_releases();
    let mut taken = Vec::new();
    for (workers, batch) in [(1, 1), (3, 1), (1, 1000)] {
        let settings = [format!("engine.workers={workers}"), format!("engine.batch={batch}")];
        let flags = [
            "--models",
            path(folder.path()),
            "--device",
            "cpu",
            "--set",
            &settings[0],
            "--set",
            &settings[1],
        ];
        let served = Served::launch(serve(&db, &flags)).await;
        for name in ["demo", "less"] {
            let activate = served.call(Method::POST, &format!("releases/{name}/activate?force=true"));
            activate.json(json!({})).is(200).await;
        }
        let log = served.stop().await;
        let passed = log.lines().rfind(|line| line.contains("a release passed its trial")).expect(&log);
        taken.push(serde_json::from_str::<Value>(passed).unwrap()["memory_bytes"].as_u64().expect(passed));
    }
    assert!(taken[1] > taken[0] / 4 * 5 && taken[2] > taken[0] / 4 * 5, "{taken:?}");
}

/// As when the disk of the spool is full.
#[apply(on_sqlite)]
async fn an_import_that_cannot_be_spooled_may_be_sent_again(db: TestDatabase) {
    let mut command = serve(&db, &[]);
    command.env("TMPDIR", "/nowhere");
    let served = Served::launch(command).await;
    let import = served.call(Method::POST, "articles/bulk").body("application/x-ndjson", "{}");
    assert_eq!(import.is(503).await.header("retry-after"), "1");
    served.stop().await;
}

#[apply(on_sqlite)]
async fn types_that_people_buy_again_are_suggested_again(db: TestDatabase) {
    fill(&db).await;
    let served =
        Served::launch(serve_demo(&db, &["--set", "shop.bought_again=[\"Coats\", \"Sokcs\"]"])).await;
    let ask = async |kind: &str| {
        let body =
            json!({"customer": "c-014871", "outfit": ["a-00134", null], "filters": {"types": {"1": [kind]}}});
        ids(&served.call(Method::POST, "complete").json(body).ok().await["blanks"][0]["suggestions"])
    };
    let (coats, bags) = (ask("coat").await, ask("bag").await);
    let bought = [&coats[0], &bags[0]]
        .map(|article| json!({"id": article, "kind": "bought", "customer": "c-014871", "article": article}));
    served.call(Method::POST, "events").json(json!(bought)).is(200).await;
    assert_eq!(ask("coat").await, coats);
    assert_eq!(ask("bag").await[..4], bags[1..]);
    let log = served.stop().await;
    log.has([r#"shop.bought_again has \"Sokcs\", and no article has this type yet; check its spelling"#]);
    log.lacks(["Coats"]);
}
