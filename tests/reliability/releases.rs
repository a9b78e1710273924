//! A folder of releases: the demo release, and copies of it, each broken in its own way.
//!
//! A copy's name has four letters like `demo`, so that it fits into the ONNX files' metadata without moving a byte: a
//! copy is refused for its damage, not for its name.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::json;
use tempfile::TempDir;

use crate::demo::{copy, edit, methods, models, put};

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
    let at = |name: &str| folder.path().join(name);
    copy(&models().join("demo"), &at("demo"))?;
    for (name, _) in BROKEN {
        copy(&at("demo"), &at(name))?;
        rename(&at(name), name)?;
    }
    let mut bytes = fs::read(at("nan1").join(MODEL))?;
    let middle = bytes.len() / 2;
    fs::write(at("cut1").join(MODEL), &bytes[..middle])?;
    fs::remove_file(at("miss").join(MODEL))?;
    // Two bytes of 0x7e are NaN as a float16, however they are aligned.
    bytes[middle..middle + 4000].fill(0x7e);
    put(&at("nan1"), MODEL, &bytes)?;
    // The manifest does not say so.
    fs::write(at("hash").join(MODEL), bytes)?;
    Ok(folder)
}

/// Gives the release another name of four letters.
fn rename(folder: &Path, name: &str) -> Result<()> {
    // A metadata entry: the key `release`, then the value's tag and length.
    const NAME: &[u8] = b"release\x12\x04demo";
    for method in methods() {
        let file = format!("{method}.onnx");
        let mut bytes = fs::read(folder.join(&file))?;
        let place = bytes.windows(NAME.len()).position(|window| window == NAME);
        let end = place.context("the release's name in the metadata")? + NAME.len();
        bytes[end - name.len()..end].copy_from_slice(name.as_bytes());
        put(folder, &file, &bytes)?;
    }
    edit(folder, |manifest| manifest["name"] = json!(name))
}
