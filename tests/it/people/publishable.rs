//! Publishable keys: what pages of shops may ask, from where, about whom and how often.

use std::{collections::HashSet, net::IpAddr, process::Command};

use atelier::{
    completion::tickets::Suggested,
    config::Limits,
    people::{ApiKey, Opens},
};
use atelier_core::domain::Role;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Client;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::{
    harness::{
        Call, Demo, FRIEND, Guarded, Html, Service, TestDatabase, apply, contract, each, ids,
        json::{list, text, with},
        now, on_sqlite, pick, tools, until_too_fast,
    },
    outcomes::feedback::suggested,
    platform::{contract::preflight, routes::read_document},
};

/// A site whose pages no setting names.
pub const SHOP: &str = "https://boutique.example";
const LOOKS: &str = "/articles/a-00134/looks";
const SIMILAR: &str = "/articles/a-00134/similar";

/// A publishable key of the shop's, with its record.
pub async fn publish(service: &Service, origin: &str) -> (String, ApiKey) {
    service.issue_for(Opens::Pages(vec![origin.parse().unwrap()])).await
}

pub fn sign(record: &ApiKey, customer: &str, seconds: i64) -> String {
    let text = format!("{customer}|{}", now().millis() / 1000 + seconds);
    let secret = &record.publishable.as_ref().unwrap().secret.0;
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap().chain_update(&text);
    format!("{text}|{}", hex::encode(mac.finalize().into_bytes()))
}

/// A request of the shop's page.
fn as_page(call: Call, key: &str) -> Call {
    call.header("origin", SHOP).key(key)
}

fn get(service: &Service, path: &str, key: &str) -> Call {
    as_page(service.get(path), key)
}

pub fn with_customer(path: &str, customer: &str) -> String {
    let customer: String = form_urlencoded::byte_serialize(customer.as_bytes()).collect();
    format!("{path}?customer={customer}")
}

/// Each route of the document, also those to come.
#[apply(on_sqlite)]
async fn a_publishable_key_opens_only_what_a_page_needs(db: TestDatabase) {
    let limits = Limits { address_rate: 10_000, ..Limits::default() };
    let service = Service::start_with(&db, limits).await;
    let (key, _) = publish(&service, SHOP).await;
    let mut opened = Vec::new();
    for operation in read_document(&service).await.1 {
        let answer = as_page(operation.call(&service), &key).json(json!([])).await;
        let mut security = operation.about["security"].as_array().into_iter().flatten();
        if security.any(|one| one.get("publishable").is_some()) {
            assert!(![401, 403].contains(&answer.status), "{operation}: {}", answer.status);
            assert_eq!(answer.header("access-control-allow-origin"), SHOP, "{operation}");
            opened.push(operation.to_string());
        } else if !operation.scopes().is_empty() {
            text(&answer.assert_problem(403, &[])["detail"]).has(["this one is publishable"]);
        }
    }
    assert_eq!(
        opened,
        ["GET /articles/{id}/looks", "GET /articles/{id}/similar", "POST /complete", "POST /feedback"]
    );
    let page = service.get("/studio").key(&key).await;
    assert!(page.header("location").starts_with("/sign-in"), "it opens no page");
}

