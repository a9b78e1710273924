//! Stored sources: feeds that the service fetches by itself.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use atelier_core::domain::{Role, Timestamp};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header::LOCATION},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{
    Html, Service, TestDatabase, apply, assert_page, contract, json::text, now, on_sqlite, pick, until,
};

/// A shop's server, and what it was asked.
#[derive(Clone, Default)]
struct Shop(Arc<Mutex<Answers>>);

#[derive(Default)]
struct Answers {
    file: String,
    etag: Option<String>,
    status: u16,
    asked: Vec<(Uri, HeaderMap)>,
}

impl Shop {
    /// Gives its address, too.
    async fn open(file: &str, etag: Option<&str>) -> (Self, String) {
        let shop = Self::default();
        shop.set(file, etag);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let routes = Router::new().fallback(answer).with_state(shop.clone());
        tokio::spawn(async { axum::serve(listener, routes).await });
        (shop, address)
    }

    fn set(&self, file: &str, etag: Option<&str>) {
        let mut answers = self.0.lock().unwrap();
        (answers.file, answers.etag, answers.status) = (file.to_owned(), etag.map(str::to_owned), 200);
    }

    fn fail(&self, status: u16) {
        self.0.lock().unwrap().status = status;
    }

    fn asked(&self) -> Vec<(Uri, HeaderMap)> {
        self.0.lock().unwrap().asked.clone()
    }
}

async fn answer(State(shop): State<Shop>, uri: Uri, headers: HeaderMap) -> Response {
    let mut answers = shop.0.lock().unwrap();
    answers.asked.push((uri.clone(), headers.clone()));
    let status = StatusCode::from_u16(answers.status).unwrap();
    if let Some(away) = uri.path().strip_prefix("/to/") {
        return (StatusCode::FOUND, [(LOCATION, away.to_owned())]).into_response();
    }
    match &answers.etag {
        Some(etag) if headers.get("if-none-match").is_some_and(|has| has == etag) => {
            StatusCode::NOT_MODIFIED.into_response()
        }
        Some(etag) => (status, [("etag", etag.clone())], answers.file.clone()).into_response(),
        None => (status, answers.file.clone()).into_response(),
    }
}

impl Service {
    async fn store_source(&self, body: &Value) -> Value {
        let answer = self.put("/feeds/shop", body).await;
        assert!(answer.is_ok(), "{}", answer.text());
        answer.json()
    }

    /// Fetches the source, and gives the import and the source once it has ended.
    async fn fetch_source(&self) -> (Value, Value) {
        let begun = self.post("/feeds/shop/fetch", "application/json", "").is(202).await;
        assert_eq!(begun.json()["feed"], "shop");
        self.source_rests().await;
        (self.json(begun.header("location")).await, self.json("/feeds/shop").await)
    }

    async fn source_rests(&self) {
        until!(self.json("/feeds/shop").await["state"]["is_fetching"] == false);
    }
}

const HATS: &str = "id,type,price\na,hat,10\nb,coat,20\n";

