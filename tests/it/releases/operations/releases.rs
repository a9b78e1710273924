//! Which release is live, and how another one is activated.

use std::{fs, path::Path};

use atelier::platform::db::Entry;
use atelier_core::domain::{Role, Timestamp};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    demo,
    harness::{Html, TestDatabase, apply, models, on_sqlite},
    releases::{
        api::{change_manifest, copy, make_other_format},
        operations::{last, row, start},
    },
};

/// A folder with the demo release and one with fewer methods.
pub fn two_releases() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let [demo, less] = ["demo", "less"].map(|name| folder.path().join(name));
    copy(&models().join("demo"), &demo);
    demo::copy_as("less", &demo, folder.path()).unwrap();
    change_manifest(&less, |manifest| {
        manifest["default_method"] = json!("gsu");
        manifest["data"]["fingerprint"] = json!("other");
        let methods = manifest["methods"].as_array_mut().unwrap();
        methods.retain(|entry| entry["method"] != "np" && entry["method"] != "c");
    });
    folder
}

/// The same, and two that cannot be served: one has a truncated model, the other another format.
fn folder() -> TempDir {
    let folder = two_releases();
    let cut = folder.path().join("cut");
    copy(&models().join("demo"), &cut);
    change_manifest(&cut, |manifest| manifest["name"] = json!("cut"));
    let model = cut.join("gsu.onnx");
    let whole = fs::read(&model).unwrap();
    fs::write(&model, &whole[..1000]).unwrap();
    make_other_format(&folder.path().join("odd"));
    folder
}

/// Takes a file out of a release.
fn remove(release: &Path, file: &str) {
    fs::remove_file(release.join(file)).unwrap();
    change_manifest(release, |manifest| {
        manifest["files"].as_object_mut().unwrap().remove(file).unwrap();
    });
}

const COMPARISON: &str = "/operations/releases/less/comparison";
/// The row of a comparison that compares the default methods.
const DEFAULTS: &str = "match → gsu <span class=\"chip\" aria-current=\"true\">default</span></th>";

#[apply(on_sqlite)]
async fn broken_releases_are_listed_with_their_faults_and_leave_the_live_one(db: TestDatabase) {
    let folder = folder();
    let (service, admin, me) = start(&db, &folder).await;
    let html = admin.page("/operations/releases").await;
    let live = "<th scope=\"row\">demo <span class=\"chip\" aria-current=\"true\">live</span></th>";
    let demo = row(&html, live);
    assert_eq!(demo[..2], ["2026-11-27 17:51:39", "demo"]);
    assert!(demo[2].starts_with("none, c, np,") && demo[3].contains("Reload …"), "{demo:?}");
    let less = row(&html, "<th scope=\"row\">less</th>");
    less[3].has(["href=\"/operations/releases/less\">Activate …"]);
    row(&html, "<th scope=\"row\">odd</th>")[0].has(["odd/release.json: format 7, expected 1"]);
    let odd = admin.page("/operations/releases/odd").await;
    odd.has(["odd cannot be served", "Release demo is live."]);
    // There is nothing to activate.
    odd.lacks(["action=\"/operations/releases"]);
    admin.get("/operations/releases/nowhere").is(404).await;
    admin.get("/operations/releases/..%2Fdemo").is(422).await;
    let refused = admin.post("/operations/releases/cut", &[("before", "demo")]).is(409).await.text();
    let cut = "cut/gsu.onnx: 1000 bytes, the manifest says ";
    refused.has(["<strong>Not activated.</strong>", cut, "Release demo stays live."]);
    assert_eq!(service.ask_ok("/complete", json!({"outfit": [null]})).await["release"], "demo");
    let (actor, action, subject, _) = last(&service).await.unwrap();
    assert_eq!((actor, &*action, &*subject), (me, "release.refused", "cut"));
}

#[apply(on_sqlite)]
async fn activation_shows_the_changes_first(db: TestDatabase) {
    let folder = two_releases();
    let (service, admin, me) = start(&db, &folder).await;
    let activate =
        |name: &str, before: &str| admin.post(format!("/operations/releases/{name}"), &[("before", before)]);
    service.put("/routing", json!({"default_method": "np"})).is(200).await;
    let asked = admin.page("/operations/releases/less").await;
    assert_eq!(row(&asked, "<th scope=\"row\">Default method</th>"), ["match", "gsu"]);
    let expected = [
        "<h1>Activate less?</h1>",
        "<li>Removed: c, np. Requests that name them are refused with 422.</li>",
        "<li>It was trained on other data, so its articles may differ.</li>",
        "<li>The routing names np, which this release does not have; its default method answers instead.</li>",
    ];
    asked.has(expected);
    assert_eq!(service.json("/releases").await["active"], "demo", "the confirmation page changes nothing");

    let stale = activate("less", "older").is(409).await;
    stale.text().has(["demo was activated in the meantime"]);
    let done = activate("less", "demo").is(303).await;
    let offered = admin.page(done.header("location")).await;
    offered.has(["less is live now, instead of demo."]);
    assert_eq!(service.ask_ok("/complete", json!({"outfit": [null]})).await["method"], "gsu");
    let details = json!({"before": "demo", "after": "less"});
    assert_eq!(last(&service).await, Some((me, "release.activate".into(), "less".into(), details)));
    let routing = admin.page("/operations/routing").await;
    routing.has(["Release less has no np: its own default answers instead."]);

    // Back to the first, which knows the lost articles; then to the second again.
    admin.page("/operations/releases/demo").await.has(["<li>New: c, np.</li>"]);
    activate("demo", "less").is(303).await;
    admin.page("/operations/releases/demo").await.has(["<h1>Reload demo?</h1>"]);
    activate("demo", "demo").is(303).await;
    admin.post_bare("/operations/releases/less", &[("before", "demo"), ("csrf", "")]).is(403).await;
    assert_eq!(service.json("/releases").await["active"], "demo");
}

