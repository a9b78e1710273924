//! A stylist completes an outfit for a customer and saves it, with and without scripts.

use atelier::outcomes::FeedbackKind;
use atelier_core::domain::{CustomerId, FeatureValue, Role};
use futures_util::TryStreamExt;
use serde_json::json;

use super::{signed_in, stylist};
use crate::{
    harness::{
        TestDatabase, apply,
        browser::{Eyes, Window},
        in_chromium,
    },
    web::{Demo, Service},
};

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
    window.goto(&format!("{}/studio", service.url)).await;
    window.fill("#find", "sweden 0148").await;
    if !eyes.scripts {
        window.click_words("Find").await;
    }
    window.until("document.querySelectorAll('#found li').length === 1").await;
    window.click_words("c-014871").await;
    window.until_words("no leather").await;

    // A stored outfit; its first article is replaced by another of its type.
    window.click(".outfits a").await;
    window.click("#edit").await;
    window.until_words("with the rest of the outfit").await;
    let was = window.text("#slot-0 + .piece .name").await;
    window.click("#slot-0").await;
    window.until_words("Which bag?").await;
    let suggested = window.text(".suggestions .name").await;

    // Reject the first suggestion, so that the next one moves up, and accept that.
    window.click_words("Not for this customer").await;
    let first = "document.querySelector('.suggestions .name').innerText";
    window.until(&format!("{first} !== {suggested:?}")).await;
    if window.text(".suggestions .name").await == was {
        window.click_words("Not for this customer").await;
        window.until(&format!("{first} !== {was:?}")).await;
    }
    let taken = window.text(".suggestions .name").await;
    window.click_words("Use this").await;
    window.until(&format!("document.querySelector('#slot-0 + .piece .name')?.innerText === {taken:?}")).await;

    window.click("#save").await;
    window.until_words("Saved as outfit").await;
    let outfits = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap();
    assert_eq!(outfits.len(), before.len() + 1);
    let kept = &outfits.last().unwrap().outfit;
    let first = service.store.articles().get(&kept.articles()[0]).await.unwrap().unwrap();
    assert_eq!(first.words("name").next(), Some(taken.as_str()));
    assert_eq!(kept.articles()[1..], before[0].outfit.articles()[1..]);
    assert_eq!(kept.features, before[0].outfit.features, "the occasion is the outfit's");

    let events = service.store.feedback().for_customer(&customer).try_collect::<Vec<_>>().await.unwrap();
    let kinds: Vec<FeedbackKind> = events.iter().map(|event| event.kind).collect();
    let kinds: Vec<FeedbackKind> = kinds.into_iter().filter(|kind| *kind != FeedbackKind::Shown).collect();
    let (accepted, rejected) = kinds.split_last().unwrap();
    assert_eq!(*accepted, FeedbackKind::Accepted);
    assert!(!rejected.is_empty() && rejected.iter().all(|kind| *kind == FeedbackKind::Rejected), "{kinds:?}");
    let used = events.iter().find(|event| event.kind == FeedbackKind::Accepted).unwrap();
    assert_eq!(used.article, kept.articles()[0]);
    let shown = events.iter().filter(|event| event.kind == FeedbackKind::Shown).count();
    assert_eq!(shown, 8 + rejected.len(), "each tile was shown once");
}

