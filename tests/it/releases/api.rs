//! `/releases`, `/methods`, `/routing`.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use atelier::{config::Limits, platform::db::Actor, releases as live_release};
use atelier_core::{domain::Role, util::digest::sha256};
use reqwest::Method;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use crate::{
    demo,
    harness::{
        Call, Demo, Html, Service, TestDatabase, apply, assert_has, contract, gzip, models, on_sqlite,
    },
};

#[apply(on_sqlite)]
async fn lists_the_methods_of_the_release(Demo(service): Demo) {
    let methods = service.json("/methods").await;
    assert_eq!(methods["release"], "demo");
    let listed = methods["methods"].as_array().unwrap();
    assert_eq!(listed.len(), demo::methods().len());
    let find = |name: &str| listed.iter().find(|method| method["method"] == name).unwrap();
    assert_has(find("none"), json!({"parameters": 546_432, "personal": false}));
    assert_has(find("gsu"), json!({"parameters": 921_856, "personal": true}));
    assert!(find("gsu")["metrics"]["recall_at_5"]["mean"].as_f64().unwrap() > 0.0);
    let releases = service.json("/releases").await;
    assert_eq!((&releases["active"], &releases["releases"][0]["data"]), (&json!("demo"), &json!("demo")));
}

/// A folder with the demo release, and one of another format.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&models().join("demo"), &folder.path().join("demo"));
    make_other_format(&folder.path().join("broken"));
    folder
}

pub fn make_other_format(release: &Path) {
    fs::create_dir(release).unwrap();
    fs::write(release.join("release.json"), "{\"format\":7}").unwrap();
}

pub fn copy(from: &Path, to: &Path) {
    demo::copy(from, to).unwrap();
}

pub fn change_manifest(release: &Path, change: impl FnOnce(&mut Value)) {
    demo::edit(release, change).unwrap();
}

fn activate(service: &Service, name: &str) -> Call {
    service.send(format!("/releases/{name}/activate"), json!({}))
}

/// What callers notice of a swap is asked by the experiment `swaps` of tests/reliability.
#[apply(on_sqlite)]
async fn a_refused_release_leaves_the_live_one(db: TestDatabase) {
    let folder = folder();
    let service = Service::filled(&db, &folder).await;
    let nowhere = activate(&service, "nowhere").is(404).await.json();
    assert_eq!(nowhere["code"], "not-found");
    let entry = service.log(1).await.remove(0);
    let expected = (Actor::Service, "release.refused", "nowhere");
    assert_eq!((entry.actor, &*entry.action, &*entry.subject), expected);
    assert_eq!(entry.details["reason"], nowhere["detail"]);
    // The second time it is loaded again.
    for _ in 0..2 {
        activate(&service, "demo").is(200).await;
        let problem = activate(&service, "broken").is(409).await.json();
        assert_eq!(problem["code"], "release-refused");
        problem["detail"].to_string().has(["format 7, expected 1"]);
        assert_eq!(service.complete(json!({"outfit": [null]})).await["release"], "demo");
    }
    let releases = service.json("/releases").await;
    assert_has(&releases, json!({"releases": [{"name": "broken"}, {"name": "demo"}]}));
    releases["releases"][0]["refused"].to_string().has(["format 7"]);
    let next = live_release::activated(&service.store).await.unwrap();
    assert_eq!(next.as_deref(), Some("demo"), "the next start serves it");
}

