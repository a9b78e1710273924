//! What sign-ins cost the built service, and what its log says of them.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use super::serve::Served;
use crate::harness::{TestDatabase, contracts};

contracts!(callers_who_hang_up_take_no_memory, a_links_secret_is_in_no_log);

const MEGABYTE: u64 = 1024;

/// A number of `/proc/PID/status`, in kilobytes.
fn status(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux has it");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// Begins a sign-in and returns the connection.
fn sign_in(address: &str, name: &str) -> TcpStream {
    let mut caller = TcpStream::connect(address).unwrap();
    let form = format!("name={name}&password=a+wrong+password");
    let head = "POST /sign-in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                Content-Type: application/x-www-form-urlencoded";
    write!(caller, "{head}\r\nContent-Length: {}\r\n\r\n{form}", form.len()).unwrap();
    caller
}

/// Each hash takes 19 MiB. Two run at a time, even if their callers have left.
async fn callers_who_hang_up_take_no_memory(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&db, folder.path()).await;
    let address = served.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let process = served.id();
    tokio::task::spawn_blocking(move || {
        let before = status(process, "VmHWM");
        for number in 0..40 {
            let caller = sign_in(&address, &format!("caller-{number}"));
            // Long enough for its hash to begin, if it may.
            thread::sleep(Duration::from_millis(30));
            drop(caller);
        }
        let peak = status(process, "VmHWM");
        assert!(peak < before + 100 * MEGABYTE, "from {before} to {peak} kB");
        let mut answer = String::new();
        sign_in(&address, "patient").read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        let after = status(process, "VmRSS");
        assert!(after < before + 50 * MEGABYTE, "from {before} to {after} kB");
    })
    .await
    .unwrap();
    served.stop().await;
}

/// As it is, and as people mistype or copy it.
async fn a_links_secret_is_in_no_log(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&db, folder.path()).await;
    let secret = served.link.rsplit_once('/').unwrap().1.to_owned();
    for (before, after, status) in [
        ("sign-in/", "", 200),
        ("/sign-in/", "", 404),
        ("sign-in/", "/", 404),
        ("sign-in/", ".", 404),
        ("Sign-in/", "", 404),
        ("sign-in?next=/", "", 200),
    ] {
        let answer = reqwest::get(format!("{}{before}{secret}{after}", served.url)).await.unwrap();
        assert_eq!(answer.status(), status, "{before}…{after}");
    }
    let form = sign_in_by_link(&served.url, &secret).await;
    assert_eq!(form.status(), 303);
    let log = served.stop().await;
    assert!(log.contains("finished processing request") && !log.contains(&secret), "{log}");
}

async fn sign_in_by_link(url: &str, secret: &str) -> reqwest::Response {
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let form = browser.post(format!("{url}sign-in/link")).body(format!("link={secret}"));
    form.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap()
}
