//! The service over HTTP, each test with its own port and database.

use std::{
    borrow::Borrow,
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU8, Ordering},
    },
    time::SystemTime,
};

use atelier::{
    app::{self, Parts},
    config::{self, Limits},
    people::{Access, ApiKey, Opens, PersonId, RequireKey, Scope, Token},
    platform::{
        db::{AuditEntry, Name, Store},
        http::{AppState, CrossOrigins},
    },
    releases::Releases,
};
use atelier_core::{
    domain::{Outfit, Role, Split, Timestamp},
    util::http_client::Origin,
};
use atelier_engine::{
    inference::{DeviceChoice, Engine, Serving, Settings},
    onnx_runtime::OnnxRuntime,
};
use atelier_files::Table;
use reqwest::{Body, Client, Method};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};
use uuid::Uuid;

pub use crate::demo::models;
use crate::{
    app::{bring_in_demo, parts},
    demo,
    harness::{self, Answer, Call, Fixture, TestDatabase},
};

/// Waits until something that happens in the background has happened, for half a minute at most. A macro, because the
/// future of a closure that borrows is not `Send` for every lifetime.
macro_rules! until {
    ($happened:expr) => {
        let began = std::time::Instant::now();
        while !$happened {
            assert!(began.elapsed().as_secs() < 30, "not within 30 s: {}", stringify!($happened));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
}
pub(crate) use until;

/// It can be loaded once in a process, and is fetched if it is not in the cache.
pub static ONNX_RUNTIME: LazyLock<OnnxRuntime> = LazyLock::new(|| {
    OnnxRuntime::load(&config::Cache::default().folder, |notice| println!("{notice}"))
        .expect("ONNX Runtime loads")
});

/// A site whose pages may call the service.
pub const FRIEND: &str = "https://shop.example";
pub const SETTINGS: Settings = Settings { workers: 2, batch: 64, queue: 1024, device: DeviceChoice::Auto };
/// Models that tests share.
static DEMO: LazyLock<Arc<Serving>> =
    LazyLock::new(|| Arc::new(engine().load(&models().join("demo")).expect("the demo release loads")));

pub fn now() -> Timestamp {
    SystemTime::now().into()
}

pub fn engine() -> Engine {
    Engine::new(ONNX_RUNTIME.clone(), Settings { device: DeviceChoice::Cpu, ..SETTINGS })
}

/// Keys that sign completion ids: each is another one.
pub fn draw_key() -> [u8; 32] {
    static DRAWN: AtomicU8 = AtomicU8::new(1);
    [DRAWN.fetch_add(1, Ordering::Relaxed); 32]
}

/// A running service. It stops when it is dropped or told to.
pub struct Service {
    pub state: AppState,
    pub store: Store,
    pub releases: Arc<Releases>,
    pub url: String,
    pub http: Client,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Service {
    pub async fn start(db: &TestDatabase) -> Self {
        Self::start_with(db, Limits::default()).await
    }

    pub async fn start_with(db: &TestDatabase, limits: Limits) -> Self {
        Self::start_in(db, limits, models()).await
    }

    /// With the demo release, its catalogue, customers and outfits.
    pub async fn demo(db: &TestDatabase) -> Self {
        Self::demo_with(db, Limits::default()).await
    }

    pub async fn demo_with(db: &TestDatabase, limits: Limits) -> Self {
        fill(db).await;
        let service = Self::start_with(db, limits).await;
        service.serve_demo().await;
        service
    }

    pub async fn serve_demo(&self) {
        let serving = tokio::task::spawn_blocking(|| Arc::clone(&DEMO)).await.unwrap();
        self.releases.serve_loaded(serving).await.unwrap();
    }

    /// With a folder of releases; none is live yet.
    pub async fn start_in(db: &TestDatabase, limits: Limits, models: PathBuf) -> Self {
        Self::start_as(db, limits, models, RequireKey::Never, engine).await
    }

    /// The same with the usual limits.
    pub async fn of(db: &TestDatabase, models: impl AsRef<Path>) -> Self {
        Self::start_in(db, Limits::default(), models.as_ref().to_owned()).await
    }

    /// The same with the catalogue, customers and outfits of the demo.
    pub async fn filled(db: &TestDatabase, models: impl AsRef<Path>) -> Self {
        fill(db).await;
        Self::of(db, models).await
    }

    /// A service where every program needs a key.
    pub async fn guarded(db: &TestDatabase) -> Self {
        Self::start_under(db, RequireKey::Always).await
    }

    /// A service with another rule about keys than the tests' usual one, that programs need none.
    pub async fn start_under(db: &TestDatabase, rule: RequireKey) -> Self {
        Self::start_as(db, Limits::default(), models(), rule, engine).await
    }

    /// With the catalogue, customers and outfits of the demo, and a model server.
    pub async fn asking(db: &TestDatabase, limits: Limits, server: Origin) -> Self {
        fill(db).await;
        let service = Self::start_remote(db, limits, models(), server).await;
        service.releases.serve("demo").await.unwrap();
        service
    }

    /// A service whose models are on a server.
    pub async fn start_remote(db: &TestDatabase, limits: Limits, models: PathBuf, server: Origin) -> Self {
        let engine = || Engine::new(server, SETTINGS);
        Self::start_as(db, limits, models, RequireKey::Never, engine).await
    }

    async fn start_as(
        db: &TestDatabase,
        limits: Limits,
        models: PathBuf,
        rule: RequireKey,
        engine: impl FnOnce() -> Engine + Send + 'static,
    ) -> Self {
        let store = db.open().await.with_limits(limits);
        let engine = tokio::task::spawn_blocking(engine).await.unwrap();
        let parts = Parts {
            limits,
            access: Access::new(store.clone()).require_key(rule),
            cross_origins: CrossOrigins::new([FRIEND.to_owned()]),
            // Most tests call from 127.0.0.1.
            trusted_proxies: config::Networks::parse("127.0.0.2").unwrap(),
            process: Uuid::new_v4().to_string(),
            ..parts(&store, engine, models, draw_key).await.unwrap()
        };
        let releases = Arc::clone(&parts.releases);
        let state = AppState::new(parts);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(app::serve(listener, state.clone(), async {
            let _ = stopped.await;
        }));
        Self { state, store, releases, url, http: browser(), stop, served }
    }

    /// A browser with a signed-in person of that role.
    pub async fn signed_in(&self, role: Role) -> Browser {
        let name = Name::new(format!("Some {role}")).unwrap();
        let person = match self.store.people().find_with_password(&name).await.unwrap() {
            Some((person, _)) => person,
            None => self.store.people().create(&name, role, None, now()).await.unwrap(),
        };
        let access = self.state.access();
        let link = access.link(person.id, now()).await.unwrap();
        let session = access.enter(&link, None, now()).await.unwrap();
        self.browser_in(session)
    }

    pub fn browser_in(&self, session: Token) -> Browser {
        Browser { url: self.url.clone(), http: browser(), session }
    }

    /// A person who has not signed in yet, and the link that they were sent.
    pub async fn invite(&self, name: &str, role: Role) -> (PersonId, Token) {
        let person = self.store.people().create(&Name::new(name).unwrap(), role, None, now()).await.unwrap();
        (person.id, self.state.access().link(person.id, now()).await.unwrap())
    }

    /// Somebody by their name.
    pub async fn find_person(&self, name: &str) -> PersonId {
        self.store.people().find_with_password(&Name::new(name).unwrap()).await.unwrap().unwrap().0.id
    }

    /// A key of a program.
    pub async fn issue(&self, scopes: &[Scope]) -> String {
        self.issue_for(Opens::Scopes(scopes.to_vec())).await.0
    }

    /// A key, with its record.
    pub async fn issue_for(&self, opens: Opens) -> (String, ApiKey) {
        let label = Name::new("Shop").unwrap();
        let (key, record) = self.state.access().issue_key(&label, &opens, None, now()).await.unwrap();
        (key.as_str().to_owned(), record)
    }

    /// Into a service that runs; `fill` is quicker.
    pub async fn bring_in_demo(&self) {
        bring_in_demo(&self.store).await.unwrap();
    }

    /// The last entries of the audit log, newest first, about what was done over HTTP. What a test prepares past it
    /// has no peer.
    pub async fn log(&self, n: usize) -> Vec<AuditEntry> {
        let entries = harness::entries(&self.store, 10_000).await;
        entries.into_iter().filter(|entry| entry.peer.is_some()).take(n).collect()
    }

    /// The actions of these entries, and what each was done to.
    pub async fn actions(&self, n: usize) -> Vec<String> {
        let entries = self.log(n).await.into_iter();
        entries.map(|entry| format!("{} {}", entry.action, entry.subject)).collect()
    }

    /// A request to it, by nobody.
    pub fn call(&self, method: Method, path: impl AsRef<str>) -> Call {
        Call(self.http.request(method, format!("{}{}", self.url, path.as_ref())))
    }

    pub fn get(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::GET, path)
    }

    /// As a browser asks for a page.
    pub fn page(&self, path: impl AsRef<str>) -> Call {
        self.get(path).header("accept", "text/html,application/xhtml+xml;q=0.9")
    }

    /// GETs JSON.
    pub async fn json(&self, path: impl AsRef<str>) -> Value {
        self.get(path).ok().await
    }

    pub fn put(&self, path: impl AsRef<str>, body: impl Borrow<Value>) -> Call {
        self.call(Method::PUT, path).json(body)
    }

    pub fn patch(&self, path: impl AsRef<str>, body: impl Borrow<Value>) -> Call {
        self.call(Method::PATCH, path).json(body)
    }

    pub fn delete(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::DELETE, path)
    }

    pub fn post(&self, path: impl AsRef<str>, content_type: &str, body: impl Into<Body>) -> Call {
        self.call(Method::POST, path).body(content_type, body)
    }

    /// POSTs lines of JSON.
    pub fn lines(&self, path: impl AsRef<str>, lines: impl Into<Body>) -> Call {
        self.post(path, "application/x-ndjson", lines)
    }

    /// POSTs JSON.
    pub fn send(&self, path: impl AsRef<str>, body: impl Borrow<Value>) -> Call {
        self.call(Method::POST, path).json(body)
    }

    /// A form, as a browser without a session sends it.
    pub fn form(&self, path: impl AsRef<str>, fields: &[(&str, &str)]) -> Call {
        self.call(Method::POST, path).form(fields).header("accept", "text/html")
    }

    /// POSTs JSON and returns status and JSON.
    pub async fn ask(&self, path: impl AsRef<str>, body: impl Borrow<Value>) -> (u16, Value) {
        let answer = self.send(path, body).await;
        (answer.status, answer.json())
    }

    /// POSTs JSON and returns the JSON of a 200.
    pub async fn ask_ok(&self, path: impl AsRef<str>, body: impl Borrow<Value>) -> Value {
        self.send(path, body).ok().await
    }

    /// Sends bytes as they are, and returns all that is answered until the service closes the connection.
    pub async fn exchange(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.url.trim_start_matches("http://")).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Stops it as SIGTERM does, and waits for the end.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap().unwrap();
    }
}

