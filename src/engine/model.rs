//! One ONNX file, checked against the contract of a release and open in a session.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ort::{
    session::{Session, SessionInputs, SessionOutputs},
    value::{Outlet, Tensor, TensorElementType, ValueType},
};

use super::{Answer, Context, Device, Question, choose::choose, weights};
use crate::{
    domain::{MAX_SLOTS, Schema},
    onnx_runtime::OnnxRuntime,
    release::{Manifest, MethodEntry, Release},
};

/// Why a file is no model of its release. Each says what was found and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{path}: ONNX Runtime refuses it on {device}: {reason}", path = .path.display())]
    Runtime { path: PathBuf, device: Device, reason: String },
    #[error("{path}: {what} is {found}, expected {expected}", path = .path.display())]
    Contract { path: PathBuf, what: String, found: String, expected: String },
    #[error("{path}: it answers a trial outfit with {found}, expected one finite logit an article", path = .path.display())]
    Answers { path: PathBuf, found: String },
    #[error(
        "{path}: the weight `{weight}` holds NaN, expected numbers; export it again from a training that did \
         not diverge",
        path = .path.display()
    )]
    Weights { path: PathBuf, weight: String },
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
}

/// What a file must fit to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    release: &'a Release,
    entry: &'a MethodEntry,
}

impl<'a> Expected<'a> {
    pub(super) fn new(release: &'a Release, entry: &'a MethodEntry) -> Self {
        Self { release, entry }
    }

    fn manifest(self) -> &'a Manifest {
        self.release.manifest()
    }

    fn schema(self) -> &'a Schema {
        self.release.schema()
    }
}

/// A session and what it was found to take and give.
#[derive(Debug)]
pub(super) struct Model {
    path: PathBuf,
    session: Session,
    device: Device,
    articles: usize,
    features: usize,
    takes_features: bool,
    gives_personas: bool,
    gives_steps: bool,
}

/// The personas and steps of a batch, where a model gives them.
struct Extras<'a> {
    personas: Option<(usize, &'a [f32])>,
    steps: Option<&'a [f32]>,
}

impl Model {
    /// Opens the file, checks its surface, and asks it about trial outfits.
    pub(super) fn open(
        runtime: &OnnxRuntime,
        expected: Expected<'_>,
        device: Device,
    ) -> Result<Self, ModelError> {
        let path = expected.release.model(expected.entry);
        let session = open(runtime, &path, device).map_err(|error| ModelError::Runtime {
            path: path.clone(),
            device,
            reason: error.to_string(),
        })?;
        check_metadata(&session, &path, expected)?;
        let surface = Surface { path: &path, expected };
        surface.check(&session)?;
        check_weights(&path)?;
        let mut model = Self {
            takes_features: named(session.inputs(), "features").is_some(),
            gives_personas: named(session.outputs(), "personas").is_some(),
            gives_steps: named(session.outputs(), "steps").is_some(),
            articles: expected.release.vocabulary().len(),
            features: expected.schema().features().len(),
            path,
            session,
            device,
        };
        model.try_out(expected)?;
        Ok(model)
    }

    pub(super) fn takes_features(&self) -> bool {
        self.takes_features
    }

    pub(super) fn gives_personas(&self) -> bool {
        self.gives_personas
    }

    /// Answers them all in one run. A row that is no answer is the matter of its own question; the others have theirs.
    pub(super) fn answer(
        &mut self,
        questions: &[Question],
    ) -> Result<Vec<Result<Answer, ModelError>>, ModelError> {
        let inputs = self.inputs(questions).map_err(|error| refused(&self.path, self.device, &error))?;
        let outputs = self
            .session
            .run(SessionInputs::from(inputs))
            .map_err(|error| refused(&self.path, self.device, &error))?;
        let logits = floats(&self.path, &outputs, "logits", &[questions.len(), self.articles])?;
        let personas = if self.gives_personas {
            let (count, values) = rows(&self.path, &outputs, "personas", questions.len())?;
            Some((count, values))
        } else {
            None
        };
        let steps = if self.gives_steps {
            Some(floats(&self.path, &outputs, "steps", &[questions.len()])?)
        } else {
            None
        };
        let extras = Extras { personas, steps };
        let answer = |(row, (logits, question)): (usize, (&[f32], &Question))| {
            let mut answer = choose(logits, question).ok_or_else(|| ModelError::Answers {
                path: self.path.clone(),
                found: "logits that are not finite".into(),
            })?;
            answer.personas = extras.personas.map(|(count, all)| all[row * count..][..count].to_vec());
            answer.steps = extras.steps.map(|steps| steps[row]);
            Ok(answer)
        };
        Ok(logits.chunks_exact(self.articles).zip(questions).enumerate().map(answer).collect())
    }

