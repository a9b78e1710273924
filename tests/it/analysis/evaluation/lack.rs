//! Releases whose evaluation is missing or damaged.

use std::{fs, path::Path};

use atelier_core::{domain::Role, util::digest::sha256};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    analysis::evaluation::text,
    harness::{Html, Service, TestDatabase, apply, models, on_sqlite},
    releases::api::{change_manifest, copy},
};

/// A folder of releases with a changed demo release.
pub fn demo_but(change: impl FnOnce(&Path, &mut Value)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("demo");
    copy(&models().join("demo"), &demo);
    change_manifest(&demo, |manifest| {
        // Few methods load faster, and this one is always among them.
        manifest["default_method"] = json!("gsu");
        change(&demo, manifest);
    });
    folder
}

/// Leaves the release two methods, which load faster.
pub fn keep_two_methods(manifest: &mut Value) {
    let methods = manifest["methods"].as_array_mut().unwrap();
    methods.retain(|one| one["method"] == "none" || one["method"] == "gsu");
}

/// Changes a file, and the manifest with it.
pub fn replace(demo: &Path, manifest: &mut Value, name: &str, content: &[u8]) {
    fs::write(demo.join(name), content).unwrap();
    manifest["files"][name] = json!({"bytes": content.len(), "sha256": sha256(content)});
}

#[apply(on_sqlite)]
async fn missing_and_damaged_files_are_reported(db: TestDatabase) {
    let folder = demo_but(|demo, manifest| {
        keep_two_methods(manifest);
        manifest["files"].as_object_mut().unwrap().remove("evaluation.json");
        replace(demo, manifest, "ranks.parquet", b"PAR1 and nothing else PAR1");
    });
    let demo = folder.path().join("demo");
    let ranks = demo.join("ranks.parquet");
    let whole_file = |name: &str| fs::read(models().join("demo").join(name)).unwrap();
    let service = Service::of(&db, &folder).await;
    let analyst = service.signed_in(Role::Analyst).await;
    let shows = async |path: &str, texts: &[&str]| {
        analyst.page(path).await.has(texts);
    };
    shows("/evaluation/cases", &["No release is live"]).await;

    service.releases.serve("demo").await.unwrap();
    for path in ["/evaluation", "/evaluation/segments"] {
        let missing = "the release demo has no file evaluation.json";
        shows(path, &["This release has no evaluation", missing, "atelier-training release"]).await;
    }
    for path in ["/evaluation/cases", "/evaluation/customers"] {
        shows(path, &["ranks.parquet of the release demo cannot be read: "]).await;
    }
    analyst.get("/evaluation/cases.csv").is(404).await;

    // Invalid figures, and single answers that changed while they were served.
    change_manifest(&demo, |manifest| {
        replace(&demo, manifest, "evaluation.json", b"{\"comparison\": 7}");
        replace(&demo, manifest, "ranks.parquet", &whole_file("ranks.parquet"));
    });
    service.releases.serve("demo").await.unwrap();
    shows("/evaluation", &["evaluation.json of the release demo cannot be read: invalid type"]).await;
    fs::write(&ranks, "short").unwrap();
    let bytes = whole_file("ranks.parquet").len();
    shows("/evaluation/cases", &[&format!("5 bytes, the manifest says {bytes}")]).await;
    // It is read again and then kept, not read for every page.
    fs::write(&ranks, whole_file("ranks.parquet")).unwrap();
    let whole = text(&analyst.page("/evaluation/cases?known=no").await);
    whole.has(["9,579 cases"]);
    fs::remove_file(&ranks).unwrap();
    // The pages differ in the tokens of their forms.
    assert_eq!(text(&analyst.page("/evaluation/cases?known=no").await), whole);

    // Figures without single answers show everything but the curves.
    change_manifest(&demo, |manifest| {
        replace(&demo, manifest, "evaluation.json", &whole_file("evaluation.json"));
        manifest["files"].as_object_mut().unwrap().remove("ranks.parquet");
    });
    service.releases.serve("demo").await.unwrap();
    shows("/evaluation", &["the release demo has no file ranks.parquet", "3.040"]).await;
}
