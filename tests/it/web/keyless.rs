//! Who needs no API key: programs on this machine, while the database holds only the demo world, and no other caller in disguise.

use std::time::SystemTime;

use atelier::{
    service::access::{RequireKey, Scope},
    store::{DemoMark, Name},
};
use atelier_core::domain::{Role, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Service, until};
use crate::harness::{TestDatabase, apply, contract};

const BULK: &str = "application/x-ndjson";

async fn status(service: &Service, path: &str) -> u16 {
    service.get(path).await.status().as_u16()
}

/// Whether `/openapi.json` and `/docs` say that no key is needed.
async fn says_keyless(service: &Service) -> bool {
    let document = service.json("/openapi.json").await;
    let docs = service.get("/docs").await.text().await.unwrap();
    let keyless = document["paths"]["/articles"]["get"]["security"][0] == json!({});
    assert_eq!(docs.contains("You need no key"), keyless);
    assert_eq!(docs.contains("You need a key: "), !keyless);
    keyless
}

fn lines(count: usize) -> String {
    let line = |number: usize| format!("{{\"id\": \"new-{number}\", \"type\": \"coat\"}}\n");
    (0..count).map(line).collect::<Vec<_>>().concat()
}

/// Sends a request exactly as written, and returns the status and the problem's detail.
async fn send(service: &Service, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(head.replace('\n', "\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let problem: Value = serde_json::from_str(body).unwrap_or_default();
    (status, problem["detail"].as_str().unwrap_or_default().to_owned())
}

#[apply(contract)]
async fn the_demo_needs_no_key_and_says_so(db: TestDatabase) {
    let service = Service::playground(&db).await;
    assert!(says_keyless(&service).await);
    assert_eq!(status(&service, "/articles").await, 200);
    // Single writes, refused streams and short ones are trials.
    let coat = json!({"type": "coat"});
    assert_eq!(service.put("/articles/new", &coat).await.status(), 201);
    assert_eq!(service.delete("/articles/new").await.status(), 204);
    let bad = format!("{}{{\"id\": 5}}\n", lines(30));
    assert_eq!(service.post("/articles/bulk", BULK, bad).await.status(), 422);
    for _ in 0..2 {
        let answer = service.post("/articles/bulk", BULK, lines(20)).await;
        assert_eq!(answer.status(), 200, "the same rows again bring nothing new");
    }
    assert_eq!(status(&service, "/articles").await, 200);
    assert!(says_keyless(&service).await);
    // The document is for its reader, who came through a proxy.
    let request = service.http.get(format!("{}/openapi.json", service.url)).header("x-real-ip", "10.1.2.3");
    let document: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(document["paths"]["/articles"]["get"]["security"][0], json!({"bearer": ["catalogue"]}));
}

#[apply(contract)]
async fn a_long_stream_of_rows_ends_the_demo(db: TestDatabase) {
    let service = Service::playground(&db).await;
    assert_eq!(service.post("/articles/bulk", BULK, lines(21)).await.status(), 200);
    assert_eq!(status(&service, "/articles").await, 401, "at once");
    assert!(!says_keyless(&service).await);
    let (_, detail) = send(&service, "GET /articles HTTP/1.1\nHost: localhost\nConnection: close\n\n").await;
    assert!(detail.contains("while the database holds only the demo world"), "{detail}");
}

/// On two replicas.
#[apply(contract)]
async fn many_short_streams_end_the_demo(db: TestDatabase) {
    let service = Service::playground(&db).await;
    let other = Service::start_under(&db, RequireKey::Auto).await;
    for number in 0..21 {
        let service = if number % 2 == 0 { &service } else { &other };
        let line = format!("{{\"id\": \"new-{number}\", \"type\": \"coat\"}}\n");
        assert_eq!(service.post("/articles/bulk", BULK, line).await.status(), 200, "{number}");
    }
    assert_eq!(status(&service, "/articles").await, 401, "at once");
    assert!(!service.store.settings().is_demo().await.unwrap());
}

#[apply(contract)]
async fn a_database_with_a_key_gets_no_mark(db: TestDatabase) {
    let service = Service::start_under(&db, RequireKey::Auto).await;
    let (label, now) = (Name::new("Shop").unwrap(), SystemTime::now().into());
    let access = &service.state.access;
    let (_, record) = access.issue_key(&label, &[Scope::Catalogue], None, now).await.unwrap();
    service.store.api_keys().revoke(record.id, now).await.unwrap();
    service.bring_in_demo_as(DemoMark::Set).await;
    assert_eq!(status(&service, "/articles").await, 401);
    assert!(!service.store.settings().is_demo().await.unwrap());
}

#[apply(contract)]
async fn the_first_key_ends_the_demo(db: TestDatabase) {
    let service = Service::playground(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    let page = admin.page("/access/keys").await;
    assert!(page.contains("while the database holds only the demo world"), "{page}");
    let made = admin.post("/access/keys", &[("label", "Shop"), ("scope", "catalogue")]).await;
    assert_eq!(made.status(), 200);
    assert_eq!(status(&service, "/articles").await, 401, "at once");
    assert!(admin.page("/access/keys").await.contains("Without a key, only health checks"));
    let revoked = admin.post("/access/keys/1/revoke", &[]).await;
    assert_eq!(revoked.status(), 303);
    assert_eq!(status(&service, "/articles").await, 401, "revoking it does not bring the demo back");
}

#[apply(contract)]
async fn another_process_ends_the_demo(db: TestDatabase) {
    let service = Service::playground(&db).await;
    assert_eq!(status(&service, "/articles").await, 200);
    let other = db.open().await;
    let import = other.import(Timestamp::from_millis(2)).await.unwrap();
    import.commit().await.unwrap();
    // Its own copy of the mark is a second old at most.
    until!(status(&service, "/articles").await == 401);
}

/// Such as a database of an earlier version.
#[apply(contract)]
async fn what_was_no_demo_needs_keys(db: TestDatabase) {
    let service = Service::start_under(&db, RequireKey::Auto).await;
    service.bring_in_demo().await;
    assert_eq!(status(&service, "/articles").await, 401);
    assert_eq!(status(&service, "/livez").await, 200);
    assert!(!says_keyless(&service).await);
    let access = &service.state.access;
    let now = SystemTime::now().into();
    let (key, _) =
        access.issue_key(&Name::new("Shop").unwrap(), &[Scope::Catalogue], None, now).await.unwrap();
    let request = service.http.get(format!("{}/articles", service.url)).header("x-api-key", key.as_str());
    assert_eq!(request.send().await.unwrap().status(), 200);
}

const PROXIED: [&str; 31] = [
    "Forwarded: for=10.1.2.3",
    "X-Forwarded-For: 10.1.2.3",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Anything: 1",
    "X-Forwarded: 1",
    "X-Real-IP: 10.1.2.3",
    "Via: 1.1 proxy",
    "CF-Connecting-IP: 10.1.2.3",
    "CF-Ray: 1",
    "CDN-Loop: cloudflare",
    "True-Client-IP: 10.1.2.3",
    "X-Client-IP: 10.1.2.3",
    "X-Cluster-Client-IP: 10.1.2.3",
    "Client-IP: 10.1.2.3",
    "Fastly-Client-IP: 10.1.2.3",
    "Fly-Client-IP: 10.1.2.3",
    "X-Original-URL: /articles",
    "X-Originating-IP: 10.1.2.3",
    "X-Envoy-External-Address: 10.1.2.3",
    "X-Amzn-Trace-Id: Root=1-67891233-abcdef012345678912345678",
    "X-ProxyUser-Ip: 10.1.2.3",
    "X-Azure-ClientIP: 10.1.2.3",
    "X-Remote-User: mara",
    "Remote-User: mara",
    "X-ARR-SSL: 2048",
    "X-CDN: Imperva",
    "X-Cloud-Trace-Context: 105445aa7843bc8bf206b12000100000/1",
    "X-Edge-Location: FRA",
    "X-Amz-Cf-Id: 1",
    "X-Azure-Ref: 1",
    "Fastly-SSL: 1",
];

#[apply(contract)]
async fn proxied_requests_need_a_key(db: TestDatabase) {
    let service = Service::playground(&db).await;
    for header in PROXIED {
        let head = format!("GET /articles HTTP/1.1\nHost: localhost\n{header}\nConnection: close\n\n");
        let (status, detail) = send(&service, &head).await;
        assert_eq!(status, 401, "{header}");
        let name = header.split(':').next().unwrap().to_ascii_lowercase();
        assert!(detail.contains(&format!("came through a proxy: it has the header {name}")), "{detail}");
    }
    for (line, hosts, status, reason) in [
        ("GET /articles HTTP/1.1", &["127.0.0.1:8080"][..], 200, ""),
        ("GET /articles HTTP/1.1", &["LOCALHOST:1"], 200, ""),
        ("GET /articles HTTP/1.1", &["[::1]"], 200, ""),
        ("GET http://localhost:8080/articles HTTP/1.1", &["localhost:8080"], 200, ""),
        // nginx's `proxy_pass http://127.0.0.1:8080`.
        ("GET /articles HTTP/1.0", &["127.0.0.1:8080"], 401, "used HTTP/1.0, as nginx does"),
        ("GET /articles HTTP/1.0", &[], 401, "used HTTP/1.0"),
        ("GET /articles HTTP/1.1", &[], 400, "found no Host"),
        ("GET /articles HTTP/1.1", &["localhost", "evil.example"], 400, "found several Hosts"),
        ("GET /articles HTTP/1.1", &["local host"], 400, "found the Host \"local host\""),
        ("GET /articles HTTP/1.1", &["me@localhost"], 400, "found the Host \"me@localhost\""),
        (
            "GET /articles HTTP/1.1",
            &["shop.example"],
            401,
            "has the Host \"shop.example\"; expected localhost",
        ),
        ("GET /articles HTTP/1.1", &["10.0.0.7"], 401, "has the Host \"10.0.0.7\""),
        ("GET /articles HTTP/1.1", &["localhost.evil.example"], 401, "has the Host"),
        (
            "GET http://evil.example/articles HTTP/1.1",
            &["localhost"],
            401,
            "and the address \"evil.example\"",
        ),
        (
            "GET http://evil.example/articles HTTP/1.1",
            &["evil.example"],
            401,
            "has the Host \"evil.example\"",
        ),
    ] {
        let hosts = hosts.iter().map(|host| format!("Host: {host}\n")).collect::<Vec<_>>().concat();
        let head = format!("{line}\n{hosts}Connection: close\n\n");
        let (found, detail) = send(&service, &head).await;
        assert_eq!(found, status, "{head}: {detail}");
        assert!(detail.contains(reason), "{head}: {detail}");
    }
}

#[apply(contract)]
async fn pages_of_other_sites_need_a_key(db: TestDatabase) {
    let service = Service::playground(&db).await;
    let ours = service.url.clone();
    let other_port = "http://127.0.0.1:1".to_owned();
    let secure = ours.replace("http:", "https:");
    let name = ours.replace("127.0.0.1", "localhost");
    let page = |site: &str| format!("{site}/page?x=1");
    for (headers, admitted) in [
        (vec![("origin", ours.clone())], true),
        (vec![("sec-fetch-site", "same-origin".into()), ("origin", ours.clone())], true),
        (vec![("sec-fetch-site", "none".into())], true),
        (vec![("referer", page(&ours))], true),
        (vec![("origin", "https://evil.example".into())], false),
        (vec![("origin", "null".into())], false),
        (vec![("origin", other_port.clone())], false),
        (vec![("origin", secure)], false),
        (vec![("origin", name)], false),
        (vec![("origin", ours.clone()), ("origin", "https://evil.example".into())], false),
        (vec![("sec-fetch-site", "cross-site".into())], false),
        (vec![("sec-fetch-site", "same-site".into()), ("origin", ours.clone())], false),
        // A browser from before Origin.
        (vec![("referer", "https://evil.example/".into())], false),
        (vec![("referer", page(&other_port))], false),
    ] {
        // Neither a body nor a media type: what any page can send without asking first.
        for path in ["/releases/nowhere/activate", "/articles/bulk", "/complete"] {
            let mut request = service.http.post(format!("{ours}{path}")).header("content-type", "text/plain");
            for (name, value) in &headers {
                request = request.header(*name, value);
            }
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status() != 401, admitted, "{path} {headers:?}: {}", answer.status());
            if !admitted {
                let detail = answer.json::<Value>().await.unwrap()["detail"].to_string();
                assert!(detail.contains("a page of another site"), "{detail}");
            }
        }
    }
    let read = async |header: &'static str, value: &'static str| {
        let request = service.http.get(format!("{ours}/articles")).header(header, value);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(read("origin", "https://evil.example").await, 401, "a script of another site");
    assert_eq!(read("referer", "https://evil.example/").await, 200, "a link on another site");
}

#[apply(contract)]
async fn the_setting_false_admits_old_clients_and_no_strangers(db: TestDatabase) {
    let service = Service::start(&db).await;
    assert!(says_keyless(&service).await);
    for (head, status) in [
        ("GET /articles HTTP/1.0", 200),
        ("GET /articles HTTP/1.0\nHost: 127.0.0.1:8080", 200),
        ("GET /articles HTTP/1.1\nHost: localhost:1", 200),
        ("GET /articles HTTP/1.1\nHost: shop.example", 401),
        ("GET /articles HTTP/1.1\nHost: 10.0.0.7", 401),
        ("GET /articles HTTP/1.1\nHost: localhost\nX-Real-IP: 10.1.2.3", 401),
        ("POST /releases/nowhere/activate HTTP/1.1\nHost: localhost", 404),
        ("POST /releases/nowhere/activate HTTP/1.1\nHost: localhost\nOrigin: https://evil.example", 401),
        ("POST /releases/nowhere/activate HTTP/1.1\nHost: localhost\nOrigin: null", 401),
        ("POST /releases/nowhere/activate HTTP/1.1\nHost: localhost\nReferer: https://evil.example/", 401),
        ("DELETE /articles/a HTTP/1.1\nHost: localhost\nSec-Fetch-Site: cross-site", 401),
    ] {
        let (found, detail) = send(&service, &format!("{head}\nConnection: close\n\n")).await;
        assert_eq!(found, status, "{head}: {detail}");
    }
    let (key, _) = service
        .state
        .access
        .issue_key(&Name::new("Shop").unwrap(), &[Scope::Catalogue], None, SystemTime::now().into())
        .await
        .unwrap();
    let url = format!("{}/articles", service.url);
    let request = service.http.request(Method::GET, &url).header("x-real-ip", "10.1.2.3");
    let answer = request.header("x-api-key", key.as_str()).send().await.unwrap();
    assert_eq!(answer.status(), 200, "a key works from any address");
    assert_eq!(status(&service, "/articles").await, 200, "the first key changes nothing here");
    let document = service.json("/openapi.json").await;
    let about = document["info"]["description"].as_str().unwrap();
    assert!(about.contains("You need no key: `require_key`") && !about.contains("first key"), "{about}");
}

impl Service {
    /// A service of the demo world under the setting `auto`, with no live release.
    pub async fn playground(db: &TestDatabase) -> Self {
        let service = Self::start_under(db, RequireKey::Auto).await;
        service.bring_in_demo_as(DemoMark::Set).await;
        service
    }

    /// What a first start gives: the demo world under the setting `auto`, with the demo release.
    pub async fn untouched_demo(db: &TestDatabase) -> Self {
        let service = Self::playground(db).await;
        service.serve_demo().await;
        service
    }
}
