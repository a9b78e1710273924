//! `/studio` by its HTML; tests/it/browser uses it in a browser.

use std::collections::BTreeSet;

use atelier::{
    outcomes::{FeedbackEvent, FeedbackKind},
    outfits::{Origin, OutfitRecord},
};
use atelier_core::domain::{ArticleId, CustomerId, Role};
use futures_util::TryStreamExt;
use serde_json::{Value, json};

use crate::harness::{
    Analyst, Browser, Html, Service, Stylist, TestDatabase, apply, contract, ids, on_sqlite,
};

pub const CUSTOMER: &str = "customer=c-014871";
pub const OUTFIT: &str = "slot=a-00134&slot=&slot=a-00568&slot=a-00259";

/// The values of the buttons that refuse a suggestion: its slot, its name and its article.
pub fn refusals(html: &str) -> Vec<&str> {
    html.split("name=\"refused\" value=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

pub fn suggested(html: &str) -> Vec<&str> {
    refusals(html).into_iter().filter_map(|value| value.rsplit('/').next()).collect()
}

/// The addresses of the outfit with each suggestion.
pub fn uses(html: &str) -> Vec<String> {
    let takes = html.split("id=\"take-").skip(1);
    takes.map(|take| take.between("href=\"", "\"")).collect()
}

/// What an address of Studio has, for a form.
pub fn view(address: &str) -> &str {
    address.after("/studio?").split('#').next().unwrap()
}

impl Browser {
    /// Sends a form and returns where it leads.
    pub async fn change(&self, path: &str, fields: &[(&str, &str)]) -> String {
        self.post(path, fields).is(303).await.header("location").to_owned()
    }

    async fn studio(&self, query: &str) -> String {
        self.page(format!("/studio?{query}")).await
    }

    /// Saves the outfit of an address of Studio.
    async fn save(&self, address: &str) -> String {
        self.change("/studio/outfits", &[("view", view(address))]).await
    }
}

/// What was shown, accepted and rejected.
async fn counted(service: &Service) -> [u64; 3] {
    let counts = service.json("/feedback/counts").await;
    let items = counts["items"].as_array().unwrap();
    ["shown", "accepted", "rejected"].map(|name| items.iter().map(|one| one[name].as_u64().unwrap()).sum())
}

fn customer() -> CustomerId {
    CustomerId::new("c-014871").unwrap()
}

async fn feedback(service: &Service) -> Vec<FeedbackEvent> {
    service.store.feedback().for_customer(&customer()).try_collect().await.unwrap()
}

async fn last_outfit(service: &Service) -> OutfitRecord {
    service.store.outfits().for_customer(&customer(), 0, 100).await.unwrap().pop().unwrap()
}

#[apply(on_sqlite)]
async fn suggests_what_complete_answers(Stylist(service, browser): Stylist) {
    let html = browser.studio(&format!("{CUSTOMER}&{OUTFIT}&type=1:coat&method=gsu&k=4")).await;
    let asked = json!({"customer": "c-014871", "outfit": ["a-00134", null, "a-00568", "a-00259"], "method": "gsu",
                       "k": 4, "filters": {"types": {"1": ["coat"]}}, "lift": true, "explain": true});
    let blank = &service.ask_ok("/complete", asked).await["blanks"][0];
    assert_eq!(suggested(&html), ids(&blank["suggestions"]));
    let first = &blank["suggestions"][0];
    html.has([
        format!("<strong>{:.0} %</strong>", 100.0 * first["share"].as_f64().unwrap()),
        format!("best of {}", blank["admissible"]),
        "Which coat?".to_owned(),
    ]);
    let reasons = first["reasons"].as_array().unwrap();
    assert!(!reasons.is_empty(), "{first}");
    for reason in reasons {
        let factor = reason["factor"].as_f64().unwrap();
        let written = match factor {
            20.0.. => "over ×20".to_owned(),
            10.0.. => format!("×{factor:.0}"),
            _ => format!("×{factor:.2}"),
        };
        html.has([format!("<span class=\"quiet\">{written}</span>")]);
    }
}

#[apply(on_sqlite)]
async fn finds_customers_by_whole_words(Stylist(service, browser): Stylist) {
    let (woman, man) = (json!({"name": "Müller", "gender": "female"}), json!({"gender": "male"}));
    for (id, features) in [("zz-woman", woman), ("zz-man", man)] {
        service.put(format!("/customers/{id}"), json!({ "features": features })).is(201).await;
    }
    // Only if no word is whole, beginnings count.
    for (words, is_woman, is_man) in
        [("male", false, true), ("fema", true, false), ("mueller", true, false), ("", true, true)]
    {
        let html = browser.studio(&format!("find=zz-+{words}")).await;
        let found = ["woman", "man"].map(|who| html.contains(&format!("customer=zz-{who}\"")));
        assert_eq!(found, [is_woman, is_man], "{words}");
        assert_eq!(html.contains("<strong>Müller</strong>"), is_woman, "a name leads");
    }
    // A link from a mail is no mistake.
    for (query, said) in [
        ("find=female&page=2", ["13 to 24 of ", "rel=\"prev\""]),
        ("find=female&utm_source=mail&fbclid=7", ["1 to 12 of ", "rel=\"next\""]),
        ("find=sweden+0148", ["<strong>Odile Huber</strong>", "1 customer</span>"]),
        ("find=nobody+such", ["No customers match", "No customers match"]),
    ] {
        browser.studio(query).await.has(said);
    }
}

#[apply(on_sqlite)]
async fn a_store_limits_suggestions(Stylist(service, browser): Stylist) {
    let page = "slot=&slot=a-00134&type=0:beanie";
    // No article names a store.
    browser.studio(page).await.lacks(["name=\"store\""]);
    for (id, store) in [("b-1", "Basel"), ("b-2", "Zurich")] {
        let article = json!({"type": "beanie", "stock": [{"store": store, "count": 2}]});
        service.put(format!("/articles/{id}"), article).await;
    }
    service.releases.refresh().await.unwrap();
    let html = browser.studio(&format!("{page}&store=basel&k=24")).await;
    html.has(["<option selected>basel</option>", "<option>zurich</option>"]);
    let found = suggested(&html);
    assert!(found.contains(&"b-1") && !found.contains(&"b-2"), "{found:?}");
    let widened = browser.studio(&format!("{page}&store=basel&sold_out=on&k=24")).await;
    assert!(!suggested(&widened).is_empty(), "{widened}");
}

#[apply(on_sqlite)]
async fn counts_what_is_shown_used_and_refused(Stylist(service, browser): Stylist) {
    let board = format!("{CUSTOMER}&{OUTFIT}");
    // Every tile was shown, and a reload adds nothing.
    let mut html = String::new();
    for _ in 0..2 {
        html = browser.studio(&board).await;
        assert_eq!((suggested(&html).len(), counted(&service).await), (8, [8, 0, 0]));
    }
    let (second, refusal) = (suggested(&html)[1], refusals(&html)[1]);
    let verdict = async |view: &str, change: &str| {
        browser.change("/studio/feedback", &[("view", view), (change, refusal)]).await
    };
    for _ in 0..2 {
        let after = browser.page(verdict(&board, "refused").await).await;
        assert!(!suggested(&after).contains(&second), "{second} in {after}");
        after.has(["Refused (1)</summary>"]);
        // One more tile moved up.
        assert_eq!(counted(&service).await, [9, 0, 1]);
    }

    // It is remembered at other addresses, until it is taken back.
    let other = browser.studio(&format!("{board}&varied=on")).await;
    assert!(!suggested(&other).contains(&second), "{second} in {other}");
    let elsewhere = browser.studio(&board.replace("c-014871", "c-000010")).await;
    elsewhere.has(["For Ada Amsler"]).lacks(["Refused (1)</summary>"]);
    let shown = counted(&service).await[0];
    let next = verdict(&format!("{board}&skipped_sets=4"), "undone").await;
    // The best ideas are others now.
    next.lacks(["skipped_sets"]);
    let after = browser.page(next).await;
    assert_eq!((suggested(&after)[1], counted(&service).await), (second, [shown, 0, 0]));
    browser.studio(&format!("{board}&refused={refusal}")).await.lacks([": not for this customer"]);
    verdict(&board, "refused").await;
    let shown = counted(&service).await[0];

    // Using one is not accepting it, saving the outfit is, once.
    let (first, used) = (suggested(&html)[0], uses(&html)[0].clone());
    used.has([&*format!("slot={first}&"), "&from=1%3A"]);
    let page = browser.page(&used).await;
    assert_eq!(counted(&service).await, [shown, 0, 1]);
    page.has([format!("value=\"{}\"", view(&used).replace('&', "&#38;"))]);
    for _ in 0..2 {
        browser.save(&used).await;
        assert_eq!(counted(&service).await, [shown, 1, 1]);
    }
    let events = feedback(&service).await;
    for (kind, article, rank) in [(FeedbackKind::Accepted, first, 1), (FeedbackKind::Rejected, second, 2)] {
        let event = events.iter().find(|event| event.kind == kind).unwrap();
        assert_eq!((event.article.as_str(), event.rank, event.slot), (article, rank, 1));
    }
    assert!(events.iter().filter(|event| event.kind == FeedbackKind::Shown).all(|event| event.rank <= 10));

    // An article that replaced the suggestion was not suggested, and neither was one under a name of nothing.
    for (was, is) in [(&*format!("slot={first}&"), "slot=a-00001&"), ("from=1%3A", "from=1%3A0")] {
        browser.save(&used.replace(was, is)).await;
    }
    assert_eq!(counted(&service).await, [shown, 1, 1]);

    for nonsense in ["", "loved", "1/7f/", "x/7f/a"] {
        let fields = [("view", "slot=&slot=a-1"), ("refused", nonsense)];
        assert_eq!(browser.post("/studio/feedback", &fields).await.status, 422, "{nonsense}");
    }
}

#[apply(on_sqlite)]
async fn a_set_of_suggestions_is_accepted_with_its_outfit(Stylist(service, browser): Stylist) {
    let html = browser.studio(&format!("{CUSTOMER}&slot=a-00134&slot=&slot=&slot=a-00259")).await;
    let idea = html.after("<ul class=\"sets\">").between("href=\"", "\"");
    let shown = counted(&service).await[0];
    browser.save(&idea).await;
    assert_eq!(counted(&service).await, [shown, 2, 0]);
    // They make up an outfit for training.
    let saved = last_outfit(&service).await;
    let lines = service.get("/feedback/outfits.jsonl").await.text();
    let exported: Value = serde_json::from_str(lines.trim()).unwrap();
    let mut found: Vec<String> = serde_json::from_value(exported["articles"].clone()).unwrap();
    let mut expected: Vec<&str> = saved.outfit.articles().iter().map(ArticleId::as_str).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[apply(on_sqlite)]
async fn saves_an_outfit(Stylist(service, browser): Stylist) {
    let whole = format!("{CUSTOMER}&slot=a-00134&slot=a-00568&slot=a-00259&slot=a-01130&own.occasion=office");
    let there = browser.change("/studio/outfits", &[("view", &whole)]).await;
    let kept = last_outfit(&service).await;
    browser.page(there).await.has([format!("Saved as outfit {}.", kept.seq)]);
    // An address may be made up.
    let seq = &*kept.seq.to_string();
    for (view, seq) in [
        (&*whole, "99999"),
        (&whole, "x"),
        (&whole, &*(kept.seq - 1).to_string()),
        // Another customer, other articles, another occasion, an outfit that is not complete.
        (&whole.replace("c-014871", "c-000001"), seq),
        (&whole.replace("a-01130", "a-01243"), seq),
        (&whole.replace("office", "wedding"), seq),
        (&whole.replace("a-01130", ""), seq),
    ] {
        let html = browser.studio(&format!("{view}&saved={seq}")).await;
        assert!(!html.contains("Saved as outfit") && !html.contains("saved="), "{view} {seq}");
    }
    assert_eq!(kept.origin, Origin::Saved);
    let articles: Vec<&str> = kept.outfit.articles().iter().map(ArticleId::as_str).collect();
    assert_eq!(articles, ["a-00134", "a-00568", "a-00259", "a-01130"]);
    assert_eq!(kept.outfit.features.iter().count(), 1);
    let audit = service.log(1).await.remove(0);
    assert_eq!((audit.action.as_str(), audit.customer), ("outfit.save", Some(customer())));
    browser.studio(CUSTOMER).await.has(["slot=a-00134&#38;slot=a-00568", "own.occasion=office"]);
    // With a link for the customer, which stays open.
    let mut links = BTreeSet::new();
    for _ in 0..2 {
        let shared = browser.change("/studio/outfits", &[("view", &whole), ("share", "on")]).await;
        assert_eq!(shared, format!("/studio/outfits/{}#share", kept.seq));
        links.insert(browser.page(shared).await.between("/shared/", "<"));
    }
    assert_eq!(links.len(), 1, "{links:?}");
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
        assert!(refused.is_refused(), "{view}: {}", refused.status);
        // The pieces are still there.
        refused.text().has([said, "id=\"board-title\""]).lacks(["put it there"]);
    }
    assert_eq!(service.log(9).await, []);
    browser.post("/studio/outfits", &[("view", "https://elsewhere/")]).is(422).await;
}

#[apply(on_sqlite)]
async fn works_without_a_release_and_without_a_customer(service: Service) {
    service.bring_in_demo().await;
    let browser = service.signed_in(Role::Stylist).await;
    browser.studio(&format!("{CUSTOMER}&{OUTFIT}")).await.has(["No release is live"]);
    service.serve_demo().await;
    let html = browser.studio(OUTFIT).await;
    html.has(["Without a customer"]);
    assert_eq!(suggested(&html).len(), 8, "{html}");
    browser.studio(&format!("customer=nobody&{OUTFIT}")).await.has(["There is no customer nobody"]);
}

#[apply(on_sqlite)]
async fn reports_an_invalid_address(Stylist(_service, browser): Stylist) {
    // An old link opens the page without what no longer works; `view` asks the rest of it.
    for (query, said) in [
        ("slot=%00&slot=a-00134", "a piece"),
        ("method=best&slot=&slot=a-00134", "the method best"),
        ("slot=&slot=a-00134&type=0:spaceship", "the type spaceship"),
        ("method=universal&slot=&slot=a-00134&yclid=1", ""),
    ] {
        let html = browser.studio(query).await;
        assert_eq!(html.contains("Parts of this link no longer work"), !said.is_empty(), "{query}: {html}");
        assert!(html.contains(&format!("left out: {said}.")) || said.is_empty(), "{query}: {html}");
        assert!(!suggested(&html).is_empty() || html.contains("class=\"sets\""), "{query}: {html}");
    }
    // A form of another page says what is wrong with it, for people.
    let refused = browser.post("/studio/outfits", &[("view", "method=Best&k=x")]).is(422).await;
    refused.text().has(["That didn’t work"]).lacks(["`errors`"]);
    let html = browser.studio("slot=&slot=a-00134&price_min=100&price_max=50").await;
    html.has(["No suggestions", "id=\"price-max\""]);
    let html = browser.studio("slot=gone&slot=a-00134&slot=a-00568&slot=a-00259").await;
    html.has(["no longer in the catalogue"]).lacks(["· out of stock"]);
}

/// What the page says of the catalogue for the second piece.
async fn picker(browser: &Browser, query: &str) -> String {
    let html = browser.studio(&format!("{query}&pick=1")).await;
    html.after("id=\"pick-title\">").split("</section>").next().unwrap().to_owned()
}

#[apply(on_sqlite)]
async fn finds_articles_by_words(Stylist(service, browser): Stylist) {
    let found = picker(&browser, &format!("{OUTFIT}&search=black+leather+boot")).await;
    assert!(found.matches("leather boot").count() >= 3, "{found}");
    // Each fills the slot.
    found.has(["The catalogue for piece 2", "slot=a-00134&#38;slot=a-0"]);

    // Plurals and other names, in the model's order for the customer, with pages.
    let picker =
        async |words: &str| picker(&browser, &format!("{CUSTOMER}&slot=a-00134&slot=&{words}")).await;
    let trainers = picker("search=trainers").await;
    assert!(trainers.to_lowercase().matches("sneaker").count() >= 3, "{trainers}");
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "k": 48});
    let blank = &service.ask_ok("/complete", request).await["blanks"][0];
    let slots: Vec<String> =
        ids(&blank["suggestions"]).iter().map(|article| format!("slot={article}&#38;undo=")).collect();
    let all = picker("search=").await;
    all.has(&slots[..24]);
    picker("search=&page=2").await.has(&slots[24..]);
    // Every article that passes is on a page, the last ones, too.
    let admissible = blank["admissible"].as_u64().unwrap();
    assert!(admissible > 250, "{admissible}");
    let written =
        if admissible < 1000 { admissible.to_string() } else { format!("1,{:03}", admissible - 1000) };
    all.has([format!("1 to 24 of {written} articles")]);
    let last = picker("search=&page=9999").await;
    last.has([&*format!(" to {written} of {written} articles"), "class=\"tile\""]).lacks(["rel=\"next\""]);
    // The filters of the page hold here, too.
    let cheap = picker("search=boot&price_max=1").await;
    cheap.has(["Articles match the words, but are hidden:", "at other prices <a href="]);
    cheap.lacks(["price_max=1&#38;any"]);
    // The budget is for all pieces.
    let price = service.json("/articles/a-00134").await["price"].as_f64().unwrap();
    let poor = picker(&format!("search=boot&total={}", price + 1.0)).await;
    let include = poor.between("over the budget <a href=\"", "\"");
    include.lacks(["total="]);
    browser.page(include).await.has([" boot</span>"]);
}

