//! What customers bought and did not return is not suggested to them.

use std::collections::BTreeSet;

use atelier::config::Limits;
use atelier_core::domain::{Customer, Role};
use serde_json::{Value, json};

use crate::{
    harness::{
        Browser, Demo, Html, Replicated, Service, TestDatabase, apply, contract, each, ids,
        json::{list, text, with},
        on_sqlite, pick, rows, until,
    },
    people::publishable::{SHOP, publish, sign, with_customer},
    studio::suggesting::{OUTFIT, suggested},
};

const ARTICLES: [Option<&str>; 4] = [Some("a-00134"), None, Some("a-00568"), Some("a-00259")];

fn event(kind: &str, customer: &str, article: &str) -> Value {
    json!({"id": format!("{kind} {customer} {article}"), "kind": kind, "customer": customer, "article": article})
}

async fn send(service: &Service, events: Vec<Value>) {
    let answer = service.ask_ok("/events", json!(events)).await;
    assert!(list(&answer).iter().all(|event| event["recorded"] == true), "{answer}");
}

/// The first articles that each surface offers a customer with a blouse.
async fn offers(
    service: &Service,
    browser: &Browser,
    (key, signed): (&str, &str),
    customer: &str,
) -> Vec<(&'static str, Vec<String>)> {
    let looks_of = |answer: &Value| -> Vec<String> {
        let looks = list(&answer["looks"]).iter().flat_map(|look| ids(&look["articles"]));
        looks.filter(|id| id != "a-00134").collect()
    };
    let asked = json!({"customer": customer, "outfit": ARTICLES, "sets": 2});
    let completion = service.complete(&asked).await;
    let batch = service.ask_ok("/complete/batch", json!({"items": [&asked]})).await;
    let sets = list(&completion["sets"]).iter().flat_map(|set| ids(&set["articles"])).collect();
    let agent = service.tool("complete", &asked).await.unwrap();
    let compared = json!({"customer": customer, "outfit": ARTICLES});
    let compared = service.ask_ok("/compare", compared).await;
    let columns = list(&compared["columns"]).iter().flat_map(|column| ids(&column["suggestions"])).collect();
    let [similar, looks] =
        ["similar", "looks"].map(|what| format!("/articles/a-00134/{what}?customer={customer}&n=5"));
    let (similar, looks) = (service.json(similar).await, service.json(looks).await);
    let page = async |what: &str| {
        let path = with_customer(&format!("/articles/a-00134/{what}"), signed);
        service.get(path).header("origin", SHOP).key(key).ok().await
    };
    let (page_similar, page_looks) = (page("similar").await, page("looks").await);
    let studio = browser.page(format!("/studio?customer={customer}&{OUTFIT}&k=5")).await;
    let pick = browser.page(format!("/studio?customer={customer}&{OUTFIT}&pick=1&search=cotton")).await;
    let csv = browser.page(format!("/side-by-side.csv?customer={customer}&{OUTFIT}&k=5")).await;
    let tiles = pick.after("id=\"pick-title\"").all_between("class=\"tile\" href=\"", "\"");
    let filled = tiles.iter().map(|tile| tile.split("slot=").nth(2).unwrap());
    let in_csv = csv.lines().skip(1).filter_map(|line| line.split(',').nth(3)).map(str::to_owned);
    vec![
        ("complete", ids(&completion["blanks"][0]["suggestions"])),
        ("batch", ids(&batch["items"][0]["blanks"][0]["suggestions"])),
        ("sets", sets),
        ("mcp", ids(&agent["blanks"][0]["suggestions"])),
        ("compare", columns),
        ("similar", ids(&similar["items"])),
        ("looks", looks_of(&looks)),
        ("similar on a page", ids(&page_similar["items"])),
        ("looks on a page", looks_of(&page_looks)),
        ("studio", suggested(&studio).into_iter().map(str::to_owned).collect()),
        ("catalogue for a slot", filled.map(|rest| rest.split('&').next().unwrap().to_owned()).collect()),
        ("side by side", in_csv.collect()),
    ]
}