impl Fixture for Service {
    async fn prepare(db: &TestDatabase) -> Self {
        Self::start(db).await
    }
}

/// A service with the demo release, its catalogue, customers and outfits.
pub struct Demo(pub Service);

impl Fixture for Demo {
    async fn prepare(db: &TestDatabase) -> Self {
        Self(Service::demo(db).await)
    }
}

/// The demo, and a replica of it.
pub struct Replicated(pub Service, pub Service);

impl Fixture for Replicated {
    async fn prepare(db: &TestDatabase) -> Self {
        let (service, replica) = (Service::demo(db).await, Service::start(db).await);
        replica.serve_demo().await;
        Self(service, replica)
    }
}

/// A service where every program needs a key.
pub struct Guarded(pub Service);

impl Fixture for Guarded {
    async fn prepare(db: &TestDatabase) -> Self {
        Self(Service::guarded(db).await)
    }
}

/// The demo, and a stylist's browser.
pub struct Stylist(pub Service, pub Browser);

impl Fixture for Stylist {
    async fn prepare(db: &TestDatabase) -> Self {
        let service = Service::demo(db).await;
        let browser = service.signed_in(Role::Stylist).await;
        Self(service, browser)
    }
}

/// The demo, and an analyst's browser.
pub struct Analyst(pub Service, pub Browser);

