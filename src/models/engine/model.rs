//! One model, checked against its release: an ONNX file open in a session, or the same model on a server.
//!
//! Where a [`head`](super::head) computes the last layer, it also chooses the best articles. Otherwise they are chosen
//! from all logits.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Answer, Context, Device, Question, choose::choose_all, cores::Cores, head::Head, inputs::Inputs,
    local::Local, remote::Remote, signature::Signature,
};
use crate::{
    domain::{Feature, MAX_SLOTS, Schema},
    models::{
        onnx_runtime::OnnxRuntime,
        release::{Manifest, MethodEntry, Release},
    },
    util::http_client::Origin,
};

/// How long a server may take to answer the trial questions, for which it may have to load the model.
const TRIAL: Duration = Duration::from_mins(1);

/// Where a model runs.
#[derive(Debug, Clone)]
pub(super) enum Location {
    Local { runtime: OnnxRuntime, device: Device, cores: Cores },
    Remote(Origin),
}

impl Location {
    pub(super) fn device(&self) -> Device {
        match self {
            Self::Local { device, .. } => *device,
            Self::Remote(_) => Device::Remote,
        }
    }
}

/// Why a model cannot be served, or could not answer. `path` is its file, or its address on a server.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{path}: ONNX Runtime rejects it on {device}: {reason}", path = .path.display())]
    Runtime { path: PathBuf, device: Device, reason: String },
    #[error("{path}: {what} is {found}, expected {expected}", path = .path.display())]
    Contract { path: PathBuf, what: String, found: String, expected: String },
    #[error("{path}: {reason}", path = .path.display())]
    Remote { path: PathBuf, reason: String },
    #[error("{path}: no answer before the deadline", path = .path.display())]
    Timeout { path: PathBuf },
    #[error("{path}: the model returned {found}, expected one finite logit per article", path = .path.display())]
    Output { path: PathBuf, found: String },
    #[error(
        "{path}: the weight `{weight}` holds NaN, expected numbers; export the model again from a training run that \
         did not diverge",
        path = .path.display()
    )]
    Weights { path: PathBuf, weight: String },
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
}

/// What a method's model must match: the release and the method's entry in its manifest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contract<'a> {
    release: &'a Release,
    entry: &'a MethodEntry,
}

impl<'a> Contract<'a> {
    pub(super) fn new(release: &'a Release, entry: &'a MethodEntry) -> Self {
        Self { release, entry }
    }

    pub(super) fn manifest(self) -> &'a Manifest {
        self.release.manifest()
    }

    pub(super) fn entry(self) -> &'a MethodEntry {
        self.entry
    }

    fn schema(self) -> &'a Schema {
        self.release.schema()
    }

    pub(super) fn file(self) -> PathBuf {
        self.release.model_path(self.entry)
    }

    /// The model's name on a server.
    pub(super) fn remote_name(self) -> String {
        format!("{}-{}", self.manifest().name, self.entry.method)
    }

    /// The number of articles in the vocabulary.
    pub(super) fn articles(self) -> usize {
        self.release.vocabulary().len()
    }

    /// The number of features in the schema.
    pub(super) fn features(self) -> usize {
        self.schema().features().len()
    }
}

/// A model that is ready to answer.
#[derive(Debug)]
pub(super) struct Model {
    backend: Backend,
    articles: usize,
    /// The number of features, if it takes features.
    features: Option<usize>,
    optional: OptionalOutputs,
}

#[derive(Debug)]
enum Backend {
    Local(Box<Local>),
    Remote(Box<Remote>),
}

impl Backend {
    fn path(&self) -> &Path {
        match self {
            Self::Local(local) => local.path(),
            Self::Remote(remote) => remote.path(),
        }
    }

    fn head(&self) -> Option<&Arc<Head>> {
        match self {
            Self::Local(local) => local.head(),
            Self::Remote(_) => None,
        }
    }
}

/// Which of the optional outputs a model has.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionalOutputs {
    pub(super) personas: bool,
    pub(super) steps: bool,
}

/// The outputs of one run.
#[derive(Debug)]
pub(super) struct Outputs<'a> {
    /// The logits, or the hidden vectors if a head computes the last layer.
    pub(super) last: &'a [f32],
    /// The number of personas, and the mixes of all rows.
    pub(super) personas: Option<(usize, &'a [f32])>,
    pub(super) steps: Option<&'a [f32]>,
}

