//! A folder of releases: the demo release, and copies of it, each broken in its own way, and none in its name.

use std::fs;

use anyhow::Result;
use tempfile::TempDir;

use crate::demo::{copy, copy_as, models, put};

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
        copy_as(name, &at("demo"), folder.path())?;
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
