//! What a stylist meets in Studio besides the usual way: reasons, weak pieces, searches, keys and double clicks.

use std::time::Duration;

use atelier_core::domain::{CustomerId, Role};
use futures_util::TryStreamExt;
use serde_json::json;

use crate::{
    browser::{every_page::weak_piece, open, signed_in, stylist},
    harness::{Demo, Html, TestDatabase, apply, browser::Eyes, in_chromium},
};

const BOARD: &str = "/studio?customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259";

#[apply(in_chromium)]
async fn reads_reasons_in_words_and_figures_on_demand(db: TestDatabase) {
    let (_service, window) = stylist(&db, BOARD).await;
    window.click(".suggestions > li:has(.reasons) .more").await;
    let why = window.text(".menu:popover-open .reasons").await;
    // Three bands each way, and no factor above 20. The lift names the customer that it compares with.
    why.has(["Why", "likely because", "×", "in all, compared with an unknown customer"]);
    window.press("Escape").await;
    window.until_gone(".menu:popover-open").await;
    window.until("document.activeElement.matches('.more')").await;
    // The bar is as long as the share says, of 100 %.
    window.text(".suggestions > li").await.has(["% of stylists’ choices here"]);
    let bar =
        window.run("return Math.round(document.querySelector('.bar-fill').getAttribute('width'))").await;
    window.text(".suggestions strong").await.has([format!("{bar} %")]);
    let factors = "[...document.querySelectorAll('.reasons')].flatMap(one => [...one.textContent.matchAll(/×([\\d.]+)/g)])";
    let most = window.run(&format!("return Math.max(...{factors}.map(found => Number(found[1])))")).await;
    assert!(most.as_f64().unwrap() <= 20.0, "{most}");
}

#[apply(in_chromium)]
async fn is_led_from_a_weak_piece_to_better_ones(Demo(service): Demo) {
    let window = open(&service, Role::Stylist, &weak_piece(&service).await).await;
    let is_weak = "document.querySelector('#slot-0')?.closest('.slot').classList.contains('weak')";
    window.until(is_weak).await;
    window.click_until(".slot:first-child .bad a", "Which bag?").await;
    window.click("#take-0-1").await;
    window.until(&format!("document.querySelector('.slot .name') !== null && {is_weak} === false")).await;
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
    window.until_count("#found li", 1).await;
    window.text("#found li").await.has(["c-014871"]);
}

/// The last click counts, however late the answer to the one before comes.
#[apply(in_chromium)]
async fn clicks_keep_their_order(db: TestDatabase) {
    let board =
        "/studio?customer=c-014871&slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259&from=1:7f&from=2:8e";
    let (_service, window) = stylist(&db, board).await;
    window.until_loaded().await;
    window.run("const send = fetch; let first = true; window.answers = 0; window.fetch = async (...request) => { \
                const late = first; first = false; const answer = await send(...request); \
                if (late) await new Promise(done => setTimeout(done, 1500)); answers++; return answer; }").await;
    window.run("document.querySelector('#lock-1').click(); document.querySelector('#lock-2').click()").await;
    window.until("answers === 2 && document.querySelector('.htmx-request') === null").await;
    let loose = "return new URL(location).searchParams.getAll('loose')";
    assert_eq!(window.run(loose).await, json!(["2"]), "the second click");
}

#[apply(in_chromium)]
async fn adds_one_note_with_a_double_click(Demo(service): Demo) {
    for (scripts, id) in [(true, "c-014871"), (false, "c-000010")] {
        let page = format!("/studio?customer={id}");
        let window = signed_in(&service, Role::Stylist, Eyes { scripts, ..Eyes::default() }).await;
        window.goto(&page).await;
        window.fill("#note", "Boots in 38").await;
        window.click_twice("form[action='/studio/notes'] .button").await;
        window.until("document.querySelector('.history').innerText.includes('Boots in 38')").await;
        // The second request may still be on its way.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let id = CustomerId::new(id).unwrap();
        let notes = service.store.notes().for_customer(&id).try_collect::<Vec<_>>().await.unwrap();
        assert_eq!(notes.len(), 1, "with scripts: {scripts}");
        assert_eq!(window.run("return location.pathname + location.search").await, page);
        window.goto(&page).await;
        assert_eq!(window.count(".history > li").await, 1, "with scripts: {scripts}");
    }
}

#[apply(in_chromium)]
async fn turns_the_keys_off(db: TestDatabase) {
    let (_service, window) = stylist(&db, BOARD).await;
    window.until_count(".suggestions > li", 8).await;
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
    window.goto(BOARD).await;
    window.until_count(".suggestions > li", 8).await;
    assert_eq!(press_x().await, false, "the switch is kept");
    window.click("[data-opens=keys]").await;
    assert_eq!(window.run("return document.querySelector('#keys-on').checked").await, false);
    window.click("#keys-on").await;
    window.click("#keys .button").await;
    window.press("ArrowLeft").await;
    assert_eq!(press_x().await, true);
}
