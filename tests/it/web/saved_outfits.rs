//! Saved outfits, the customer's link to one, the customer's page and the queue, by their HTML and in the API.

use std::time::SystemTime;

use atelier::outcomes::FeedbackKind;
use atelier_core::domain::{CustomerId, Role, Timestamp};
use serde_json::{Value, json};

use super::{Browser, Demo, Stylist, studio::uses, until};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

const DRAFT: &str = "customer=c-014871&slot=a-00134&slot=&slot=a-00568&slot=a-00259";
const WHOLE: &str = "customer=c-014871&slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259";

/// Saves what the address has and returns the saved outfit's page.
async fn save(browser: &Browser, view: &str) -> String {
    let saved = browser.post("/studio/outfits", &[("view", view)]).await;
    assert_eq!(saved.status(), 303, "{}", saved.text());
    let there = saved.header("location");
    let (_, seq) = there.split_once("saved=").unwrap();
    format!("/studio/outfits/{seq}")
}

/// Sends a form of the outfit's page and returns where it leads.
async fn change(browser: &Browser, path: &str, fields: &[(&str, &str)]) -> String {
    let answer = browser.post(path, fields).await;
    assert_eq!(answer.status(), 303, "{}", answer.text());
    answer.header("location").to_owned()
}

#[apply(on_sqlite)]
async fn a_draft_becomes_a_named_outfit(Stylist(service, browser): Stylist) {
    let page = save(&browser, DRAFT).await;
    let html = browser.page(&page).await;
    assert!(
        html.contains("<span class=\"new\">Draft</span>") && html.contains("<span>Blank</span>"),
        "{html}"
    );
    assert!(html.contains("For <a href=\"/studio?customer=c-014871\">c-014871</a>"), "{html}");

    let fields =
        [("change", "words"), ("revision", "1"), ("name", " Autumn "), ("note", "Boots\r\nin 38 <b>")];
    let there = change(&browser, &page, &fields).await;
    let html = browser.page(&there).await;
    assert!(html.contains("<h1>Autumn</h1>") && html.contains("Boots\nin 38 &#60;b&#62;"), "{html}");
    assert!(html.contains("Named it “Autumn”; changed the note"), "{html}");
    let long = "x".repeat(129);
    let fields = [("change", "words"), ("revision", "2"), ("name", &*long), ("note", "Boots in 39")];
    let refused = browser.post(&page, &fields).is(422).await;
    let refused = refused.text();
    assert!(refused.contains("1 to 128 characters"), "{refused}");
    assert!(refused.contains(&format!("value=\"{long}\"")) && refused.contains(">Boots in 39<"), "{refused}");

    // The board changes it in place; an old revision is refused.
    let seq = page.rsplit('/').next().unwrap();
    let view = format!("{WHOLE}&outfit={seq}.2");
    assert!(html.contains(&format!("outfit={seq}.2")), "{html}");
    let board = browser.page(&format!("/studio?{view}")).await;
    assert!(board.contains("Save changes") && board.contains("Save as another"), "{board}");
    let changed = change(&browser, "/studio/outfits", &[("view", &view)]).await;
    let html = browser.page(&changed).await;
    assert!(html.contains(&format!("Saved as outfit {seq}.")), "{html}");
    let html = browser.page(&page).await;
    assert!(!html.contains("Draft") && html.contains("<h1>Autumn</h1>"), "{html}");
    assert!(html.contains("Total €"), "{html}");
    assert!(!html.contains("Changed the "), "{html}");
    let late = format!("{DRAFT}&outfit={seq}.2");
    // The late one keeps the pieces, and can save another outfit.
    let there = change(&browser, "/studio/outfits", &[("view", &late)]).await;
    assert_eq!(there, format!("/studio?{late}"));
    let board = browser.page(&there).await;
    assert!(
        board.contains("was changed after you opened it") && board.contains("Save as another"),
        "{board}"
    );
    assert!(!board.contains("Save changes"), "{board}");
    // The browser's Back shows what is stored.
    let board = browser.page(&format!("/studio?{view}")).await;
    assert!(!board.contains("was changed after") && board.contains("Save changes"), "{board}");
    assert!(board.contains(&format!("outfit={seq}.3")), "{board}");
    let gone = browser.page(&format!("/studio?{WHOLE}&outfit=99999.1")).await;
    assert!(gone.contains("left out: the saved outfit, which no longer exists."), "{gone}");
    assert!(gone.contains(">Save outfit<") && !gone.contains("outfit=99999"), "{gone}");
    let fields = [("change", "words"), ("revision", "2"), ("name", "Winter"), ("note", "No wool")];
    let refused = browser.post(&page, &fields).is(409).await;
    let refused = refused.text();
    assert!(refused.contains("value=\"Winter\"") && refused.contains(">No wool<"), "{refused}");
    assert!(refused.contains("save again to keep them") && refused.contains("name=\"revision\" value=\"3\""));
    let customer = CustomerId::new("c-014871").unwrap();
    let kept = service.store.outfits().for_customer(&customer, 0, 9).await.unwrap();
    assert_eq!(kept.len(), 2, "the imported one and this");
}

