//! The demo: programs need no key there, pages of other sites do, and no shop fits into it.

use atelier::people::RequireKey;
use atelier_core::domain::Role;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Html, Service, TestDatabase, apply, json::text, json_lines, on_sqlite};

const BANNER: &str = "Demo: nothing here is private";

fn lines(count: usize) -> String {
    json_lines((0..count).map(|number| json!({"id": format!("new-{number}"), "type": "coat"})))
}

#[apply(on_sqlite)]
async fn the_demo_needs_no_key_and_says_so(db: TestDatabase) {
    for (service, is_demo) in
        [(Service::untouched_demo(&db).await, true), (Service::guarded(&db).await, false)]
    {
        let admin = service.signed_in(Role::Admin).await;
        let mut pages = Vec::new();
        for path in ["/sign-in", "/sign-in/gone", "/docs", "/docs/problems", "/nowhere", "/shared/gone"] {
            pages.push(service.page(path).await);
        }
        for path in ["/operations", "/access/keys", "/nowhere"] {
            pages.push(admin.get(path).await);
        }
        for page in pages {
            let shown = page.text().matches(BANNER).count();
            assert_eq!(shown, usize::from(is_demo), "{}: {}", page.request, page.text());
        }
        assert_eq!(admin.page("/access/keys").await.contains("The demo needs none."), is_demo);
        let status = if is_demo { 200 } else { 401 };
        service.get("/articles").is(status).await;
        // Neither rows nor a key end the demo.
        service.lines("/articles/bulk", lines(30)).is(status).await;
        admin.post("/access/keys", &[("label", "Shop"), ("scope", "catalogue")]).is(200).await;
        service.get("/articles").is(status).await;
        assert_eq!(service.get("/readyz").await.json()["demo"] == true, is_demo);
    }
}

#[apply(on_sqlite)]
async fn a_full_demo_says_how_to_start_a_shop(db: TestDatabase) {
    let service = Service::untouched_demo(&db).await;
    for _ in 0..2 {
        service.store.limit_growth().await.unwrap();
    }
    let before = service.store.articles().count().await.unwrap();
    let problem = service.lines("/articles/bulk", lines(2001)).await.assert_problem(403, &[]);
    assert_eq!(problem["code"], "demo-full");
    text(&problem["detail"]).has(["2,000 rows", "atelier --database sqlite:shop.db"]);
    assert_eq!(service.store.articles().count().await, Ok(before), "all or nothing");
    // Rows that are there are not new ones.
    for _ in 0..2 {
        service.lines("/articles/bulk", lines(2000)).is(200).await;
    }
    service.put("/articles/more", json!({"type": "coat"})).is(403).await;
    service.put("/articles/new-7", json!({"type": "boots"})).is(200).await;
    service.put("/customers/c-new", json!({"features": {}})).is(201).await;
    service.delete("/articles/new-7").is(204).await;
    service.put("/articles/more", json!({"type": "coat"})).is(201).await;
}

#[apply(on_sqlite)]
async fn requests_for_other_hosts_need_a_key(db: TestDatabase) {
    let service = Service::untouched_demo(&db).await;
    // Which hosts are ours is asked of `is_ours`.
    for (line, hosts, status, reason) in [
        ("/articles HTTP/1.1", &["127.0.0.1:8080"][..], 200, ""),
        ("http://localhost:8080/articles HTTP/1.1", &["localhost:8080"], 200, ""),
        ("/articles HTTP/1.0", &[], 200, ""),
        ("/articles HTTP/1.1", &[], 400, "found no Host"),
        ("/articles HTTP/1.1", &["localhost", "evil.example"], 400, "found several Hosts"),
        ("/articles HTTP/1.1", &["me@localhost"], 400, "found the Host \"me@localhost\""),
        ("/articles HTTP/1.1", &["10.0.0.7"], 401, "has the Host \"10.0.0.7\"; expected localhost"),
        ("http://evil.example/articles HTTP/1.1", &["localhost"], 401, "and the address \"evil.example\""),
    ] {
        let hosts = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect::<Vec<_>>().concat();
        let head = format!("GET {line}\r\n{hosts}Connection: close\r\n\r\n");
        let answer = service.exchange(&head).await;
        assert_eq!(answer[9..12].parse(), Ok(status), "{head}: {answer}");
        assert!(answer.replace("\\\"", "\"").contains(reason), "{head}: {answer}");
    }
}

#[apply(on_sqlite)]
async fn pages_of_other_sites_need_a_key(service: Service) {
    let ours = &*service.url;
    let evil = "https://evil.example";
    let page = format!("{ours}/page?x=1");
    for (headers, admitted) in [
        (&[("origin", ours)][..], true),
        (&[("sec-fetch-site", "same-origin"), ("origin", ours)], true),
        (&[("sec-fetch-site", "none")], true),
        (&[("referer", &page)], true),
        (&[("origin", evil)], false),
        (&[("origin", "null")], false),
        (&[("origin", ours), ("origin", evil)], false),
        (&[("sec-fetch-site", "cross-site")], false),
        (&[("sec-fetch-site", "same-site"), ("origin", ours)], false),
        // A browser from before Origin.
        (&[("referer", evil)], false),
    ] {
        // Neither a body nor a media type: what any page can send without asking first.
        for path in ["/releases/nowhere/activate", "/articles/bulk", "/complete"] {
            let request = service.call(Method::POST, path).header("content-type", "text/plain");
            let answer =
                headers.iter().fold(request, |request, (name, value)| request.header(name, value)).await;
            assert_eq!(answer.status != 401, admitted, "{path} {headers:?}: {}", answer.status);
            if !admitted {
                text(&answer.json()["detail"]).has(["a page of another site"]);
            }
        }
    }
    // A script of another site, and a link on one.
    service.get("/articles").header("origin", evil).is(401).await;
    service.get("/articles").header("referer", evil).is(200).await;
}

impl Service {
    /// What `atelier` serves where no database is named.
    pub async fn untouched_demo(db: &TestDatabase) -> Self {
        crate::harness::fill(db).await;
        let service = Self::start_under(db, RequireKey::Demo).await;
        service.serve_demo().await;
        service
    }
}
