//! `/operations`: what is shown is what was done, and what is changed is asked first and written down.

use std::{fs, path::Path};

use atelier::{
    config::Limits,
    release::Method,
    store::{Actor, Name, Role, Timestamp},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{Browser, Service, header, models, releases::copy};
use crate::harness::{TestDatabase, contracts};

contracts!(
    the_figures_are_those_of_metrics,
    without_a_release_it_says_so,
    the_last_quarter_of_an_hour_is_drawn,
    releases_are_listed_with_what_is_wrong,
    a_release_is_activated_after_its_changes_were_shown,
    a_broken_release_leaves_the_old_one_answering,
    a_routing_is_shown_before_it_is_set,
    a_routing_that_cannot_be_is_told_why,
    acceptance_is_counted_by_method_and_arm,
    pages_stay_small,
);

/// A folder with the demo release and one with fewer methods.
pub fn two_releases() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (demo, less) = (folder.path().join("demo"), folder.path().join("less"));
    copy(&models().join("demo"), &demo);
    copy(&demo, &less);
    let mut digests = Vec::new();
    for file in fs::read_dir(&less).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|ending| ending == "onnx") {
            // A model's metadata names its release, as protobuf: a name of the same length takes the place.
            let (key, demo) = (b"\x0a\x07release\x12\x04", b"demo");
            let mut bytes = fs::read(&file).unwrap();
            let named = [&key[..], demo].concat();
            let place = bytes.windows(named.len()).position(|window| window == named).unwrap();
            bytes[place + key.len()..place + named.len()].copy_from_slice(b"less");
            fs::write(&file, &bytes).unwrap();
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            digests.push((name, hex::encode(Sha256::digest(&bytes))));
        }
    }
    change(&less, |manifest| {
        manifest["name"] = json!("less");
        manifest["default_method"] = json!("gsx");
        manifest["data"]["fingerprint"] = json!("other");
        let methods = manifest["methods"].as_array_mut().unwrap();
        methods.retain(|entry| entry["method"] != "np" && entry["method"] != "c");
        for (name, digest) in digests {
            manifest["files"][name]["sha256"] = json!(digest);
        }
    });
    folder
}

/// The same, and two that cannot be served: a model of one is cut, the other has another format.
fn folder() -> TempDir {
    let folder = two_releases();
    let cut = folder.path().join("cut");
    copy(&models().join("demo"), &cut);
    change(&cut, |manifest| manifest["name"] = json!("cut"));
    let model = cut.join("gsu.onnx");
    let whole = fs::read(&model).unwrap();
    fs::write(&model, &whole[..1000]).unwrap();
    fs::create_dir(folder.path().join("odd")).unwrap();
    fs::write(folder.path().join("odd/release.json"), "{\"format\":7}").unwrap();
    folder
}

fn change(release: &Path, with: impl FnOnce(&mut Value)) {
    let path = release.join("release.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    with(&mut manifest);
    fs::write(path, manifest.to_string()).unwrap();
}

/// With the demo release and its data, and an admin at a browser.
async fn start(db: &TestDatabase, folder: &TempDir) -> (Service, Browser, Actor) {
    let service = Service::start_in(db, Limits::default(), folder.path().to_owned()).await;
    service.bring_in_demo().await;
    service.offers.serve("demo").await.unwrap();
    let admin = service.signed_in(Role::Admin).await;
    let name = Name::new("Some admin").unwrap();
    let me = service.store.people().by_name(&name).await.unwrap().unwrap().id;
    (service, admin, Actor::Person(me))
}

async fn last(service: &Service) -> Option<(Actor, String, String, Value)> {
    let entries = service.store.audit().list(None, 1).await.unwrap();
    entries.into_iter().next().map(|one| (one.actor, one.action, one.subject, one.details.into()))
}

/// The cells of the row that begins with this.
fn row<'a>(html: &'a str, head: &str) -> Vec<&'a str> {
    let (_, rest) = html.split_once(head).unwrap_or_else(|| panic!("{head} in {html}"));
    let (row, _) = rest.split_once("</tr>").unwrap();
    row.split("<td")
        .skip(1)
        .map(|cell| cell.split_once('>').unwrap().1.split("</td>").next().unwrap())
        .collect()
}