#[apply(contract)]
async fn a_source_is_fetched_and_the_second_time_changes_nothing(service: Service) {
    for etag in [Some("\"v1\""), None] {
        let (shop, address) = Shop::open(HATS, etag).await;
        let url = format!("http://{address}/f.csv");
        service.store_source(&json!({"url": url, "options": {"mode": "mirror", "mirror_limit": 100}})).await;
        let (import, source) = service.fetch_source().await;
        assert_eq!(pick(&import, "state options/mode"), json!(["done", "mirror"]), "{import:#}");
        assert_eq!(pick(&source, "state/failures state/last_import"), json!([0, import["id"]]));
        let stored = async || (service.json("/articles").await, service.store.revisions("x").await.unwrap());
        let before = stored().await;
        let (again, source) = service.fetch_source().await;
        assert_eq!(again["state"], "unchanged", "{again:#}");
        assert_eq!(source["state"]["failure"], Value::Null);
        assert_eq!(stored().await, before);
        let again = service.post("/feeds/shop/fetch?again=true", "application/json", "").is(202).await;
        service.source_rests().await;
        let again = service.json(again.header("location")).await;
        assert_eq!(pick(&again, "state result/unchanged"), json!(["done", 2]), "{again:#}");
        let tags = shop.asked().into_iter().map(|(_, mut headers)| headers.remove("if-none-match"));
        assert!(tags.eq([None, etag.map(HeaderValue::from_static), None]));
        shop.set("id,type,price\na,hat,12\n", Some("\"v2\""));
        let (import, _) = service.fetch_source().await;
        let counts = pick(&import, "result/changed result/retired result/bad");
        assert_eq!(counts, json!([1, 1, 0]), "{import:#}");
        // Stored anew, it is read anew.
        service.store_source(&json!({"url": url})).await;
        let (import, _) = service.fetch_source().await;
        assert_eq!(pick(&import, "state result/unchanged"), json!(["done", 1]), "{import:#}");
    }
    assert_eq!(service.json("/feeds").await["feeds"].as_array().unwrap().len(), 1);
    service.delete("/feeds/shop").is(204).await;
    service.delete("/feeds/shop").is(404).await;
    service.post("/feeds/shop/fetch", "application/json", "").is(404).await;
    let actions = service.actions(100).await;
    assert_eq!(actions.iter().filter(|action| *action == "feed.put shop").count(), 4);
    assert_eq!(actions[0], "feed.delete shop");
}

#[apply(contract)]
async fn a_source_that_lost_a_column_fails_until_it_is_forced(service: Service) {
    let (shop, address) = Shop::open(HATS, None).await;
    service.store_source(&json!({"url": format!("http://{address}/f.csv")})).await;
    service.fetch_source().await;
    shop.set("id,type\na,hat\nb,coat\n", None);
    let (import, source) = service.fetch_source().await;
    source["state"]["failure"].as_str().unwrap().has(["price from 2 of the 2", "use force=true"]);
    shop.set("id,type,price\na,hat,10\n,coat,1\n", None);
    let (_, bad) = service.fetch_source().await;
    let said = ["1 of 2 rows are bad", "the first is line 3: field \"id\" is missing"];
    text(&bad["state"]["failure"]).has(said);
    shop.set("id,type\na,hat\nb,coat\n", None);
    assert_eq!((&import["state"], &source["state"]["failures"]), (&json!("failed"), &json!(1)));
    assert_eq!(service.json("/articles/a").await["price"], 10);
    let forced = service.post("/feeds/shop/fetch?force=true", "application/json", "").is(202).await;
    service.source_rests().await;
    let import = service.json(forced.header("location")).await;
    assert_eq!(pick(&import, "state result/changed options/force"), json!(["done", 2, true]), "{import:#}");
    assert_eq!(pick(&service.json("/feeds/shop").await, "options/force state/failures"), json!([false, 0]));
}