#[apply(in_chromium)]
async fn refuses_without_losing_the_place(Demo(service): Demo) {
    for width in [1440, 390] {
        let window = signed_in(&service, Role::Stylist, Eyes { width, ..Eyes::default() }).await;
        let outfit = "slot=a-00134&slot=&slot=a-00568&slot=a-00259";
        window.goto(&format!("{}/studio?customer=c-014871&{outfit}", service.url)).await;
        window.until("document.querySelectorAll('.suggestions > li').length === 8").await;
        window
            .run("document.querySelector('#not-1-6').scrollIntoView({block: 'center', behavior: 'instant'})")
            .await;
        let places = "return [scrollY, document.querySelector('#not-1-6').getBoundingClientRect().top]";
        let before = window.run(places).await;
        assert!(before[0].as_f64().unwrap() > 100.0, "{before}");
        let sixth = "document.querySelectorAll('.suggestions .name')[5].innerText";
        let refused = window.run(&format!("return {sixth}")).await;
        // A click by script does not focus the button, as Safari's do not.
        window.run("document.querySelector('#not-1-6').click()").await;
        window.until_words("not for this customer undo").await;
        window.until("document.activeElement.id === 'not-1-6'").await;
        let after = window.run(places).await;
        for place in [0, 1] {
            let moved = before[place].as_f64().unwrap() - after[place].as_f64().unwrap();
            assert!(moved.abs() <= 50.0, "{width}: from {before} to {after}");
        }
        assert_ne!(window.run(&format!("return {sixth}")).await, refused);

        window.click("#undo").await;
        window.until(&format!("{sixth} === {refused}")).await;
        window.until("!document.querySelector('#undo')").await;
        window.until("document.activeElement.id === 'not-1-6'").await;
        // What was refused before is shown again from the filters, and has the focus.
        window.run("document.querySelector('#not-1-1').click()").await;
        window.until_words("not for this customer undo").await;
        window.click(".refused .plain, details:has(.refused) summary").await;
        window.click(".refused .plain").await;
        window.until("!document.querySelector('.refused')").await;
        window.until("document.activeElement.id === 'not-1-1'").await;
    }
}

#[apply(in_chromium)]
async fn dresses_a_customer_in_four_clicks_from_a_fresh_sign_in(db: TestDatabase) {
    const PASSWORD: &str = "a horse in Zurich";
    let service = Service::demo(&db).await;
    let customer = CustomerId::new("c-014871").unwrap();
    let before = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap().len();
    let set = service.signed_in(Role::Stylist).await.post("/password", &[("password", PASSWORD)]).await;
    assert_eq!(set.status(), 303);
    let window = Window::open(Eyes::default()).await;
    window.goto(&format!("{}/studio", service.url)).await;
    let began = std::time::Instant::now();
    window.fill("#name", "Some stylist").await;
    window.fill("#password", PASSWORD).await;
    window.click("main form .button").await;
    window.until_words("Who are you styling?").await;
    assert_eq!((window.clicks(), window.run("return location.pathname").await), (1, json!("/studio")));

    window.fill("#find", "sweden 0148").await;
    window.until("document.querySelectorAll('#found li').length === 1").await;
    window.click("#found li a").await;
    window.until_words("For c-014871").await;
    assert_eq!(window.clicks(), 2, "one to sign in, one to choose the customer");

    window.click_words("New outfit").await;
    window.click_words("office").await;
    window.until("location.search.includes('own.occasion=office')").await;
    window.click(".sets a").await;
    window.until("!new URL(location).searchParams.getAll('slot').includes('')").await;
    window.click("#save").await;
    window.until_words("Saved as outfit").await;
    assert_eq!(window.clicks(), 6, "four from the chosen customer");
    println!("from sign-in to a saved outfit: {:.1} s", began.elapsed().as_secs_f64());
    let outfits = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap();
    assert_eq!(outfits.len(), before + 1);
    let saved = &outfits.last().unwrap().outfit;
    assert_eq!(saved.articles().len(), 4);
    assert_eq!(saved.features.get("occasion"), Some(&FeatureValue::Text("office".into())));
    let counts = service.store.feedback().counts().await.unwrap();
    assert_eq!(counts.iter().map(|counts| counts.outcomes.accepted).sum::<u64>(), 4);
}