#[apply(on_sqlite)]
async fn no_surface_offers_what_a_customer_owns(db: TestDatabase) {
    let service = Service::demo_with(&db, Limits { address_rate: 10_000, ..Limits::default() }).await;
    let browser = service.signed_in(Role::Admin).await;
    let (key, record) = publish(&service, SHOP).await;
    let look =
        json!({"title": "Office", "articles": ["a-00134", "a-00568", "a-00259"], "state": "published"});
    service.put("/looks/office", look).is(201).await;
    let mut left = 3;
    for customer in rows::<Customer>() {
        let customer = customer.id.as_str();
        let signed = sign(&record, customer, 3600);
        let offers = async || offers(&service, &browser, (&key, &signed), customer).await;
        let before = offers().await;
        // Some never wear blouses.
        if before.iter().any(|(_, articles)| articles.is_empty()) {
            continue;
        }
        let owned: BTreeSet<&String> = before.iter().flat_map(|(_, articles)| articles).collect();
        send(&service, owned.iter().map(|article| event("bought", customer, article)).collect()).await;
        for (surface, articles) in &offers().await {
            assert!(!articles.is_empty(), "{customer}: {surface}");
            let again: Vec<_> = articles.iter().filter(|article| owned.contains(article)).collect();
            assert!(again.is_empty(), "{customer}: {surface} offers {again:?}");
        }
        let all = json!({"customer": customer, "outfit": ARTICLES, "filters": {"no_gos": false}});
        assert!(owned.contains(&ids(&service.suggest(all).await)[0]), "unless it is asked for");
        let hidden = format!("/studio?customer={customer}&{OUTFIT}&pick=1&search=cotton");
        browser.page(hidden).await.has(["as no-gos (", "owned)", "Include no-gos and owned pieces"]);
        left -= 1;
        if left == 0 {
            return;
        }
    }
    panic!("only {} of the customers wear blouses", 3 - left);
}

#[apply(contract)]
async fn what_came_back_is_suggested_again(Demo(service): Demo) {
    let asked = json!({"customer": "c-000010", "outfit": ARTICLES});
    let ask = async || ids(&service.suggest(&asked).await);
    let score = json!({"customer": "c-000010", "outfit": ["a-00134", "a-01243", "a-00568", "a-00259"]});
    let score = async || pick(&service.ask_ok("/score", &score).await, "mean_log_probability articles");
    let (before, scored) = (ask().await, score().await);
    let others = async || assert_eq!(ask().await[..4], before[1..]);
    let first = &before[0];
    send(&service, vec![event("bought", "c-000010", first)]).await;
    others().await;
    assert_eq!(score().await, scored, "a score is of the outfit, not of what is offered");
    send(&service, vec![event("returned", "c-000010", first)]).await;
    assert_eq!(ask().await, before);

    // Feedback says it, too.
    let completion = service.complete(&asked).await;
    let about = json!({"completion_id": completion["completion_id"], "slot": 1, "article": first, "customer": "c-000010"});
    for kind in ["bought", "returned"] {
        let report = with(about.clone(), json!({"id": kind, "kind": kind}));
        assert_eq!(service.ask_ok("/feedback", report).await["recorded"], true);
        if kind == "bought" { others().await } else { assert_eq!(ask().await, before) }
    }
    let export = service.json("/customers/c-000010/export").await;
    assert_eq!(pick(&export["purchases"][0], "article bought returned"), json!([first, 2, 2]));

    // An erased customer owns nothing.
    send(&service, vec![event("bought", "c-000010", &before[1])]).await;
    assert!(!ask().await.contains(&before[1]));
    let profile = json!({"features": service.json("/customers/c-000010").await["features"]});
    service.delete("/customers/c-000010").is(204).await;
    service.put("/customers/c-000010", profile).is(201).await;
    assert_eq!(ask().await, before);
}

#[apply(contract)]
async fn an_article_is_owned_in_each_of_its_variants(Replicated(service, replica): Replicated) {
    let article = |id: &str| {
        let variants = ["m", "l"].map(|size| json!({"id": format!("{id}-{size}"), "size": size}));
        (format!("/articles/{id}"), json!({"type": "ruana", "variants": variants}))
    };
    service.put("/customers/her", json!({"features": {}})).is(201).await;
    let (path, ruana) = article("first");
    service.put(path, ruana).is(201).await;
    // One that is stored after it was bought.
    send(&service, vec![event("bought", "her", "later-m")]).await;
    let (path, ruana) = article("later");
    service.put(path, ruana).is(201).await;
    let asked = json!({"customer": "her", "outfit": ARTICLES, "method": "match", "filters": {"types": {"1": ["ruana"]}}});
    let found = async |service: &Service| ids(&service.suggest(&asked).await);
    assert_eq!(found(&service).await, ["first"]);
    replica.releases.refresh().await.unwrap();
    assert_eq!(found(&replica).await, ["first"]);
    send(&service, vec![event("bought", "her", "first-l")]).await;
    let answer = service.complete(&asked).await;
    assert_eq!(answer["blanks"][0]["admissible"], 0, "at once where it is reported");
    let [warning] = list(&answer["warnings"]) else { panic!("{answer}") };
    assert_eq!(warning["code"], "nothing-admissible");
    text(&warning["detail"]).has(["there are 2 without `no_gos` (no no-gos, nothing owned)"]);
    until!(found(&replica).await.is_empty());
    let everything = with(asked.clone(), json!({"filters": {"types": {"1": ["ruana"]}, "no_gos": false}}));
    assert_eq!(each(&service.suggest(everything).await, "article/id").as_array().unwrap().len(), 2);
}