#[apply(on_sqlite)]
async fn secrets_go_to_their_server_and_nowhere_else(service: Service) {
    let ((shop, address), (other, elsewhere)) = (Shop::open(HATS, None).await, Shop::open(HATS, None).await);
    let here = |path: &str| format!("http://{address}/{path}");
    let url = format!("http://me:hush@{address}/f.csv?token=hush&hush");
    let stored = service.store_source(&json!({"url": url})).await;
    let mut shown = stored.to_string();
    assert_eq!(pick(&stored, "url has_credentials"), json!([here("f.csv?token=…&…"), true]));
    let basic = Some("Basic bWU6aHVzaA==");
    let sent = |shop: &Shop| {
        let (uri, headers) = shop.asked().pop().unwrap();
        (uri.to_string(), headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()))
    };
    service.fetch_source().await;
    assert_eq!(sent(&shop), ("/f.csv?token=hush&hush".to_owned(), basic.map(str::to_owned)));
    // What is shown stands for what is stored.
    service.store_source(&json!({"url": stored["url"], "schedule": {"every": "1d"}})).await;
    service.fetch_source().await;
    assert_eq!(sent(&shop), ("/f.csv?token=hush&hush".to_owned(), basic.map(str::to_owned)));
    // An answer can be sent back, and a part of it changed.
    let answer = service.json("/feeds/shop").await;
    assert_eq!(service.store_source(&answer).await["url"], stored["url"]);
    let patched = service.patch("/feeds/shop", json!({"schedule": null})).is(200).await.json();
    assert_eq!(pick(&patched, "schedule has_credentials"), json!([null, true]), "{patched:#}");
    service.fetch_source().await;
    assert_eq!(sent(&shop), ("/f.csv?token=hush&hush".to_owned(), basic.map(str::to_owned)));
    shown += &patched.to_string();
    // A redirect to another server, then to one that is none.
    service.store_source(&json!({"url": here(&format!("to/http://{elsewhere}/f.csv"))})).await;
    let (import, _) = service.fetch_source().await;
    assert_eq!(import["state"], "done", "{import:#}");
    assert_eq!((sent(&shop).1.as_deref(), sent(&other).1), (basic, None));
    service.store_source(&json!({"url": here("to/http://169.254.169.254/latest")})).await;
    let (import, source) = service.fetch_source().await;
    import["result"]["failure"].as_str().unwrap().has(["a cloud's metadata"]);
    assert_eq!(source["state"]["failure"], import["result"]["failure"]);
    shop.set("hush", None);
    service.store_source(&json!({"url": here("f.csv?token=hush")})).await;
    let (import, _) = service.fetch_source().await;
    // The file's own header is named.
    shown += &import["result"]["failure"].as_str().unwrap().replace("hush", "");
    shop.fail(500);
    shown += &service.fetch_source().await.0.to_string();
    // Another server gets no stored credentials, and false removes them.
    let bearer = json!({"url": here("f.csv"), "authorization": "Bearer hush"});
    let none = json!({"url": here("f.csv"), "has_credentials": false});
    let moved = json!({"url": format!("http://{elsewhere}/f.csv")});
    for (source, has_credentials) in [(&moved, false), (&bearer, true), (&none, false), (&bearer, true)] {
        let stored = service.store_source(source).await;
        assert_eq!(stored["has_credentials"], has_credentials, "{source}");
    }
    service.fetch_source().await;
    assert_eq!(sent(&shop).1.as_deref(), Some("Bearer hush"));
    service.state.feeds().fetch_due(now()).await.unwrap();
    for path in ["/feeds", "/feeds/shop", "/metrics"] {
        shown += &service.get(path).await.text();
    }
    let admin = service.signed_in(Role::Admin).await;
    for path in ["/operations", "/access/audit"] {
        shown += &admin.page(path).await;
    }
    format!("{:?}", (service.log(100).await, service.store.feeds().list().await.unwrap())).lacks(["hush"]);
    shown.lacks(["hush", "bWU6"]);
}

