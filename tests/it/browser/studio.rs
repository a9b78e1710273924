//! What a stylist meets in Studio besides the usual way: reasons, weak pieces, searches, budgets, keys and double clicks.

use std::time::Duration;

use atelier_core::domain::{CustomerId, Role};
use futures_util::TryStreamExt;
use serde_json::json;

use super::{signed_in, stylist};
use crate::{
    harness::{TestDatabase, apply, browser::Eyes, in_chromium},
    web::{Demo, Service},
};

const BOARD: &str = "/studio?customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259";

#[apply(in_chromium)]
async fn reads_reasons_in_words_and_figures_on_demand(db: TestDatabase) {
    let (_service, window) = stylist(&db, BOARD).await;
    let why = "document.querySelector('.reasons')";
    window.until(&format!("{why}?.innerText.trim() === 'Why'")).await;
    window.click(".reasons summary").await;
    // Three bands each way, and no factor above 20.
    window.until(&format!("/(likelier|less likely)/.test({why}.innerText)")).await;
    window.until(&format!("/×\\d/.test({why}.innerText)")).await;
    let factors = "[...document.querySelectorAll('.reasons')].flatMap(one => [...one.textContent.matchAll(/×([\\d.]+)/g)])";
    let most = window.run(&format!("return Math.max(...{factors}.map(found => Number(found[1])))")).await;
    assert!(most.as_f64().unwrap() <= 20.0, "{most}");
}

#[apply(in_chromium)]
async fn is_led_from_a_weak_piece_to_better_ones(Demo(service): Demo) {
    let question = json!({"customer": "c-014871", "outfit": [null, "a-01130", "a-00568", "a-00259"], "k": 50,
                          "filters": {"types": {"0": ["bag"]}}});
    let answer = service.ask_ok("/complete", &question).await;
    let last = answer["blanks"][0]["suggestions"].as_array().unwrap().last().unwrap();
    let weak = last["article"]["id"].as_str().unwrap();
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    let board = format!("customer=c-014871&slot={weak}&slot=a-01130&slot=a-00568&slot=a-00259");
    window.goto(&format!("{}/studio?{board}", service.url)).await;
    let is_weak = "document.querySelector('#slot-0')?.closest('.slot').classList.contains('weak')";
    window.until(is_weak).await;
    window.click(".slot:first-child .bad a").await;
    window.until_words("Which bag?").await;
    window.click("#take-0-1").await;
    window
        .until(&format!("document.querySelector('#slot-0 + .piece .name') !== null && {is_weak} === false"))
        .await;
}

#[apply(in_chromium)]
async fn finds_customers_by_whole_words(db: TestDatabase) {
    let (_service, window) = stylist(&db, "/studio").await;
    let lines = "[...document.querySelectorAll('#found li')].map(line => line.innerText)";
    window.fill("#find", "male").await;
    window.until(&format!("{lines}.length && {lines}.every(line => /\\bmale\\b/.test(line))")).await;
    window.until("/1 to 12 of [\\d,]+ customers/.test(document.querySelector('#found').innerText)").await;
    window.click_words("Next").await;
    window.until("document.querySelector('#found').innerText.includes('13 to 24 of')").await;
    window.click_words("Previous").await;
    window.until("document.querySelector('#found').innerText.includes('1 to 12 of')").await;
    window.fill("#find", "navy, slim").await;
    let both = "every(line => /\\bnavy\\b/.test(line) && /\\bslim\\b/.test(line) && !/no navy/.test(line))";
    window.until(&format!("{lines}.length && {lines}.{both}")).await;
}

#[apply(in_chromium)]
async fn finds_what_the_rows_show_and_what_no_gos_hide(Demo(service): Demo) {
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    window.goto(&format!("{}/studio", service.url)).await;
    let lines = "[...document.querySelectorAll('#found li .quiet')].map(line => line.innerText)";
    for words in ["shoe size 38", "165 cm", "no heels", "shoe size 38, no heels"] {
        window.fill("#find", words).await;
        let shown = words.split(", ").map(|words| format!("line.includes('{words}')")).collect::<Vec<_>>();
        window.until(&format!("{lines}.length && {lines}.every(line => {})", shown.join(" && "))).await;
    }
    window.fill("#find", "blonde").await;
    window.until(&format!("{lines}.length && {lines}.every(line => line.includes('blond'))")).await;

    window.goto(&format!("{}/studio?customer=c-014871&slot=a-00134&slot=&pick=1", service.url)).await;
    window.fill("#pick-search", "black leather boot").await;
    window.until_words("Articles match the words, but are hidden").await;
    let hidden = window.text("#hidden").await;
    assert!(hidden.contains("as no-gos (leather)"), "{hidden}");
    let count = hidden.split_once(": ").unwrap().1.split_once(' ').unwrap().0.to_owned();
    window.click_words("Include no-gos").await;
    window.until(&format!("document.querySelectorAll('.picker ~ .tiles .tile').length === {count}")).await;
    assert_eq!(
        window.run("return document.querySelector('#pick-search').value").await,
        json!("black leather boot")
    );
}

/// Every letter counts, also those typed while an answer is on its way.
#[apply(in_chromium)]
async fn searches_over_a_slow_network(db: TestDatabase) {
    let (_service, window) = stylist(&db, "/studio").await;
    window.chromium("Network.enable", &json!({})).await;
    let slow = json!({"offline": false, "latency": 1500, "downloadThroughput": -1, "uploadThroughput": -1});
    window.chromium("Network.emulateNetworkConditions", &slow).await;
    window.run("window.searches = 0; addEventListener('htmx:config:request', () => searches++)").await;
    // The list follows each pause in the typing.
    for (before, words) in ["s", "sweden", "sweden 0148"].into_iter().enumerate() {
        window
            .run(&format!(
                "const find = document.querySelector('#find'); find.value = '{words}'; \
                 find.dispatchEvent(new Event('input', {{bubbles: true}}))"
            ))
            .await;
        window.until(&format!("searches > {before}")).await;
    }
    window.until("document.querySelectorAll('#found li').length === 1").await;
    assert!(window.text("#found li").await.contains("c-014871"));
}

