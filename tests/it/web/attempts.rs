//! Attempts that must fail: pages of other roles, forms without their token, ended sessions, texts that try to be
//! HTML or headers.

use std::time::SystemTime;

use atelier::{
    people::{NewSession, Proof, Token},
    platform::db::{Name, TokenHash},
};
use atelier_core::domain::Role;
use reqwest::Method;
use serde_json::json;

use super::{Browser, Demo, Service, Stylist};
use crate::harness::{TestDatabase, apply, on_sqlite};

/// Each page and the lowest role that may see it; `None` is public.
const PAGES: [(&str, Option<Role>); 49] = [
    ("/studio", Some(Role::Stylist)),
    ("/studio/outfits", Some(Role::Stylist)),
    ("/studio/outfits/1", Some(Role::Stylist)),
    ("/studio/articles/a-00134", Some(Role::Stylist)),
    ("/studio/new-customer", Some(Role::Stylist)),
    ("/studio/customers/c-014871", Some(Role::Stylist)),
    ("/personas", Some(Role::Stylist)),
    ("/password", Some(Role::Stylist)),
    ("/side-by-side", Some(Role::Analyst)),
    ("/side-by-side.csv", Some(Role::Analyst)),
    ("/side-by-side/similarity.csv", Some(Role::Analyst)),
    ("/evaluation", Some(Role::Analyst)),
    ("/evaluation/segments", Some(Role::Analyst)),
    ("/evaluation/cases", Some(Role::Analyst)),
    ("/evaluation/cases.csv", Some(Role::Analyst)),
    ("/evaluation/customers", Some(Role::Analyst)),
    ("/evaluation/customers.csv", Some(Role::Analyst)),
    ("/evaluation/results", Some(Role::Analyst)),
    ("/evaluation/results.csv", Some(Role::Analyst)),
    ("/evaluation/table.csv", Some(Role::Analyst)),
    ("/operations", Some(Role::Analyst)),
    ("/operations/acceptance", Some(Role::Analyst)),
    ("/operations/acceptance.csv", Some(Role::Analyst)),
    ("/operations/articles", Some(Role::Analyst)),
    ("/operations/feeds", Some(Role::Analyst)),
    ("/operations/feeds/shop", Some(Role::Admin)),
    ("/operations/imports", Some(Role::Analyst)),
    ("/operations/imports/1", Some(Role::Analyst)),
    ("/operations/releases", Some(Role::Analyst)),
    ("/operations/releases/demo", Some(Role::Admin)),
    ("/operations/releases/demo/comparison", Some(Role::Analyst)),
    ("/operations/releases/demo/comparison.csv?of=types", Some(Role::Analyst)),
    ("/operations/experiments", Some(Role::Analyst)),
    ("/operations/experiments/x", Some(Role::Analyst)),
    ("/operations/routing", Some(Role::Analyst)),
    ("/operations/routing/change", Some(Role::Admin)),
    ("/merchandising", Some(Role::Merchandiser)),
    ("/merchandising/rule", Some(Role::Merchandiser)),
    ("/merchandising/look", Some(Role::Merchandiser)),
    ("/merchandising/looks", Some(Role::Merchandiser)),
    ("/access", Some(Role::Admin)),
    ("/access/people/1", Some(Role::Admin)),
    ("/access/people/1/disable", Some(Role::Admin)),
    ("/access/keys", Some(Role::Admin)),
    ("/access/keys/1/revoke", Some(Role::Admin)),
    ("/access/audit", Some(Role::Admin)),
    ("/sign-in", None),
    ("/widget.js", None),
    ("/pictures/coat.svg", None),
];

type Fields = &'static [(&'static str, &'static str)];

