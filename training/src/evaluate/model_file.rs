//! Reads an ONNX file for evaluation in ONNX Runtime: metadata, and the input `features`.

use std::path::{Path, PathBuf};

use atelier_core::domain::{InvalidMethod, Method};
use atelier_engine::{inference::ModelError, onnx_runtime::OnnxRuntime};
use ort::session::Session;
use serde::{Deserialize, Serialize};

use crate::data::Data;

/// A method's name, parameters and the size of its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    pub method: Method,
    pub parameters: u64,
    pub bytes: u64,
}

/// Why a file cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("{path}: ONNX Runtime rejects it: {reason}", path = .path.display())]
    Runtime { path: PathBuf, reason: String },
    #[error("{path}: its metadata has no {key}, which a model of a release needs", path = .path.display())]
    Metadata { path: PathBuf, key: &'static str },
    #[error("{path}: its metadata has {found:?} for {key}, expected {expected}", path = .path.display())]
    Value { path: PathBuf, key: &'static str, found: String, expected: &'static str },
    #[error("{path}: {source}", path = .path.display())]
    Method { path: PathBuf, source: InvalidMethod },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("{path}: its {what} are {found}, expected {expected}", path = .path.display())]
    Shape { path: PathBuf, what: &'static str, found: String, expected: String },
}

/// Opens a file for one thread.
pub(super) fn open(runtime: &OnnxRuntime, path: &Path) -> Result<Session, Refusal> {
    let session = || Session::builder(runtime.environment())?.with_intra_threads(1)?.commit_from_file(path);
    session().map_err(|error| refused(path, &error))
}

/// Reads a file's metadata and size.
pub(super) fn about(path: &Path, session: &Session) -> Result<About, Refusal> {
    let method = entry(path, session, "method")?;
    let method = method.parse().map_err(|source| Refusal::Method { path: path.to_owned(), source })?;
    let parameters = entry(path, session, "parameters")?;
    let parameters = parameters.parse().map_err(|_| Refusal::Value {
        path: path.to_owned(),
        key: "parameters",
        found: parameters,
        expected: "a whole number",
    })?;
    let bytes = std::fs::metadata(path).map_err(|error| refused(path, &error))?.len();
    Ok(About { method, parameters, bytes })
}

/// One entry of a file's metadata.
pub(super) fn entry(path: &Path, session: &Session, key: &'static str) -> Result<String, Refusal> {
    let metadata = session.metadata().map_err(|error| refused(path, &error))?;
    metadata.custom(key).ok_or(Refusal::Metadata { path: path.to_owned(), key })
}

/// The input `features`: each feature's values, padded with zeros to the longest.
pub(super) fn features(data: &Data, outfits: impl Iterator<Item = u32>) -> ([usize; 3], Vec<i64>) {
    let mut rows = Vec::new();
    for outfit in outfits {
        let mut row = Vec::new();
        data.features_of(outfit, &mut row);
        rows.push(row);
    }
    let values = rows.iter().flatten().map(Vec::len).max().unwrap_or(0).max(1);
    let mut flat = Vec::new();
    for indices in rows.iter().flatten() {
        flat.extend(indices.iter().copied().map(i64::from));
        flat.extend(std::iter::repeat_n(0, values - indices.len()));
    }
    ([rows.len(), data.schema().features().len(), values], flat)
}

pub(super) fn refused(path: &Path, reason: &impl ToString) -> Refusal {
    Refusal::Runtime { path: path.to_owned(), reason: reason.to_string() }
}
