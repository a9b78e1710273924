//! Writes a model as an ONNX file.
//!
//! The file meets a release's contract: inputs `articles`, `features`, `blank`; outputs `logits`, and `personas` and
//! `steps` if the method has them. The input of the last dense layer is called `hidden`, weights keep their names, and
//! every float initialiser except the tables counts as parameters. The graph is drawn from the structure that
//! training computes. This module knows no run and no metric, and of a release only its name.

mod draw;
mod graph;
mod pair;
mod proto;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message;

use self::{
    draw::Drawing,
    graph::{Axis, tensor},
    proto::{DataType, GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, TensorProto},
};
use crate::model::Model;

/// The first opset with `LayerNormalization`.
const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;

/// The precision of stored matrices; the graph computes in float32 with both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    Float32,
    Float16,
}

/// The file's metadata apart from method and parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    pub release: String,
    pub storage: Storage,
}

/// The file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}", path = .path.display())]
pub struct ExportError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the model, and returns its parameters as the paper counts them: without the embeddings of articles and
/// features, the personas, and the last dense layer.
pub fn export(model: &Model, metadata: &Metadata, path: &Path) -> Result<u64, ExportError> {
    write(draw(model, metadata.storage), model, metadata, &[], path)
}

/// Writes the file that judges pairs, and returns its parameters, counted as by [`export`]; writes nothing if the
/// model does not judge pairs.
///
/// Inputs: `first` and `second`, int64 `[batch, slots]`, hold articles, blanks and padding anywhere; `features`,
/// int64 `[batch, features, values]`, exists if the method is conditioned. Output: `probability`, float32 `[batch]`,
/// of having been one outfit. The order of the halves does not matter.
pub fn export_pair(model: &Model, metadata: &Metadata, path: &Path) -> Result<Option<u64>, ExportError> {
    let Some(graph) = pair::draw(model, metadata.storage) else { return Ok(None) };
    write(graph, model, metadata, &[("task", "pair")], path).map(Some)
}

/// Writes a graph with its metadata, and returns its parameters.
fn write(
    graph: GraphProto,
    model: &Model,
    metadata: &Metadata,
    extra: &[(&str, &str)],
    path: &Path,
) -> Result<u64, ExportError> {
    let parameters = parameters(&graph);
    let entry =
        |key: &str, value: &str| StringStringEntryProto { key: key.to_owned(), value: value.to_owned() };
    let mut metadata_props = vec![
        entry("method", model.config().method.as_str()),
        entry("release", &metadata.release),
        entry("parameters", &parameters.to_string()),
    ];
    metadata_props.extend(extra.iter().map(|(key, value)| entry(key, value)));
    let file = ModelProto {
        ir_version: IR_VERSION,
        producer_name: "atelier-training".to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        metadata_props,
    };
    fs::write(path, file.encode_to_vec()).map_err(|source| ExportError { path: path.to_owned(), source })?;
    Ok(parameters)
}

fn draw(model: &Model, storage: Storage) -> GraphProto {
    let config = model.config();
    let mut drawing = Drawing::new(model, storage == Storage::Float16);
    let output = model.structure().forward(&mut drawing);
    drawing.head(output);
    let batch = Axis::Named("batch");
    let mut inputs = vec![tensor("articles", DataType::Int64, &[batch, Axis::Named("slots")])];
    let tables = &model.structure().tables;
    if !(tables.features.is_empty() && tables.matched.is_empty()) {
        let axes = [batch, Axis::Fixed(config.features.len()), Axis::Named("values")];
        inputs.push(tensor("features", DataType::Int64, &axes));
    }
    inputs.push(tensor("blank", DataType::Int64, &[batch]));
    let mut outputs = vec![tensor("logits", DataType::Float, &[batch, Axis::Fixed(config.articles)])];
    if output.personas.is_some() {
        outputs.push(tensor("personas", DataType::Float, &[batch, Axis::Fixed(config.personas)]));
    }
    if output.steps.is_some() {
        outputs.push(tensor("steps", DataType::Float, &[batch]));
    }
    drawing.finish(config.method.as_str(), inputs, outputs)
}

fn parameters(graph: &GraphProto) -> u64 {
    graph.initializer.iter().filter(|tensor| !is_table(&tensor.name)).map(length).sum()
}

/// Whether the paper does not count this tensor.
fn is_table(name: &str) -> bool {
    matches!(name, "articles.weight" | "vocabulary.weight" | "vocabulary.bias" | "personas.weight")
        || name.starts_with("features.")
        || name.starts_with("match.")
        || name.starts_with("memory.")
}

fn length(tensor: &TensorProto) -> u64 {
    tensor
        .dims
        .iter()
        .map(|length| u64::try_from(*length).expect("dimensions are not negative; this is a bug"))
        .product()
}

#[cfg(test)]
mod tests;
