//! One model, checked against the contract of a release: an ONNX file open in a session, or the same model at a server.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ort::{
    session::{Session, SessionInputs, SessionOutputs},
    value::Tensor,
};

use super::{
    Answer, Context, Device, Question,
    choose::choose,
    inputs::Inputs,
    remote::Remote,
    surface::{Port, Surface},
    weights,
};
use crate::{
    domain::{MAX_SLOTS, Schema},
    http_client::Origin,
    onnx_runtime::OnnxRuntime,
    release::{Manifest, MethodEntry, Release},
};

/// How long trial outfits may take at a server: it may load the model for them.
const TRIAL: Duration = Duration::from_mins(1);

/// Where models compute.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Local { runtime: OnnxRuntime, device: Device },
    Remote(Origin),
}

impl Place {
    pub(super) fn device(&self) -> Device {
        match self {
            Self::Local { device, .. } => *device,
            Self::Remote(_) => Device::Remote,
        }
    }
}

/// Why a file, or what a server has by its address, is no model of its release. Each says what was found and what was
/// expected.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{path}: ONNX Runtime refuses it on {device}: {reason}", path = .path.display())]
    Runtime { path: PathBuf, device: Device, reason: String },
    #[error("{path}: {what} is {found}, expected {expected}", path = .path.display())]
    Contract { path: PathBuf, what: String, found: String, expected: String },
    #[error("{path}: {reason}", path = .path.display())]
    Remote { path: PathBuf, reason: String },
    #[error("{path}: no answer in time", path = .path.display())]
    Late { path: PathBuf },
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

    /// What a server knows the model by.
    pub(super) fn remote_name(self) -> String {
        format!("{}-{}", self.manifest().name, self.entry.method)
    }

    pub(super) fn articles(self) -> usize {
        self.release.vocabulary().len()
    }

    pub(super) fn features(self) -> usize {
        self.schema().features().len()
    }
}

/// What answers, and what it was found to take and give.
#[derive(Debug)]
pub(super) struct Model {
    path: PathBuf,
    backend: Backend,
    articles: usize,
    /// Where it sees customers, how many features.
    features: Option<usize>,
    gives: Gives,
}

#[derive(Debug)]
enum Backend {
    Local(Session, Device),
    Remote(Box<Remote>),
}

/// Outputs that a model need not have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gives {
    pub(super) personas: bool,
    pub(super) steps: bool,
}

/// What a run gave.
#[derive(Debug)]
pub(super) struct Outputs<'a> {
    pub(super) logits: &'a [f32],
    /// How many there are, and those of all rows.
    pub(super) personas: Option<(usize, &'a [f32])>,
    pub(super) steps: Option<&'a [f32]>,
}

impl Model {
    /// Opens the file, or finds the model at its server; checks its surface, and asks it about trial outfits.
    pub(super) fn open(place: &Place, expected: Expected<'_>) -> Result<Self, ModelError> {
        let (path, backend, surface) = match place {
            Place::Local { runtime, device } => {
                let path = expected.release.model(expected.entry);
                let session =
                    open(runtime, &path, *device).map_err(|error| refused(&path, *device, &error))?;
                check_metadata(&session, &path, expected)?;
                check_weights(&path)?;
                let ports = |outlets: &[_]| outlets.iter().map(Port::of_session).collect();
                let surface = (ports(session.inputs()), ports(session.outputs()));
                (path, Backend::Local(session, *device), surface)
            }
            Place::Remote(origin) => {
                let mut remote = Remote::new(origin.clone(), &expected.remote_name());
                let surface = remote.surface(Instant::now() + TRIAL)?;
                (remote.path().to_owned(), Backend::Remote(Box::new(remote)), surface)
            }
        };
        let (inputs, outputs) = surface;
        let surface = Surface { path: &path, inputs, outputs };
        surface.check(expected)?;
        let features = surface.takes("features").then_some(expected.features());
        let gives = Gives { personas: surface.gives("personas"), steps: surface.gives("steps") };
        let mut model = Self { path, backend, articles: expected.articles(), features, gives };
        model.try_out(expected)?;
        Ok(model)
    }

