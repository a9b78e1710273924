//! An analyst finds a case where two methods differ, opens it side by side, and downloads it; and reads acceptance.

use atelier::domain::Role;

use super::signed_in;
use crate::{
    harness::{
        TestDatabase,
        browser::{Eyes, chromium},
        contracts,
    },
    web::{Service, operations::acceptance},
};

contracts!(
    finds_a_case_and_downloads_it needs chromium,
    finds_a_case_without_scripts needs chromium,
    reads_acceptance_by_type_and_day needs chromium,
    reads_which_method_answers_best needs chromium,
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

async fn reads_acceptance_by_type_and_day(db: TestDatabase) {
    let service = Service::demo(&db).await;
    acceptance::with_feedback(&service).await;
    let window = signed_in(&service, Role::Analyst, Eyes::default()).await;
    window.goto(&format!("{}/operations", service.url)).await;
    window.click_words("Acceptance").await;
    window.until_words("Acceptance by day").await;
    window.choose("#by", "type").await;
    window.choose("#days", "7").await;
    window.click("main form button").await;
    window.until_words("Acceptance by type of article").await;
    let address = window.address().await;
    assert!(address.ends_with("/operations/acceptance?by=type&days=7"), "{address}");
    // Pointing at a dot says its figures.
    let tip = "getComputedStyle(document.querySelector('.spot .tip')).visibility";
    window.until(&format!("{tip} === 'hidden'")).await;
    window.point_at(".spot circle").await;
    window.until(&format!("{tip} === 'visible'")).await;
    window.click_words("Download as CSV").await;
    let csv = window.download("acceptance-type-7-days.csv").await;
    assert!(
        csv.starts_with("type,shown,accepted,rejected,bought,acceptance,low,high\r\ncoat,4,1,0,0,0.25"),
        "{csv}"
    );
}

async fn reads_which_method_answers_best(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let window = signed_in(&service, Role::Analyst, Eyes::default()).await;
    window.goto(&format!("{}/evaluation", service.url)).await;
    let first = window.text("main section h2").await;
    assert!(first.contains("With the type known"), "{first}");
    assert!(window.text("main section .said").await.starts_with("match is the default method."));
    // The curves say their differences to none.
    window.point_at("#recall ~ .scroll .spot circle").await;
    let shown =
        "[...document.querySelectorAll('.tip')].find(tip => getComputedStyle(tip).visibility === 'visible')";
    window.until(&format!("{shown}?.textContent.includes(' at ')")).await;
    window.click("a[href^='/evaluation/table.csv?of=known-type']").await;
    let csv = window.download("demo-known-type.csv").await;
    assert!(csv.contains("\r\nmatch,true,0.4961,"), "{csv}");

    window.click_words("Cases").await;
    window.click("input[name=also][value=np]").await;
    window.choose("select[name=lead]", "apart").await;
    window.click("main form button").await;
    window.until("document.querySelectorAll('.cases li:first-child tbody tr').length === 3").await;
    let address = window.address().await;
    assert!(address.contains("also=np") && address.contains("lead=apart"), "{address}");
}