async fn the_figures_are_those_of_metrics(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    copy(&super::models().join("demo"), &models.path().join("demo"));
    let (service, admin, _) = start(&db, &models).await;
    service.put("/articles/new-coat", &json!({"type": "coat"})).await;
    for _ in 0..3 {
        service.asked("/complete", &json!({"outfit": ["a-00134", null, null], "method": "gsu"})).await;
    }
    assert_eq!(service.ask("/complete", &json!({"outfit": 1})).await.0, 422);

    let html = admin.page("/operations").await;
    assert!(html.contains("The release demo answers"), "{html}");
    let figure = |name: &str, value: &str| {
        let shown = format!("<dt>{name}</dt><dd>{value}</dd>");
        assert!(html.contains(&shown), "{shown} in {html}");
    };
    figure("articles", "1\u{202f}501");
    figure("articles unknown to the release", "1");
    figure("customers", "300");
    figure("answers", "5");
    figure("errors (5xx)", "0");
    figure("Database", service.store.kind());
    figure("API keys", "not needed on this machine&#39;s own address");

    let gsu = row(&html, "<th scope=\"row\">gsu <span class=\"quiet small\">default</span></th>");
    assert_eq!(
        gsu[..5],
        ["921\u{202f}856", "0 <span class=\"quiet\">of 1\u{202f}024</span>", "1", "6", "2.0"]
    );
    for time in &gsu[5..11] {
        assert!(
            time.replace('\u{202f}', "").parse::<f64>().is_ok_and(|ms| ms > 0.0 && ms < 60_000.0),
            "{gsu:?}"
        );
    }
    assert_eq!(gsu[11], "–");
    assert_eq!(row(&html, "<th scope=\"row\">np</th>")[3..6], ["0", "–", "–"]);
    let complete = row(&html, "<code>POST /complete</code>");
    assert_eq!(complete[..2], ["200", "3"]);
    assert!(html.contains("<td class=\"number\">422</td><td class=\"number\">1</td>"), "{html}");

    // A script takes the live part of the same page.
    assert!(
        html.contains("<div id=\"live\" hx-get=\"/operations\" hx-trigger=\"every 5s\" hx-select=\"#live\"")
    );
    assert!(html.contains("<a class=\"button small no-script\" href=\"/operations\">Refresh</a>"), "{html}");
}

async fn without_a_release_it_says_so(db: TestDatabase) {
    let empty = tempfile::tempdir().unwrap();
    let nowhere = empty.path().join("models");
    let service = Service::start_in(&db, Limits::default(), nowhere).await;
    let admin = service.signed_in(Role::Admin).await;
    let html = admin.page("/operations").await;
    assert!(html.contains("No release answers") && html.contains("<dt>articles</dt><dd>0</dd>"), "{html}");
    assert!(admin.page("/operations/releases").await.contains("<strong>No releases</strong>"));
    let routing = admin.get("/operations/routing").await;
    assert_eq!(routing.status(), 503);
    assert!(routing.text().await.unwrap().contains("no release is being served"));
    assert_eq!(service.json("/releases").await, json!({"active": null, "releases": []}));
}

