//! How many allocations a request costs, from its bytes on a socket to its answer's. Their number does not depend on the
//! machine or its load, so a limit can be tight. Alone in its binary, because it counts all threads of the process.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use atelier::{
    app as web,
    app::Parts,
    catalogue::search::Synonyms,
    completion::profiles::Profiles,
    completion::tickets::Tickets,
    config::{self, Limits},
    people::{Access, RequireKey},
    platform::{
        db::Store,
        http::{AppState, CrossOrigins},
    },
    releases::Releases,
    telemetry::Traces,
};
use atelier_core::{
    domain::{Article, Customer, Timestamp},
    util::{clock::Clock, fetch::Reach},
};
use atelier_engine::{
    inference::{DeviceChoice, Engine, Settings},
    onnx_runtime::OnnxRuntime,
};
use atelier_files::{NotWorn, Table};
use tokio::net::TcpListener;

static COUNT: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[expect(unsafe_code, reason = "an allocator's trait is unsafe")]
// SAFETY: `System` does everything.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Relaxed);
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Enough that the allocations of background work hardly show in the mean.
const REQUESTS: usize = 200;

#[test]
fn a_completion_allocates_little() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}/a.db", folder.path().display());
    let listener = runtime.block_on(async {
        let state = start(&url).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(web::serve(listener, state, std::future::pending()));
        address
    });
    let mut caller = TcpStream::connect(listener).unwrap();
    let body = r#"{"customer": "c-014871", "outfit": ["a-00315", null, "a-00587", "a-00170"], "method": "gsu", "k": 20}"#;
    let request = |path: &str, body: &str| {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let found = [request("/complete", body), request("/livez", "")].map(|request| {
        (0..REQUESTS).for_each(|_| exchange(&mut caller, &request));
        let before = COUNT.load(Relaxed);
        (0..REQUESTS).for_each(|_| exchange(&mut caller, &request));
        (COUNT.load(Relaxed) - before) / REQUESTS
    });
    assert!(found[0] <= 152 && found[1] <= 43, "allocations of /complete and /livez: {found:?}");
}

/// Sends a request and reads its answer, without an allocation.
fn exchange(caller: &mut TcpStream, request: &str) {
    caller.write_all(request.as_bytes()).unwrap();
    let (mut answer, mut read) = ([0; 16 << 10], 0);
    loop {
        read += caller.read(&mut answer[read..]).unwrap();
        let text = str::from_utf8(&answer[..read]).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length = length.split("\r\n").next().unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            return;
        }
    }
}

/// The service with the demo release and its customers.
async fn start(url: &str) -> AppState {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let store = Store::open(url).await.unwrap();
    let mut import = store.import(Timestamp::from_millis(1)).await.unwrap();
    import.put(&rows::<Article>()).await.unwrap();
    import.put(&rows::<Customer>()).await.unwrap();
    import.commit().await.unwrap();
    let runtime = OnnxRuntime::load(&config::Cache::default().folder, |_| {}).unwrap();
    let settings = Settings { workers: 2, batch: 64, queue: 1024, device: DeviceChoice::Cpu };
    let releases = Arc::new(Releases::new(
        Engine::new(runtime, settings),
        store.clone(),
        models,
        "EUR",
        atelier::app::following(),
    ));
    releases.serve("demo").await.unwrap();
    let terms = config::Tickets::default().terms();
    AppState::new(Parts {
        profiles: Profiles::new(store.clone(), config::Profiles::default().keep()),
        releases: Arc::clone(&releases),
        limits: Limits::default(),
        tickets: Tickets::start(&store, terms, || [7; 32], Timestamp::from_millis(1)).await.unwrap(),
        events: config::Events::default().terms(),
        access: Access::new(store.clone()).require_key(RequireKey::Never),
        cross_origins: CrossOrigins::default(),
        trusted_proxies: config::Networks::default(),
        public_attributes: config::Shop::default().public_attributes.into(),
        traces: Traces::default(),
        clock: Clock::default(),
        notation: config::Shop::default().notation(),
        zone: config::Shop::default().zone(),
        synonyms: Synonyms::parse("").unwrap(),
        not_worn: NotWorn::default(),
        feed_reach: Reach::Private,
        process: String::new(),
        store,
    })
}

/// A table of the demo release.
fn rows<T: Table>() -> Vec<T> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo");
    let schema = atelier_files::read_folder_schema(&demo).unwrap();
    let path = demo.join(format!("{}.jsonl", T::NAME));
    atelier_files::read::<T>(&path, &schema).unwrap().map(|row| row.unwrap().value).collect()
}