impl Outputs<'_> {
    /// Adds the optional outputs to the answers. An answer is None if its logits are not finite.
    pub(super) fn complete(
        &self,
        path: &Path,
        answers: Vec<Option<Answer>>,
    ) -> Vec<Result<Answer, ModelError>> {
        let complete = |(row, answer): (usize, Option<Answer>)| {
            let mut answer = answer.ok_or_else(|| ModelError::Output {
                path: path.to_owned(),
                found: "logits that are not finite".into(),
            })?;
            answer.personas = self.personas.map(|(count, all)| all[row * count..][..count].to_vec());
            answer.steps = self.steps.map(|steps| steps[row]);
            Ok(answer)
        };
        answers.into_iter().enumerate().map(complete).collect()
    }
}

impl Model {
    /// Opens the file, or finds the model on its server, checks its inputs and outputs, and asks it trial questions.
    /// Further copies of a model share the head of the first.
    pub(super) fn open(
        location: &Location,
        contract: Contract<'_>,
        head: Option<Arc<Head>>,
    ) -> Result<Self, ModelError> {
        let (backend, (inputs, outputs)) = match location {
            Location::Local { runtime, device, cores } => {
                let local = Local::open(runtime, *device, cores.clone(), contract, head)?;
                let ports = local.ports();
                (Backend::Local(Box::new(local)), ports)
            }
            Location::Remote(origin) => {
                let mut remote = Remote::new(origin.clone(), &contract.remote_name());
                let ports = remote.fetch_ports(Instant::now() + TRIAL)?;
                (Backend::Remote(Box::new(remote)), ports)
            }
        };
        let signature = Signature { path: backend.path(), inputs, outputs };
        signature.check(contract, backend.head().map(|head| &**head))?;
        let features = signature.has_input("features").then_some(contract.features());
        let optional = OptionalOutputs {
            personas: signature.has_output("personas"),
            steps: signature.has_output("steps"),
        };
        let mut model = Self { backend, articles: contract.articles(), features, optional };
        model.run_trials(contract)?;
        Ok(model)
    }

    /// The head that further copies share.
    pub(super) fn head(&self) -> Option<Arc<Head>> {
        self.backend.head().cloned()
    }

    pub(super) fn takes_features(&self) -> bool {
        self.features.is_some()
    }

    pub(super) fn gives_personas(&self) -> bool {
        self.optional.personas
    }

    /// Answers all questions in one run. If one row is not finite, only its question fails. The deadline is for
    /// servers; a session's run cannot be cut short.
    pub(super) fn answer(
        &mut self,
        questions: &[Question],
        deadline: Instant,
    ) -> Result<Vec<Result<Answer, ModelError>>, ModelError> {
        let Self { backend, articles, features, optional } = self;
        let inputs = Inputs::new(questions, *articles, *features);
        match backend {
            Backend::Local(local) => local.answer(inputs, *articles, *optional, questions),
            Backend::Remote(remote) => {
                let inferred = remote.infer(&inputs, *articles, *optional, deadline)?;
                let path = remote.path();
                let outputs = inferred.outputs(questions.len(), *articles, *optional, path)?;
                Ok(outputs.complete(path, choose_all(outputs.last, *articles, questions)))
            }
        }
    }

    /// Asks about outfits of every length, with and without a context. A file that fails on one of them would fail on a
    /// customer.
    fn run_trials(&mut self, contract: Contract<'_>) -> Result<(), ModelError> {
        let blank = contract.release.vocabulary().blank();
        // The last row of each feature's table, to find tables that are too short.
        let last = |feature: &Feature| {
            vec![u32::try_from(feature.rows() - 1).expect("tables are small; this is a bug")]
        };
        let full: Context = contract.schema().features().iter().map(last).collect();
        let empty: Context = vec![Vec::new(); full.len()].into();
        let question = |length: usize| {
            let others = (0..).take(length - 1).map(|place| place % blank);
            let slots = std::iter::once(blank).chain(others).collect();
            let context = if length.is_multiple_of(2) { full.clone() } else { empty.clone() };
            Question { k: 1, placements_of: vec![blank - 1], ..Question::new(slots, 0, context) }
        };
        let questions: Vec<Question> = (1..=MAX_SLOTS).map(question).collect();
        let deadline = Instant::now() + TRIAL;
        for answer in self.answer(&questions, deadline)? {
            answer?;
        }
        self.answer(&questions[..1], deadline)?.remove(0).map(drop)
    }
}
