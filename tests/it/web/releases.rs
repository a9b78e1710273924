//! `/releases`, `/methods`, `/routing`.

use std::{
    fs,
    io::Write,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use atelier::{config::Limits, platform::db::Actor, releases as live_release};
use atelier_core::{domain::Role, util::digest::sha256};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::{Demo, Service, models};
use crate::{
    demo,
    harness::{Call, TestDatabase, apply, contract, on_sqlite},
};

#[apply(on_sqlite)]
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

#[apply(on_sqlite)]
async fn a_release_is_swapped_under_load(db: TestDatabase) {
    let folder = folder();
    crate::web::fill(&db).await;
    let service = Arc::new(Service::start_in(&db, Limits::default(), folder.path().to_owned()).await);
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

#[apply(on_sqlite)]
async fn routing_chooses_the_method_by_default(Demo(service): Demo) {
    let method = async |customer: Option<&str>| {
        let answer = service.ask_ok("/complete", &json!({"outfit": [null], "customer": customer})).await;
        (answer["method"].as_str().unwrap().to_owned(), answer["arm"].clone())
    };
    let routing = json!({"default_method": "np"});
    service.put("/routing", &routing).is(200).await;
    assert_eq!(method(None).await, ("np".into(), Value::Null));
    assert_eq!(service.json("/routing").await, routing);
    let named = service.ask_ok("/complete", &json!({"outfit": [null], "method": "c"})).await;
    assert_eq!((&named["method"], &named["arm"]), (&json!("c"), &Value::Null), "a named method answers");

    for (wrong, pointer) in
        [(json!({"default_method": "bert"}), "/default_method"), (json!({"experiment": {}}), "/experiment")]
    {
        let problem = service.put("/routing", &wrong).is(422).await.json();
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

#[apply(on_sqlite)]
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
    crate::web::fill(&db).await;
    let one = Service::start_in(&db, limits, folder.path().to_owned()).await;
    let other = Service::start_in(&db, limits, folder.path().to_owned()).await;
    assert!(other.releases.current().is_none());
    one.ask_ok("/releases/demo/activate", &json!({})).await;
    other.releases.refresh().await.unwrap();
    let answer = other.ask_ok("/complete", &json!({"outfit": [null]})).await;
    assert_eq!(answer["release"], "demo", "although it served nothing before");
    one.put("/routing", &json!({"default_method": "np"})).is(200).await;
    other.releases.refresh().await.unwrap();
    let answer = other.ask_ok("/complete", &json!({"outfit": [null]})).await;
    assert_eq!(answer["method"], "np");
}

/// An archive of entries with any path, as no tool would write it.
fn archive(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (kind, path, contents) in entries {
        let mut header = Header::new_ustar();
        header.set_entry_type(*kind);
        header.set_size(contents.len() as u64);
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name_literal("/etc/passwd").unwrap();
        }
        header.set_cksum();
        archive.append(&header, *contents).unwrap();
    }
    archive.into_inner().unwrap()
}

/// The demo release as `tar` packs it.
fn packed_demo() -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    archive.append_dir_all("demo", models().join("demo")).unwrap();
    archive.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn send(service: &Service, body: Vec<u8>, sha256: &str) -> Call {
    service.post("/releases", "application/gzip", body).header("x-content-sha256", sha256)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[apply(on_sqlite)]
async fn a_packed_release_is_added_and_not_activated(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), folder.path().join("models")).await;
    let packed = gzip(&packed_demo());
    let added = send(&service, packed.clone(), &sha256(&packed).to_uppercase()).is(201).await.json();
    assert_eq!(
        (&added["name"], &added["tried"], &added["refused"]),
        (&json!("demo"), &json!(true), &Value::Null)
    );
    assert_eq!(names(&folder.path().join("models")), ["demo"]);
    let listed = service.json("/releases").await;
    assert_eq!((&listed["active"], &listed["releases"][0]), (&Value::Null, &added));
    let entry = service.log(1).await.remove(0);
    assert_eq!((entry.actor, &*entry.action, &*entry.subject), (Actor::Service, "release.add", "demo"));
    assert_eq!(Value::from(entry.details), json!({"sha256": sha256(&packed)}));

    let problem = send(&service, packed.clone(), &sha256(&packed)).is(409).await.json();
    assert_eq!(
        problem["detail"],
        "there is a release demo already, and releases never change; give it another name"
    );
    let live = service.ask_ok("/releases/demo/activate", &json!({})).await;
    assert_eq!(live["release"], "demo");
    service.ask_ok("/complete", &json!({"outfit": [null, null]})).await;
}

#[apply(on_sqlite)]
async fn hostile_archives_leave_nothing(db: TestDatabase) {
    use EntryType as Type;
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("models");
    let limits = Limits { release_bytes: 32 << 20, ..Limits::default() };
    let service = Service::start_in(&db, limits, folder.clone()).await;
    let plain = |path| archive(&[(Type::Regular, path, b"x")]);
    let demo = packed_demo();
    let with = |entries: &[(EntryType, &str, &[u8])]| {
        let mut both = demo.clone();
        both.truncate(demo.len() - 1024);
        both.extend(archive(entries));
        both
    };
    let manifest = fs::read_to_string(models().join("demo/release.json")).unwrap();
    let renamed = manifest.replace("\"name\": \"demo\"", "\"name\": \"other\"");
    assert_ne!(manifest, renamed);
    let bomb = gzip(&archive(&[(Type::Regular, "demo/release.json", &vec![b' '; 64 << 20])]));
    let not_tar = "the body is not a complete tar archive, plain or compressed with gzip: ";
    let not_in_place = "is in the wrong place: an archive has one folder, NAME, with files, NAME/FILE";
    let cases: Vec<(Vec<u8>, u16, String)> = vec![
        (plain("../demo/release.json"), 422, format!("../demo/release.json {not_in_place}")),
        (plain("demo/../../escaped"), 422, format!("demo/../../escaped {not_in_place}")),
        (plain("/tmp/escaped"), 422, format!("/tmp/escaped {not_in_place}")),
        (plain("release.json"), 422, format!("release.json {not_in_place}")),
        (plain("demo/sub/release.json"), 422, format!("demo/sub/release.json {not_in_place}")),
        (plain(".demo/release.json"), 422, "a release's name has 1 to 128".into()),
        (plain("demo/.hidden"), 422, "demo/.hidden has no plain file name; leave it out".into()),
        (
            archive(&[(Type::Symlink, "demo/c.onnx", b"")]),
            422,
            "demo/c.onnx is neither a file nor a folder".into(),
        ),
        (
            archive(&[(Type::Link, "demo/c.onnx", b"")]),
            422,
            "demo/c.onnx is neither a file nor a folder".into(),
        ),
        (
            archive(&[(Type::Symlink, "demo", b""), (Type::Regular, "demo/x", b"")]),
            422,
            "demo is neither".into(),
        ),
        (
            archive(&[(Type::Fifo, "demo/c.onnx", b"")]),
            422,
            "demo/c.onnx is neither a file nor a folder".into(),
        ),
        (
            archive(&[(Type::XHeader, "x", b"26 path=../../../escaped\n"), (Type::Regular, "demo/x", b"")]),
            422,
            "the archive has file names or sizes that plain tar cannot hold".into(),
        ),
        (
            archive(&[(Type::Regular, "demo/a", b""), (Type::Regular, "other/a", b"")]),
            422,
            "the archive has two folders, demo and other; a release is one".into(),
        ),
        (
            archive(&[(Type::Regular, "demo/a", b""), (Type::Regular, "demo/a", b"")]),
            422,
            "demo/a appears twice".into(),
        ),
        (
            gzip(&archive(&[(Type::Regular, "demo/release.json", &vec![b' '; (16 << 20) + 1])])),
            422,
            "demo/release.json: 16777217 bytes, expected at most 16777216".into(),
        ),
        (plain("demo/c.onnx"), 422, "demo/release.json is missing".into()),
        (with(&[(Type::Regular, "demo/more.bin", b"x")]), 422, "demo/more.bin is not in the manifest".into()),
        (
            archive(&[(Type::Regular, "demo/release.json", renamed.as_bytes())]),
            422,
            "the folder demo holds a release called \"other\"".into(),
        ),
        (archive(&[(Type::Regular, "demo/release.json", manifest.as_bytes())]), 409, "demo/".into()),
        (demo[..demo.len() / 2].to_vec(), 422, String::new()),
        (gzip(&demo)[..100_000].to_vec(), 422, not_tar.into()),
        (b"{}".to_vec(), 422, not_tar.into()),
        (Vec::new(), 422, "the archive has no files".into()),
        (bomb, 422, "the archive has more than 33554432 bytes (limits.release_bytes)".into()),
        (vec![b' '; (32 << 20) + 1], 413, "the body is longer than this path's limit".into()),
    ];
    for (body, status, expected) in cases {
        let digest = sha256(&body);
        let answer = send(&service, body, &digest).await;
        let (found, problem) = (answer.status(), answer.json());
        assert_eq!(found, status, "{expected}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&expected) && !detail.contains(".upload"), "{expected}: {detail}");
        assert_eq!(names(&folder), [""; 0], "{expected}");
    }
    assert_eq!(names(outside.path()), ["models"]);
}

/// At the next upload or start. The folder of a process that still unpacks stays.
#[apply(on_sqlite)]
async fn what_a_killed_upload_left_is_removed(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, seconds| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.join("demo")).unwrap();
        let opened = fs::File::open(path).unwrap();
        opened.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        opened
    };
    let busy = make(".upload-busy", 60);
    busy.try_lock().unwrap();
    make(".upload-killed", 60);
    make(".upload-new", 0);
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    send(&service, Vec::new(), &sha256(b"")).is(422).await;
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, [".upload-busy", ".upload-new"]);
    make(".upload-busy", 25 * 3600);
    service.releases.remove_left_over();
    assert_eq!(names(folder.path()), [".upload-new"]);
}

#[apply(on_sqlite)]
async fn a_release_that_changed_on_its_way_is_refused(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let demo = packed_demo();
    let mut changed = demo.clone();
    let place = demo.windows(10).rposition(|bytes| bytes == b"safetensor").unwrap();
    changed[place + 1024] ^= 1;
    for (body, digest, status, expected) in [
        (changed.clone(), sha256(&changed), 409, "the manifest says"),
        (changed, sha256(&demo), 422, "the body has the SHA-256"),
        (demo.clone(), String::new(), 422, "expected the body's SHA-256, 64 hexadecimal digits, found \"\""),
    ] {
        let answer = send(&service, body, &digest).await;
        let (found, problem) = (answer.status(), answer.json());
        assert_eq!(found, status, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{problem}");
        assert_eq!(names(folder.path()), [""; 0]);
    }
    assert_eq!(service.log(1).await[0].action, "release.refused");
}