#[apply(on_sqlite)]
async fn without_ideas_the_first_blank_says_what_is_in_the_way(Stylist(_service, browser): Stylist) {
    let html = browser.studio(&format!("{CUSTOMER}&slot=a-00134&slot=&slot=&price_max=1")).await;
    html.lacks(["class=\"sets\""]);
    html.after("id=\"blank-1\"").has(["No articles match", "Include other prices: "]);
}

#[apply(on_sqlite)]
async fn stylists_see_no_arm_method_or_device(Stylist(service, browser): Stylist) {
    let arms =
        json!([{"name": "gsu", "method": "gsu", "share": 1}, {"name": "none", "method": "none", "share": 1}]);
    service.put("/experiments/autumn", json!({"arms": arms, "state": "running"})).await;
    let board = format!("{CUSTOMER}&{OUTFIT}");
    browser.studio(&board).await.lacks(["autumn", "Answered by", "gsu", "Compare methods", "on the CPU"]);
    let analyst = service.signed_in(Role::Analyst).await;
    analyst.studio(&board).await.has(["(arm autumn/", "Compare methods"]);
}

#[apply(on_sqlite)]
async fn finds_similar_articles_and_by_values(Stylist(service, browser): Stylist) {
    let put = async |id: &str, article: &Value| {
        service.put(format!("/articles/{id}"), article).is(201).await;
    };
    let picked = async |query: &str| {
        let picker = picker(&browser, &format!("slot=a-00134&slot=&{query}")).await;
        let links = picker.all_between("class=\"tile\" href=\"", "\"");
        let last = |link: &String| link.rsplit("slot=").next().unwrap().split('&').next().unwrap().to_owned();
        let ids: Vec<String> = links.iter().map(last).collect();
        (picker, ids)
    };
    // Of articles that say the same, the one that looks alike is the most similar; otherwise ids decide.
    let mut twin = service.json("/articles/a-00134").await;
    let kind = twin["type"].clone();
    twin.as_object_mut().unwrap().remove("id");
    for (id, image) in [("twin", [1.0, 0.0]), ("x-1", [0.1, 0.9]), ("x-2", [0.9, 0.1])] {
        twin["embedding"] = json!({"image": image});
        put(id, &twin).await;
    }
    // A value is a whole one.
    put("pale", &json!({"type": "coat", "colour": "light navy", "name": "Pale"})).await;
    service.releases.refresh().await.unwrap();
    assert_eq!(picked("similar=twin").await.1[..2], ["x-2", "x-1"]);
    assert_eq!(picked("search=pale").await.1, ["pale"]);
    let (html, similar) = picked("similar=a-00134").await;
    assert!(html.starts_with("Similar to ") && similar.len() > 3, "{html}");
    assert_eq!(similar[..3], ["twin", "x-1", "x-2"]);
    for id in &similar {
        assert_eq!(service.json(format!("/articles/{id}")).await["type"], kind, "{id}");
    }

    let (html, navy) = picked("type=1:coat&by.colour=navy&by.material=").await;
    html.has(["<option value=\"1:coat\" selected>coat</option>"]);
    assert!(!navy.is_empty());
    for id in &navy {
        let article = service.json(format!("/articles/{id}")).await;
        assert_eq!((&article["type"], &article["colour"]), (&json!("coat"), &json!("navy")), "{id}");
    }
    // Suggestions pass the same filters, and a value that is gone is left out.
    let html =
        browser.studio("slot=a-00134&slot=&by.colour=navy&by.brand=linden&by.material=gone&k=24").await;
    html.has(["left out: the material gone.", "<option value=\"linden\" selected>linden</option>"]);
    assert!(!suggested(&html).is_empty(), "{html}");
    for id in suggested(&html) {
        let article = service.json(format!("/articles/{id}")).await;
        assert_eq!((&article["brand"], &article["colour"]), (&json!("Linden"), &json!("navy")), "{id}");
    }
    let none = browser.studio("slot=a-00134&slot=&type=1:bag&by.brand=linden&by.sizes=36").await;
    none.has(["No articles match", "Include other brands, colours and sizes: "]);
    let analyst = service.signed_in(Role::Analyst).await;
    analyst.page("/side-by-side?slot=a-00134&slot=&by.brand=linden").await.has(["Also: brand: linden."]);
}

