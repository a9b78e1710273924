//! Releases whose files are whole and whose models would answer some customers wrongly: they are refused when loaded.

use std::{fs, path::Path};

use atelier::config::Limits;
use atelier_core::util::digest;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Service, models, releases::copy};
use crate::harness::{TestDatabase, apply, on_sqlite};

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
    let file = format!("{method}.onnx");
    let mut bytes = fs::read(release.join(&file)).unwrap();
    change(&mut bytes);
    fs::write(release.join(&file), &bytes).unwrap();
    let path = release.join("release.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["files"][&file]["sha256"] = json!(digest::sha256(&bytes));
    manifest["default_method"] = json!(method);
    manifest["methods"].as_array_mut().unwrap().retain(|entry| entry["method"] == method);
    fs::write(path, manifest.to_string()).unwrap();
}

/// Writes a float16 into a row.
fn write_in_row(bytes: &mut [u8], weight: &str, row: usize, number: u16) {
    // The name of the weight, the tag of its numbers, and their length in three bytes; a row has 128 numbers.
    let name = [weight.as_bytes(), b"\x4a"].concat();
    let start = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len() + 3;
    bytes[start + row * 256 + 14..][..2].copy_from_slice(&number.to_le_bytes());
}

/// The number that attention adds for padding becomes 0, so that padding counts as an article.
fn attend_padding(bytes: &mut [u8]) {
    let never = (-1e9_f32).to_le_bytes();
    let place = bytes.windows(4).position(|window| window == never).unwrap();
    bytes[place..][..4].fill(0);
}

async fn refusal(db: &TestDatabase, folder: &TempDir) -> String {
    let service = Service::start_in(db, Limits::default(), folder.path().to_owned()).await;
    let (status, problem) = service.ask("/releases/demo/activate", &json!({})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("release-refused")), "{problem}");
    problem["detail"].as_str().unwrap().to_owned()
}

#[apply(on_sqlite)]
async fn infinity_in_a_row_is_refused(db: TestDatabase) {
    const INFINITY: u16 = 0x7c00;
    for (weight, number, found) in [
        ("blocks.0.state.weight", INFINITY, "infinity"),
        ("transform.weight", INFINITY | 0x8000, "infinity"),
        ("blocks.0.state.weight", 0x7e00, "NaN"),
    ] {
        let folder = changed("gsu", |bytes| write_in_row(bytes, weight, 100, number));
        let detail = refusal(&db, &folder).await;
        assert!(detail.contains(&format!("demo/gsu.onnx: the weight `{weight}` holds {found}")), "{detail}");
    }
}

#[apply(on_sqlite)]
async fn attended_padding_is_refused(db: TestDatabase) {
    for method in ["none", "gsu", "universal"] {
        let detail = refusal(&db, &changed(method, |bytes| attend_padding(bytes))).await;
        let expected = format!("demo/{method}.onnx: its answer to the same question is different by ");
        assert!(detail.contains(&expected), "{detail}");
        assert!(
            detail.contains(" in a batch with longer outfits, expected the answer that it gives alone"),
            "{detail}"
        );
    }
}

#[apply(on_sqlite)]
async fn the_list_says_why_a_folder_is_refused(db: TestDatabase) {
    let folder = changed("gsu", |bytes| attend_padding(bytes));
    let release = folder.path().join("demo");
    copy(&models().join("demo"), &folder.path().join("cut"));
    let manifest = folder.path().join("cut/release.json");
    let text = fs::read_to_string(&manifest)
        .unwrap()
        .replace("\"name\": \"demo\",\n  \"created", "\"name\": \"cut\",\n  \"created");
    fs::write(manifest, text).unwrap();
    fs::write(folder.path().join("cut/c.onnx"), "short").unwrap();
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let list = async || service.json("/releases").await["releases"].take();
    let listed = list().await;
    let cut = listed[0]["refused"].as_str().expect("its files are looked at");
    assert!(cut.contains("cut/c.onnx: 5 bytes, the manifest says "), "{cut}");
    assert_eq!((&listed[1]["tried"], &listed[1]["refused"]), (&json!(false), &Value::Null), "{listed}");

    assert_eq!(service.ask("/releases/demo/activate", &json!({})).await.0, 409);
    let listed = list().await;
    let refused = listed[1]["refused"].as_str().expect("what loading found is remembered");
    assert!(refused.contains("in a batch with longer outfits"), "{refused}");
    assert_eq!((&listed[1]["tried"], &listed[1]["data"]), (&json!(true), &json!("demo")));

    // A changed folder is another matter.
    replace(&release, "gsu", |bytes| *bytes = fs::read(models().join("demo/gsu.onnx")).unwrap());
    let listed = list().await;
    assert_eq!((&listed[1]["tried"], &listed[1]["refused"]), (&json!(false), &Value::Null), "{listed}");
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    let listed = list().await;
    assert_eq!((&listed[1]["tried"], &listed[1]["refused"]), (&json!(true), &Value::Null), "{listed}");
}
