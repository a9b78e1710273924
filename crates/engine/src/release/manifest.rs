//! `release.json`, the manifest of a release.

use std::{collections::BTreeMap, io, path::Path};

use atelier_core::domain::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ReleaseError, invalid, read_text};

/// The file name of the manifest.
pub const MANIFEST: &str = "release.json";
/// The version of the format in which releases are written. In format 1 each model is one file, and only the vocabulary's
/// articles can be suggested; in format 2 tables stand next to the models.
pub const FORMAT: u32 = 2;
/// The formats that are read.
pub(super) const FORMATS: [u32; 2] = [1, FORMAT];

/// One file of the release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    pub bytes: u64,
    pub sha256: String,
}

/// One method of the release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodEntry {
    pub method: Method,
    /// Its ONNX file, one of the release's files.
    pub file: String,
    /// The tables of its articles, also one of the files; without them the ONNX file is whole: articles' numbers in,
    /// logits out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<String>,
    /// Its ONNX file that tells whether two halves belong to one outfit, if it has one. Also one of the release's
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
    pub parameters: u64,
    /// Measured figures. Any keys, so that evaluations can add some.
    #[serde(default)]
    pub metrics: Map<String, Value>,
}

/// The data of the training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSource {
    pub name: String,
    /// SHA-256 of the training data. Releases with the same fingerprint can be compared.
    pub fingerprint: String,
}

/// The contents of `release.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: u32,
    pub name: String,
    /// When the release was made, in RFC 3339.
    pub created: String,
    /// The commands that made the release, in order.
    pub commands: Vec<String>,
    pub data: DataSource,
    /// The schema's file, one of `files`.
    pub schema: String,
    /// The file of the articles in vocabulary order, one of `files`.
    pub articles: String,
    /// How many of these are the vocabulary; the others are new to the models. By default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<usize>,
    /// The file of the article encoder, one of `files`, with which tables say what any article is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    pub default_method: Method,
    pub methods: Vec<MethodEntry>,
    /// Every file of the release except the manifest.
    pub files: BTreeMap<String, FileEntry>,
}

impl Manifest {
    /// Reads a folder's manifest and checks it against itself and the folder's name. Reads no other file.
    pub fn read(folder: &Path) -> Result<Self, ReleaseError> {
        let path = folder.join(MANIFEST);
        let text = match read_text(&path) {
            Err(ReleaseError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(ReleaseError::NoManifest { path });
            }
            text => text?,
        };
        let manifest = Self::parse(&path, &text)?;
        if folder.file_name().is_none_or(|name| name != manifest.name.as_str()) {
            return Err(ReleaseError::Name { folder: folder.to_owned(), found: manifest.name });
        }
        manifest.check_entries(&path)?;
        Ok(manifest)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ReleaseError> {
        /// Checked first, because a manifest of another format may have other fields.
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let json = |source| ReleaseError::Json { path: path.to_owned(), source };
        let Format { format } = serde_json::from_str(text).map_err(json)?;
        if !FORMATS.contains(&format) {
            return Err(invalid(path, &format!("format {format}, expected 1 or {FORMAT}")));
        }
        serde_json::from_str(text).map_err(json)
    }

    /// Checks that the names in it are consistent.
    fn check_entries(&self, path: &Path) -> Result<(), ReleaseError> {
        let reject = |name: &str, reason: &str| {
            Err(invalid(path, &format!("the manifest names {name:?} but {reason}")))
        };
        // A release is a flat folder. A name with a path could lead out of it.
        if let Some(name) = self.files.keys().find(|name| !is_plain(name)) {
            return reject(name, "that is not a plain file name");
        }
        let models = self
            .methods
            .iter()
            .flat_map(|entry| [&entry.file].into_iter().chain(&entry.pair).chain(&entry.tables));
        let named = [&self.schema, &self.articles].into_iter().chain(&self.encoder).chain(models);
        for name in named {
            if !self.files.contains_key(name) {
                return reject(name, "has no size and SHA-256 under `files`");
            }
        }
        let has_more = self.known.is_some() || self.encoder.is_some();
        if self.format == 1 && (has_more || self.methods.iter().any(|entry| entry.tables.is_some())) {
            return reject("format 1", "that has no tables, encoder or new articles; write \"format\": 2");
        }
        for (position, entry) in self.methods.iter().enumerate() {
            if self.methods[..position].iter().any(|earlier| earlier.method == entry.method) {
                return reject(entry.method.as_str(), "lists it twice among the methods");
            }
        }
        if !self.methods.iter().any(|entry| entry.method == self.default_method) {
            return reject(self.default_method.as_str(), "the default method is not among the methods");
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name != MANIFEST
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}