    fn inputs(&self, questions: &[Question]) -> ort::Result<Vec<(&'static str, Tensor<i64>)>> {
        let batch = questions.len();
        let slots = questions.iter().map(|question| question.slots.len()).max().unwrap_or(0);
        let padding = i64::try_from(self.articles + 1).expect("vocabularies are smaller; this is a bug");
        let mut articles = vec![padding; batch * slots];
        for (row, question) in articles.chunks_exact_mut(slots.max(1)).zip(questions) {
            for (cell, &slot) in row.iter_mut().zip(&question.slots) {
                *cell = slot.into();
            }
        }
        let place = |question: &Question| i64::try_from(question.blank).expect("a slot; this is a bug");
        let blanks: Vec<i64> = questions.iter().map(place).collect();
        let mut inputs = vec![
            ("articles", Tensor::from_array(([batch, slots], articles))?),
            ("blank", Tensor::from_array(([batch], blanks))?),
        ];
        if self.takes_features {
            let contexts = questions.iter().map(|question| &question.context);
            let (values, cells) = features(contexts, self.features);
            inputs.push(("features", Tensor::from_array(([batch, self.features, values], cells))?));
        }
        Ok(inputs)
    }

    /// Outfits of every length, with and without a context: a file that fails on one of them would fail on a
    /// customer.
    fn try_out(&mut self, expected: Expected<'_>) -> Result<(), ModelError> {
        let blank = expected.release.vocabulary().blank();
        let rows = expected.schema().features().iter();
        // The last row of each table: a table that is too short shows here.
        let last = |feature: &crate::domain::Feature| {
            vec![u32::try_from(feature.rows() - 1).expect("tables are small; this is a bug")]
        };
        let full: Context = rows.map(last).collect();
        let empty: Context = vec![Vec::new(); full.len()].into();
        let questions: Vec<Question> = (1..=MAX_SLOTS)
            .map(|length| Question {
                slots: std::iter::once(blank)
                    .chain((0..).take(length - 1).map(|place| place % blank))
                    .collect(),
                blank: 0,
                context: if length % 2 == 0 { full.clone() } else { empty.clone() },
                admissible: None,
                k: 1,
                of: vec![blank - 1],
                ranks: false,
            })
            .collect();
        for answer in self.answer(&questions)? {
            answer?;
        }
        self.answer(&questions[..1])?.remove(0).map(drop)
    }
}

/// The input `features`: each feature's values, and noughts up to the most that one of them has.
fn features<'a>(contexts: impl Iterator<Item = &'a Context> + Clone, features: usize) -> (usize, Vec<i64>) {
    let values = contexts.clone().flat_map(|context| context.iter()).map(Vec::len).max().unwrap_or(0).max(1);
    let mut cells = Vec::new();
    for context in contexts {
        assert_eq!(context.len(), features, "a context of the release's schema; this is a bug");
        for given in context.iter() {
            cells.extend(given.iter().copied().map(i64::from));
            cells.extend(std::iter::repeat_n(0, values - given.len()));
        }
    }
    (values, cells)
}

fn open(runtime: &OnnxRuntime, path: &Path, device: Device) -> Result<Session, ort::Error> {
    let builder = Session::builder(runtime.environment())?.with_intra_threads(1)?;
    device.prepare(builder)?.commit_from_file(path)
}

fn named<'a>(outlets: &'a [Outlet], name: &str) -> Option<&'a Outlet> {
    outlets.iter().find(|outlet| outlet.name() == name)
}

fn refused(path: &Path, device: Device, error: &ort::Error) -> ModelError {
    ModelError::Runtime { path: path.to_owned(), device, reason: error.to_string() }
}

fn floats<'a>(
    path: &Path,
    outputs: &'a SessionOutputs<'_>,
    name: &'static str,
    shape: &[usize],
) -> Result<&'a [f32], ModelError> {
    let found = outputs[name].try_extract_tensor::<f32>();
    match found {
        Ok((found, values))
            if found.iter().map(|&d| usize::try_from(d).ok()).eq(shape.iter().map(|&d| Some(d))) =>
        {
            Ok(values)
        }
        Ok((found, _)) => Err(ModelError::Answers {
            path: path.to_owned(),
            found: format!("{name} of the shape {found:?}"),
        }),
        Err(error) => {
            Err(ModelError::Answers { path: path.to_owned(), found: format!("{name} that {error}") })
        }
    }
}