#[apply(contract)]
async fn takes_a_refusal_back_without_a_customer(Stylist(service, browser): Stylist) {
    let html = browser.studio(OUTFIT).await;
    let (first, refusal) = (suggested(&html)[0], refusals(&html)[0]);
    let there = browser.change("/studio/feedback", &[("view", OUTFIT), ("refused", refusal)]).await;
    let after = browser.page(&there).await;
    after.has(["Refused (1)</summary>"]);
    assert!(!suggested(&after).contains(&first), "{after}");
    assert_eq!(counted(&service).await[2], 1);
    // Later, from the list beside the suggestions.
    let undone = after.after("<ul class=\"refused\">").between("name=\"undone\" value=\"", "\"");
    let there = browser.change("/studio/feedback", &[("view", view(&there)), ("undone", &undone)]).await;
    assert_eq!(suggested(&browser.page(there).await)[0], first);
    assert_eq!(counted(&service).await[2], 0, "it is no longer counted");
}

#[apply(on_sqlite)]
async fn a_look_from_side_by_side_counts_nothing(Analyst(service, analyst): Analyst) {
    let html = analyst.page(format!("/side-by-side?{CUSTOMER}&{OUTFIT}")).await;
    let link = html.link_to("\" hx-boost=\"false\">Open in Studio");
    let html = analyst.page(&link).await;
    html.has(["nothing here counts"]);
    // A refusal holds on this page, but is no one's.
    let (first, refusal) = (suggested(&html)[0], refusals(&html)[0]);
    let there = analyst.change("/studio/feedback", &[("view", view(&link)), ("refused", refusal)]).await;
    let html = analyst.page(&there).await;
    assert!(!suggested(&html).contains(&first), "{there}");
    html.has([": left out"]).lacks(["Not for this customer"]);
    html.link_to("\">Style for this customer").lacks(["left_out"]);
    assert_eq!(counted(&service).await, [0; 3]);
    assert!(suggested(&analyst.studio(&format!("{CUSTOMER}&{OUTFIT}")).await).contains(&first));
    assert_eq!(counted(&service).await, [8, 0, 0], "their own work counts");
}

