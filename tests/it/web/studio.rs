//! `/studio` by its HTML; tests/it/browser uses it in a browser.

use std::cmp::Reverse;

use atelier::{
    domain::{ArticleId, CustomerId, Role},
    store::{FeedbackKind, Origin},
};
use futures_util::TryStreamExt;
use serde_json::json;

use super::{Browser, Service, header};
use crate::harness::{TestDatabase, contracts};

contracts!(
    suggests_what_complete_answers,
    describes_the_profile_in_words,
    records_accepted_and_rejected_suggestions,
    saves_an_outfit,
    refuses_to_save_an_invalid_outfit,
    escapes_article_texts,
    works_without_a_release_and_without_a_customer,
    reports_an_invalid_address,
    finds_articles_by_words,
    stays_small_with_eight_blanks,
);

const CUSTOMER: &str = "customer=c-014871";
const OUTFIT: &str = "slot=a-00134&slot=&slot=a-00568&slot=a-00259";

async fn stylist(db: &TestDatabase) -> (Service, Browser) {
    let service = Service::demo(db).await;
    let browser = service.signed_in(Role::Stylist).await;
    (service, browser)
}

/// The values of the suggestions' buttons: verdict, slot, rank and article.
fn verdicts<'h>(html: &'h str, kind: &str) -> Vec<&'h str> {
    let values = html.split("name=\"verdict\" value=\"").skip(1).filter_map(|rest| rest.split('"').next());
    values.filter(|value| value.starts_with(kind)).collect()
}

fn hidden<'h>(html: &'h str, name: &str) -> &'h str {
    let (_, rest) = html.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{html}"));
    rest.split('"').next().unwrap()
}

async fn suggests_what_complete_answers(db: TestDatabase) {
    let (service, browser) = stylist(&db).await;
    let html = browser.page(&format!("/studio?{CUSTOMER}&{OUTFIT}&type=1:coat&method=gsu&k=4")).await;
    let answer = service
        .ask_ok(
            "/complete",
            &json!({"customer": "c-014871", "outfit": ["a-00134", null, "a-00568", "a-00259"], "method": "gsu",
                    "k": 4, "filters": {"types": {"1": ["coat"]}}, "lift": true, "explain": true}),
        )
        .await;
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap();
    let expected: Vec<String> = suggestions
        .iter()
        .map(|one| format!("accepted/1/{}/{}", one["rank"], one["article"]["id"].as_str().unwrap()))
        .collect();
    assert_eq!(verdicts(&html, "accepted"), expected);
    let first = &suggestions[0];
    let share = format!("<strong>{:.0} %</strong>", 100.0 * first["share"].as_f64().unwrap());
    assert!(html.contains(&share), "{share}");
    for reason in first["reasons"].as_array().unwrap() {
        let factor = reason["factor"].as_f64().unwrap();
        let factor = if factor < 10.0 { format!("×{factor:.2}") } else { format!("×{factor:.0}") };
        assert!(html.contains(&factor), "{factor} in {html}");
    }
    let best = format!("the best of {}", answer["blanks"][0]["admissible"]);
    assert!(html.contains("Which coat?") && html.contains(&best), "{html}");
}

async fn describes_the_profile_in_words(db: TestDatabase) {
    let (_service, browser) = stylist(&db).await;
    let html = browser.page(&format!("/studio?{CUSTOMER}")).await;
    for words in ["female", "28", "Sweden", "167 cm", "53 kg", "no brown, no navy, no red", "no leather"] {
        assert!(html.contains(&format!("</span>{words}</li>")), "{words} in {html}");
    }
    let found = browser.page("/studio?find=sweden+0148").await;
    assert!(found.contains("<strong>c-014871</strong>") && !found.contains("c-000010"), "{found}");
    let unknown = browser.page("/studio?find=nobody+such").await;
    assert!(unknown.contains("No customers match"), "{unknown}");
}

