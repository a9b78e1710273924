//! The demo: programs need no key there, pages of other sites do, and no shop fits into it.

use atelier::people::RequireKey;
use atelier_core::domain::Role;
use reqwest::Method;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Service;
use crate::harness::{TestDatabase, apply, on_sqlite};

const BULK: &str = "application/x-ndjson";
const BANNER: &str = "Demo: nothing here is private";

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

#[apply(on_sqlite)]
async fn the_demo_needs_no_key_and_says_so(db: TestDatabase) {
    for (service, is_demo) in
        [(Service::untouched_demo(&db).await, true), (Service::guarded(&db).await, false)]
    {
        let admin = service.signed_in(Role::Admin).await;
        for path in ["/sign-in", "/sign-in/gone", "/docs", "/docs/problems", "/nowhere", "/shared/gone"] {
            let page = service.page(path).await.text();
            assert_eq!(page.matches(BANNER).count(), usize::from(is_demo), "{path}: {page}");
        }
        for path in ["/operations", "/access/keys", "/nowhere"] {
            let page = admin.get(path).await.text();
            assert_eq!(page.matches(BANNER).count(), usize::from(is_demo), "{path}: {page}");
        }
        assert_eq!(admin.page("/access/keys").await.contains("The demo needs none."), is_demo);
        let status = if is_demo { 200 } else { 401 };
        assert_eq!(service.get("/articles").await.status(), status);
        // Neither rows nor a key end the demo.
        assert_eq!(service.post("/articles/bulk", BULK, lines(30)).await.status(), status);
        admin.post("/access/keys", &[("label", "Shop"), ("scope", "catalogue")]).is(200).await;
        assert_eq!(service.get("/articles").await.status(), status);
        if is_demo {
            assert_eq!(service.json("/readyz").await["demo"], true);
        }
        let document = service.json("/openapi.json").await;
        assert_eq!(document["paths"]["/articles"]["get"]["security"][0], json!({"bearer": ["catalogue"]}));
    }
}

#[apply(on_sqlite)]
async fn a_full_demo_says_how_to_start_a_shop(db: TestDatabase) {
    let service = Service::untouched_demo(&db).await;
    for _ in 0..2 {
        service.store.limit_growth().await.unwrap();
    }
    let coat = json!({"type": "coat"});
    let before = service.store.articles().count().await.unwrap();
    let answer = service.post("/articles/bulk", BULK, lines(2001)).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let problem: Value = answer.json();
    assert_eq!(problem["code"], "demo-full");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("2,000 rows") && detail.contains("atelier --database sqlite:shop.db"),
        "{detail}"
    );
    assert_eq!(service.store.articles().count().await, Ok(before), "all or nothing");
    for _ in 0..2 {
        let answer = service.post("/articles/bulk", BULK, lines(2000)).await;
        assert_eq!(answer.status(), 200, "rows that are there are not new ones");
    }
    service.put("/articles/more", &coat).is(403).await;
    service.put("/articles/new-7", &json!({"type": "boots"})).is(200).await;
    service.put("/customers/c-new", &json!({"features": {}})).is(201).await;
    service.delete("/articles/new-7").is(204).await;
    service.put("/articles/more", &coat).is(201).await;
}

#[apply(on_sqlite)]
async fn requests_for_other_hosts_need_a_key(db: TestDatabase) {
    let service = Service::untouched_demo(&db).await;
    for (line, hosts, status, reason) in [
        ("GET /articles HTTP/1.1", &["127.0.0.1:8080"][..], 200, ""),
        ("GET /articles HTTP/1.1", &["LOCALHOST:1"], 200, ""),
        ("GET /articles HTTP/1.1", &["[::1]"], 200, ""),
        ("GET http://localhost:8080/articles HTTP/1.1", &["localhost:8080"], 200, ""),
        ("GET /articles HTTP/1.0", &["127.0.0.1:8080"], 200, ""),
        ("GET /articles HTTP/1.0", &[], 200, ""),
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

#[apply(on_sqlite)]
async fn pages_of_other_sites_need_a_key(service: Service) {
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
            let mut request = service.call(Method::POST, path).header("content-type", "text/plain");
            for (name, value) in &headers {
                request = request.header(*name, value);
            }
            let answer = request.await;
            assert_eq!(answer.status() != 401, admitted, "{path} {headers:?}: {}", answer.status());
            if !admitted {
                let detail = answer.json()["detail"].to_string();
                assert!(detail.contains("a page of another site"), "{detail}");
            }
        }
    }
    let read = async |header: &'static str, value: &'static str| {
        let request = service.get("/articles").header(header, value);
        request.await.status()
    };
    assert_eq!(read("origin", "https://evil.example").await, 401, "a script of another site");
    assert_eq!(read("referer", "https://evil.example/").await, 200, "a link on another site");
}

impl Service {
    /// What `atelier` serves where no database is named.
    pub async fn untouched_demo(db: &TestDatabase) -> Self {
        crate::web::fill(db).await;
        let service = Self::start_under(db, RequireKey::Demo).await;
        service.serve_demo().await;
        service
    }
}