#[apply(on_sqlite)]
async fn only_pages_of_a_keys_origins_may_use_it(Demo(service): Demo) {
    let (key, _) = publish(&service, SHOP).await;
    let path = format!("/v1{LOOKS}");
    let readers = "access-control-allow-origin";
    // A browser asks first, without the key.
    let asked = preflight(&service, &path, SHOP).is(204).await;
    assert_eq!(asked.header(readers), SHOP);
    assert!(asked.header("access-control-allow-headers").contains("authorization"));
    // A path that no publishable key opens answers no page's question.
    assert_eq!(preflight(&service, "/customers", SHOP).await.header(readers), "");
    let answer = get(&service, &path, &key).is(200).await;
    assert_eq!(answer.header(readers), SHOP);
    assert!(answer.header("access-control-expose-headers").contains("etag"));
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    let vary = answer.headers("vary");
    assert!(vary.contains(&"origin") && vary.contains(&"authorization, x-api-key"), "{vary:?}");
    // A page reads why it failed, too. The answers to other keys stay the programs'.
    let zeros = "0".repeat(64);
    for (path, key, status, reader) in [
        ("/articles/none/looks", key.clone(), 404, SHOP),
        (LOOKS, format!("atlp_{zeros}"), 401, SHOP),
        (LOOKS, format!("atl_{zeros}"), 401, ""),
    ] {
        assert_eq!(get(&service, path, &key).is(status).await.header(readers), reader, "{path} {key}");
    }

    let own = service.url.clone();
    for origins in [
        &[][..],
        &["https://evil.example"],
        &["null"],
        &["http://boutique.example"],
        &["https://boutique.example:8443"],
        &["https://BOUTIQUE.example"],
        &[FRIEND],
        &[own.as_str()],
        &[SHOP, "https://evil.example"],
        &["https://evil.example", SHOP],
    ] {
        let mut request = service.get(&path).key(&key);
        for origin in origins {
            request = request.header("origin", *origin);
        }
        let problem = request.is(403).await;
        // Whoever wrote the page reads why.
        assert_eq!(problem.header(readers), origins.first().copied().unwrap_or_default(), "{origins:?}");
        text(&problem.json()["detail"]).has(["for pages of other origins"]);
    }
}

#[apply(on_sqlite)]
async fn pages_name_customers_only_as_the_shop_signed_them(db: TestDatabase) {
    let service = Service::demo_with(&db, Limits { address_rate: 10_000, ..Limits::default() }).await;
    let (key, record) = publish(&service, SHOP).await;
    let (other_key, other) = publish(&service, SHOP).await;
    let looks = |customer: &str, key: &str| get(&service, &with_customer(LOOKS, customer), key);
    let signed = sign(&record, "c-000010", 3600);
    let own = looks(&signed, &key).is(200).await;
    assert_eq!(own.header("cache-control"), "private, no-cache");
    let as_program = service.json(with_customer(LOOKS, "c-000010")).await;
    let pieces = |answer: &Value| -> Vec<Vec<String>> {
        list(&answer["looks"]).iter().map(|look| ids(&look["articles"])).collect()
    };
    assert_eq!(pieces(&own.json()), pieces(&as_program), "the customer's own looks");

    // Whether the customer exists makes no difference to who guesses.
    for customer in ["c-000010", "c-never"] {
        for (wrong, said) in [
            (customer.to_owned(), "as the shop's backend signed them"),
            (sign(&other, customer, 3600), "as the shop's backend signed them"),
            (sign(&record, customer, -1), "has expired"),
            (sign(&record, customer, 90_000), "more than a day"),
        ] {
            for path in [LOOKS, SIMILAR] {
                let problem = get(&service, &with_customer(path, &wrong), &key).is(422).await.json();
                assert_eq!(problem["errors"][0]["parameter"], "customer", "{path} {wrong}");
                assert!(text(&problem["detail"]).contains(said), "{path} {wrong}: {problem}");
            }
        }
    }
    // Another key's.
    looks(&signed, &other_key).is(422).await;
    // The shop signs everyone who is signed in.
    let stranger = looks(&sign(&record, "c-never", 3600), &key).ok().await;
    assert_eq!(pieces(&stranger), pieces(&get(&service, LOOKS, &key).ok().await));
}

