//! `/studio` by its HTML; tests/it/browser uses it in a browser.

use std::collections::BTreeSet;

use atelier::{
    outcomes::{FeedbackKind, Outcomes},
    outfits::Origin,
};
use atelier_core::domain::{ArticleId, CustomerId, Role};
use futures_util::TryStreamExt;
use serde_json::{Value, json};

use super::{Analyst, Browser, Service, Stylist};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

pub(super) const CUSTOMER: &str = "customer=c-014871";
pub(super) const OUTFIT: &str = "slot=a-00134&slot=&slot=a-00568&slot=a-00259";

pub(super) async fn stylist(db: &TestDatabase) -> (Service, Browser) {
    let service = Service::demo(db).await;
    let browser = service.signed_in(Role::Stylist).await;
    (service, browser)
}

/// The values of the buttons that refuse a suggestion: its slot, its name and its article.
pub(super) fn refusals(html: &str) -> Vec<&str> {
    html.split("name=\"refused\" value=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

pub(super) fn suggested(html: &str) -> Vec<&str> {
    refusals(html).into_iter().filter_map(|value| value.rsplit('/').next()).collect()
}

/// The addresses of the outfit with each suggestion.
pub fn uses(html: &str) -> Vec<String> {
    let links =
        html.split("id=\"take-").skip(1).filter_map(|rest| rest.split_once("href=\"")?.1.split('"').next());
    links.map(|link| link.replace("&#38;", "&")).collect()
}

async fn counted(service: &Service) -> [u64; 3] {
    let counts = service.store.feedback().counts().await.unwrap();
    let sum = |of: fn(&Outcomes) -> u64| counts.iter().map(|counts| of(&counts.outcomes)).sum();
    [sum(|counts| counts.shown), sum(|counts| counts.accepted), sum(|counts| counts.rejected)]
}

#[apply(on_sqlite)]
async fn suggests_what_complete_answers(Stylist(service, browser): Stylist) {
    let html = browser.page(&format!("/studio?{CUSTOMER}&{OUTFIT}&type=1:coat&method=gsu&k=4")).await;
    let answer = service
        .ask_ok(
            "/complete",
            &json!({"customer": "c-014871", "outfit": ["a-00134", null, "a-00568", "a-00259"], "method": "gsu",
                    "k": 4, "filters": {"types": {"1": ["coat"]}}, "lift": true, "explain": true}),
        )
        .await;
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap();
    let expected: Vec<&str> = suggestions.iter().map(|one| one["article"]["id"].as_str().unwrap()).collect();
    assert_eq!(suggested(&html), expected);
    let first = &suggestions[0];
    let share = format!("<strong>{:.0} %</strong>", 100.0 * first["share"].as_f64().unwrap());
    assert!(html.contains(&share), "{share}");
    let reasons = first["reasons"].as_array().unwrap();
    assert!(!reasons.is_empty(), "{first}");
    for reason in reasons {
        let factor = reason["factor"].as_f64().unwrap();
        let written = if factor < 10.0 { format!("×{factor:.2}") } else { format!("×{factor:.0}") };
        let written = if factor > 20.0 { "over ×20".to_owned() } else { written };
        assert!(html.contains(&format!("<span class=\"quiet\">{written}</span>")), "{written} in {html}");
    }
    let best = format!("best of {}", answer["blanks"][0]["admissible"]);
    assert!(html.contains("Which coat?") && html.contains(&best), "{html}");
}

#[apply(on_sqlite)]
async fn describes_the_profile_in_words(Stylist(_service, browser): Stylist) {
    let html = browser.page(&format!("/studio?{CUSTOMER}")).await;
    for words in ["female", "28", "Sweden", "167 cm", "53 kg", "no brown, no navy, no red", "no leather"] {
        assert!(html.contains(&format!("</span>{words}</li>")), "{words} in {html}");
    }
    let found = browser.page("/studio?find=sweden+0148").await;
    assert!(found.contains("<strong>c-014871</strong>") && !found.contains("c-000010"), "{found}");
    assert!(found.contains("1 customer</span>"), "{found}");
    let unknown = browser.page("/studio?find=nobody+such").await;
    assert!(unknown.contains("No customers match"), "{unknown}");
}

#[apply(on_sqlite)]
async fn finds_customers_by_whole_words(Stylist(service, browser): Stylist) {
    let put = async |id: &str, features: Value| {
        service.put(&format!("/customers/{id}"), &json!({ "features": features })).is(201).await;
    };
    let woman = json!({"name": "Müller", "gender": "female", "fit": "slim", "height": 165, "preferred_colours": ["navy"]});
    put("zz-woman", woman).await;
    put("zz-man", json!({"gender": "male", "nogo_colours": ["navy"]})).await;
    let find = async |words: &str| browser.page(&format!("/studio?find=zz-+{words}")).await;
    for (words, is_woman, is_man) in [
        ("male", false, true),
        ("female", true, false),
        // He refuses navy.
        ("navy", true, false),
        ("navy,+slim", true, false),
        ("gender:male", false, true),
        ("fema", true, false),
        ("no+navy", false, true),
        ("165+cm", true, false),
        ("mueller", true, false),
        ("", true, true),
    ] {
        let html = find(words).await;
        assert_eq!(
            (html.contains("customer=zz-woman\""), html.contains("customer=zz-man\"")),
            (is_woman, is_man),
            "{words}"
        );
    }
    // A name leads.
    assert!(find("navy").await.contains("<strong>Müller</strong>"));
    let first = browser.page("/studio?find=female").await;
    assert!(first.contains("1 to 12 of ") && first.contains("rel=\"next\""), "{first}");
    let second = browser.page("/studio?find=female&page=2").await;
    assert!(second.contains("13 to 24 of ") && second.contains("rel=\"prev\""), "{second}");
    // A link from a mail is no mistake.
    assert!(browser.page("/studio?find=female&utm_source=mail&fbclid=7").await.contains("1 to 12 of "));
}

#[apply(on_sqlite)]
async fn a_store_limits_suggestions(Stylist(service, browser): Stylist) {
    let page = "/studio?slot=&slot=a-00134&type=0:beanie";
    assert!(!browser.page(page).await.contains("name=\"store\""), "no article names a store");
    for (id, stock) in
        [("b-1", json!([{"store": "Basel", "count": 2}])), ("b-2", json!([{"store": "Zurich", "count": 1}]))]
    {
        service.put(&format!("/articles/{id}"), &json!({"type": "beanie", "stock": stock})).await;
    }
    service.releases.refresh().await.unwrap();
    let html = browser.page(&format!("{page}&store=basel&k=24")).await;
    assert!(
        html.contains("<option selected>basel</option>") && html.contains("<option>zurich</option>"),
        "{html}"
    );
    let found = suggested(&html);
    assert!(found.contains(&"b-1") && !found.contains(&"b-2"), "{found:?}");
    let widened = browser.page(&format!("{page}&store=basel&sold_out=on&k=24")).await;
    assert!(!suggested(&widened).is_empty(), "{widened}");
}

#[apply(on_sqlite)]
async fn counts_what_is_shown_used_and_refused(Stylist(service, browser): Stylist) {
    let view = format!("{CUSTOMER}&{OUTFIT}");
    let address = format!("/studio?{view}");
    assert_eq!(suggested(&browser.page(&address).await).len(), 8);
    // Every tile was shown, and a reload adds nothing.
    assert_eq!(counted(&service).await, [8, 0, 0]);
    let html = browser.page(&address).await;
    assert_eq!(counted(&service).await, [8, 0, 0]);

    let (second, refusal) = (suggested(&html)[1].to_owned(), refusals(&html)[1]);
    for _ in 0..2 {
        let answer = browser.post("/studio/feedback", &[("view", &view), ("refused", refusal)]).is(303).await;
        let after = browser.page(answer.header("location")).await;
        assert!(!suggested(&after).contains(&second.as_str()), "{second} in {after}");
        assert!(after.contains("Refused (1)</summary>"));
        // One more tile moved up.
        assert_eq!(counted(&service).await, [9, 0, 1]);
    }

    // It is remembered at other addresses, until it is taken back.
    let other = browser.page(&format!("{address}&varied=on")).await;
    assert!(!suggested(&other).contains(&second.as_str()), "{second} in {other}");
    let elsewhere = browser.page(&address.replace("c-014871", "c-000010")).await;
    assert!(elsewhere.contains("For c-000010") && !elsewhere.contains("Refused (1)</summary>"));
    let before = counted(&service).await;
    let skipping = format!("{view}&skipped_sets=4");
    let answer = browser.post("/studio/feedback", &[("view", &skipping), ("undone", refusal)]).await;
    let next = answer.header("location");
    assert!(!next.contains("skipped_sets"), "the best ideas are others now: {next}");
    let after = browser.page(next).await;
    assert_eq!(suggested(&after)[1], second);
    assert_eq!(counted(&service).await, [before[0], 0, 0]);
    let back = browser.page(&format!("{address}&refused={refusal}")).await;
    assert!(!back.contains(": not for this customer"), "{back}");
    browser.post("/studio/feedback", &[("view", &view), ("refused", refusal)]).is(303).await;
    let before = counted(&service).await;

    // Using one is not accepting it, saving the outfit is, once.
    let first = suggested(&html)[0].to_owned();
    let used = uses(&html)[0].clone();
    assert!(used.contains(&format!("slot={first}&")) && used.contains("&from=1%3A"), "{used}");
    let page = browser.page(&used).await;
    assert_eq!(counted(&service).await, [before[0], 0, 1]);
    let view = used.strip_prefix("/studio?").unwrap();
    assert!(page.contains(&format!("value=\"{}\"", view.replace('&', "&#38;"))), "{page}");
    for _ in 0..2 {
        browser.post("/studio/outfits", &[("view", view)]).is(303).await;
        assert_eq!(counted(&service).await, [before[0], 1, 1]);
    }
    let customer = CustomerId::new("c-014871").unwrap();
    let events = service.store.feedback().for_customer(&customer).try_collect::<Vec<_>>().await.unwrap();
    let of = |kind| events.iter().find(|event| event.kind == kind).unwrap();
    let (accepted, rejected) = (of(FeedbackKind::Accepted), of(FeedbackKind::Rejected));
    assert_eq!((accepted.article.as_str(), accepted.rank, accepted.slot), (first.as_str(), 1, 1));
    assert_eq!((rejected.article.as_str(), rejected.rank, rejected.slot), (second.as_str(), 2, 1));
    assert!(events.iter().filter(|event| event.kind == FeedbackKind::Shown).all(|event| event.rank <= 10));

    // An article that replaced the suggestion was not suggested, and neither was one under a name of nothing.
    let other = "a-00001";
    for view in [
        view.replace(&format!("slot={first}&"), &format!("slot={other}&")),
        view.replace("from=1%3A", "from=1%3A0"),
    ] {
        browser.post("/studio/outfits", &[("view", &view)]).is(303).await;
    }
    assert_eq!(counted(&service).await, [before[0], 1, 1]);

    for nonsense in ["", "loved", "1/7f/", "x/7f/a"] {
        let fields = [("view", "slot=&slot=a-1"), ("refused", nonsense)];
        assert_eq!(browser.post("/studio/feedback", &fields).await.status(), 422, "{nonsense}");
    }
}

#[apply(on_sqlite)]
async fn a_set_of_suggestions_is_accepted_with_its_outfit(Stylist(service, browser): Stylist) {
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&slot=&slot=a-00259")).await;
    let (_, sets) = html.split_once("<ul class=\"sets\">").expect("there are sets");
    let (_, link) = sets.split_once("href=\"/studio?").unwrap();
    let view = link.split('"').next().unwrap().replace("&#38;", "&");
    let [shown, ..] = counted(&service).await;
    browser.post("/studio/outfits", &[("view", &view)]).is(303).await;
    assert_eq!(counted(&service).await, [shown, 2, 0]);
    // They make up an outfit for training.
    let customer = CustomerId::new("c-014871").unwrap();
    let saved = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap().pop().unwrap();
    let lines = service.get("/feedback/outfits.jsonl").await.text();
    let exported: Value = serde_json::from_str(lines.trim()).unwrap();
    let mut ids: Vec<&str> =
        exported["articles"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut expected: Vec<&str> = saved.outfit.articles().iter().map(ArticleId::as_str).collect();
    ids.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ids, expected);
}

#[apply(on_sqlite)]
async fn saves_an_outfit(Stylist(service, browser): Stylist) {
    let whole = format!("{CUSTOMER}&slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130&own.occasion=office");
    let saved = browser.post("/studio/outfits", &[("view", &whole)]).is(303).await;
    let there = saved.header("location").to_owned();
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

#[apply(on_sqlite)]
async fn refuses_to_save_an_invalid_outfit(Stylist(service, browser): Stylist) {
    for (view, said) in [
        ("slot=&slot=", "no article yet"),
        ("customer=c-014871&slot=&slot=", "no article yet"),
        ("customer=c-014871&slot=a-00134&slot=&slot=a-00134", "appears twice"),
        (
            "customer=c-014871&slot=a-1&slot=a-00568&slot=a-00259&slot=a-01130",
            "piece 1 is no longer in the catalogue. Replace it or remove it",
        ),
        ("customer=nobody&slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130", "no such customer"),
    ] {
        let refused = browser.post("/studio/outfits", &[("view", view)]).await;
        assert!(refused.is_refused(), "{view}: {}", refused.status());
        let html = refused.text();
        assert!(html.contains(said) && !html.contains("put it there"), "{view}: {html}");
        assert!(html.contains("id=\"board-title\""), "the pieces are still there: {html}");
    }
    assert_eq!(service.log(9).await, []);
    browser.post("/studio/outfits", &[("view", "https://elsewhere/")]).is(422).await;
}

#[apply(on_sqlite)]
async fn escapes_article_texts(Stylist(service, browser): Stylist) {
    let evil = "<script>alert(1)</script>\"' onload=x";
    let body = json!({"type": "coat", "name": evil, "colour": "\"><b>", "brand": evil, "price": 1});
    service.put("/articles/a-evil", &body).is(201).await;
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

#[apply(on_sqlite)]
async fn works_without_a_release_and_without_a_customer(service: Service, db: TestDatabase) {
    service.bring_in_demo().await;
    let browser = service.signed_in(Role::Stylist).await;
    let html = browser.page(&format!("/studio?{CUSTOMER}&{OUTFIT}")).await;
    assert!(html.contains("No release is live"), "{html}");
    drop(service);

    let (_service, browser) = stylist(&db).await;
    let html = browser.page(&format!("/studio?{OUTFIT}")).await;
    assert!(html.contains("Without a customer") && suggested(&html).len() == 8, "{html}");
    let html = browser.page(&format!("/studio?customer=nobody&{OUTFIT}")).await;
    assert!(html.contains("There is no customer nobody"), "{html}");
}

#[apply(on_sqlite)]
async fn reports_an_invalid_address(Stylist(_service, browser): Stylist) {
    // An old link opens the page without what no longer works.
    let many = format!("slot=a-00134&{}", "slot=&".repeat(9));
    for (query, said) in [
        ("slot=%00&slot=a-00134", "a piece"),
        ("method=Best&slot=&slot=a-00134&k=x", "a method, the number of suggestions"),
        ("method=best&slot=&slot=a-00134", "the method best"),
        ("nonsense=1&yclid=1&_hsenc=a&mkt_tok=b&twclid=c", ""),
        ("slot=&slot=a-00134&type=0:spaceship", "the type spaceship"),
        ("method=universal&slot=&slot=a-00134", ""),
        (&*many, "a piece"),
    ] {
        let answer = browser.get(&format!("/studio?{query}")).await;
        assert_eq!(answer.status(), 200, "{query}");
        let html = answer.text();
        assert_eq!(html.contains("Parts of this link no longer work"), !said.is_empty(), "{query}: {html}");
        assert!(html.contains(&format!("left out: {said}.")) || said.is_empty(), "{query}: {html}");
        let answers = !suggested(&html).is_empty() || html.contains("class=\"sets\"");
        assert!(query.starts_with("nonsense=1") || answers, "{query}: {html}");
    }
    // A form of another page says what is wrong with it, for people.
    let answer = browser.post("/studio/outfits", &[("view", "method=Best&k=x")]).is(422).await;
    let html = answer.text();
    assert!(html.contains("That didn’t work") && !html.contains("`errors`"), "{html}");
    let html = browser.page("/studio?slot=&slot=a-00134&price_min=100&price_max=50").await;
    assert!(html.contains("No suggestions") && html.contains("id=\"price-max\""), "{html}");
    let html = browser.page("/studio?slot=gone&slot=a-00134&slot=a-00568&slot=a-00259").await;
    assert!(html.contains("no longer in the catalogue") && !html.contains("· out of stock"), "{html}");
}

#[apply(on_sqlite)]
async fn finds_articles_by_words(Stylist(service, browser): Stylist) {
    let html = browser.page(&format!("/studio?{OUTFIT}&pick=1&search=black+leather+boot")).await;
    let (_, found) = html.split_once("The catalogue for piece 2").unwrap();
    let (found, _) = found.split_once("</section>").unwrap();
    assert!(found.matches("leather boot").count() >= 3, "{found}");
    assert!(found.contains("slot=a-00134&#38;slot=a-0"), "each fills the slot: {found}");

    // Plurals and other names, in the model's order for the customer, with pages.
    let picker = async |words: &str| {
        let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&pick=1&{words}")).await;
        let (_, found) = html.split_once("The catalogue for piece 2").unwrap();
        found.split_once("</section>").unwrap().0.to_owned()
    };
    let trainers = picker("search=trainers").await;
    assert!(trainers.to_lowercase().matches("sneaker").count() >= 3, "{trainers}");
    let all = picker("search=").await;
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "k": 24});
    let answer = service.ask_ok("/complete", &request).await;
    for suggestion in answer["blanks"][0]["suggestions"].as_array().unwrap() {
        let slot = format!("slot={}\"", suggestion["article"]["id"].as_str().unwrap());
        assert!(all.contains(&slot), "{slot} in {all}");
    }
    // Every article that passes is on a page, the last ones, too.
    let admissible = answer["blanks"][0]["admissible"].as_u64().unwrap();
    assert!(admissible > 250, "{admissible}");
    let written =
        if admissible < 1000 { admissible.to_string() } else { format!("1,{:03}", admissible - 1000) };
    assert!(all.contains(&format!("1 to 24 of {written} articles")), "{written} in {all}");
    let last = picker("search=&page=9999").await;
    assert!(last.contains(&format!(" to {written} of {written} articles")), "{last}");
    assert!(!last.contains("rel=\"next\"") && last.contains("class=\"tile\""), "{last}");
    let second = picker("search=&page=2").await;
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "k": 48});
    let answer = service.ask_ok("/complete", &request).await;
    for suggestion in &answer["blanks"][0]["suggestions"].as_array().unwrap()[24..] {
        let slot = format!("slot={}\"", suggestion["article"]["id"].as_str().unwrap());
        assert!(second.contains(&slot), "{slot} in {second}");
    }
    // The filters of the page hold here, too.
    let cheap = picker("search=boot&price_max=1").await;
    assert!(cheap.contains("Articles match the words, but are hidden:"), "{cheap}");
    assert!(cheap.contains("at other prices <a href=") && !cheap.contains("price_max=1&#38;any"), "{cheap}");
    // The budget is for all pieces.
    let price = service.json("/articles/a-00134").await["price"].as_f64().unwrap();
    let poor = picker(&format!("search=boot&total={}", price + 1.0)).await;
    let (_, include) = poor.split_once("over the budget <a href=\"").unwrap_or_else(|| panic!("{poor}"));
    let include = include.split('"').next().unwrap().replace("&#38;", "&");
    assert!(!include.contains("total="), "{include}");
    assert!(browser.page(&include).await.contains(" boot</span>"), "{include}");
}

