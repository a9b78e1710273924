//! Which release is live, and how another one is activated.

use std::{fs, path::Path};

use atelier::platform::db::Entry;
use atelier_core::domain::{Role, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{last, row, start};
use crate::{
    harness::{TestDatabase, apply, on_sqlite},
    web::{models, releases::copy},
};

/// A folder with the demo release and one with fewer methods.
pub fn two_releases() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (demo, less) = (folder.path().join("demo"), folder.path().join("less"));
    copy(&models().join("demo"), &demo);
    copy(&demo, &less);
    let mut digests = Vec::new();
    for file in fs::read_dir(&less).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|ending| ending == "onnx") {
            // A model's metadata names its release: a name of the same length can replace it in the file.
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
        manifest["default_method"] = json!("gsu");
        manifest["data"]["fingerprint"] = json!("other");
        let methods = manifest["methods"].as_array_mut().unwrap();
        methods.retain(|entry| entry["method"] != "np" && entry["method"] != "c");
        for (name, digest) in digests {
            manifest["files"][name]["sha256"] = json!(digest);
        }
    });
    folder
}

/// The same, and two that cannot be served: one has a truncated model, the other another format.
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

#[apply(on_sqlite)]
async fn releases_are_listed_with_their_faults(db: TestDatabase) {
    let folder = folder();
    let (_service, admin, _) = start(&db, &folder).await;
    let html = admin.page("/operations/releases").await;
    let demo =
        row(&html, "<th scope=\"row\">demo <span class=\"chip\" aria-current=\"true\">live</span></th>");
    assert_eq!(demo[..2], ["2026-11-27 17:51:39", "demo"]);
    assert!(demo[2].starts_with("none, c, np,") && demo[3].contains("Reload …"), "{demo:?}");
    assert!(
        row(&html, "<th scope=\"row\">less</th>")[3]
            .contains("href=\"/operations/releases/less\">Activate …")
    );
    let odd = row(&html, "<th scope=\"row\">odd</th>");
    assert!(odd[0].contains("odd/release.json: format 7, expected 1"), "{odd:?}");
    let odd = admin.page("/operations/releases/odd").await;
    assert!(odd.contains("odd cannot be served") && odd.contains("Release demo is live."), "{odd}");
    assert!(!odd.contains("action=\"/operations/releases"), "there is nothing to activate: {odd}");
    admin.get("/operations/releases/nowhere").is(404).await;
    admin.get("/operations/releases/..%2Fdemo").is(422).await;
}

#[apply(on_sqlite)]
async fn activation_shows_the_changes_first(db: TestDatabase) {
    let folder = two_releases();
    let (service, admin, me) = start(&db, &folder).await;
    service.put("/routing", &json!({"default_method": "np"})).await;
    let asked = admin.page("/operations/releases/less").await;
    assert!(asked.contains("<h1>Activate less?</h1>"), "{asked}");
    assert_eq!(row(&asked, "<th scope=\"row\">Default method</th>"), ["match", "gsu"]);
    for said in [
        "<li>Removed: c, np. Requests that name them are refused with 422.</li>",
        "<li>It was trained on other data, so its articles may differ.</li>",
        "<li>The routing names np, which this release does not have; its default method answers instead.</li>",
    ] {
        assert!(asked.contains(said), "{said} in {asked}");
    }
    assert_eq!(service.json("/releases").await["active"], "demo", "the confirmation page changes nothing");

    let stale = admin.post("/operations/releases/less", &[("before", "older")]).is(409).await;
    assert!(stale.text().contains("demo was activated in the meantime"));
    let done = admin.post("/operations/releases/less", &[("before", "demo")]).await;
    assert_eq!((done.status(), done.header("location")), (303, "/operations/releases"));
    assert_eq!(service.ask_ok("/complete", &json!({"outfit": [null]})).await["method"], "gsu");
    let details = json!({"before": "demo", "after": "less"});
    assert_eq!(last(&service).await, Some((me, "release.activate".into(), "less".into(), details)));
    assert!(
        admin
            .page("/operations/routing")
            .await
            .contains("Release less has no np: its own default answers instead.")
    );

    // Back to the first, which knows the lost articles; then to the second again.
    let asked = admin.page("/operations/releases/demo").await;
    assert!(asked.contains("<li>New: c, np.</li>"), "{asked}");
    admin.post("/operations/releases/demo", &[("before", "less")]).await;
    assert!(admin.page("/operations/releases/demo").await.contains("<h1>Reload demo?</h1>"));
    admin.post("/operations/releases/demo", &[("before", "demo")]).is(303).await;
    admin.post_bare("/operations/releases/less", &[("before", "demo"), ("csrf", "")]).is(403).await;
    assert_eq!(service.json("/releases").await["active"], "demo");
}

