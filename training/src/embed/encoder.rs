//! An encoder: a folder with an ONNX file, what its input is made with, and its licence, as the usual exporters write it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use atelier_core::{domain::Article, util::digest::sha256};
use atelier_engine::onnx_runtime::OnnxRuntime;
use ort::{
    session::Session,
    value::{Tensor, TensorElementType, ValueType},
};
use serde::Deserialize;

use super::{
    pictures::{self, Preprocessing},
    texts::Texts,
};

const PREPROCESSING: &str = "preprocessor_config.json";
const TOKENIZER: &str = "tokenizer.json";
/// How many are encoded at once.
const BATCH: usize = 16;
/// Nodes that measure the whole batch, so that an article's vector depended on the others in it.
const MEASURES_BATCH: &[u8] = b"DynamicQuantizeLinear";
/// Vectors as encoders name them; the first output is taken else.
const VECTORS: [&str; 4] = ["image_embeds", "text_embeds", "sentence_embedding", "pooler_output"];

pub(super) struct Encoder {
    path: PathBuf,
    session: Session,
    input: Input,
    output: String,
    /// Whether the first token's vector is the text's, not their mean.
    takes_first: bool,
    batch: usize,
    digest: String,
}

enum Input {
    Pictures { preprocessing: Preprocessing, name: String },
    Texts { texts: Box<Texts>, names: Vec<String>, length: Option<usize> },
}

/// What an encoder reads of one article: a picture's numbers or a text's tokens.
pub(super) enum Prepared {
    Picture(Vec<f32>),
    Text(Vec<i64>),
}

/// `1_Pooling/config.json` of sentence encoders.
#[derive(Debug, Default, Deserialize)]
struct Pooling {
    #[serde(default)]
    pooling_mode_cls_token: bool,
}

