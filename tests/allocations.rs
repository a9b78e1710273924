//! How many allocations a request costs, from its bytes on a socket to its answer's. Their number does not depend on the
//! machine or its load, so a limit can be tight. Alone in its binary, because it counts all threads of the process.

#![expect(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "shared/app.rs"]
mod app;
#[path = "shared/demo.rs"]
#[expect(dead_code, reason = "other tests change the release")]
mod demo;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use atelier::platform::http::AppState;
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

/// Background work allocates at times, more where the machine is slow, so the best of several means counts.
const REQUESTS: usize = 100;
const ROUNDS: usize = 10;

#[test]
fn a_completion_allocates_little() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let listener = runtime.block_on(async {
        let database = format!("sqlite:{}", folder.path().join("a.db").display());
        let state = AppState::new(app::demo(&database).await.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(atelier::app::serve(listener, state, std::future::pending()));
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
        let mut mean = || {
            let before = COUNT.load(Relaxed);
            (0..REQUESTS).for_each(|_| exchange(&mut caller, &request));
            (COUNT.load(Relaxed) - before) / REQUESTS
        };
        mean();
        (0..ROUNDS).map(|_| mean()).min().unwrap()
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
