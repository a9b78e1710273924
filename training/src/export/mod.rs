//! Writes a model as a release has it: the trunk as ONNX, and its tables next to it.
//!
//! The trunk reads the rows of visible articles and the customer's context, and its output `hidden` is what the last
//! dense layer reads. The tables hold what rows are made of, and the last layer. `whole` joins both into a file that
//! takes articles' numbers and gives logits. Every float initialiser except the tables counts as parameters. The graph is
//! drawn from the structure that training computes. This module knows no run and no metric, and of a release only its
//! name.

mod baseline;
mod draw;
mod graph;
mod pair;
pub(crate) mod proto;
mod read;
mod tables;
mod whole;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use atelier_core::domain::Method;
use atelier_engine::tables::{Composition, Tables};
use clap::ValueEnum;
use prost::Message;

pub(crate) use self::read::read_weights;
use self::{
    draw::Drawing,
    graph::{Axis, tensor},
    proto::{DataType, GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, TensorProto},
};
use crate::{
    baselines::{Cooccurrence, Logit, Pairs, Popularity},
    data::Data,
    model::Model,
};

/// The first opset with `LayerNormalization`.
const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;
/// A protobuf message holds less than 2 GiB.
const MOST_BYTES: usize = 2_000_000_000;

/// The precision of stored matrices; the graph computes in float32 with all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Storage {
    Float32,
    Float16,
    /// Tables in eight bits with one scale for each row, ONNX files in float16.
    Int8,
}

impl Storage {
    /// Whether ONNX files hold float16.
    fn is_half(self) -> bool {
        self != Self::Float32
    }
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

/// Writes the trunk to `path` and the tables next to it, and returns the parameters as the paper counts them: without the
/// embeddings of articles and features, the personas, and the last dense layer.
pub fn export(model: &Model, metadata: &Metadata, path: &Path) -> Result<u64, ExportError> {
    tables::write(model, metadata.storage, &tables_path(path))?;
    let layers = model.structure().context_layers();
    let params = layers.iter().flat_map(|layer| [Some(layer.weight), layer.bias]).flatten();
    let beside = params.map(|param| model.weights().tensor(param).data.len() as u64).sum();
    write(draw(model, metadata.storage), beside, model.config().method, metadata, &[], path)
}

/// Where the tables of a trunk are.
pub fn tables_path(trunk: &Path) -> PathBuf {
    trunk.with_extension("safetensors")
}

/// Joins a trunk and its tables into one file: articles' numbers in, logits out. `articles` are what those of the
/// vocabulary are made of.
///
/// # Errors
/// If the trunk cannot be read or the file cannot be written.
pub fn export_whole(
    trunk: &Path,
    tables: &Tables,
    articles: &[Composition],
    storage: Storage,
    path: &Path,
) -> Result<(), ExportError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ExportError { path, source }
    };
    let bytes = fs::read(trunk).map_err(failed(trunk))?;
    let proto = ModelProto::decode(bytes.as_slice()).map_err(io::Error::other).map_err(failed(trunk))?;
    let file = whole::join(&proto, tables, articles, storage.is_half());
    fs::write(path, file.encode_to_vec()).map_err(failed(path))
}

/// Writes the file that judges pairs, and returns its parameters, counted as by [`export`]; writes nothing if the
/// model does not judge pairs.
///
/// Inputs: `first` and `second`, int64 `[batch, slots]`, hold articles, blanks and padding anywhere; `features`,
/// int64 `[batch, features, values]`, exists if the method is conditioned. Output: `probability`, float32 `[batch]`,
/// of having been one outfit. The order of the halves does not matter.
pub fn export_pair(model: &Model, metadata: &Metadata, path: &Path) -> Result<Option<u64>, ExportError> {
    let Some(graph) = pair::draw(model, metadata.storage) else { return Ok(None) };
    write(graph, 0, model.config().method, metadata, &[("task", "pair")], path).map(Some)
}

/// A baseline that the service can answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServedBaseline {
    Popularity,
    #[value(name = "co-occurrence")]
    Cooccurrence,
    /// The conditional logit, which also reads the customer's features.
    Logit,
}

impl ServedBaseline {
    /// The name in tables, and of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Popularity => "popularity",
            Self::Cooccurrence => "co-occurrence",
            Self::Logit => "logit",
        }
    }

    pub fn method(self) -> Method {
        self.name().parse().expect("it is a method's name")
    }
}

/// Writes a baseline, fitted to the data, as a whole file. It knows the articles of training outfits.
///
/// # Errors
/// If the file cannot be written.
pub fn export_baseline(
    baseline: ServedBaseline,
    data: &Data,
    release: &str,
    path: &Path,
) -> Result<u64, ExportError> {
    let articles = data.count_known();
    let popularity = Popularity::fit(data);
    let pairs = Pairs::count(data);
    if baseline != ServedBaseline::Popularity && baseline::bytes(&pairs, articles) > MOST_BYTES {
        let reason = format!("the counts of pairs of {articles} articles are more than 2 GiB");
        return Err(ExportError { path: path.to_owned(), source: io::Error::other(reason) });
    }
    let graph = match baseline {
        ServedBaseline::Popularity => baseline::draw_popularity(&popularity, articles),
        ServedBaseline::Cooccurrence => {
            baseline::draw_cooccurrence(&Cooccurrence::fit(data, &popularity, &pairs), articles)
        }
        ServedBaseline::Logit => baseline::draw_logit(&Logit::fit_for_file(data), data),
    };
    let metadata = Metadata { release: release.to_owned(), storage: Storage::Float32 };
    write(graph, 0, baseline.method(), &metadata, &[], path)
}

/// Writes a graph with its metadata, and returns its parameters with those `beside` it.
fn write(
    graph: GraphProto,
    beside: u64,
    method: Method,
    metadata: &Metadata,
    extra: &[(&str, &str)],
    path: &Path,
) -> Result<u64, ExportError> {
    let parameters = parameters(&graph) + beside;
    let entry =
        |key: &str, value: &str| StringStringEntryProto { key: key.to_owned(), value: value.to_owned() };
    let mut metadata_props = vec![
        entry("method", method.as_str()),
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
    let mut drawing = Drawing::new(model, storage.is_half());
    let context = drawing.read_context();
    let output = model.structure().forward(&mut drawing);
    drawing.outputs(output);
    let (batch, slots) = (Axis::Named("batch"), Axis::Named("slots"));
    let width = config.width + config.matching + drawing.personas_count();
    let mut inputs = vec![
        tensor("rows", DataType::Float, &[batch, slots, Axis::Fixed(width)]),
        tensor("kinds", DataType::Int64, &[batch, slots]),
    ];
    if context > 0 {
        inputs.push(tensor("context", DataType::Float, &[batch, Axis::Fixed(context)]));
    }
    inputs.push(tensor("blank", DataType::Int64, &[batch]));
    let hidden = config.width + config.matching;
    let mut outputs = vec![tensor("hidden", DataType::Float, &[batch, Axis::Fixed(hidden)])];
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
    name.starts_with("articles.")
        || name.starts_with("vocabulary.")
        || name.starts_with("personas.")
        || name.starts_with("features.")
        || name.starts_with("match.")
        || name.starts_with("memory.")
}

fn length(tensor: &TensorProto) -> u64 {
    tensor.dims.iter().map(|length| u64::try_from(*length).expect("dimensions are not negative")).product()
}

#[cfg(test)]
pub(crate) mod tests;