/// Each form, the lowest role that may send it, and its fields.
const FORMS: [(&str, Role, Fields); 27] = [
    ("/studio/feedback", Role::Stylist, &[("view", "slot="), ("refused", "7f/a")]),
    ("/studio/outfits", Role::Stylist, &[("view", "slot=")]),
    ("/studio/outfits/1", Role::Stylist, &[("change", "delete"), ("revision", "1")]),
    ("/studio/new-customer", Role::Stylist, &[("id", "c-new")]),
    ("/studio/customers/c-014871", Role::Stylist, &[("name", "x")]),
    ("/studio/notes", Role::Stylist, &[("customer", "c"), ("note", "x")]),
    ("/password", Role::Stylist, &[("password", "short")]),
    ("/operations/feeds", Role::Admin, &[("name", "shop"), ("url", "https://shop.example/feed.xml")]),
    ("/operations/feeds/shop/fetch", Role::Admin, &[]),
    ("/operations/feeds/shop/delete", Role::Admin, &[]),
    ("/operations/releases/demo", Role::Admin, &[]),
    ("/operations/experiments", Role::Admin, &[("name", "x"), ("arm-0", "a"), ("arm-1", "b")]),
    ("/operations/experiments/x", Role::Admin, &[("version", "1"), ("to", "running")]),
    ("/operations/routing", Role::Admin, &[("default_method", "none")]),
    ("/merchandising/state", Role::Merchandiser, &[("name", "x"), ("state", "off")]),
    ("/merchandising/holdout", Role::Merchandiser, &[("percent", "60")]),
    ("/merchandising/rule", Role::Merchandiser, &[("name", "x"), ("effect", "exclude"), ("go", "store")]),
    ("/merchandising/rule/delete", Role::Merchandiser, &[("name", "x"), ("version", "1")]),
    ("/merchandising/look", Role::Merchandiser, &[("name", "x"), ("articles", "a")]),
    ("/merchandising/looks", Role::Merchandiser, &[("name", "x"), ("state", "draft")]),
    ("/merchandising/looks/outfit", Role::Merchandiser, &[("outfit", "1")]),
    ("/access", Role::Admin, &[("name", "Mallory"), ("role", "admin")]),
    ("/access/people/1", Role::Admin, &[("role", "stylist")]),
    ("/access/people/1/disable", Role::Admin, &[]),
    ("/access/keys", Role::Admin, &[("label", "x"), ("scope", "admin")]),
    ("/access/keys/1/revoke", Role::Admin, &[]),
    ("/sign-out", Role::Stylist, &[]),
];

#[apply(on_sqlite)]
async fn each_page_requires_its_role(Demo(service): Demo) {
    for (path, role) in PAGES {
        let answer = service.page(path).await;
        if role.is_none() {
            assert_eq!(answer.status(), 200, "{path} for a stranger");
            continue;
        }
        assert_eq!(answer.status(), 303, "{path} for a stranger");
        let head = service.call(Method::HEAD, path).await;
        assert_eq!(
            (head.status(), head.header("location")),
            (answer.status(), answer.header("location")),
            "HEAD {path}"
        );
        assert!(answer.header("location").starts_with("/sign-in"), "{path}");
    }
    for own in Role::ALL {
        let browser = service.signed_in(own).await;
        for (path, role) in PAGES {
            let answer = browser.get(path).await;
            let status = answer.status();
            let text = answer.text();
            if role.is_some_and(|role| own < role) {
                assert_eq!(status, 403, "{path} for {own}");
                assert!(text.contains(&format!("yours is {own}")), "{path} for {own}: {text}");
            } else {
                // A page may still find its address incomplete, or no person of that number.
                assert!(![401, 403, 500].contains(&status), "{path} for {own}: {status} {text}");
            }
        }
    }
}

#[apply(on_sqlite)]
async fn each_form_requires_its_role_and_session(Demo(service): Demo) {
    let stranger = service.signed_in(Role::Admin).await.session.form_token();
    for (path, role, fields) in FORMS {
        let bare = service.form(path, fields).await;
        assert!([401, 403].contains(&bare.status()), "{path} for a stranger: {}", bare.status());
        for own in Role::ALL {
            let browser = service.signed_in(own).await;
            // With no token, a made-up one, or that of another session.
            for csrf in ["", "0", &stranger] {
                let sent: Vec<(&str, &str)> = fields.iter().copied().chain([("csrf", csrf)]).collect();
                let answer = browser.post_bare(path, &sent).await;
                assert_eq!(answer.status(), 403, "{path} for {own} with the token {csrf:?}");
            }
            if own < role {
                let answer = browser.post(path, fields).await;
                assert_eq!(answer.status(), 403, "{path} for {own}");
                assert!(answer.text().contains(&format!("yours is {own}")), "{path}");
            }
        }
    }
    let after = (service.store.people().list().await.unwrap(), service.log(99).await);
    let names = |people: &[atelier::people::Person]| {
        people.iter().map(|one| (one.name.clone(), one.role)).collect::<Vec<_>>()
    };
    assert!(
        names(&after.0).iter().all(|(name, role)| name.as_str() == format!("Some {role}")),
        "{:?}",
        after.0
    );
    assert_eq!(after.1, [], "nothing was done");
}

