//! `/side-by-side` by its HTML; tests/it/browser uses it in a browser.

use atelier_core::domain::Role;
use serde_json::{Value, json};

use super::{Analyst, Service};
use crate::harness::{apply, on_sqlite};

const OUTFIT: &str = "slot=a-00134&slot=&slot=a-00568&slot=a-00259&unfit=on&sold_out=on&any=on";

async fn compared(service: &Service, more: Value) -> Value {
    let mut body = json!({"customer": "c-014871", "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 10,
                          "filters": {"no_gos": false, "fit": false, "in_stock": false}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    service.ask_ok("/compare", &body).await
}

/// In the notation of files.
fn number(number: &Value) -> String {
    let written = format!("{:.6}", number.as_f64().unwrap());
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[apply(on_sqlite)]
async fn shows_what_compare_answers(Analyst(service, browser): Analyst) {
    let html = browser.page(&format!("/side-by-side?customer=c-014871&{OUTFIT}&truth=a-01243")).await;
    let answer = compared(
        &service,
        json!({"methods": ["none", "c", "np", "gs", "gsu", "match"], "true_article": "a-01243"}),
    )
    .await;
    for column in answer["columns"].as_array().unwrap() {
        let rank = format!("stylist's: rank {}, ", column["true_article"]["rank"]);
        assert!(html.contains(&rank), "{rank} in {html}");
    }
    let heads: Vec<&str> = html.split("<h3>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
    assert_eq!(heads, ["none", "c", "np", "gs", "gsu", "match"], "the paper's, and the default");
    let pair = &answer["pairs"][0];
    let overlap = format!("{:.0} %", 100.0 * pair["overlap"].as_f64().unwrap());
    let rbo = format!("{:.2}", pair["rank_biased_overlap"].as_f64().unwrap());
    let row = format!(
        "<tr><th scope=\"row\">none</th><td>c</td><td class=\"number\">{overlap}</td><td class=\"number\">{rbo}</td></tr>"
    );
    assert!(html.contains(&row), "{row} in {html}");
    let csv = browser.page(&format!("/side-by-side/similarity.csv?customer=c-014871&{OUTFIT}")).await;
    let first =
        format!("\r\nnone,c,{},{}\r\n", number(&pair["overlap"]), number(&pair["rank_biased_overlap"]));
    assert!(
        csv.starts_with("first,second,in_common,rank_biased_overlap\r\n") && csv.contains(&first),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 1 + 15);

    // The filters of Studio, among them what the form has no field for.
    let filters = "price_max=80&exclude=a-01243&own.occasion=office&if.fit=slim";
    let address = format!("/side-by-side?customer=c-014871&slot=a-00134&slot=&type=coat&{filters}");
    let html = browser.page(&address).await;
    assert!(html.contains("Also: price up to 80; 1 left out; fit: slim."), "{html}");
    let studio = "/studio?customer=c-014871&#38;slot=a-00134&#38;slot=&#38;type=1%3Acoat&#38;exclude=a-01243\
                  &#38;own.occasion=office&#38;if.fit=slim&#38;price_max=80&#38;trial=on";
    assert!(html.contains(studio), "{html}");
}

#[apply(on_sqlite)]
async fn marks_the_same_article_across_columns(Analyst(service, browser): Analyst) {
    let methods = "method=none&method=gsu";
    let answer = compared(&service, json!({"methods": ["none", "gsu"]})).await;
    let ids = |column: usize| -> Vec<String> {
        let suggestions = answer["columns"][column]["suggestions"].as_array().unwrap();
        suggestions.iter().map(|one| one["article"]["id"].as_str().unwrap().to_owned()).collect()
    };
    let (left, right) = (ids(0), ids(1));
    let both: Vec<(usize, usize)> = left
        .iter()
        .enumerate()
        .filter_map(|(from, id)| right.iter().position(|other| other == id).map(|to| (from, to)))
        .collect();
    assert!(!both.is_empty());
    let marked = &left[both[0].0];
    let html =
        browser.page(&format!("/side-by-side?customer=c-014871&{OUTFIT}&{methods}&mark={marked}")).await;
    assert_eq!(html.matches("<path class=\"link").count(), both.len());
    let (from, to) = (both[0].0 * 100 + 50, both[0].1 * 100 + 50);
    let line = format!("<path class=\"link-marked\" d=\"M0 {from}C50 {from} 50 {to} 100 {to}\"");
    assert!(html.contains(&line), "{line} in {html}");
    assert_eq!(html.matches("class=\"cell is-marked\"").count(), 2);
}

#[apply(on_sqlite)]
async fn compares_customers_under_one_method(Analyst(service, browser): Analyst) {
    let html = browser
        .page(&format!("/side-by-side?customers=c-014871,+c-019029&{OUTFIT}&method=gsu&type=coat"))
        .await;
    let heads: Vec<&str> =
        html.split("<h3><strong>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
    assert_eq!(heads, ["c-014871", "c-019029"]);
    assert!(!html.contains("none</h3>"));
    // Each has other no-gos and sizes, so other articles to choose from.
    let mut admissible = Vec::new();
    for customer in ["c-014871", "c-019029"] {
        let body = json!({"customer": customer, "outfit": ["a-00134", null], "method": "gsu"});
        let answer = service.ask_ok("/complete", &body).await;
        admissible.push(answer["blanks"][0]["admissible"].as_u64().unwrap());
    }
    admissible.sort_unstable();
    let query = "customer=c-014871&customer=c-019029&slot=a-00134&slot=&method=gsu";
    let html = browser.page(&format!("/side-by-side?{query}")).await;
    let said = format!("from {} to {} articles", admissible[0], admissible[1]);
    assert!(html.replace(',', "").contains(&said), "{said} in {html}");
}

/// The article's name is the shop's, and the file is opened in a spreadsheet of any country.
#[apply(on_sqlite)]
async fn a_download_runs_no_formula(Analyst(service, browser): Analyst) {
    let address = format!("/side-by-side.csv?customer=c-014871&{OUTFIT}&method=gsu&k=5");
    let first = browser.page(&address).await;
    let id = first.lines().nth(1).unwrap().split(',').nth(3).unwrap().to_owned();
    for (name, cell) in [
        ("=1+1", "\"'=1+1\""),
        (";=HYPERLINK(0)", "\";'=HYPERLINK(0)\""),
        ("a;b", "\"a;b\""),
        ("a\t@SUM(1)", "\"a\t'@SUM(1)\""),
        ("a\n=1+1", "\"a\n'=1+1\""),
    ] {
        service.put(&format!("/articles/{id}"), &json!({"type": "coat", "name": name})).is(200).await;
        let csv = browser.page(&address).await;
        assert!(csv.contains(&format!(",{id},{cell},coat,")), "{cell} in {csv}");
    }
}

#[apply(on_sqlite)]
async fn downloads_every_column(Analyst(service, browser): Analyst) {
    let query = format!("customer=c-014871&{OUTFIT}&truth=a-01243&method=none&method=gsu&k=5");
    let answer = browser.get(&format!("/side-by-side.csv?{query}")).await;
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8");
    assert!(answer.header("content-disposition").contains("side-by-side.csv"));
    let csv = answer.text();
    let compared =
        compared(&service, json!({"methods": ["none", "gsu"], "true_article": "a-01243", "k": 5})).await;
    for column in compared["columns"].as_array().unwrap() {
        let method = column["method"].as_str().unwrap();
        for suggestion in column["suggestions"].as_array().unwrap() {
            let article = &suggestion["article"];
            let begin = format!(
                "{method},c-014871,{},{},{},{},{}",
                suggestion["rank"],
                article["id"].as_str().unwrap(),
                article["name"].as_str().unwrap(),
                article["type"].as_str().unwrap(),
                number(&suggestion["share"]),
            );
            assert!(csv.lines().any(|line| line.starts_with(&begin)), "{begin} in {csv}");
        }
        let rank = &column["true_article"]["rank"];
        let truth = format!("{method},c-014871,{rank},a-01243,");
        assert!(
            csv.lines().any(|line| line.starts_with(&truth) && line.ends_with(",true")),
            "{truth} in {csv}"
        );
    }
}

#[apply(on_sqlite)]
async fn loads_a_stored_outfit_with_its_occasion(Analyst(service, browser): Analyst) {
    let outfits = service.json("/customers/c-014871/outfits").await;
    let outfit = &outfits["items"][0];
    let occasion = outfit["features"]["occasion"].as_str().unwrap();
    let ids: Vec<&str> =
        outfit["articles"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let start = browser.page("/side-by-side?customer=c-014871").await;
    assert!(
        start.contains("Click an article of an outfit below") && start.contains("validation, "),
        "{start}"
    );
    let slots: Vec<String> = ids[1..].iter().map(|id| format!("slot={id}")).collect();
    let query = format!("customer=c-014871&slot=&{}&truth={}&method=gsu", slots.join("&"), ids[0]);
    assert!(start.contains(&query.replace("&method=gsu", "").replace('&', "&#38;")), "{query} in {start}");
    let html = browser.page(&format!("/side-by-side?{query}&unfit=on&sold_out=on&any=on")).await;
    assert!(html.contains(&format!("Features of the outfit: {occasion}.")), "{html}");
    let mut blank: Vec<Value> = ids.iter().map(|id| json!(id)).collect();
    blank[0] = Value::Null;
    let answer = compared(
        &service,
        json!({"outfit": blank, "methods": ["gsu"], "true_article": ids[0], "features": {"occasion": occasion}}),
    )
    .await;
    let rank = format!("stylist's: rank {}, ", answer["columns"][0]["true_article"]["rank"]);
    assert!(html.contains(&rank), "{rank} in {html}");
}

#[apply(on_sqlite)]
async fn reports_missing_and_invalid_fields(Analyst(service, browser): Analyst) {
    assert!(browser.page("/side-by-side").await.contains("Enter a customer id"));
    for query in ["customer=nobody&slot=", "customer=nobody&slot=&own.occasion=office"] {
        let html = browser.page(&format!("/side-by-side?{query}")).await;
        assert!(html.contains("left out: the customer nobody."), "{query}: {html}");
        assert!(html.contains("columns-title") && !html.contains("Nothing to compare yet"), "{html}");
        assert!(browser.page(&format!("/side-by-side.csv?{query}")).await.lines().count() > 1);
    }
    let html = browser.page("/side-by-side?customer=nobody").await;
    assert!(
        html.contains("left out: the customer nobody.") && html.contains("Enter a customer id"),
        "{html}"
    );
    // A shared link may be older than the release, or marked on its way.
    for (query, lost) in [
        ("slot=&slot=", "all blanks but the first"),
        ("method=Best&k=x", "a method, the number of suggestions"),
        ("method=universal-2&method=gsu", "the method universal-2"),
        ("type=spaceship", "the type spaceship"),
        ("slot=gone", "a piece"),
        ("customer=nobody", "the customer nobody"),
        ("yclid=1&_hsenc=2&mkt_tok=3&twclid=4&no_gos=on", ""),
    ] {
        let html = browser.page(&format!("/side-by-side?customer=c-014871&{OUTFIT}&{query}")).await;
        let said = format!("Parts of this link no longer work and are left out: {lost}.");
        assert_eq!(html.contains(&said), !lost.is_empty(), "{query}: {html}");
        assert!(
            html.contains("id=\"columns-title\"") && !html.contains("That didn’t work"),
            "{query}: {html}"
        );
    }
    let stylist = service.signed_in(Role::Stylist).await;
    stylist.get("/side-by-side").is(403).await;
    stylist.get("/side-by-side.csv").is(403).await;
}
