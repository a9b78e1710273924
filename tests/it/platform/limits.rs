//! What one caller, or many, may take of the service: connections, time, streams, answers.

use std::time::Duration;

use atelier::config::Limits;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
    time::{interval, sleep, timeout},
};

use crate::harness::{
    Demo, Guarded, Html, Service, TestDatabase, apply, assert_has,
    json::{codes, list, text, with},
    on_sqlite, outfits, until,
};

/// Longer than a test may run.
const FOREVER: u32 = 600_000;
/// For what should happen soon.
const PATIENCE: Duration = Duration::from_secs(30);
const NDJSON: &str = "application/x-ndjson";
const FORM: &str = "application/x-www-form-urlencoded";

fn patient() -> Limits {
    Limits { head_ms: FOREVER, idle_ms: FOREVER, transfer_ms: FOREVER, ..Limits::default() }
}

async fn connect(service: &Service) -> TcpStream {
    TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap()
}

async fn send(stream: &mut TcpStream, method: &str, path: &str, headers: &str) {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
}

/// Reads one answer: its head, and its body by Content-Length.
async fn read(stream: &mut TcpStream) -> (u16, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("an answer"));
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    (head[9..12].parse().unwrap(), String::from_utf8(body).unwrap())
}

async fn is_alive(stream: &mut TcpStream) -> bool {
    send(stream, "GET", "/livez", "").await;
    read(stream).await.0 == 200
}

/// Waits until the service closes the connection.
async fn wait_for_end(stream: &mut TcpStream) {
    let ended = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the connection is still open after {PATIENCE:?}");
}

#[apply(on_sqlite)]
async fn silent_connections_make_room_for_others(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { connections: 8, ..patient() }).await;
    let mut kept = connect(&service).await;
    assert!(is_alive(&mut kept).await);
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(connect(&service).await);
    }
    assert!(is_alive(&mut connect(&service).await).await, "a new caller is served");
    assert!(is_alive(&mut kept).await, "a connection that was used stays longer than silent ones");
    for silent in &mut silent[..30] {
        wait_for_end(silent).await;
    }
}

/// Whether a caller who takes 200 ms to send a request gets an answer.
async fn distant_caller_is_served(service: &Service) -> bool {
    let mut stream = connect(service).await;
    sleep(Duration::from_millis(200)).await;
    let asked = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let mut start = [0; 12];
    asked.is_ok() && stream.read_exact(&mut start).await.is_ok() && start == *b"HTTP/1.1 200"
}

/// Begins an upload, and tries again where it is cut before its head was read: on a busy machine it is as silent as others.
async fn begin_upload(service: &Service, bytes: usize) -> TcpStream {
    let headers = format!("Content-Type: {NDJSON}\r\nContent-Length: {bytes}\r\nExpect: 100-continue\r\n");
    loop {
        let mut upload = connect(service).await;
        send(&mut upload, "POST", "/customers/bulk", &headers).await;
        let mut told = *b"HTTP/1.1 100 Continue\r\n\r\n";
        if upload.read_exact(&mut told).await.is_ok() {
            assert!(told.starts_with(b"HTTP/1.1 100"), "{}", told.escape_ascii());
            return upload;
        }
    }
}

/// The head of a request whose body never comes.
fn unsent(path: &str, content_type: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: 9000\r\n\r\n"
    )
}

/// Sends a byte now and then, and begins again as often as it is cut.
async fn drip_on(address: String, begin: String) {
    loop {
        let Ok(mut stream) = TcpStream::connect(&address).await else { return };
        let mut sent = stream.write_all(begin.as_bytes()).await;
        while sent.is_ok() {
            sleep(Duration::from_millis(20)).await;
            sent = stream.write_all(b"x").await;
        }
        if begin.ends_with("X: ") {
            return;
        }
    }
}

