//! What Studio says to a ranks and offers, by its HTML.

use atelier::outcomes::FeedbackKind;
use atelier_core::domain::{CustomerId, Role};
use futures_util::TryStreamExt;
use serde_json::json;

use crate::{
    harness::{
        Html, Service, Stylist, apply, contract, ids,
        json::{codes, text, with},
        on_sqlite,
    },
    studio::suggesting::{CUSTOMER, OUTFIT, refusals, suggested},
};

/// Also to the replica that answers pages.
async fn put(service: &Service, id: &str, article: serde_json::Value) {
    service.put(format!("/articles/{id}"), article).is(201).await;
    service.releases.refresh().await.unwrap();
}

#[apply(on_sqlite)]
async fn warnings_are_in_a_shops_words(Stylist(service, browser): Stylist) {
    put(&service, "free", json!({"type": "bag", "name": "The free bag"})).await;
    let features = json!({"features": {"nogo_materials": ["lether"], "shoe_size": "99", "star_sign": "leo"}});
    service.put("/customers/odd", features).await;
    let free = "slot=free&slot=&method=none&total=500";
    let odd = "customer=odd&slot=a-00134&slot=&type=1:boot";
    for (query, words) in [
        (&*format!("{CUSTOMER}&slot="), "Add 3 more pieces for better suggestions."),
        (&*format!("{CUSTOMER}&slot=a-00134&slot=&total=1"), "Nothing fits the €1 budget."),
        (free, "The free bag has no price in the shop’s currency, so the total leaves it out."),
        (odd, "No article has the material “lether”, so this no-go leaves nothing out."),
        (odd, "Nothing fits this customer’s shoe size, 99. Check the profile, or include what doesn’t fit."),
        (odd, "The customer’s star sign isn’t recognised, so suggestions ignore it."),
        (odd, "Include what doesn’t fit: "),
    ] {
        browser.page(format!("/studio?{query}")).await.has([words]).lacks(["slot 1", "models"]);
    }
}

#[apply(on_sqlite)]
async fn a_refused_article_that_left_the_shop_is_not_mentioned(Stylist(service, browser): Stylist) {
    put(&service, "gone", json!({"type": "coat", "name": "Gone tomorrow"})).await;
    service.put("/customers/odd", json!({"features": {}})).await;
    let request = json!({"customer": "odd", "outfit": ["a-00134", null], "filters": {"types": {"1": ["coat"]}, "fit": false},
                         "k": 250, "method": "match"});
    let answer = service.complete(request).await;
    let event = json!({"id": "gone", "completion_id": answer["completion_id"], "kind": "rejected", "slot": 1,
                       "article": "gone", "customer": "odd"});
    service.send("/feedback", event).is(200).await;
    let address = "/studio?customer=odd&slot=a-00134&slot=";
    browser.page(address).await.has(["Refused (1)</summary>"]);
    service.delete("/articles/gone").is(204).await;
    service.releases.refresh().await.unwrap();
    browser.page(address).await.lacks(["gone", "Refused ("]);
}

/// The factors of what is compared with an unknown customer.
fn compared(html: &str) -> Vec<&str> {
    let mut texts: Vec<&str> = html.split(" in all, compared with an unknown customer").collect();
    texts.pop();
    texts.into_iter().map(|text| text.rsplit("class=\"quiet\">").next().unwrap()).collect()
}

#[apply(on_sqlite)]
async fn an_unknown_customer_is_compared_with_one(Stylist(service, browser): Stylist) {
    service.put("/customers/blank", json!({"features": {}})).await;
    let html = browser.page(format!("/studio?customer=blank&{OUTFIT}&own.occasion=office")).await;
    let factors = compared(&html);
    assert!(!factors.is_empty() && factors.iter().all(|factor| *factor == "×1.00"), "{factors:?}");
    html.has(["because the occasion is office"]);
    let html = browser.page(format!("/studio?{CUSTOMER}&{OUTFIT}")).await;
    assert!(compared(&html).iter().any(|factor| *factor != "×1.00"), "{html}");
    let html = browser.page(format!("/studio?{OUTFIT}&own.occasion=office&if.age=60")).await;
    assert!(compared(&html).is_empty(), "{html}");
    html.lacks(["likely for this", "more likely for this"]);
}