    pub(super) fn takes_features(&self) -> bool {
        self.features.is_some()
    }

    pub(super) fn gives_personas(&self) -> bool {
        self.gives.personas
    }

    /// Answers them all in one run. A row that is no answer is the matter of its own question; the others have theirs.
    /// A session takes as long as it takes; a server is waited for until the deadline.
    pub(super) fn answer(
        &mut self,
        questions: &[Question],
        deadline: Instant,
    ) -> Result<Vec<Result<Answer, ModelError>>, ModelError> {
        let Self { path, backend, articles, features, gives } = self;
        let inputs = Inputs::new(questions, *articles, *features);
        match backend {
            Backend::Local(session, device) => {
                let tensors = tensors(inputs).map_err(|error| refused(path, *device, &error))?;
                let outputs = session
                    .run(SessionInputs::from(tensors))
                    .map_err(|error| refused(path, *device, &error))?;
                let outputs = outputs_of(path, &outputs, questions.len(), *articles, *gives)?;
                Ok(chosen(path, &outputs, *articles, questions))
            }
            Backend::Remote(remote) => {
                let answered = remote.infer(&inputs, *gives, deadline)?;
                let outputs = answered.outputs(questions.len(), *articles, *gives, path)?;
                Ok(chosen(path, &outputs, *articles, questions))
            }
        }
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
        let deadline = Instant::now() + TRIAL;
        for answer in self.answer(&questions, deadline)? {
            answer?;
        }
        self.answer(&questions[..1], deadline)?.remove(0).map(drop)
    }
}

/// The answers in what a run gave.
fn chosen(
    path: &Path,
    outputs: &Outputs<'_>,
    articles: usize,
    questions: &[Question],
) -> Vec<Result<Answer, ModelError>> {
    let answer = |(row, (logits, question)): (usize, (&[f32], &Question))| {
        let mut answer = choose(logits, question).ok_or_else(|| ModelError::Answers {
            path: path.to_owned(),
            found: "logits that are not finite".into(),
        })?;
        answer.personas = outputs.personas.map(|(count, all)| all[row * count..][..count].to_vec());
        answer.steps = outputs.steps.map(|steps| steps[row]);
        Ok(answer)
    };
    outputs.logits.chunks_exact(articles).zip(questions).enumerate().map(answer).collect()
}

fn tensors(inputs: Inputs) -> ort::Result<Vec<(&'static str, Tensor<i64>)>> {
    let Inputs { batch, slots, articles, blanks, features } = inputs;
    let mut tensors = vec![
        ("articles", Tensor::from_array(([batch, slots], articles))?),
        ("blank", Tensor::from_array(([batch], blanks))?),
    ];
    if let Some(given) = features {
        let shape = [batch, given.features, given.values];
        tensors.push(("features", Tensor::from_array((shape, given.cells))?));
    }
    Ok(tensors)
}

fn outputs_of<'a>(
    path: &Path,
    outputs: &'a SessionOutputs<'_>,
    batch: usize,
    articles: usize,
    gives: Gives,
) -> Result<Outputs<'a>, ModelError> {
    Ok(Outputs {
        logits: floats(path, outputs, "logits", &[batch, articles])?,
        personas: gives.personas.then(|| rows(path, outputs, "personas", batch)).transpose()?,
        steps: gives.steps.then(|| floats(path, outputs, "steps", &[batch])).transpose()?,
    })
}

fn open(runtime: &OnnxRuntime, path: &Path, device: Device) -> Result<Session, ort::Error> {
    let builder = Session::builder(runtime.environment())?.with_intra_threads(1)?;
    device.prepare(builder)?.commit_from_file(path)
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
