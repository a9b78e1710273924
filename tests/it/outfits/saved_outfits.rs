//! Saved outfits, the customer's link to one, the customer's page and the queue, by their HTML.

use std::time::SystemTime;

use atelier_core::domain::{Role, Timestamp};
use serde_json::{Value, json};

use crate::{
    harness::{
        Browser, Html, Service, Stylist, TestDatabase, apply, assert_page, contract, each, ids, on_sqlite,
        until,
    },
    studio::suggesting::{uses, view},
};

const DRAFT: &str = "customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259";
const WHOLE: &str = "customer=c-014871&slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259";

/// Saves what the address has and returns the saved outfit's page.
async fn save(browser: &Browser, view: &str) -> String {
    let there = browser.change("/studio/outfits", &[("view", view)]).await;
    format!("/studio/outfits/{}", there.after("saved="))
}

fn number(page: &str) -> &str {
    page.rsplit('/').next().unwrap()
}

async fn put_customer(service: &Service, id: &str, features: Value) {
    service.put(format!("/customers/{id}"), json!({ "features": features })).is(201).await;
}

#[apply(on_sqlite)]
async fn a_draft_becomes_a_named_outfit(Stylist(service, browser): Stylist) {
    let page = save(&browser, DRAFT).await;
    browser.page(&page).await.has([
        "<span class=\"new\">Draft</span>",
        "<span>Blank</span>",
        "For <a href=\"/studio?customer=c-014871\">Odile Huber · c-014871</a>",
    ]);
    let words = |revision: &'static str, name: &'static str, note: &'static str| {
        [("change", "words"), ("revision", revision), ("name", name), ("note", note)]
    };
    let there = browser.change(&page, &words("1", " Autumn ", "Boots\r\nin 38 <b>")).await;
    let html = browser.page(&there).await;
    html.has(["<h1>Autumn</h1>", "Boots\nin 38 &#60;b&#62;", "Named it “Autumn”; changed the note"]);
    let long = "x".repeat(129);
    let fields = [("change", "words"), ("revision", "2"), ("name", &*long), ("note", "Boots in 39")];
    let refused = browser.post(&page, &fields).is(422).await.text();
    refused.has(["1 to 128 characters", &format!("value=\"{long}\""), ">Boots in 39<"]);

    // The board changes it in place; an old revision is refused.
    let seq = number(&page);
    let view = format!("{WHOLE}&outfit={seq}.2");
    html.has([format!("outfit={seq}.2")]);
    let board = async |view: &str| browser.page(format!("/studio?{view}")).await;
    board(&view).await.has(["Save changes", "Save as another"]);
    let changed = browser.change("/studio/outfits", &[("view", &view)]).await;
    browser.page(&changed).await.has([format!("Saved as outfit {seq}.")]);
    assert_eq!(browser.change("/studio/outfits", &[("view", &view)]).await, changed, "a double click");
    let entry = service.log(1).await.remove(0);
    assert_eq!((&*entry.action, &entry.details["added"]), ("outfit.change", &json!(["a-01130"])));
    browser.page(&page).await.has(["<h1>Autumn</h1>", "Total €"]).lacks(["Draft", "Changed the "]);
    // The late one keeps the pieces, and can save another outfit.
    let late = format!("{DRAFT}&outfit={seq}.2");
    let there = browser.change("/studio/outfits", &[("view", &late)]).await;
    assert_eq!(there, format!("/studio?{late}"));
    let outdated = browser.page(&there).await;
    outdated.has(["was changed after you opened it", "Save as another"]).lacks(["Save changes"]);
    // The browser's Back shows what is stored.
    let current = board(&view).await;
    current.has(["Save changes", &format!("outfit={seq}.3")]).lacks(["was changed after"]);
    let gone = board(&format!("{WHOLE}&outfit=99999.1")).await;
    gone.has(["left out: the saved outfit, which no longer exists.", ">Save outfit<"])
        .lacks(["outfit=99999"]);
    let refused = browser.post(&page, &words("2", "Winter", "No wool")).is(409).await.text();
    let kept = ["value=\"Winter\"", ">No wool<", "save again to keep them", "name=\"revision\" value=\"3\""];
    refused.has(kept);
    let outfits = service.json("/customers/c-014871/outfits?drafts=true").await;
    assert_eq!(each(&outfits["items"], "name"), json!([null, "Autumn"]), "the imported one and this");
}

