use serde_json::json;
use tempfile::TempDir;

use super::*;

const SCHEMA: &str =
    "name = \"small\"\n[[feature]]\nname = \"gender\"\nkind = \"category\"\nvalues = [\"female\"]\n";
const ARTICLES: &str = "{\"id\":\"a-2\",\"type\":\"coat\"}\n{\"id\":\"a-1\",\"type\":\"hat\"}\n";

/// A valid release in a folder of its own. `change` may alter the manifest and the folder before the manifest is
/// written.
fn release(change: impl FnOnce(&mut serde_json::Value, &Path)) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("spring");
    fs::create_dir(&folder).unwrap();
    let mut files = serde_json::Map::new();
    for (name, content) in
        [("schema.toml", SCHEMA), ("articles.jsonl", ARTICLES), ("none.onnx", "not read here")]
    {
        fs::write(folder.join(name), content).unwrap();
        let sha256 = digest::sha256_of_file(&folder.join(name)).unwrap();
        files.insert(name.into(), json!({"bytes": content.len(), "sha256": sha256}));
    }
    let mut manifest = json!({
        "format": 1, "name": "spring", "created": "2026-11-21T00:00:00Z", "commands": ["by hand"],
        "data": {"name": "by hand", "fingerprint": "00"},
        "schema": "schema.toml", "articles": "articles.jsonl", "default_method": "none",
        "methods": [{"method": "none", "file": "none.onnx", "parameters": 546_432}],
        "files": files,
    });
    change(&mut manifest, &folder);
    fs::write(folder.join(MANIFEST), manifest.to_string()).unwrap();
    (home, folder)
}

fn rejection(change: impl FnOnce(&mut serde_json::Value, &Path)) -> String {
    let (home, folder) = release(change);
    let error = Release::open(&folder).unwrap_err().to_string();
    error.replace(&format!("{}/", home.path().display()), "")
}

#[test]
fn a_valid_release_opens_in_vocabulary_order() {
    let (_home, folder) = release(|_, _| {});
    let release = Release::open(&folder).unwrap();
    assert_eq!(release.manifest().name, "spring");
    assert_eq!(release.vocabulary().index_of("a-2"), Some(0));
    assert_eq!(release.vocabulary().index_of("a-1"), Some(1));
    assert_eq!(release.articles()[1].kind(), "hat");
    assert_eq!(release.schema().context_width(), 32);
    assert_eq!(release.model_path(&release.manifest().methods[0]), folder.join("none.onnx"));
    assert_eq!(release.pair_path(&release.manifest().methods[0]), None);
}