#[apply(on_sqlite)]
async fn dripping_callers_make_room_for_others(db: TestDatabase) {
    let limits = Limits { connections: 64, streams: 64, body_ms: FOREVER, request_ms: FOREVER, ..patient() };
    let service = Service::start_with(&db, limits).await;
    let address = service.url.trim_start_matches("http://").to_owned();
    let head = "GET /livez HTTP/1.1\r\nX: ".to_owned();
    let bodies = [
        unsent("/sign-in", FORM),
        unsent("/complete", "application/json"),
        unsent("/customers/bulk", NDJSON),
    ];
    for begins in [vec![head], bodies.into()] {
        let mut callers = JoinSet::new();
        for number in 0..64 {
            callers.spawn(drip_on(address.clone(), begins[number % begins.len()].clone()));
        }
        // 50 kB a second, for three seconds.
        let mut upload = begin_upload(&service, 150_000).await;
        let uploading = tokio::spawn(async move {
            let mut parts = interval(Duration::from_millis(100));
            for _ in 0..30 {
                parts.tick().await;
                upload.write_all(&[b'\n'; 5_000]).await.expect("a slow upload is not cut");
            }
            read(&mut upload).await
        });
        for _ in 0..4 {
            // On a busy machine a new caller may be cut among the silent ones, and tries again.
            let served = async { while !distant_caller_is_served(&service).await {} };
            timeout(Duration::from_secs(3), served).await.expect("an answer soon");
        }
        assert_eq!(uploading.await.unwrap().0, 200);
    }
}

#[apply(on_sqlite)]
async fn heads_are_limited(service: Service) {
    let head = |bytes: usize| {
        let start = "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(bytes - start.len() - 4))
    };
    let mut stream = connect(&service).await;
    // The second of two heads that come together does not fit behind the first.
    for heads in [head(60_000), head(65_000), head(40_000).repeat(3)] {
        stream.write_all(heads.as_bytes()).await.unwrap();
        for _ in heads.matches("GET") {
            assert_eq!(timeout(PATIENCE, read(&mut stream)).await.unwrap().0, 200);
        }
    }
    let path = format!("/livez?x={}", "x".repeat(60_000));
    send(&mut stream, "GET", &path, "").await;
    assert_eq!(timeout(PATIENCE, read(&mut stream)).await.unwrap().0, 200);
    for length in [70_000, 100_000, 3_000_000] {
        let mut stream = connect(&service).await;
        stream.write_all(head(length).as_bytes()).await.unwrap();
        assert_eq!(timeout(PATIENCE, read(&mut stream)).await.expect("it does not wait for more").0, 431);
        wait_for_end(&mut stream).await;
    }
}

#[apply(on_sqlite)]
async fn heads_must_arrive_in_time(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { head_ms: 300, ..patient() }).await;
    wait_for_end(&mut connect(&service).await).await;
    // A byte now and then does not help.
    let mut dripping = connect(&service).await;
    dripping.write_all(b"GET /livez HTTP/1.1\r\nX: ").await.unwrap();
    until!(dripping.write_all(b"x").await.is_err());
    // An open connection may be idle for longer.
    let mut kept = connect(&service).await;
    assert!(is_alive(&mut kept).await);
    sleep(Duration::from_millis(600)).await;
    assert!(is_alive(&mut kept).await);
}

/// A connection that buffers little.
async fn greedy(service: &Service) -> (OwnedReadHalf, OwnedWriteHalf) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let address = service.url.trim_start_matches("http://").parse().unwrap();
    socket.connect(address).await.unwrap().into_split()
}

#[apply(on_sqlite)]
async fn callers_that_take_nothing_are_cut(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { transfer_ms: 300, ..patient() }).await;
    let (mut answers, mut requests) = greedy(&service).await;
    // More answers than the kernel buffers, and more requests than the service reads ahead.
    tokio::spawn(async move {
        let request = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
        while requests.write_all(request.as_bytes()).await.is_ok() {}
    });
    let mut taken = [0; 256];
    // About 10 kB a second, of which the service expects 200.
    until!(!answers.read(&mut taken).await.is_ok_and(|read| read > 0));
}

