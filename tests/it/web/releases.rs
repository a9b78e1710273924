//! `/releases`, `/methods`, `/routing`.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use atelier::{config::Limits, service::live_release};
use atelier_core::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Demo, Service, models};
use crate::{
    demo,
    harness::{TestDatabase, apply, contract, on_sqlite},
};

#[apply(contract)]
async fn lists_the_methods_of_the_release(Demo(service): Demo) {
    let methods = service.json("/methods").await;
    assert_eq!(methods["release"], "demo");
    let listed = methods["methods"].as_array().unwrap();
    assert_eq!(listed.len(), demo::methods().len());
    let of = |name: &str| listed.iter().find(|method| method["method"] == name).unwrap();
    assert_eq!((&of("none")["parameters"], &of("gsu")["parameters"]), (&json!(546_432), &json!(921_856)));
    assert_eq!((&of("none")["personal"], &of("gsu")["personal"]), (&json!(false), &json!(true)));
    assert!(of("gsu")["metrics"]["recall_at_5"]["mean"].as_f64().unwrap() > 0.0);
    let releases = service.json("/releases").await;
    assert_eq!(releases["active"], "demo");
    assert_eq!(releases["releases"][0]["data"], "demo");
}

/// A folder with the demo release, a copy by another name, and one with a truncated file.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["demo", "broken"] {
        copy(&models().join("demo"), &folder.path().join(name));
    }
    fs::write(folder.path().join("broken/release.json"), "{\"format\":7}").unwrap();
    folder
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[apply(contract)]
async fn a_release_is_swapped_under_load(db: TestDatabase) {
    let folder = folder();
    let service = Arc::new(Service::start_in(&db, Limits::default(), folder.path().to_owned()).await);
    service.bring_in_demo().await;
    let (status, problem) = service.ask("/releases/nowhere/activate", &json!({})).await;
    assert_eq!((status, &problem["code"]), (404, &json!("not-found")), "{problem}");
    service.ask_ok("/releases/demo/activate", &json!({})).await;

    let (done, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (service, done, served) = (service.clone(), done.clone(), served.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let answer =
                        service.ask_ok("/complete", &json!({"outfit": [null, null, null, null]})).await;
                    assert_eq!(answer["release"], "demo");
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..2 {
        // The same release, loaded again.
        service.ask_ok("/releases/demo/activate", &json!({})).await;
        let (status, problem) = service.ask("/releases/broken/activate", &json!({})).await;
        assert_eq!((status, &problem["code"]), (409, &json!("release-refused")));
        assert!(problem["detail"].as_str().unwrap().contains("format 7, expected 1"), "{problem}");
    }
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(served.load(Ordering::Relaxed) > 10);
    let releases = service.json("/releases").await;
    let names: Vec<&Value> =
        releases["releases"].as_array().unwrap().iter().map(|release| &release["name"]).collect();
    assert_eq!(names, ["broken", "demo"]);
    assert!(releases["releases"][0]["refused"].as_str().unwrap().contains("format 7"));
    assert_eq!(
        live_release::activated(&service.store).await.unwrap().as_deref(),
        Some("demo"),
        "the next start serves it"
    );
}

#[apply(contract)]
async fn routing_chooses_the_method_by_default(Demo(service): Demo) {
    let method = async |customer: Option<&str>| {
        let answer = service.ask_ok("/complete", &json!({"outfit": [null], "customer": customer})).await;
        (answer["method"].as_str().unwrap().to_owned(), answer["arm"].clone())
    };
    let routing = json!({"default_method": "np"});
    assert_eq!(service.put("/routing", &routing).await.status(), 200);
    assert_eq!(method(None).await, ("np".into(), Value::Null));
    assert_eq!(service.json("/routing").await, routing);
    let named = service.ask_ok("/complete", &json!({"outfit": [null], "method": "c"})).await;
    assert_eq!((&named["method"], &named["arm"]), (&json!("c"), &Value::Null), "a named method answers");

    for (wrong, pointer) in
        [(json!({"default_method": "bert"}), "/default_method"), (json!({"experiment": {}}), "/experiment")]
    {
        let answer = service.put("/routing", &wrong).await;
        assert_eq!(answer.status(), 422);
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}

/// Reading a pipe takes for ever.
#[apply(on_sqlite)]
async fn special_files_in_a_release_are_refused(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    for (name, special) in [("manifest", "release.json"), ("model", "gsu.onnx"), ("schema", "schema.toml")] {
        let release = folder.path().join(name);
        copy(&models().join("demo"), &release);
        let path = release.join("release.json");
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        manifest["name"] = json!(name);
        if special != "release.json" {
            manifest["files"][special]["bytes"] = json!(0);
        }
        fs::write(&path, manifest.to_string()).unwrap();
        fs::remove_file(release.join(special)).unwrap();
        pipe(&release.join(special));
    }
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let listed = service.json("/releases").await["releases"].take();
    for release in listed.as_array().unwrap() {
        let refused = release["refused"].as_str().unwrap_or_default();
        assert!(refused.ends_with(": it is not a file with contents"), "{release}");
        let path = format!("/releases/{}/activate", release["name"].as_str().unwrap());
        let (status, problem) = service.ask(&path, &json!({})).await;
        assert!(matches!(status, 404 | 409), "{problem}");
    }
    assert_eq!(listed.as_array().map(Vec::len), Some(3));
}

#[apply(contract)]
async fn folders_that_are_no_releases_are_listed_with_the_reason(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["spring", ".trash", "lost+found"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("notes.txt"), "").unwrap();
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let reason = format!(
        "{}/spring/release.json is missing; a release is made with `atelier-training release`",
        folder.path().display()
    );
    let expected = json!([{"name": "spring", "methods": [], "tried": false, "refused": reason}]);
    assert_eq!(service.json("/releases").await["releases"], expected);
    let admin = service.signed_in(Role::Admin).await;
    for path in ["/operations/releases", "/operations/releases/spring"] {
        let page = admin.page(path).await;
        assert!(page.contains("spring/release.json is missing"), "{page}");
    }
    assert_eq!(service.ask("/releases/spring/activate", &json!({})).await.0, 404);
}

#[apply(contract)]
async fn a_replica_follows_an_activation(db: TestDatabase) {
    let folder = folder();
    let limits = Limits::default();
    let one = Service::start_in(&db, limits, folder.path().to_owned()).await;
    let other = Service::start_in(&db, limits, folder.path().to_owned()).await;
    one.bring_in_demo().await;
    assert!(other.releases.current().is_none());
    one.ask_ok("/releases/demo/activate", &json!({})).await;
    other.releases.refresh().await.unwrap();
    let answer = other.ask_ok("/complete", &json!({"outfit": [null]})).await;
    assert_eq!(answer["release"], "demo", "although it served nothing before");
    assert_eq!(one.put("/routing", &json!({"default_method": "np"})).await.status(), 200);
    other.releases.refresh().await.unwrap();
    let answer = other.ask_ok("/complete", &json!({"outfit": [null]})).await;
    assert_eq!(answer["method"], "np");
}