#[apply(on_sqlite)]
async fn pages_see_only_public_attributes(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let secret = json!({
        "type": "blouse", "gender": "women", "colour": "navy", "name": "Blouse", "brand": "Linden", "price": 50,
        "margin": 0.61, "supplier": "Weaver", "image": "https://shop.example/b.jpg",
        "variants": [
            {"id": "b-s", "size": "S", "price": 49, "stock": 4141, "cost": 17.5},
            {"id": "b-m", "size": "M", "stock": {"zurich": 0}, "options": {"Länge": "L32"}, "gtin": "4006381333931"},
        ],
    });
    service.put("/articles/b", &secret).is(201).await;
    let look = json!({"title": "Office", "articles": ["b", "a-00568", "a-00259"], "state": "published"});
    service.put("/looks/office", &look).is(201).await;
    let hide = json!({"effect": "boost", "articles": {"types": ["blouse"]}, "factor": 3, "state": "active"});
    service.put("/rules/margin-push", &hide).is(201).await;
    let customer = json!({"features": {"gender": "female", "top_size": "S"}});
    service.put("/customers/her", &customer).is(201).await;
    let shown = json!({
        "id": "b", "type": "blouse", "name": "Blouse", "brand": "Linden", "price": 50, "image": "https://shop.example/b.jpg",
        "drawing": "/pictures/blouse.svg?colour=navy&gender=women",
        "variants": [
            {"id": "b-s", "size": "S", "price": 49, "in_stock": true},
            {"id": "b-m", "size": "M", "options": {"Länge": "L32"}, "price": 50, "in_stock": false},
        ],
    });
    // A program's answer, which is kept, is not a page's.
    let program = service.json("/articles/b/looks").await;
    assert_eq!(program["looks"][0]["articles"][0]["article"]["margin"], 0.61);
    let signed = sign(&record, "her", 60);
    for path in [
        "/articles/b/looks".to_owned(),
        with_customer("/articles/b/looks", &signed),
        format!("{SIMILAR}?n=500"),
        with_customer(SIMILAR, &signed),
    ] {
        let answer = get(&service, &path, &key).ok().await;
        let private = [
            "margin",
            "0.61",
            "Weaver",
            "4141",
            "cost",
            "zurich",
            "gtin",
            "stock\":{",
            "\"sizes\"",
            "\"colour\"",
        ];
        answer.to_string().lacks(private);
        assert_eq!(answer["warnings"], json!([]), "{path}");
        if let Some(items) = answer["items"].as_array() {
            assert!((1..=24).contains(&items.len()), "{path}: {}", items.len());
        } else {
            let piece = &answer["looks"][0]["articles"][0];
            assert_eq!(piece["article"], shown, "{path}");
            if path.contains("customer") {
                assert_eq!(piece["variant"], shown["variants"][0]);
            }
        }
    }
    get(&service, "/articles/b/looks?explain=true", &key).is(422).await;
    assert_eq!(service.json("/articles/b/looks").await, program, "the program's is kept as it was");
}

/// A basket: one article of each type that it lacks, of what anyone may know, and nothing else that `/complete` takes.
#[apply(contract)]
async fn a_page_completes_a_basket(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let ask = |body: &Value| as_page(service.send("/complete", body), &key);
    let outfit = ["a-00134", "a-00568"];
    let basket = json!({"outfit": outfit, "k": 8, "one_per_type": true});
    let rule = json!({"effect": "pin", "articles": {"types": ["coat"]}, "rank": 1, "state": "active"});
    service.put("/rules/coats", &rule).is(201).await;
    let answer = ask(&basket).ok().await;
    assert_eq!(pick(&answer, "arm warnings personas"), json!([null, [], null]));
    let [blank] = list(&answer["blanks"]) else { panic!("{answer}") };
    let mut types = Vec::new();
    for id in outfit {
        types.push(service.json(format!("/articles/{id}")).await["type"].clone());
    }
    for suggestion in list(&blank["suggestions"]) {
        assert_eq!(pick(suggestion, "article/colour rules"), json!([null, null]), "{suggestion}");
        assert!(!types.contains(&suggestion["article"]["type"]), "{types:?}: {suggestion}");
        types.push(suggestion["article"]["type"].clone());
    }
    assert_eq!((types.len(), &types[2]), (outfit.len() + 8, &json!("coat")), "the rule's first");
    // A program may ask the same.
    let program = service.ask_ok("/complete", &basket).await;
    assert_eq!(ids(&program["blanks"][0]["suggestions"]), ids(&blank["suggestions"]));

    let accepted = json!([{"id": "1", "completion_id": answer["completion_id"], "kind": "accepted", "slot": blank["slot"],
        "article": blank["suggestions"][1]["article"]["id"]}]);
    let told = as_page(service.send("/feedback", accepted), &key).ok().await;
    assert_eq!(told[0]["recorded"], true, "{told}");

    let signed = ask(&with(basket.clone(), json!({"customer": sign(&record, "c-000010", 60)}))).ok().await;
    let own = service.ask_ok("/complete", with(basket.clone(), json!({"customer": "c-000010"}))).await;
    assert_eq!(ids(&signed["blanks"][0]["suggestions"]), ids(&own["blanks"][0]["suggestions"]));
    // A set fills all three blanks, each with a type that the basket lacks.
    let whole = json!({"outfit": [outfit[0], outfit[1], null, null, null], "k": 1, "sets": 1});
    let whole = ask(&whole).ok().await;
    let set: HashSet<&str> =
        list(&whole["sets"][0]["articles"]).iter().map(|one| text(&one["article"]["type"])).collect();
    assert!(set.len() == 3 && !types[..2].iter().any(|kind| set.contains(text(kind))), "{set:?}");
    // More than an outfit holds, and what the shop's catalogue does not have.
    let all = service.json("/articles?n=12").await;
    let long: Vec<Value> = [json!("gift-card")]
        .into_iter()
        .chain(list(&all["items"]).iter().map(|one| one["id"].clone()))
        .collect();
    ask(&json!({"outfit": long, "one_per_type": true, "skip_unknown": true})).ok().await;
    ask(&json!({"outfit": ["a-00134"], "filters": {"store": "nowhere"}})).ok().await;
    for (more, pointer) in [
        (json!({"k": 9}), "/k"),
        (json!({"customer": "c-000010"}), "/customer"),
        (json!({"features": {}}), "/features"),
        (json!({"method": "gsu"}), "/method"),
        (json!({"filters": {"no_gos": false}}), "/filters/no_gos"),
        (json!({"live": {}}), "/live"),
        (json!({"rules": true}), "/rules"),
        (json!({"explain": true}), "/explain"),
        (json!({"probability": true}), "/probability"),
        (json!({"fields": ["margin"]}), "/fields"),
        (json!({"sets": 2}), "/sets"),
    ] {
        ask(&with(basket.clone(), more)).await.assert_problem(422, &[pointer]);
    }
    let batch = as_page(service.send("/complete/batch", json!({"items": [basket]})), &key);
    batch.is(403).await;
}