#[apply(on_sqlite)]
async fn a_draft_for_nobody_is_given_to_a_customer(Stylist(service, browser): Stylist) {
    let whole = WHOLE.strip_prefix("customer=c-014871&").unwrap();
    let blank = whole.replace("slot=a-01130", "slot=");
    let html = browser.page(&format!("/studio?{blank}")).await;
    let used = uses(&html)[0].strip_prefix("/studio?").unwrap().to_owned();
    let page = save(&browser, &used).await;
    let accepted = async || service.json("/feedback/acceptance").await["total"]["accepted"].clone();
    assert_eq!(accepted().await, 0, "a draft, because it has no customer");
    let html = browser.page(&page).await;
    assert!(html.contains("For no customer yet") && html.contains(">Draft</span>"), "{html}");
    assert!(!html.contains("id=\"copy-button\""), "{html}");
    assert!(browser.page("/studio/outfits?drafts=on").await.contains("for no customer yet"));

    let give = |revision: &str, customer: &str| {
        browser.post(&page, &[("change", "give"), ("revision", revision), ("customer", customer)])
    };
    let unknown = give("1", "nobody").is(422).await;
    let unknown = unknown.text();
    assert!(unknown.contains("no such customer") && unknown.contains("value=\"nobody\""), "{unknown}");
    let late = give("0", "c-014871").is(409).await;
    assert!(late.text().contains("a colleague changed this outfit"));
    give("1", "c-014871").is(303).await;
    let html = browser.page(&page).await;
    assert!(html.contains(">c-014871</a>") && !html.contains(">Draft</span>"), "{html}");
    assert!(html.contains("Gave it to the customer"), "{html}");
    assert_eq!(accepted().await, 1, "it is complete now");
    let other = give("2", "c-000010").is(422).await;
    assert!(other.text().contains("save a copy for c-000010"));
}

