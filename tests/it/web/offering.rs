//! What Studio says to a ranks and offers, by its HTML.

use atelier::outcomes::FeedbackKind;
use atelier_core::domain::{CustomerId, Role};
use futures_util::TryStreamExt;
use serde_json::json;

use super::{
    Service, Stylist,
    studio::{CUSTOMER, OUTFIT, refusals, suggested},
};
use crate::harness::{apply, contract, on_sqlite};

#[apply(on_sqlite)]
async fn says_warnings_in_a_shops_words(Stylist(service, browser): Stylist) {
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=")).await;
    assert!(html.contains("Add 3 more pieces for better suggestions."), "{html}");
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&total=1")).await;
    assert!(html.contains("Nothing fits the €1 budget."), "{html}");
    assert!(!html.contains("slot 1") && !html.contains("models"), "{html}");
    service.put("/articles/free", &json!({"type": "bag", "name": "The free bag"})).await;
    service.releases.refresh().await.unwrap();
    let html = browser.page("/studio?slot=free&slot=&method=none&total=500").await;
    assert!(
        html.contains("The free bag has no price in the shop’s currency, so the total leaves it out."),
        "{html}"
    );
    let features = json!({"features": {"nogo_materials": ["lether"], "shoe_size": "99", "star_sign": "leo"}});
    service.put("/customers/odd", &features).await;
    let html = browser.page("/studio?customer=odd&slot=a-00134&slot=&type=1:boot").await;
    for words in [
        "No article has the material “lether”, so this no-go leaves nothing out.",
        "Nothing fits this customer’s shoe size, 99. Check the profile, or include what doesn’t fit.",
        "The customer’s star sign isn’t recognised, so suggestions ignore it.",
        "Include what doesn’t fit: ",
    ] {
        assert!(html.contains(words), "{words} in {html}");
    }

    // A refused article that has left the shop is not mentioned.
    let body = json!({"type": "coat", "name": "Gone tomorrow"});
    service.put("/articles/gone", &body).await;
    service.releases.refresh().await.unwrap();
    let request = json!({"customer": "odd", "outfit": ["a-00134", null], "filters": {"types": {"1": ["coat"]}, "fit": false},
                         "k": 250, "method": "match"});
    let answer = service.ask_ok("/complete", &request).await;
    let event = json!({"id": "gone", "completion_id": answer["completion_id"], "kind": "rejected", "slot": 1,
                       "article": "gone", "customer": "odd"});
    let (status, answer) = service.ask("/feedback", &event).await;
    assert_eq!(status, 200, "{answer}");
    let address = "/studio?customer=odd&slot=a-00134&slot=";
    assert!(browser.page(address).await.contains("Refused (1)</summary>"));
    service.delete("/articles/gone").is(204).await;
    service.releases.refresh().await.unwrap();
    let html = browser.page(address).await;
    assert!(!html.contains("gone") && !html.contains("Refused ("), "{html}");
}

/// The factors of what is compared with an unknown customer.
fn compared(html: &str) -> Vec<&str> {
    let mut texts: Vec<&str> = html.split(" compared with an unknown customer").collect();
    texts.pop();
    texts.into_iter().map(|text| text.rsplit("class=\"quiet\">").next().unwrap()).collect()
}

#[apply(on_sqlite)]
async fn an_unknown_customer_is_compared_with_one(Stylist(service, browser): Stylist) {
    service.put("/customers/blank", &json!({"features": {}})).await;
    let html = browser.page(&format!("/studio?customer=blank&{OUTFIT}&own.occasion=office")).await;
    let factors = compared(&html);
    assert!(!factors.is_empty() && factors.iter().all(|factor| *factor == "×1.00"), "{factors:?}");
    assert!(html.contains("because the occasion is office"), "{html}");
    let html = browser.page(&format!("/studio?{CUSTOMER}&{OUTFIT}")).await;
    assert!(compared(&html).iter().any(|factor| *factor != "×1.00"), "{html}");
    let html = browser.page(&format!("/studio?{OUTFIT}&own.occasion=office&if.age=60")).await;
    assert!(
        compared(&html).is_empty()
            && !html.contains("likely for this")
            && !html.contains("likelier for this"),
        "{html}"
    );
}

