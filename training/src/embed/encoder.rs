//! An encoder: a folder with an ONNX file, what its input is made with, and its licence, as the usual exporters write it.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use atelier_core::{
    domain::Article,
    util::digest::{sha256, sha256_of_file},
};
use atelier_engine::onnx_runtime::OnnxRuntime;
use ort::{
    session::Session,
    value::{Outlet, Tensor, TensorElementType, ValueType},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    pictures::{self, Preprocessing},
    texts::Texts,
};

const PREPROCESSING: &str = "preprocessor_config.json";
const TOKENIZER: &str = "tokenizer.json";
/// Of sentence encoders.
const POOLING: &str = "1_Pooling";
const TOKENS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];
/// How many are encoded at once.
const BATCH: usize = 16;
/// Nodes that measure the whole batch. They make a vector depend on the rest of its batch.
const MEASURES_BATCH: &[u8] = b"DynamicQuantizeLinear";
/// Vectors as encoders name them; otherwise the first output.
const VECTORS: [&str; 4] = ["image_embeds", "text_embeds", "sentence_embedding", "pooler_output"];

pub(super) struct Encoder {
    path: PathBuf,
    session: Session,
    input: Input,
    /// The names of the model's inputs and of its output.
    inputs: Vec<String>,
    output: String,
    /// How many tokens all texts have, if the model wants one number.
    length: Option<usize>,
    /// Whether the first token's vector is the text's, not their mean.
    takes_first: bool,
    batch: usize,
    digest: String,
}

enum Input {
    Pictures(Preprocessing),
    Texts(Box<Texts>),
}

/// An encoder's input from one article: a picture's numbers or a text's tokens.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    numbers: Vec<f32>,
    tokens: Vec<i64>,
}

impl Encoder {
    /// The encoders of a folder: of pictures, of texts, or both.
    pub(super) fn open(folder: &Path, runtime: &OnnxRuntime) -> Result<Vec<Self>> {
        let shown = folder.display();
        let names = list(folder).with_context(|| format!("cannot read the encoder {shown}"))?;
        let found = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        ensure!(
            names.iter().any(|name| name.to_ascii_lowercase().starts_with("licen")),
            "{shown} has no licence; found {found}; put the licence of its weights there as LICENSE, and check that it allows your use"
        );
        let has = |name: &str| names.iter().any(|other| other == name);
        let mut inputs = Vec::new();
        if has(PREPROCESSING) {
            let preprocessing = Preprocessing::open(&folder.join(PREPROCESSING))?;
            inputs.push(("vision_model.onnx", Input::Pictures(preprocessing)));
        }
        if has(TOKENIZER) {
            let texts = Box::new(Texts::open(&folder.join(TOKENIZER))?);
            inputs.push(("text_model.onnx", Input::Texts(texts)));
        }
        ensure!(
            !inputs.is_empty(),
            "{shown} does not say what its encoder reads; found {found}; expected {PREPROCESSING} for pictures or {TOKENIZER} for texts, as \
             exporters to ONNX write them"
        );
        let digest = digest(folder)?;
        let encoder = |(half, input)| {
            let path = find_model(folder, half).with_context(|| {
                format!(
                    "{shown} has no {half} and no model.onnx, also not in onnx/; found {found}; export the encoder to ONNX"
                )
            })?;
            Self::new(folder, path, half, input, runtime, &digest)
        };
        inputs.into_iter().map(encoder).collect()
    }

