//! A stylist keeps a draft, finishes it, shows it to the customer, copies and deletes it, and takes notes.

use atelier_core::domain::CustomerId;
use serde_json::{Value, json};

use super::stylist;
use crate::harness::{
    TestDatabase, apply,
    browser::{Eyes, Window},
    in_chromium,
};

const DRAFT: &str = "customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259";

#[apply(in_chromium)]
async fn finishes_a_draft_and_shows_it_to_the_customer(db: TestDatabase) {
    let (service, window) = stylist(&db, &format!("/studio?{DRAFT}")).await;
    window.click("#save").await;
    window.until_words("Saved as draft").await;

    // A name and a note.
    window.click_words("Name, print or share it").await;
    window.fill("#name", "Autumn office").await;
    window.fill("#note", "Boots in 38").await;
    window.click("#save-words").await;
    window.until("document.querySelector('h1').innerText === 'Autumn office'").await;
    let page = window.address().await.split('?').next().unwrap().to_owned();

    // Its blank is filled in place.
    window.click("#edit").await;
    window.until_words("Saved as outfit").await;
    let taken = window.text(".suggestions .name").await;
    window.click("#take-1-1").await;
    window.until("document.querySelectorAll('.board img').length === 4").await;
    window.until_words("not saved yet").await;
    window.click("#save").await;
    window.click_words("Name, print or share it").await;
    window.until_words("Autumn office").await;
    window.until(&format!("location.href.startsWith('{page}')")).await;
    window.until_words(&taken).await;
    window.until_words(&format!("added {taken}")).await;
    assert_eq!(window.run("return document.querySelectorAll('.pieces .blank').length").await, 0);

    window.fill("#copy-customer", "c-000010").await;
    window.click("#copy-button").await;
    window.until(&format!("!location.href.startsWith('{page}')")).await;
    window.until_words("For c-000010").await;

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
    guest.until_words("Autumn office").await;
    guest.until_words(&taken).await;
    guest.until_words("Total €").await;
    let loaded = "[...document.images].filter(one => one.complete && one.naturalWidth > 0).length === 4";
    guest.until(loaded).await;
    assert_eq!(guest.run("return document.querySelector('nav, header, a')").await, Value::Null);
    let shown = guest.text("body").await;
    for hidden in ["c-014871", "Boots in 38", "%"] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }

    // The customer answers, and the stylist sees it in the queue. The link survives a reload, and is copied.
    guest.click("#dislike-2").await;
    guest.until_words("Sent to your stylist").await;
    guest.fill("#text", "Is there one in red?").await;
    guest.click("#send").await;
    guest.until("document.querySelector('#text').value === ''").await;
    window.goto(&page).await;
    assert_eq!(window.text("#link").await, link);
    window.click("#copy-link").await;
    window.until("/Copied|Selected/.test(document.querySelector('#copy-link').innerText)").await;
    window.goto(&format!("{}/studio", service.url)).await;
    window.until_words("Replies").await;
    window.until_words("Link open until").await;
    window.click("[aria-labelledby=replied-title] .outfit").await;
    window.until_words(&format!("Dislikes {taken}")).await;
    window.until_words("Asks: Is there one in red?").await;
    window.click("#answer").await;
    window.until("!document.querySelector('#answer')").await;

    window.click("#withdraw").await;
    window.until("!document.querySelector('#withdraw')").await;
    guest.goto(&link).await;
    guest.until_words("Link not available").await;
}

#[apply(in_chromium)]
async fn keeps_a_draft_for_nobody_and_gives_it_to_a_customer(db: TestDatabase) {
    let (service, window) = stylist(&db, "/studio").await;
    window.click_words("Or start an outfit without a customer").await;
    window.click(".sets a").await;
    window.click("#save").await;
    window.until_words("Saved as draft").await;

    // The occasion changes the same draft.
    window.click("[aria-labelledby=purpose-1] li:nth-child(3) a").await;
    window.until_words("not saved yet").await;
    window.click("#save").await;
    window.until_words("Saved as draft").await;
    window.goto(&format!("{}/studio", service.url)).await;
    window.until("document.querySelectorAll('[aria-labelledby=drafts-title] li').length === 1").await;
    window.until_words("for no customer yet").await;

    window.click("[aria-labelledby=drafts-title] .outfit").await;
    window.fill("#give-customer", "c-014871").await;
    window.click("#give-button").await;
    window.until_words("For c-014871").await;
    window.until("!document.querySelector('h1 + p .new')").await;
    window.click("#edit").await;
    window.until_words("with the rest of the outfit").await;
    let customer = CustomerId::new("c-014871").unwrap();
    let kept = service.store.outfits().for_customer(&customer, 0, 9).await.unwrap().pop().unwrap();
    assert_eq!(kept.outfit.features.iter().count(), 1, "the occasion");
}

#[apply(in_chromium)]
async fn deletes_an_outfit_and_brings_it_back(db: TestDatabase) {
    let (service, window) = stylist(&db, &format!("/studio?{DRAFT}")).await;
    window.click("#save").await;
    window.click_words("Name, print or share it").await;
    window.click("#delete").await;
    window.until_words("No saved outfits yet").await;
    window.click("#undo").await;
    window.until_words("Restored").await;

    // It is found by the customer's id, as one types.
    window.goto(&format!("{}/studio/outfits", service.url)).await;
    window.fill("#find", "c-0148").await;
    window.until("location.href.includes('find=c-0148')").await;
    window.until("document.querySelectorAll('.outfits > li').length === 1").await;
    window.fill("#find", "somebody").await;
    window.until_words("No outfits match").await;
}