/// Reading a pipe takes for ever.
#[apply(on_sqlite)]
async fn special_files_in_a_release_are_refused(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    for (name, special) in [("manifest", "release.json"), ("model", "gsu.onnx"), ("schema", "schema.toml")] {
        let release = folder.path().join(name);
        copy(&models().join("demo"), &release);
        change_manifest(&release, |manifest| {
            manifest["name"] = json!(name);
            if special != "release.json" {
                manifest["files"][special]["bytes"] = json!(0);
            }
        });
        fs::remove_file(release.join(special)).unwrap();
        assert!(Command::new("mkfifo").arg(release.join(special)).status().unwrap().success());
    }
    let service = Service::of(&db, &folder).await;
    let listed = service.json("/releases").await["releases"].take();
    for release in listed.as_array().unwrap() {
        let refused = release["refused"].as_str().unwrap_or_default();
        assert!(refused.ends_with(": it is not a file with contents"), "{release}");
        let status = activate(&service, release["name"].as_str().unwrap()).await.status();
        assert!(matches!(status, 404 | 409), "{release}: {status}");
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
    let service = Service::of(&db, &folder).await;
    let path = folder.path().display();
    let reason =
        format!("{path}/spring/release.json is missing; a release is made with `atelier-training release`");
    let expected = json!([{"name": "spring", "methods": [], "tried": false, "refused": reason}]);
    assert_eq!(service.json("/releases").await["releases"], expected);
    activate(&service, "spring").is(404).await;
}

#[apply(contract)]
async fn a_replica_follows_an_activation(db: TestDatabase) {
    let [one, other] = [Service::filled(&db, models()).await, Service::of(&db, models()).await];
    assert!(other.releases.current().is_none());
    // Although it served nothing before.
    activate(&one, "demo").is(200).await;
    other.releases.refresh().await.unwrap();
    assert_eq!(other.ask_ok("/complete", json!({"outfit": [null]})).await["release"], "demo");
    one.put("/routing", json!({"default_method": "np"})).is(200).await;
    other.releases.refresh().await.unwrap();
    assert_eq!(other.ask_ok("/complete", json!({"outfit": [null]})).await["method"], "np");
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
    let service = Service::filled(&db, folder.path().join("models")).await;
    let packed = gzip(&packed_demo());
    let added = send(&service, packed.clone(), &sha256(&packed).to_uppercase()).is(201).await.json();
    assert_has(&added, json!({"name": "demo", "tried": true, "refused": null}));
    assert_eq!(names(&folder.path().join("models")), ["demo"]);
    let listed = service.json("/releases").await;
    assert_eq!((&listed["active"], &listed["releases"][0]), (&Value::Null, &added));
    let entry = service.log(1).await.remove(0);
    assert_eq!((entry.actor, &*entry.action, &*entry.subject), (Actor::Service, "release.add", "demo"));
    assert_eq!(Value::from(entry.details), json!({"sha256": sha256(&packed)}));

    // The page's script sends it with the session's token, and tells what the answer says.
    let admin = service.signed_in(Role::Admin).await;
    for (csrf, status) in [(String::new(), 403), (admin.session.form_token(), 409)] {
        let sent =
            admin.call(Method::POST, "/operations/releases").body("application/octet-stream", packed.clone());
        sent.header("x-csrf-token", csrf).header("x-content-sha256", sha256(&packed)).is(status).await;
    }
    let problem = send(&service, packed.clone(), &sha256(&packed)).is(409).await.json();
    let detail = "there is a release demo already, and releases never change; give it another name";
    assert_eq!(problem["detail"], detail);
    assert_eq!(activate(&service, "demo").ok().await["release"], "demo");
    service.ask_ok("/complete", json!({"outfit": [null, null]})).await;
}

#[apply(on_sqlite)]
async fn hostile_archives_leave_nothing(db: TestDatabase) {
    use EntryType as Type;
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("models");
    let limits = Limits { release_bytes: 32 << 20, ..Limits::default() };
    let service = Service::start_in(&db, limits, folder.clone()).await;
    let file = |path: &'static str| (Type::Regular, path, &b"x"[..]);
    let plain = |path| archive(&[file(path)]);
    let spaces = |count| gzip(&archive(&[(Type::Regular, "demo/release.json", &vec![b' '; count])]));
    let demo = packed_demo();
    let with_more = [&demo[..demo.len() - 1024], &plain("demo/more.bin")].concat();
    let manifest = fs::read_to_string(models().join("demo/release.json")).unwrap();
    let renamed = manifest.replace("\"name\": \"demo\"", "\"name\": \"other\"");
    assert_ne!(manifest, renamed);
    let with_manifest = |text: &str| archive(&[(Type::Regular, "demo/release.json", text.as_bytes())]);
    let long_path = &b"26 path=../../../escaped\n"[..];
    let not_tar = "the body is not a complete tar archive, plain or compressed with gzip: ";
    let refused = async |body: &[u8], digest: &str, status: u16, expected: &str| {
        let answer = send(&service, body.to_owned(), digest).await;
        let problem = answer.assert_problem(status, &[]);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(expected) && !detail.contains(".upload"), "{expected}: {detail}");
        assert_eq!(names(&folder), [""; 0], "{expected}");
    };
    let place = "is in the wrong place: an archive has one folder, NAME, with files, NAME/FILE";
    let no_file = "demo/c.onnx is neither a file nor a folder";
    for (body, status, expected) in [
        (plain("../demo/release.json"), 422, &*format!("../demo/release.json {place}")),
        (plain("demo/../../escaped"), 422, &*format!("demo/../../escaped {place}")),
        (plain("/tmp/escaped"), 422, &*format!("/tmp/escaped {place}")),
        (plain("release.json"), 422, &*format!("release.json {place}")),
        (plain("demo/sub/release.json"), 422, &*format!("demo/sub/release.json {place}")),
        (plain(".demo/release.json"), 422, "a release's name has 1 to 128"),
        (plain("demo/.hidden"), 422, "demo/.hidden has no plain file name; leave it out"),
        (archive(&[(Type::Symlink, "demo/c.onnx", b"")]), 422, no_file),
        (archive(&[(Type::Link, "demo/c.onnx", b"")]), 422, no_file),
        (archive(&[(Type::Fifo, "demo/c.onnx", b"")]), 422, no_file),
        (archive(&[(Type::Symlink, "demo", b""), file("demo/x")]), 422, "demo is neither"),
        (
            archive(&[(Type::XHeader, "x", long_path), file("demo/x")]),
            422,
            "the archive has file names or sizes that plain tar cannot hold",
        ),
        (
            archive(&[file("demo/a"), file("other/a")]),
            422,
            "the archive has two folders, demo and other; a release is one",
        ),
        (archive(&[file("demo/a"), file("demo/a")]), 422, "demo/a appears twice"),
        (spaces((16 << 20) + 1), 422, "demo/release.json: 16777217 bytes, expected at most 16777216"),
        (plain("demo/c.onnx"), 422, "demo/release.json is missing"),
        (with_more, 422, "demo/more.bin is not in the manifest"),
        (with_manifest(&renamed), 422, "the folder demo holds a release called \"other\""),
        (with_manifest(&manifest), 409, "demo/"),
        (demo[..demo.len() / 2].to_vec(), 422, ""),
        (gzip(&demo)[..100_000].to_vec(), 422, not_tar),
        (b"{}".to_vec(), 422, not_tar),
        (Vec::new(), 422, "the archive has no files"),
        (spaces(64 << 20), 422, "the archive has more than 33554432 bytes (limits.release_bytes)"),
        (vec![b' '; (32 << 20) + 1], 413, "the body is longer than this path's limit"),
    ] {
        refused(&body, &sha256(&body), status, expected).await;
    }
    // What changed on its way.
    let mut changed = demo.clone();
    let place = demo.windows(10).rposition(|bytes| bytes == b"safetensor").unwrap();
    changed[place + 1024] ^= 1;
    let no_digest = "expected the body's SHA-256, 64 hexadecimal digits, found \"\"";
    refused(&changed, &sha256(&changed), 409, "the manifest says").await;
    assert_eq!(service.log(1).await[0].action, "release.refused");
    refused(&changed, &sha256(&demo), 422, "the body has the SHA-256").await;
    refused(&demo, "", 422, no_digest).await;
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
    let service = Service::of(&db, &folder).await;
    send(&service, Vec::new(), &sha256(b"")).is(422).await;
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, [".upload-busy", ".upload-new"]);
    make(".upload-busy", 25 * 3600);
    service.releases.remove_left_over();
    assert_eq!(names(folder.path()), [".upload-new"]);
}
