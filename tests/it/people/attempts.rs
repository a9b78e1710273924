//! Attempts that must fail: pages of other roles, forms without their token, ended sessions, texts that try to be
//! HTML or headers.

use atelier::people::{Person, Token};
use atelier_core::domain::Role;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Browser, Demo, Html, Service, Stylist, TestDatabase, apply, contract, on_sqlite};

/// Each page, by the lowest role that may see it.
const PAGES: [(Role, &str); 4] = [
    (
        Role::Stylist,
        "/studio /studio/outfits /studio/outfits/1 /studio/articles/a-00134 /studio/new-customer \
         /studio/customers/c-014871 /personas /password",
    ),
    (
        Role::Analyst,
        "/side-by-side /side-by-side.csv /side-by-side/similarity.csv /evaluation /evaluation/segments \
         /evaluation/cases /evaluation/cases.csv /evaluation/customers /evaluation/customers.csv \
         /evaluation/results /evaluation/results.csv /evaluation/table.csv /operations /operations/acceptance \
         /operations/acceptance.csv /operations/articles /operations/feeds /operations/imports \
         /operations/imports/1 /operations/releases /operations/releases/demo/comparison \
         /operations/releases/demo/comparison.csv?of=types /operations/experiments /operations/experiments/x \
         /operations/routing",
    ),
    (Role::Merchandiser, "/merchandising /merchandising/rule /merchandising/look /merchandising/looks"),
    (
        Role::Admin,
        "/operations/feeds/shop /operations/releases/demo /operations/routing/change /access /access/people/1 \
         /access/people/1/disable /access/keys /access/keys/1/revoke /access/audit",
    ),
];
/// Pages that everyone may see.
const PUBLIC: [&str; 3] = ["/sign-in", "/widget.js", "/pictures/coat.svg"];

fn pages() -> impl Iterator<Item = (Role, &'static str)> {
    PAGES.into_iter().flat_map(|(role, paths)| paths.split_whitespace().map(move |path| (role, path)))
}

type Fields = &'static [(&'static str, &'static str)];

/// Each form, the lowest role that may send it, and its fields.
const FORMS: [(&str, Role, Fields); 30] = [
    ("/studio/feedback", Role::Stylist, &[("view", "slot="), ("refused", "7f/a")]),
    ("/studio/outfits", Role::Stylist, &[("view", "slot=")]),
    ("/studio/outfits/1", Role::Stylist, &[("change", "delete"), ("revision", "1")]),
    ("/studio/new-customer", Role::Stylist, &[("id", "c-new")]),
    ("/studio/customers/c-014871", Role::Stylist, &[("name", "x")]),
    ("/studio/notes", Role::Stylist, &[("customer", "c"), ("note", "x")]),
    ("/password", Role::Stylist, &[("password", "short")]),
    ("/operations/feeds", Role::Admin, &[("name", "shop"), ("url", "https://shop.example/feed.xml")]),
    ("/operations/feeds/shop/fetch", Role::Admin, &[]),
    ("/operations/feeds/shop/delete", Role::Admin, &[("version", "1")]),
    ("/operations/imports/1/undo", Role::Admin, &[]),
    ("/operations/releases", Role::Admin, &[]),
    ("/operations/releases/demo", Role::Admin, &[]),
    ("/operations/experiments", Role::Admin, &[("name", "x"), ("arm-0", "a"), ("arm-1", "b")]),
    ("/operations/experiments/x", Role::Admin, &[("version", "1"), ("to", "running")]),
    ("/operations/routing", Role::Admin, &[("default_method", "none")]),
    ("/merchandising/state", Role::Merchandiser, &[("name", "x"), ("state", "off")]),
    ("/merchandising/holdout", Role::Merchandiser, &[("percent", "60")]),
    ("/merchandising/rule", Role::Merchandiser, &[("name", "x"), ("effect", "exclude"), ("go", "store")]),
    ("/merchandising/rule/delete", Role::Merchandiser, &[("name", "x"), ("version", "1")]),
    ("/merchandising/look", Role::Merchandiser, &[("name", "x"), ("articles", "a")]),
    ("/merchandising/looks", Role::Merchandiser, &[("name", "x"), ("order", "1")]),
    ("/merchandising/undo", Role::Merchandiser, &[("undo", "1")]),
    ("/merchandising/looks/undo", Role::Merchandiser, &[("undo", "1")]),
    ("/access", Role::Admin, &[("name", "Mallory"), ("role", "admin")]),
    ("/access/people/1", Role::Admin, &[("role", "stylist")]),
    ("/access/people/1/disable", Role::Admin, &[]),
    ("/access/keys", Role::Admin, &[("label", "x"), ("scope", "admin")]),
    ("/access/keys/1/revoke", Role::Admin, &[]),
    ("/sign-out", Role::Stylist, &[]),
];