#[apply(on_sqlite)]
async fn a_saved_outfit_stays_saved_if_nothing_can_be_counted(
    Stylist(service, browser): Stylist,
    db: TestDatabase,
) {
    let used = uses(&browser.studio(&format!("{CUSTOMER}&{OUTFIT}")).await)[0].clone();
    let broken = "alter table feedback_events rename to elsewhere";
    sqlx::raw_sql(broken).execute(&mut db.raw().await).await.unwrap();
    browser.save(&used).await;
    assert_eq!(last_outfit(&service).await.origin, Origin::Saved);
}

#[apply(on_sqlite)]
async fn offers_other_ideas_and_keeps_what_was_chosen(Stylist(_service, browser): Stylist) {
    let page = async |address: &str| browser.page(address).await;
    let idea = |html: &str| html.after("<ul class=\"sets\">").between("href=\"", "\"");
    let others = |html: &str| html.after("id=\"other-ideas\"").between("href=\"", "\"");
    let slots = |link: &str| -> Vec<String> {
        let pairs = form_urlencoded::parse(view(link).as_bytes()).into_owned();
        pairs.filter(|(name, _)| name == "slot").map(|(_, value)| value).collect()
    };
    // All is the stylist's choice.
    let own = browser.studio("customer=c-014871&slot=a-00134&slot=a-01130&slot=a-00568&slot=a-00259").await;
    own.lacks(["id=\"other-ideas\""]);
    let mut html = browser.studio(&format!("{CUSTOMER}&slot=a-00134&slot=&slot=&slot=a-00259")).await;
    let first = idea(&html);
    let whole = page(&first).await;
    others(&whole).has(["slot=a-00134&slot=&slot=&slot=a-00259"]).lacks(["from="]);
    // Round for round the next four, also from an idea of the second round.
    let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
    for round in 1..=3 {
        let found: Vec<String> =
            html.split("id=\"use-").skip(1).map(|rest| rest.between("href=\"", "\"")).collect();
        seen.extend(found.iter().map(|idea| slots(idea)));
        assert_eq!((found.len(), seen.len()), (4, 4 * round), "{seen:?}");
        html = page(&others(&page(&found[1]).await)).await;
    }
    // With one more piece locked, the best ideas are others, and none was seen.
    let locked = page(&whole.after("id=\"lock-1\"").between("href=\"", "\"")).await;
    let others_of_locked = others(&locked);
    others_of_locked.lacks(["skipped_sets"]);
    assert_eq!(slots(&others_of_locked), ["a-00134", &slots(&first)[1], "", "a-00259"]);
    // So is a piece that was chosen by itself.
    let chosen = uses(&page(&whole.after("id=\"slot-2\"").between("href=\"", "\"")).await)[1].clone();
    assert_eq!(slots(&others(&page(&chosen).await)), ["a-00134", "", &slots(&chosen)[2], "a-00259"]);

    // The types of the blanks are the stylist's choice, too.
    let typed = "slot=a-00315&slot=a-01317&slot=&slot=&type=2:jeans&type=3:sneaker";
    let first = idea(&browser.studio(&format!("{CUSTOMER}&{typed}")).await);
    let others = others(&page(&first).await);
    others.has(["type=2%3Ajeans&type=3%3Asneaker"]);
    assert_ne!(slots(&idea(&page(&others).await)), slots(&first));
}