#[apply(on_sqlite)]
async fn a_rank_is_among_what_the_filters_allow(Stylist(_service, browser): Stylist) {
    let number = |text: &str| -> usize {
        let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        digits.replace(',', "").parse().unwrap()
    };
    let outfit = "slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259";
    let placed = async |filters: &str| {
        let html = browser.page(&format!("/studio?{CUSTOMER}&{outfit}&{filters}")).await;
        let slots = html.split("id=\"slot-").skip(1).take(4).map(|slot| {
            let (link, rest) = slot.split_once("href=\"").unwrap().1.split_once('"').unwrap();
            let of = rest.split_once(">Rank ").unwrap().1.split_once(" of ").unwrap().1;
            (link.replace("&#38;", "&"), number(of))
        });
        slots.collect::<Vec<_>>()
    };
    let all = placed("any=on&unfit=on&sold_out=on").await;
    let filtered = placed("price_max=60").await;
    assert!(filtered.iter().zip(&all).all(|((_, few), (_, many))| few < many), "{filtered:?} of {all:?}");
    for (link, of) in filtered {
        // The article itself is counted, also if the filters exclude it.
        let better = browser.page(&link).await;
        let best = better.split_once(": best of ").map_or(0, |(_, rest)| number(rest));
        assert!(of == best || of == best + 1, "{of} and {best} at {link}");
    }
}

#[apply(on_sqlite)]
async fn what_a_method_cannot_rank_is_chosen_by_hand(Stylist(service, browser): Stylist) {
    for (id, kind) in [("zebra", "coat"), ("cape", "cape")] {
        let body = json!({"type": kind, "name": "A zebra piece", "price": 50});
        service.put(&format!("/articles/{id}"), &body).await;
    }
    service.releases.refresh().await.unwrap();
    let request =
        json!({"outfit": ["a-00134", null], "method": "none", "filters": {"types": {"1": ["cape"]}}});
    assert_eq!(service.ask("/complete", &request).await.0, 422, "the method suggests no new articles");
    let picked = async |query: &str| {
        let html =
            browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&method=none&pick=1&{query}")).await;
        let (_, picker) = html.split_once("id=\"pick-title\">").unwrap();
        picker.split_once("</section>").unwrap().0.to_owned()
    };
    let found = picked("search=zebra").await;
    assert!(
        found.contains("slot=zebra") && found.contains("slot=cape") && found.contains("2 articles"),
        "{found}"
    );
    assert!(!found.contains("match the words"), "{found}");
    assert!(picked("type=1:cape").await.contains("slot=cape"));
    let coats = picked("type=1:coat&search=coat").await;
    let last = coats.rsplit("class=\"tile\"").next().unwrap();
    assert!(coats.contains("slot=zebra") == last.contains("slot=zebra"), "it is the last: {coats}");
    assert!(!picked("search=zebra&price_max=40").await.contains("slot=zebra"), "the filters hold");
}

