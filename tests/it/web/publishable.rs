//! Publishable keys: what pages of shops may ask, from where, about whom and how often.

use std::{net::IpAddr, process::Command, time::SystemTime};

use atelier::{
    config::Limits,
    people::{ApiKey, Opens},
    platform::db::Name,
};
use atelier_core::domain::{Role, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{Demo, FRIEND, Guarded, Service};
use crate::harness::{Call, TestDatabase, apply, contract, on_sqlite, tools};

/// A site whose pages no setting names.
const SHOP: &str = "https://boutique.example";
const LOOKS: &str = "/articles/a-00134/looks";

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// A publishable key of the shop's, with its record.
pub async fn publish(service: &Service, origin: &str) -> (String, ApiKey) {
    let opens = Opens::Pages(vec![origin.parse().unwrap()]);
    let label = Name::new("Shop").unwrap();
    let (key, record) = service.state.access().issue_key(&label, &opens, None, now()).await.unwrap();
    (key.as_str().to_owned(), record)
}

fn sign(record: &ApiKey, customer: &str, seconds: i64) -> String {
    let text = format!("{customer}|{}", now().millis() / 1000 + seconds);
    let secret = &record.publishable.as_ref().unwrap().secret.0;
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap().chain_update(&text);
    format!("{text}|{}", hex::encode(mac.finalize().into_bytes()))
}

/// A request of the shop's page.
fn request(service: &Service, method: Method, path: &str, key: &str) -> Call {
    let request = service.call(method, path);
    request.header("origin", SHOP).key(key)
}

fn get(service: &Service, path: &str, key: &str) -> Call {
    request(service, Method::GET, path, key)
}

async fn json(service: &Service, path: &str, key: &str) -> Value {
    get(service, path, key).ok().await
}

fn looks_for(customer: &str) -> String {
    let customer: String = form_urlencoded::byte_serialize(customer.as_bytes()).collect();
    format!("{LOOKS}?customer={customer}")
}

/// Each route of the document, also those to come.
#[apply(on_sqlite)]
async fn a_publishable_key_opens_only_what_a_page_needs(db: TestDatabase) {
    let limits = Limits { address_rate: 10_000, ..Limits::default() };
    let service = Service::start_with(&db, limits).await;
    let (key, _) = publish(&service, SHOP).await;
    let mut opened = Vec::new();
    for (path, item) in service.json("/openapi.json").await["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let by = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            let at = path.replace("{id}", "1").replace("{name}", "demo");
            let answer = request(&service, by, &at, &key).json(&json!([])).await;
            let status = answer.status();
            let security = operation["security"].as_array().cloned().unwrap_or_default();
            if security.iter().any(|one| one.get("publishable").is_some()) {
                assert!(![401, 403].contains(&status), "{method} {path}: {status}");
                assert_eq!(answer.header("access-control-allow-origin"), SHOP, "{method} {path}");
                opened.push(format!("{method} {path}"));
            } else if !security.is_empty() {
                assert_eq!(status, 403, "{method} {path}");
                let problem: Value = answer.json();
                assert!(problem["detail"].as_str().unwrap().contains("this one is publishable"), "{problem}");
            }
        }
    }
    assert_eq!(opened, ["get /articles/{id}/looks", "get /articles/{id}/similar", "post /feedback"]);
    let browser = service.get("/studio").key(&key);
    assert!(browser.await.header("location").starts_with("/sign-in"), "it opens no page");
}