#[apply(on_sqlite)]
async fn each_page_requires_its_role(Demo(service): Demo) {
    for path in PUBLIC {
        service.page(path).is(200).await;
    }
    for (_, path) in pages() {
        let next: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
        for call in [service.page(path), service.call(Method::HEAD, path)] {
            assert_eq!(call.is(303).await.header("location"), format!("/sign-in?next={next}"));
        }
    }
    for own in Role::ALL {
        let browser = service.signed_in(own).await;
        for (role, path) in pages() {
            let answer = browser.get(path).await;
            let (status, text) = (answer.status, answer.text());
            if own < role {
                assert_eq!(status, 403, "{path} for {own}");
                let said = format!("<p>This page requires the role {role}, yours is {own}.</p>");
                assert!(text.contains(&said), "{path} for {own}: {text}");
            } else {
                // A page may still find its address incomplete, or no person of that number.
                assert!(![401, 403, 500].contains(&status), "{path} for {own}: {status} {text}");
            }
        }
    }
    // A page's header links only to pages that the role may see.
    let html = service.signed_in(Role::Stylist).await.page("/studio").await;
    html.has([r#"href="/studio""#]).lacks([r#"href="/evaluation""#]);
}

#[apply(on_sqlite)]
async fn each_form_requires_its_role_and_session(Demo(service): Demo) {
    let stranger = service.signed_in(Role::Admin).await.session.form_token();
    for (path, role, fields) in FORMS {
        let bare = service.form(path, fields).await;
        assert!([401, 403].contains(&bare.status), "{path} for a stranger: {}", bare.status);
        for own in Role::ALL {
            let browser = service.signed_in(own).await;
            // With no token, a made-up one, or that of another session.
            for csrf in ["", "0", &stranger] {
                let sent: Vec<(&str, &str)> = fields.iter().copied().chain([("csrf", csrf)]).collect();
                let answer = browser.post_bare(path, &sent).await;
                assert_eq!(answer.status, 403, "{path} for {own} with the token {csrf:?}");
            }
            if own < role {
                let answer = browser.post(path, fields).is(403).await;
                assert!(answer.text().contains(&format!("yours is {own}")), "{path} for {own}");
            }
        }
    }
    let people = service.store.people().list().await.unwrap();
    let is_unchanged = |one: &Person| one.name.as_str() == format!("Some {}", one.role);
    assert!(people.iter().all(is_unchanged), "{people:?}");
    assert_eq!(service.log(99).await, [], "nothing was done");
}

/// What opens for anyone who knows the address, with tests of its own.
const OPEN: [(&str, &str); 8] = [
    ("GET", "/"),
    ("GET", "/demo/shop"),
    ("GET", "/shared/x"),
    ("POST", "/shared/x"),
    ("POST", "/sign-in"),
    ("GET", "/sign-in/x"),
    ("POST", "/sign-in/link"),
    ("GET", "/static/x"),
];

/// Whether a route is in the tables above. New pages and forms must be added there.
pub fn has(method: &str, route: &str) -> bool {
    let pages = pages().map(|(_, known)| known).chain(PUBLIC).map(|known| ("GET", known));
    let known = pages.chain(FORMS.map(|(known, ..)| ("POST", known))).chain(OPEN);
    known.filter(|(by, _)| *by == method).any(|(_, known)| is_of(known, route))
}

/// Whether an address, with or without a query, matches a route.
pub fn is_of(address: &str, route: &str) -> bool {
    let address = address.split('?').next().unwrap_or_default();
    let (address, route): (Vec<_>, Vec<_>) = (address.split('/').collect(), route.split('/').collect());
    // A literal path is not an id of the same spelling.
    let fits =
        |(part, of): (&&str, &&str)| part == of || (of.starts_with('{') && !["", "bulk"].contains(part));
    address.len() == route.len() && address.iter().zip(&route).all(fits)
}

/// Sessions also end with a new password (`sign_in`) and with their account (`access`).
#[apply(contract)]
async fn an_ended_session_opens_nothing(Demo(service): Demo, db: TestDatabase) {
    let browser = service.signed_in(Role::Admin).await;
    let closed = async |browser: &Browser, why: &str| {
        let answer = browser.get("/access").await;
        assert_eq!((answer.status, answer.header("location")), (303, "/sign-in?next=%2Faccess"), "{why}");
        let form = browser.post("/access", &[("name", "Mallory"), ("role", "admin")]).await;
        assert_eq!(form.status, 401, "{why}");
    };
    closed(&browser.with(Token::parse(&"ab".repeat(32)).unwrap()), "made up").await;
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
    let who: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let customer = json!({"features": {"gender": EVIL, "preferred_brands": [EVIL]}});
    service.put(format!("/customers/{who}"), customer).is(201).await;
    let articles = ["a-evil", "a-00134", "a-00568", "a-00259"];
    let outfit = json!({"customer": id, "articles": articles, "features": {"occasion": EVIL}});
    service.send("/outfits", outfit).is(201).await;
    let key = [("label", EVIL), ("scope", "complete"), ("days", "90")];
    let made = admin.post("/access/keys", &key).await.text();
    let named = admin.post("/access", &[("name", EVIL), ("role", "stylist")]).await.text();
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
        html.lacks(["<img src=x", "<b>\"", "\"'&amp;", "javascript:"]);
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
    let paths = "/static/..%2f..%2fCargo.toml /static/%2e%2e/Cargo.toml /static//etc/passwd /static/licences/htmx.txt \
                 /operations/releases/..%2f..%2fetc /operations/releases/%2e%2e /pictures/..%2f..%2fCargo.toml";
    for path in paths.split_whitespace() {
        let answer = admin.get(path).await;
        assert!([404, 422].contains(&answer.status), "{path}: {}", answer.status);
        answer.text().lacks(["[package]", "root:"]);
    }
}

#[apply(on_sqlite)]
async fn a_long_form_is_refused(Stylist(_service, browser): Stylist) {
    let long = "x".repeat(1 << 18);
    browser.post("/studio/outfits", &[("view", &long)]).is(413).await;
    let many = format!("/studio?{}", "exclude=a-00134&".repeat(3000));
    assert!(browser.get(&many).await.status() < 500);
}