#[apply(on_sqlite)]
async fn a_wrong_source_is_refused_where_it_is_wrong(service: Service) {
    let more = |field: &str, value: Value| json!({"url": "https://a.example/", field: value});
    for (body, pointer, detail) in [
        (json!({}), "", "missing field `url`"),
        (json!({"url": "shop.example"}), "/url", "https://"),
        (json!({"url": "https://169.254.169.254/"}), "/url", "serves no files"),
        (json!({"url": "https://a.example/?t=…"}), "/url", "write the value"),
        (json!({"url": "https://a:b@a.example/", "authorization": "x"}), "/authorization", "one place"),
        (more("authorization", json!("a\nb")), "/authorization", "header's value"),
        (more("schedule", json!({})), "/schedule", "either"),
        (more("schedule", json!({"every": "1m"})), "/schedule/every", "from 5m to 30d"),
        (more("schedule", json!({"at": ["04:30", "25:00"]})), "/schedule/at/1", "25:00"),
        (more("options", json!({"format": "xls"})), "/options/format", "xls"),
        (more("options", json!({"table": "outfits", "mode": "mirror"})), "/options/mode", "mirror"),
        (more("options", json!({"dry_run": true})), "/options/dry_run", "dry run"),
        (more("options", json!({"force": true})), "/options/force", "fetch?force=true"),
    ] {
        let problem = service.put("/feeds/shop", &body).await.assert_problem(422, &[pointer]);
        problem["errors"][0]["detail"].as_str().unwrap().has([detail]);
    }
    service.put("/feeds/Sh%7Cop", json!({"url": "https://a.example/"})).is(422).await;
    service.get("/feeds/shop").is(404).await;
    let answer = service.put("/feeds/shop", json!({"url": "https://a.example/"})).is(201).await;
    let tag = answer.header("etag");
    for (name, value, status) in [("if-none-match", "*", 412), ("if-match", tag, 200), ("if-match", tag, 412)]
    {
        let put = service.put("/feeds/shop", json!({"url": "https://b.example/"}));
        put.header(name, value).is(status).await;
    }
}

#[apply(on_sqlite)]
async fn a_feed_that_fails_twice_is_an_alert(service: Service) {
    let (shop, address) = Shop::open(HATS, None).await;
    service.store_source(&json!({"url": format!("http://{address}/f.csv")})).await;
    shop.fail(503);
    let admin = service.signed_in(Role::Admin).await;
    let metrics = async || {
        service.state.feeds().fetch_due(now()).await.unwrap();
        service.get("/metrics").await.text()
    };
    for failures in 1..=2 {
        let (import, source) = service.fetch_source().await;
        let reason = format!("http://{address} answered with status 503; the server may be busy");
        assert_eq!(pick(&import, "state result/failure"), json!(["failed", reason]));
        assert_eq!(pick(&source, "state/failures state/failure"), json!([failures, reason]));
        let gauge = format!("\natelier_feed_failures{{feed=\"shop\"}} {failures}\n");
        metrics().await.has([gauge]).lacks(["_timestamp_seconds{feed"]);
        let page = admin.page("/operations").await;
        assert_eq!(page.contains("answered with status 503"), failures == 2, "{page}");
    }
    shop.set(HATS, None);
    // It waits for another import, and is cancelled: that is no failure.
    let other = service.store.import(now()).await.unwrap();
    let begun = service.post("/feeds/shop/fetch", "application/json", "").await;
    service.delete(begun.header("location")).is(202).await;
    service.source_rests().await;
    assert_eq!(service.json("/feeds/shop").await["state"]["failures"], 2);
    other.abandon().await.unwrap();
    let (import, source) = service.fetch_source().await;
    assert_eq!((&import["state"], &source["state"]["failures"]), (&json!("done"), &json!(0)), "{import:#}");
    metrics().await.has([
        "\natelier_feed_failures{feed=\"shop\"} 0\n",
        "\natelier_feed_last_success_timestamp_seconds{feed=\"shop\"} 1",
    ]);
    admin.page("/operations").await.lacks(["answered with status 503"]);
}