#[test]
fn a_release_says_how_large_outfits_are_or_means_the_papers() {
    let sizes = |format: u32, line: &str| {
        let (_home, folder) = release(|manifest, folder| {
            manifest["format"] = format.into();
            let text = format!("{line}{SCHEMA}");
            fs::write(folder.join("schema.toml"), &text).unwrap();
            let sha256 = digest::sha256_of_file(&folder.join("schema.toml")).unwrap();
            manifest["files"]["schema.toml"] = json!({"bytes": text.len(), "sha256": sha256});
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
    let (_home, folder) = release(|manifest, _| {
        (manifest["format"], manifest["known"]) = (2.into(), 1.into());
    });
    let release = Release::open(&folder).unwrap();
    assert_eq!((release.vocabulary().len(), release.articles().len()), (1, 2));
    let composition = release.compose(&release.articles()[1].unpack());
    assert_eq!(composition, Composition::default(), "there is no encoder");
    let more = rejection(|manifest, _| (manifest["format"], manifest["known"]) = (2.into(), 3.into()));
    assert_eq!(more, "spring/articles.jsonl: 3 articles are known, but the release has 2");
}

#[test]
fn a_pair_file_is_checked_like_any_other() {
    let named = |manifest: &mut serde_json::Value| manifest["methods"][0]["pair"] = "none.pair.onnx".into();
    assert_eq!(
        rejection(|manifest, _| named(manifest)),
        "spring/release.json: the manifest names \"none.pair.onnx\" but has no size and SHA-256 under `files`"
    );
    let listed = |manifest: &mut serde_json::Value, folder: &Path| {
        named(manifest);
        let path = folder.join("none.pair.onnx");
        fs::write(&path, "halves").unwrap();
        let sha256 = digest::sha256_of_file(&path).unwrap();
        manifest["files"]["none.pair.onnx"] = json!({"bytes": 6, "sha256": sha256});
    };
    let changed = rejection(|manifest, folder| {
        listed(manifest, folder);
        fs::write(folder.join("none.pair.onnx"), "others").unwrap();
    });
    assert!(changed.starts_with("spring/none.pair.onnx: SHA-256 "), "{changed}");
    let (_home, folder) = release(|manifest, folder| listed(manifest, folder));
    let release = Release::open(&folder).unwrap();
    let entry = &release.manifest().methods[0];
    assert_eq!(release.pair_path(entry), Some(folder.join("none.pair.onnx")));
    assert_eq!(serde_json::to_value(entry).unwrap()["pair"], "none.pair.onnx");
}

#[test]
fn an_error_names_the_file_what_was_found_and_what_was_expected() {
    assert_eq!(
        rejection(|_, folder| fs::write(folder.join("none.onnx"), "cut").unwrap()),
        "spring/none.onnx: 3 bytes, the manifest says 13"
    );
    let changed = rejection(|_, folder| fs::write(folder.join("none.onnx"), "changed bytes").unwrap());
    assert!(changed.starts_with("spring/none.onnx: SHA-256 "), "{changed}");
    assert!(changed.contains(", the manifest says "), "{changed}");
    let missing = rejection(|_, folder| fs::remove_file(folder.join("none.onnx")).unwrap());
    assert!(missing.starts_with("spring/none.onnx: No such file"), "{missing}");
    assert_eq!(
        rejection(|manifest, _| manifest["format"] = 3.into()),
        "spring/release.json: format 3, expected 1 or 2"
    );
    assert_eq!(
        rejection(|manifest, _| manifest["known"] = 1.into()),
        "spring/release.json: the manifest names \"format 1\" but that has no tables, encoder or new articles; write \
         \"format\": 2"
    );
    assert_eq!(
        rejection(|manifest, _| manifest["name"] = "autumn".into()),
        "the folder spring holds a release called \"autumn\"; a release and its folder must have the same name"
    );
    assert_eq!(
        rejection(|manifest, _| manifest["default_method"] = "gsu".into()),
        "spring/release.json: the manifest names \"gsu\" but the default method is not among the methods"
    );
    assert_eq!(
        rejection(|manifest, _| manifest["methods"][0]["file"] = "gone.onnx".into()),
        "spring/release.json: the manifest names \"gone.onnx\" but has no size and SHA-256 under `files`"
    );
    let unknown = rejection(|manifest, _| manifest["methods"][0]["method"] = "Magic".into());
    assert!(unknown.contains("digits and hyphens, found \"Magic\""), "{unknown}");
}

#[test]
fn a_file_name_that_leaves_the_folder_is_rejected() {
    let error = rejection(|manifest, _| {
        manifest["files"]["../../etc/passwd"] = json!({"bytes": 1, "sha256": "00"});
    });
    assert_eq!(
        error,
        "spring/release.json: the manifest names \"../../etc/passwd\" but that is not a plain file name"
    );
}

#[test]
fn invalid_contents_are_rejected_even_if_their_digests_match() {
    fn rewrite(manifest: &mut serde_json::Value, folder: &Path, name: &str, content: &str) {
        fs::write(folder.join(name), content).unwrap();
        let sha256 = digest::sha256_of_file(&folder.join(name)).unwrap();
        manifest["files"][name] = json!({"bytes": content.len(), "sha256": sha256});
    }
    let schema = rejection(|manifest, folder| rewrite(manifest, folder, "schema.toml", "name = \"x\""));
    assert_eq!(schema, "spring/schema.toml: a schema has at least one [[feature]], found none");
    let twice = "{\"id\":\"a-1\",\"type\":\"hat\"}\n".repeat(2);
    let articles = rejection(|manifest, folder| rewrite(manifest, folder, "articles.jsonl", &twice));
    assert_eq!(articles, "spring/articles.jsonl: a vocabulary contains each article once, found a-1 twice");
    let broken = rejection(|manifest, folder| rewrite(manifest, folder, "articles.jsonl", "{\"id\":1}\n"));
    assert!(broken.starts_with("spring/articles.jsonl: line 1: "), "{broken}");
}

#[test]
fn a_folder_without_a_manifest_is_rejected() {
    let home = tempfile::tempdir().unwrap();
    let error = Release::open(home.path()).unwrap_err().to_string();
    assert!(error.contains("release.json is missing"), "{error}");
}