/// One meaning everywhere: an unknown customer with the same outfit for the same occasion.
#[apply(on_sqlite)]
async fn the_page_and_the_api_compare_with_the_same_customer(Stylist(service, browser): Stylist) {
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "features": {"occasion": "office"},
                         "filters": {"types": {"1": ["coat"]}}, "method": "match", "k": 5, "lift": true});
    let answer = service.complete(request.clone()).await;
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap();
    let lifts = suggestions.iter().map(|suggestion| suggestion["lift"].as_f64().unwrap());
    // As the page writes factors.
    let expected: Vec<String> = lifts
        .map(|lift| if lift < 0.05 { "under ×0.05".to_owned() } else { format!("×{lift:.2}") })
        .collect();
    let address = "/studio?customer=c-014871&slot=a-00134&slot=&type=1:coat&method=match&own.occasion=office";
    let html = browser.page(address).await;
    let shown = compared(&html);
    assert!(
        !shown.is_empty() && shown.iter().all(|factor| expected.contains(&factor.to_string())),
        "{shown:?} of {expected:?}"
    );
    // Knowing nothing of a customer changes nothing, whatever the occasion.
    service.put("/customers/blank", json!({"features": {}})).await;
    let answer = service.complete(with(request, json!({"customer": "blank"}))).await;
    for suggestion in answer["blanks"][0]["suggestions"].as_array().unwrap() {
        assert!((suggestion["lift"].as_f64().unwrap() - 1.0).abs() < 1e-4, "{suggestion}");
    }
}

#[apply(on_sqlite)]
async fn studio_says_which_rule_moved_a_suggestion(Stylist(service, browser): Stylist) {
    let address = "/studio?customer=c-014871&slot=a-00134&slot=&type=1:coat&method=match";
    browser.page(address).await.lacks(["moved-by"]);
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "filters": {"types": {"1": ["coat"]}},
                         "method": "match", "k": 5, "explain": true});
    let best = ids(&service.complete(request.clone()).await["blanks"][0]["suggestions"]);
    let rule = |ids: &[String]| json!({"effect": "boost", "state": "active", "factor": 1000, "articles": {"ids": ids}});
    service.put("/rules/new-season", rule(&best[best.len() - 1..])).is(201).await;
    let mark =
        format!("<span class=\"small moved-by\">Boosted, from {}, by <em>new-season</em></span>", best.len());
    browser.page(address).await.has([mark]);
    let merchandiser = service.signed_in(Role::Merchandiser).await;
    let html = merchandiser.page(address).await;
    html.has(["by <a href=\"/merchandising/rule?name=new-season\""]);
    merchandiser.page(html.between("by <a href=\"", "\"")).await.has(["new-season"]);
    // Where nothing moved there is no rank before.
    service.put("/rules/all", rule(&best)).is(201).await;
    service.patch("/rules/new-season", json!({"state": "off"})).is(200).await;
    let answer = service.complete(request).await;
    for suggestion in answer["blanks"][0]["suggestions"].as_array().unwrap() {
        assert_eq!(suggestion["rules"], json!([{"name": "all", "effect": "boost"}]), "{suggestion}");
    }
}

#[apply(on_sqlite)]
async fn a_rank_is_among_what_the_filters_allow(Stylist(_service, browser): Stylist) {
    let number = |text: &str| -> usize {
        let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        digits.replace(',', "").parse().unwrap()
    };
    let outfit = "slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259";
    let placed = async |filters: &str| {
        let html = browser.page(format!("/studio?{CUSTOMER}&{outfit}&{filters}")).await;
        let slots = html.split("id=\"slot-").skip(1).take(4);
        let placed = |slot: &str| {
            let of = slot.after("href=\"").after(">Rank ").after(" of ");
            (slot.between("href=\"", "\""), number(of))
        };
        slots.map(placed).collect::<Vec<_>>()
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
        put(&service, id, json!({"type": kind, "name": "A zebra piece", "price": 50})).await;
    }
    let picked = async |query: &str| {
        let board = format!("/studio?{CUSTOMER}&slot=a-00134&slot=&method=none&pick=1&{query}");
        browser.page(board).await.between("id=\"pick-title\">", "</section>")
    };
    let found = picked("search=zebra").await;
    found.has(["slot=zebra", "slot=cape", "2 articles"]).lacks(["match the words"]);
    picked("type=1:cape").await.has(["slot=cape"]);
    let coats = picked("type=1:coat&search=coat").await;
    let last = coats.rsplit("class=\"tile\"").next().unwrap();
    assert!(coats.contains("slot=zebra") == last.contains("slot=zebra"), "it is the last: {coats}");
    // The filters hold.
    picked("search=zebra&price_max=40").await.lacks(["slot=zebra"]);
}