/// What a page says about a piece that it showed, without an id and a kind.
async fn shown_piece(service: &Service, key: &str) -> Value {
    let looks = get(service, LOOKS, key).ok().await;
    let (look, piece) = (&looks["looks"][0], &looks["looks"][0]["articles"][1]);
    json!({"completion_id": look["completion_id"], "slot": piece["slot"], "article": piece["article"]["id"]})
}

#[apply(on_sqlite)]
async fn pages_report_what_they_showed_and_added(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let shown = shown_piece(&service, &key).await;
    let event = |id: &str, kind: &str| with(shown.clone(), json!({"id": id, "kind": kind}));
    let event_of = |id: &str, kind, customer: &str| with(event(id, kind), json!({"customer": customer}));
    let report = |body: Value| as_page(service.send("/feedback", body), &key);
    let events = json!([
        event("1", "shown"),
        event("2", "accepted"),
        event("3", "bought"),
        event("4", "rejected"),
        event_of("5", "accepted", "c-000010"),
        event_of("6", "accepted", &sign(&record, "c-000010", 60)),
        event_of("7", "shown", &sign(&record, "c-never", 60)),
    ]);
    let answer = report(events).ok().await;
    let taken: Vec<bool> = list(&answer).iter().map(|item| item["recorded"] == true).collect();
    assert_eq!(taken, [true, true, false, false, false, true, false], "{answer:#}");
    assert_eq!(pick(&answer, "2/errors/0/pointer 4/errors/0/pointer"), json!(["/kind", "/customer"]));
    report(vec![event("8", "shown"); 51].into()).is(422).await;
    let counts = service.json("/feedback/counts").await;
    let by_source = ["source", "shown", "accepted"].map(|name| each(&counts["items"], name));
    assert_eq!(by_source, [json!(["shop", "pages"]), json!([1, 1]), json!([1, 1])], "{counts}");
    let export = service.json("/customers/c-000010/export").await;
    // Both may have the same millisecond: then their order says nothing.
    let mut kinds: Vec<&str> = list(&export["feedback"]).iter().map(|event| text(&event["kind"])).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["accepted", "shown"], "of the one that the shop signed");

    // A page cannot take the ids of the shop's programs, nor they a page's.
    for id in ["1", "order-1"] {
        report(event(id, "shown")).await;
        let of_program = service.ask("/feedback", &event(id, "rejected")).await;
        assert_eq!(of_program, (200, json!({"id": id, "recorded": true})));
    }
    // Its own ids stay its own.
    report(event("order-1", "accepted")).is(409).await;
}