#[apply(on_sqlite)]
async fn without_ideas_the_first_blank_says_what_is_in_the_way(Stylist(_service, browser): Stylist) {
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&slot=&price_max=1")).await;
    assert!(!html.contains("class=\"sets\""), "{html}");
    let (_, blank) = html.split_once("id=\"blank-1\"").unwrap();
    assert!(blank.contains("No articles match") && blank.contains("Include other prices: "), "{blank}");
}

#[apply(on_sqlite)]
async fn stylists_see_no_arm_method_or_device(Stylist(service, browser): Stylist) {
    let arms =
        json!([{"name": "gsu", "method": "gsu", "share": 1}, {"name": "none", "method": "none", "share": 1}]);
    service.put("/experiments/autumn", &json!({"arms": arms, "state": "running"})).await;
    let board = format!("/studio?{CUSTOMER}&{OUTFIT}");
    let html = browser.page(&board).await;
    for hidden in ["autumn", "Answered by", "gsu", "Compare methods", "on the CPU"] {
        assert!(!html.contains(hidden), "{hidden} in {html}");
    }
    let html = service.signed_in(Role::Analyst).await.page(&board).await;
    assert!(html.contains("(arm autumn/") && html.contains("Compare methods"), "{html}");
}

#[apply(on_sqlite)]
async fn a_customer_may_be_called_new(Stylist(service, browser): Stylist) {
    let added = browser.post("/studio/new-customer", &[("id", "new"), ("is.name", "Nia")]).await;
    assert_eq!((added.status(), added.header("location")), (303, "/studio?customer=new"));
    let html = browser.page("/studio/customers/new").await;
    assert!(html.contains("<h1>Profile of Nia</h1>"), "{html}");
    let (_, version) = html.split_once("name=\"version\" value=\"").unwrap();
    let fields = [("version", version.split('"').next().unwrap()), ("is.name", "Nia Ek")];
    browser.post("/studio/customers/new", &fields).is(303).await;
    assert_eq!(service.json("/customers/new").await["features"]["name"], "Nia Ek");
    assert!(browser.page("/studio/new-customer").await.contains("<h1>New customer</h1>"));
}

