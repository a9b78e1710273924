//! `release.json`: what a release says of itself.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ReleaseError;
use crate::domain::Method;

/// The manifest's file name.
pub const MANIFEST: &str = "release.json";
/// Version of the manifest's shape.
pub const FORMAT: u32 = 1;

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
    /// Its ONNX file that says of two halves if they were one outfit, where it has one: one of the
    /// release's files, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
    pub parameters: u64,
    /// What was measured of it; free, because evaluations grow.
    #[serde(default)]
    pub metrics: Map<String, Value>,
}

/// What the release was trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSource {
    pub name: String,
    /// SHA-256 over the training data: two releases of one fingerprint can be compared.
    pub fingerprint: String,
}

/// The whole manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: u32,
    pub name: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// The commands that made it, in order.
    pub commands: Vec<String>,
    pub data: DataSource,
    /// The schema's file and the articles' file (in vocabulary order), both among `files`.
    pub schema: String,
    pub articles: String,
    pub default_method: Method,
    pub methods: Vec<MethodEntry>,
    /// Every file of the release but this one.
    pub files: BTreeMap<String, FileEntry>,
}

impl Manifest {
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, ReleaseError> {
        /// A manifest of another format need not have this one's fields, so this is looked at first.
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let json = |source| ReleaseError::Json { path: path.to_owned(), source };
        let Format { format } = serde_json::from_str(text).map_err(json)?;
        if format != FORMAT {
            return Err(ReleaseError::Format { path: path.to_owned(), found: format });
        }
        serde_json::from_str(text).map_err(json)
    }

    /// Whether what it names hangs together, before any other file is touched.
    pub(super) fn check_entries(&self, path: &Path) -> Result<(), ReleaseError> {
        let refuse = |name: &str, reason: &str| {
            let (path, name, reason) = (path.to_owned(), name.to_owned(), reason.to_owned());
            Err(ReleaseError::Entry { path, name, reason })
        };
        // A release is a flat folder: a name with a path in it could lead out of it.
        if let Some(name) = self.files.keys().find(|name| !is_plain(name)) {
            return refuse(name, "that is not a plain file name");
        }
        let of_methods = self.methods.iter().flat_map(|entry| [&entry.file].into_iter().chain(&entry.pair));
        let named = [&self.schema, &self.articles].into_iter().chain(of_methods);
        for name in named {
            if !self.files.contains_key(name) {
                return refuse(name, "has no size and SHA-256 under `files`");
            }
        }
        for (place, entry) in self.methods.iter().enumerate() {
            if self.methods[..place].iter().any(|earlier| earlier.method == entry.method) {
                return refuse(entry.method.as_str(), "it stands among the methods twice");
            }
        }
        if !self.methods.iter().any(|entry| entry.method == self.default_method) {
            return refuse(self.default_method.as_str(), "the default method is not among the methods");
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