#[apply(on_sqlite)]
async fn callers_that_take_nothing_do_not_delay_a_stop(db: TestDatabase) {
    let service = Service::start_with(&db, patient()).await;
    // An export of 20 MB, more than the kernel buffers.
    let (articles, long) = (["a", "b", "c", "d"], "x".repeat(60_000));
    for id in articles {
        service.put(format!("/articles/{id}"), json!({"type": "coat"})).await;
    }
    service.put("/customers/long", json!({"features": {}})).await;
    let outfit = json!({"customer": "long", "articles": articles, "features": {"occasion": long}});
    service.lines("/outfits/bulk", format!("{outfit}\n").repeat(350)).is(200).await;
    let (mut answers, mut requests) = greedy(&service).await;
    requests.write_all(b"GET /customers/long/export HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut begun = [0; 12];
    answers.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    timeout(PATIENCE, service.stop()).await.expect("the service stops");
}

#[apply(on_sqlite)]
async fn uploads_are_refused_without_breaking_the_pipe(Guarded(service): Guarded) {
    let body = vec![b' '; 5 << 20];
    for (method, path, content_type, expected) in [
        ("POST", "/customers/bulk", NDJSON, 401),
        ("POST", "/nowhere", "text/plain", 404),
        ("POST", "/openapi.json", "application/json", 405),
        ("POST", "/sign-in", FORM, 413),
    ] {
        let mut stream = connect(&service).await;
        let headers = format!("Content-Type: {content_type}\r\nContent-Length: {}\r\n", body.len());
        send(&mut stream, method, path, &headers).await;
        stream.write_all(&body).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let (status, answer) = read(&mut stream).await;
        assert_eq!(status, expected, "{path}: {answer}");
        assert!(is_alive(&mut stream).await, "{path}: the connection can be used again");
    }
}

#[apply(on_sqlite)]
async fn a_caller_that_asks_first_sends_nothing(Guarded(service): Guarded) {
    let mut stream = connect(&service).await;
    let headers = format!("Content-Type: {NDJSON}\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n");
    send(&mut stream, "POST", "/customers/bulk", &headers).await;
    assert_eq!(read(&mut stream).await.0, 401, "and not 100");
    wait_for_end(&mut stream).await;
}

#[apply(on_sqlite)]
async fn streams_at_the_same_time_are_limited(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { streams: 1, ..patient() }).await;
    let line = "{\"id\":\"c-1\",\"features\":{}}\n";
    // The service asks for the body when the stream has its place.
    let mut first = begin_upload(&service, line.len()).await;
    let refused = service.lines("/customers/bulk", line).await;
    assert_eq!(refused.assert_problem(429, &[])["code"], "too-many-streams");
    assert_eq!(refused.header("retry-after"), "5");
    // An export is a stream, too.
    service.get("/feedback/outfits.jsonl").is(429).await;
    service.get("/customers").is(200).await;
    first.write_all(line.as_bytes()).await.unwrap();
    assert_eq!(read(&mut first).await.0, 200);
    until!(service.lines("/customers/bulk", line).await.status() == 200);
    until!(service.get("/feedback/outfits.jsonl").await.status() == 200);
}

