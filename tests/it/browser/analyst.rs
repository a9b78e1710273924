//! An analyst finds a case where two methods differ, opens it side by side, downloads it, and reads figures.

use atelier_core::domain::Role;
use serde_json::json;

use crate::{
    browser::{open, signed_in},
    harness::{Demo, Html, Service, TestDatabase, apply, browser::Eyes, in_chromium},
};

#[apply(in_chromium)]
async fn finds_a_case_and_downloads_it(db: TestDatabase) {
    story(db, Eyes::default()).await;
}

#[apply(in_chromium)]
async fn finds_a_case_without_scripts(db: TestDatabase) {
    story(db, Eyes { scripts: false, ..Eyes::default() }).await;
}

async fn story(db: TestDatabase, eyes: Eyes) {
    let service = Service::demo(&db).await;
    let window = signed_in(&service, Role::Analyst, eyes).await;
    window.goto("/evaluation/cases?first=none&second=gsu").await;
    window.click("a[href^=\"/side-by-side?\"]").await;
    window.until_words("Suggestions").await;
    let address = window.address().await;
    address.has(["method=none", "method=gsu", "&truth="]);
    let mut heads = window.texts(".column h3").await;
    heads.sort();
    assert_eq!(heads, ["gsu", "none"]);
    let placement = window.text(".column-truth").await;
    placement.has(["stylist's: rank "]);

    window.click_words("Download as CSV").await;
    let csv = window.download("side-by-side.csv").await;
    // Its rows are asked of the page without a browser.
    csv.has(["method,customer,rank,article,name,type,share,true,rules\r\n", "\r\nnone,", "\r\ngsu,"]);

    // A link to share.
    let other = open(&service, Role::Analyst, &address).await;
    other.until_words(&placement).await;
}

#[apply(in_chromium)]
async fn reads_which_method_answers_best(Demo(service): Demo) {
    let window = open(&service, Role::Analyst, "/evaluation").await;
    window.text("main section h2").await.has(["With the type known"]);
    window.text("main section .said").await.has(["match is the default method."]);
    // The curves say their differences to none.
    window.point_at("#recall ~ .scroll .spot circle").await;
    let shown =
        "[...document.querySelectorAll('.tip')].find(tip => getComputedStyle(tip).visibility === 'visible')";
    window.until(&format!("{shown}?.textContent.includes(' at ')")).await;
    window.click("a[href^='/evaluation/table.csv?of=known-type']").await;
    window.download("demo-known-type.csv").await.has(["\r\nmatch,true,0."]);
}

#[apply(in_chromium)]
async fn asks_the_same_question_in_studio_and_side_by_side(Demo(service): Demo) {
    let window = signed_in(&service, Role::Analyst, Eyes::default()).await;
    let board = "customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=&type=1:bag&type=3:coat&ask=3";
    window.goto(format!("/studio?{board}&price_max=150&own.occasion=office")).await;
    // What the customer refuses here is left out there.
    window.click("#about-3-1").await;
    window.click_until("#not-3-1", "not for this customer undo").await;
    let names = async |list: &str| window.texts(list).await.into_iter().take(5).collect::<Vec<_>>();
    let suggested = names("[aria-labelledby=blank-3] .suggestions .name").await;
    window.click_until("#blank-3 ~ a[href^='/side-by-side']", "Also: price up to 150; 1 left out.").await;
    window.until("document.querySelector('.column:last-child h3').innerText === 'match'").await;
    assert_eq!(names(".column:last-child .cell-name").await, suggested);
    window.click_words("Open in Studio").await;
    window.until("document.querySelector('#blank-2')?.innerText === 'Which coat?'").await;
    let parts = ["price_max=150", "own.occasion=office", "type=2%3Acoat", "slot=a-00134&slot=a-00568&slot="];
    window.address().await.has(parts);
    assert_eq!(names("[aria-labelledby=blank-2] .suggestions .name").await, suggested);
}

#[apply(in_chromium)]
async fn sees_figures_refresh_by_themselves(Demo(service): Demo) {
    let window = open(&service, Role::Analyst, "/operations").await;
    window.until("[...document.querySelectorAll('dt')].some(dt => dt.innerText === 'outfits')").await;
    window.run("document.querySelector('#live').classList.add('still-the-same')").await;
    service.put("/articles/new", json!({"type": "coat"})).await;
    let articles = "document.querySelector('dl.figures dd').innerText.replace(',', '')";
    window.until(&format!("{articles} === '1501'")).await;
    assert!(window.address().await.ends_with("/operations"));
}
