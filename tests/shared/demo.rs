//! What the demo release has, and changed copies of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use atelier_core::{domain::Method, util::digest};
use atelier_files::Table;
use serde_json::{Value, json};

/// The methods of the demo release, in its order.
pub fn methods() -> Vec<Method> {
    Method::ALL.to_vec()
}

/// The folder of releases that has it.
pub fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// A table of a release.
pub fn rows<T: Table>(release: &Path) -> Result<Vec<T>> {
    let schema = atelier_files::read_folder_schema(release)?;
    let rows = atelier_files::read::<T>(&release.join(format!("{}.jsonl", T::NAME)), &schema)?;
    rows.map(|row| Ok(row?.value)).collect()
}

/// Copies a release into a new folder.
pub fn copy(release: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(release)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The same with another name of four letters, which fits into the models' metadata without moving a byte.
pub fn copy_as(name: &str, release: &Path, folder: &Path) -> Result<()> {
    // A metadata entry: the key `release`, then the value's tag and length.
    const NAME: &[u8] = b"release\x12\x04demo";
    let to = folder.join(name);
    copy(release, &to)?;
    for method in methods() {
        let file = format!("{method}.onnx");
        let mut bytes = fs::read(to.join(&file))?;
        let place = bytes.windows(NAME.len()).position(|window| window == NAME);
        let end = place.context("the release's name in the metadata")? + NAME.len();
        bytes[end - name.len()..end].copy_from_slice(name.as_bytes());
        put(&to, &file, &bytes)?;
    }
    edit(&to, |manifest| manifest["name"] = json!(name))
}

/// Replaces a file of a release, also in its manifest.
pub fn put(release: &Path, file: &str, bytes: &[u8]) -> Result<()> {
    fs::write(release.join(file), bytes)?;
    edit(release, |manifest| {
        manifest["files"][file] = json!({"bytes": bytes.len(), "sha256": digest::sha256(bytes)});
    })
}

/// Changes a release's manifest.
pub fn edit(release: &Path, change: impl FnOnce(&mut Value)) -> Result<()> {
    let path = release.join("release.json");
    let mut manifest = serde_json::from_slice(&fs::read(&path)?)?;
    change(&mut manifest);
    Ok(fs::write(path, serde_json::to_vec(&manifest)?)?)
}