impl Encoder {
    /// The encoders of a folder: of pictures, of texts, or both.
    pub(super) fn open(folder: &Path, runtime: &OnnxRuntime) -> Result<Vec<Self>> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot read the encoder {}", folder.display()))?;
        let mut names: Vec<String> = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        let found = || if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let has = |name: &str| names.iter().any(|other| other == name);
        ensure!(
            names.iter().any(|name| name.to_ascii_lowercase().starts_with("licen")),
            "{} has no licence; found {}; put the licence of its weights there as LICENSE, and check that it allows your use",
            folder.display(),
            found()
        );
        let mut encoders = Vec::new();
        if has(PREPROCESSING) {
            let path = find_model(folder, "vision_model.onnx", &found)?;
            encoders.push(Self::of_pictures(folder, path, runtime)?);
        }
        if has(TOKENIZER) {
            let path = find_model(folder, "text_model.onnx", &found)?;
            encoders.push(Self::of_texts(folder, path, runtime)?);
        }
        ensure!(
            !encoders.is_empty(),
            "{} does not say what its encoder reads; found {}; expected {PREPROCESSING} for pictures or {TOKENIZER} for texts, as \
             exporters to ONNX write them",
            folder.display(),
            found()
        );
        Ok(encoders)
    }

    fn of_pictures(folder: &Path, path: PathBuf, runtime: &OnnxRuntime) -> Result<Self> {
        let file = folder.join(PREPROCESSING);
        let preprocessing = Preprocessing::open(&file)?;
        let session = start(&path, runtime)?;
        let (height, width) = preprocessing.output().expect("its size was checked; this is a bug");
        let name = match inputs(&session)?.as_slice() {
            [(name, TensorElementType::Float32, shape)]
                if shape.len() == 4
                    && [3, height, width]
                        .iter()
                        .zip(&shape[1..])
                        .all(|(own, axis)| *axis < 0 || usize::try_from(*axis) == Ok(*own)) =>
            {
                name.clone()
            }
            found => bail!(
                "{}: expected one input of floats [batch, 3, {height}, {width}], as {PREPROCESSING} makes them; found {}. Export the half for \
                 pictures by itself, as vision_model.onnx",
                path.display(),
                describe(found)
            ),
        };
        Self::new(path, session, Input::Pictures { preprocessing, name }, false, &file)
    }

    fn of_texts(folder: &Path, path: PathBuf, runtime: &OnnxRuntime) -> Result<Self> {
        let file = folder.join(TOKENIZER);
        let texts = Box::new(Texts::open(&file)?);
        let session = start(&path, runtime)?;
        let inputs = inputs(&session)?;
        let known = ["input_ids", "attention_mask", "token_type_ids"];
        let fits = |(name, kind, shape): &(String, TensorElementType, Vec<i64>)| {
            known.contains(&name.as_str()) && *kind == TensorElementType::Int64 && shape.len() == 2
        };
        let Some((_, _, shape)) =
            inputs.iter().find(|(name, ..)| name == "input_ids").filter(|_| inputs.iter().all(fits))
        else {
            bail!(
                "{}: expected the inputs {} of int64 [batch, tokens], of which the first is needed; found {}. Export the half for texts by itself, \
                 as text_model.onnx",
                path.display(),
                known.join(", "),
                describe(&inputs)
            );
        };
        // Without a mask the encoder was trained with texts of one length.
        let has_mask = inputs.iter().any(|(name, ..)| name == "attention_mask");
        let length = usize::try_from(shape[1]).ok().or_else(|| (!has_mask).then(|| texts.most()));
        let pooling = fs::read(folder.join("1_Pooling/config.json")).ok();
        let pooling: Pooling =
            pooling.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let names = inputs.iter().map(|(name, ..)| name.clone()).collect();
        Self::new(path, session, Input::Texts { texts, names, length }, pooling.pooling_mode_cls_token, &file)
    }

    fn new(path: PathBuf, session: Session, input: Input, takes_first: bool, config: &Path) -> Result<Self> {
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let config = fs::read(config).with_context(|| config.display().to_string())?;
        let measures = bytes.windows(MEASURES_BATCH.len()).any(|window| window == MEASURES_BATCH);
        let is_one = inputs(&session)?.iter().any(|(.., shape)| shape[0] == 1);
        let outputs: Vec<&str> = session.outputs().iter().map(ort::value::Outlet::name).collect();
        let output = VECTORS.iter().find(|name| outputs.contains(name)).or(outputs.first());
        let output = (*output.with_context(|| format!("{} has no output", path.display()))?).to_owned();
        let digest = sha256(&[bytes, config].concat())[..16].to_owned();
        let batch = if measures || is_one { 1 } else { BATCH };
        Ok(Self { path, session, input, output, takes_first, batch, digest })
    }

    /// The name of its list in embeddings.
    pub(super) fn name(&self) -> &'static str {
        match self.input {
            Input::Pictures { .. } => "image",
            Input::Texts { .. } => "text",
        }
    }

    /// What articles must have.
    pub(super) fn needs(&self) -> &'static str {
        match self.input {
            Input::Pictures { .. } => {
                "a picture; expected `image`, a file of the data folder or an https address"
            }
            Input::Texts { .. } => "a text; expected `name` or `description`",
        }
    }

    /// Names what was read for the vectors, the model and its preprocessing.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// What is encoded of an article: where its picture is, or its name, type and description.
    pub(super) fn source(&self, article: &Article) -> Option<String> {
        let words = |name: &'static str| article.words(name).map(str::trim).filter(|text| !text.is_empty());
        match self.input {
            Input::Pictures { .. } => words("image").next().map(str::to_owned),
            Input::Texts { .. } => {
                let (name, description) = (words("name").next(), words("description").next());
                name.or(description)?;
                let texts: Vec<&str> = name.into_iter().chain([article.kind()]).chain(description).collect();
                Some(texts.join(". "))
            }
        }
    }

    pub(super) fn prepare(&self, source: &str, data: &Path) -> Result<Prepared> {
        match &self.input {
            Input::Pictures { preprocessing, .. } => {
                Ok(Prepared::Picture(preprocessing.prepare(&pictures::load(source, data)?)))
            }
            Input::Texts { texts, .. } => texts.tokens(source).map(Prepared::Text),
        }
    }

    /// A vector of length 1 for each.
    pub(super) fn encode(&mut self, batch: &[&Prepared]) -> Result<Vec<Vec<f32>>> {
        let shown = || self.path.display().to_string();
        let (mut inputs, mut real) = (Vec::new(), None);
        match &self.input {
            Input::Pictures { preprocessing, name } => {
                let (height, width) = preprocessing.output().expect("its size was checked; this is a bug");
                let numbers = batch.iter().filter_map(|one| {
                    if let Prepared::Picture(numbers) = one { Some(numbers) } else { None }
                });
                let numbers: Vec<f32> = numbers.flatten().copied().collect();
                inputs.push((
                    name.as_str(),
                    Tensor::from_array(([batch.len(), 3, height, width], numbers))?.into_dyn(),
                ));
            }
            Input::Texts { texts, names, length } => {
                let tokens = batch
                    .iter()
                    .filter_map(|one| if let Prepared::Text(tokens) = one { Some(tokens) } else { None });
                let tokens: Vec<&Vec<i64>> = tokens.collect();
                let longest = tokens.iter().map(|tokens| tokens.len()).max().unwrap_or_default();
                let length = length.unwrap_or(longest).max(1);
                let filled = |fill: i64, by: &dyn Fn(i64) -> i64| -> Vec<i64> {
                    let row = |tokens: &&Vec<i64>| {
                        let own: Vec<i64> = tokens.iter().take(length).map(|token| by(*token)).collect();
                        own.into_iter().chain(std::iter::repeat(fill)).take(length).collect::<Vec<_>>()
                    };
                    tokens.iter().flat_map(row).collect()
                };
                for name in names {
                    let numbers = match name.as_str() {
                        "input_ids" => filled(texts.pad(), &|token| token),
                        "attention_mask" => filled(0, &|_| 1),
                        _ => filled(0, &|_| 0),
                    };
                    inputs.push((
                        name.as_str(),
                        Tensor::from_array(([batch.len(), length], numbers))?.into_dyn(),
                    ));
                }
                real = Some(tokens.iter().map(|tokens| tokens.len().min(length)).collect::<Vec<_>>());
            }
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
        let vector = |(own, numbers): (usize, &[f32])| {
            let real = real.as_ref().map_or(places, |real| real[own].min(places));
            let counted = if self.takes_first { 1 } else { real.max(1) };
            let sum = |at: usize| {
                (0..counted).map(|place| f64::from(numbers[place * step.0 + at * step.1])).sum::<f64>()
            };
            let sums: Vec<f64> = (0..length).map(sum).collect();
            let norm = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
            ensure!(
                norm.is_finite() && norm > 0.0,
                "{}: it makes vectors that are zero or no numbers",
                shown()
            );
            #[expect(clippy::cast_possible_truncation, reason = "encoders compute in single precision")]
            Ok(sums.iter().map(|sum| (sum / norm) as f32).collect())
        };
        numbers.chunks_exact(places * length).enumerate().map(vector).collect()
    }
}