/// The last click counts, however late the answer to the one before comes.
#[apply(in_chromium)]
async fn clicks_keep_their_order(db: TestDatabase) {
    let board =
        "/studio?customer=c-014871&slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259&from=1:7f&from=2:8e";
    let (_service, window) = stylist(&db, board).await;
    window.until("document.readyState === 'complete'").await;
    window.run("const send = fetch; let first = true; window.answers = 0; window.fetch = async (...request) => { \
                const late = first; first = false; const answer = await send(...request); \
                if (late) await new Promise(done => setTimeout(done, 1500)); answers++; return answer; }").await;
    window.run("document.querySelector('#lock-1').click(); document.querySelector('#lock-2').click()").await;
    window.until("answers === 2 && document.querySelector('.htmx-request') === null").await;
    let loose = "return new URL(location).searchParams.getAll('loose')";
    assert_eq!(window.run(loose).await, json!(["2"]), "the second click");
}

#[apply(in_chromium)]
async fn follows_marked_and_dead_links(db: TestDatabase) {
    let (service, window) = stylist(&db, "/studio?customer=c-014871&utm_source=mail&gbraid=7&_gl=1").await;
    window.until_words("For c-014871").await;
    window.goto(&format!("{}/studio/outfits/999999", service.url)).await;
    window.until_words("There is nothing here").await;
    window.click_words("Back to Studio").await;
    window.until_words("Who are you styling?").await;
}

#[apply(in_chromium)]
async fn adds_one_note_with_a_double_click(db: TestDatabase) {
    adds_one_note(&db, true).await;
}

#[apply(in_chromium)]
async fn adds_one_note_with_a_double_click_without_scripts(db: TestDatabase) {
    adds_one_note(&db, false).await;
}

async fn adds_one_note(db: &TestDatabase, scripts: bool) {
    let service = Service::demo(db).await;
    let window = signed_in(&service, Role::Stylist, Eyes { scripts, ..Eyes::default() }).await;
    window.goto(&format!("{}/studio?customer=c-014871", service.url)).await;
    window.fill("#note", "Boots in 38").await;
    window.click_twice("form[action='/studio/notes'] .button").await;
    window.until("document.querySelector('.history').innerText.includes('Boots in 38')").await;
    let customer = CustomerId::new("c-014871").unwrap();
    // The second request may still be on its way.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let notes = service.store.notes().for_customer(&customer).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(notes.len(), 1);
    assert!(window.run("return location.pathname + location.search").await == "/studio?customer=c-014871");
    window.goto(&format!("{}/studio?customer=c-014871", service.url)).await;
    assert_eq!(window.run("return document.querySelectorAll('.history > li').length").await, 1);
}

#[apply(in_chromium)]
async fn stays_within_a_budget(db: TestDatabase) {
    let board = "/studio?customer=c-014871&slot=a-00134&slot=&slot=&slot=";
    let (_service, window) = stylist(&db, board).await;
    window.fill("#total", "300\u{e007}").await;
    window.until("new URL(location).searchParams.get('total') === '300'").await;
    window.click(".sets a").await;
    window.until("!new URL(location).searchParams.getAll('slot').includes('')").await;
    let total = window.text(".board-head .quiet").await;
    let total: f64 = total.trim_start_matches("Total €").replace(',', "").parse().unwrap();
    assert!(total <= 300.0, "{total}");
}

/// A reload shows nothing a second time.
#[apply(in_chromium)]
async fn uses_a_suggestion_by_its_picture(db: TestDatabase) {
    let (service, window) = stylist(&db, BOARD).await;
    let outcomes = async || service.store.feedback().counts().await.unwrap()[0].outcomes;
    for _ in 0..2 {
        window.goto(&format!("{}{BOARD}", service.url)).await;
        window.until("document.querySelectorAll('.suggestions > li').length === 8").await;
        assert_eq!(outcomes().await.shown, 8);
    }
    window.click(".suggestions > li:nth-child(3) img").await;
    window.until("document.querySelector('#slot-1 + .piece .name') !== null").await;
    window.click("#save").await;
    window.until_words("Saved as outfit").await;
    let saved = window.address().await;
    window.goto(&saved).await;
    let found = outcomes().await;
    assert_eq!((found.shown, found.accepted, found.rejected), (8, 1, 0));
}

#[apply(in_chromium)]
async fn turns_the_keys_off(db: TestDatabase) {
    let (service, window) = stylist(&db, BOARD).await;
    window.until("document.querySelectorAll('.suggestions > li').length === 8").await;
    window.press("?").await;
    window.click("#keys-on").await;
    window.click("#keys .button").await;
    let press_x = async || {
        window.press("ArrowRight").await;
        window.until("document.activeElement.closest('li')?.id.startsWith('suggestion-1-')").await;
        window.press("x").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        window.run("return document.querySelector('#undo') !== null").await
    };
    assert_eq!(press_x().await, false);
    window.goto(&format!("{}{BOARD}", service.url)).await;
    window.until("document.querySelectorAll('.suggestions > li').length === 8").await;
    assert_eq!(press_x().await, false, "the switch is kept");
    window.click("[data-opens=keys]").await;
    assert_eq!(window.run("return document.querySelector('#keys-on').checked").await, false);
    window.click("#keys-on").await;
    window.click("#keys .button").await;
    window.press("ArrowLeft").await;
    assert_eq!(press_x().await, true);
}