#[apply(on_sqlite)]
async fn finds_similar_articles_and_by_values(Stylist(service, browser): Stylist) {
    let own = service.json("/articles/a-00134").await;
    let mut twin = own.clone();
    twin.as_object_mut().unwrap().retain(|name, _| name != "id");
    service.put("/articles/twin", &twin).await;
    service.releases.refresh().await.unwrap();
    let picked = async |query: &str| {
        let html = browser.page(&format!("/studio?slot=a-00134&slot=&{query}")).await;
        let (_, picker) = html.split_once("id=\"pick-title\">").unwrap();
        let tiles = picker.split_once("</section>").unwrap().0.split("class=\"tile\" href=\"").skip(1);
        let id = |tile: &str| tile.split('"').next().unwrap().rsplit("slot=").next().unwrap().to_owned();
        let ids: Vec<String> = tiles.map(|tile| id(tile).split('&').next().unwrap().to_owned()).collect();
        (picker.to_owned(), ids)
    };
    let attribute = async |id: &str, name: &str| service.json(&format!("/articles/{id}")).await[name].clone();
    // Of articles that say the same, the one that looks alike is the most similar.
    for (id, image) in [("twin", [1.0, 0.0]), ("x-1", [0.1, 0.9]), ("x-2", [0.9, 0.1])] {
        twin["embedding"] = json!({"image": image});
        service.put(&format!("/articles/{id}"), &twin).await;
    }
    service.releases.refresh().await.unwrap();
    let (_, ids) = picked("pick=1&similar=twin").await;
    assert_eq!(ids[..2], ["x-2", "x-1"], "otherwise in the order of their ids");
    for id in ["x-1", "x-2"] {
        service.delete(&format!("/articles/{id}")).is(204).await;
    }
    service.releases.refresh().await.unwrap();
    let (html, ids) = picked("pick=1&similar=a-00134").await;
    assert!(html.starts_with("Similar to "), "{html}");
    assert_eq!(ids[0], "twin");
    assert!(ids.len() > 3);
    for id in &ids {
        assert_eq!(attribute(id, "type").await, own["type"], "{id}");
    }

    let (html, ids) = picked("pick=1&type=1:coat&by.colour=navy&by.material=").await;
    assert!(html.contains("<option value=\"navy\" selected>navy</option>"), "{html}");
    assert!(html.contains("<option value=\"1:coat\" selected>coat</option>"), "{html}");
    assert!(!ids.is_empty());
    for id in &ids {
        assert_eq!(attribute(id, "type").await, "coat", "{id}");
        assert_eq!(attribute(id, "colour").await, "navy", "{id}");
    }
    // A value is a whole one.
    service.put("/articles/pale", &json!({"type": "coat", "colour": "light navy", "name": "Pale"})).await;
    service.releases.refresh().await.unwrap();
    assert_eq!(picked("pick=1&search=pale").await.1, ["pale"]);
    let (_, navy) = picked("pick=1&type=1:coat&by.colour=navy").await;
    assert!(!navy.is_empty() && !navy.contains(&"pale".to_owned()), "{navy:?}");
}

