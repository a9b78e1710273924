//! `/operations`: shows what happened; changes need confirmation and are audited.

pub mod acceptance;
pub mod releases;
pub mod routing;

use atelier::platform::db::Actor;
use atelier_core::domain::{Role, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    harness::{Browser, Demo, Html, Service, TestDatabase, apply, on_sqlite},
    releases::api::copy,
};

/// With the demo release and its data, and a signed-in admin.
async fn start(db: &TestDatabase, folder: &TempDir) -> (Service, Browser, Actor) {
    let service = Service::filled(db, folder).await;
    service.releases.serve("demo").await.unwrap();
    let admin = service.signed_in(Role::Admin).await;
    let me = service.find_person("Some admin").await;
    (service, admin, Actor::Person(me))
}

async fn last(service: &Service) -> Option<(Actor, String, String, Value)> {
    let entries = service.log(1).await;
    entries.into_iter().next().map(|one| (one.actor, one.action, one.subject, one.details.into()))
}

/// The cells of the row that starts with this.
fn row<'a>(html: &'a str, head: &str) -> Vec<&'a str> {
    let row = html.after(head).split("</tr>").next().unwrap();
    row.split("<td")
        .skip(1)
        .map(|cell| cell.split_once('>').unwrap().1.split("</td>").next().unwrap())
        .collect()
}

#[apply(on_sqlite)]
async fn figures_equal_the_metrics(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    copy(&crate::harness::models().join("demo"), &models.path().join("demo"));
    let (service, admin, _) = start(&db, &models).await;
    service.put("/articles/new-coat", json!({"type": "coat"})).is(201).await;
    for _ in 0..3 {
        service.ask_ok("/complete", json!({"outfit": ["a-00134", null, null], "method": "gsu"})).await;
    }
    service.send("/complete", json!({"outfit": 1})).is(422).await;

    let html = admin.page("/operations").await;
    for (name, value) in [
        ("articles", "1,501"),
        ("articles new to the release", "50"),
        ("customers", "300"),
        ("answers", "5"),
        ("errors (5xx)", "0"),
        ("Database", service.store.kind()),
        ("API keys", "not required"),
    ] {
        html.has([&format!("<dt>{name}</dt><dd>{value}</dd>")]);
    }
    let gsu = row(&html, "<th scope=\"row\">gsu</th>");
    assert_eq!(gsu[..5], ["921,856", "0 <span class=\"quiet\">of 1,024</span>", "1", "6", "2.0"]);
    for time in &gsu[5..11] {
        assert!(time.replace(',', "").parse::<f64>().is_ok_and(|ms| ms > 0.0 && ms < 60_000.0), "{gsu:?}");
    }
    assert_eq!(gsu[11], "–");
    assert_eq!(row(&html, "<th scope=\"row\">np</th>")[3..6], ["0", "–", "–"]);
    assert_eq!(row(&html, "<code>POST /complete</code>")[..2], ["200", "3"]);
    // A script takes the live part of the same page.
    let expected = [
        "Release demo is live",
        "<td class=\"number\">422</td><td class=\"number\">1</td>",
        "<div id=\"live\" hx-get=\"/operations\" hx-trigger=\"every 5s\" hx-select=\"#live\"",
        "<a class=\"button small no-script\" href=\"/operations\">Refresh</a>",
    ];
    html.has(expected);
}

#[apply(on_sqlite)]
async fn a_missing_release_is_shown(db: TestDatabase) {
    let empty = tempfile::tempdir().unwrap();
    let nowhere = empty.path().join("models");
    let service = Service::of(&db, nowhere).await;
    let admin = service.signed_in(Role::Admin).await;
    admin.page("/operations").await.has(["No release is live", "<dt>articles</dt><dd>0</dd>"]);
    admin.page("/operations/releases").await.has(["<strong>No releases</strong>"]);
    let routing = admin.get("/operations/routing").is(503).await;
    routing.text().has(["<p>No release is live"]);
    assert_eq!(service.json("/releases").await, json!({"active": null, "releases": []}));
}

#[apply(on_sqlite)]
async fn curves_show_the_last_quarter_of_an_hour(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let sample = |second: i64| service.state.metrics.sample(Timestamp::from_millis(1000 * second), 0);
    sample(0);
    let html = admin.page("/operations").await;
    html.has(["The curves start a few seconds after the service."]);
    // Monitoring is not traffic.
    for path in ["/articles", "/livez", "/metrics"].repeat(10) {
        service.get(path).await;
    }
    sample(5);
    admin.page("/operations").await.has(["Answers a second: 2.0 now, 2.0 at most"]);
    sample(10);
    let quiet = [
        "Answers a second: 0.0 now, 2.0 at most",
        "Waiting for a model: 0 now, 0 at most",
        "p95 latency (ms): – now,",
    ];
    admin.page("/operations").await.has(quiet);
    // Only the last quarter of an hour is kept.
    (3..400).for_each(|at| sample(5 * at));
    let html = admin.page("/operations").await;
    html.has(["Answers a second: 0.0 now, 0.0 at most"]);
    let rate = html.between("<path class=\"curve\" d=\"", "\"");
    assert_eq!(rate.matches(['M', 'L']).count(), 180);
}

#[apply(on_sqlite)]
async fn pages_stay_small(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    for at in 0..200 {
        service.state.metrics.sample(Timestamp::from_millis(5000 * at), 0);
    }
    // Every route with a few statuses.
    let document = service.json("/openapi.json").await;
    for path in document["paths"].as_object().unwrap().keys() {
        let item = path.replace("{id}", "x").replace("{name}", "x");
        service.get(&item).await;
        service.delete(&item).await;
        service.post(path, "text/plain", "").await;
    }
    for path in ["/operations", "/operations/releases", "/operations/releases/demo", "/operations/routing"] {
        let html = admin.page(path).await;
        assert!(html.len() < 60_000, "{path}: {} bytes", html.len());
        html.lacks(["style=", "<style", "<script>"]);
    }
    let html = admin.page("/operations").await;
    assert_eq!(html.matches("<th scope=\"row\"><code>").count(), 40, "{html}");
    html.has([" more are in /metrics"]);
}
