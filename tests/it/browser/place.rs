//! Where the eye and the hand are: no change in Studio moves the page, or takes the focus away.

use atelier_core::domain::Role;
use serde_json::{Value, json};

use crate::{
    browser::signed_in,
    harness::{
        Demo, Html, apply,
        browser::{Eyes, Window},
        in_chromium,
    },
};

const BOARD: &str = "/studio?customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259";
const BLANKS: &str = "/studio?customer=c-014871&slot=a-00134&slot=&slot=&slot=";
const WHOLE: &str = "/studio?customer=c-014871&slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130";
const PICK: &str = "/studio?customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259&pick=1";

/// How much the page moved by itself while it was loaded.
const SHIFT: &str = "const done = arguments[0]; let sum = 0; \
    new PerformanceObserver(list => list.getEntries().forEach(shift => sum += shift.value)).observe({type: 'layout-shift', buffered: true}); \
    setTimeout(() => done(sum), 200)";

/// What a stylist does to an element.
enum Act {
    Click,
    Type(&'static str),
    Choose(&'static str),
}

use Act::{Choose, Click, Type};

/// A name, a page, an element of it, and what is done to that.
const ACTIONS: [(&str, &str, &str, Act); 20] = [
    ("use a suggestion", BOARD, "#take-1-6", Click),
    ("use a suggestion by its picture", BOARD, ".suggestions > li:nth-child(3)", Click),
    ("use an idea", BLANKS, ".sets .card:nth-child(2) a", Click),
    ("other ideas shown", BLANKS, "#others", Click),
    ("complete the outfit", "/studio?customer=c-014871&slot=a-00134", "#complete", Click),
    ("a new outfit", "/studio?customer=c-014871", "main .button.primary", Click),
    ("an occasion", BOARD, "[aria-labelledby=purpose-1] li:nth-child(3) a", Click),
    ("see alternatives", BOARD, "#slot-2", Click),
    ("remove a piece", WHOLE, "#remove-1", Click),
    ("search the catalogue", BOARD, "#search", Click),
    ("the catalogue's next page", PICK, ".card [rel=next]", Click),
    ("a letter of a search", PICK, "#pick-search", Type("b")),
    ("a price", PICK, "#price-max", Choose("60")),
    ("a colour", PICK, "[name=\\'by.colour\\']", Choose("black")),
    ("an article of the catalogue", PICK, ".picker ~ .tiles li:nth-child(9) a", Click),
    ("a filter", BOARD, "#varied", Click),
    ("the number of suggestions", BOARD, "#k", Choose("12")),
    ("a feature for What if", BOARD, "#changing", Choose("fit")),
    ("a letter of a customer's search", "/studio", "#find", Type("s")),
    ("a letter of an outfit's search", "/studio/outfits", "#find", Type("s")),
];

/// The element with the focus, and how far the page is scrolled.
async fn place(window: &Window) -> Value {
    let words = "const one = document.activeElement; \
                 return [one.id || one.getAttribute('rel') || one.innerText.slice(0, 30).split('\\n')[0] || one.tagName, scrollY, one === document.body]";
    window.run(words).await
}

#[apply(in_chromium)]
async fn no_change_moves_the_page_or_the_focus(Demo(service): Demo) {
    let (mut table, mut wrong) = (Vec::new(), Vec::new());
    for width in [1440, 390] {
        let window = signed_in(&service, Role::Stylist, Eyes { width, ..Eyes::default() }).await;
        for (name, page, selector, act) in &ACTIONS {
            window.goto(page).await;
            window.until_loaded().await;
            window.until(&format!("!!document.querySelector('{selector}')")).await;
            let one = format!("const one = document.querySelector('{selector}');");
            // It may be in a menu or a sheet.
            let opener = "document.querySelector(`[popovertarget=${one.closest('[popover]').id}]`)";
            window.run(&format!("{one} if (!one.checkVisibility()) {opener}.click()")).await;
            let show = "one.scrollIntoView({block: 'center', behavior: 'instant'})";
            window.run(&format!("{one} {show}; one.focus({{preventScroll: true}})")).await;
            let (before, address) = (place(&window).await, window.address().await);
            match act {
                Click => window.click(selector).await,
                Choose(value) => {
                    let events = "for (const type of ['input', 'change']) one.dispatchEvent(new Event(type, {bubbles: true}))";
                    window.run(&format!("{one} one.value = '{value}'; {events}")).await;
                }
                Type(letters) => window.press(letters).await,
            }
            let is_there =
                format!("location.href !== {address:?} && !document.querySelector('.htmx-request')");
            window.until(&is_there).await;
            let after = place(&window).await;
            let moved = after[1].as_f64().unwrap() - before[1].as_f64().unwrap();
            table.push(format!(
                "{width:>5}  {name:<32} {:>6} {:>6}  {} -> {}",
                before[1], after[1], before[0], after[0]
            ));
            // A second Enter does the same again.
            let stays = !matches!(act, Click) || selector.contains("rel=next");
            if moved.abs() > 50.0 || after[2] == true || stays && before[0] != after[0] {
                wrong.push(table.last().unwrap().clone());
            }
        }
    }
    println!("{}", table.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[apply(in_chromium)]
async fn the_outfit_stays_in_view_while_suggestions_scroll(Demo(service): Demo) {
    for width in [1440, 390] {
        let window = signed_in(&service, Role::Stylist, Eyes { width, ..Eyes::default() }).await;
        for page in [BOARD, BLANKS] {
            window.goto(page).await;
            window.until_loaded().await;
            let top = "return document.querySelector('.suggestions, .sets').getBoundingClientRect().top";
            let top = window.run(top).await;
            println!("{width} {page}: suggestions begin at {top}");
            assert!(top.as_f64().unwrap() < 800.0, "{width} {page}: suggestions begin at {top}");
            if width == 1440 {
                let seen = "return ['#price-max', '#total', '[name=\"by.colour\"]', '[name=\"by.brand\"]', \
                            '.suggestions .picture, .sets .picture'].every(one => \
                            document.querySelector(one).getBoundingClientRect().bottom <= innerHeight)";
                assert_eq!(window.run(seen).await, true, "{page}: filters and the first row");
            } else {
                let shift = window.run_later(SHIFT).await;
                assert!(shift.as_f64().unwrap() < 0.05, "{page}: the page moves by {shift}");
            }
            let to_the_last = "[...document.querySelectorAll('.suggestions > li, .sets > li')].at(-1)\
                               .scrollIntoView({block: 'end', behavior: 'instant'})";
            window.run(to_the_last).await;
            let pictures = "return [...document.querySelectorAll('.board .slot')].slice(0, 4).map(slot => slot.getBoundingClientRect()) \
                            .every(at => at.top >= 0 && at.bottom <= innerHeight && at.right <= innerWidth)";
            assert_eq!(window.run(pictures).await, true, "{width} {page}");
            // A filter's answer is seen where the eye is.
            let cheap = "const price = document.querySelector('#price-max'); price.value = 1; \
                         price.dispatchEvent(new Event('change', {bubbles: true}))";
            window.run(cheap).await;
            window.text(".studio .empty").await.has(["No articles match"]);
            let bar = "document.querySelector('.outfit-bar').getBoundingClientRect().bottom";
            let empty = "document.querySelector('.studio .empty').getBoundingClientRect()";
            window.until(&format!("{empty}.top >= {bar} && {empty}.top < innerHeight - 50")).await;
        }
    }
}

#[apply(in_chromium)]
async fn a_change_of_the_pieces_can_be_undone(Demo(service): Demo) {
    for scripts in [true, false] {
        let window = signed_in(&service, Role::Stylist, Eyes { scripts, ..Eyes::default() }).await;
        for (page, opener, act, said) in [
            (WHOLE, "#more-1", "#remove-1", "Removed Linden wool trousers"),
            (WHOLE, "#more-1", "#slot-1", "Removed Linden wool trousers"),
            (BOARD, "#about-1-2", "#take-1-2", "Added "),
            (BLANKS, "#more-1", "#remove-1", "Removed a blank"),
            (BLANKS, "#more-1", ".sets a", " and "),
        ] {
            window.goto(page).await;
            if act.starts_with("#remove") {
                window.click(opener).await;
            }
            window.click(act).await;
            window.text("[role=status]:has(#undo)").await.has([said]);
            window.until("document.activeElement.id === 'undo'").await;
            window.click("#undo").await;
            window.until_gone("#undo").await;
            let slots = "new URL(location).searchParams.getAll('slot').join()";
            let before = format!("new URLSearchParams('{page}'.split('?')[1]).getAll('slot').join()");
            window.until(&format!("{slots} === {before}")).await;
        }
        // Each in a row takes the focus.
        window.goto(WHOLE).await;
        for (menu, remove) in [("#more-1", "#remove-1"), ("#more-0", "#remove-0")] {
            window.click(menu).await;
            window.click(remove).await;
            window.until("document.activeElement.id === 'undo'").await;
        }
    }
}

#[apply(in_chromium)]
async fn leaving_an_unsaved_outfit_asks_first(Demo(service): Demo) {
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    let asks = "const leave = new Event('beforeunload', {cancelable: true}); dispatchEvent(leave); return leave.defaultPrevented";
    // So does a link that leaves, and none that stays. The driver answers that the page may go.
    let asked = async |link: &str| {
        window.run("sessionStorage.removeItem('asked'); addEventListener('beforeunload', event => sessionStorage.setItem('asked', event.defaultPrevented))").await;
        let address = window.address().await;
        window.click(link).await;
        window.until(&format!("location.href !== {address:?} && document.readyState === 'complete'")).await;
        window.run("return sessionStorage.getItem('asked')").await
    };
    for page in ["/studio?customer=c-014871&slot=&slot=", "/studio?slot=&slot="] {
        window.goto(page).await;
        window.until_loaded().await;
        assert_eq!(window.run(asks).await, false, "there is nothing to lose");
        assert_eq!(asked(".sets a").await, Value::Null, "there is nothing to lose");
        window.until("!!document.querySelector('[data-unsaved]')").await;
        assert_eq!(window.run(asks).await, true);
        let occasion = "[aria-labelledby=purpose-1] li:nth-child(3) a";
        assert_eq!(asked(occasion).await, Value::Null, "the outfit stays");
        window.click_until("#save", "Saved as draft").await;
        assert_eq!(window.run(asks).await, false);
        assert_ne!(asked("[href='/studio']").await, "true", "it is saved");
        window.goto(page).await;
        window.click(".sets a").await;
        window.until("!!document.querySelector('[data-unsaved]')").await;
        assert_eq!(asked("main [href='/studio']").await, "true");
    }
}

#[apply(in_chromium)]
async fn a_form_survives_the_end_of_the_session(Demo(service): Demo) {
    const PASSWORD: &str = "a horse in Zurich";
    let stylist = service.signed_in(Role::Stylist).await;
    let saved = stylist.change("/studio/outfits", &[("view", WHOLE.trim_start_matches("/studio?"))]).await;
    let seq = saved.after("saved=");
    stylist.change("/password", &[("password", PASSWORD)]).await;
    let window = signed_in(&service, Role::Stylist, Eyes::default()).await;
    let sign_in = async || {
        window.fill("#name", "Some stylist").await;
        window.fill("#password", PASSWORD).await;
        window.click("main form .button").await;
    };
    for (page, field, button) in [
        ("/studio?customer=c-014871", "#note", "#add-note"),
        (&format!("/studio/outfits/{seq}"), "#name", "#save-words"),
        // A link that needs a session, with a form half filled in.
        ("/studio?customer=c-014871", "#note", "main .button.primary"),
    ] {
        window.goto(page).await;
        window.fill(field, "Boots in 38").await;
        window.chromium("Network.clearBrowserCookies", &json!({})).await;
        window.click(button).await;
        if button.starts_with('#') {
            window.click_words("Sign in").await;
        }
        sign_in().await;
        window.until("!!document.querySelector('.who')").await;
        if !button.starts_with('#') {
            window.goto(page).await;
        }
        window.until(&format!("location.pathname + location.search === '{page}'")).await;
        window.until(&format!("document.querySelector('{field}').value === 'Boots in 38'")).await;
    }
    // What was chosen and ticked, too.
    window.goto("/studio/new-customer").await;
    window.fill("#new-id", "lost").await;
    window.choose("[name='is.shoe_size']", "38").await;
    window.click(".chip:has([name='is.preferred_colours'][value=navy])").await;
    window.chromium("Network.clearBrowserCookies", &json!({})).await;
    window.click("#save-profile").await;
    window.click_words("Sign in").await;
    sign_in().await;
    window.until("document.querySelector('#new-id')?.value === 'lost'").await;
    let chosen = "return [document.querySelector('[name=\"is.shoe_size\"]').value, \
                  [...document.querySelectorAll('[name=\"is.preferred_colours\"]:checked')].map(one => one.value).join()]";
    assert_eq!(window.run(chosen).await, json!(["38", "navy"]));

    window.goto("/studio?customer=c-014871").await;
    window.fill("#note", "Boots in 38").await;
    window.click("#add-note").await;
    window.until("document.querySelector('.history').innerText.includes('Boots in 38')").await;
    window.until("document.querySelector('#note').value === ''").await;
    window.goto("/studio?customer=c-014871").await;
    assert_eq!(window.value("#note").await, json!(""));
}