/// As many columns as there are.
fn rows<'a>(
    path: &Path,
    outputs: &'a SessionOutputs<'_>,
    name: &'static str,
    batch: usize,
) -> Result<(usize, &'a [f32]), ModelError> {
    let columns = match outputs[name].try_extract_tensor::<f32>() {
        Ok((shape, _)) => shape.get(1).and_then(|&columns| usize::try_from(columns).ok()).unwrap_or(0),
        Err(_) => 0,
    };
    floats(path, outputs, name, &[batch, columns]).map(|values| (columns, values))
}

fn check_metadata(session: &Session, path: &Path, expected: Expected<'_>) -> Result<(), ModelError> {
    let metadata = session.metadata();
    let entries = [
        ("method", expected.entry.method.to_string()),
        ("release", expected.manifest().name.clone()),
        ("parameters", expected.entry.parameters.to_string()),
    ];
    for (key, expected) in entries {
        let found = metadata.as_ref().ok().and_then(|metadata| metadata.custom(key));
        if found.as_deref() != Some(expected.as_str()) {
            return Err(ModelError::Contract {
                path: path.to_owned(),
                what: format!("`{key}` of its metadata"),
                found: found.map_or("missing".into(), |found| format!("{found:?}")),
                expected: format!("{expected:?}"),
            });
        }
    }
    Ok(())
}

fn check_weights(path: &Path) -> Result<(), ModelError> {
    let bytes = fs::read(path).map_err(|source| ModelError::File { path: path.to_owned(), source })?;
    match weights::first_with_nan(&bytes) {
        Some(weight) => Err(ModelError::Weights { path: path.to_owned(), weight }),
        None => Ok(()),
    }
}

/// Checks names, types and shapes.
struct Surface<'a> {
    path: &'a Path,
    expected: Expected<'a>,
}

/// One axis: any length, or this one.
type Axes = [Option<usize>];

impl Surface<'_> {
    fn check(&self, session: &Session) -> Result<(), ModelError> {
        let articles = self.expected.release.vocabulary().len();
        let features = self.expected.schema().features().len();
        let (inputs, outputs) = (session.inputs(), session.outputs());
        let (whole, float) = (TensorElementType::Int64, TensorElementType::Float32);
        self.needs(inputs, "input", "articles", whole, &[None, None])?;
        self.needs(inputs, "input", "blank", whole, &[None])?;
        self.may_have(inputs, "input", "features", whole, &[None, Some(features), None])?;
        self.needs(outputs, "output", "logits", float, &[None, Some(articles)])?;
        self.may_have(outputs, "output", "personas", float, &[None, None])?;
        self.may_have(outputs, "output", "steps", float, &[None])?;
        let known = ["articles", "blank", "features"];
        match inputs.iter().find(|input| !known.contains(&input.name())) {
            Some(input) => Err(self.wrong(
                format!("an input called {:?}", input.name()),
                "there".into(),
                "no inputs but articles, blank and features".into(),
            )),
            None => Ok(()),
        }
    }

    fn needs(
        &self,
        outlets: &[Outlet],
        what: &str,
        name: &str,
        element: TensorElementType,
        axes: &Axes,
    ) -> Result<(), ModelError> {
        if named(outlets, name).is_none() {
            let names: Vec<&str> = outlets.iter().map(Outlet::name).collect();
            return Err(self.wrong(
                format!("its {what} `{name}`"),
                format!("missing among {}", names.join(", ")),
                describe(element, axes),
            ));
        }
        self.may_have(outlets, what, name, element, axes)
    }

    fn may_have(
        &self,
        outlets: &[Outlet],
        what: &str,
        name: &str,
        element: TensorElementType,
        axes: &Axes,
    ) -> Result<(), ModelError> {
        let Some(outlet) = named(outlets, name) else { return Ok(()) };
        // A dynamic axis takes any length. Where any is needed, an input's must be dynamic.
        let axis_fits = |found: i64, axis: Option<usize>| match axis {
            _ if found == -1 => true,
            Some(length) => usize::try_from(found) == Ok(length),
            None => what == "output",
        };
        let fits = match outlet.dtype() {
            ValueType::Tensor { ty, shape, .. } => {
                *ty == element
                    && shape.len() == axes.len()
                    && shape.iter().zip(axes).all(|(&found, &axis)| axis_fits(found, axis))
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(self.wrong(format!("its {what} `{name}`"), outlet.dtype().to_string(), describe(element, axes)))
    }

    fn wrong(&self, what: String, found: String, expected: String) -> ModelError {
        ModelError::Contract { path: self.path.to_owned(), what, found, expected }
    }
}

fn describe(element: TensorElementType, axes: &Axes) -> String {
    let axes: Vec<String> =
        axes.iter().map(|axis| axis.map_or("any".into(), |length| length.to_string())).collect();
    format!("{element} [{}]", axes.join(", "))
}