#[apply(on_sqlite)]
async fn stays_small_with_eight_blanks(Stylist(_service, browser): Stylist) {
    let blanks = "slot=&".repeat(8);
    let html = browser.page(&format!("/studio?{CUSTOMER}&{blanks}k=24")).await;
    assert!(html.len() < 150_000, "{} bytes", html.len());
    assert_eq!(suggested(&html).len(), 0, "ideas lead; a blank is shown once it is asked for");
    let html = browser.page(&format!("/studio?{CUSTOMER}&{blanks}k=24&ask=5")).await;
    assert!(html.len() < 150_000, "{} bytes", html.len());
    assert_eq!(suggested(&html).len(), 24);
}

#[apply(on_sqlite)]
async fn takes_a_refusal_back_without_a_customer(Stylist(service, browser): Stylist) {
    let html = browser.page(&format!("/studio?{OUTFIT}")).await;
    let (first, refusal) = (suggested(&html)[0].to_owned(), refusals(&html)[0]);
    let answer = browser.post("/studio/feedback", &[("view", OUTFIT), ("refused", refusal)]).await;
    let there = answer.header("location").to_owned();
    let after = browser.page(&there).await;
    assert!(!suggested(&after).contains(&&*first) && after.contains("Refused (1)</summary>"), "{after}");
    assert_eq!(counted(&service).await[2], 1);
    // Later, from the list beside the suggestions.
    let view = there.split_once('?').unwrap().1.split('#').next().unwrap();
    let (_, list) = after.split_once("<ul class=\"refused\">").unwrap();
    let undone = list.split_once("name=\"undone\" value=\"").unwrap().1.split('"').next().unwrap();
    let answer = browser.post("/studio/feedback", &[("view", view), ("undone", undone)]).await;
    let after = browser.page(answer.header("location")).await;
    assert_eq!(suggested(&after)[0], first);
    assert_eq!(counted(&service).await[2], 0, "it is no longer counted");
}