#[apply(contract)]
async fn a_due_feed_is_fetched_once_by_one_replica(db: TestDatabase) {
    let (one, two) = (Service::start(&db).await, Service::start(&db).await);
    let (shop, address) = Shop::open(HATS, None).await;
    let source = json!({"url": format!("http://{address}/f.csv"), "schedule": {"every": "5m"}});
    one.store_source(&source).await;
    let due = |at: Timestamp| {
        let (one, two) = (one.state.feeds().clone(), two.state.feeds().clone());
        async move { tokio::try_join!(one.fetch_due(at), two.fetch_due(at)).unwrap() }
    };
    due(now() + Duration::from_mins(4)).await;
    assert_eq!((shop.asked().len(), &one.json("/imports").await["imports"]), (0, &json!([])));
    // As a process leaves it that was killed while it fetched.
    let killed = |at: Timestamp| {
        let store = one.store.clone();
        async move { assert!(store.feeds().claim("shop", "killed", false, at).await.unwrap().is_some()) }
    };
    killed(now() - Duration::from_hours(1)).await;
    due(now()).await;
    one.source_rests().await;
    assert_eq!(shop.asked().len(), 1, "however many times were missed");
    let import = &one.json("/imports").await["imports"][0];
    assert_eq!(pick(import, "state started_by"), json!(["done", null]), "{import:#}");
    due(now() + Duration::from_mins(4)).await;
    assert_eq!(shop.asked().len(), 1);

    killed(now() - Duration::from_secs(31)).await;
    due(now()).await;
    one.source_rests().await;
    assert_eq!(shop.asked().len(), 2);
    // Now it holds the lease a little longer.
    killed(now()).await;
    due(now()).await;
    assert_eq!(shop.asked().len(), 2);
    let source = two.json("/feeds/shop").await;
    assert!(source["state"]["failures"] == 0 && source["state"]["due_at"].is_string(), "{source:#}");
}

#[apply(on_sqlite)]
async fn an_admin_stores_fetches_and_deletes_a_feed_on_its_page(service: Service) {
    let (shop, address) = Shop::open(HATS, None).await;
    let (admin, analyst) = (service.signed_in(Role::Admin).await, service.signed_in(Role::Analyst).await);
    let url = format!("http://{address}/f.csv?token=hush");
    let new: &[(&str, &str)] = &[
        ("name", "shop"),
        ("url", &url),
        ("schedule", "04:30, 16:30"),
        ("mode", "mirror"),
        ("skip_bad", "true"),
    ];
    admin.post("/operations/feeds", new).is(303).await;
    let source = service.json("/feeds/shop").await;
    let expected = json!([{"at": ["04:30", "16:30"]}, "mirror", true]);
    assert_eq!(pick(&source, "schedule options/mode options/skip_bad"), expected, "{source:#}");
    let again = admin.post("/operations/feeds", new).is(422).await.text();
    again.has(["was added, changed or deleted in the meantime"]).lacks(["hush"]);
    let wrong = [("name", "other"), ("url", "ftp://a"), ("schedule", "1m")];
    let wrong = admin.post("/operations/feeds", &wrong).is(422).await.text();
    wrong.has(["url: expected an address", "schedule.every: expected"]);

    admin.post("/operations/feeds/shop/fetch", &[]).is(303).await;
    service.source_rests().await;
    assert_eq!(shop.asked().len(), 1);
    let page = admin.page("/operations/feeds/shop").await;
    page.has(["f.csv?token=…"]).lacks(["hush"]);
    assert_page("feed", &page);
    let list = analyst.page("/operations/feeds").await;
    list.has(["04:30, 16:30", "fine"]).lacks(["<form method=\"post\" action=\"/operations"]);
    // What the page shows can be sent back.
    let version = page.between("name=\"version\" value=\"", "\"");
    let shown = format!("http://{address}/f.csv?token=…");
    let changed = [("name", "shop"), ("version", &*version), ("url", &*shown), ("schedule", "6h")];
    admin.post("/operations/feeds", &changed).is(303).await;
    admin.post("/operations/feeds/shop/fetch", &[]).await;
    service.source_rests().await;
    assert_eq!(shop.asked()[1].0, "/f.csv?token=hush");
    let version =
        admin.page("/operations/feeds/shop").await.between("name=\"version\" value=\"", "\"").clone();
    admin.post("/operations/feeds/shop/delete", &[("version", &*version)]).is(303).await;
    service.get("/feeds/shop").is(404).await;
}
