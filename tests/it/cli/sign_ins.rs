//! What sign-ins cost the built service, and what its log says of them.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
    thread,
    time::Duration,
};

use reqwest::Method;

use crate::{
    cli::{serve, serve::Served},
    harness::{Answer, Call, Html, TestDatabase, apply, on_sqlite},
};

const MEGABYTE: u64 = 1024;

/// A number of `/proc/PID/status`, in kilobytes.
fn status(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux has it");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// Begins a sign-in from an address of its own and returns the connection.
fn sign_in(address: &str, number: u8) -> TcpStream {
    let mut caller = TcpStream::connect(address).unwrap();
    let form = format!("name=caller-{number}&password=a+wrong+password");
    let head = "POST /sign-in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                Content-Type: application/x-www-form-urlencoded\r\nX-Forwarded-For: 10.0.0.";
    write!(caller, "{head}{number}\r\nContent-Length: {}\r\n\r\n{form}", form.len()).unwrap();
    caller
}

/// Each hash takes 19 MiB. One of strangers runs at a time, even if its caller has left.
#[apply(on_sqlite)]
async fn callers_who_hang_up_take_no_memory(db: TestDatabase) {
    let served = Served::launch(serve(&db, &["--set", "server.trusted_proxies=127.0.0.1"])).await;
    let (address, process) = (served.address().to_owned(), served.id());
    tokio::task::spawn_blocking(move || {
        let before = status(process, "VmHWM");
        for number in 0..40 {
            let caller = sign_in(&address, number);
            // Long enough for its hash to begin, if it may.
            thread::sleep(Duration::from_millis(30));
            drop(caller);
        }
        let peak = status(process, "VmHWM");
        assert!(peak < before + 100 * MEGABYTE, "from {before} to {peak} kB");
        let mut answer = String::new();
        sign_in(&address, 99).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        let after = status(process, "VmRSS");
        assert!(after < before + 50 * MEGABYTE, "from {before} to {after} kB");
    })
    .await
    .unwrap();
    served.stop().await;
}

const KEY: &str = "atl_5ec3e75ec3e75ec3e75ec3e75ec3e75ec3e75ec3e75ec3e75ec3e75ec3e75ec3";

/// Those of a link, as it is, and as people mistype or copy it; passwords, keys and sessions.
#[apply(on_sqlite)]
async fn secrets_are_in_no_log(db: TestDatabase) {
    let mut command = serve(&db, &[]);
    command.env("RUST_LOG", "debug,ort=warn,hyper=info");
    let served = Served::launch(command).await;
    let secret = served.secret().to_owned();
    for (before, after, status) in [
        ("sign-in/", "", 200),
        ("/sign-in/", "", 404),
        ("sign-in/", "/", 404),
        ("sign-in/", ".", 404),
        ("Sign-in/", "", 404),
        ("sign-in?next=/", "", 200),
    ] {
        served.call(Method::GET, &format!("{before}{secret}{after}")).is(status).await;
    }
    let entered = sign_in_by_link(&served).await;
    let cookie = entered.header("set-cookie");
    let session = cookie.split(['=', ';']).nth(1).unwrap().to_owned();
    let bearer = format!("Bearer {KEY}");
    for (name, value) in [("x-api-key", KEY), ("authorization", &bearer), ("cookie", cookie)] {
        served.call(Method::GET, "articles").header(name, value).await;
    }
    let log = served.stop().await;
    log.has(["finished processing request", "\"route\":\"/sign-in/{link}\""]);
    for secret in [&*secret, "zebra", KEY, &session] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[apply(on_sqlite)]
async fn every_start_prints_a_link_until_an_admin_has_a_password(db: TestDatabase) {
    Served::launch(serve(&db, &[])).await.stop().await;
    let second = Served::launch(serve(&db, &[])).await;
    sign_in_by_link(&second).await;
    second.stop().await;
    let mut third = serve(&db, &[]);
    third.current_dir(db.folder().unwrap()).stdout(Stdio::piped()).stderr(Stdio::null());
    let printed = tokio::task::spawn_blocking(move || {
        let mut child = third.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        line
    });
    let printed = printed.await.unwrap();
    printed.has(["Atelier is at http://127.0.0.1:"]).lacks(["sign-in"]);
}

/// Sets the first password.
async fn sign_in_by_link(served: &Served) -> Answer {
    let form = [("link", served.secret()), ("password", "zebra in the attic")];
    let call = Call(crate::harness::browser().post(format!("{}sign-in/link", served.url)));
    call.form(&form).is(303).await
}