#[apply(on_sqlite)]
async fn only_pages_of_a_keys_origins_may_use_it(Demo(service): Demo) {
    let (key, _) = publish(&service, SHOP).await;
    let path = format!("/v1{LOOKS}");
    // A browser asks first, without the key.
    let ask = service.call(Method::OPTIONS, &path).header("origin", SHOP);
    let ask = ask.header("access-control-request-method", "GET");
    let asked = ask.header("access-control-request-headers", "authorization").await;
    assert_eq!((asked.status(), asked.header("access-control-allow-origin")), (204, SHOP));
    assert!(asked.header("access-control-allow-headers").contains("authorization"));
    let answer = service.get(&path).header("origin", SHOP).key(&key).await;
    assert_eq!((answer.status(), answer.header("access-control-allow-origin")), (200, SHOP));
    assert!(answer.header("access-control-expose-headers").contains("etag"));
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    let vary = answer.headers("vary");
    assert!(vary.contains(&"origin") && vary.contains(&"authorization, x-api-key"), "{vary:?}");
    // A page reads why it failed, too.
    let missing = get(&service, "/articles/none/looks", &key).await;
    assert_eq!((missing.status(), missing.header("access-control-allow-origin")), (404, SHOP));

    let own = service.url.clone();
    for origins in [
        &[][..],
        &["https://evil.example"],
        &["null"],
        &["http://boutique.example"],
        &["https://boutique.example:8443"],
        &["https://boutique.example.evil.example"],
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
        let answer = request.await;
        assert_eq!(answer.status(), 403, "{origins:?}");
        // Whoever wrote the page reads why.
        let readable = answer.header("access-control-allow-origin").to_owned();
        assert_eq!(readable, origins.first().copied().unwrap_or_default(), "{origins:?}");
        let problem: Value = answer.json();
        assert!(problem["detail"].as_str().unwrap().contains("for pages of other origins"), "{problem}");
    }
    let guessed = format!("atlp_{}", "0".repeat(64));
    let unknown = get(&service, LOOKS, &guessed).await;
    assert_eq!((unknown.status(), unknown.header("access-control-allow-origin")), (401, SHOP));
    // The answers to other keys stay the programs'.
    let secret = format!("atl_{}", "0".repeat(64));
    let unknown = get(&service, LOOKS, &secret).await;
    assert_eq!((unknown.status(), unknown.header("access-control-allow-origin")), (401, ""));
    // A path that no publishable key opens answers no page's question.
    let ask = service.call(Method::OPTIONS, "/customers").header("origin", SHOP);
    let asked = ask.header("access-control-request-method", "GET").await;
    assert_eq!(asked.header("access-control-allow-origin"), "");
}