/// Sends a byte of a body now and then until it is answered.
async fn drip(service: &Service, path: &str, content_type: &str) -> (u16, String) {
    let stream = connect(service).await;
    let (mut answers, mut requests) = stream.into_split();
    let head = unsent(path, content_type);
    let dripping = tokio::spawn(async move {
        requests.write_all(head.as_bytes()).await.unwrap();
        while requests.write_all(b"\n").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        answer.push(timeout(PATIENCE, answers.read_u8()).await.expect("an answer").unwrap());
    }
    dripping.abort();
    let answer = String::from_utf8(answer).unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

#[apply(on_sqlite)]
async fn slow_bodies_are_refused(db: TestDatabase) {
    let [transfer, stream, body] = [
        Limits { transfer_ms: 300, ..patient() },
        Limits { stream_ms: 300, ..patient() },
        Limits { body_ms: 300, ..patient() },
    ];
    for (limits, path, content_type, status, said) in [
        (transfer, "/customers/bulk", NDJSON, 408, "less than 64 KiB of it arrived within 300 ms"),
        (stream, "/customers/bulk", NDJSON, 504, "did not finish within 300 ms; split it"),
        (body, "/complete", "application/json", 408, "the body did not arrive within 300 ms"),
        (body, "/sign-in", FORM, 408, "the body did not arrive within 300 ms"),
    ] {
        let service = Service::start_with(&db, limits).await;
        let (found, answer) = drip(&service, path, content_type).await;
        assert_eq!(found, status, "{path}: {answer}");
        assert!(answer.contains(said), "{path}: {answer}");
        // Its place is free again.
        service.lines("/customers/bulk", "").is(200).await;
    }
}

#[apply(on_sqlite)]
async fn warnings_and_reasons_do_not_multiply_a_body(Demo(service): Demo) {
    let unknown = |count: usize| (0..count).map(|n| (format!("f{n}"), json!(1))).collect::<Value>();
    let answer = service.ask_ok("/compare", json!({"features": unknown(900), "outfit": [null]})).await;
    let more = json!({"code": "more-warnings", "detail": "881 more warnings are left out"});
    for column in list(&answer["columns"]) {
        assert_eq!(list(&column["warnings"]).len(), 21);
        assert_has(&column["warnings"][20], &more);
    }
    // Those that matter come first.
    let mut features = unknown(900);
    features["nogo_materials"] = json!(["lether"]);
    let request = json!({"features": features, "outfit": [null], "filters": {"price": {"max": 0.001}}});
    let answer = service.ask_ok("/complete", request).await;
    let codes = codes(&answer["warnings"]);
    assert!(codes[0] == "nothing-admissible" && codes.contains(&"no-go-without-articles"), "{codes:?}");
    let no_gos = json!({"no_gos": vec!["leather"; 1001]});
    for (features, pointer) in [(unknown(1001), "/features"), (no_gos, "/features/no_gos")] {
        for path in ["/compare", "/complete"] {
            let refused = service.send(path, json!({"features": features, "outfit": [null]})).await;
            refused.assert_problem(422, &[pointer]);
        }
    }
    // Every reason names the feature and its value.
    let long = json!({"preferred_colours": ["grey", "x".repeat(200_000)]});
    let article = outfits()[0].articles()[0].to_string();
    let request = json!({"features": long, "outfit": [article, null], "explain": true, "k": 100});
    let answer = service.ask_ok("/compare", request).await.to_string();
    assert!(answer.len() < 2_000_000, "{} bytes", answer.len());
    assert!(answer.contains("\"grey\""), "some suggestion has the colours as a reason");
}

#[apply(on_sqlite)]
async fn answers_are_limited(Demo(service): Demo) {
    let request = json!({"outfit": [null], "k": 100});
    let answer = service.ask_ok("/complete", &request).await;
    for suggestion in list(&answer["blanks"][0]["suggestions"]) {
        let id = text(&suggestion["article"]["id"]);
        let article = json!({"type": suggestion["article"]["type"], "text": "x".repeat(60_000)});
        service.put(format!("/articles/{id}"), article).is(200).await;
    }
    until!(service.ask_ok("/complete", &request).await.to_string().len() > 5_000_000);
    let batch = |items: usize| service.send("/complete/batch", json!({"items": vec![&request; items]}));
    batch(10).is(422).await.text().has(["longer than 32 MiB; ask for fewer"]);
    batch(3).is(200).await;
    // What it will have by the catalogue is known before the work.
    let suggested = async || {
        let metrics = service.get("/metrics").await.text();
        metrics.lines().filter(|line| line.starts_with("atelier_suggestions_total")).collect::<String>()
    };
    let before = suggested().await;
    batch(150)
        .is(422)
        .await
        .text()
        .has(["the answer would have about ", " MiB, which is longer than 32 MiB"]);
    assert_eq!(suggested().await, before);
    let few = with(request, json!({"fields": ["id"]}));
    service.send("/complete/batch", json!({"items": vec![few; 100]})).is(200).await;
}

#[apply(on_sqlite)]
async fn the_compose_file_has_room_for_every_stream(_: TestDatabase) {
    let compose = include_str!("../../../docker-compose.yml");
    let after = |name: &str| compose.split(name).nth(1).unwrap_or_else(|| panic!("{name}"));
    let bulk: u64 = after("ATELIER__LIMITS__BULK_BYTES: \"").split('"').next().unwrap().parse().unwrap();
    let size: u64 = after("- /tmp:size=").split('m').next().unwrap().parse().unwrap();
    assert!(size << 20 >= bulk * u64::from(Limits::default().streams), "{size} MiB");
    assert_eq!(compose.matches("- /tmp").count(), 1, "no tmpfs without a size");
}