/// Whatever ids its events have, a page without a customer accepts a suggestion once for each visitor that it names, and that is a
/// figure of its own.
#[apply(contract)]
async fn a_page_accepts_a_suggestion_once_for_a_visitor(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let shown = shown_piece(&service, &key).await;
    let accepted =
        |id: &str, more: Value| with(shown.clone(), with(json!({"id": id, "kind": "accepted"}), more));
    let report = async |events: Vec<Value>| {
        let answer = as_page(service.send("/feedback", json!(events)), &key).ok().await;
        list(&answer).iter().filter(|one| one["recorded"] == true).count()
    };
    let same = |more: &Value| (0..20).map(|n| accepted(&format!("{n} {more}"), more.clone())).collect();
    assert_eq!(report(same(&json!({}))).await, 1, "twenty ids");
    assert_eq!(report(same(&json!({"visitor": "v"}))).await, 1);
    assert_eq!(report(same(&json!({"customer": sign(&record, "c-000010", 60)}))).await, 1);
    // What the shop's program says of a visitor is apart from what a page says, and the latter cannot come first.
    let by_program = service.ask_ok("/feedback", accepted("order", json!({"visitor": "v"}))).await;
    assert_eq!(by_program["recorded"], true);
    let figures = async |query: &str| {
        let found = service.json(format!("/feedback/acceptance{query}")).await;
        (
            each(&found["items"], "value"),
            each(&found["items"], "accepted"),
            found["total"]["accepted"].clone(),
        )
    };
    let by_source = figures("?by=source").await;
    assert_eq!(by_source, (json!(["pages without a customer", "the shop"]), json!([2, 2]), json!(4)));
    assert_eq!(figures("?by=method&source=shop").await.2, 2);
    assert_eq!(figures("?by=customer.gender&source=pages").await.2, 2);
    service.get("/feedback/acceptance?source=visitors").is(422).await;
    let page =
        service.signed_in(Role::Analyst).await.page("/operations/acceptance?by=source&source=pages").await;
    page.has(["pages without a customer", "Reported by"]);
}

/// A page that leaves out the customer changes nothing in the experiment that the customer is in.
#[apply(on_sqlite)]
async fn pages_without_a_customer_decide_no_experiment(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let arm = Suggested { release: "demo".into(), ..suggested("gsu", Some("autumn/new")) };
    let arms = json!({"arms": [{"name": "today", "method": "match", "share": 1}, {"name": "new", "method": "gsu", "share": 1}],
        "state": "running"});
    service.put("/experiments/autumn", arms).is(201).await;
    let ticket = service.state.tickets().issue(arm);
    let event = |id: &str, kind: &str, customer: Value| json!({"id": id, "completion_id": ticket, "kind": kind, "slot": 1, "article": "a-7", "customer": customer});
    service.ask_ok("/feedback", event("1", "shown", json!("c-000010"))).await;
    let report = async |event: Value| as_page(service.send("/feedback", event), &key).ok().await;
    let counts = async || {
        pick(&service.json("/experiments/autumn/figures").await["arms"][1], "completions shown accepted")
    };
    for id in ["2", "3"] {
        report(event(id, "accepted", Value::Null)).await;
    }
    assert_eq!(counts().await, json!([1, 1, 0]));
    let signed = sign(&record, "c-000010", 60);
    assert_eq!(
        report(event("4", "accepted", json!(signed))).await["recorded"],
        true,
        "it was not there before"
    );
    assert_eq!(counts().await, json!([1, 1, 1]));
}

#[apply(on_sqlite)]
async fn pages_have_a_rate_of_events(db: TestDatabase) {
    let service = Service::demo_with(&db, Limits { address_rate: 20, ..Limits::default() }).await;
    let (key, _) = publish(&service, SHOP).await;
    let shown = with(shown_piece(&service, &key).await, json!({"kind": "shown"}));
    let visit = |n: u32| with(shown.clone(), json!({"id": n.to_string(), "visitor": n.to_string()}));
    let events: Value = (0..50).map(visit).collect();
    let answer = until_too_fast(|| as_page(service.send("/feedback", &events), &key)).await;
    let problem = answer.assert_problem(429, &[]);
    assert_eq!(answer.header("access-control-allow-origin"), SHOP);
    assert_ne!(answer.header("retry-after"), "");
    assert_eq!(problem["detail"], "this address sent more than 100 events in a second");
}