#[apply(contract)]
async fn a_refusal_is_in_the_log_and_taken_back_without_losing_others(Stylist(service, browser): Stylist) {
    let customer = CustomerId::new("c-014871").unwrap();
    let view = format!("{CUSTOMER}&{OUTFIT}");
    let html = browser.page(&format!("/studio?{view}")).await;
    let (first, refusal) = (suggested(&html)[0].to_owned(), refusals(&html)[0]);
    // The shop's own site says so, too.
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 50});
    let answer = service.ask_ok("/complete", &request).await;
    let event = json!({"id": "site", "completion_id": answer["completion_id"], "kind": "rejected", "slot": 1,
                       "article": first, "customer": "c-014871"});
    assert_eq!(service.ask("/feedback", &event).await.0, 200);
    let send = async |field: &str, value: &str| {
        let answer = browser.post("/studio/feedback", &[("view", &view), (field, value)]).is(303).await;
        browser.page(answer.header("location")).await
    };
    let last = async || {
        let entry = service.log(1).await.remove(0);
        (entry.action, entry.subject, entry.customer)
    };
    for _ in 0..2 {
        assert!(!suggested(&send("refused", refusal).await).contains(&&*first));
        assert_eq!(last().await, ("feedback.refuse".into(), first.clone(), Some(customer.clone())));
        assert_eq!(suggested(&send("undone", refusal).await)[0], first);
        assert_eq!(last().await, ("feedback.withdraw".into(), first.clone(), Some(customer.clone())));
        let events = service.store.feedback().for_customer(&customer).try_collect::<Vec<_>>().await.unwrap();
        let kept = events.iter().filter(|event| event.kind == FeedbackKind::Rejected).count();
        assert_eq!(kept, 1, "the site's event is kept");
    }
    // Without the name of the mistake, the event stays, and can be repeated.
    send("refused", refusal).await;
    assert_eq!(suggested(&send("undone", &format!("0/-/{first}")).await)[0], first);
    assert!(!suggested(&send("refused", refusal).await).contains(&&*first));
    assert_eq!(last().await.0, "feedback.refuse");
    let entries = service.log(9).await.len();
    send("refused", refusal).await;
    assert_eq!(service.log(9).await.len(), entries, "a double click is one");
}

#[apply(on_sqlite)]
async fn a_new_shop_has_occasions(service: Service) {
    service.put("/articles/a", &json!({"type": "coat"})).await;
    service.put("/customers/ann", &json!({"features": {}})).await;
    let browser = service.signed_in(Role::Stylist).await;
    let html = browser.page("/studio?customer=ann&slot=a").await;
    assert!(html.contains("own.occasion=office") && html.contains("own.occasion=wedding"), "{html}");
    assert!(!html.contains("own.gender="), "only what is of outfits");
}

#[apply(on_sqlite)]
async fn a_budget_flags_the_board(Stylist(_service, browser): Stylist) {
    let board = "/studio?slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259";
    assert!(browser.page(&format!("{board}&total=10")).await.contains("Over the €10 budget"));
    assert!(!browser.page(&format!("{board}&total=100000")).await.contains("id=\"over\""));
    // An idea's total is that of the whole outfit.
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&slot=&slot=a-00259")).await;
    let (_, ideas) = html.split_once("<ul class=\"sets\">").unwrap();
    let (_, link) = ideas.split_once("href=\"").unwrap();
    let outfit = browser.page(&link.split('"').next().unwrap().replace("&#38;", "&")).await;
    let total = |html: &str| html.split_once(">Total ").unwrap().1.split('<').next().unwrap().to_owned();
    assert_eq!(total(ideas), total(&outfit));
}

#[apply(on_sqlite)]
async fn prices_of_other_currencies_are_not_added_up(Stylist(service, browser): Stylist) {
    for (id, price, currency) in [("own", 9, "EUR"), ("other", 5, "GBP"), ("cheap", 1, "GBP")] {
        let body =
            json!({"type": "beanie", "name": format!("The {id} one"), "price": price, "currency": currency});
        service.put(&format!("/articles/{id}"), &body).is(201).await;
    }
    service.releases.refresh().await.unwrap();
    assert!(!browser.page("/studio?slot=own&slot=other&total=10").await.contains("id=\"over\""));
    assert!(browser.page("/studio?slot=own&slot=other&total=8").await.contains("Over the €8 budget"));
    let ask = async |visible: &str, total: u32| {
        let filters = json!({"types": {"1": ["beanie"]}, "price": {"total": total}});
        let request = json!({"outfit": [visible, null], "k": 250, "filters": filters, "method": "match"});
        service.ask_ok("/complete", &request).await
    };
    // £5 are not €5, so the beanie for €9 still fits, and one in pounds is not suggested.
    let answer = ask("other", 9).await;
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap();
    let ids: Vec<&str> = suggestions.iter().filter_map(|one| one["article"]["id"].as_str()).collect();
    assert!(ids.contains(&"own") && !ids.contains(&"cheap"), "{ids:?}");
    assert_eq!(answer["warnings"][0]["code"], "price-unknown", "{answer}");
    assert!(answer["warnings"][0]["detail"].as_str().unwrap().contains("another currency"), "{answer}");
}
