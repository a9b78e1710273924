use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

const SCHEMA: &str =
    "name = \"small\"\n[[feature]]\nname = \"gender\"\nkind = \"category\"\nvalues = [\"female\"]\n";
const ARTICLES: &str = "{\"id\":\"a-2\",\"type\":\"coat\"}\n{\"id\":\"a-1\",\"type\":\"hat\"}\n";

/// Writes a file and its size and digest.
fn put(manifest: &mut Value, folder: &Path, name: &str, content: &str) {
    fs::write(folder.join(name), content).unwrap();
    let sha256 = digest::sha256_of_file(&folder.join(name)).unwrap();
    manifest["files"][name] = json!({"bytes": content.len(), "sha256": sha256});
}

/// A valid release in a folder of its own. `change` may alter the manifest and the folder before the manifest is
/// written.
fn release(change: impl FnOnce(&mut Value, &Path)) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("spring");
    fs::create_dir(&folder).unwrap();
    let mut manifest = json!({
        "format": 1, "name": "spring", "created": "2026-11-21T00:00:00Z", "commands": ["by hand"],
        "data": {"name": "by hand", "fingerprint": "00"},
        "schema": "schema.toml", "articles": "articles.jsonl", "default_method": "none",
        "methods": [{"method": "none", "file": "none.onnx", "parameters": 546_432}],
    });
    let files = [("schema.toml", SCHEMA), ("articles.jsonl", ARTICLES), ("none.onnx", "not read here")];
    for (name, content) in files {
        put(&mut manifest, &folder, name, content);
    }
    change(&mut manifest, &folder);
    fs::write(folder.join(MANIFEST), manifest.to_string()).unwrap();
    (home, folder)
}

fn rejection(change: impl FnOnce(&mut Value, &Path)) -> String {
    let (home, folder) = release(change);
    let error = Release::open(&folder).unwrap_err().to_string();
    error.replace(&format!("{}/", home.path().display()), "")
}

#[test]
fn a_release_says_how_large_outfits_are_or_means_the_papers() {
    let sizes = |format: u32, line: &str| {
        let (_home, folder) = release(|manifest, folder| {
            manifest["format"] = format.into();
            put(manifest, folder, "schema.toml", &format!("{line}{SCHEMA}"));
        });
        let OutfitSize { least, most } = Release::open(&folder).unwrap().schema().outfit_size();
        (least, most)
    };
    let twelve = "outfit = {least = 2, most = 12}\n";
    assert_eq!([sizes(1, ""), sizes(2, "")], [(4, 8), (4, 8)]);
    assert_eq!([sizes(1, twelve), sizes(2, twelve)], [(2, 8), (2, 12)], "format 1 has at most eight slots");
}

#[test]
fn articles_past_the_known_ones_are_not_in_the_vocabulary() {
    let (_home, folder) =
        release(|manifest, _| (manifest["format"], manifest["known"]) = (2.into(), 1.into()));
    let release = Release::open(&folder).unwrap();
    assert_eq!((release.vocabulary().len(), release.articles().len()), (1, 2));
    let composition = release.compose(&release.articles()[1].unpack());
    assert_eq!(composition, Composition::default(), "there is no encoder");
    let more = rejection(|manifest, _| (manifest["format"], manifest["known"]) = (2.into(), 3.into()));
    assert_eq!(more, "spring/articles.jsonl: 3 articles are known, but the release has 2");
}

type Change<'a> = &'a dyn Fn(&mut Value);

#[test]
fn a_manifest_that_contradicts_itself_is_rejected() {
    let pair = |manifest: &mut Value| manifest["methods"][0]["pair"] = "none.pair.onnx".into();
    let wrong: [(Change<'_>, &str); 8] = [
        (&|manifest| manifest["format"] = 3.into(), "format 3, expected 1 or 2"),
        (&|manifest| manifest["known"] = 1.into(), "tables, encoder or new articles; write \"format\": 2"),
        (&|manifest| manifest["name"] = "autumn".into(), "a release and its folder must have the same name"),
        (
            &|manifest| manifest["default_method"] = "gsu".into(),
            "the default method is not among the methods",
        ),
        (
            &|manifest| manifest["methods"][0]["file"] = "gone.onnx".into(),
            "names \"gone.onnx\" but has no size and SHA-256 under `files`",
        ),
        (&pair, "names \"none.pair.onnx\" but has no size and SHA-256 under `files`"),
        (&|manifest| manifest["methods"][0]["method"] = "Magic".into(), "and hyphens, found \"Magic\""),
        (
            &|manifest| manifest["files"]["../../etc/passwd"] = json!({"bytes": 1, "sha256": "00"}),
            "names \"../../etc/passwd\" but that is not a plain file name",
        ),
    ];
    for (change, expected) in wrong {
        let error = rejection(|manifest, _| change(manifest));
        let file = if expected.ends_with("same name") { "the folder spring " } else { "spring/release.json" };
        assert!(error.starts_with(file) && error.contains(expected), "{expected}: {error}");
    }
    let listed = |manifest: &mut Value, folder: &Path| {
        pair(manifest);
        put(manifest, folder, "none.pair.onnx", "halves");
    };
    let (_home, folder) = release(listed);
    let release = Release::open(&folder).unwrap();
    let entry = &release.manifest().methods[0];
    assert_eq!(release.pair_path(entry), Some(folder.join("none.pair.onnx")));
    assert_eq!(serde_json::to_value(entry).unwrap()["pair"], "none.pair.onnx");
    let changed = rejection(|manifest, folder| {
        listed(manifest, folder);
        fs::write(folder.join("none.pair.onnx"), "others").unwrap();
    });
    assert!(changed.starts_with("spring/none.pair.onnx: SHA-256 "), "{changed}");
}

#[test]
fn a_file_that_changed_or_is_invalid_is_named() {
    let twice = "{\"id\":\"a-1\",\"type\":\"hat\"}\n".repeat(2);
    for (name, content, is_listed, expected) in [
        ("none.onnx", "cut", false, "3 bytes, the manifest says 13"),
        ("none.onnx", "changed bytes", false, "SHA-256 "),
        ("schema.toml", "name = \"x\"", true, "a schema has at least one [[feature]], found none"),
        ("articles.jsonl", &twice, true, "a vocabulary contains each article once, found a-1 twice"),
        ("articles.jsonl", "{\"id\":1}\n", true, "line 1: "),
        ("articles.jsonl", "", true, "a vocabulary needs at least one article"),
    ] {
        let error = rejection(|manifest, folder| {
            let files = manifest["files"].clone();
            put(manifest, folder, name, content);
            if !is_listed {
                manifest["files"] = files;
            }
        });
        assert!(error.starts_with(&format!("spring/{name}: {expected}")), "{error}");
    }
    let missing = rejection(|_, folder| fs::remove_file(folder.join("none.onnx")).unwrap());
    assert!(missing.starts_with("spring/none.onnx: No such file"), "{missing}");
    let home = tempfile::tempdir().unwrap();
    let error = Release::open(home.path()).unwrap_err().to_string();
    assert!(error.contains("release.json is missing"), "{error}");
}
