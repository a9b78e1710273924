//! An analyst finds a case where two methods differ, opens it side by side, and downloads it; and reads acceptance.

use atelier::config::Limits;
use atelier_core::domain::Role;

use super::signed_in;
use crate::{
    harness::{TestDatabase, apply, browser::Eyes, in_chromium},
    web::{
        Demo, Service,
        operations::{acceptance, releases::two_releases},
    },
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
    assert_eq!(lines.next(), Some("method,customer,rank,article,name,type,share,true"));
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

#[apply(in_chromium)]
async fn reads_acceptance_by_type_and_day(Demo(service): Demo) {
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
    assert!(address.contains("/operations/acceptance?by=type&days=7"), "{address}");
    window.choose("#slot", "1").await;
    window.choose("#type", "coat").await;
    window.click("main form button").await;
    window
        .until("document.querySelectorAll('tbody tr').length === 1 && location.search.includes('slot=1')")
        .await;
    // Pointing at a dot says its figures.
    let tip = "getComputedStyle(document.querySelector('.spot .tip')).visibility";
    window.until(&format!("{tip} === 'hidden'")).await;
    window.point_at(".spot circle").await;
    window.until(&format!("{tip} === 'visible'")).await;
    window.click_words("Download as CSV").await;
    let csv = window.download("acceptance-type-7-days.csv").await;
    assert!(
        csv.starts_with("type,shown,accepted,rejected,bought,returned,kept,revenue,window_bought,window_returned,window_kept,window_revenue,acceptance,low,high\r\ncoat,4,1,0,0,0,0,0,0,0,0,0,0.25"),
        "{csv}"
    );
}

#[apply(in_chromium)]
async fn reads_which_method_answers_best(Demo(service): Demo) {
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
    assert!(csv.contains("\r\nmatch,true,0."), "{csv}");

    window.click_words("Cases").await;
    window.click("input[name=also][value=np]").await;
    window.choose("select[name=lead]", "apart").await;
    window.click("main form button").await;
    window.until("document.querySelectorAll('.cases li:first-child tbody tr').length === 3").await;
    let address = window.address().await;
    assert!(address.contains("also=np") && address.contains("lead=apart"), "{address}");
}

#[apply(in_chromium)]
async fn asks_the_same_question_in_studio_and_side_by_side(Demo(service): Demo) {
    let window = signed_in(&service, Role::Analyst, Eyes::default()).await;
    let board = "customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=&type=1:bag&type=3:coat&ask=3";
    window.goto(&format!("{}/studio?{board}&price_max=150&own.occasion=office", service.url)).await;
    // What the customer refuses here is left out there.
    window.click("#not-3-1").await;
    window.until_words("not for this customer undo").await;
    let names = |list: &str| {
        format!("return [...document.querySelectorAll('{list}')].slice(0, 5).map(one => one.innerText)")
    };
    let coats = names("[aria-labelledby=blank-3] .suggestions .name");
    let suggested = window.run(&coats).await;
    window.click("#blank-3 ~ a[href^='/side-by-side']").await;
    window.until_words("Also: price up to 150; 1 left out.").await;
    window.until("document.querySelector('.column:last-child h3').innerText === 'match'").await;
    assert_eq!(window.run(&names(".column:last-child .cell-name")).await, suggested);
    window.click_words("Open in Studio").await;
    window.until("document.querySelector('#blank-2')?.innerText === 'Which coat?'").await;
    let address = window.address().await;
    for part in ["price_max=150", "own.occasion=office", "type=2%3Acoat", "slot=a-00134&slot=a-00568&slot="] {
        assert!(address.contains(part), "{part} in {address}");
    }
    assert_eq!(window.run(&names("[aria-labelledby=blank-2] .suggestions .name")).await, suggested);
    window.click_words("Evaluation").await;
    window.click_words("Personas").await;
    window.until("document.querySelector('h1').innerText === 'Personas'").await;
    window.click_words("Back to Evaluation").await;
    window.until_words("With the type known").await;
}

#[apply(in_chromium)]
async fn sees_nothing_that_changes_anything(db: TestDatabase) {
    let models = two_releases();
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), models.path().to_owned()).await;
    service.releases.serve("less").await.unwrap();
    let admin = service.signed_in(Role::Admin).await;
    assert_eq!(admin.post("/operations/releases/demo", &[("before", "less")]).await.status(), 303);
    let window = signed_in(&service, Role::Analyst, Eyes::default()).await;
    let pages = ["", "/acceptance", "/articles", "/releases", "/releases/less/comparison", "/routing"];
    for page in pages {
        window.goto(&format!("{}/operations{page}", service.url)).await;
        window.until("document.querySelector('h1') !== null").await;
        let posts = "return [...document.querySelectorAll('main form[method=post], main a.primary, main button.danger')].length";
        assert_eq!(window.run(posts).await, 0, "{page}: {}", window.text("main").await);
    }
    window.goto(&format!("{}/operations/releases", service.url)).await;
    window.until_words("Activations").await;
}
