//! One model, checked against the contract of a release: an ONNX file open in a session, or the same model at a
//! server.
//!
//! Where a [`head`](super::head) computes the last layer, it chooses as well; else all logits come, and are chosen
//! from.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Answer, Context, Device, Question, choose::choose_each, cores::Cores, head::Head, inputs::Inputs,
    local::Local, remote::Remote, surface::Surface,
};
use crate::{
    domain::{MAX_SLOTS, Schema},
    models::{
        onnx_runtime::OnnxRuntime,
        release::{Manifest, MethodEntry, Release},
    },
    util::http_client::Origin,
};

/// How long trial outfits may take at a server: it may load the model for them.
const TRIAL: Duration = Duration::from_mins(1);

/// Where models compute.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Local { runtime: OnnxRuntime, device: Device, cores: Cores },
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
    pub(super) entry: &'a MethodEntry,
}

impl<'a> Expected<'a> {
    pub(super) fn new(release: &'a Release, entry: &'a MethodEntry) -> Self {
        Self { release, entry }
    }

    pub(super) fn manifest(self) -> &'a Manifest {
        self.release.manifest()
    }

    fn schema(self) -> &'a Schema {
        self.release.schema()
    }

    pub(super) fn file(self) -> PathBuf {
        self.release.model(self.entry)
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
    backend: Backend,
    articles: usize,
    /// Where it sees customers, how many features.
    features: Option<usize>,
    gives: Gives,
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

impl Outputs<'_> {
    /// The answers that were chosen, with what else the run gave; none was chosen where logits are no finite numbers.
    pub(super) fn answers(
        &self,
        path: &Path,
        chosen: Vec<Option<Answer>>,
    ) -> Vec<Result<Answer, ModelError>> {
        let answer = |(row, chosen): (usize, Option<Answer>)| {
            let mut answer = chosen.ok_or_else(|| ModelError::Answers {
                path: path.to_owned(),
                found: "logits that are not finite".into(),
            })?;
            answer.personas = self.personas.map(|(count, all)| all[row * count..][..count].to_vec());
            answer.steps = self.steps.map(|steps| steps[row]);
            Ok(answer)
        };
        chosen.into_iter().enumerate().map(answer).collect()
    }
}

impl Model {
    /// Opens the file, or finds the model at its server; checks its surface, and asks it about trial outfits. A
    /// further copy takes the head of the first.
    pub(super) fn open(
        place: &Place,
        expected: Expected<'_>,
        head: Option<Arc<Head>>,
    ) -> Result<Self, ModelError> {
        let (backend, (inputs, outputs)) = match place {
            Place::Local { runtime, device, cores } => {
                let local = Local::open(runtime, *device, cores.clone(), expected, head)?;
                let surface = local.surface();
                (Backend::Local(Box::new(local)), surface)
            }
            Place::Remote(origin) => {
                let mut remote = Remote::new(origin.clone(), &expected.remote_name());
                let surface = remote.surface(Instant::now() + TRIAL)?;
                (Backend::Remote(Box::new(remote)), surface)
            }
        };
        let surface = Surface { path: backend.path(), inputs, outputs };
        surface.check(expected, backend.head().map(|head| &**head))?;
        let features = surface.takes("features").then_some(expected.features());
        let gives = Gives { personas: surface.gives("personas"), steps: surface.gives("steps") };
        let mut model = Self { backend, articles: expected.articles(), features, gives };
        model.try_out(expected)?;
        Ok(model)
    }

    /// What further copies share.
    pub(super) fn head(&self) -> Option<Arc<Head>> {
        self.backend.head().cloned()
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
        let Self { backend, articles, features, gives } = self;
        let inputs = Inputs::new(questions, *articles, *features);
        match backend {
            Backend::Local(local) => local.answer(inputs, *articles, *gives, questions),
            Backend::Remote(remote) => {
                let answered = remote.infer(&inputs, *gives, deadline)?;
                let path = remote.path();
                let outputs = answered.outputs(questions.len(), *articles, *gives, path)?;
                Ok(outputs.answers(path, choose_each(outputs.last, *articles, questions)))
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