/// What opens for anyone who knows the address, with tests of its own.
const OPEN: [(&str, &str); 7] = [
    ("GET", "/"),
    ("GET", "/shared/x"),
    ("POST", "/shared/x"),
    ("POST", "/sign-in"),
    ("GET", "/sign-in/x"),
    ("POST", "/sign-in/link"),
    ("GET", "/static/x"),
];

/// New pages and forms must be added here.
#[apply(on_sqlite)]
async fn every_page_is_listed_here(service: Service) {
    let shown = format!("{:?}", atelier::app::app(service.state.clone()));
    let document = service.json("/openapi.json").await;
    let named = |method: &str, path: &str| {
        let pages = PAGES.iter().map(|(known, _)| ("GET", *known));
        let known = pages.chain(FORMS.iter().map(|(known, ..)| ("POST", *known))).chain(OPEN);
        known.filter(|(by, _)| *by == method).any(|(_, known)| is_of(known, path))
    };
    let routed = shown.split('"').filter(|part| part.starts_with('/'));
    let is_api = |path: &str| {
        let paths = [path, path.strip_prefix("/v1").unwrap_or(path)];
        paths.iter().any(|path| document["paths"][*path].is_object())
    };
    for path in routed.filter(|path| !is_api(path) && !path.contains("__private__axum")) {
        let address = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
        let answer = service.call(Method::OPTIONS, address.collect::<Vec<_>>().join("/")).await;
        let methods: Vec<&str> = answer.header("allow").split(',').filter(|name| *name != "HEAD").collect();
        assert!(!methods.contains(&""), "{path} takes no method");
        for method in methods {
            assert!(named(method, path), "{method} {path} is in no table of tests/it/web/attempts.rs");
        }
    }
}

/// Whether an address, with or without a query, matches a route.
fn is_of(address: &str, route: &str) -> bool {
    let address = address.split_once('?').map_or(address, |(path, _)| path);
    let (address, route): (Vec<_>, Vec<_>) = (address.split('/').collect(), route.split('/').collect());
    address.len() == route.len()
        && address
            .iter()
            .zip(&route)
            .all(|(part, of)| part == of || (of.starts_with('{') && !part.is_empty()))
}

#[apply(on_sqlite)]
async fn an_ended_session_opens_nothing(Demo(service): Demo, db: TestDatabase) {
    let now = SystemTime::now().into();
    let browser = service.signed_in(Role::Admin).await;
    let closed = async |browser: &Browser, why: &str| {
        let answer = browser.get("/access").await;
        assert_eq!((answer.status(), answer.header("location")), (303, "/sign-in?next=%2Faccess"), "{why}");
        let form = browser.post("/access", &[("name", "Mallory"), ("role", "admin")]).await;
        assert_eq!(form.status(), 401, "{why}");
    };
    let person = service.state.access().session(&browser.session, now).await.unwrap().unwrap().person;

    let made_up = Token::parse(&"ab".repeat(32)).unwrap();
    closed(&Browser { session: made_up.clone(), ..service.signed_in(Role::Admin).await }, "made up").await;
    let token = TokenHash::new(made_up.as_str());
    let session = NewSession { token: &token, person: person.id, expires_at: now, new_password: None };
    assert!(service.store.sessions().begin(session, Proof::Password(None), now).await.unwrap());
    closed(&Browser { session: made_up, ..service.signed_in(Role::Admin).await }, "expired").await;

    service.store.people().create(&Name::new("Another").unwrap(), Role::Admin, now).await.unwrap();
    service.store.people().set_disabled(person.id, true, now).await.unwrap();
    closed(&browser, "disabled").await;
    service.store.people().set_disabled(person.id, false, now).await.unwrap();
    closed(&browser, "enabled again").await;

    let browser = service.signed_in(Role::Admin).await;
    browser.get("/access").is(200).await;
    let elsewhere = service.signed_in(Role::Admin).await;
    elsewhere.post("/password", &[("password", "a horse in Zurich")]).await;
    closed(&browser, "a new password").await;
    closed(&elsewhere, "the session before a new password").await;

    let browser = service.signed_in(Role::Admin).await;
    browser.get("/access").is(200).await;
    let back = "update sessions set last_seen_at = last_seen_at - 12 * 3600 * 1000";
    sqlx::raw_sql(back).execute(&mut db.raw().await).await.unwrap();
    closed(&browser, "unused for twelve hours").await;
}

