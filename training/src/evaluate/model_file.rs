//! An ONNX file with the inputs and outputs of a release's models, open in ONNX Runtime.

use std::path::{Path, PathBuf};

use atelier::{
    domain::{Method, UnknownMethod},
    models::onnx_runtime::OnnxRuntime,
};
use ort::{
    session::{Session, SessionInputs},
    value::Tensor,
};
use serde::{Deserialize, Serialize};

use crate::{data::Data, evaluate::Case};

/// A file's metadata and size.
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
    Method { path: PathBuf, source: UnknownMethod },
    #[error("{path}: its {what} are {found}, expected {expected}", path = .path.display())]
    Shape { path: PathBuf, what: &'static str, found: String, expected: String },
}

/// One session; each thread has its own.
#[derive(Debug)]
pub(super) struct ModelFile {
    path: PathBuf,
    session: Session,
    takes_features: bool,
    gives_steps: bool,
}

impl ModelFile {
    pub(super) fn open(runtime: &OnnxRuntime, path: &Path) -> Result<Self, Refusal> {
        let session = open(runtime, path)?;
        let has = |names: &[ort::value::Outlet], name: &str| names.iter().any(|outlet| outlet.name() == name);
        let takes_features = has(session.inputs(), "features");
        let gives_steps = has(session.outputs(), "steps");
        Ok(Self { path: path.to_owned(), session, takes_features, gives_steps })
    }

    pub(super) fn about(&self) -> Result<About, Refusal> {
        about(&self.path, &self.session)
    }

    /// Asks about cases of outfits of one length. Calls `take` with each case's index, its logits, one per
    /// article, and its steps, if the file has that output.
    pub(super) fn ask(
        &mut self,
        data: &Data,
        cases: &[Case],
        mut take: impl FnMut(usize, &[f32], Option<f32>),
    ) -> Result<(), Refusal> {
        let (articles, blanks) = outfits(data, cases);
        let slots = articles.len() / cases.len();
        let tensors = || -> ort::Result<_> {
            let mut inputs = vec![
                ("articles", Tensor::from_array(([cases.len(), slots], articles))?),
                ("blank", Tensor::from_array(([cases.len()], blanks))?),
            ];
            if self.takes_features {
                let (shape, features) = features(data, cases.iter().map(|case| case.outfit));
                inputs.push(("features", Tensor::from_array((shape, features))?));
            }
            Ok(inputs)
        };
        let refuse = |error: ort::Error| refused(&self.path, &error);
        let inputs = SessionInputs::from(tensors().map_err(refuse)?);
        let outputs = self.session.run(inputs).map_err(refuse)?;
        let floats = |name: &'static str, columns: &[usize]| {
            let (shape, values) = outputs[name].try_extract_tensor::<f32>().map_err(refuse)?;
            let expected: Vec<i64> = std::iter::once(&cases.len())
                .chain(columns)
                .map(|length| i64::try_from(*length).expect("lengths are small; this is a bug"))
                .collect();
            if shape[..] != expected[..] {
                let (found, expected) = (format!("{shape:?}"), format!("{expected:?}"));
                return Err(Refusal::Shape { path: self.path.clone(), what: name, found, expected });
            }
            Ok(values)
        };
        let articles = data.vocabulary().len();
        let logits = floats("logits", &[articles])?;
        let steps = if self.gives_steps { floats("steps", &[])? } else { &[] };
        for (index, row) in logits.chunks_exact(articles).enumerate() {
            take(index, row, steps.get(index).copied());
        }
        Ok(())
    }
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

/// The inputs `articles` and `blank`.
fn outfits(data: &Data, cases: &[Case]) -> (Vec<i64>, Vec<i64>) {
    let mut articles = Vec::new();
    for case in cases {
        let start = articles.len();
        articles.extend(data.outfits().articles(case.outfit).iter().copied().map(i64::from));
        articles[start + case.slot as usize] = data.vocabulary().blank().into();
    }
    (articles, cases.iter().map(|case| case.slot.into()).collect())
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