async fn records_accepted_and_rejected_suggestions(db: TestDatabase) {
    let (service, browser) = stylist(&db).await;
    let view = format!("{CUSTOMER}&{OUTFIT}&type=1%3Acoat");
    let html = browser.page(&format!("/studio?{view}")).await;
    let first = verdicts(&html, "accepted")[0].to_owned();
    let article = first.rsplit('/').next().unwrap();
    let fields_of = |verdict: &str| {
        let fields = [("view", view.clone()), ("completion_id", hidden(&html, "completion_id").to_owned())];
        fields.into_iter().chain([("verdict", verdict.to_owned())]).collect::<Vec<_>>()
    };
    let send = async |verdict: &str| {
        let fields = fields_of(verdict);
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        browser.post("/studio/feedback", &fields).await
    };
    let turned_down = send(verdicts(&html, "rejected")[1]).await;
    assert_eq!(turned_down.status(), 303);
    let next = header(&turned_down, "location").to_owned();
    let second = verdicts(&html, "accepted")[1].to_owned();
    let after = browser.page(&next).await;
    let gone = second.rsplit('/').next().unwrap();
    assert!(verdicts(&after, "accepted").iter().all(|one| !one.ends_with(gone)), "{gone} in {after}");
    assert!(after.contains("1 turned down."));

    // The same request again changes nothing.
    for _ in 0..2 {
        let taken = send(&first).await;
        assert_eq!(
            header(&taken, "location"),
            format!("/studio?{CUSTOMER}&{}", OUTFIT.replace("slot=&", &format!("slot={article}&")))
        );
    }
    let customer = CustomerId::new("c-014871").unwrap();
    let events = service.store.feedback().for_customer(&customer).try_collect::<Vec<_>>().await.unwrap();
    // Both events have the same time, so either may be listed first.
    let mut kinds: Vec<_> = events.iter().map(|event| (event.kind, event.rank)).collect();
    kinds.sort_by_key(|&(kind, rank)| (Reverse(rank), kind != FeedbackKind::Shown));
    let (shown, accepted, rejected) = (FeedbackKind::Shown, FeedbackKind::Accepted, FeedbackKind::Rejected);
    assert_eq!(kinds, [(shown, 2), (rejected, 2), (shown, 1), (accepted, 1)]);
    let taken = events.iter().find(|event| event.kind == accepted).unwrap();
    assert_eq!(taken.article.as_str(), article);

    for nonsense in ["", "loved/1/1/a-1", "accepted/9/1/a-1", "accepted/1/x/a-1", "accepted/1/1/"] {
        assert_eq!(send(nonsense).await.status(), 422, "{nonsense}");
    }
    assert_eq!(send("accepted/1/1/a-00001").await.status(), 422, "it was not suggested");
}

async fn saves_an_outfit(db: TestDatabase) {
    let (service, browser) = stylist(&db).await;
    let whole = format!("{CUSTOMER}&slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130&own.occasion=office");
    let saved = browser.post("/studio/outfits", &[("view", &whole)]).await;
    assert_eq!(saved.status(), 303);
    let there = header(&saved, "location").to_owned();
    let html = browser.page(&there).await;
    let customer = CustomerId::new("c-014871").unwrap();
    let kept = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap().pop().unwrap();
    assert!(html.contains(&format!("Saved as outfit {}", kept.seq)), "{html}");
    assert_eq!(kept.origin, Origin::Saved);
    let ids: Vec<&str> = kept.outfit.articles().iter().map(ArticleId::as_str).collect();
    assert_eq!(ids, ["a-00134", "a-00568", "a-00259", "a-01130"]);
    assert_eq!(kept.outfit.features.iter().count(), 1);
    let audit = service.log(1).await.remove(0);
    assert_eq!((audit.action.as_str(), audit.customer), ("outfit.save", Some(customer)));
    let outfits = browser.page(&format!("/studio?{CUSTOMER}")).await;
    assert!(outfits.contains("slot=a-00134&#38;slot=a-00568") && outfits.contains("own.occasion=office"));
}

async fn refuses_to_save_an_invalid_outfit(db: TestDatabase) {
    let (service, browser) = stylist(&db).await;
    for (view, said) in [
        ("slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130", "choose one first"),
        ("customer=c-014871&slot=a-00134&slot=&slot=a-00259&slot=a-01130", "still has a blank"),
        ("customer=c-014871&slot=a-00134", "four to eight"),
        ("customer=c-014871&slot=a-1&slot=a-00568&slot=a-00259&slot=a-01130", "not in the catalogue"),
        ("customer=nobody&slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130", "no such customer"),
    ] {
        let refused = browser.post("/studio/outfits", &[("view", view)]).await;
        assert!(refused.status().is_client_error(), "{view}: {}", refused.status());
        let html = refused.text().await.unwrap();
        let four = html.contains("at least 4") || html.contains("4 to 8") || html.contains(said);
        assert!(four, "{view}: {html}");
    }
    assert_eq!(service.log(9).await, []);
    let elsewhere = browser.post("/studio/outfits", &[("view", "https://elsewhere/")]).await;
    assert_eq!(elsewhere.status(), 422);
}

