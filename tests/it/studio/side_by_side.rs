//! `/side-by-side` by its HTML; tests/it/browser uses it in a browser.

use serde_json::{Value, json};

use crate::harness::{Analyst, Html, Service, apply, ids, on_sqlite};

const OUTFIT: &str = "slot=a-00134&slot=&slot=a-00568&slot=a-00259&unfit=on&sold_out=on&any=on";

async fn compared(service: &Service, more: Value) -> Value {
    let mut body = json!({"customer": "c-014871", "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 10,
                          "filters": {"no_gos": false, "fit": false, "in_stock": false}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    service.ask_ok("/compare", body).await
}

/// In the notation of files.
fn number(number: &Value) -> String {
    let written = format!("{:.6}", number.as_f64().unwrap());
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[apply(on_sqlite)]
async fn shows_what_compare_answers(Analyst(service, browser): Analyst) {
    let html = browser.page(format!("/side-by-side?customer=c-014871&{OUTFIT}&truth=a-01243")).await;
    let methods = ["none", "c", "np", "gs", "gsu", "match"];
    let answer = compared(&service, json!({"methods": methods, "true_article": "a-01243"})).await;
    for column in answer["columns"].as_array().unwrap() {
        html.has([format!("stylist's: rank {}, ", column["true_article"]["rank"])]);
    }
    assert_eq!(html.all_between("<h3>", "<"), methods, "the paper's, and the default");
    let pair = &answer["pairs"][0];
    let overlap = format!("{:.0} %", 100.0 * pair["overlap"].as_f64().unwrap());
    let rbo = format!("{:.2}", pair["rank_biased_overlap"].as_f64().unwrap());
    html.has([format!(
        "<tr><th scope=\"row\">none</th><td>c</td><td class=\"number\">{overlap}</td><td class=\"number\">{rbo}</td></tr>"
    )]);
    let csv = browser.page(format!("/side-by-side/similarity.csv?customer=c-014871&{OUTFIT}")).await;
    let (overlap, rbo) = (number(&pair["overlap"]), number(&pair["rank_biased_overlap"]));
    let head = "first,second,in_common,rank_biased_overlap";
    csv.has([format!("{head}\r\nnone,c,{overlap},{rbo}\r\n")]);
    assert_eq!(csv.lines().count(), 1 + 15);

    // The filters of Studio, among them what the form has no field for.
    let filters = "price_max=80&exclude=a-01243&own.occasion=office&if.fit=slim";
    let address = format!("/side-by-side?customer=c-014871&slot=a-00134&slot=&type=coat&{filters}");
    browser.page(address).await.has([
        "Also: price up to 80; 1 left out; fit: slim.",
        "/studio?customer=c-014871&#38;slot=a-00134&#38;slot=&#38;type=1%3Acoat&#38;exclude=a-01243\
         &#38;own.occasion=office&#38;if.fit=slim&#38;price_max=80&#38;trial=on",
    ]);
}

#[apply(on_sqlite)]
async fn methods_are_compared_without_the_shops_rules_unless_asked(Analyst(service, browser): Analyst) {
    let address = format!("/side-by-side?customer=c-014871&{OUTFIT}");
    let plain = compared(&service, json!({})).await;
    let last = &ids(&plain["columns"][0]["suggestions"])[9];
    service
        .put(
            "/rules/new-season",
            json!({"effect": "boost", "state": "active", "factor": 50, "articles": {"ids": [last]}}),
        )
        .is(201)
        .await;
    assert_eq!(compared(&service, json!({})).await["columns"], plain["columns"]);
    browser
        .page(&address)
        .await
        .has(["from ", "without the shop’s rules;", "name=\"rules\" id=\"rules\">"])
        .lacks(["new-season"]);
    browser
        .page(address.replace("/side-by-side?", "/side-by-side.csv?"))
        .await
        .has([",true,rules\r\n"])
        .lacks(["new-season"]);

    let ruled = compared(&service, json!({"rules": true})).await;
    assert_ne!(ids(&ruled["columns"][0]["suggestions"]), ids(&plain["columns"][0]["suggestions"]));
    let marked = "<span class=\"moved-by\">by new-season</span>";
    browser.page(format!("{address}&rules=on")).await.has([
        "moved by the shop’s rules where a rule is named;",
        "id=\"rules\" checked>",
        marked,
    ]);
    let csv = browser.page(address.replace("/side-by-side?", "/side-by-side.csv?") + "&rules=on").await;
    csv.has([format!(",{last},")]);
    assert!(csv.lines().any(|line| line.contains(&**last) && line.ends_with(",new-season")), "{csv}");
}

#[apply(on_sqlite)]
async fn marks_the_same_article_across_columns(Analyst(service, browser): Analyst) {
    let answer = compared(&service, json!({"methods": ["none", "gsu"]})).await;
    let [left, right] = [0_usize, 1].map(|column| ids(&answer["columns"][column]["suggestions"]));
    let places = left.iter().enumerate();
    let both: Vec<(usize, usize)> = places
        .filter_map(|(from, id)| right.iter().position(|other| other == id).map(|to| (from, to)))
        .collect();
    assert!(!both.is_empty());
    let query = format!("customer=c-014871&{OUTFIT}&method=none&method=gsu&mark={}", left[both[0].0]);
    let html = browser.page(format!("/side-by-side?{query}")).await;
    assert_eq!(html.matches("<path class=\"link").count(), both.len());
    let (from, to) = (both[0].0 * 100 + 50, both[0].1 * 100 + 50);
    html.has([format!("<path class=\"link-marked\" d=\"M0 {from}C50 {from} 50 {to} 100 {to}\"")]);
    assert_eq!(html.matches("class=\"cell is-marked\"").count(), 2);
}

#[apply(on_sqlite)]
async fn compares_customers_under_one_method(Analyst(service, browser): Analyst) {
    let customers = ["c-014871", "c-019029"];
    let query = format!("customers=c-014871,+c-019029&{OUTFIT}&method=gsu&type=coat");
    let html = browser.page(format!("/side-by-side?{query}")).await;
    assert_eq!(html.all_between("<h3><strong>", "<"), ["Odile Huber", "Hana Demir"]);
    html.lacks(["none</h3>"]);
    // Each has other no-gos and sizes, so other articles to choose from.
    let mut admissible = Vec::new();
    for customer in customers {
        let body = json!({"customer": customer, "outfit": ["a-00134", null], "method": "gsu"});
        let answer = service.ask_ok("/complete", body).await;
        admissible.push(answer["blanks"][0]["admissible"].as_u64().unwrap());
    }
    admissible.sort_unstable();
    let query = "customer=c-014871&customer=c-019029&slot=a-00134&slot=&method=gsu";
    let html = browser.page(format!("/side-by-side?{query}")).await;
    html.replace(',', "").has([format!("from {} to {} articles", admissible[0], admissible[1])]);
}

#[apply(on_sqlite)]
async fn downloads_every_column(Analyst(service, browser): Analyst) {
    let address =
        format!("/side-by-side.csv?customer=c-014871&{OUTFIT}&truth=a-01243&method=none&method=gsu&k=5");
    let answer = browser.get(&address).is(200).await;
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8");
    answer.header("content-disposition").has(["side-by-side.csv"]);
    let csv = answer.text();
    let asked = json!({"methods": ["none", "gsu"], "true_article": "a-01243", "k": 5});
    for column in compared(&service, asked).await["columns"].as_array().unwrap() {
        let method = column["method"].as_str().unwrap();
        for suggestion in column["suggestions"].as_array().unwrap() {
            let article = &suggestion["article"];
            let [id, name, kind] = ["id", "name", "type"].map(|field| article[field].as_str().unwrap());
            let (rank, share) = (&suggestion["rank"], number(&suggestion["share"]));
            csv.has([format!("\r\n{method},c-014871,{rank},{id},{name},{kind},{share}")]);
        }
        let truth = format!("{method},c-014871,{},a-01243,", column["true_article"]["rank"]);
        assert!(
            csv.lines().any(|line| line.starts_with(&truth) && line.ends_with(",true,")),
            "{truth}: {csv}"
        );
    }
    // The article's name is the shop's, and the file is opened in a spreadsheet of any country.
    let id = csv.lines().nth(1).unwrap().split(',').nth(3).unwrap();
    service.put(format!("/articles/{id}"), json!({"type": "coat", "name": ";=1+1"})).is(200).await;
    browser.page(address).await.has([format!(",{id},\";'=1+1\",coat,")]);
}

#[apply(on_sqlite)]
async fn loads_a_stored_outfit_with_its_occasion(Analyst(service, browser): Analyst) {
    let outfit = service.json("/customers/c-014871/outfits").await["items"][0].clone();
    let occasion = outfit["features"]["occasion"].as_str().unwrap();
    let ids: Vec<String> = serde_json::from_value(outfit["articles"].clone()).unwrap();
    let start = browser.page("/side-by-side?customer=c-014871").await;
    let slots: Vec<String> = ids[1..].iter().map(|id| format!("slot={id}")).collect();
    let query = format!("customer=c-014871&slot=&{}&truth={}", slots.join("&"), ids[0]);
    let link = query.replace('&', "&#38;");
    start.has(["Click an article of an outfit below", "validation, ", &link]);
    let html = browser.page(format!("/side-by-side?{query}&method=gsu&unfit=on&sold_out=on&any=on")).await;
    let mut blank = json!(ids);
    blank[0] = Value::Null;
    let more = json!({"outfit": blank, "methods": ["gsu"], "true_article": ids[0], "features": {"occasion": occasion}});
    let answer = compared(&service, more).await;
    let rank = &answer["columns"][0]["true_article"]["rank"];
    html.has([format!("Features of the outfit: {occasion}."), format!("stylist's: rank {rank}, ")]);
}

#[apply(on_sqlite)]
async fn reports_missing_and_invalid_fields(Analyst(_service, browser): Analyst) {
    browser.page("/side-by-side").await.has(["Enter a customer id"]);
    let lost = "left out: the customer nobody.";
    for query in ["customer=nobody&slot=", "customer=nobody&slot=&own.occasion=office"] {
        let html = browser.page(format!("/side-by-side?{query}")).await;
        html.has([lost, "columns-title"]).lacks(["Nothing to compare yet"]);
        assert!(browser.page(format!("/side-by-side.csv?{query}")).await.lines().count() > 1);
    }
    browser.page("/side-by-side?customer=nobody").await.has([lost, "Enter a customer id"]);
    // A shared link may be older than the release, or marked on its way.
    for (query, lost) in [
        ("method=Best&k=x", "a method, the number of suggestions"),
        ("method=universal-2&method=gsu", "the method universal-2"),
        ("type=spaceship", "the type spaceship"),
        ("slot=gone", "a piece"),
        ("customer=nobody", "the customer nobody"),
        ("yclid=1&_hsenc=2&mkt_tok=3&twclid=4&no_gos=on", ""),
    ] {
        let html = browser.page(format!("/side-by-side?customer=c-014871&{OUTFIT}&{query}")).await;
        let said = format!("Parts of this link no longer work and are left out: {lost}.");
        assert_eq!(html.contains(&said), !lost.is_empty(), "{query}: {html}");
        html.has(["id=\"columns-title\""]).lacks(["That didn’t work"]);
    }
}