#[apply(on_sqlite)]
async fn texts_are_escaped_on_every_page(db: TestDatabase) {
    const EVIL: &str = "<img src=x onerror=alert(1)>\"'&amp;{{7*7}}";
    let service = Service::demo(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    let article =
        json!({"type": "coat", "name": EVIL, "brand": EVIL, "colour": EVIL, "image": "javascript:alert(1)"});
    service.put("/articles/a-evil", &article).is(201).await;
    let id = "c<b>\"'";
    let path = format!("/customers/{}", form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>());
    let customer = json!({"features": {"gender": EVIL, "preferred_brands": [EVIL]}});
    service.put(&path, &customer).is(201).await;
    let outfit = json!({"customer": id, "articles": ["a-evil", "a-00134", "a-00568", "a-00259"], "features": {"occasion": EVIL}});
    assert_eq!(service.ask("/outfits", &outfit).await.0, 201);
    let key = [("label", EVIL), ("scope", "complete"), ("days", "90")];
    let made = admin.post("/access/keys", &key).await.text();
    let named = admin.post("/access", &[("name", EVIL), ("role", "stylist")]).await.text();
    let who = form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>();
    let mut seen = vec![made, named];
    for path in [
        "/studio".to_owned(),
        format!("/studio?find={who}"),
        format!("/studio?customer={who}"),
        format!(
            "/studio?customer={who}&slot=a-evil&slot=&slot=a-00134&slot=a-00568&if.gender={who}&pick=1&search=img"
        ),
        format!("/side-by-side?customer={who}&slot=a-evil&slot=&slot=a-00134&truth=a-00568"),
        "/evaluation/cases".to_owned(),
        format!("/personas?customer={who}"),
        "/access".to_owned(),
        "/access/keys".to_owned(),
        "/access/audit".to_owned(),
        format!("/nothing/{who}"),
        format!("/sign-in?next={who}"),
    ] {
        seen.push(admin.get(&path).await.text());
    }
    assert!(seen.iter().any(|html| html.contains("&#60;img src=x")), "the texts are shown");
    for html in seen {
        for tag in ["<img src=x", "<b>\"", "javascript:"] {
            assert!(!html.contains(tag), "{tag} in {html}");
        }
    }
}

#[apply(on_sqlite)]
async fn texts_cannot_inject_headers(Stylist(service, browser): Stylist) {
    for path in [
        "/studio?customer=x%0d%0aSet-Cookie:%20a=b",
        "/sign-in?next=/x%0d%0aSet-Cookie:%20a=b",
        "/pictures/coat%0d%0aSet-Cookie:%20a=b.svg",
        "/evaluation/cases.csv?customer=x%0d%0aSet-Cookie:%20a=b",
    ] {
        let answer = browser.get(path).await;
        assert_eq!(answer.header("set-cookie"), "", "{path}");
        assert!(answer.status() < 500, "{path}");
    }
    let admin = service.signed_in(Role::Admin).await;
    let answer = admin.post("/access", &[("name", "x\r\nSet-Cookie: a=b"), ("role", "stylist")]).await;
    assert!(answer.is_refused(), "{}", answer.status());
}

#[apply(on_sqlite)]
async fn static_files_come_from_one_folder_only(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    for path in [
        "/static/..%2f..%2fCargo.toml",
        "/static/%2e%2e/Cargo.toml",
        "/static//etc/passwd",
        "/static/atelier.css/../../Cargo.toml",
        "/static/licences/htmx.txt",
        "/operations/releases/..%2f..%2fetc",
        "/operations/releases/%2e%2e",
        "/pictures/..%2f..%2fCargo.toml",
    ] {
        let answer = admin.get(path).await;
        assert!([404, 422].contains(&answer.status()), "{path}: {}", answer.status());
        let text = answer.text();
        assert!(!text.contains("[package]") && !text.contains("root:"), "{path}: {text}");
    }
}

#[apply(on_sqlite)]
async fn a_long_form_is_refused(Stylist(_service, browser): Stylist) {
    let long = "x".repeat(1 << 18);
    browser.post("/studio/outfits", &[("view", &long)]).is(413).await;
    browser.post("/password", &[("password", &"x".repeat(300))]).is(422).await;
    let many = format!("/studio?{}", "exclude=a-00134&".repeat(3000));
    assert!(browser.get(&many).await.status() < 500);
}