#[apply(on_sqlite)]
async fn pages_name_customers_only_as_the_shop_signed_them(db: TestDatabase) {
    let service = Service::demo_with(&db, Limits { address_rate: 10_000, ..Limits::default() }).await;
    let (key, record) = publish(&service, SHOP).await;
    let (other_key, other) = publish(&service, SHOP).await;
    let signed = sign(&record, "c-000010", 3600);
    let own = get(&service, &looks_for(&signed), &key).await;
    assert_eq!((own.status(), own.header("cache-control")), (200, "private, no-cache"));
    let as_program = service.json(&looks_for("c-000010")).await;
    let ids = |looks: &Value| {
        let pieces =
            looks["looks"].as_array().unwrap().iter().flat_map(|look| look["articles"].as_array().unwrap());
        pieces.map(|piece| piece["article"]["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&own.json()), ids(&as_program), "the customer's own looks");

    // Whether the customer exists makes no difference to who guesses.
    for customer in ["c-000010", "c-never"] {
        let (known, forged) = (sign(&record, customer, 3600), sign(&other, customer, 3600));
        let text = known.rsplit_once('|').unwrap().0;
        for (wrong, said) in [
            (customer.to_owned(), "as the shop's backend signed them"),
            (format!("{text}|"), "as the shop's backend signed them"),
            (format!("{text}|{}", "0".repeat(64)), "as the shop's backend signed them"),
            (known.replace("c-", "C-"), "as the shop's backend signed them"),
            (forged, "as the shop's backend signed them"),
            (sign(&record, customer, -1), "has expired"),
            (sign(&record, customer, 90_000), "more than a day"),
        ] {
            for path in [looks_for(&wrong), looks_for(&wrong).replace("looks?", "similar?")] {
                let answer = get(&service, &path, &key).await;
                assert_eq!(answer.status(), 422, "{path}");
                let problem: Value = answer.json();
                assert_eq!(problem["errors"][0]["parameter"], "customer");
                assert!(problem["detail"].as_str().unwrap().contains(said), "{path}: {problem}");
            }
        }
    }
    let copied = get(&service, &looks_for(&signed), &other_key).await;
    assert_eq!(copied.status(), 422, "another key's");
    // The shop signs everyone who is signed in.
    let stranger = json(&service, &looks_for(&sign(&record, "c-never", 3600)), &key).await;
    assert_eq!(ids(&stranger), ids(&json(&service, LOOKS, &key).await));
}

#[apply(on_sqlite)]
async fn pages_see_only_public_attributes(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let secret = json!({
        "type": "blouse", "gender": "women", "name": "Blouse", "brand": "Linden", "price": 50, "margin": 0.61,
        "supplier": "Weaver", "image": "https://shop.example/b.jpg",
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
        "variants": [
            {"id": "b-s", "size": "S", "price": 49, "in_stock": true},
            {"id": "b-m", "size": "M", "options": {"Länge": "L32"}, "in_stock": false},
        ],
    });
    // A program's answer, which is kept, is not a page's.
    let program = service.json("/articles/b/looks").await;
    assert_eq!(program["looks"][0]["articles"][0]["article"]["margin"], 0.61);
    let signed: String = form_urlencoded::byte_serialize(sign(&record, "her", 60).as_bytes()).collect();
    for path in [
        "/articles/b/looks".to_owned(),
        format!("/articles/b/looks?customer={signed}"),
        "/articles/a-00134/similar?n=500".to_owned(),
        format!("/articles/a-00134/similar?customer={signed}"),
    ] {
        let answer = json(&service, &path, &key).await;
        let text = answer.to_string();
        for private in
            ["margin", "0.61", "Weaver", "4141", "cost", "zurich", "gtin", "stock\":{", "\"sizes\""]
        {
            assert!(!text.contains(private), "{path}: {private} in {text}");
        }
        assert_eq!(answer["warnings"], json!([]), "{path}");
        if let Some(items) = answer["items"].as_array() {
            assert!((1..=24).contains(&items.len()), "{path}: {}", items.len());
        } else {
            let piece = &answer["looks"][0]["articles"][0];
            assert_eq!(piece["article"], shown, "{path}");
            if path.contains("customer") {
                let variant = json!({"id": "b-s", "size": "S", "price": 49, "in_stock": true});
                assert_eq!(piece["variant"], variant);
            }
        }
    }
    get(&service, "/articles/b/looks?explain=true", &key).is(422).await;
    assert_eq!(service.json("/articles/b/looks").await, program, "the program's is kept as it was");
}

#[apply(on_sqlite)]
async fn pages_report_what_they_showed_and_added(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let looks = json(&service, LOOKS, &key).await;
    let piece = &looks["looks"][0]["articles"][1];
    let event = |id: &str, kind: &str| {
        json!({"id": id, "completion_id": looks["looks"][0]["completion_id"], "kind": kind, "slot": piece["slot"],
               "article": piece["article"]["id"]})
    };
    let report = async |body: &Value| {
        let answer = request(&service, Method::POST, "/feedback", &key).json(body).await;
        (answer.status(), answer.json())
    };
    let with = |mut event: Value, customer: &str| {
        event["customer"] = customer.into();
        event
    };
    let events = json!([
        event("1", "shown"),
        event("2", "accepted"),
        event("3", "bought"),
        event("4", "rejected"),
        with(event("5", "accepted"), "c-000010"),
        with(event("6", "accepted"), &sign(&record, "c-000010", 60)),
        with(event("7", "shown"), &sign(&record, "c-never", 60)),
    ]);
    let (status, answer) = report(&events).await;
    assert_eq!(status, 200, "{answer}");
    let taken: Vec<bool> = answer.as_array().unwrap().iter().map(|item| item["recorded"] == true).collect();
    assert_eq!(taken, [true, true, false, false, false, true, true], "{answer:#}");
    assert_eq!(answer[2]["errors"][0]["pointer"], "/kind");
    assert_eq!(answer[4]["errors"][0]["pointer"], "/customer");
    assert_eq!(report(&vec![event("8", "shown"); 51].into()).await.0, 422);
    let counts = service.json("/feedback/counts").await;
    assert_eq!(counts["items"][0]["accepted"], 2, "{counts}");
    let export = service.json("/customers/c-000010/export").await;
    // Both may have the same millisecond: then their order says nothing.
    let mut kinds: Vec<&str> =
        export["feedback"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["accepted", "shown"], "of the one that the shop signed");

    // A page cannot take the ids of the shop's programs, nor they a page's.
    for id in ["1", "order-1"] {
        report(&event(id, "shown")).await;
        let of_program = service.ask("/feedback", &event(id, "rejected")).await;
        assert_eq!(of_program, (200, json!({"id": id, "recorded": true})));
    }
    assert_eq!(report(&event("order-1", "accepted")).await.0, 409, "its own ids stay its own");
}

#[apply(on_sqlite)]
async fn pages_have_a_rate_of_events(db: TestDatabase) {
    let service = Service::demo_with(&db, Limits { address_rate: 20, ..Limits::default() }).await;
    let (key, _) = publish(&service, SHOP).await;
    let looks = json(&service, LOOKS, &key).await;
    let piece = &looks["looks"][0]["articles"][1];
    let events: Vec<Value> = (0..50)
        .map(|n| {
            json!({"id": n.to_string(), "completion_id": looks["looks"][0]["completion_id"], "kind": "shown",
                   "slot": piece["slot"], "article": piece["article"]["id"], "visitor": n.to_string()})
        })
        .collect();
    let mut refused = Value::Null;
    for _ in 0..10 {
        let answer = request(&service, Method::POST, "/feedback", &key).json(json!(events)).await;
        if answer.status() == 429 {
            assert_eq!(answer.header("access-control-allow-origin"), SHOP);
            assert_ne!(answer.header("retry-after"), "");
            refused = answer.json();
            break;
        }
    }
    assert_eq!(refused["detail"], "this address sent more than 100 events in a second");
}

/// The sizes that a page offers are those of the store that it asks about, and of the article's own stock.
#[apply(on_sqlite)]
async fn pages_offer_the_sizes_that_are_there(Demo(service): Demo) {
    let (key, _) = publish(&service, SHOP).await;
    let by_store = json!({"type": "blouse", "gender": "women", "price": 50, "variants": [
        {"id": "b-s", "size": "S", "stock": {"zurich": 0, "bern": 2}}, {"id": "b-m", "size": "M", "stock": {"zurich": 3}}]});
    service.put("/articles/b", &by_store).is(201).await;
    let by_article = json!({"type": "blouse", "gender": "women", "price": 50, "stock": {"S": 0, "M": 2},
        "variants": [{"id": "c-s", "size": "S"}, {"id": "c-m", "size": "M"}]});
    service.put("/articles/c", &by_article).is(201).await;
    for (id, query, expected) in [
        ("b", "", [true, true]),
        ("b", "?store=Zurich", [false, true]),
        ("b", "?store=bern", [true, false]),
        ("c", "", [false, true]),
    ] {
        let path = format!("/articles/{id}/looks{query}");
        let look = json!({"articles": [id, "a-00568", "a-00259"], "state": "published"});
        service.put("/looks/office", &look).await;
        let answer = json(&service, &path, &key).await;
        let looks = answer["looks"].as_array().unwrap().iter();
        let mut pieces = looks.flat_map(|look| look["articles"].as_array().unwrap());
        let own = pieces.find(|piece| piece["article"]["id"] == id);
        let own = own.unwrap_or_else(|| panic!("{path}: {answer}"));
        let variants = own["article"]["variants"].as_array().unwrap().iter();
        let stock: Vec<bool> = variants.map(|one| one["in_stock"] == true).collect();
        assert_eq!(stock, expected, "{path}");
    }
}

/// What anyone can make up displaces nothing.
#[apply(on_sqlite)]
async fn made_up_questions_are_not_kept(Demo(service): Demo) {
    let (key, _) = publish(&service, SHOP).await;
    for (path, is_kept) in [
        (LOOKS.to_owned(), true),
        (format!("{LOOKS}?total_max=300.5"), false),
        (format!("{LOOKS}?store=nowhere-17"), false),
        (LOOKS.replace("looks", "similar"), true),
        (LOOKS.replace("looks", "similar?store=nowhere-17"), false),
    ] {
        let answer = get(&service, &path, &key).await;
        assert_eq!(answer.header("cache-control").starts_with("public"), is_kept, "{path}");
    }
}

#[apply(on_sqlite)]
async fn pages_report_similar_articles(Demo(service): Demo) {
    let (key, record) = publish(&service, SHOP).await;
    let path = LOOKS.replace("looks", "similar?n=2");
    let answer = get(&service, &path, &key).await;
    let tag = answer.header("etag").to_owned();
    let similar: Value = answer.json();
    let event = |id: &str, customer: Value| {
        json!([{"id": id, "completion_id": similar["completion_id"], "kind": "accepted", "slot": 0,
               "article": similar["items"][1]["article"]["id"], "customer": customer}])
    };
    for body in [event("1", Value::Null), event("2", sign(&record, "c-000010", 60).into())] {
        let told = request(&service, Method::POST, "/feedback", &key).json(&body).await;
        assert_eq!(told.json()[0]["recorded"], true);
    }
    let counts = &service.json("/feedback/counts").await["items"][0];
    assert_eq!((&counts["method"], &counts["accepted"]), (&json!("similar"), &json!(2)));
    assert_eq!(service.get("/feedback/outfits.jsonl").await.text(), "", "it is no outfit");
    let again = request(&service, Method::GET, &path, &key).header("if-none-match", tag);
    assert_eq!(again.await.status(), 304, "the same but for its completion id");
}

/// A client at another address of this machine's, which the tests' setting trusts as a proxy.
fn proxy() -> Client {
    Client::builder().local_address("127.0.0.2".parse::<IpAddr>().unwrap()).build().unwrap()
}

#[apply(on_sqlite)]
async fn pages_have_a_rate_by_key_and_by_address(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { address_rate: 2, ..Limits::default() }).await;
    let (key, _) = publish(&service, SHOP).await;
    let url = format!("{}{LOOKS}", service.url);
    let ask = async |http: &Client, key: &str, caller: &str| {
        let request = Call(http.get(&url)).header("origin", SHOP).key(key);
        let answer = request.header("x-forwarded-for", caller).await;
        (answer.status, answer.json()["detail"].as_str().unwrap().to_owned())
    };
    let (http, proxy) = (&service.http, proxy());
    let mut spent = 0;
    while ask(http, &key, "").await.0 != 429 {
        spent += 1;
        assert!(spent < 50, "fifty requests come faster than two a second");
    }
    // Neither another key nor a claim of another address helps; nor does trying keys.
    let guessed = format!("atlp_{}", "0".repeat(64));
    let (other, _) = publish(&service, SHOP).await;
    for (key, caller) in [(&key, "203.0.113.7"), (&other, "203.0.113.8"), (&guessed, "203.0.113.9")] {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            let (status, detail) = ask(http, key, caller).await;
            assert!(
                status != 429 || detail == "this address sent more than 2 requests in a second",
                "{detail}"
            );
            statuses.push(status);
        }
        assert!(statuses.contains(&429), "{statuses:?}");
    }
    // Behind a trusted proxy each caller has a rate of their own.
    for caller in ["203.0.113.1", "203.0.113.2", "2001:db8::1"] {
        assert_eq!(ask(&proxy, &key, caller).await.0, 503, "no release is live");
    }
    let claimed = "6.6.6.6, 203.0.113.1";
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(ask(&proxy, &key, claimed).await.0);
    }
    assert!(statuses.contains(&429), "what the caller itself claims does not count: {statuses:?}");
    // Programs have no rate by address.
    for _ in 0..5 {
        assert_ne!(service.get("/routing").await.status(), 429);
    }
    let slow = Service::start_with(&db, Limits { key_rate: 1, ..Limits::default() }).await;
    let slow_url = format!("{}{LOOKS}", slow.url);
    let mut details = Vec::new();
    for caller in 0..4 {
        let request = Call(proxy.get(&slow_url)).header("origin", SHOP).key(&key);
        let answer = request.header("x-forwarded-for", format!("203.0.113.{caller}")).await;
        details.push(answer.json()["detail"].as_str().unwrap().to_owned());
    }
    assert!(
        details.contains(&"this API key sent more than 1 requests in a second".to_owned()),
        "{details:?}"
    );
}