/// The sizes that a page offers are those of the store that it asks about, and of the article's own stock.
#[apply(on_sqlite)]
async fn pages_offer_the_sizes_that_are_there(Demo(service): Demo) {
    let (key, _) = publish(&service, SHOP).await;
    let by_store = json!({"type": "blouse", "gender": "women", "price": 50, "variants": [
        {"id": "b-s", "size": "S", "stock": {"zurich": 0, "bern": 2}}, {"id": "b-m", "size": "M", "stock": {"zurich": 3}}]});
    service.put("/articles/b", by_store).is(201).await;
    let by_article = json!({"type": "blouse", "gender": "women", "price": 50, "stock": {"S": 0, "M": 2},
        "variants": [{"id": "c-s", "size": "S"}, {"id": "c-m", "size": "M"}]});
    service.put("/articles/c", by_article).is(201).await;
    for (id, query, expected) in [
        ("b", "", [true, true]),
        ("b", "?store=Zurich", [false, true]),
        ("b", "?store=bern", [true, false]),
        ("c", "", [false, true]),
    ] {
        let path = format!("/articles/{id}/looks{query}");
        let look = json!({"articles": [id, "a-00568", "a-00259"], "state": "published"});
        service.put("/looks/office", look).await;
        let answer = get(&service, &path, &key).ok().await;
        let mut pieces = list(&answer["looks"]).iter().flat_map(|look| list(&look["articles"]));
        let own = pieces.find(|piece| piece["article"]["id"] == id);
        let own = own.unwrap_or_else(|| panic!("{path}: {answer}"));
        assert_eq!(each(&own["article"]["variants"], "in_stock"), json!(expected), "{path}");
    }
}

/// What anyone can make up displaces nothing.
#[apply(on_sqlite)]
async fn made_up_questions_are_not_kept(Demo(service): Demo) {
    let (key, _) = publish(&service, SHOP).await;
    for (path, query, is_kept) in [
        (LOOKS, "", true),
        (LOOKS, "?total_max=300.5", false),
        (LOOKS, "?store=nowhere-17", false),
        (SIMILAR, "", true),
        (SIMILAR, "?store=nowhere-17", false),
    ] {
        let answer = get(&service, &format!("{path}{query}"), &key).await;
        assert_eq!(answer.header("cache-control").starts_with("public"), is_kept, "{path}{query}");
    }
}

#[apply(on_sqlite)]
async fn pages_report_similar_articles(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let similar = get(&service, &format!("{SIMILAR}?n=2"), &key).ok().await;
    let event = |id: &str, customer: Value| {
        json!([{"id": id, "completion_id": similar["completion_id"], "kind": "accepted", "slot": 0,
               "article": similar["items"][1]["article"]["id"], "customer": customer}])
    };
    for body in [event("1", Value::Null), event("2", sign(&record, "c-000010", 60).into())] {
        let told = as_page(service.send("/feedback", body), &key).ok().await;
        assert_eq!(told[0]["recorded"], true);
    }
    let counts = &service.json("/feedback/counts").await["items"];
    assert_eq!(
        [each(counts, "method"), each(counts, "accepted")],
        [json!(["similar", "similar"]), json!([1, 1])]
    );
    assert_eq!(service.get("/feedback/outfits.jsonl").await.text(), "", "it is no outfit");
}

/// A client at another address of this machine's, which the tests' setting trusts as a proxy.
fn proxy() -> Client {
    Client::builder().local_address("127.0.0.2".parse::<IpAddr>().unwrap()).build().unwrap()
}