#[apply(contract)]
async fn a_refusal_is_in_the_log_and_taken_back_without_losing_others(Stylist(service, browser): Stylist) {
    let customer = CustomerId::new("c-014871").unwrap();
    let view = format!("{CUSTOMER}&{OUTFIT}");
    let html = browser.page(format!("/studio?{view}")).await;
    let (first, refusal) = (suggested(&html)[0].to_owned(), refusals(&html)[0]);
    // The shop's own site says so, too.
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 50});
    let answer = service.complete(request).await;
    let event = json!({"id": "site", "completion_id": answer["completion_id"], "kind": "rejected", "slot": 1,
                       "article": first, "customer": "c-014871"});
    service.send("/feedback", event).is(200).await;
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
    service.put("/articles/a", json!({"type": "coat"})).await;
    service.put("/customers/ann", json!({"features": {}})).await;
    let browser = service.signed_in(Role::Stylist).await;
    // Only what is of outfits.
    let occasions = ["own.occasion=office", "own.occasion=wedding"];
    browser.page("/studio?customer=ann&slot=a").await.has(occasions).lacks(["own.gender="]);
}

#[apply(on_sqlite)]
async fn an_ideas_total_is_that_of_the_whole_outfit(Stylist(_service, browser): Stylist) {
    let html = browser.page(format!("/studio?{CUSTOMER}&slot=a-00134&slot=&slot=&slot=a-00259")).await;
    let ideas = html.after("<ul class=\"sets\">");
    let outfit = browser.page(ideas.between("href=\"", "\"")).await;
    let total = |html: &str| html.between(">Total ", "<");
    assert_eq!(total(ideas), total(&outfit));
}

#[apply(on_sqlite)]
async fn prices_have_their_currency_and_different_ones_are_not_added_up(Stylist(service, browser): Stylist) {
    for (id, price, currency) in [
        ("dear", json!(1200.6), json!(null)),
        ("own", json!(9), json!("EUR")),
        ("other", json!(5.25), json!("GBP")),
        ("cheap", json!(1), json!("GBP")),
    ] {
        put(&service, id, json!({"type": "beanie", "price": price, "currency": currency})).await;
    }
    let summed = ["· €1,200.60<", "· €9<", "Total €1,209.60"];
    browser.page("/studio?slot=dear&slot=own").await.has(summed);
    browser.page("/studio?slot=own&slot=other").await.has(["· £5.25<"]).lacks(["Total €", "Total £"]);
    browser.page("/studio?slot=own&slot=other&total=10").await.lacks(["id=\"over\""]);
    browser.page("/studio?slot=own&slot=other&total=8").await.has(["Over the €8 budget"]);
    // £5 are not €5, so the beanie for €9 still fits, and one in pounds is not suggested.
    let filters = json!({"types": {"1": ["beanie"]}, "price": {"total": 9}});
    let request = json!({"outfit": ["other", null], "k": 250, "filters": filters, "method": "match"});
    let answer = service.complete(request).await;
    let found = ids(&answer["blanks"][0]["suggestions"]);
    assert!(found.iter().any(|id| id == "own") && !found.iter().any(|id| id == "cheap"), "{found:?}");
    assert_eq!(codes(&answer["warnings"])[0], "price-unknown", "{answer}");
    text(&answer["warnings"][0]["detail"]).has(["another currency"]);
}