#[apply(on_sqlite)]
async fn a_broken_release_leaves_the_old_one_live(db: TestDatabase) {
    let folder = folder();
    let (service, admin, me) = start(&db, &folder).await;
    let refused = admin.post("/operations/releases/cut", &[("before", "demo")]).is(409).await;
    let html = refused.text();
    assert!(html.contains("<strong>Not activated.</strong>"), "{html}");
    assert!(html.contains("cut/gsu.onnx: 1000 bytes, the manifest says "), "{html}");
    assert!(html.contains("Release demo stays live."), "{html}");
    assert_eq!(service.ask_ok("/complete", &json!({"outfit": [null]})).await["release"], "demo");
    let (actor, action, subject, _) = last(&service).await.unwrap();
    assert_eq!((actor, action.as_str(), subject.as_str()), (me, "release.refused", "cut"));
}

#[apply(on_sqlite)]
async fn two_releases_are_compared(db: TestDatabase) {
    let folder = two_releases();
    let (service, admin, _) = start(&db, &folder).await;
    let analyst = service.signed_in(Role::Analyst).await;
    let html = analyst.page("/operations/releases/less/comparison").await;
    assert!(
        html.contains("<h1>less beside demo</h1>") && html.contains("Both answered the same slots"),
        "{html}"
    );
    // The default methods are compared first: gsu is worse than match, and each method is the same in both.
    let default = row(&html, "match → gsu <span class=\"chip\" aria-current=\"true\">default</span></th>");
    assert!(default[0].contains("▼") && default[0].contains("+0.768"), "{default:?}");
    assert!(default[1].contains("−5.13") && default[1].contains("worse"), "{default:?}");
    let same = row(&html, "<th scope=\"row\">gsu</th>");
    assert!(
        !same.is_empty()
            && same.iter().all(|cell| cell.contains("≈") && cell.contains("no significant difference")),
        "{same:?}"
    );
    assert!(html.contains("They were trained on different data"), "{html}");
    assert_eq!(
        html.matches("→ ").count() - html.matches("match → gsu").count(),
        8,
        "four cases at each end: {html}"
    );
    assert!(html.contains("class=\"chart whiskers\""), "{html}");
    let csv =
        async |of: &str| analyst.page(&format!("/operations/releases/less/comparison.csv?of={of}")).await;
    let figures = csv("figures").await;
    assert!(
        figures.starts_with("method,default,metric,difference,low,high\r\nmatch → gsu,true,"),
        "{figures}"
    );
    assert!(figures.contains("\r\ngsu,,") && figures.lines().all(|line| line.split(',').count() == 6));
    let types = csv("types").await;
    assert!(types.starts_with("type,slots,times_as_likely,low,high\r\n"), "{types}");
    let (_, table) = html.split_once("Types table").unwrap();
    assert_eq!(types.lines().count(), table.split("</table>").next().unwrap().matches("<tr>").count());
    assert!(html.matches("Download as CSV").count() == 2, "{html}");
    // The routing's default counts, not the release's: Evaluation and Cases have the same.
    let routed =
        [("default_method", "gsu"), ("before", &service.releases.current().unwrap().routing.to_string())];
    admin.post("/operations/routing", &routed).is(303).await;
    let html = analyst.page("/operations/releases/less/comparison").await;
    assert!(html.contains("gsu of this release, gsu of the live one"), "{html}");
    let cases = analyst.page("/evaluation/cases").await;
    assert!(
        cases.contains("<option value=\"gsu\" selected>") || cases.contains("<option selected>gsu"),
        "{cases}"
    );
    assert!(!html.contains(">Activate less …</a>"), "analysts activate nothing");
    assert!(admin.page("/operations/releases/less/comparison").await.contains(">Activate less …</a>"));
    assert!(
        admin
            .page("/operations/releases/less")
            .await
            .contains("href=\"/operations/releases/less/comparison\"")
    );
    analyst.get("/operations/releases/nowhere/comparison").is(404).await;
    let stylist = service.signed_in(Role::Stylist).await;
    stylist.get("/operations/releases/less/comparison").is(403).await;
}

