//! Every page, for everybody: axe-core finds nothing, in light and dark, nothing hangs over the edge of a phone, and
//! no page is heavy. `ATELIER_PICTURES=FOLDER` keeps a picture of each.

use std::{env, fs, path::PathBuf};

use atelier::store::Role;
use serde_json::Value;

use super::signed_in;
use crate::{
    harness::{
        TestDatabase,
        browser::{Eyes, Window, chromium_with_axe},
        contracts, tools,
    },
    web::Service,
};

contracts!(
    keeps_nothing_from_anybody needs chromium_with_axe,
    keeps_nothing_from_anybody_in_the_dark needs chromium_with_axe,
    fits_a_phone needs chromium_with_axe,
    fits_a_phone_in_the_dark needs chromium_with_axe,
);

/// A name for each page, and its address.
const PAGES: [(&str, &str); 21] = [
    ("customers", "/studio"),
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
    (
        "side-by-side",
        "/side-by-side?customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259&truth=a-01243&type=coat",
    ),
    (
        "side-by-side-customers",
        "/side-by-side?customer=c-014871,c-019029,c-000010&slot=a-00134&slot=&slot=a-00568&slot=a-00259",
    ),
    ("evaluation", "/evaluation"),
    ("cases", "/evaluation/cases?first=none&second=gsu"),
    ("operations", "/operations"),
    ("releases", "/operations/releases"),
    ("release", "/operations/releases/demo"),
    ("routing", "/operations/routing"),
    ("routing-change", "/operations/routing/change?experiment=x&method=gsu&share=9&method=none&share=1"),
    ("access", "/access"),
    ("person", "/access/people/1"),
    ("keys", "/access/keys"),
    ("audit", "/access/audit"),
    ("password", "/password"),
    ("docs", "/docs/problems"),
    ("not-found", "/nothing"),
];

/// A page that weighs more takes its time on a phone.
const HEAVY: u64 = 150_000;

async fn keeps_nothing_from_anybody(db: TestDatabase) {
    walk(db, Eyes::default()).await;
}

async fn keeps_nothing_from_anybody_in_the_dark(db: TestDatabase) {
    walk(db, Eyes { dark: true, ..Eyes::default() }).await;
}

async fn fits_a_phone(db: TestDatabase) {
    walk(db, Eyes { width: 390, ..Eyes::default() }).await;
}

async fn fits_a_phone_in_the_dark(db: TestDatabase) {
    walk(db, Eyes { width: 390, dark: true, ..Eyes::default() }).await;
}

async fn walk(db: TestDatabase, eyes: Eyes) {
    let service = Service::demo(&db).await;
    let window = signed_in(&service, Role::Admin, eyes).await;
    let mut wrong = Vec::new();
    for (name, path) in PAGES {
        look(&window, &service, eyes, (name, path), &mut wrong).await;
    }
    let outside = Window::open(eyes).await;
    look(&outside, &service, eyes, ("sign-in", "/sign-in"), &mut wrong).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn look(window: &Window, service: &Service, eyes: Eyes, page: (&str, &str), wrong: &mut Vec<String>) {
    let (name, path) = page;
    window.goto(&format!("{}{path}", service.url)).await;
    let edge = window.run("return document.documentElement.scrollWidth - innerWidth").await;
    if edge.as_i64() != Some(0) {
        wrong.push(format!("{name}: {edge} px hang over the edge of {} px", eyes.width));
    }
    let weight = window.run("return performance.getEntriesByType('navigation')[0].decodedBodySize").await;
    if weight.as_u64().is_none_or(|bytes| bytes > HEAVY) {
        wrong.push(format!("{name}: the page has {weight} bytes"));
    }
    let axe = fs::read_to_string(tools::axe().unwrap()).unwrap();
    let script = format!(
        "{axe}; const done = arguments[0]; axe.run().then(found => done(found.violations.map(one => \
         [one.id, one.help, one.nodes.length, one.nodes[0].html, one.nodes[0].failureSummary])))"
    );
    for violation in window.run_later(&script).await.as_array().map(Vec::as_slice).unwrap_or_default() {
        let words = violation.as_array().into_iter().flatten().map(Value::to_string);
        wrong.push(format!("{name}: {}", words.collect::<Vec<_>>().join(" ")));
    }
    if let Some(folder) = env::var_os("ATELIER_PICTURES").map(PathBuf::from) {
        let shade = if eyes.dark { "dark" } else { "light" };
        let width = if eyes.width < 600 { "phone" } else { "wide" };
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}-{width}-{shade}.webp")), window.picture().await).unwrap();
    }
}