#[apply(on_sqlite)]
async fn what_if_takes_no_value_and_compares_with_the_outfit(Stylist(_service, browser): Stylist) {
    let asked = async |query: &str| browser.studio(&format!("{CUSTOMER}&{OUTFIT}&{query}")).await;
    let ticked = "name=\"if.nogo_colours\" value=\"navy\" checked";
    // The form sends this, if nothing is ticked.
    let nothing = "<input type=\"hidden\" name=\"if.nogo_colours\" value=\"(not given)\">";
    asked("changing=nogo_colours").await.has([ticked, nothing]);
    let none = asked("changing=nogo_colours&if.nogo_colours=(not+given)").await;
    none.has([": not given</strong>"]).lacks([ticked]);
    let some = asked("changing=nogo_colours&if.nogo_colours=(not+given)&if.nogo_colours=navy").await;
    some.has([ticked]).lacks([": not given</strong>"]);
    asked("own.occasion=office&if.occasion=date").await.has(["instead of office"]);
    // How far each suggestion moved.
    let slim = asked("type=1:coat&if.fit=slim").await;
    slim.has(["fit: slim</strong>", "instead of relaxed"]);
    let moved = slim.after("<ol class=\"tiles suggestions").split("</ol>").next().unwrap();
    assert!(moved.contains("from ") || moved.contains("was below"), "{moved}");
}

