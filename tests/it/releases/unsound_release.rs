//! Releases whose files are whole and whose models would answer some customers wrongly: they are refused when loaded.

use std::{fs, path::Path};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    harness::{Service, TestDatabase, apply, json::text, models, on_sqlite},
    outfits::api::change_file,
    releases::api::{change_manifest, copy},
};

/// A folder with a copy of the demo release with one method, and its model changed.
fn changed(method: &str, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("demo");
    copy(&models().join("demo"), &release);
    replace(&release, method, change);
    folder
}

/// Changes a method's model, and leaves the release only that method.
fn replace(release: &Path, method: &str, change: impl FnOnce(&mut Vec<u8>)) {
    change_file(release, &format!("{method}.onnx"), |mut bytes| {
        change(&mut bytes);
        bytes
    });
    change_manifest(release, |manifest| {
        manifest["default_method"] = json!(method);
        manifest["methods"].as_array_mut().unwrap().retain(|entry| entry["method"] == method);
    });
}

/// The number that attention adds for padding becomes 0, so that padding counts as an article.
fn attend_padding(bytes: &mut [u8]) {
    let never = (-1e9_f32).to_le_bytes();
    let place = bytes.windows(4).position(|window| window == never).unwrap();
    bytes[place..][..4].fill(0);
}

async fn refusal(db: &TestDatabase, folder: &TempDir) -> String {
    let service = Service::of(db, folder).await;
    let problem = service.send("/releases/demo/activate", json!({})).await.assert_problem(409, &[]);
    assert_eq!(problem["code"], "release-refused", "{problem}");
    text(&problem["detail"]).to_owned()
}

#[apply(on_sqlite)]
async fn attended_padding_is_refused(db: TestDatabase) {
    for method in ["none", "gsu", "universal"] {
        let detail = refusal(&db, &changed(method, |bytes| attend_padding(bytes))).await;
        let (_, said) = detail.split_once(&format!("demo/{method}.onnx: its answer to ")).expect(&detail);
        assert!(said.starts_with("the same question is different by "), "{detail}");
        assert!(said.contains(" in a batch with longer outfits, expected the answer that it gives alone"));
    }
}

#[apply(on_sqlite)]
async fn the_list_says_why_a_folder_is_refused(db: TestDatabase) {
    let folder = changed("gsu", |bytes| attend_padding(bytes));
    let cut = folder.path().join("cut");
    copy(&models().join("demo"), &cut);
    change_manifest(&cut, |manifest| manifest["name"] = json!("cut"));
    fs::write(cut.join("c.onnx"), "short").unwrap();
    let service = Service::of(&db, &folder).await;
    // Whether the release was tried, and why it is refused.
    let listed = async |place: usize| {
        let release = service.json("/releases").await["releases"][place].take();
        (release["tried"] == true, release["refused"].as_str().map(str::to_owned))
    };
    let refused = listed(0).await.1.expect("its files are looked at");
    assert!(refused.contains("cut/c.onnx: 5 bytes, the manifest says "), "{refused}");
    assert_eq!(listed(1).await, (false, None));

    service.send("/releases/demo/activate", json!({})).is(409).await;
    let (is_tried, refused) = listed(1).await;
    let refused = refused.expect("what loading found is remembered");
    assert!(is_tried && refused.contains("in a batch with longer outfits"), "{refused}");

    // A changed folder is another matter.
    let good = fs::read(models().join("demo/gsu.onnx")).unwrap();
    replace(&folder.path().join("demo"), "gsu", |bytes| *bytes = good);
    assert_eq!(listed(1).await, (false, None));
    service.ask_ok("/releases/demo/activate", json!({})).await;
    assert_eq!(listed(1).await, (true, None));
    assert_eq!(service.json("/releases").await["releases"][1]["data"], "demo");
}
