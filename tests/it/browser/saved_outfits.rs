//! A stylist finishes a draft, shows it to the customer and copies it; and says why not.

use atelier_core::domain::Role;
use serde_json::{Value, json};

use crate::{
    browser::{open, stylist},
    harness::{
        Html, TestDatabase, apply,
        browser::{Eyes, Window},
        each, in_chromium,
    },
};

const DRAFT: &str = "customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259";

#[apply(in_chromium)]
async fn finishes_a_draft_and_shows_it_to_the_customer(db: TestDatabase) {
    let (_service, window) = stylist(&db, &format!("/studio?{DRAFT}")).await;
    window.click_until("#save", "Saved as draft").await;

    // A name and a note.
    window.click_words("Name, print or share it").await;
    window.fill("#name", "Autumn office").await;
    window.fill("#note", "Boots in 38").await;
    window.click("#save-words").await;
    window.until("document.querySelector('h1').innerText === 'Autumn office'").await;
    let page = window.address().await.split('?').next().unwrap().to_owned();

    // Its blank is filled in place.
    window.click_until("#edit", "Saved as outfit").await;
    let taken = window.text(".suggestions .name").await;
    window.click("#take-1-1").await;
    window.until_count(".board img", 4).await;
    window.until_words("not saved yet").await;
    window.click("#save").await;
    window.click_words_until("Name, print or share it", "Autumn office").await;
    window.until(&format!("location.href.startsWith('{page}')")).await;
    window.until_words(&taken).await;
    window.until_words(&format!("added {taken}")).await;
    assert_eq!(window.count(".pieces .blank").await, 0);

    window.fill("#copy-customer", "c-000010").await;
    window.click("#copy-button").await;
    window.until(&format!("!location.href.startsWith('{page}')")).await;
    window.until_words("For Ada Amsler").await;

    // On paper, there are only the pieces.
    window.chromium("Emulation.setEmulatedMedia", &json!({"media": "print"})).await;
    for hidden in [".site", ".cards", "#edit"] {
        let shown = format!("return document.querySelector('{hidden}').getClientRects().length");
        assert_eq!(window.run(&shown).await, 0, "{hidden}");
    }
    let pieces = "return [...document.querySelectorAll('.pieces img')].every(one => one.getClientRects().length === 1)";
    assert_eq!(window.run(pieces).await, true);
    window.chromium("Emulation.setEmulatedMedia", &json!({"media": "screen"})).await;

    // The customer opens the link in a browser of their own.
    window.goto(&page).await;
    window.click("#make-link").await;
    let link = window.text("#link").await;
    let guest = Window::open(Eyes::default()).await;
    guest.goto(&link).await;
    for words in ["Autumn office", &taken, "Total €"] {
        guest.until_words(words).await;
    }
    let loaded = "[...document.images].filter(one => one.complete && one.naturalWidth > 0).length === 4";
    guest.until(loaded).await;
    assert_eq!(guest.run("return document.querySelector('nav, header, a')").await, Value::Null);
    guest.text("body").await.lacks(["c-014871", "Boots in 38", "%"]);

    // The customer answers, and the stylist sees it in the queue. The link survives a reload, and is copied.
    guest.click_until("#dislike-2", "Sent to your stylist").await;
    guest.fill("#text", "Is there one in red?").await;
    guest.click("#send").await;
    guest.until("document.querySelector('#text').value === ''").await;
    window.goto(&page).await;
    assert_eq!(window.text("#link").await, link);
    window.click("#copy-link").await;
    window.until("/Copied|Selected/.test(document.querySelector('#copy-link').innerText)").await;
    window.goto("/studio").await;
    window.until_words("Replies").await;
    window.until_words("Link open until").await;
    window.click("[aria-labelledby=replied-title] .outfit").await;
    window.until_words(&format!("Dislikes {taken}")).await;
    window.until_words("Asks: Is there one in red?").await;
    window.click("#answer").await;
    window.until_gone("#answer").await;

    window.click("#withdraw").await;
    window.until_gone("#withdraw").await;
    guest.goto(&link).await;
    guest.until_words("Link not available").await;
}

#[apply(in_chromium)]
async fn says_why_and_looks_at_an_article(db: TestDatabase) {
    let (service, window) = stylist(&db, &format!("/studio?{DRAFT}")).await;
    window.click("#about-1-1").await;
    window.click_until("#not-1-1", "Why?").await;
    for reason in ["#reason-too-dear", "#reason-style"] {
        window.click(reason).await;
        window.until(&format!("document.querySelector('{reason}').ariaPressed === 'true'")).await;
    }
    assert_eq!(window.count("#reason-too-dear[aria-pressed=false]").await, 1);
    let export = service.json("/customers/c-014871/export").await;
    each(&export["feedback"], "reason").to_string().has(["\"style\""]);
    let analyst = open(&service, Role::Analyst, "/operations/acceptance").await;
    analyst.until_words("Why suggestions were refused").await;
    analyst.until_words("Not their style").await;

    let details = "document.querySelector('.board a[target=_blank]').href";
    let address = window.run(&format!("return {details}")).await;
    window.goto(address.as_str().unwrap()).await;
    window.until_words("a-00134").await;
    window.until_count(".pieces img", 1).await;
    window.until("document.querySelectorAll('th').length > 2").await;
}