#[apply(on_sqlite)]
async fn a_draft_for_nobody_is_given_to_a_customer(Stylist(service, browser): Stylist) {
    let html = browser.page("/studio?slot=a-00134&slot=&slot=a-00568&slot=a-00259").await;
    let page = save(&browser, view(&uses(&html)[0])).await;
    let accepted = async || service.json("/feedback/acceptance").await["total"]["accepted"].clone();
    assert_eq!(accepted().await, 0, "a draft, because it has no customer");
    let html = browser.page(&page).await;
    html.has(["For no customer yet", ">Draft</span>"]).lacks(["id=\"copy-button\""]);
    browser.page("/studio/outfits?drafts=on").await.has(["for no customer yet"]);

    for (revision, customer, status, said) in [
        ("1", "nobody", 422, &["no such customer", "value=\"nobody\""][..]),
        ("0", "c-014871", 409, &["a colleague changed this outfit"]),
        ("1", "c-014871", 303, &[]),
        ("2", "c-000010", 422, &["save a copy for c-000010"]),
    ] {
        let fields = [("change", "give"), ("revision", revision), ("customer", customer)];
        browser.post(&page, &fields).is(status).await.text().has(said);
    }
    let html = browser.page(&page).await;
    html.has([">Odile Huber · c-014871</a>", "Gave it to the customer"]).lacks([">Draft</span>"]);
    assert_eq!(accepted().await, 1, "it is complete now");
}