#[apply(contract)]
async fn an_admin_makes_publishable_keys(Guarded(service): Guarded) {
    let admin = service.signed_in(Role::Admin).await;
    for (origins, said) in [
        ("", "needs the origin of at least one site"),
        (
            "https://boutique.example/",
            "expected an origin such as https://shop.example, without a slash at the end",
        ),
        ("boutique.example", "expected an origin such as"),
        ("*", "expected an origin such as"),
    ] {
        let refused =
            admin.post("/access/keys", &[("label", "Shop"), ("origins", origins), ("days", "365")]).await;
        assert_eq!(refused.status(), 422, "{origins}");
        let html = refused.text();
        assert!(html.contains(said) && html.contains("id=\"site\" value=\"Shop\""), "{html}");
        assert!(html.contains("id=\"label\" value=\"\""), "only the form that was sent has it");
    }
    let origins = "https://boutique.example https://m.boutique.example";
    let fields = [("label", "Shop"), ("origins", origins), ("days", "365"), ("form", "f")];
    let mut shown = Vec::new();
    for _ in 0..2 {
        let html = admin.post("/access/keys", &fields).await.text();
        let inside = |mark: &str| html.split_once(mark).unwrap().1.split_once("</pre>").unwrap().0.to_owned();
        shown
            .push((inside("aria-label=\"API key\">"), inside("aria-label=\"Secret that signs customers\">")));
    }
    assert_eq!(shown[0], shown[1], "a double click makes one key");
    let (key, secret) = &shown[0];
    assert!(key.starts_with("atlp_") && secret.starts_with("atls_"), "{key}");
    let list = admin.page("/access/keys").await;
    assert!(list.contains("pages of https://boutique.example, https://m.boutique.example"), "{list}");
    assert!(!list.contains(&key[5..]) && !list.contains(&secret[5..]), "neither is shown again");
    assert_eq!(get(&service, LOOKS, key).await.status(), 503, "no release is live");
    let entry = service.log(1).await.remove(0);
    assert_eq!(entry.action, "key.create");
    let details = Value::from(entry.details);
    assert_eq!(details["origins"], json!(["https://boutique.example", "https://m.boutique.example"]));
    assert!(!details.to_string().contains(&secret[5..]), "{details}");
    let id = service.store.api_keys().list().await.unwrap()[0].id.0;
    admin.post(&format!("/access/keys/{id}/revoke"), &[]).is(303).await;
    get(&service, LOOKS, key).is(401).await;
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
        let answer = get(&service, &looks_for(signed.trim()), &key).await;
        assert_eq!((answer.status(), answer.header("cache-control")), (200, "private, no-cache"));
    }
}

fn node_and_python() -> Result<(), String> {
    tools::there("python3").and_then(|()| tools::there("node"))
}