#[apply(in_chromium)]
async fn asks_for_other_ideas(db: TestDatabase) {
    let (_service, window) = stylist(&db, "/studio?customer=c-014871&slot=a-00134&slot=&slot=&slot=").await;
    let slots = "return new URL(location).searchParams.getAll('slot')";
    let whole = "!new URL(location).searchParams.getAll('slot').includes('')";
    window.click(".sets a").await;
    window.until(whole).await;
    let first = window.run(slots).await;
    window.click("#other-ideas").await;
    window.until_words("Ideas for the whole outfit").await;
    // The stylist's own piece stays, and the best ideas are one click away.
    assert_eq!(window.run(slots).await, json!(["a-00134", "", "", ""]));
    window.until_words("Show the best").await;
    window.click(".sets a").await;
    window.until(whole).await;
    let second = window.run(slots).await;
    assert_eq!(second[0], first[0]);
    assert_ne!(second, first);

    // What is locked, chosen by itself or found in the catalogue stays.
    window.click("#lock-1").await;
    window.until("document.querySelector('#lock-1').innerText.startsWith('Unlock')").await;
    window.click("#slot-2").await;
    window.click("#take-2-2").await;
    window.until(whole).await;
    let chosen = window.run(slots).await;
    window.click("#other-ideas").await;
    window.until("new URL(location).searchParams.getAll('slot').includes('')").await;
    assert_eq!(window.run(slots).await, json!(["a-00134", second[1], chosen[2], ""]));
}

#[apply(in_chromium)]
async fn dresses_for_an_occasion_with_a_piece_like_another(db: TestDatabase) {
    let (service, window) = stylist(&db, "/studio?customer=c-014871&slot=a-00134&slot=&slot=&slot=").await;
    window.click_words("office").await;
    window.until("location.search.includes('own.occasion=office')").await;
    let first = "document.querySelector('.sets a').href";
    let best = window.run(&format!("return {first}")).await;
    window.click("#others").await;
    window.until(&format!("{first} !== {best}")).await;
    window
        .run("document.querySelector('#slot-0').parentElement.querySelectorAll('.slot-actions a')[1].click()")
        .await;
    window.until_words("Similar to").await;
    window.run("const by = document.querySelector('[name=\"by.colour\"]'); by.value = 'black'; by.dispatchEvent(new Event('input', {bubbles: true}))").await;
    window.until("location.search.includes('by.colour=black')").await;
    window.until("[...document.querySelectorAll('.picker ~ .tiles .tile')].every(tile => tile.innerText.includes('black'))").await;
    window.click(".picker ~ .tiles a").await;
    window.until("!location.search.includes('slot=a-00134') && !document.querySelector('.picker')").await;
    window.click(".sets a").await;
    window.until("!new URL(location).searchParams.getAll('slot').includes('')").await;
    window.click("#save").await;
    window.until_words("Saved as outfit").await;
    let customer = CustomerId::new("c-014871").unwrap();
    let outfits = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap();
    let features = &outfits.last().unwrap().outfit.features;
    assert_eq!(features.get("occasion"), Some(&FeatureValue::Text("office".into())));
}

#[apply(in_chromium)]
async fn drags_a_suggestion_to_a_place(Demo(service): Demo) {
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    let slots = "new URL(location).searchParams.getAll('slot')";
    window.goto(&format!("{}/studio?customer=c-014871&slot=a-00134&slot=&type=1:coat", service.url)).await;
    // To the blank itself, to the place of another article, and beside them.
    for (place, expected) in
        [(1, "[first, dropped, undefined]"), (0, "[dropped, '', undefined]"), (2, "[first, '', dropped]")]
    {
        let before = window.address().await;
        let dropped = window.run("return document.querySelector('#not-1-2').value.split('/').pop()").await;
        window
            .drag(".suggestions > li:nth-child(2) .tile", &format!(".board .slot:nth-child({})", place + 1))
            .await;
        window
            .until(&format!(
                "(() => {{ const first = 'a-00134', dropped = {dropped}, found = {slots}; \
                 return {expected}.every((article, place) => found[place] === article); }})()"
            ))
            .await;
        let from = window.run("return new URL(location).searchParams.getAll('from')").await;
        assert!(from[0].as_str().unwrap().starts_with(&format!("{place}:")), "{from}");
        assert_eq!(window.run("return new URL(location).searchParams.get('type')").await, json!("1:coat"));
        window.goto(&before).await;
    }
}