    fn new(
        folder: &Path,
        path: PathBuf,
        half: &str,
        input: Input,
        runtime: &OnnxRuntime,
        digest: &str,
    ) -> Result<Self> {
        let shown = || path.display().to_string();
        let bytes = fs::read(&path).with_context(shown)?;
        let measures = bytes.windows(MEASURES_BATCH.len()).any(|window| window == MEASURES_BATCH);
        drop(bytes);
        let session =
            Session::builder(runtime.environment()).and_then(|mut builder| builder.commit_from_file(&path));
        let session = session.map_err(|error| anyhow!("{}: ONNX Runtime rejects it: {error}", shown()))?;
        let inputs = describe(&session)?;
        let shape = |name: &str| inputs.iter().find(|(own, ..)| own == name).map(|(.., shape)| shape);
        let (fits, expected, length) = match &input {
            Input::Pictures(preprocessing) => {
                let (height, width) = preprocessing.output().expect("its size was checked");
                let wanted = |axis: &i64, own: usize| *axis < 0 || usize::try_from(*axis) == Ok(own);
                let fits = matches!(inputs.as_slice(), [(_, TensorElementType::Float32, shape)] if shape.len() == 4
                    && shape[1..].iter().zip([3, height, width]).all(|(axis, own)| wanted(axis, own)));
                let expected = format!(
                    "one input of floats [batch, 3, {height}, {width}], as {PREPROCESSING} makes them"
                );
                (fits, expected, None)
            }
            Input::Texts(texts) => {
                let is_known = |(name, kind, shape): &(String, TensorElementType, Vec<i64>)| {
                    TOKENS.contains(&name.as_str()) && *kind == TensorElementType::Int64 && shape.len() == 2
                };
                let fits = shape(TOKENS[0]).is_some() && inputs.iter().all(is_known);
                let names = TOKENS.join(", ");
                let expected =
                    format!("the inputs {names} of int64 [batch, tokens], of which the first is needed");
                let fixed = shape(TOKENS[0]).and_then(|shape| usize::try_from(*shape.get(1)?).ok());
                // Without a mask the encoder was trained with texts of one length.
                (fits, expected, fixed.or_else(|| shape(TOKENS[1]).is_none().then(|| texts.most())))
            }
        };
        if !fits {
            let found = inputs.iter().map(|(name, kind, shape)| format!("{name} ({kind} {shape:?})"));
            let found = found.collect::<Vec<_>>().join(", ");
            bail!("{}: expected {expected}; found {found}. Export this half by itself, as {half}", shown());
        }
        let outputs: Vec<&str> = session.outputs().iter().map(Outlet::name).collect();
        let named = VECTORS.iter().find(|name| outputs.contains(name));
        let output = named.or(outputs.first()).with_context(|| format!("{} has no output", shown()))?;
        let output = (*output).to_owned();
        let takes_first = named.is_none() && matches!(input, Input::Texts(_)) && takes_first(folder)?;
        let batch = if measures || inputs.iter().any(|(.., shape)| shape[0] == 1) { 1 } else { BATCH };
        let inputs = inputs.into_iter().map(|(name, ..)| name).collect();
        let digest = digest.to_owned();
        Ok(Self { path, session, input, inputs, output, length, takes_first, batch, digest })
    }

    /// The name of its list in embeddings.
    pub(super) fn name(&self) -> &'static str {
        match self.input {
            Input::Pictures(_) => "image",
            Input::Texts(_) => "text",
        }
    }

    pub(super) fn needs(&self) -> &'static str {
        match self.input {
            Input::Pictures(_) => "a picture (`image`, a file of the data folder or an https address)",
            Input::Texts(_) => "a text (`name` or `description`)",
        }
    }

    /// Names all that vectors may depend on.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// An article's input: where its picture is, or its name, type and description.
    pub(super) fn source(&self, article: &Article) -> Option<String> {
        let words = |name: &'static str| article.words(name).map(str::trim).filter(|text| !text.is_empty());
        match self.input {
            Input::Pictures(_) => words("image").next().map(str::to_owned),
            Input::Texts(_) => {
                let (name, description) = (words("name").next(), words("description").next());
                name.or(description)?;
                let texts: Vec<&str> = name.into_iter().chain([article.kind()]).chain(description).collect();
                Some(texts.join(". "))
            }
        }
    }

    /// Reads or fetches a picture; a text is its own source.
    pub(super) fn read(&self, source: &str, data: &Path) -> Result<Vec<u8>> {
        match &self.input {
            Input::Pictures(_) => pictures::read(source, data),
            Input::Texts(_) => Ok(Vec::new()),
        }
    }

    pub(super) fn prepare(&self, source: &str, picture: &[u8]) -> Result<Prepared> {
        match &self.input {
            Input::Pictures(preprocessing) => {
                let prepare = || preprocessing.prepare(&pictures::decode(picture)?);
                let numbers = prepare().with_context(|| pictures::show(source))?;
                Ok(Prepared { numbers, ..Prepared::default() })
            }
            Input::Texts(texts) => Ok(Prepared { tokens: texts.tokens(source)?, ..Prepared::default() }),
        }
    }

    /// For each a vector of length 1, or why there is none.
    pub(super) fn encode(&mut self, batch: &[&Prepared]) -> Result<Vec<Result<Vec<f32>>>> {
        let shown = || self.path.display().to_string();
        let longest = batch.iter().map(|one| one.tokens.len()).max().unwrap_or_default();
        let tokens = self.length.unwrap_or(longest).max(1);
        let filled = |by: &dyn Fn(Option<&i64>) -> i64| -> Vec<i64> {
            batch.iter().flat_map(|one| (0..tokens).map(|at| by(one.tokens.get(at)))).collect()
        };
        let mut inputs = Vec::new();
        for name in self.inputs.iter().map(String::as_str) {
            let tensor = match &self.input {
                Input::Pictures(preprocessing) => {
                    let (height, width) = preprocessing.output().expect("its size was checked");
                    let numbers: Vec<f32> = batch.iter().flat_map(|one| &one.numbers).copied().collect();
                    Tensor::from_array(([batch.len(), 3, height, width], numbers))?.into_dyn()
                }
                Input::Texts(texts) => {
                    let numbers = match name {
                        "input_ids" => filled(&|token| token.copied().unwrap_or(texts.pad())),
                        "attention_mask" => filled(&|token| token.is_some().into()),
                        _ => filled(&|_| 0),
                    };
                    Tensor::from_array(([batch.len(), tokens], numbers))?.into_dyn()
                }
            };
            inputs.push((name, tensor));
        }
        let outputs = self.session.run(inputs).with_context(shown)?;
        let (shape, numbers) =
            outputs[self.output.as_str()].try_extract_tensor::<f32>().with_context(shown)?;
        let axes: Vec<usize> = shape.iter().map(|axis| usize::try_from(*axis).unwrap_or_default()).collect();
        // The vectors of places in a picture or text, one after the other, or number by number.
        let (places, length, step) = match *axes.as_slice() {
            [_, length] => (1, length, (length, 1)),
            [_, places, length] => (places, length, (length, 1)),
            [_, length, height, width] => (height * width, length, (1, height * width)),
            _ => bail!(
                "{}: its output {} has the shape {axes:?}; expected vectors [batch, numbers]",
                shown(),
                self.output
            ),
        };
        ensure!(
            axes[0] == batch.len() && places * length > 0,
            "{}: its output {} has the shape {axes:?} for {} articles",
            shown(),
            self.output,
            batch.len()
        );
        let vector = |(numbers, one): (&[f32], &&Prepared)| {
            let counted = match self.input {
                Input::Pictures(_) => places,
                Input::Texts(_) if self.takes_first => 1,
                Input::Texts(_) => one.tokens.len().clamp(1, tokens).min(places),
            };
            let sum = |at: usize| {
                (0..counted).map(|place| f64::from(numbers[place * step.0 + at * step.1])).sum::<f64>()
            };
            let sums: Vec<f64> = (0..length).map(sum).collect();
            let norm = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
            ensure!(
                norm.is_finite() && norm > 0.0,
                "the encoder makes a vector of it that is zero or not finite"
            );
            #[expect(clippy::cast_possible_truncation, reason = "encoders compute in single precision")]
            Ok(sums.iter().map(|sum| (sum / norm) as f32).collect())
        };
        Ok(numbers.chunks_exact(places * length).zip(batch).map(vector).collect())
    }
}

