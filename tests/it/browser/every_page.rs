//! Every page is accessible: axe-core finds no fault in light and dark mode, nothing overflows on a phone, and no page
//! is large. `ATELIER_PICTURES=FOLDER` saves a picture of each.

use std::{
    env, fs,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use atelier::{
    analysis::personas::{Personas, Progress},
    platform::db::Name,
};
use atelier_core::domain::{Method, Role};
use serde_json::{Value, json};

use crate::{
    browser::{signed_in, window_of},
    harness::{
        Demo, Html, Service, TestDatabase, apply,
        browser::{Eyes, Window},
        ids, in_chromium_with_axe, tools, until,
    },
    releases::operations::acceptance,
};

/// A name and the address of each page.
type Pages = &'static [(&'static str, &'static str)];

const STYLIST: Pages = &[
    ("customers", "/studio"),
    ("no-customers", "/studio?find=nobody+such"),
    ("outfits", "/studio?customer=c-014871"),
    ("outfit", "/studio?customer=c-014871&slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130"),
    (
        "studio",
        "/studio?customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259&slot=a-01130&type=1:coat\
         &if.age=55&changing=preferred_colours",
    ),
    (
        "several-blanks",
        "/studio?customer=c-014871&slot=a-00134&slot=&slot=&slot=a-00259&type=1:coat&type=2:bag&k=4&pick=1",
    ),
    ("eight-blanks", "/studio?customer=c-014871&slot=&slot=&slot=&slot=&slot=&slot=&slot=&slot=&k=24&ask=5"),
    ("no-articles", "/studio?customer=c-014871&slot=a-00134&slot=&price_max=0"),
    ("no-suggestions", "/studio?customer=c-014871&slot=a-00134&slot=&price_min=9&price_max=1"),
    ("over-budget", "/studio?customer=c-014871&slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130&total=10"),
    ("old-link", "/studio?customer=c-014871&slot=a-00134&slot=gone&method=Best&k=x"),
    ("look", "/studio?customer=c-014871&slot=a-00134&slot=&trial=on"),
    ("article", "/studio/articles/a-00134"),
    ("new-customer", "/studio/new-customer"),
    ("correct-customer", "/studio/customers/c-014871"),
    ("deleted-outfits", "/studio/outfits?bin=on"),
    ("personas", "/personas?method=latent&customer=c-000010"),
    ("password", "/password"),
];

const ANALYST: Pages = &[
    (
        "side-by-side",
        "/side-by-side?customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259&truth=a-01243&type=coat",
    ),
    (
        "side-by-side-customers",
        "/side-by-side?customers=c-014871,c-019029,c-000010&slot=a-00134&slot=&slot=a-00568&slot=a-00259",
    ),
    ("side-by-side-old-link", "/side-by-side?customer=c-014871&slot=a-00134&slot=&method=gone"),
    ("evaluation", "/evaluation"),
    ("cases", "/evaluation/cases?first=none&second=gsu"),
    ("results", "/evaluation/results"),
    ("segments", "/evaluation/segments?by=age&metric=recall_at_1"),
    ("evaluation-customers", "/evaluation/customers"),
    ("problems", "/docs/problems"),
    ("docs", "/docs"),
    ("not-found", "/nothing"),
];

const ADMIN: Pages = &[
    ("operations", "/operations"),
    ("acceptance", "/operations/acceptance?by=day"),
    ("acceptance-by-type", "/operations/acceptance?by=type"),
    ("acceptance-by-arm", "/operations/acceptance?by=arm"),
    ("articles", "/operations/articles"),
    ("imports", "/operations/imports"),
    ("import", "/operations/imports/1"),
    ("feeds", "/operations/feeds"),
    ("feed", "/operations/feeds/shop"),
    ("releases", "/operations/releases"),
    ("release", "/operations/releases/demo"),
    ("comparison", "/operations/releases/demo/comparison"),
    ("routing", "/operations/routing"),
    ("routing-change", "/operations/routing/change?default_method=gsu"),
    ("routing-refused", "/operations/routing/change?default_method=bert"),
    ("experiments", "/operations/experiments"),
    ("experiment", "/operations/experiments/autumn"),
    ("rules", "/merchandising"),
    ("new-rule", "/merchandising/rule"),
    ("rule", "/merchandising/rule?name=spring"),
    ("looks", "/merchandising/looks"),
    ("new-look", "/merchandising/look"),
    ("access", "/access"),
    ("person", "/access/people/1"),
    ("keys", "/access/keys"),
    ("revoke-key", "/access/keys/1/revoke"),
    ("audit", "/access/audit"),
];

/// The pages whose status is not 200.
const REFUSED: [(&str, u16); 3] = [("not-found", 404), ("routing-refused", 422), ("shared-gone", 404)];

/// The width of a phone: of pictures a usual one, of tests the narrowest that WCAG asks for.
fn phone() -> u32 {
    if pictures().is_some() { 390 } else { 320 }
}

/// A larger page loads slowly on a phone.
const HEAVY: u64 = 150_000;

#[apply(in_chromium_with_axe)]
async fn stylist_pages_are_accessible_in_light_mode(db: TestDatabase) {
    walk(db, STYLIST, Eyes::default()).await;
}

#[apply(in_chromium_with_axe)]
async fn stylist_pages_are_accessible_in_dark_mode(db: TestDatabase) {
    walk(db, STYLIST, Eyes { dark: true, ..Eyes::default() }).await;
}

#[apply(in_chromium_with_axe)]
async fn stylist_pages_are_accessible_on_a_phone(db: TestDatabase) {
    walk(db, STYLIST, Eyes { width: phone(), ..Eyes::default() }).await;
}

#[apply(in_chromium_with_axe)]
async fn analyst_pages_are_accessible_in_light_mode(db: TestDatabase) {
    walk(db, ANALYST, Eyes::default()).await;
}

#[apply(in_chromium_with_axe)]
async fn analyst_pages_are_accessible_in_dark_mode(db: TestDatabase) {
    walk(db, ANALYST, Eyes { dark: true, ..Eyes::default() }).await;
}

#[apply(in_chromium_with_axe)]
async fn analyst_pages_are_accessible_on_a_phone(db: TestDatabase) {
    walk(db, ANALYST, Eyes { width: phone(), ..Eyes::default() }).await;
}

#[apply(in_chromium_with_axe)]
async fn admin_pages_are_accessible_in_light_mode(db: TestDatabase) {
    walk(db, ADMIN, Eyes::default()).await;
}

#[apply(in_chromium_with_axe)]
async fn admin_pages_are_accessible_in_dark_mode(db: TestDatabase) {
    walk(db, ADMIN, Eyes { dark: true, ..Eyes::default() }).await;
}

#[apply(in_chromium_with_axe)]
async fn admin_pages_are_accessible_on_a_phone(db: TestDatabase) {
    walk(db, ADMIN, Eyes { width: phone(), ..Eyes::default() }).await;
}

#[apply(in_chromium_with_axe)]
async fn open_dialogs_and_toasts_are_accessible(Demo(service): Demo) {
    for (width, dark) in [(1440, false), (1440, true), (390, false), (390, true)] {
        let window = signed_in(&service, Role::Stylist, Eyes { width, dark, ..Eyes::default() }).await;
        window.goto("/studio?customer=c-014871&slot=a-00134&slot=").await;
        window.click_until("[data-opens=keys]", "use this suggestion").await;
        assert_eq!(violations(&window).await, Vec::<String>::new(), "the help");
        window.click("#keys .button").await;
        window.run("scrollTo({top: 0, behavior: 'instant'})").await;
        if width == 390 {
            window.click("#to-settings").await;
            assert_eq!(violations(&window).await, Vec::<String>::new(), "the filters' sheet");
            window.click("#settings .to-settings").await;
        }
        window.click("#more-0").await;
        assert_eq!(violations(&window).await, Vec::<String>::new(), "a piece's menu");
        window.press("Escape").await;
        window.click("#about-1-1").await;
        assert_eq!(violations(&window).await, Vec::<String>::new(), "a suggestion's menu");
        window.click_until("#not-1-1", "not for this customer undo").await;
        assert_eq!(violations(&window).await, Vec::<String>::new(), "a refusal");
        window.click("#undo").await;
        window.until_gone("#undo").await;
    }
}

#[apply(in_chromium_with_axe)]
async fn the_longest_name_fits_the_frame(Demo(service): Demo) {
    let now = SystemTime::now().into();
    let name = Name::new("N".repeat(128)).unwrap();
    let person = service.store.people().create(&name, Role::Admin, None, now).await.unwrap();
    let link = service.state.access().link(person.id, now).await.unwrap();
    let session = service.state.access().enter(&link, None, now).await.unwrap();
    let window = window_of(&service, &session, Eyes { width: 320, ..Eyes::default() }).await;
    for path in ["/studio", "/access", "/operations", "/password"] {
        window.goto(path).await;
        window.until("document.readyState === 'complete' && !!document.querySelector('.who')").await;
        let hanging = window.run("return document.documentElement.scrollWidth - innerWidth").await;
        assert_eq!(hanging, 0, "{path}");
    }
}

async fn walk(db: TestDatabase, pages: Pages, eyes: Eyes) {
    let service = Service::demo(&db).await;
    if pages.iter().any(|(name, _)| *name == "personas") {
        personas(&service).await;
    }
    let saved = if pages == STYLIST { saved_outfits(&service).await } else { Vec::new() };
    // Pictures are for the documentation.
    let long = if pictures().is_none() { long_names(&service, pages).await } else { Vec::new() };
    if pages == ADMIN {
        // An experiment, with feedback for each arm, and a key.
        acceptance::with_feedback(&service).await;
        let admin = service.signed_in(Role::Admin).await;
        admin.post("/access/keys", &[("label", "feeds"), ("scope", "catalogue")]).is(200).await;
        let rule = json!({"effect": "pair", "articles": {"types": ["coat"], "price": {"max": 200}}, "others": {"attributes": {"brand": ["Tiber"]}},
            "when": {"features": {"gender": ["female"]}}, "ends_at": "2026-12-24T18:00:00Z", "owner": "Ada", "note": "Spring"});
        service.put("/rules/spring", rule).await;
        let rule = json!({"effect": "exclude", "articles": {"new": true}, "state": "active"});
        service.put("/rules/spring", rule).await;
        service.feed("dry_run=true&skip_bad=true", "id,type,price\n,hat,1\nx,hat,cheap\ny,hat,1\n").await;
        let url =
            "https://me:secret@shop.invalid/feeds/all-products-of-the-autumn.xml?token=secret&language=de";
        service.put("/feeds/shop", json!({"url": url, "schedule": {"at": ["04:30", "16:30"]}})).await;
        let look = json!({"title": "Autumn office", "articles": ["a-00134", "a-00568", "gone"], "state": "published"});
        service.put("/looks/autumn", look).await;
        for failures in 1..=2 {
            service.post("/feeds/shop/fetch", "application/json", "").await;
            until!(service.json("/feeds/shop").await["state"]["failures"] == failures);
        }
    }
    let mut wrong = Vec::new();
    // Dark mode on a phone needs only its picture: it was checked above.
    let phone_in_the_dark =
        (eyes.width == phone() && pictures().is_some()).then_some(Eyes { dark: true, ..eyes });
    for eyes in [Some(eyes), phone_in_the_dark].into_iter().flatten() {
        let window = signed_in(&service, Role::Admin, eyes).await;
        let more = saved.iter().chain(&long).map(|(name, path)| (*name, path.as_str()));
        for page in pages.iter().copied().chain(more) {
            look(&window, eyes, page, &mut wrong).await;
        }
        let mut outside = Window::open(eyes).await;
        outside.origin.clone_from(&service.url);
        look(&outside, eyes, ("sign-in", "/sign-in"), &mut wrong).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Saves an outfit and a draft, so that lists and the queue have something, and returns their pages.
async fn saved_outfits(service: &Service) -> Vec<(&'static str, String)> {
    let browser = service.signed_in(Role::Admin).await;
    let mut page = String::new();
    for last in ["slot=", "slot=a-01130&own.occasion=office"] {
        let view = format!("customer=c-014871&slot=a-00134&slot=a-00568&slot=a-00259&{last}");
        let saved = browser.change("/studio/outfits", &[("view", &view)]).await;
        page = format!("/studio/outfits/{}", saved.after("saved="));
    }
    let view = "customer=c-014871&slot=a-00134&slot=&slot=a-00568";
    let refused = browser.page(format!("/studio?{view}")).await.between("name=\"refused\" value=\"", "\"");
    let note = "Prefers calls in the evening";
    let words = [("change", "words"), ("revision", "1"), ("name", "Autumn office"), ("note", "Boots in 38")];
    for (path, fields) in [
        ("/studio/feedback", &[("view", view), ("refused", &*refused)][..]),
        (&page, &words),
        ("/studio/notes", &[("customer", "c-014871"), ("note", note)]),
        (&page, &[("change", "share"), ("revision", "2")]),
    ] {
        browser.change(path, fields).await;
    }
    let link = format!("/shared/{}", browser.page(&page).await.between("/shared/", "<"));
    let seq = page.after("/outfits/").to_owned();
    let board = "slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130";
    vec![
        ("refused-section", "/studio?customer=c-014871".to_owned()),
        ("weak-piece", weak_piece(service).await),
        ("outdated", format!("/studio?customer=c-014871&{board}&outfit={seq}.1")),
        ("edited", format!("/studio?customer=c-014871&{board}&outfit={seq}.2")),
        ("saved-outfits", "/studio/outfits".to_owned()),
        ("saved-outfit", page),
        ("shared", link),
        ("shared-gone", "/shared/gone".to_owned()),
    ]
}

/// Names as long as they may be, without a place to break them, and the pages that show most of them.
async fn long_names(service: &Service, pages: Pages) -> Vec<(&'static str, String)> {
    let long = |letter: &str| letter.repeat(128);
    let (article, customer) = (long("a"), long("c"));
    let browser = service.signed_in(Role::Admin).await;
    browser.post("/access", &[("name", &long("P")), ("role", "stylist")]).is(200).await;
    let body =
        json!({"type": "coat", "name": long("N"), "brand": long("B"), "colour": long("C"), "price": 12.5});
    service.put(format!("/articles/{article}"), &body).await;
    let profile = json!({"name": long("J"), "country": long("L"), "preferred_brands": [long("B")]});
    service.put(format!("/customers/{customer}"), json!({"features": profile})).await;
    let view = format!("customer={customer}&slot={article}&slot=a-00568&slot=a-00259&slot=");
    let saved = browser.change("/studio/outfits", &[("view", &view)]).await;
    let page = format!("/studio/outfits/{}", saved.after("saved="));
    let words = [
        ("change", "words"),
        ("revision", "1"),
        ("name", &*long("O")),
        ("note", &*long("T")),
        ("message", &*long("M")),
    ];
    browser.change(&page, &words).await;
    browser.change("/studio/notes", &[("customer", &customer), ("note", &long("T"))]).await;
    let whole = view.replace("slot=a-00568", "slot=");
    match pages {
        STYLIST => vec![
            ("long-board", format!("/studio?{whole}&pick=2")),
            ("long-customer", format!("/studio?customer={customer}")),
            ("long-profile", format!("/studio/customers/{customer}")),
            ("long-outfit", page),
            ("long-outfits", "/studio/outfits".to_owned()),
            ("long-article", format!("/studio/articles/{article}")),
        ],
        ANALYST => vec![(
            "long-comparison",
            format!("/side-by-side?customers={customer},c-014871&slot={article}&slot="),
        )],
        _ => {
            let look = json!({"title": long("L"), "articles": [article, "a-00568"], "state": "published"});
            service.put(format!("/looks/{}", long("l")), look).await;
            let rule = json!({"effect": "exclude", "articles": {"ids": [article]}, "owner": long("W"), "note": long("T")});
            service.put(format!("/rules/{}", long("r")), &rule).await;
            vec![("long-rule", format!("/merchandising/rule?name={}", long("r")))]
        }
    }
}

/// The board with the least likely bag for the rest.
pub async fn weak_piece(service: &Service) -> String {
    let question = json!({"customer": "c-014871", "outfit": [null, "a-01130", "a-00568", "a-00259"], "k": 50,
                          "filters": {"types": {"0": ["bag"]}}});
    let answer = service.ask_ok("/complete", question).await;
    let weak = ids(&answer["blanks"][0]["suggestions"]).pop().unwrap();
    format!("/studio?customer=c-014871&slot={weak}&slot=a-01130&slot=a-00568&slot=a-00259")
}

/// Waits until they are computed: a page that reloads itself cannot be checked.
async fn personas(service: &Service) {
    let live = service.releases.current().unwrap();
    until!(matches!(
        live.follower::<Personas>().portrait(Method::Latent, &live.rows, &service.store).await.unwrap(),
        Progress::Ready(_)
    ));
}

/// The folder for pictures, if one was named.
fn pictures() -> Option<PathBuf> {
    env::var_os("ATELIER_PICTURES").map(PathBuf::from)
}

async fn look(window: &Window, eyes: Eyes, (name, path): (&str, &str), wrong: &mut Vec<String>) {
    window.goto(path).await;
    let hanging = || window.run("return document.documentElement.scrollWidth - innerWidth");
    let (mut edge, began) = (hanging().await, Instant::now());
    // A page that is replacing a part of itself has another width for a moment.
    while edge != 0 && began.elapsed() < Duration::from_secs(2) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        edge = hanging().await;
    }
    if edge != 0 {
        wrong.push(format!("{name}: {edge} px hang over the edge of {} px", eyes.width));
    }
    let navigation = "return performance.getEntriesByType('navigation')[0]";
    let weight = window.run(&format!("{navigation}.decodedBodySize")).await;
    // The reference of all routes is one page.
    let most = if name == "docs" { 2 * HEAVY } else { HEAVY };
    if weight.as_u64().is_none_or(|bytes| bytes > most) {
        wrong.push(format!("{name}: the page has {weight} bytes"));
    }
    let status = window.run(&format!("{navigation}.responseStatus")).await;
    let expected = REFUSED.iter().find(|(refused, _)| *refused == name).map_or(200, |(_, status)| *status);
    if status != expected {
        wrong.push(format!("{name}: status {status} instead of {expected}"));
    }
    // In the dark on a phone there is nothing that the other pages do not have.
    if !(eyes.dark && eyes.width == phone()) {
        for violation in violations(window).await {
            wrong.push(format!("{name}: {violation}"));
        }
    }
    let shade = if eyes.dark { "dark" } else { "light" };
    let width = if eyes.width == phone() { "phone" } else { "wide" };
    save_picture(window, &format!("{name}-{width}-{shade}")).await;
}

/// Saves a picture of the page, if a folder for pictures was named.
pub async fn save_picture(window: &Window, name: &str) {
    if let Some(folder) = pictures() {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.webp")), window.picture().await).unwrap();
    }
}

/// The faults that axe-core finds on the page.
pub async fn violations(window: &Window) -> Vec<String> {
    let axe = fs::read_to_string(tools::axe().unwrap()).unwrap();
    let script = format!(
        "{axe}; const done = arguments[0]; axe.run({{rules: {{'target-size': {{enabled: true}}}}}}).then(found => done(found.violations.map(one => \
         [one.id, one.help, one.nodes.length, one.nodes[0].html, one.nodes[0].failureSummary])))"
    );
    let found = window.run_later(&script).await;
    let words = |one: &Value| {
        one.as_array().into_iter().flatten().map(Value::to_string).collect::<Vec<_>>().join(" ")
    };
    found.as_array().expect("axe answers with a list").iter().map(words).collect()
}