impl Fixture for Analyst {
    async fn prepare(db: &TestDatabase) -> Self {
        let service = Service::demo(db).await;
        let browser = service.signed_in(Role::Analyst).await;
        Self(service, browser)
    }
}

/// A browser without scripts, signed in.
pub struct Browser {
    url: String,
    http: Client,
    pub session: Token,
}

/// The first answer that refuses a request for coming too soon after others.
pub async fn until_too_fast(call: impl Fn() -> Call) -> Answer {
    for _ in 0..50 {
        let answer = call().await;
        if answer.status == 429 {
            return answer;
        }
    }
    panic!("fifty requests come faster than any rate of these tests");
}

/// A client that does not follow redirects.
pub fn browser() -> Client {
    Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

impl Browser {
    /// The same browser in another session.
    pub fn with(&self, session: Token) -> Self {
        Self { url: self.url.clone(), http: self.http.clone(), session }
    }

    pub fn call(&self, method: Method, path: impl AsRef<str>) -> Call {
        let cookie = format!("other=1; atelier_session={}", self.session.as_str());
        let call = Call(self.http.request(method, format!("{}{}", self.url, path.as_ref())));
        call.header("cookie", cookie).header("accept", "text/html")
    }

    pub fn get(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::GET, path)
    }

    /// A page that must exist.
    pub async fn page(&self, path: impl AsRef<str>) -> String {
        self.get(path).is(200).await.text()
    }

    /// Sends a form as a page of this session does.
    pub fn post(&self, path: impl AsRef<str>, fields: &[(&str, &str)]) -> Call {
        let csrf = self.session.form_token();
        let fields: Vec<_> = fields.iter().copied().chain([("csrf", csrf.as_str())]).collect();
        self.post_bare(path, &fields)
    }

    /// Sends a form without the session's token.
    pub fn post_bare(&self, path: impl AsRef<str>, fields: &[(&str, &str)]) -> Call {
        self.call(Method::POST, path).form(fields)
    }
}

/// Fills a database, before anything opens it, with the catalogue, customers and outfits of the demo.
pub async fn fill(db: &TestDatabase) {
    let filled = harness::shared(db, |db| async move {
        let store = db.open().await;
        bring_in_demo(&store).await.unwrap();
        store.close().await;
    });
    db.copy_from(&filled.await).await.unwrap();
}

/// A table of the demo release.
pub fn rows<T: Table>() -> Vec<T> {
    demo::rows(&models().join("demo")).unwrap()
}

/// Outfits of the demo's validation split, with their customers.
pub fn outfits() -> Vec<Outfit> {
    rows::<Outfit>().into_iter().filter(|outfit| outfit.split == Some(Split::Validation)).collect()
}
