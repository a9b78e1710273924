//! A merchandiser's rule, from the draft over its preview and its schedule to its end.

use std::time::{Duration, SystemTime};

use atelier_core::{domain::Role, util::calendar};
use serde_json::json;

use crate::{
    browser::signed_in,
    harness::{Service, TestDatabase, apply, browser::Eyes, ids, in_chromium},
};

#[apply(in_chromium)]
async fn a_rule_from_draft_to_expiry(db: TestDatabase) {
    story(db, Eyes::default()).await;
}

#[apply(in_chromium)]
async fn a_rule_from_draft_to_expiry_without_scripts(db: TestDatabase) {
    story(db, Eyes { scripts: false, ..Eyes::default() }).await;
}

async fn story(db: TestDatabase, eyes: Eyes) {
    let service = Service::demo(&db).await;
    let suggested = async || -> String {
        let request =
            json!({"customer": "c-014871", "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 5});
        ids(&service.ask_ok("/complete", request).await["blanks"][0]["suggestions"]).remove(0)
    };
    let best = suggested().await;
    let window = signed_in(&service, Role::Merchandiser, eyes).await;
    window.goto("/merchandising").await;
    window.click_words("New rule").await;
    window.fill("#name", "Recalled & gone").await;
    window.fill("#articles-ids-find", &best).await;
    window.click("#articles-ids-more").await;
    window.click(".found input").await;
    window.fill("#note", "The zip breaks").await;
    window.click("#preview").await;
    window.until_words(&format!("Never suggests the articles named {best}. Concerns all requests.")).await;
    window.until_words("It matches 1 of the shop's articles. It is not stored yet.").await;
    assert_eq!(window.text("dl.figures div:nth-child(1) dd").await, "1");
    assert_eq!(window.text("dl.figures div:nth-child(2) dd").await, "1 (100 %)");
    assert!(window.texts(".moves").await.pop().unwrap().contains(&best), "it is suggested less");
    window.click("#store").await;
    let state = "document.querySelector('tbody td:nth-child(3)')?.innerText";
    window.until(&format!("{state} === 'draft'")).await;
    assert_eq!(suggested().await, best, "a draft does nothing");

    // It counts for some seconds.
    window.click_words("Recalled & gone").await;
    window.choose("#state", "active").await;
    let ends = SystemTime::now() + Duration::from_secs(20);
    let ends = calendar::rfc3339(ends).trim_end_matches('Z').to_owned();
    window.run(&format!("document.querySelector('#ends_at').value = '{ends}'")).await;
    window.click("#store").await;
    window.until_words("It is not stored yet.").await;
    window.click("#store").await;
    window.until(&format!("{state} === 'active'")).await;
    assert_ne!(suggested().await, best);
    loop {
        window.goto("/merchandising").await;
        if window.text("tbody td:nth-child(3)").await == "ended" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(suggested().await, best, "it has ended");

    // Its first version comes back, and is turned on and off on pages that say what that changes.
    window.click_words("Recalled & gone").await;
    window.click_words("Bring back").await;
    window.until("document.querySelector('#state').value === 'draft'").await;
    window.click("#store").await;
    window.until(&format!("{state} === 'draft'")).await;
    window.click_words_until("Turn on …", "Turn on Recalled & gone?").await;
    assert_eq!(suggested().await, best, "the page that reviews it changes nothing");
    window.click("#make").await;
    window.until(&format!("{state} === 'active'")).await;
    assert_ne!(suggested().await, best);
    window.click_words_until("Turn off …", "This no longer applies").await;
    window.click("#make").await;
    window.until(&format!("{state} === 'off'")).await;
    assert_eq!(suggested().await, best);
    window.click("#undo").await;
    window.until(&format!("{state} === 'active'")).await;
    assert_ne!(suggested().await, best);
}