/// The file with this name, or `model.onnx`, in the folder or in `onnx`.
fn find_model(folder: &Path, half: &str, found: &impl Fn() -> String) -> Result<PathBuf> {
    let names = [half, "model.onnx"].into_iter();
    let mut paths = names.flat_map(|name| [folder.join(name), folder.join("onnx").join(name)]);
    paths.find(|path| path.is_file()).with_context(|| {
        format!(
            "{} has no {half} and no model.onnx, also not in onnx/; found {}; export the encoder to ONNX",
            folder.display(),
            found()
        )
    })
}

fn start(path: &Path, runtime: &OnnxRuntime) -> Result<Session> {
    let session = || Session::builder(runtime.environment())?.commit_from_file(path);
    session().map_err(|error| anyhow::anyhow!("{}: ONNX Runtime rejects it: {error}", path.display()))
}

/// Names, types and shapes; an axis of any length is -1.
fn inputs(session: &Session) -> Result<Vec<(String, TensorElementType, Vec<i64>)>> {
    let input = |outlet: &ort::value::Outlet| match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => Ok((outlet.name().to_owned(), *ty, shape.to_vec())),
        other => bail!("the input {} is {other}, no tensor", outlet.name()),
    };
    session.inputs().iter().map(input).collect()
}

fn describe(inputs: &[(String, TensorElementType, Vec<i64>)]) -> String {
    let one =
        |(name, kind, shape): &(String, TensorElementType, Vec<i64>)| format!("{name} ({kind} {shape:?})");
    inputs.iter().map(one).collect::<Vec<_>>().join(", ")
}