#[apply(on_sqlite)]
async fn a_look_from_side_by_side_counts_nothing(Analyst(service, analyst): Analyst) {
    let html = analyst.page(&format!("/side-by-side?{CUSTOMER}&{OUTFIT}")).await;
    let (before, _) = html.split_once("\" hx-boost=\"false\">Open in Studio").unwrap();
    let link = before.rsplit("href=\"").next().unwrap().replace("&#38;", "&");
    let html = analyst.page(&link).await;
    assert!(html.contains("nothing here counts") && !suggested(&html).is_empty(), "{html}");
    assert_eq!(counted(&service).await, [0; 3]);
    // A refusal holds on this page, but is no one's.
    let (view, refusal) = (link.split_once('?').unwrap().1, refusals(&html)[0]);
    let first = suggested(&html)[0];
    let answer = analyst.post("/studio/feedback", &[("view", view), ("refused", refusal)]).await;
    let there = answer.header("location").to_owned();
    let html = analyst.page(&there).await;
    assert!(!suggested(&html).contains(&first), "{there}");
    assert!(html.contains(": left out") && !html.contains("Not for this customer"), "{html}");
    let (before, _) = html.split_once("\">Style for this customer").unwrap();
    assert!(!before.rsplit("href=\"").next().unwrap().contains("left_out"), "{before}");
    assert_eq!(counted(&service).await, [0; 3]);
    assert!(suggested(&analyst.page(&format!("/studio?{CUSTOMER}&{OUTFIT}")).await).contains(&first));
    assert_eq!(counted(&service).await, [8, 0, 0], "their own work counts");
}

