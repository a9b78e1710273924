//! A stylist completes an outfit for a customer and saves it, with and without scripts.

use atelier_core::domain::{CustomerId, FeatureValue, Role};
use serde_json::json;

use crate::{
    browser::{open, signed_in},
    harness::{
        Demo, Html, Service, TestDatabase, apply,
        browser::{Eyes, Window},
        in_chromium,
    },
};

const BOARD: &str = "/studio?customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259";

#[apply(in_chromium)]
async fn completes_and_saves_an_outfit(db: TestDatabase) {
    story(db, Eyes::default()).await;
}

#[apply(in_chromium)]
async fn completes_and_saves_an_outfit_without_scripts(db: TestDatabase) {
    story(db, Eyes { scripts: false, ..Eyes::default() }).await;
}

async fn story(db: TestDatabase, eyes: Eyes) {
    let service = Service::demo(&db).await;
    let customer = CustomerId::new("c-014871").unwrap();
    let before = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap();
    let window = signed_in(&service, Role::Stylist, eyes).await;

    // The customer: with scripts, the search starts by itself.
    window.goto("/studio").await;
    window.fill("#find", "sweden 0148").await;
    if !eyes.scripts {
        window.click_words("Find").await;
    }
    window.until_count("#found li", 1).await;
    window.click_words_until("c-014871", "no leather").await;

    // A stored outfit; its first article is replaced by another of its type.
    window.click(".outfits a").await;
    window.click_until("#edit", "with the rest of the outfit").await;
    let was = window.text(".slot .name").await;
    window.click_until("#slot-0", "Which bag?").await;
    let suggested = window.text(".suggestions .name").await;

    // Reject the first suggestion, so that the next one moves up, and accept that.
    window.click(".suggestions .more").await;
    window.click_words("Not for this customer").await;
    let first = "document.querySelector('.suggestions .name').innerText";
    window.until(&format!("{first} !== {suggested:?}")).await;
    if window.text(".suggestions .name").await == was {
        window.click(".suggestions .more").await;
        window.click_words("Not for this customer").await;
        window.until(&format!("{first} !== {was:?}")).await;
    }
    let taken = window.text(".suggestions .name").await;
    window.click_words("Use this").await;
    window.until(&format!("document.querySelector('.slot .name')?.innerText === {taken:?}")).await;

    window.click_until("#save", "Saved as outfit").await;
    let outfits = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap();
    assert_eq!(outfits.len(), before.len() + 1);
    let kept = &outfits.last().unwrap().outfit;
    let first = service.store.articles().get(&kept.articles()[0]).await.unwrap().unwrap();
    assert_eq!(first.words("name").next(), Some(taken.as_str()));
    assert_eq!(kept.articles()[1..], before[0].outfit.articles()[1..]);
    assert_eq!(kept.features, before[0].outfit.features, "the occasion is the outfit's");
}

#[apply(in_chromium)]
async fn refuses_without_losing_the_place(Demo(service): Demo) {
    for width in [1440, 390] {
        let window = signed_in(&service, Role::Stylist, Eyes { width, ..Eyes::default() }).await;
        window.goto(BOARD).await;
        window.until_count(".suggestions > li", 8).await;
        window
            .run(
                "document.querySelector('#about-1-6').scrollIntoView({block: 'center', behavior: 'instant'})",
            )
            .await;
        let places = async || -> [f64; 2] {
            let places = "return [scrollY, document.querySelector('#about-1-6').getBoundingClientRect().top]";
            serde_json::from_value(window.run(places).await).unwrap()
        };
        let before = places().await;
        assert!(before[0] > 100.0, "{before:?}");
        let sixth = "document.querySelectorAll('.suggestions .name')[5].innerText";
        let refused = window.run(&format!("return {sixth}")).await;
        // A click by script does not focus the button, as Safari's do not.
        window.run("document.querySelector('#not-1-6').click()").await;
        window.until_words("not for this customer undo").await;
        window.until("document.activeElement.id === 'about-1-6'").await;
        let after = places().await;
        let stays = before.iter().zip(after).all(|(before, after)| (before - after).abs() <= 50.0);
        assert!(stays, "{width}: from {before:?} to {after:?}");
        assert_ne!(window.run(&format!("return {sixth}")).await, refused);

        window.click("#undo").await;
        window.until(&format!("{sixth} === {refused}")).await;
        window.until_gone("#undo").await;
        window.until("document.activeElement.id === 'about-1-6'").await;
        // What was refused before is shown again from the filters, and has the focus.
        window.run("document.querySelector('#not-1-1').click()").await;
        window.until_words("not for this customer undo").await;
        if width == 390 {
            window.click("#to-settings").await;
        }
        window.click(".refused .plain, details:has(.refused) summary").await;
        window.click(".refused .plain").await;
        window.until_gone(".refused").await;
        window.until("document.activeElement.id === 'about-1-1'").await;
    }
}