/// The names of what a folder has, without hidden ones, in their order.
fn list(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    Ok(names)
}

/// The file with this name, or `model.onnx`, in the folder or in `onnx`.
fn find_model(folder: &Path, half: &str) -> Option<PathBuf> {
    let names = [half, "model.onnx"].into_iter();
    let mut paths = names.flat_map(|name| [folder.join(name), folder.join("onnx").join(name)]);
    paths.find(|path| path.is_file())
}

/// Of every file, because a model may have its weights in others.
fn digest(folder: &Path) -> Result<String> {
    let mut digests = Vec::new();
    for part in ["", "onnx", POOLING].map(|part| folder.join(part)).iter().filter(|part| part.is_dir()) {
        let names = list(part).with_context(|| part.display().to_string())?;
        for path in names.iter().map(|name| part.join(name)).filter(|path| path.is_file()) {
            digests.push(path.strip_prefix(folder)?.display().to_string());
            digests.push(sha256_of_file(&path).with_context(|| path.display().to_string())?);
        }
    }
    Ok(sha256(digests.join("\n").as_bytes())[..16].to_owned())
}

/// Whether a text's vector is that of its first token, not the mean.
fn takes_first(folder: &Path) -> Result<bool> {
    let path = folder.join(POOLING).join("config.json");
    let config: Map<String, Value> = read_optional(&path)?;
    let mode = |(name, value): (&String, &Value)| match (name.strip_prefix("pooling_mode")?, value) {
        ("", Value::String(mode)) => Some(mode.clone()),
        (mode, Value::Bool(true)) => Some(mode.trim_start_matches('_').to_owned()),
        _ => None,
    };
    let modes: Vec<String> = config.iter().filter_map(mode).collect();
    match modes.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["mean" | "mean_tokens" | "mean_sqrt_len_tokens"] => Ok(false),
        ["cls" | "cls_token"] => Ok(true),
        _ => bail!(
            "{}: found the pooling {}; expected mean_tokens or cls_token. Export the encoder with its pooling, as the output \
             sentence_embedding",
            path.display(),
            modes.join(" with ")
        ),
    }
}

/// A JSON file that need not be there.
pub(super) fn read_optional<T: DeserializeOwned + Default>(path: &Path) -> Result<T> {
    let shown = || path.display().to_string();
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(T::default()),
        read => serde_json::from_slice(&read.with_context(shown)?).with_context(shown),
    }
}

/// The inputs' names, types and shapes; an axis of any length is -1.
fn describe(session: &Session) -> Result<Vec<(String, TensorElementType, Vec<i64>)>> {
    let input = |outlet: &Outlet| match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => Ok((outlet.name().to_owned(), *ty, shape.to_vec())),
        other => bail!("the input {} is {other}, no tensor", outlet.name()),
    };
    session.inputs().iter().map(input).collect()
}