#[apply(on_sqlite)]
async fn a_changed_question_is_shown_from_its_beginning(Stylist(_service, browser): Stylist) {
    let query = "slot=a-00134&slot=&slot=&ask=1&pick=1&similar=a-00134&page=2&skipped_sets=4&changing=fit";
    let html = browser.studio(&format!("{CUSTOMER}&{query}")).await;
    html.between("id=\"search-2\" href=\"", "\"").has(["pick=2"]).lacks(["similar=", "page="]);
    let mut forms = html.all_between("<form action=\"/studio\" class=\"", "</form>");
    forms.retain(|form| ["filters", "control", "push"].iter().any(|class| form.starts_with(class)));
    assert_eq!(forms.len(), 3, "{html}");
    forms.concat().lacks(["name=\"page\"", "name=\"skipped_sets\""]);
}

#[apply(on_sqlite)]
async fn remembers_every_refusal(Stylist(service, browser): Stylist) {
    let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "k": 230});
    let answer = service.ask_ok("/complete", request).await;
    let suggestions = ids(&answer["blanks"][0]["suggestions"]);
    assert_eq!(suggestions.len(), 230);
    let events: Vec<Value> = suggestions
        .iter()
        .zip(1..)
        .map(|(article, rank)| {
            json!({"id": article, "completion_id": answer["completion_id"], "kind": "rejected", "slot": 1,
                   "article": article, "rank": rank, "customer": "c-014871"})
        })
        .collect();
    for events in events.chunks(100) {
        service.ask_ok("/feedback", json!(events)).await;
    }
    let html = browser.studio(&format!("{CUSTOMER}&slot=a-00134&slot=&k=24")).await;
    html.has(["Refused (230)</summary>", "All 230 refused suggestions"]);
    let left = suggested(&html);
    assert_eq!(left.len(), 24);
    assert!(suggestions.iter().all(|refused| !left.contains(&refused.as_str())), "{left:?}");
    let last = browser.studio(&format!("{CUSTOMER}&page=20")).await;
    last.has(["229 to 230 of 230 refused suggestions", "rel=\"prev\""]);
    browser.studio(CUSTOMER).await.has(["1 to 12 of 230 refused suggestions"]);
}