#[apply(in_chromium)]
async fn dresses_a_customer_in_ten_clicks_from_a_fresh_sign_in(db: TestDatabase) {
    const PASSWORD: &str = "a horse in Zurich";
    let service = Service::demo(&db).await;
    let customer = CustomerId::new("c-014871").unwrap();
    let before = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap().len();
    service.signed_in(Role::Stylist).await.change("/password", &[("password", PASSWORD)]).await;
    let window = Window::open(Eyes::default()).await;
    window.goto(format!("{}/studio", service.url)).await;
    let began = std::time::Instant::now();
    window.fill("#name", "Some stylist").await;
    window.fill("#password", PASSWORD).await;
    window.click_until("main form .button", "Who are you styling?").await;
    assert_eq!((window.clicks(), window.run("return location.pathname").await), (1, json!("/studio")));

    window.fill("#find", "sweden 0148").await;
    window.until_count("#found li", 1).await;
    window.click_until("#found li a", "For Odile Huber").await;
    assert_eq!(window.clicks(), 2, "one to sign in, one to choose the customer");

    window.click_words("office").await;
    window.until("location.search.includes('own.occasion=office')").await;
    window.click(".sets a").await;
    window.until("!new URL(location).searchParams.getAll('slot').includes('')").await;
    // Another article for a piece, after refusing one.
    window.click("#slot-0").await;
    window.click(".suggestions .more").await;
    window.click_until("[id^=not-]", "not for this customer undo").await;
    window.click(".suggestions .take").await;
    window.click("#save-and-share").await;
    window.text("#link").await.has(["/shared/"]);
    window.click("#copy-link").await;
    window.click_words("Studio").await;
    window.until_words("Who are you styling?").await;
    assert_eq!(window.clicks(), 11, "ten for a customer");
    println!("from sign-in to the next customer: {:.1} s", began.elapsed().as_secs_f64());
    let outfits = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap();
    assert_eq!(outfits.len(), before + 1);
    let saved = &outfits.last().unwrap().outfit;
    assert_eq!(saved.articles().len(), 4);
    assert_eq!(saved.features.get("occasion"), Some(&FeatureValue::Text("office".into())));
}

#[apply(in_chromium)]
async fn drags_a_suggestion_to_a_place(Demo(service): Demo) {
    let path = "/studio?customer=c-014871&slot=a-00134&slot=&type=1:coat";
    let window = open(&service, Role::Stylist, path).await;
    // To the blank itself, to the place of another article, and beside them.
    for (place, expected) in
        [(1, "[first, dropped, undefined]"), (0, "[dropped, '', undefined]"), (2, "[first, '', dropped]")]
    {
        let dropped = window.run("return document.querySelector('#not-1-2').value.split('/').pop()").await;
        let to = format!(".board .slot:nth-child({})", place + 1);
        window.drag(".suggestions > li:nth-child(2) .take", &to).await;
        let found = "new URL(location).searchParams.getAll('slot')";
        let all = format!("{expected}.every((article, place) => found[place] === article)");
        window.until(&format!("((first, dropped, found) => {all})('a-00134', {dropped}, {found})")).await;
        let from = window.run("return new URL(location).searchParams.get('from')").await;
        assert!(from.as_str().unwrap().starts_with(&format!("{place}:")), "{from}");
        window.until_parameter("type", "1:coat").await;
        window.goto(path).await;
    }
}

#[apply(in_chromium)]
async fn works_with_the_keyboard_alone(Demo(service): Demo) {
    let window = open(&service, Role::Stylist, BOARD).await;
    let press = async |key| window.press(key).await;
    window.until_count(".suggestions > li", 8).await;
    press("?").await;
    window.until_words("use this suggestion").await;
    window.click("#keys .button").await;
    let names = "[...document.querySelectorAll('.suggestions .name')].map(name => name.innerText)";
    let before = window.run(&format!("return {names}")).await;
    for _ in 0..3 {
        press("ArrowRight").await;
    }
    press("ArrowLeft").await;
    window.until("document.activeElement.closest('li').id.startsWith('suggestion-1-')").await;
    // The second goes, and the focus is at the one that takes its place.
    press("x").await;
    window.until(&format!("{names}[1] === {}", before[2])).await;
    window.until("document.activeElement.id === 'take-1-2'").await;
    press("z").await;
    window.until(&format!("{names}[1] === {}", before[1])).await;
    let board = window.address().await;
    press("/").await;
    window.until("document.activeElement.id === 'pick-search'").await;
    window.goto(&board).await;
    press("ArrowRight").await;
    // With Caps Lock, too.
    press("U").await;
    window
        .until(&format!("document.querySelector('.slot:nth-child(2) .name')?.innerText === {}", before[0]))
        .await;
    // Without a blank, the search is for one more piece.
    press("/").await;
    window.until("document.activeElement.id === 'pick-search'").await;
    window.until_parameter("pick", "4").await;
    window.click_words("Close").await;
    window.until_gone("#pick-search").await;
    window.click("#more-4").await;
    window.click("#remove-4").await;
    window.until("new URL(location).searchParams.getAll('slot').length === 4").await;
    press("s").await;
    window.until_words("Saved as outfit").await;
}

#[apply(in_chromium)]
async fn is_told_about_a_lost_connection_and_a_lost_photo(Demo(service): Demo) {
    let photo = json!({"type": "coat", "image": "https://127.0.0.1:9/coat.jpg"});
    service.put("/articles/a-photo", &photo).await;
    let window = open(&service, Role::Stylist, "/studio?slot=a-photo&slot=").await;
    let picture = "document.querySelector('#slot-0 img')";
    window
        .until(&format!("{picture}.src.includes('/pictures/coat.svg') && {picture}.naturalWidth > 0"))
        .await;

    service.stop().await;
    window.click_until("#add", "Your last click may or may not have counted").await;
}
