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
    Answer, Device, Question,
    choose::choose_all,
    cores::Cores,
    head::Head,
    inputs::Inputs,
    local::Local,
    remote::Remote,
    signature::Signature,
    trial::{Run, Trial},
};
use crate::{
    domain::Schema,
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
    #[error("{path}: the model returned {found}, expected finite numbers, one logit per article", path = .path.display())]
    Output { path: PathBuf, found: String },
    #[error(
        "{path}: the weight `{weight}` holds {found}, expected numbers below 1e18; export the model again from a \
         training run that did not diverge",
        path = .path.display()
    )]
    Weights { path: PathBuf, weight: String, found: String },
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

    /// Whether all weights were searched for numbers with which nothing can be computed.
    fn weights_searched(&self) -> bool {
        match self {
            Self::Local(local) => local.weights_searched(),
            Self::Remote(_) => false,
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
    /// Adds the optional outputs to the answers. An answer is None if its logits are not finite; the optional outputs
    /// must be finite, too.
    pub(super) fn complete(
        &self,
        path: &Path,
        answers: Vec<Option<Answer>>,
    ) -> Vec<Result<Answer, ModelError>> {
        let complete = |(row, answer): (usize, Option<Answer>)| {
            let infinite = |name: &str| ModelError::Output {
                path: path.to_owned(),
                found: format!("{name} that are not finite"),
            };
            let mut answer = answer.ok_or_else(|| infinite("logits"))?;
            answer.personas = self.personas.map(|(count, all)| all[row * count..][..count].to_vec());
            answer.steps = self.steps.map(|steps| steps[row]);
            if !answer.personas.iter().flatten().all(|part| part.is_finite()) {
                return Err(infinite("personas"));
            }
            if answer.steps.is_some_and(|steps| !steps.is_finite()) {
                return Err(infinite("steps"));
            }
            Ok(answer)
        };
        answers.into_iter().enumerate().map(complete).collect()
    }
}

impl Model {
    /// Opens the file, or finds the model on its server, checks its inputs and outputs, and asks it trial questions.
    /// Further copies of a model share the head of the first, and are not tried as thoroughly.
    pub(super) fn open(
        location: &Location,
        contract: Contract<'_>,
        head: Option<Arc<Head>>,
        first: bool,
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
        model.run_trial(contract, first)?;
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

    /// A file that fails on a trial question would fail on a customer. `first` is false for further copies of a model
    /// that has passed.
    fn run_trial(&mut self, contract: Contract<'_>, first: bool) -> Result<(), ModelError> {
        let articles = contract.release.vocabulary().blank();
        let trial = Trial { articles, schema: contract.schema(), deadline: Instant::now() + TRIAL };
        let weights_searched = self.backend.weights_searched();
        let path = self.backend.path().to_owned();
        let run: &mut Run<'_> = &mut |questions: &[Question], deadline| self.answer(questions, deadline);
        if !first {
            return trial.answers(run);
        }
        trial.same_answers(run, |found, expected| {
            let what = "its answer to the same question".to_owned();
            ModelError::Contract { path: path.clone(), what, found, expected }
        })?;
        if weights_searched { Ok(()) } else { trial.every_article(run) }
    }
}