#[apply(on_sqlite)]
async fn two_releases_are_compared(db: TestDatabase) {
    let folder = two_releases();
    let (service, admin, _) = start(&db, &folder).await;
    let analyst = service.signed_in(Role::Analyst).await;
    let html = analyst.page(COMPARISON).await;
    html.has([
        "<h1>less compared with demo</h1>",
        "Both answered the same slots",
        "They were trained on different data",
        "class=\"chart whiskers\"",
    ]);
    // The default methods are compared first: gsu is worse than match, and each method is the same in both.
    let default = row(&html, DEFAULTS);
    default[0].has(["▼", "+0.768"]);
    default[1].has(["−5.13", "worse"]);
    let same = row(&html, "<th scope=\"row\">gsu</th>");
    assert!(!same.is_empty());
    for cell in same {
        cell.has(["≈", "no significant difference"]);
    }
    let cases = html.matches("→ ").count() - html.matches("match → gsu").count();
    assert_eq!(cases, 8, "four cases at each end: {html}");
    let csv = async |of: &str| analyst.page(format!("{COMPARISON}.csv?of={of}")).await;
    let figures = csv("figures").await;
    let head = "method,default,metric,difference,low,high\r\nmatch → gsu,true,";
    assert!(figures.starts_with(head), "{figures}");
    assert!(figures.contains("\r\ngsu,,") && figures.lines().all(|line| line.split(',').count() == 6));
    let types = csv("types").await;
    assert!(types.starts_with("type,slots,times_as_likely,low,high\r\n"), "{types}");
    let table = html.between("Types table", "</table>");
    assert_eq!(types.lines().count(), table.matches("<tr>").count());
    assert_eq!(html.matches("Download as CSV").count(), 2, "{html}");
    // The routing's default counts, not the release's: Evaluation and Cases have the same.
    let routed =
        [("default_method", "gsu"), ("before", &service.releases.current().unwrap().routing.to_string())];
    admin.post("/operations/routing", &routed).is(303).await;
    let html = analyst.page(COMPARISON).await;
    html.has(["gsu of this release, gsu of the live one"]);
    let cases = analyst.page("/evaluation/cases").await;
    assert!(
        cases.contains("<option value=\"gsu\" selected>") || cases.contains("<option selected>gsu"),
        "{cases}"
    );
    // Analysts activate nothing.
    html.lacks([">Activate less …</a>"]);
    admin.page(COMPARISON).await.has([">Activate less …</a>"]);
    let link = format!("href=\"{COMPARISON}\"");
    admin.page("/operations/releases/less").await.has([&link]);
    analyst.get("/operations/releases/nowhere/comparison").is(404).await;
}

#[apply(on_sqlite)]
async fn releases_measured_on_other_slots_are_compared_by_their_figures(db: TestDatabase) {
    let folder = two_releases();
    let less = folder.path().join("less");
    remove(&less, "ranks.parquet");
    let (_service, admin, _) = start(&db, &folder).await;
    let html = admin.page(COMPARISON).await;
    let wider = "The releases were tested on different slots, so intervals are wider.";
    html.has([wider, "Where they differ most: types"]);
    html.lacks(["Where they differ most: cases"]);
    row(&html, DEFAULTS)[1].has(["−5.13", "worse"]);

    remove(&less, "evaluation.json");
    admin.page(COMPARISON).await.has(["the release less has no file evaluation.json"]);
}

#[apply(on_sqlite)]
async fn activations_have_a_history_with_a_way_back(db: TestDatabase) {
    let folder = two_releases();
    let (service, admin, _) = start(&db, &folder).await;
    let page = async || admin.page("/operations/releases").await;
    page().await.lacks(["Activations"]);
    admin.post("/operations/releases/less", &[("before", "demo")]).is(303).await;
    let html = page().await;
    let history = html.after("id=\"history\"");
    let first = row(history, "<tbody>");
    assert_eq!(first[1..4], ["Some admin", "demo", "less"], "{first:?}");
    first[4].has(["href=\"/operations/releases/demo\">Back to demo …</a>"]);
    let analyst = service.signed_in(Role::Analyst).await.page("/operations/releases").await;
    analyst.has(["Some admin"]);
    analyst.lacks(["Back to demo"]);
    // Reloads do not crowd activations out.
    for _ in 0..101 {
        let entry = Entry::new("release.activate", "less", json!({"before": "less"}));
        service.store.audit().append(&entry, Timestamp::from_millis(1)).await.unwrap();
    }
    page().await.has(["Back to demo"]);
    // A double click is no conflict.
    admin.post("/operations/releases/less", &[("before", "demo")]).is(303).await;
    // Back again: the newest comes first, and nothing leads to what is live.
    let undo = |entry: &str| {
        let fields = [("before", "demo"), ("undo", entry)];
        admin.post("/operations/releases/less", &fields)
    };
    let done = admin.post("/operations/releases/demo", &[("before", "less")]).is(303).await;
    let entry = admin.page(done.header("location")).await.between("name=\"undo\" value=\"", "\"");
    undo(&entry).is(303).await;
    assert_eq!(service.json("/releases").await["active"], "less");
    // Not what was never the visitor's, and not once more.
    admin.post("/operations/releases/demo", &[("before", "less"), ("undo", "0")]).is(409).await;
    admin.post("/operations/releases/demo", &[("before", "less")]).is(303).await;
    let html = page().await;
    let history = html.after("id=\"history\"");
    assert_eq!(row(history, "<tbody>")[2..4], ["less", "demo"]);
    assert_eq!(history.matches("Back to less").count(), 2, "{history}");
    history.lacks(["Back to demo"]);
}