#[apply(contract)]
async fn lists_every_customer(Stylist(service, browser): Stylist) {
    let all = service.store.customers().count().await.unwrap() + 1_100;
    let rows = (0..1_100).map(|number| format!("{{\"id\": \"zz-{number:04}\", \"features\": {{}}}}\n"));
    service.lines("/customers/bulk", rows.collect::<String>()).is(200).await;
    let whole = format!("{},{:03}", all / 1000, all % 1000);
    for (query, said) in [
        ("find=zz-", ["1 to 12 of over 1,000 customers", "zz-0000"]),
        ("find=zz-&page=92", ["1,093 to 1,100 of 1,100 customers", "zz-1099"]),
        ("", [&format!("1 to 12 of {whole} customers"), ""]),
        ("page=9999", [&format!(" to {whole} of {whole} customers"), "zz-1099"]),
    ] {
        browser.studio(query).await.has(said);
    }
}

/// However an outfit comes about, an article counts as shown once for its slot; another outfit counts by itself.
#[apply(on_sqlite)]
async fn an_article_counts_as_shown_once_for_an_outfit_and_slot(Stylist(service, browser): Stylist) {
    let begin = async || browser.studio(CUSTOMER).await.link_to("\">New outfit");
    let shown = async || {
        let events = feedback(&service).await.into_iter();
        let shown = events.filter(|event| event.kind == FeedbackKind::Shown);
        shown.map(|event| (event.slot, event.article)).collect::<Vec<_>>()
    };
    // On the way to a whole outfit a stylist reads no alarm, and of no models.
    let quiet = async |address: &str| {
        let html = browser.page(address).await;
        html.lacks(["class=\"notice\"", "role=\"alert\""]);
        let main = html.after("<main").split("</main>").next().unwrap();
        crate::analysis::evaluation::text(main).lacks([" slot", "models"]);
        html
    };
    let mut page = begin().await;
    for slot in 0..4 {
        quiet(&page).await;
        let html = quiet(&format!("{page}&ask={slot}")).await;
        page.clone_from(&uses(&html)[1]);
    }
    quiet(&page).await;
    let once = shown().await;
    assert!(once.len() > 30, "{once:?}");
    assert_eq!(once.iter().collect::<BTreeSet<_>>().len(), once.len());
    browser.page(begin().await).await;
    assert!(shown().await.len() > once.len());
}