async fn the_last_quarter_of_an_hour_is_drawn(db: TestDatabase) {
    let service = Service::start(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    let metrics = &service.state.metrics;
    let second = |second: i64| Timestamp::from_millis(1000 * second);
    metrics.sample(second(0));
    assert!(admin.page("/operations").await.contains("The curves begin some seconds after the service."));
    for _ in 0..10 {
        service.get("/articles").await;
        // What watches is no traffic.
        service.get("/livez").await;
        service.get("/metrics").await;
    }
    metrics.sample(second(5));
    let html = admin.page("/operations").await;
    assert!(html.contains("Answers a second: 2.0 now, 2.0 at most"), "{html}");
    metrics.sample(second(10));
    let html = admin.page("/operations").await;
    assert!(html.contains("Answers a second: 0.0 now, 2.0 at most"), "{html}");
    assert!(html.contains("Waiting for a model: 0 now, 0 at most"), "{html}");
    assert!(html.contains("95 of 100 within, ms: – now,"), "{html}");
    // However long it runs, a quarter of an hour is kept.
    for at in 3..400 {
        metrics.sample(second(5 * at));
    }
    let html = admin.page("/operations").await;
    assert!(html.contains("Answers a second: 0.0 now, 0.0 at most"), "{html}");
    let (_, rate) = html.split_once("<path class=\"curve\" d=\"").unwrap();
    let points = rate.split('"').next().unwrap().matches(['M', 'L']).count();
    assert_eq!(points, 180);
}

async fn releases_are_listed_with_what_is_wrong(db: TestDatabase) {
    let folder = folder();
    let (_service, admin, _) = start(&db, &folder).await;
    let html = admin.page("/operations/releases").await;
    let demo =
        row(&html, "<th scope=\"row\">demo <span class=\"chip\" aria-current=\"true\">answers</span></th>");
    assert_eq!(demo[..2], ["2026-11-21 16:15:42", "demo"]);
    assert!(demo[2].starts_with("none, c, np,") && demo[3].contains("Load anew …"), "{demo:?}");
    assert!(
        row(&html, "<th scope=\"row\">less</th>")[3]
            .contains("href=\"/operations/releases/less\">Activate …")
    );
    let odd = row(&html, "<th scope=\"row\">odd</th>");
    assert!(odd[0].contains("odd/release.json: format 7, expected 1"), "{odd:?}");
    let odd = admin.page("/operations/releases/odd").await;
    assert!(odd.contains("odd cannot be served") && odd.contains("The release demo answers."), "{odd}");
    assert!(!odd.contains("action=\"/operations/releases"), "there is nothing to activate: {odd}");
    assert_eq!(admin.get("/operations/releases/nowhere").await.status(), 404);
    assert_eq!(admin.get("/operations/releases/..%2Fdemo").await.status(), 422);
}

async fn a_release_is_activated_after_its_changes_were_shown(db: TestDatabase) {
    let folder = two_releases();
    let (service, admin, me) = start(&db, &folder).await;
    service.put("/routing", &json!({"default_method": "np"})).await;
    let asked = admin.page("/operations/releases/less").await;
    assert!(asked.contains("<h1>Activate less?</h1>"), "{asked}");
    assert_eq!(row(&asked, "<th scope=\"row\">Its default method</th>"), ["gsu", "gsx"]);
    for said in [
        "<li>Lost: c, np. Whoever asks for them by name is answered with 422.</li>",
        "<li>It was trained on other data, so its articles may be others.</li>",
        "<li>The routing names np, which it lacks; its default answers there.</li>",
    ] {
        assert!(asked.contains(said), "{said} in {asked}");
    }
    assert_eq!(service.json("/releases").await["active"], "demo", "asking changes nothing");

    let stale = admin.post("/operations/releases/less", &[("before", "older")]).await;
    assert_eq!(stale.status(), 409);
    assert!(stale.text().await.unwrap().contains("meanwhile demo was activated"));
    let done = admin.post("/operations/releases/less", &[("before", "demo")]).await;
    assert_eq!((done.status().as_u16(), header(&done, "location")), (303, "/operations/releases"));
    assert_eq!(service.asked("/complete", &json!({"outfit": [null]})).await["method"], "gsx");
    let details = json!({"before": "demo", "after": "less"});
    assert_eq!(last(&service).await, Some((me, "release.activate".into(), "less".into(), details)));
    assert!(
        admin
            .page("/operations/routing")
            .await
            .contains("The release less lacks np: its default answers there.")
    );

    // Back, which finds what was lost; and once more, anew.
    let asked = admin.page("/operations/releases/demo").await;
    assert!(asked.contains("<li>New: c, np.</li>"), "{asked}");
    admin.post("/operations/releases/demo", &[("before", "less")]).await;
    assert!(admin.page("/operations/releases/demo").await.contains("<h1>Load demo anew?</h1>"));
    assert_eq!(admin.post("/operations/releases/demo", &[("before", "demo")]).await.status(), 303);
    let forged = admin.post_bare("/operations/releases/less", &[("before", "demo"), ("csrf", "")]).await;
    assert_eq!(forged.status(), 403);
    assert_eq!(service.json("/releases").await["active"], "demo");
}

async fn a_broken_release_leaves_the_old_one_answering(db: TestDatabase) {
    let folder = folder();
    let (service, admin, _) = start(&db, &folder).await;
    let refused = admin.post("/operations/releases/cut", &[("before", "demo")]).await;
    assert_eq!(refused.status(), 409);
    let html = refused.text().await.unwrap();
    assert!(html.contains("<strong>It was not activated.</strong>"), "{html}");
    assert!(html.contains("cut/gsu.onnx: 1000 bytes, the manifest says "), "{html}");
    assert!(html.contains("The release demo goes on answering."), "{html}");
    assert_eq!(service.asked("/complete", &json!({"outfit": [null]})).await["release"], "demo");
    assert_eq!(last(&service).await, None, "nothing was changed");
}

async fn a_routing_is_shown_before_it_is_set(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    let html = admin.page("/operations/routing").await;
    assert!(html.contains("Where no method is named, gsu answers, as demo has it"), "{html}");
    assert!(html.contains("No experiment runs"), "{html}");

    let arms = [
        ("method", "gsu"),
        ("share", "9"),
        ("method", "np"),
        ("share", " "),
        ("method", "none"),
        ("share", "1"),
    ];
    let query =
        "default_method=np&experiment=autumn&method=gsu&share=9&method=np&share=+&method=none&share=1";
    let asked = admin.page(&format!("/operations/routing/change?{query}")).await;
    let before = "the release's default, no experiment";
    let after = "np, experiment autumn (gsu 9, none 1)";
    assert!(asked.contains(&format!("<dd><strong>{after}</strong></dd>")), "{asked}");
    assert!(asked.contains("Known customers are split between the arms"), "{asked}");
    assert_eq!(service.json("/routing").await["experiment"], Value::Null, "asking changes nothing");

    let fields: Vec<(&str, &str)> = [("before", before), ("default_method", "np"), ("experiment", "autumn")]
        .into_iter()
        .chain(arms)
        .collect();
    let set = admin.post("/operations/routing", &fields).await;
    assert_eq!((set.status().as_u16(), header(&set, "location")), (303, "/operations/routing"));
    let arms = json!([{"method": "gsu", "share": 9}, {"method": "none", "share": 1}]);
    let routing = json!({"default_method": "np", "experiment": {"name": "autumn", "arms": arms}});
    assert_eq!(service.json("/routing").await, routing);
    let (_, action, subject, details) = last(&service).await.unwrap();
    assert_eq!((action.as_str(), subject.as_str()), ("routing.set", "routing"));
    assert_eq!(details, json!({"before": before, "after": after}));
    let html = admin.page("/operations/routing").await;
    assert_eq!(row(&html, "<th scope=\"row\">gsu</th>"), ["9", "90 %"]);
    assert!(html.contains("id=\"share-none\" value=\"1\""), "the form begins from what is: {html}");

    // The same form again comes too late: it was made before the change.
    let late = admin.post("/operations/routing", &fields).await;
    assert_eq!(late.status(), 409);
    assert!(
        late.text().await.unwrap().contains("somebody changed the routing meanwhile, so nothing was set")
    );
    let same = admin.page(&format!("/operations/routing/change?{query}")).await;
    assert!(
        same.contains("Nothing would change") && !same.contains("action=\"/operations/routing\""),
        "{same}"
    );

    let ended = admin.page("/operations/routing/change?default_method=np").await;
    assert!(ended.contains("The experiment ends"), "{ended}");
    let fields = [("before", after), ("default_method", "np")];
    assert_eq!(admin.post("/operations/routing", &fields).await.status(), 303);
    assert_eq!(service.json("/routing").await, json!({"default_method": "np", "experiment": null}));
}

async fn a_routing_that_cannot_be_is_told_why(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    for (query, said) in [
        ("default_method=bert", "there is no method &#34;bert&#34;"),
        ("experiment=x&method=gsu&share=1", "an experiment has two to ten arms, this one has 1"),
        (
            "experiment=a+b&method=gsu&share=1&method=np&share=1",
            "an experiment&#39;s name has 1 to 64 letters",
        ),
        ("method=gsu&share=1&method=np&share=1", "an experiment&#39;s name has 1 to 64 letters"),
        (
            "experiment=x&method=gsu&share=half&method=np&share=1",
            "the share of gsu is a whole number, found &#34;half&#34;",
        ),
        ("experiment=x&method=gsu&share=0&method=np&share=1", "the arm of gsu has no share; leave it out"),
        ("experiment=x&method=gsu&share=-1&method=np&share=1", "the share of gsu is a whole number"),
    ] {
        let answer = admin.get(&format!("/operations/routing/change?{query}")).await;
        assert_eq!(answer.status(), 422, "{query}");
        let html = answer.text().await.unwrap();
        let (_, wrong) = html.split_once("role=\"alert\"><ul>").expect("it says what is wrong");
        assert!(wrong.split("</ul>").next().unwrap().contains(said), "{query}: {html}");
        let fields: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(admin.post("/operations/routing", &fields).await.status(), 422, "{query}");
    }
    let typed = admin.get("/operations/routing/change?experiment=a+b&method=gsu&share=half").await;
    let html = typed.text().await.unwrap();
    assert!(html.contains("value=\"a b\"") && html.contains("id=\"share-gsu\" value=\"half\""), "{html}");
    assert_eq!(last(&service).await, None);
}

async fn acceptance_is_counted_by_method_and_arm(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    assert!(admin.page("/operations/routing").await.contains("<strong>No feedback yet</strong>"));
    let arms = json!([{"method": Method::Gsu.as_str(), "share": 1}, {"method": "none", "share": 1}]);
    service.put("/routing", &json!({"experiment": {"name": "autumn", "arms": arms}})).await;
    let mut arm = String::new();
    for number in 0..4 {
        let request = json!({"customer": "c-014871", "outfit": ["a-00134", null], "k": 1});
        let answer = service.asked("/complete", &request).await;
        arm = answer["arm"].as_str().unwrap().to_owned();
        let article = &answer["blanks"][0]["suggestions"][0]["article"]["id"];
        for kind in if number == 0 { &["shown", "accepted"][..] } else { &["shown"] } {
            let event = json!({"id": format!("{kind}-{number}"), "completion_id": answer["completion_id"],
                "kind": kind, "slot": 1, "article": article});
            service.asked("/feedback", &event).await;
        }
    }
    let html = admin.page("/operations/routing").await;
    let (_, method) = arm.split_once('/').unwrap();
    let (_, acceptance) = html.split_once("id=\"acceptance\"").unwrap();
    let found = row(acceptance, &format!("<th scope=\"row\">{method}</th>"));
    assert_eq!(found[..6], ["demo", arm.as_str(), "4", "1", "0", "0"]);
    // Wilson's interval of one in four.
    assert_eq!(found[6], "25 % <span class=\"quiet\">(4.6 % to 70 %)</span>");
    assert!(found[7].contains("aria-label=\"25 %, between 4.6 % and 70 %\""), "{found:?}");
}

async fn pages_stay_small(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let admin = service.signed_in(Role::Admin).await;
    for at in 0..200 {
        service.state.metrics.sample(Timestamp::from_millis(5000 * at));
    }
    // Every route with the statuses that are easily had.
    let document = service.json("/openapi.json").await;
    for path in document["paths"].as_object().unwrap().keys() {
        service.get(&path.replace("{id}", "x").replace("{name}", "x")).await;
        service.delete(&path.replace("{id}", "x").replace("{name}", "x")).await;
        service.post(path, "text/plain", "").await;
    }
    for path in ["/operations", "/operations/releases", "/operations/releases/demo", "/operations/routing"] {
        let html = admin.page(path).await;
        assert!(html.len() < 60_000, "{path}: {} bytes", html.len());
        assert!(!html.contains("style=") && !html.contains("<style") && !html.contains("<script>"), "{path}");
    }
    let html = admin.page("/operations").await;
    assert!(
        html.matches("<th scope=\"row\"><code>").count() == 40 && html.contains(" more are in /metrics"),
        "{html}"
    );
}