#[apply(on_sqlite)]
async fn a_copy_is_for_another_customer(Stylist(service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    change(&browser, &page, &[("change", "words"), ("revision", "1"), ("name", "Autumn")]).await;
    let copy = |customer: &str| {
        browser.post(&page, &[("change", "copy"), ("revision", "2"), ("customer", customer)])
    };
    let own = copy("c-014871").is(422).await;
    assert!(own.text().contains("c-014871 already has this outfit"));
    service.put("/customers/found", &json!({"features": {"name": "Zenobia Quill"}})).await;
    assert_eq!(copy("quill").await.status(), 303, "what a search finds");
    let many = copy("female").await.text();
    assert!(many.contains("customers match “female”; enter an id"), "{many}");
    let refused = copy("nobody").is(422).await;
    assert!(refused.text().contains("there is no such customer"));
    // What does not suit the other customer is said on the copy's page.
    let kind = service.json("/articles/a-00134").await["type"].clone();
    service.put("/customers/against", &json!({"features": {"nogo_types": [kind]}})).await;
    let html = browser.page(copy("against").await.header("location")).await;
    let (_, said) = html.split_once("Check for this customer:").expect(&html);
    assert!(said.split("</div>").next().unwrap().contains("is a no-go."), "{said}");
    service.put("/customers/anyone", &json!({"features": {}})).await;
    let html = browser.page(copy("anyone").await.header("location")).await;
    assert!(!html.contains("Check for this customer:"), "{html}");
    let copied = copy(" c-000010 ").is(303).await;
    let there = copied.header("location").to_owned();
    assert_ne!(there, page);
    let html = browser.page(&there).await;
    assert!(html.contains("<h1>Autumn</h1>") && html.contains("customer=c-000010"), "{html}");
    assert!(!html.contains("c-014871"), "nothing of the other customer");
    assert_eq!(copy("c-000010").await.header("location"), there, "a double click makes one");
    let named = [("change", "words"), ("revision", "2"), ("name", "Autumn of C-014871")];
    change(&browser, &page, &named).await;
    service.put("/customers/next", &json!({"features": {}})).await;
    let next = browser.post(&page, &[("change", "copy"), ("revision", "3"), ("customer", "next")]).await;
    let html = browser.page(next.header("location")).await;
    assert!(!html.to_lowercase().contains("c-014871"), "a name with the other's id is not copied: {html}");
    let list = browser.page("/studio/outfits?find=autumn").await;
    assert!(
        list.contains("5 outfits") && list.contains("for c-000010") && list.contains("for c-014871"),
        "{list}"
    );
    assert!(browser.page("/studio/outfits?find=autumn+c-000010").await.contains("1 outfit</span>"));
    assert!(browser.page("/studio/outfits?find=autumn%2C+c-000010").await.contains("1 outfit</span>"));
    assert!(browser.page("/studio/outfits?find=autumn&drafts=on").await.contains("No outfits match"));
}

#[apply(on_sqlite)]
async fn a_deletion_is_undone(Stylist(service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    let there = change(&browser, &page, &[("change", "delete"), ("revision", "1")]).await;
    let html = browser.page(&there).await;
    assert!(
        html.contains("is deleted. You can restore it") && html.contains("No saved outfits yet"),
        "{html}"
    );
    let html = browser.page(&page).await;
    assert!(html.contains("This outfit was deleted on") && !html.contains("id=\"make-link\""), "{html}");
    assert_eq!(service.get(&page.replace("/studio", "")).await.status(), 404, "the API has deleted it");
    let back = change(&browser, &page, &[("change", "restore"), ("revision", "0")]).await;
    assert_eq!(back, page);
    let html = browser.page(&page).await;
    assert!(!html.contains("was deleted") && html.contains("Restored"), "{html}");
    service.get(&page.replace("/studio", "")).is(200).await;
}

#[apply(contract)]
async fn an_outfit_that_cannot_be_saved_stays_on_its_page(Stylist(_service, browser): Stylist) {
    let first = save(&browser, WHOLE).await;
    let second = save(&browser, &WHOLE.replace("a-01130", "a-01243")).await;
    let number = |page: &str| page.rsplit('/').next().unwrap().to_owned();
    let view = format!("{WHOLE}&outfit={}.1", number(&second));
    let refused = browser.post("/studio/outfits", &[("view", &view)]).is(409).await;
    let html = refused.text();
    let said = format!("open that one: <a href=\"{first}\">outfit {}</a>", number(&first));
    assert!(html.contains(&said) && html.contains("id=\"save\""), "{html}");

    let view = format!("{WHOLE}&outfit={}.1", number(&first));
    let refused = browser.post("/studio/outfits", &[("view", &view), ("another", "on")]).is(422).await;
    assert!(refused.text().contains("this is still the same outfit"));

    // The pieces of a deleted outfit are saved again, which is in the way of restoring it.
    change(&browser, &first, &[("change", "delete"), ("revision", "1")]).await;
    let third = save(&browser, WHOLE).await;
    let refused = browser.post(&first, &[("change", "restore"), ("revision", "0")]).is(409).await;
    let html = refused.text();
    assert!(html.contains("Couldn’t restore: ") && html.contains(&format!("<a href=\"{third}\">")), "{html}");
}

#[apply(on_sqlite)]
async fn the_customers_link_needs_no_sign_in_and_shows_no_more_than_pieces(
    Stylist(service, browser): Stylist,
    db: TestDatabase,
) {
    let page = save(&browser, WHOLE).await;
    let words = [
        ("change", "words"),
        ("revision", "1"),
        ("name", "Autumn"),
        ("note", "pays late"),
        ("message", "For your office"),
    ];
    change(&browser, &page, &words).await;
    let share = async || {
        change(&browser, &page, &[("change", "share"), ("revision", "2"), ("days", "30")]).await;
        let html = browser.page(&page).await;
        let (_, link) = html.split_once(&format!("{}/shared/", service.url)).unwrap();
        format!("/shared/{}", link.split('<').next().unwrap())
    };
    let link = share().await;
    let answer = service.page(&link).is(200).await;
    assert_eq!(answer.header("x-robots-tag"), "noindex, nofollow");
    assert_eq!(
        (answer.header("referrer-policy"), answer.header("cache-control")),
        ("no-referrer", "no-store")
    );
    let html = answer.text();
    assert!(html.contains("<h1>Autumn</h1>") && html.contains("Total €"), "{html}");
    assert!(html.contains("From Some stylist.") && html.contains("For your office"), "{html}");
    assert_eq!(html.matches("class=\"picture\"").count(), 4);
    for hidden in ["c-014871", "pays late", "<nav", "/studio", "rank", "match", "female"] {
        assert!(!html.contains(hidden), "{hidden} in {html}");
    }

    // The token is not in the database, and a newer link replaces it.
    let token = link.strip_prefix("/shared/").unwrap();
    let everything = crate::store::erasing::everything(&db, &mut db.raw().await).await;
    assert!(!everything.contains(token));
    let newer = share().await;
    service.page(&link).is(404).await;
    service.page(&newer).is(200).await;
    change(&browser, &page, &[("change", "withdraw"), ("revision", "2")]).await;
    let gone = service.page(&newer).await;
    assert_eq!((gone.status(), gone.header("x-robots-tag")), (404, "noindex, nofollow"));
    assert!(gone.text().contains("Ask your stylist for a new one"));
    service.page("/shared/nonsense").is(404).await;
    let failed = service.delete(link).header("accept", "text/html");
    let failed = failed.is(405).await;
    let failed = failed.text();
    assert!(failed.contains("ask your stylist") && !failed.contains("Studio"), "{failed}");

    let last = share().await;
    sqlx::query("update outfits set link_expires_at = 1 where link_hash is not null")
        .execute(&mut db.raw().await)
        .await
        .unwrap();
    let over = service.page(&last).is(410).await;
    assert!(over.text().contains("This link has expired"));
    assert!(browser.page(&page).await.contains("The last link expired on"));
}

#[apply(contract)]
async fn a_customers_replies_reach_the_queue(Stylist(service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    change(&browser, &page, &[("change", "share"), ("revision", "1"), ("days", "14")]).await;
    let html = browser.page(&page).await;
    let (_, link) = html.split_once("/shared/").unwrap();
    let link = format!("/shared/{}", link.split('<').next().unwrap());
    // Another session does not see it.
    assert!(!service.signed_in(Role::Stylist).await.page(&page).await.contains(&link));
    let guest = async |fields: &[(&str, &str)]| service.form(&link, fields).await.status;
    assert!(!browser.page("/studio").await.contains("replied-title"));
    assert_eq!(guest(&[("text", "  ")]).await, 200);
    assert!(!browser.page("/studio").await.contains("replied-title"), "nothing was said");
    let sent =
        [&[("dislikes", "a-00568"), ("text", "")][..], &[("text", "Is it <b>warm</b>?")], &[("likes", "on")]];
    for fields in sent {
        assert_eq!(guest(fields).await, 200);
        assert_eq!(guest(fields).await, 200, "a double click");
    }
    // What was typed stays in the field.
    for (fields, said) in [
        ("text=is+it+warm%07", "Not sent: "),
        ("dislikes=a-00001&text=is+it+warm%3F", "Not sent: the outfit has no article a-00001"),
    ] {
        let refused = service.post(&link, "application/x-www-form-urlencoded", fields).await;
        assert_eq!(refused.status(), 422, "{fields}");
        let html = refused.text();
        assert!(html.contains(said) && html.contains("\nis it warm"), "{fields}: {html}");
    }
    for odd in ["/shared/%0A", "/shared/nonsense"] {
        let answer = service.post(odd, "application/x-www-form-urlencoded", "likes=on").await;
        assert_eq!(answer.status(), 404, "{odd}");
    }
    assert!(browser.page("/studio").await.contains("replied-title"));
    let html = browser.page(&page).await;
    let name = service.json("/articles/a-00568").await["name"].as_str().unwrap().to_owned();
    for said in [
        &*format!("Dislikes {name}"),
        "Asks: Is it &#60;b&#62;warm&#60;/b&#62;?",
        "Likes it",
        "The customer replied",
    ] {
        assert!(html.contains(said), "{said} in {html}");
    }
    let export = service.json("/customers/c-014871/export").await;
    let saved =
        export["outfits"].as_array().unwrap().iter().find(|outfit| outfit["replies"].is_array()).unwrap();
    assert_eq!(saved["replies"].as_array().unwrap().len(), 3);
    assert_eq!(saved["replies"][1]["text"], "Is it <b>warm</b>?");
    let seen = |html: &str| {
        html.split_once("name=\"seen\" value=\"").unwrap().1.split('"').next().unwrap().to_owned()
    };
    let before = seen(&html);
    // The next reply is in a later millisecond.
    until!(Timestamp::from(SystemTime::now()).millis() > before.parse::<i64>().unwrap());
    assert_eq!(guest(&[("text", "And in red?")]).await, 200);
    change(&browser, &page, &[("change", "answer"), ("revision", "1"), ("seen", &before)]).await;
    assert!(browser.page("/studio").await.contains("replied-title"), "a reply came meanwhile");
    assert!(browser.page("/studio/outfits?replied=on").await.contains(&page));
    let now = seen(&browser.page(&page).await);
    change(&browser, &page, &[("change", "answer"), ("revision", "1"), ("seen", &now)]).await;
    assert!(!browser.page("/studio/outfits?replied=on").await.contains(&page));
    assert!(!browser.page("/studio").await.contains("replied-title"));
    let mut sent = 4;
    while guest(&[("text", &format!("{sent}?"))]).await == 200 {
        sent += 1;
    }
    assert_eq!((sent, guest(&[("text", "more")]).await), (12, 429));
    let html = browser.page(&page).await;
    let seen = seen(&html);
    change(&browser, &page, &[("change", "answer"), ("revision", "1"), ("seen", &seen)]).await;
    change(&browser, &page, &[("change", "withdraw"), ("revision", "1")]).await;
    assert_eq!(guest(&[("likes", "on")]).await, 404, "the link is gone");
    assert!(!browser.page("/studio").await.contains("replied-title"));
}

#[apply(contract)]
async fn deleted_outfits_are_listed_and_removed_articles_keep_their_names(
    Stylist(service, browser): Stylist,
) {
    let body = json!({"type": "coat", "name": "Loden coat", "colour": "green", "price": 90});
    service.put("/articles/loden", &body).await;
    let page = save(&browser, &WHOLE.replace("a-01130", "loden")).await;
    service.delete("/articles/loden").await;
    for path in [&*page, "/studio/outfits"] {
        let html = browser.page(path).await;
        assert!(html.contains("/pictures/coat.svg?colour=green"), "{path}: {html}");
    }
    let html = browser.page(&page).await;
    assert!(html.contains("Loden coat (no longer in the catalogue)") && html.contains(">loden<"), "{html}");

    assert!(!browser.page("/studio/outfits?bin=on").await.contains(&page));
    change(&browser, &page, &[("change", "delete"), ("revision", "1")]).await;
    let bin = browser.page("/studio/outfits?bin=on").await;
    assert!(bin.contains(&page) && bin.contains("Deleted on "), "{bin}");
    assert!(!browser.page("/studio/outfits").await.contains(&format!("{page}\"")));
}

#[apply(on_sqlite)]
async fn saved_outfits_need_a_stylist(Stylist(service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    for path in ["/studio/outfits", &page] {
        let answer = service.get(path).await;
        assert_eq!(answer.status(), 303, "{path}");
        assert!(answer.header("location").starts_with("/sign-in?next="));
    }
    for (path, fields) in [
        (page.as_str(), [("change", "delete"), ("revision", "1")]),
        ("/studio/notes", [("customer", "c-000010"), ("note", "x")]),
    ] {
        let refused = browser.post_bare(path, &fields).await;
        assert_eq!(refused.status(), 403, "without the form's token");
        let html = refused.text();
        assert!(html.contains("belongs to another sign-in") && !html.contains("permission"), "{html}");
    }
    browser.get("/studio/outfits/999999").is(404).await;
    browser.post(&page, &[("change", "sell"), ("revision", "1")]).is(422).await;
    assert!(browser.page(&page).await.contains("id=\"delete\""));
}

#[apply(contract)]
async fn a_customers_page_has_sizes_notes_outfits_and_feedback(Stylist(service, browser): Stylist) {
    let features = json!({"features": {"top_size": "M", "shoe_size": "38"}});
    service.put("/customers/zoe", &features).is(201).await;
    let body = json!({"customer": "zoe", "outfit": ["a-00134", null, "a-00568", "a-00259"], "method": "gsu"});
    let completion = service.ask_ok("/complete", &body).await;
    let ids: Vec<&str> = completion["blanks"][0]["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["article"]["id"].as_str().unwrap())
        .collect();
    let report = async |kind: FeedbackKind, article: &str| {
        let event = json!({"id": format!("{}-{article}", kind.as_str()), "completion_id": completion["completion_id"],
            "kind": kind.as_str(), "slot": 1, "article": article, "customer": "zoe"});
        let (status, answer) = service.ask("/feedback", &event).await;
        assert_eq!(status, 200, "{answer}");
    };
    report(FeedbackKind::Rejected, ids[0]).await;
    report(FeedbackKind::Bought, ids[1]).await;
    let note = |text| [("customer", "zoe"), ("note", text)];
    change(&browser, "/studio/notes", &note("Prefers <i>calls</i>\nat night")).await;
    change(&browser, "/studio/notes", &note("Prefers <i>calls</i>\nat night")).await;
    for (wrong, kept) in [("  ", "write something"), ("Calls\tat night", ">\nCalls\tat night</textarea>")] {
        let refused = browser.post("/studio/notes", &note(wrong)).is(422).await;
        let refused = refused.text();
        assert!(refused.contains(kept) && refused.contains("For zoe"), "{refused}");
        assert_eq!(refused.matches("Some stylist").count(), 2, "a double click adds one note: {refused}");
    }
    save(&browser, &DRAFT.replace("c-014871", "zoe")).await;

    let html = browser.page("/studio?customer=zoe").await;
    for part in [
        "<dt>Top size</dt><dd>M</dd>",
        "<dt>Shoe size</dt><dd>38</dd>",
        "Prefers &#60;i&#62;calls&#60;/i&#62;\nat night",
        "Some stylist",
        "<h2 id=\"bought-title\">Bought</h2>",
        "<h2 id=\"refused-title\">Not for this customer</h2>",
        "Continue",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    let (_, id) = html.split_once("name=\"deleted\" value=\"").unwrap();
    let id = id.split('"').next().unwrap();
    change(&browser, "/studio/notes", &[("customer", "zoe"), ("deleted", id)]).await;
    assert!(browser.page("/studio?customer=zoe").await.contains("No notes yet"));
    // It is taken back here, and a later purchase ends a refusal.
    let (_, undone) = html.split_once("name=\"undone\" value=\"").unwrap();
    let undone = undone.split('"').next().unwrap();
    change(&browser, "/studio/feedback", &[("view", "customer=zoe"), ("undone", undone)]).await;
    assert!(!browser.page("/studio?customer=zoe").await.contains("refused-title"));
    report(FeedbackKind::Rejected, ids[2]).await;
    assert!(browser.page("/studio?customer=zoe").await.contains("refused-title"));
    report(FeedbackKind::Bought, ids[2]).await;
    assert!(!browser.page("/studio?customer=zoe").await.contains("refused-title"));
    let export = service.json("/customers/zoe/export").await;
    assert_eq!(export["outfits"][0]["draft"], true);
}

#[apply(on_sqlite)]
async fn the_queue_has_drafts_and_customers(Stylist(service, browser): Stylist) {
    let html = browser.page("/studio").await;
    assert!(html.contains("No saved outfit yet") && !html.contains("Longest without a new outfit"), "{html}");
    // The latest customers come first, until they have an outfit.
    service.put("/customers/new", &json!({"features": {}})).await;
    let never = async || {
        let html = browser.page("/studio").await;
        html.split_once("id=\"never-title\"").unwrap().1.split_once("</section>").unwrap().0.to_owned()
    };
    assert!(never().await.contains("<strong>new</strong>"));
    save(&browser, &WHOLE.replace("c-014871", "new")).await;
    assert!(!never().await.contains("<strong>new</strong>"));
    save(&browser, DRAFT).await;
    let whole = save(&browser, WHOLE).await;
    let html = browser.page("/studio").await;
    assert!(html.contains("Your drafts") && html.contains("Longest without a new outfit"), "{html}");
    assert!(!html.contains("Refused suggestions"), "{html}");
    let address = format!("/studio?{DRAFT}");
    let suggestions = browser.page(&address).await;
    let (_, refused) = suggestions.split_once("name=\"refused\" value=\"").unwrap();
    let refused = refused.split('"').next().unwrap();
    browser.post("/studio/feedback", &[("view", DRAFT), ("refused", refused)]).is(303).await;
    let html = browser.page("/studio").await;
    assert!(html.contains("1 suggestion refused since their last outfit"), "{html}");
    // Drafts are their stylist's, and an outfit answers the refusal.
    let colleague = service.signed_in(Role::Admin).await.page("/studio").await;
    assert!(!colleague.contains("Your drafts") && colleague.contains("Refused suggestions"), "{colleague}");
    change(&browser, &whole, &[("change", "delete"), ("revision", "1")]).await;
    save(&browser, &WHOLE.replace("a-01130", "a-01243")).await;
    assert!(!browser.page("/studio").await.contains("Refused suggestions"));
}

#[apply(on_sqlite)]
async fn all_drafts_are_the_stylists_own(Stylist(service, browser): Stylist) {
    let articles = ["a-00134", "a-01130", "a-00568", "a-00259", "a-01243"];
    for article in articles {
        save(&browser, &format!("customer=c-014871&slot={article}")).await;
    }
    save(&service.signed_in(Role::Admin).await, DRAFT).await;
    let html = browser.page("/studio").await;
    let link = "<a href=\"/studio/outfits?drafts=on&amp;mine=on\">All 5 drafts</a>";
    assert!(html.contains(link), "{html}");
    let list = async |query: &str| browser.page(&format!("/studio/outfits?{query}")).await;
    assert!(list("drafts=on&mine=on").await.contains("5 outfits</span>"));
    assert!(list("drafts=on").await.contains("6 outfits</span>"));
}

#[apply(on_sqlite)]
async fn prices_have_the_shops_currency(Stylist(service, browser): Stylist) {
    for (id, price, currency) in
        [("p-1", json!(1200), None), ("p-2", json!(316.6), None), ("p-3", json!(5.25), Some("GBP"))]
    {
        let mut body = json!({"type": "coat", "price": price});
        if let Some(currency) = currency {
            body["currency"] = currency.into();
        }
        service.put(&format!("/articles/{id}"), &body).is(201).await;
    }
    let html = browser.page("/studio?slot=p-1&slot=p-2").await;
    for part in ["· €1,200<", "· €316.60<", "Total €1,516.60"] {
        assert!(html.contains(part), "{part} in {html}");
    }
    let mixed = browser.page("/studio?slot=p-1&slot=p-3").await;
    assert!(
        mixed.contains("· £5.25<") && !mixed.contains("Total €") && !mixed.contains("Total £"),
        "two currencies have no sum: {mixed}"
    );
}

#[apply(on_sqlite)]
async fn the_api_has_names_notes_and_drafts(Demo(service): Demo) {
    let save = async |body: Value| service.ask("/outfits", &body).await;
    let body = json!({"customer": "c-014871", "articles": ["a-00134", null], "name": "Autumn", "note": "38"});
    let (status, saved) = save(body.clone()).await;
    assert_eq!(status, 201, "{saved}");
    assert_eq!((&saved["draft"], &saved["articles"]), (&json!(true), &body["articles"]));
    assert_eq!((&saved["name"], &saved["note"]), (&json!("Autumn"), &json!("38")));
    let path = format!("/outfits/{}", saved["id"]);
    let renamed = json!({"customer": "c-014871", "articles": ["a-00134", null], "name": "Winter"});
    let (status, saved) = save(renamed).await;
    assert_eq!((status, &saved["name"], &saved["note"]), (200, &json!("Winter"), &json!("38")));
    assert_eq!(service.json(&path).await["name"], "Winter");
    let listed = async |query: &str| {
        let page = service.json(&format!("/customers/c-014871/outfits{query}")).await;
        page["items"].as_array().unwrap().len()
    };
    assert_eq!((listed("").await, listed("?drafts=true").await), (1, 2));
    for (field, value, pointer) in [
        ("name", json!(" x"), "/name"),
        ("note", json!("\u{0}"), "/note"),
        ("articles", json!(["a-00134", null, "a-00134"]), "/articles/2"),
        ("articles", json!(["a-00134", "a-00568"]), "/articles"),
        ("articles", json!([null, "gone"]), "/articles/1"),
    ] {
        let mut wrong = body.clone();
        wrong[field] = value;
        let (status, problem) = save(wrong).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!(pointer)), "{problem}");
    }
    service.delete(&path).is(204).await;
    service.get(&path).is(404).await;
}

#[apply(on_sqlite)]
async fn an_imported_outfit_is_saved_unchanged(Stylist(_service, browser): Stylist) {
    let html = browser.page("/studio?customer=c-014871").await;
    let card = html.split_once("<ul class=\"outfits\">").unwrap().1;
    assert!(card.contains("Use as a starting point"), "{card}");
    let (_, board) = card.split_once("class=\"small\" href=\"/studio?").unwrap();
    let board = board.split('"').next().unwrap().replace("&#38;", "&");
    assert!(
        board.contains("begun="),
        "its suggestions count apart from those of the customer's other outfits: {board}"
    );
    let page = save(&browser, &board).await;
    let html = browser.page(&page).await;
    assert!(html.contains("Saved by Some stylist") && html.contains("id=\"save-words\""), "{html}");
    assert_eq!(save(&browser, &board).await, page, "once");
    change(&browser, &page, &[("change", "words"), ("revision", "2"), ("name", "Autumn")]).await;
    assert!(browser.page("/studio/outfits?find=autumn+c-014871").await.contains("1 outfit</span>"));
}

#[apply(contract)]
async fn a_customer_has_a_list_of_their_outfits(Stylist(service, browser): Stylist) {
    let list = async |query: &str| browser.page(&format!("/studio/outfits?{query}")).await;
    let html = list("customer=c-014871").await;
    assert!(
        html.contains("1 outfit</span>") && html.contains("Use as a starting point"),
        "the imported one: {html}"
    );
    for id in ["c-1", "c-10"] {
        service.put(&format!("/customers/{id}"), &json!({"features": {}})).await;
        save(&browser, &WHOLE.replace("c-014871", id)).await;
    }
    let own = list("customer=c-1").await;
    assert!(
        own.contains("Outfits of c-1<") && own.contains("1 outfit</span>") && !own.contains("c-10"),
        "{own}"
    );
    let link = "href=\"/studio/outfits?customer=c-1\">All outfits of this customer";
    let page = browser.page("/studio?customer=c-1").await;
    assert!(page.contains(link), "{page}");
    assert!(list("customer=c-1&find=autumn").await.contains("Try fewer words."));
    assert!(list("customer=c-1&drafts=on").await.contains("<p>Show all outfits.</p>"));
    assert!(list("customer=nobody").await.contains("There is no customer nobody"));
}

#[apply(on_sqlite)]
async fn the_history_names_what_changed(Stylist(_service, browser): Stylist) {
    let page = save(&browser, WHOLE).await;
    let seq = page.rsplit('/').next().unwrap();
    let changes = [
        ("own.occasion=office", "Changed the occasion"),
        ("own.occasion=office&own.price_tops=upper", "Changed the price for tops"),
        ("own.fit=slim", "Changed the fit, occasion and price for tops"),
    ];
    for (revision, (own, said)) in (1..).zip(changes) {
        let view = format!("{WHOLE}&{own}&outfit={seq}.{revision}");
        change(&browser, "/studio/outfits", &[("view", &view)]).await;
        let html = browser.page(&page).await;
        assert!(html.contains(&format!("<br>{said}</li>")), "{said} in {html}");
    }
    // Where a link says nonsense, the list starts at its first page.
    assert!(browser.page("/studio/outfits?page=x&deleted=y").await.contains("1 outfit</span>"));
}