#[apply(on_sqlite)]
async fn releases_measured_on_other_slots_are_compared_by_their_figures(db: TestDatabase) {
    let folder = two_releases();
    let less = folder.path().join("less");
    fs::remove_file(less.join("ranks.parquet")).unwrap();
    change(&less, |manifest| {
        manifest["files"].as_object_mut().unwrap().remove("ranks.parquet").unwrap();
    });
    let (service, admin, _) = start(&db, &folder).await;
    let html = admin.page("/operations/releases/less/comparison").await;
    assert!(html.contains("The releases were tested on different slots, so intervals are wider."), "{html}");
    let default = row(&html, "match → gsu <span class=\"chip\" aria-current=\"true\">default</span></th>");
    assert!(default[1].contains("−5.13") && default[1].contains("worse"), "{default:?}");
    assert!(
        html.contains("Where they differ most: types") && !html.contains("Where they differ most: cases")
    );

    fs::remove_file(less.join("evaluation.json")).unwrap();
    change(&less, |manifest| {
        manifest["files"].as_object_mut().unwrap().remove("evaluation.json").unwrap();
    });
    let html = service.signed_in(Role::Analyst).await.page("/operations/releases/less/comparison").await;
    assert!(html.contains("the release less has no file evaluation.json"), "{html}");
}

#[apply(on_sqlite)]
async fn activations_have_a_history_with_a_way_back(db: TestDatabase) {
    let folder = two_releases();
    let (service, admin, _) = start(&db, &folder).await;
    let none = admin.page("/operations/releases").await;
    assert!(!none.contains("Activations"), "{none}");
    admin.post("/operations/releases/less", &[("before", "demo")]).await;
    let html = admin.page("/operations/releases").await;
    let (_, history) = html.split_once("id=\"history\"").unwrap();
    let first = row(history, "<tbody>");
    assert_eq!(first[1..4], ["Some admin", "demo", "less"], "{first:?}");
    assert!(
        first[4].contains("action=\"/operations/releases/demo\"")
            && first[4].contains("Back to demo</button>"),
        "{first:?}"
    );
    assert!(first[4].contains("name=\"before\" value=\"less\""), "{first:?}");
    let analyst = service.signed_in(Role::Analyst).await.page("/operations/releases").await;
    assert!(analyst.contains("Some admin") && !analyst.contains("Back to demo"), "{analyst}");
    // Reloads do not crowd activations out.
    for _ in 0..101 {
        let entry = Entry::new("release.activate", "less", json!({"before": "less"}));
        service.store.audit().append(&entry, Timestamp::from_millis(1)).await.unwrap();
    }
    assert!(admin.page("/operations/releases").await.contains("Back to demo"));
    // A double click is no conflict.
    admin.post("/operations/releases/less", &[("before", "demo")]).is(303).await;
    // Back again: the newest comes first, and nothing leads to what is live.
    admin.post("/operations/releases/demo", &[("before", "less")]).await;
    let html = admin.page("/operations/releases").await;
    let (_, history) = html.split_once("id=\"history\"").unwrap();
    assert_eq!(row(history, "<tbody>")[2..4], ["less", "demo"]);
    assert_eq!(history.matches("Back to").count(), 1, "{history}");
}