#[apply(on_sqlite)]
async fn a_saved_outfit_stays_saved_if_nothing_can_be_counted(
    Stylist(service, browser): Stylist,
    db: TestDatabase,
) {
    let html = browser.page(&format!("/studio?{CUSTOMER}&{OUTFIT}")).await;
    let used = uses(&html)[0].clone();
    let broken = "alter table feedback_events rename to elsewhere";
    sqlx::raw_sql(broken).execute(&mut db.raw().await).await.unwrap();
    let view = used.strip_prefix("/studio?").unwrap();
    let answer = browser.post("/studio/outfits", &[("view", view)]).await;
    assert_eq!(answer.status(), 303, "{}", answer.text());
    let customer = CustomerId::new("c-014871").unwrap();
    let kept = service.store.outfits().for_customer(&customer, 0, 100).await.unwrap().pop().unwrap();
    assert_eq!(kept.origin, Origin::Saved);
}

#[apply(on_sqlite)]
async fn offers_other_ideas_and_keeps_what_was_chosen(Stylist(_service, browser): Stylist) {
    let link_of = |html: &str, mark: &str| {
        let (_, rest) = html.split_once(mark)?;
        Some(rest.split_once("href=\"")?.1.split('"').next()?.replace("&#38;", "&"))
    };
    let own = "/studio?customer=c-014871&slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259";
    assert_eq!(link_of(&browser.page(own).await, "id=\"other-ideas\""), None, "all is the stylist's choice");
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&slot=&slot=a-00259")).await;
    let idea = link_of(&html, "<ul class=\"sets\">").unwrap();
    let others = link_of(&browser.page(&idea).await, "id=\"other-ideas\"").unwrap();
    assert!(
        others.contains("slot=a-00134&slot=&slot=&slot=a-00259") && !others.contains("from="),
        "{others}"
    );
    let slots = |link: &str| -> Vec<String> {
        let (_, query) = link.split_once('?').unwrap();
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        pairs.filter(|(name, _)| name == "slot").map(|(_, value)| value).collect()
    };
    // Round for round the next four, also from an idea of the second round.
    let ideas = |html: &str| -> Vec<String> {
        let links = html.split("id=\"use-").skip(1);
        links.map(|rest| link_of(&format!("use-{rest}"), "use-").unwrap()).collect()
    };
    let mut seen: Vec<Vec<String>> = Vec::new();
    let mut page = html;
    for _ in 0..3 {
        let found = ideas(&page);
        assert_eq!(found.len(), 4, "{page}");
        seen.extend(found.iter().map(|idea| slots(idea)));
        let others = link_of(&browser.page(&found[1]).await, "id=\"other-ideas\"").unwrap();
        page = browser.page(&others).await;
    }
    let distinct: BTreeSet<&Vec<String>> = seen.iter().collect();
    assert_eq!(distinct.len(), 12, "{seen:?}");
    // With one more piece locked, the best ideas are others, and none was seen.
    let locked = link_of(&browser.page(&idea).await, "id=\"lock-1\"").unwrap();
    assert!(!link_of(&browser.page(&locked).await, "id=\"other-ideas\"").unwrap().contains("skipped_sets"));

    // The types of the blanks are the stylist's choice, too.
    let typed = "slot=a-00315&slot=a-01317&slot=&slot=&type=2:jeans&type=3:sneaker";
    let html = browser.page(&format!("/studio?{CUSTOMER}&{typed}")).await;
    let idea = link_of(&html, "<ul class=\"sets\">").unwrap();
    let others = link_of(&browser.page(&idea).await, "id=\"other-ideas\"").unwrap();
    assert!(others.contains("type=2%3Ajeans&type=3%3Asneaker"), "{others}");
    let next = link_of(&browser.page(&others).await, "<ul class=\"sets\">").unwrap();
    assert_ne!(slots(&next), slots(&idea));
}