#[apply(on_sqlite)]
async fn pages_have_a_rate_by_key_and_by_address(db: TestDatabase) {
    fn ask(http: &Client, service: &Service, key: &str, caller: &str) -> Call {
        let call = as_page(Call(http.get(format!("{}{LOOKS}", service.url))), key);
        call.header("x-forwarded-for", caller)
    }
    let by_address = "this address sent more than 2 requests in a second";
    let by_key = "this API key sent more than 1 requests in a second";
    let service = Service::start_with(&db, Limits { address_rate: 2, ..Limits::default() }).await;
    let (key, _) = publish(&service, SHOP).await;
    let (http, proxy) = (&service.http, proxy());
    until_too_fast(|| ask(http, &service, &key, "")).await;
    // Neither another key nor a claim of another address helps; nor does trying keys.
    let guessed = format!("atlp_{}", "0".repeat(64));
    let (other, _) = publish(&service, SHOP).await;
    for (key, caller) in [(&key, "203.0.113.7"), (&other, "203.0.113.8"), (&guessed, "203.0.113.9")] {
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(ask(http, &service, key, caller).await.text());
        }
        assert!(answers.iter().any(|answer| answer.contains(by_address)), "{key}: {answers:?}");
    }
    // Behind a trusted proxy each caller has a rate of their own. No release is live.
    for caller in ["203.0.113.1", "203.0.113.2", "2001:db8::1"] {
        ask(&proxy, &service, &key, caller).is(503).await;
    }
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(ask(&proxy, &service, &key, "6.6.6.6, 203.0.113.1").await.status);
    }
    assert!(statuses.contains(&429), "what the caller itself claims does not count: {statuses:?}");
    // Programs have no rate by address.
    for _ in 0..5 {
        assert_ne!(service.get("/routing").await.status, 429);
    }
    let slow = Service::start_with(&db, Limits { key_rate: 1, ..Limits::default() }).await;
    let mut answers = Vec::new();
    for caller in 0..4 {
        answers.push(ask(&proxy, &slow, &key, &format!("203.0.113.{caller}")).await.text());
    }
    assert!(answers.iter().any(|answer| answer.contains(by_key)), "{answers:?}");
}

#[apply(contract)]
async fn an_admin_makes_publishable_keys(Guarded(service): Guarded) {
    let admin = service.signed_in(Role::Admin).await;
    let origins = "https://boutique.example https://m.boutique.example";
    let fields = [("label", "Shop"), ("origins", origins), ("days", "365")];
    let html = admin.post("/access/keys", &fields).await.text();
    let [key, secret] = ["API key", "Secret that signs customers"]
        .map(|label| html.between(&format!("aria-label=\"{label}\">"), "</pre>"));
    assert!(key.starts_with("atlp_") && secret.starts_with("atls_"), "{key}");
    // Neither is shown again.
    let list = admin.page("/access/keys").await;
    list.has(["pages of https://boutique.example, https://m.boutique.example"]);
    list.lacks([&key[5..], &secret[5..]]);
    // No release is live.
    get(&service, LOOKS, &key).is(503).await;
    let entry = service.log(1).await.remove(0);
    assert_eq!(entry.action, "key.create");
    let details = Value::from(entry.details);
    assert_eq!(details["origins"], json!(["https://boutique.example", "https://m.boutique.example"]));
    assert!(!details.to_string().contains(&secret[5..]), "{details}");
    let id = service.store.api_keys().list().await.unwrap()[0].id.0;
    admin.post(format!("/access/keys/{id}/revoke"), &[]).is(303).await;
    get(&service, LOOKS, &key).is(401).await;
}

/// The documentation's examples sign what the service reads.
#[apply(on_sqlite)]
#[needs(node_and_python)]
async fn the_examples_sign_customers(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let secret = &record.publishable.as_ref().unwrap().secret.0;
    let page = include_str!("../../../docs/widget.md");
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples");
    for (file, start) in [("signed_customer.py", "import hashlib"), ("signed_customer.mjs", "import {")] {
        let code = std::fs::read_to_string(format!("{examples}/{file}")).unwrap();
        assert!(page.contains(&code[code.find(start).unwrap()..]), "docs/widget.md shows {file} as it is");
    }
    let mut python = Command::new("python3");
    python.args(["-B", "-c", "import sys, signed_customer as s; print(s.signed_customer(*sys.argv[1:]))"]);
    let mut node = Command::new("node");
    let script =
        "import('./signed_customer.mjs').then(s => console.log(s.signedCustomer(...process.argv.slice(1))))";
    node.args(["-e", script]);
    for mut command in [python, node] {
        let output = command.args(["c-000010", secret]).current_dir(examples).output().unwrap();
        let signed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer = get(&service, &with_customer(LOOKS, signed.trim()), &key).is(200).await;
        assert_eq!(answer.header("cache-control"), "private, no-cache", "{signed}");
    }
}

fn node_and_python() -> Result<(), String> {
    tools::there("python3").and_then(|()| tools::there("node"))
}
