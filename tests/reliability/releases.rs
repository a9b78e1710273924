//! A folder of releases: the demo release, and copies of it, each broken in its own way.
//!
//! A copy's name has four letters like `demo`, so that it fits into the ONNX files' metadata without moving a byte: a
//! copy is refused for its damage, not for its name.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A broken copy's name, and a word of the expected message.
pub const BROKEN: [(&str, &str); 4] = [
    ("nan1", "holds NaN"),
    ("cut1", "bytes, the manifest says"),
    ("hash", "SHA-256"),
    ("miss", "No such file"),
];

const MODEL: &str = "gsu.onnx";

pub fn folder() -> Result<TempDir> {
    let folder = TempDir::new()?;
    let demo = super::server::models().join("demo");
    let at = |name: &str| folder.path().join(name);
    copy(&demo, &at("demo"))?;
    for (name, _) in BROKEN {
        copy(&demo, &at(name))?;
        rename(&at(name), name)?;
    }
    let model = |name: &str| at(name).join(MODEL);
    let whole = fs::read(model("cut1"))?;
    let middle = whole.len() / 2;
    fs::write(model("cut1"), &whole[..middle])?;
    let mut flipped = fs::read(model("hash"))?;
    flipped[middle] ^= 1;
    fs::write(model("hash"), flipped)?;
    fs::remove_file(model("miss"))?;
    // Two bytes of 0x7e are NaN as a float16, however they are aligned.
    let mut nan = fs::read(model("nan1"))?;
    nan[middle..middle + 4000].fill(0x7e);
    fs::write(model("nan1"), nan)?;
    seal(&at("nan1"))?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in from.read_dir()? {
        let path = entry?.path();
        fs::copy(&path, to.join(path.file_name().context("a file")?))?;
    }
    Ok(())
}

/// Gives the release another name of four letters.
fn rename(folder: &Path, name: &str) -> Result<()> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "onnx") {
            let mut bytes = fs::read(&path)?;
            // A metadata entry: the key `release`, then the value's tag and length.
            let place = find(&bytes, b"release\x12\x04demo").context("the release's name in the metadata")?;
            bytes[place + 9..place + 13].copy_from_slice(name.as_bytes());
            fs::write(&path, bytes)?;
        }
    }
    edit(folder, |manifest| manifest["name"] = json!(name))?;
    seal(folder)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Updates the digests in the manifest.
fn seal(folder: &Path) -> Result<()> {
    edit(folder, |manifest| {
        let files = manifest["files"].as_object_mut().expect("a manifest lists its files");
        for (name, entry) in files {
            let bytes = fs::read(folder.join(name)).expect("a listed file is there");
            *entry = json!({"bytes": bytes.len(), "sha256": hex::encode(Sha256::digest(&bytes))});
        }
    })
}

fn edit(folder: &Path, change: impl FnOnce(&mut Value)) -> Result<()> {
    let path = folder.join("release.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
    change(&mut manifest);
    Ok(fs::write(path, serde_json::to_vec_pretty(&manifest)?)?)
}
