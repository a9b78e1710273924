//! An analyst finds a case where two methods differ, opens it side by side, and downloads it.

use atelier::domain::Role;

use super::signed_in;
use crate::{
    harness::{
        TestDatabase,
        browser::{Eyes, chromium},
        contracts,
    },
    web::Service,
};

contracts!(
    finds_a_case_and_downloads_it needs chromium,
    finds_a_case_without_scripts needs chromium,
);

async fn finds_a_case_and_downloads_it(db: TestDatabase) {
    story(db, Eyes::default()).await;
}

async fn finds_a_case_without_scripts(db: TestDatabase) {
    story(db, Eyes { scripts: false, ..Eyes::default() }).await;
}

async fn story(db: TestDatabase, eyes: Eyes) {
    let service = Service::demo(&db).await;
    let window = signed_in(&service, Role::Analyst, eyes).await;
    window.goto(&format!("{}/evaluation/cases?first=none&second=gsu", service.url)).await;
    window.click("a[href^=\"/side-by-side?\"]").await;
    window.until_words("Suggestions").await;
    let address = window.address().await;
    assert!(address.contains("method=none") && address.contains("method=gsu"), "{address}");
    assert!(address.contains("&truth="), "{address}");
    let heads = window.run("return [...document.querySelectorAll('.column h3')].map(h => h.innerText)").await;
    let both = [["none", "gsu"], ["gsu", "none"]].map(|heads| serde_json::json!(heads));
    assert!(both.contains(&heads), "{heads}");
    let placement = window.text(".column-truth").await;
    assert!(placement.starts_with("stylist's: rank "), "{placement}");

    window.click_words("Download as CSV").await;
    let csv = window.download("side-by-side.csv").await;
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("method,customer,rank,article,name,type,probability,share,true"));
    // Ten suggestions of each method, and the true article if it is not among them.
    let of = |method: &str| csv.lines().filter(|line| line.starts_with(&format!("{method},"))).count();
    assert!((10..=11).contains(&of("none")) && (10..=11).contains(&of("gsu")), "{csv}");
    let marked = csv.lines().filter(|line| line.ends_with(",true")).count();
    assert_eq!(marked, 3, "the head, and the true article of each column: {csv}");

    // A link to share.
    let other = signed_in(&service, Role::Analyst, Eyes::default()).await;
    other.goto(&address).await;
    other.until_words(&placement).await;
}