#[apply(on_sqlite)]
async fn what_if_takes_no_value_and_compares_with_the_outfit(Stylist(_service, browser): Stylist) {
    let asked = async |query: &str| browser.page(&format!("/studio?{CUSTOMER}&{OUTFIT}&{query}")).await;
    let html = asked("changing=nogo_colours").await;
    let ticked = "name=\"if.nogo_colours\" value=\"navy\" checked";
    assert!(html.contains(ticked), "{html}");
    // The form sends this, if nothing is ticked.
    let nothing = "<input type=\"hidden\" name=\"if.nogo_colours\" value=\"(not given)\">";
    assert!(html.contains(nothing), "{html}");
    let none = asked("changing=nogo_colours&if.nogo_colours=(not+given)").await;
    assert!(none.contains(": not given</strong>") && !none.contains(ticked), "{none}");
    let some = asked("changing=nogo_colours&if.nogo_colours=(not+given)&if.nogo_colours=navy").await;
    assert!(some.contains(ticked) && !some.contains(": not given</strong>"), "{some}");

    let html = asked("own.occasion=office&if.occasion=date").await;
    assert!(html.contains("instead of office"), "{html}");
}

#[apply(on_sqlite)]
async fn a_changed_question_is_shown_from_its_beginning(Stylist(_service, browser): Stylist) {
    let query = "slot=a-00134&slot=&slot=&ask=1&pick=1&similar=a-00134&page=2&skipped_sets=4&changing=fit";
    let html = browser.page(&format!("/studio?{CUSTOMER}&{query}")).await;
    let (_, link) = html.split_once("id=\"search-2\" href=\"").unwrap();
    let link = link.split('"').next().unwrap();
    assert!(link.contains("pick=2") && !link.contains("similar=") && !link.contains("page="), "{link}");
    let forms = html.split("<form action=\"/studio\" class=\"").skip(1);
    let forms =
        forms.filter(|form| ["filters", "control", "push"].iter().any(|class| form.starts_with(class)));
    let forms: Vec<&str> = forms.filter_map(|form| form.split("</form>").next()).collect();
    assert_eq!(forms.len(), 3, "{html}");
    for form in forms {
        assert!(!form.contains("name=\"page\"") && !form.contains("name=\"skipped_sets\""), "{form}");
    }
}

#[apply(on_sqlite)]
async fn remembers_every_refusal(Stylist(service, browser): Stylist) {
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "k": 230});
    let answer = service.ask_ok("/complete", &request).await;
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap();
    assert_eq!(suggestions.len(), 230);
    let events = suggestions.iter().zip(1..).map(|(suggestion, rank)| {
        json!({"id": format!("no-{rank}"), "completion_id": answer["completion_id"], "kind": "rejected", "slot": 1,
               "article": suggestion["article"]["id"], "rank": rank, "customer": "c-014871"})
    });
    for events in events.collect::<Vec<_>>().chunks(100) {
        service.ask_ok("/feedback", &Value::Array(events.to_vec())).await;
    }
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&k=24")).await;
    assert!(html.contains("Refused (230)</summary>"), "{html}");
    let left = suggested(&html);
    assert_eq!(left.len(), 24);
    for refused in suggestions {
        assert!(!left.contains(&refused["article"]["id"].as_str().unwrap()), "{refused} in {left:?}");
    }
    assert!(html.contains("All 230 refused suggestions"), "{html}");
    let page = browser.page(&format!("/studio?{CUSTOMER}&page=20")).await;
    assert!(
        page.contains("229 to 230 of 230 refused suggestions") && page.contains("rel=\"prev\""),
        "{page}"
    );
    assert!(
        browser.page(&format!("/studio?{CUSTOMER}")).await.contains("1 to 12 of 230 refused suggestions")
    );
}

