//! A model as an ONNX file, written straight from its weights.
//!
//! The file keeps the contract of a release: inputs `articles`, `features`, `blank`; outputs `logits`,
//! and `personas` and `steps` where the method has them; the vector before the last dense layer is
//! called `hidden`; weights keep their names, and every float initialiser but the tables counts as
//! parameters. The drawing follows the very structure that training computes. It knows no run, no
//! metric and no release beyond its name.

mod adaptive;
mod draw;
mod graph;
mod layout;
mod pair;
mod proto;
mod tables;

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

/// Since 17, `LayerNormalization` is an operator.
const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;

/// How matrices are stored; the graph computes in float32 either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    Float32,
    Float16,
}

/// What the file says of itself beside its method and parameters.
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

/// Writes the model, and says how many parameters it has by the paper's count: without the embeddings
/// of articles and features, the personas, and the last dense layer.
pub fn export(model: &Model, metadata: &Metadata, path: &Path) -> Result<u64, ExportError> {
    write(draw(model, metadata.storage), model, metadata, &[], path)
}

/// Writes what the model says of two halves, next to what [`export`] writes, and counts its parameters in
/// the same way; nothing where the model does not judge pairs.
///
/// Inputs of the file: `first` and `second`, int64 `[batch, slots]`, and where the method is conditioned
/// `features`, int64 `[batch, features, values]`; output: `probability`, float32 `[batch]`, of having been
/// one outfit. The halves' order does not matter.
pub fn export_pair(model: &Model, metadata: &Metadata, path: &Path) -> Result<Option<u64>, ExportError> {
    let Some(graph) = pair::draw(model, metadata.storage) else { return Ok(None) };
    write(graph, model, metadata, &[("task", "pair")], path).map(Some)
}

/// Writes a graph with its metadata, and counts its parameters.
fn write(
    graph: GraphProto,
    model: &Model,
    metadata: &Metadata,
    more: &[(&str, &str)],
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
    metadata_props.extend(more.iter().map(|(key, value)| entry(key, value)));
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
    if !model.structure().tables.features.is_empty() {
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

/// Whether the paper's count leaves this tensor out.
fn is_table(name: &str) -> bool {
    matches!(name, "articles.weight" | "vocabulary.weight" | "vocabulary.bias" | "personas.weight")
        || name.starts_with("features.")
}

fn length(tensor: &TensorProto) -> u64 {
    tensor
        .dims
        .iter()
        .map(|length| u64::try_from(*length).expect("lengths are lengths; this is a bug"))
        .product()
}

#[cfg(test)]
mod tests;
