//! One model, checked against the contract of a release: an ONNX file open in a session, or the same model at a server.
//!
//! On a CPU a file that our exporter wrote is served in two parts: ONNX Runtime computes its trunk, the
//! [`head`](super::head) what comes behind. On other devices, at a server, and where a file came from elsewhere, all
//! logits are computed there, and chosen from.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use ort::{
    session::{Session, SessionInputs, SessionOutputs},
    value::Tensor,
};

use super::{
    Answer, Context, Device, Question,
    choose::choose,
    graph,
    head::Head,
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
    /// With what comes behind the session, where that is not the session's own.
    Local(Session, Option<Arc<Head>>, Device),
    Remote(Box<Remote>),
}

impl Backend {
    fn head(&self) -> Option<&Head> {
        match self {
            Self::Local(_, head, _) => head.as_deref(),
            Self::Remote(_) => None,
        }
    }
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
    /// The logits, or the vector before them where a head comes behind.
    pub(super) last: &'a [f32],
    /// How many there are, and those of all rows.
    pub(super) personas: Option<(usize, &'a [f32])>,
    pub(super) steps: Option<&'a [f32]>,
}

impl Model {
    /// Opens the file, or finds the model at its server; checks its surface, and asks it about trial outfits. A
    /// further copy takes the head of the first.
    pub(super) fn open(
        place: &Place,
        expected: Expected<'_>,
        head: Option<Arc<Head>>,
    ) -> Result<Self, ModelError> {
        let (path, backend, surface) = match place {
            Place::Local { runtime, device } => {
                let path = expected.release.model(expected.entry);
                let (session, head) = open(runtime, &path, expected, *device, head)
                    .map_err(|error| refused(&path, *device, &error))?;
                check_metadata(&session, &path, expected)?;
                check_weights(&path)?;
                let ports = |outlets: &[_]| outlets.iter().map(Port::of_session).collect();
                let surface = (ports(session.inputs()), ports(session.outputs()));
                (path, Backend::Local(session, head, *device), surface)
            }
            Place::Remote(origin) => {
                let mut remote = Remote::new(origin.clone(), &expected.remote_name());
                let surface = remote.surface(Instant::now() + TRIAL)?;
                (remote.path().to_owned(), Backend::Remote(Box::new(remote)), surface)
            }
        };
        let (inputs, outputs) = surface;
        let surface = Surface { path: &path, inputs, outputs };
        surface.check(expected, backend.head())?;
        let features = surface.takes("features").then_some(expected.features());
        let gives = Gives { personas: surface.gives("personas"), steps: surface.gives("steps") };
        let mut model = Self { path, backend, articles: expected.articles(), features, gives };
        model.try_out(expected)?;
        Ok(model)
    }

    /// What further copies share.
    pub(super) fn head(&self) -> Option<Arc<Head>> {
        match &self.backend {
            Backend::Local(_, head, _) => head.clone(),
            Backend::Remote(_) => None,
        }
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
            Backend::Local(session, head, device) => {
                let tensors = tensors(inputs).map_err(|error| refused(path, *device, &error))?;
                let outputs = session
                    .run(SessionInputs::from(tensors))
                    .map_err(|error| refused(path, *device, &error))?;
                let (name, width) = match head {
                    Some(head) => ("hidden", head.hidden()),
                    None => ("logits", *articles),
                };
                let outputs = outputs_of(path, &outputs, questions.len(), (name, width), *gives)?;
                Ok(chosen(path, &outputs, (*articles, head.as_deref()), questions))
            }
            Backend::Remote(remote) => {
                let answered = remote.infer(&inputs, *gives, deadline)?;
                let outputs = answered.outputs(questions.len(), *articles, *gives, path)?;
                Ok(chosen(path, &outputs, (*articles, None), questions))
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

/// The answers in what a run gave: chosen from logits, or by the head that makes them.
fn chosen(
    path: &Path,
    outputs: &Outputs<'_>,
    (articles, head): (usize, Option<&Head>),
    questions: &[Question],
) -> Vec<Result<Answer, ModelError>> {
    let chosen: Vec<Option<Answer>> = if let Some(head) = head {
        head.answer(outputs.last, outputs.personas.map(|(_, mixes)| mixes), questions)
    } else {
        let rows = outputs.last.chunks_exact(articles).zip(questions);
        rows.map(|(logits, question)| choose(logits, question)).collect()
    };
    let answer = |(row, chosen): (usize, Option<Answer>)| {
        let mut answer = chosen.ok_or_else(|| ModelError::Answers {
            path: path.to_owned(),
            found: "logits that are not finite".into(),
        })?;
        answer.personas = outputs.personas.map(|(count, all)| all[row * count..][..count].to_vec());
        answer.steps = outputs.steps.map(|steps| steps[row]);
        Ok(answer)
    };
    chosen.into_iter().enumerate().map(answer).collect()
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
    (name, width): (&'static str, usize),
    gives: Gives,
) -> Result<Outputs<'a>, ModelError> {
    Ok(Outputs {
        last: floats(path, outputs, name, &[batch, width])?,
        personas: gives.personas.then(|| rows(path, outputs, "personas", batch)).transpose()?,
        steps: gives.steps.then(|| floats(path, outputs, "steps", &[batch])).transpose()?,
    })
}

/// The file in a session, or its trunk with its head where that is faster.
fn open(
    runtime: &OnnxRuntime,
    path: &Path,
    expected: Expected<'_>,
    device: Device,
    shared: Option<Arc<Head>>,
) -> Result<(Session, Option<Arc<Head>>), ort::Error> {
    let builder = Session::builder(runtime.environment())?.with_intra_threads(1)?;
    let mut builder = device.prepare(builder)?;
    // A file that cannot be read or cut is ONNX Runtime's to judge.
    let parts = match device {
        Device::Cpu => fs::read(path).ok().and_then(|file| graph::cut(&file)),
        Device::Cuda | Device::Remote => None,
    };
    match parts {
        Some(parts) if parts.head.bias.len() == expected.articles() => {
            let session = builder.commit_from_memory(&parts.trunk)?;
            Ok((session, Some(shared.unwrap_or_else(|| Arc::new(Head::new(&parts.head))))))
        }
        _ => Ok((builder.commit_from_file(path)?, None)),
    }
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
