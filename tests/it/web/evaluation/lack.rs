//! Releases whose evaluation is missing or damaged.

use std::{fs, path::Path};

use atelier::config::Limits;
use atelier_core::domain::Role;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::text;
use crate::{
    harness::{TestDatabase, apply, on_sqlite},
    web::{Service, models},
};

/// A folder of releases with a changed demo release.
pub fn demo_but(change: impl FnOnce(&Path, &mut Value)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("demo");
    fs::create_dir(&demo).unwrap();
    for entry in fs::read_dir(models().join("demo")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, demo.join(path.file_name().unwrap())).unwrap();
    }
    let path = demo.join("release.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    // Few methods load faster, and this one is always among them.
    manifest["default_method"] = json!("gsu");
    change(&demo, &mut manifest);
    fs::write(path, manifest.to_string()).unwrap();
    folder
}

/// Changes a file, and the manifest with it.
pub fn replace(demo: &Path, manifest: &mut Value, name: &str, content: &[u8]) {
    fs::write(demo.join(name), content).unwrap();
    let digest: String =
        Sha256::digest(content).iter().fold(String::new(), |all, byte| format!("{all}{byte:02x}"));
    manifest["files"][name] = json!({"bytes": content.len(), "sha256": digest});
}

#[apply(on_sqlite)]
async fn missing_and_damaged_files_are_reported(db: TestDatabase) {
    let folder = demo_but(|demo, manifest| {
        // Fewer models load faster.
        manifest["methods"]
            .as_array_mut()
            .unwrap()
            .retain(|one| one["method"] == "none" || one["method"] == "gsu");
        manifest["files"].as_object_mut().unwrap().remove("evaluation.json");
        replace(demo, manifest, "ranks.parquet", b"PAR1 and nothing else PAR1");
    });
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let analyst = service.signed_in(Role::Analyst).await;
    let none = analyst.page("/evaluation/cases").await;
    assert!(none.contains("No release is live"), "{none}");

    service.releases.serve("demo").await.unwrap();
    for path in ["/evaluation", "/evaluation/segments"] {
        let html = analyst.page(path).await;
        assert!(html.contains("This release has no evaluation"), "{html}");
        assert!(html.contains("the release demo has no file evaluation.json"), "{html}");
        assert!(html.contains("atelier-training release"), "{html}");
    }
    for path in ["/evaluation/cases", "/evaluation/customers"] {
        let html = analyst.page(path).await;
        assert!(html.contains("ranks.parquet of the release demo cannot be read: "), "{html}");
    }
    analyst.get("/evaluation/cases.csv").is(404).await;

    // Invalid figures, and single answers that changed while they were served.
    let demo = folder.path().join("demo");
    let path = demo.join("release.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    replace(&demo, &mut manifest, "evaluation.json", b"{\"comparison\": 7}");
    replace(&demo, &mut manifest, "ranks.parquet", &fs::read(models().join("demo/ranks.parquet")).unwrap());
    fs::write(&path, manifest.to_string()).unwrap();
    service.releases.serve("demo").await.unwrap();
    let html = analyst.page("/evaluation").await;
    assert!(html.contains("evaluation.json of the release demo cannot be read: invalid type"), "{html}");
    fs::write(demo.join("ranks.parquet"), "short").unwrap();
    let html = analyst.page("/evaluation/cases").await;
    let bytes = fs::metadata(models().join("demo/ranks.parquet")).unwrap().len();
    assert!(html.contains(&format!("5 bytes, the manifest says {bytes}")), "{html}");
    // It is read again and then kept, not read for every page.
    fs::copy(models().join("demo/ranks.parquet"), demo.join("ranks.parquet")).unwrap();
    let whole = analyst.page("/evaluation/cases?known=no").await;
    assert!(text(&whole).contains("9,579 cases"), "{whole}");
    fs::remove_file(demo.join("ranks.parquet")).unwrap();
    // The pages differ in the tokens of their forms.
    assert_eq!(text(&analyst.page("/evaluation/cases?known=no").await), text(&whole));

    // Figures without single answers show everything but the curves.
    replace(
        &demo,
        &mut manifest,
        "evaluation.json",
        &fs::read(models().join("demo/evaluation.json")).unwrap(),
    );
    manifest["files"].as_object_mut().unwrap().remove("ranks.parquet");
    fs::write(&path, manifest.to_string()).unwrap();
    service.releases.serve("demo").await.unwrap();
    let html = analyst.page("/evaluation").await;
    assert!(html.contains("the release demo has no file ranks.parquet") && html.contains("3.040"), "{html}");
}