#[apply(on_sqlite)]
async fn a_copy_is_for_another_customer(Stylist(service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    let name = |revision: &'static str, name: &'static str| {
        [("change", "words"), ("revision", revision), ("name", name)]
    };
    browser.change(&page, &name("1", "Autumn")).await;
    let kind = service.json("/articles/a-00134").await["type"].clone();
    put_customer(&service, "found", json!({"name": "Zenobia Quill"})).await;
    put_customer(&service, "against", json!({"nogo_types": [kind]})).await;
    put_customer(&service, "anyone", json!({})).await;
    let copy = |revision: &str, customer: &str| {
        browser.post(&page, &[("change", "copy"), ("revision", revision), ("customer", customer)])
    };
    for (customer, said) in [
        ("c-014871", "c-014871 already has this outfit"),
        ("female", "customers match “female”; enter an id"),
        ("nobody", "there is no such customer"),
    ] {
        copy("2", customer).is(422).await.text().has([said]);
    }
    let copied = async |revision: &str, customer: &str| {
        let there = copy(revision, customer).is(303).await.header("location").to_owned();
        (browser.page(&there).await, there)
    };
    // What a search finds.
    copied("2", "quill").await;
    // What does not suit the other customer is said on the copy's page.
    copied("2", "against").await.0.between("Check for this customer:", "</div>").has(["is a no-go."]);
    copied("2", "anyone").await.0.lacks(["Check for this customer:"]);
    let (html, there) = copied("2", " c-000010 ").await;
    assert_ne!(there, page);
    // Nothing of the other customer.
    html.has(["<h1>Autumn</h1>", "customer=c-000010"]).lacks(["c-014871"]);
    assert_eq!(copied("2", "c-000010").await.1, there, "a double click makes one");
    // A name with the other's id is not copied.
    browser.change(&page, &name("2", "Autumn of C-014871")).await;
    put_customer(&service, "next", json!({})).await;
    copied("3", "next").await.0.to_lowercase().lacks(["c-014871"]);
    for (query, said) in [
        ("find=autumn", &["5 outfits", "for Ada Amsler", "for Odile Huber"][..]),
        ("find=autumn+c-000010", &["1 outfit</span>"]),
        ("find=autumn%2C+c-000010", &["1 outfit</span>"]),
        ("find=autumn&drafts=on", &["No outfits match"]),
    ] {
        browser.page(format!("/studio/outfits?{query}")).await.has(said);
    }
}

#[apply(contract)]
async fn a_deletion_is_undone(Stylist(service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    let outfit = page.replace("/studio", "");
    browser.get("/studio/outfits/999999").is(404).await;
    browser.post(&page, &[("change", "sell"), ("revision", "1")]).is(422).await;
    let bare = browser.post_bare(&page, &[("change", "delete"), ("revision", "1")]).is(403).await;
    bare.text().has(["belongs to another sign-in"]).lacks(["permission"]);
    browser.change(&page, &[("change", "share"), ("revision", "1"), ("days", "14")]).await;
    let html = browser.page(&page).await;
    let link = format!("/shared/{}", html.has(["id=\"delete\""]).between("/shared/", "<"));
    let there = browser.change(&page, &[("change", "delete"), ("revision", "1")]).await;
    browser.page(there).await.has(["is deleted. You can restore it", "No saved outfits yet"]);
    browser.page(&page).await.has(["This outfit was deleted on"]).lacks(["id=\"make-link\""]);
    service.get(&outfit).is(404).await;
    let back = browser.change(&page, &[("change", "restore"), ("revision", "0")]).await;
    assert_eq!(back, page);
    browser.page(&page).await.has(["Restored"]).lacks(["was deleted"]);
    service.get(outfit).is(200).await;
    service.page(link).is(404).await.text().has(["Ask your stylist for a new one"]);
}

#[apply(contract)]
async fn an_outfit_that_cannot_be_saved_stays_on_its_page(Stylist(_service, browser): Stylist) {
    let first = save(&browser, WHOLE).await;
    let second = save(&browser, &WHOLE.replace("a-01130", "a-01243")).await;
    let view = format!("{WHOLE}&outfit={}.1", number(&second));
    let refused = browser.post("/studio/outfits", &[("view", &view)]).is(409).await.text();
    let said = format!("open that one: <a href=\"{first}\">outfit {}</a>", number(&first));
    refused.has([&said, "id=\"save\""]);

    let view = format!("{WHOLE}&outfit={}.1", number(&first));
    let refused = browser.post("/studio/outfits", &[("view", &view), ("another", "on")]).is(422).await;
    refused.text().has(["this is still the same outfit"]);

    // The pieces of a deleted outfit are saved again, which is in the way of restoring it.
    browser.change(&first, &[("change", "delete"), ("revision", "1")]).await;
    let third = save(&browser, WHOLE).await;
    let refused = browser.post(&first, &[("change", "restore"), ("revision", "0")]).is(409).await.text();
    refused.has(["Couldn’t restore: ", &format!("<a href=\"{third}\">")]);
}

/// A customer with an outfit of four articles of the test's own, which no model chose; its page.
async fn own_outfit(service: &Service, browser: &Browser) -> String {
    put_customer(service, "zoe", json!({"name": "Zoe Quill"})).await;
    for (id, kind, name, price) in [
        ("w-1", "coat", "Loden coat", 90.0),
        ("w-2", "boot", "Walking boot", 120.0),
        ("w-3", "blouse", "Silk blouse", 45.5),
        ("w-4", "bag", "Saddle bag", 61.0),
    ] {
        let article =
            json!({"type": kind, "name": name, "colour": "green", "brand": "Tiber", "price": price});
        service.put(format!("/articles/{id}"), article).is(201).await;
    }
    save(browser, "customer=zoe&slot=w-1&slot=w-2&slot=w-3&slot=w-4&own.occasion=office").await
}

#[apply(on_sqlite)]
async fn the_customers_link_needs_no_sign_in_and_shows_no_more_than_pieces(
    Stylist(service, browser): Stylist,
    db: TestDatabase,
) {
    let page = own_outfit(&service, &browser).await;
    let words = [
        ("change", "words"),
        ("revision", "1"),
        ("name", "Autumn"),
        ("note", "pays late"),
        ("message", "For your office"),
    ];
    browser.change(&page, &words).await;
    let share = async || {
        browser.change(&page, &[("change", "share"), ("revision", "2"), ("days", "30")]).await;
        let html = browser.page(&page).await;
        (format!("/shared/{}", html.between(&format!("{}/shared/", service.url), "<")), html)
    };
    let (link, html) = share().await;
    assert_page("saved-outfit", &html);
    let answer = service.page(&link).is(200).await;
    for (name, value) in [
        ("x-robots-tag", "noindex, nofollow"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let html = answer.text();
    assert_page("shared-outfit", &html);
    assert_eq!(html.matches("class=\"picture\"").count(), 4);
    html.lacks(["zoe", "Zoe", "pays late", "<nav", "/studio", "rank", "match"]);

    // The token is not in the database, and a newer link replaces it.
    crate::customers::sql::erasing::everything(&db, &mut db.raw().await)
        .await
        .lacks([link.after("/shared/")]);
    let (newer, _) = share().await;
    service.page(&link).is(404).await;
    service.page(&newer).is(200).await;
    browser.change(&page, &[("change", "withdraw"), ("revision", "2")]).await;
    let gone = service.page(&newer).is(404).await;
    assert_eq!(gone.header("x-robots-tag"), "noindex, nofollow");
    gone.text().has(["Ask your stylist for a new one"]);
    service.page("/shared/nonsense").is(404).await;
    let failed = service.delete(link).header("accept", "text/html").is(405).await;
    failed.text().has(["ask your stylist"]).lacks(["Studio"]);

    let (last, _) = share().await;
    let over = "update outfits set link_expires_at = 1 where link_hash is not null";
    sqlx::query(over).execute(&mut db.raw().await).await.unwrap();
    service.page(&last).is(410).await.text().has(["This link has expired"]);
    browser.page(&page).await.has(["The last link expired on"]);
}

#[apply(contract)]
async fn a_customers_replies_reach_the_queue(Stylist(service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    browser.change(&page, &[("change", "share"), ("revision", "1"), ("days", "14")]).await;
    let link = format!("/shared/{}", browser.page(&page).await.between("/shared/", "<"));
    // Another session does not see it.
    service.signed_in(Role::Stylist).await.page(&page).await.lacks([&link]);
    let guest = async |fields: &[(&str, &str)]| service.form(&link, fields).await.status;
    let waits = async || browser.page("/studio").await.contains("replied-title");
    assert_eq!(guest(&[("text", "  ")]).await, 303);
    assert!(!waits().await, "nothing was said");
    let sent =
        [&[("dislikes", "a-00568"), ("text", "")][..], &[("text", "Is it <b>warm</b>?")], &[("likes", "on")]];
    for fields in sent {
        // Also with a double click.
        assert_eq!([guest(fields).await, guest(fields).await], [303, 303], "{fields:?}");
    }
    // What was typed stays in the field.
    for (fields, said) in [
        (&[("text", "is it warm\u{7}")][..], "Not sent: "),
        (&[("dislikes", "a-00001"), ("text", "is it warm?")], "Not sent: the outfit has no article a-00001"),
    ] {
        service.form(&link, fields).is(422).await.text().has([said, "\nis it warm"]);
    }
    for odd in ["/shared/%0A", "/shared/nonsense"] {
        service.form(odd, &[("likes", "on")]).is(404).await;
    }
    assert!(waits().await);
    let html = browser.page(&page).await;
    let name = service.json("/articles/a-00568").await["name"].as_str().unwrap().to_owned();
    html.has([
        &*format!("Dislikes {name}"),
        "Asks: Is it &#60;b&#62;warm&#60;/b&#62;?",
        "Likes it",
        "The customer replied",
    ]);
    let export = service.json("/customers/c-014871/export").await;
    let outfits = export["outfits"].as_array().unwrap();
    let saved = outfits.iter().find(|outfit| outfit["replies"].is_array()).unwrap();
    let text = "Is it <b>warm</b>?";
    assert_eq!(each(&saved["replies"], "text").as_array().unwrap().len(), 3);
    assert_eq!(saved["replies"][1]["text"], text);
    let seen = |html: &str| html.between("name=\"seen\" value=\"", "\"");
    let answer = async |seen: &str| {
        browser.change(&page, &[("change", "answer"), ("revision", "1"), ("seen", seen)]).await;
    };
    let before = seen(&html);
    // The next reply is in a later millisecond.
    until!(Timestamp::from(SystemTime::now()).millis() > before.parse::<i64>().unwrap());
    assert_eq!(guest(&[("text", "And in red?")]).await, 303);
    answer(&before).await;
    assert!(waits().await, "a reply came meanwhile");
    browser.page("/studio/outfits?replied=on").await.has([&page]);
    answer(&seen(&browser.page(&page).await)).await;
    browser.page("/studio/outfits?replied=on").await.lacks([&page]);
    assert!(!waits().await);
    let mut sent = 4;
    while guest(&[("text", &format!("{sent}?"))]).await == 303 {
        sent += 1;
    }
    assert_eq!((sent, guest(&[("text", "more")]).await), (12, 429));
    answer(&seen(&browser.page(&page).await)).await;
    browser.change(&page, &[("change", "withdraw"), ("revision", "1")]).await;
    assert_eq!(guest(&[("likes", "on")]).await, 404, "the link is gone");
    assert!(!waits().await);
}

#[apply(contract)]
async fn deleted_outfits_are_listed_and_removed_articles_keep_their_names(
    Stylist(service, browser): Stylist,
) {
    let page = own_outfit(&service, &browser).await;
    service.delete("/articles/w-1").await;
    for path in [&*page, "/studio/outfits"] {
        browser.page(path).await.has(["/pictures/coat.svg?colour=green"]);
    }
    browser.page(&page).await.has(["Loden coat (no longer in the catalogue)", ">w-1<"]);

    browser.page("/studio/outfits?bin=on").await.lacks([&page]);
    browser.change(&page, &[("change", "delete"), ("revision", "1")]).await;
    browser.page("/studio/outfits?bin=on").await.has([&*page, "Deleted on "]);
    browser.page("/studio/outfits").await.lacks([format!("{page}\"")]);
}

#[apply(contract)]
async fn a_customers_page_has_sizes_notes_outfits_and_feedback(Stylist(service, browser): Stylist) {
    put_customer(&service, "zoe", json!({"top_size": "M", "shoe_size": "38"})).await;
    let body = json!({"customer": "zoe", "outfit": ["a-00134", null, "a-00568", "a-00259"], "method": "gsu"});
    let completion = service.ask_ok("/complete", body).await;
    let ids = ids(&completion["blanks"][0]["suggestions"]);
    let report = async |kind: &str, article: &str| {
        let event = json!({"id": format!("{kind}-{article}"), "completion_id": completion["completion_id"],
            "kind": kind, "slot": 1, "article": article, "customer": "zoe"});
        service.ask_ok("/feedback", event).await;
    };
    report("rejected", &ids[0]).await;
    report("bought", &ids[1]).await;
    let note = |text| [("customer", "zoe"), ("note", text)];
    for _ in 0..2 {
        browser.change("/studio/notes", &note("Prefers <i>calls</i>\nat night")).await;
    }
    for (wrong, kept) in [("  ", "write something"), ("Calls\tat night", ">\nCalls\tat night</textarea>")] {
        let refused = browser.post("/studio/notes", &note(wrong)).is(422).await.text();
        refused.has([kept, "For zoe"]);
        assert_eq!(refused.matches("Some stylist").count(), 2, "a double click adds one note: {refused}");
    }
    assert_eq!(service.log(1).await[0].action, "customer.note");
    save(&browser, &DRAFT.replace("c-014871", "zoe")).await;

    let page = async || browser.page("/studio?customer=zoe").await;
    let html = page().await;
    html.has([
        "<dt>Top size</dt><dd>M</dd>",
        "<dt>Shoe size</dt><dd>38</dd>",
        "Prefers &#60;i&#62;calls&#60;/i&#62;\nat night",
        "Some stylist",
        "<h2 id=\"bought-title\">Bought</h2>",
        "<h2 id=\"refused-title\">Not for this customer</h2>",
        "Continue",
    ]);
    let id = html.between("name=\"deleted\" value=\"", "\"");
    browser.change("/studio/notes", &[("customer", "zoe"), ("deleted", &id)]).await;
    page().await.has(["No notes yet"]);
    // It is taken back here, and a later purchase ends a refusal.
    let undone = html.between("name=\"undone\" value=\"", "\"");
    browser.change("/studio/feedback", &[("view", "customer=zoe"), ("undone", &undone)]).await;
    page().await.lacks(["refused-title"]);
    report("rejected", &ids[2]).await;
    page().await.has(["refused-title"]);
    report("bought", &ids[2]).await;
    page().await.lacks(["refused-title"]);
    assert_eq!(service.json("/customers/zoe/export").await["outfits"][0]["draft"], true);
}

#[apply(on_sqlite)]
async fn the_queue_has_drafts_and_customers(Stylist(service, browser): Stylist) {
    let queue = async || browser.page("/studio").await;
    queue().await.has(["Not styled here yet"]).lacks(["Longest without a new outfit"]);
    // The latest customers come first, until they have an outfit.
    put_customer(&service, "new", json!({})).await;
    let never = async || queue().await.between("id=\"never-title\"", "</section>");
    never().await.has(["<strong>new</strong>"]);
    save(&browser, &WHOLE.replace("c-014871", "new")).await;
    never().await.lacks(["<strong>new</strong>"]);
    save(&browser, DRAFT).await;
    let whole = save(&browser, WHOLE).await;
    queue().await.has(["Your drafts", "Longest without a new outfit"]).lacks(["Refused suggestions"]);
    let refused = browser.page(format!("/studio?{DRAFT}")).await.between("name=\"refused\" value=\"", "\"");
    browser.change("/studio/feedback", &[("view", DRAFT), ("refused", &refused)]).await;
    queue().await.has(["1 suggestion refused since their last outfit"]);
    // Drafts are their stylist's, and an outfit answers the refusal.
    let colleague = service.signed_in(Role::Admin).await;
    colleague.page("/studio").await.has(["Refused suggestions"]).lacks(["Your drafts"]);
    browser.change(&whole, &[("change", "delete"), ("revision", "1")]).await;
    save(&browser, &WHOLE.replace("a-01130", "a-01243")).await;
    queue().await.lacks(["Refused suggestions"]);
}

#[apply(on_sqlite)]
async fn all_drafts_are_the_stylists_own(Stylist(service, browser): Stylist) {
    for article in ["a-00134", "a-01130", "a-00568", "a-00259", "a-01243"] {
        save(&browser, &format!("customer=c-014871&slot={article}")).await;
    }
    save(&service.signed_in(Role::Admin).await, DRAFT).await;
    let link = "<a href=\"/studio/outfits?drafts=on&amp;mine=on\">All 5 drafts</a>";
    browser.page("/studio").await.has([link]);
    browser.page("/studio/outfits?drafts=on&mine=on").await.has(["5 outfits</span>"]);
    browser.page("/studio/outfits?drafts=on").await.has(["6 outfits</span>"]);
}

#[apply(contract)]
async fn an_imported_outfit_is_saved_unchanged(Stylist(service, browser): Stylist) {
    let imported = &service.json("/customers/c-014871/outfits").await["items"][0]["id"];
    let delete = [("change", "delete"), ("revision", "1")];
    browser.post(format!("/studio/outfits/{imported}"), &delete).is(409).await;
    let html = browser.page("/studio?customer=c-014871").await;
    let card = html.after("<ul class=\"outfits\">");
    let board = card.between("class=\"small\" href=\"/studio?", "\"");
    // Its suggestions count apart from those of the customer's other outfits.
    board.has(["begun="]);
    let page = save(&browser, &board).await;
    browser.page(&page).await.has(["Saved by Some stylist", "id=\"save-words\""]);
    assert_eq!(save(&browser, &board).await, page, "once");
    browser.change(&page, &[("change", "words"), ("revision", "2"), ("name", "Autumn")]).await;
    browser.page("/studio/outfits?find=autumn+c-014871").await.has(["1 outfit</span>"]);
}

#[apply(contract)]
async fn a_customer_has_a_list_of_their_outfits(Stylist(service, browser): Stylist) {
    let list = async |query: &str| browser.page(format!("/studio/outfits?{query}")).await;
    // The imported one.
    list("customer=c-014871").await.has(["1 outfit</span>", "Use as a starting point"]);
    for id in ["c-1", "c-10"] {
        put_customer(&service, id, json!({})).await;
        save(&browser, &WHOLE.replace("c-014871", id)).await;
    }
    list("customer=c-1").await.has(["Outfits of c-1<", "1 outfit</span>"]).lacks(["c-10"]);
    let link = "href=\"/studio/outfits?customer=c-1\">All outfits of this customer";
    browser.page("/studio?customer=c-1").await.has([link]);
    list("customer=c-1&find=autumn").await.has(["Try fewer words."]);
    list("customer=c-1&drafts=on").await.has(["<p>Show all outfits.</p>"]);
    list("customer=nobody").await.has(["There is no customer nobody"]);
}

#[apply(on_sqlite)]
async fn the_history_names_what_changed(Stylist(_service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    let changes = [
        ("own.occasion=office", "Changed the occasion"),
        ("own.occasion=office&own.price_tops=upper", "Changed the price for tops"),
        ("own.fit=slim", "Changed the fit, occasion and price for tops"),
    ];
    for (revision, (own, said)) in (1..).zip(changes) {
        save(&browser, &format!("{WHOLE}&{own}&outfit={}.{revision}", number(&page))).await;
        browser.page(&page).await.has([format!("<br>{said}</li>")]);
    }
    // Where a link says nonsense, the list starts at its first page.
    browser.page("/studio/outfits?page=x&deleted=y").await.has(["1 outfit</span>"]);
}