#[apply(in_chromium)]
async fn works_with_the_keyboard_alone(Demo(service): Demo) {
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    let outfit = "slot=a-00134&slot=&slot=a-00568&slot=a-00259";
    window.goto(&format!("{}/studio?customer=c-014871&{outfit}", service.url)).await;
    let press = async |key| window.press(key).await;
    window.until("document.querySelectorAll('.suggestions > li').length === 8").await;
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
    window.until("document.activeElement.id === 'not-1-2'").await;
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
        .until(&format!("document.querySelector('#slot-1 + .piece .name')?.innerText === {}", before[0]))
        .await;
    // Without a blank, the search is for one more piece.
    press("/").await;
    window.until("document.activeElement.id === 'pick-search'").await;
    window.until("new URL(location).searchParams.get('pick') === '4'").await;
    window.click_words("Close").await;
    window.until("!document.querySelector('#pick-search')").await;
    window.click("li.slot:nth-child(5) .slot-actions a:last-child").await;
    window.until("new URL(location).searchParams.getAll('slot').length === 4").await;
    press("s").await;
    window.until_words("Saved as outfit").await;
}

#[apply(in_chromium)]
async fn is_told_about_a_lost_connection_and_a_lost_photo(Demo(service): Demo) {
    let photo = json!({"type": "coat", "image": "https://127.0.0.1:9/coat.jpg"});
    service.put("/articles/a-photo", &photo).await;
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    window.goto(&format!("{}/studio?slot=a-photo&slot=", service.url)).await;
    let picture = "document.querySelector('#slot-0 img')";
    window
        .until(&format!("{picture}.src.includes('/pictures/coat.svg') && {picture}.naturalWidth > 0"))
        .await;

    service.stop().await;
    window.click("#add").await;
    window.until_words("Your last click may or may not have counted").await;
}

#[apply(in_chromium)]
async fn sees_how_a_changed_feature_moves_suggestions(Demo(service): Demo) {
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    let outfit = "slot=a-00134&slot=&slot=a-00568&slot=a-00259";
    window.goto(&format!("{}/studio?customer=c-014871&{outfit}&type=1:coat", service.url)).await;
    window.choose("#changing", "fit").await;
    window.choose("#control", "slim").await;
    window.click_words("Show changes").await;
    window.until_words("fit: slim").await;
    window.until_words("instead of relaxed").await;
    let moved = window.text(".suggestions").await;
    assert!(moved.contains("from ") || moved.contains("was below"), "{moved}");
    window.click_words("Undo").await;
    window.until("!location.href.includes('if.fit')").await;
    assert!(!window.text(".suggestions").await.contains("from "));
}

#[apply(in_chromium)]
async fn sees_no_alarm_on_the_way_to_a_whole_outfit(Demo(service): Demo) {
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    let quiet = async || {
        assert_eq!(window.run("return document.querySelectorAll('.notice').length").await, 0);
        let shown = window.text("main").await;
        for word in ["slot", "models", "trained"] {
            assert!(!shown.contains(word), "{word} in {shown}");
        }
    };
    window.goto(&format!("{}/studio?customer=c-014871", service.url)).await;
    quiet().await;
    window.click_words("New outfit").await;
    window.until_words("Ideas for the whole outfit").await;
    quiet().await;
    // Blanks have the types of the best idea, and are shown once they are asked for.
    let kind = window.run("return document.querySelector('#slot-0').innerText.split('\\n')[1]").await;
    window.click("#slot-0").await;
    window.until_words(&format!("Which {}?", kind.as_str().unwrap())).await;
    assert_eq!(window.run("return document.querySelectorAll('.suggestions, .sets').length").await, 1);
    quiet().await;
    window.click("#take-0-1").await;
    window.until_words("Ideas for the whole outfit").await;
    quiet().await;
    window.click(".sets a").await;
    window.until("!new URL(location).searchParams.getAll('slot').includes('')").await;
    quiet().await;
}