#[apply(contract)]
async fn lists_every_customer(Stylist(service, browser): Stylist) {
    let all = service.store.customers().count().await.unwrap() + 1_100;
    let rows = (0..1_100).map(|number| format!("{{\"id\": \"zz-{number:04}\", \"features\": {{}}}}\n"));
    let answer = service.post("/customers/bulk", "application/x-ndjson", rows.collect::<String>()).await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let first = browser.page("/studio?find=zz-").await;
    assert!(first.contains("1 to 12 of over 1,000 customers"), "{first}");
    let last = browser.page("/studio?find=zz-&page=92").await;
    assert!(last.contains("1,093 to 1,100 of 1,100 customers") && last.contains("zz-1099"), "{last}");
    let (whole, first) = (format!("{},{:03}", all / 1000, all % 1000), browser.page("/studio").await);
    assert!(first.contains(&format!("1 to 12 of {whole} customers")), "{first}");
    let end = browser.page("/studio?page=9999").await;
    assert!(end.contains(&format!(" to {whole} of {whole} customers")) && end.contains("zz-1099"), "{end}");
}

/// However an outfit comes about, an article counts as shown once for its slot; another outfit counts by itself.
#[apply(on_sqlite)]
async fn an_article_counts_as_shown_once_for_an_outfit_and_slot(Stylist(service, browser): Stylist) {
    let begin = async || {
        let html = browser.page(&format!("/studio?{CUSTOMER}")).await;
        let (before, _) = html.split_once("\">New outfit").unwrap();
        before.rsplit("href=\"").next().unwrap().replace("&#38;", "&")
    };
    let customer = CustomerId::new("c-014871").unwrap();
    let shown = async || {
        let events = service.store.feedback().for_customer(&customer).try_collect::<Vec<_>>().await.unwrap();
        let shown = events.into_iter().filter(|event| event.kind == FeedbackKind::Shown);
        shown.map(|event| (event.slot, event.article)).collect::<Vec<_>>()
    };
    let mut page = begin().await;
    for slot in 0..4 {
        browser.page(&page).await;
        let html = browser.page(&format!("{page}&ask={slot}")).await;
        page.clone_from(&uses(&html)[1]);
    }
    let mut once = shown().await;
    let count = once.len();
    assert!(count > 30, "{count}");
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), count);
    let again = begin().await;
    browser.page(&again).await;
    assert!(shown().await.len() > count, "{again}");
}

#[apply(contract)]
async fn a_draft_counts_as_accepted_once_it_is_complete(Stylist(service, browser): Stylist) {
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&slot=&slot=a-00259&ask=1")).await;
    let view = uses(&html)[0].strip_prefix("/studio?").unwrap().to_owned();
    browser.post("/studio/outfits", &[("view", &view)]).is(303).await;
    assert_eq!(counted(&service).await[1], 0);
    let html = browser.page("/studio").await;
    let (before, _) = html.split_once("\">Continue").unwrap();
    let draft = before.rsplit("href=\"").next().unwrap().replace("&#38;", "&");
    let view = uses(&browser.page(&draft).await)[0].strip_prefix("/studio?").unwrap().to_owned();
    let saved = browser.post("/studio/outfits", &[("view", &view)]).await;
    assert_eq!(counted(&service).await[1], 2, "the piece of the draft, too");

    // Saving again changes the same outfit.
    let view = saved.header("location").strip_prefix("/studio?").unwrap().to_owned() + "&own.occasion=office";
    let again = browser.post("/studio/outfits", &[("view", &view)]).await;
    let number = |address: &str| address.split_once("saved=").unwrap().1.to_owned();
    assert_eq!(number(again.header("location")), number(saved.header("location")));
    let html = browser.page(again.header("location")).await;
    assert!(html.contains("id=\"save\"") && !html.contains("data-unsaved"), "{html}");
    assert!(browser.page(&format!("/studio?{view}&own.occasion=date")).await.contains("data-unsaved"));
}

/// X was shown beside A. Saved with B, it is no outfit of A and X.
#[apply(on_sqlite)]
async fn no_accepted_outfit_has_a_piece_that_was_replaced(Stylist(service, browser): Stylist) {
    let rest = "slot=a-00568&slot=a-00259";
    let html = browser.page(&format!("/studio?{CUSTOMER}&slot=a-00134&slot=&{rest}")).await;
    let used = uses(&html)[0].strip_prefix("/studio?").unwrap().to_owned();
    let replaced = used.replace("slot=a-00134&", "slot=a-01130&");
    browser.post("/studio/outfits", &[("view", &replaced)]).is(303).await;
    let accepted = async || service.get("/feedback/outfits.jsonl").await.text();
    assert_eq!(accepted().await, "");
    browser.post("/studio/outfits", &[("view", &used)]).is(303).await;
    assert!(accepted().await.contains("a-00134"));
}