#[apply(in_chromium)]
async fn adds_and_corrects_a_customer_with_a_name(db: TestDatabase) {
    let (service, window) = stylist(&db, "/studio").await;
    window.click_words("Add a customer").await;
    window.fill("#new-id", "c-014871").await;
    window.fill("[name='is.name']", "Jana Müller").await;
    window.choose("[name='is.shoe_size']", "38").await;
    window.fill("[name='is.height']", "165").await;
    window.run("document.querySelector('[name=\"is.preferred_colours\"][value=navy]').click()").await;
    window.click("#save-profile").await;
    window.until_words("there is already a customer c-014871").await;
    let colour = "return getComputedStyle(document.querySelector('.notice')).borderLeftColor";
    let of_error = window.run(colour).await;
    assert_eq!(
        window.run("return document.querySelector('[name=\"is.name\"]').value").await,
        json!("Jana Müller")
    );
    window.fill("#new-id", "jana").await;
    window.click("#save-profile").await;
    window.until_words("For Jana Müller").await;
    window.until_words("shoe size 38").await;
    window.click("#correct").await;
    window.choose("[name='is.shoe_size']", "39").await;
    window.click("#save-profile").await;
    window.until_words("shoe size 39").await;
    window.until_words("For Jana Müller").await;
    let stored = service.json("/customers/jana").await;
    assert_eq!(
        stored["features"],
        json!({"name": "Jana Müller", "shoe_size": "39", "height": 165, "preferred_colours": ["navy"]})
    );

    // The name leads everywhere, and finds her.
    window.goto(&format!("{}/studio?find=mueller", service.url)).await;
    window.until("document.querySelector('#found strong').innerText === 'Jana Müller'").await;
    window.goto(&format!("{}/studio?{}", service.url, DRAFT.replace("c-014871", "jana"))).await;
    window.click("#save").await;
    window.until_words("Saved as").await;
    assert_ne!(window.run(colour).await, of_error, "success looks different");
    window.click_words("Name, print or share it").await;
    window.until_words("For Jana Müller · jana").await;
    window.goto(&format!("{}/studio/outfits", service.url)).await;
    window.until_words("for Jana Müller · jana").await;
}

#[apply(in_chromium)]
async fn says_why_and_looks_at_an_article(db: TestDatabase) {
    let (service, window) = stylist(&db, &format!("/studio?{DRAFT}")).await;
    window.click("#not-1-1").await;
    window.until_words("Why?").await;
    window.click("#reason-too-dear").await;
    window.until("document.querySelector('#reason-too-dear').ariaPressed === 'true'").await;
    window.click("#reason-style").await;
    window.until("document.querySelector('#reason-style').ariaPressed === 'true'").await;
    assert_eq!(
        window.run("return document.querySelector('#reason-too-dear').ariaPressed").await,
        json!("false")
    );
    let export = service.json("/customers/c-014871/export").await;
    let reasons: Vec<&Value> =
        export["feedback"].as_array().unwrap().iter().map(|event| &event["reason"]).collect();
    assert!(reasons.contains(&&json!("style")), "{reasons:?}");
    let analyst = super::signed_in(&service, atelier_core::domain::Role::Analyst, Eyes::default()).await;
    analyst.goto(&format!("{}/operations/acceptance", service.url)).await;
    analyst.until_words("Why suggestions were refused").await;
    analyst.until_words("Not their style").await;

    let details = "document.querySelector('.board a[target=_blank]').href";
    let address = window.run(&format!("return {details}")).await;
    window.goto(address.as_str().unwrap()).await;
    window.until_words("a-00134").await;
    window.until("document.querySelectorAll('.pieces img').length === 1 && document.querySelectorAll('th').length > 2").await;
}

#[apply(in_chromium)]
async fn begins_the_day_at_the_queue(db: TestDatabase) {
    let (service, window) = stylist(&db, &format!("/studio?{DRAFT}")).await;
    window.click_words("Not for this customer").await;
    window.until_words("not for this customer undo").await;
    window.click("#save").await;
    window.until_words("Saved as draft").await;

    window.goto(&format!("{}/studio", service.url)).await;
    window.until_words("Your drafts").await;
    window.until_words("1 suggestion refused since their last outfit").await;
    window.click(".queue .people a").await;

    // The customer's page: a note, and what they refused.
    window.until_words("No notes yet").await;
    window.until("document.querySelectorAll('[aria-labelledby=refused-title] li').length === 1").await;
    window.click_words("Suggest again").await;
    window.until("!document.querySelector('#refused-title')").await;
    window.fill("#note", "Prefers calls at night").await;
    window.click_words("Add note").await;
    window.until("document.querySelector('.history').innerText.includes('Prefers calls at night')").await;
    window.click(".history .plain").await;
    window.until_words("No notes yet").await;

    window.click_words("Continue").await;
    window.until_words("Saved as outfit").await;
}