#[apply(contract)]
async fn a_draft_counts_as_accepted_once_it_is_complete(Stylist(service, browser): Stylist) {
    let html = browser.studio(&format!("{CUSTOMER}&slot=a-00134&slot=&slot=&slot=a-00259&ask=1")).await;
    browser.save(&uses(&html)[0]).await;
    assert_eq!(counted(&service).await[1], 0);
    let draft = browser.page("/studio").await.link_to("\">Continue");
    let saved = browser.save(&uses(&browser.page(draft).await)[0]).await;
    assert_eq!(counted(&service).await[1], 2, "the piece of the draft, too");

    // Saving again changes the same outfit.
    let again = browser.save(&format!("{saved}&own.occasion=office")).await;
    assert_eq!(again.after("saved="), saved.after("saved="));
    browser.page(&again).await.has(["id=\"save\""]).lacks(["data-unsaved"]);
    browser.page(format!("{saved}&own.occasion=date")).await.has(["data-unsaved"]);
}

/// X was shown beside A. Saved with B, it is no outfit of A and X.
#[apply(on_sqlite)]
async fn no_accepted_outfit_has_a_piece_that_was_replaced(Stylist(service, browser): Stylist) {
    let html = browser.studio(&format!("{CUSTOMER}&slot=a-00134&slot=&slot=a-00568&slot=a-00259")).await;
    let used = &uses(&html)[0];
    browser.save(&used.replace("slot=a-00134&", "slot=a-01130&")).await;
    let accepted = async || service.get("/feedback/outfits.jsonl").await.text();
    assert_eq!(accepted().await, "");
    browser.save(used).await;
    accepted().await.has(["a-00134"]);
}