async fn escapes_article_texts(db: TestDatabase) {
    let (service, browser) = stylist(&db).await;
    let evil = "<script>alert(1)</script>\"' onload=x";
    let body = json!({"type": "coat", "name": evil, "colour": "\"><b>", "brand": evil, "price": 1});
    assert_eq!(service.put("/articles/a-evil", &body).await.status(), 201);
    let features = json!({"features": {"gender": evil, "preferred_brands": [evil]}});
    service.put("/customers/c-evil", &features).await;
    let address = "/studio?customer=c-evil&slot=a-evil&slot=&slot=a-00134&slot=a-00568&pick=1&search=alert&if.gender=%3Cb%3E";
    for path in [address, "/studio?find=evil", "/side-by-side?customer=c-evil&slot=a-evil&slot="] {
        let html = service.signed_in(Role::Admin).await.page(path).await;
        assert!(
            !html.contains("<script>alert") && !html.contains("<b>") && !html.contains("\"' onload"),
            "{html}"
        );
    }
    let found = browser.page(address).await;
    assert!(found.contains("&#60;script&#62;alert(1)"), "{found}");
}

async fn works_without_a_release_and_without_a_customer(db: TestDatabase) {
    let service = Service::start(&db).await;
    service.bring_in_demo().await;
    let browser = service.signed_in(Role::Stylist).await;
    let html = browser.page(&format!("/studio?{CUSTOMER}&{OUTFIT}")).await;
    assert!(html.contains("No release is live"), "{html}");
    drop(service);

    let (_service, browser) = stylist(&db).await;
    let html = browser.page(&format!("/studio?{OUTFIT}")).await;
    assert!(html.contains("Without a customer") && verdicts(&html, "accepted").len() == 8, "{html}");
    let html = browser.page(&format!("/studio?customer=nobody&{OUTFIT}")).await;
    assert!(html.contains("There is no customer nobody"), "{html}");
}

async fn reports_an_invalid_address(db: TestDatabase) {
    let (_service, browser) = stylist(&db).await;
    for path in ["/studio?slot=%00", "/studio?method=best&slot=", "/studio?nonsense=1"] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status(), 422, "{path}");
        let html = answer.text().await.unwrap();
        assert!(html.contains("Invalid request"), "{html}");
    }
    for (filter, said) in [("type=0:spaceship", "spaceship"), ("price_min=100&price_max=50", "price")] {
        let html = browser.page(&format!("/studio?slot=&slot=a-00134&{filter}")).await;
        assert!(
            html.contains("No suggestions") && html.contains(said) && html.contains("id=\"price-max\""),
            "{html}"
        );
    }
    let html = browser.page("/studio?slot=gone&slot=a-00134&slot=a-00568&slot=a-00259").await;
    assert!(html.contains("no longer in the catalogue"), "{html}");
}

async fn finds_articles_by_words(db: TestDatabase) {
    let (_service, browser) = stylist(&db).await;
    let html = browser.page(&format!("/studio?{CUSTOMER}&{OUTFIT}&pick=1&search=black+leather+boot")).await;
    let (_, found) = html.split_once("Search the catalogue for slot 2").unwrap();
    let (found, _) = found.split_once("</section>").unwrap();
    assert!(found.matches("leather boot").count() >= 3, "{found}");
    assert!(found.contains("slot=a-00134&#38;slot=a-0"), "each fills the slot: {found}");
}

async fn stays_small_with_eight_blanks(db: TestDatabase) {
    let (_service, browser) = stylist(&db).await;
    let blanks = "slot=&".repeat(8);
    let html = browser.page(&format!("/studio?{CUSTOMER}&{blanks}k=24")).await;
    assert!(html.len() < 150_000, "{} bytes", html.len());
    assert_eq!(verdicts(&html, "accepted").len(), 8 * 4);
}
