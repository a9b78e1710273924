//! The engine: predicts the article for a blank with a release's models in ONNX Runtime.
//!
//! A [`Question`] comes in: an outfit as positions in the catalogue's [`Articles`], one of its blanks, the customer's context,
//! and the admissible articles. An [`Answer`] goes out: the best admissible articles and their probabilities. Questions to one
//! method wait in one bounded queue. OS threads that own their sessions take a batch from it whenever they are free, so
//! batches fill while models are busy, without a timer. The threads also choose the best articles, so the
//! logits of all articles never leave them. Where `head` computes a model's last layer, the logits are never
//! stored at all; idle `cores` help with that. A thread may own a connection to a model server instead of a session.
//!
//! A [`Serving`] is a release with all its methods loaded. It is shared by requests. When the last request that holds
//! it is answered, its threads end and its models are freed.
//!
//! Must not know the web layer, the database, customers, or anything about an article but its index.

mod articles;
mod cores;
mod deadlines;
mod device;
mod head;
mod inputs;
mod local;
mod metrics;
mod model;
mod queue;
mod remote;
mod scorer;
mod serving;
mod signature;
mod steering;
mod trial;
mod weights;
mod worker;

use std::{path::Path, sync::Arc};

use atelier_core::{domain::Mask, util::http_client::Origin};

pub use articles::Articles;
pub use cores::available_cores;
pub use deadlines::{are_runs_ended, end_runs};
pub use device::{Device, DeviceChoice};
pub use metrics::EngineMetrics;
pub use model::ModelError;
pub use queue::{Admission, AskError, QueueState, Reply, Reservation};
pub use scorer::{Scorer, Scores};
pub use serving::{LoadError, Serving};
pub use steering::{Offsets, Shown, Steering};

use self::cores::Cores;
use crate::{
    onnx_runtime::OnnxRuntime,
    release::{Release, ReleaseError},
    tables::TablesError,
};

/// A customer's context in the form that models take: for each feature of the schema the indices of its values, from 1
/// up, or nothing if the feature is not given.
pub type Context = Arc<[Vec<u32>]>;

/// Content of a slot that is a blank.
pub const BLANK: u32 = u32::MAX;
/// Content of a slot that the outfit does not have.
pub(crate) const PADDING: u32 = u32::MAX - 1;

/// Asks which article belongs in one blank of an outfit.
#[derive(Debug, Clone)]
pub struct Question {
    pub articles: Arc<Articles>,
    /// One to twelve slots: the articles' positions, or [`BLANK`].
    pub slots: Vec<u32>,
    /// The blank's index in `slots`.
    pub blank: usize,
    pub context: Context,
    /// The articles that may be suggested, of those that the method knows; None for all of these.
    pub admissible: Option<Arc<Mask>>,
    /// The number of suggestions.
    pub k: usize,
    /// Articles whose placement is returned, suggested or not.
    pub placements_of: Vec<u32>,
    /// Whether all probabilities of the answer are among the admissible articles. Then only these are looked at, so a
    /// question that admits few costs little.
    pub only_admissible: bool,
    /// Whether remembered outfits are left out of account.
    pub without_outfits: bool,
    /// Whether placements have ranks. Counting them takes a pass over the vocabulary.
    pub ranks: bool,
    /// Moves articles in the order of the answer.
    pub steering: Option<Arc<Steering>>,
}

impl Question {
    /// A question that admits all articles and requests nothing yet.
    pub fn new(articles: Arc<Articles>, slots: Vec<u32>, blank: usize, context: Context) -> Self {
        // Not from a default: a catalogue without articles takes 30 µs to make.
        Self {
            articles,
            slots,
            blank,
            context,
            admissible: None,
            k: 0,
            placements_of: Vec::new(),
            only_admissible: false,
            without_outfits: false,
            ranks: false,
            steering: None,
        }
    }
}

/// A model's answer to one question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The `k` most probable admissible articles, best first, in the order of the question's steering. Equally likely ones are in
    /// the byte order of their ids.
    pub top: Vec<Candidate>,
    /// In the order of [`Steering::wanted`]: the best of each set.
    pub wanted: Vec<Vec<Candidate>>,
    /// In the order of [`Question::placements_of`].
    pub placements: Vec<Placement>,
    /// The number of admissible articles.
    pub admissible: usize,
    /// The sum of their probabilities; 1 if only they were looked at.
    pub admissible_probability: f64,
    /// The outfit's mix of personas, if the method has personas.
    pub personas: Option<Vec<f32>>,
    /// The mean number of steps, if the method has a universal trunk.
    pub steps: Option<f32>,
}

impl Answer {
    /// The answer to a question that admits no article and looks at no other.
    fn empty(question: &Question) -> Self {
        let nowhere = Placement { log_probability: f64::NEG_INFINITY, rank: question.ranks.then_some(1) };
        let wanted = question.steering.as_ref().map_or(0, |steering| steering.wanted.len());
        let placements = vec![nowhere; question.placements_of.len()];
        Self { wanted: vec![Vec::new(); wanted], placements, ..Self::default() }
    }
}

/// An article and its probability over all that the method knows, or over the admissible ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Its position.
    pub article: u32,
    pub probability: f64,
    /// Its rank by probability among the admissible articles, if [`Steering::shown`] asks for it.
    pub own_rank: Option<usize>,
}

/// Where a named article ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placement {
    /// Natural logarithm of the probability, as candidates have it.
    pub log_probability: f64,
    /// From 1 up: one more than the number of admissible articles that are more probable.
    pub rank: Option<usize>,
}

/// The engine's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Most threads per method. Each has a session of its own, which computes on that thread alone: two such sessions
    /// answer more questions per second than one session with two threads. All but the first open their session when
    /// the open ones cannot keep up. Also the number of cores, at most the
    /// machine's, of which idle ones help with large last layers.
    pub workers: usize,
    /// Most questions in one run of a session.
    pub batch: usize,
    /// Most questions that wait for one method.
    pub queue: usize,
    pub device: DeviceChoice,
}

/// Loads releases.
#[derive(Debug, Clone)]
pub struct Engine {
    models: Models,
    settings: Settings,
    cores: Cores,
    metrics: EngineMetrics,
    fills_memory: bool,
}

/// Where models run.
#[derive(Debug, Clone)]
pub enum Models {
    /// In sessions of this process.
    Local(OnnxRuntime),
    /// On a server that speaks the Open Inference Protocol, where a method's model is called `<release>-<method>`.
    Remote(Origin),
}

impl From<OnnxRuntime> for Models {
    fn from(onnx_runtime: OnnxRuntime) -> Self {
        Self::Local(onnx_runtime)
    }
}

impl From<Origin> for Models {
    fn from(server: Origin) -> Self {
        Self::Remote(server)
    }
}

impl Engine {
    pub fn new(models: impl Into<Models>, settings: Settings) -> Self {
        // More threads than cores would only compete with each other.
        let cores = Cores::new(settings.workers.min(available_cores()));
        let (models, metrics) = (models.into(), EngineMetrics::default());
        Self { models, settings, cores, metrics, fills_memory: false }
    }

    /// Takes the memory for each release that serving may take: all sessions of its methods answer a full batch.
    pub fn fill_memory(self) -> Self {
        Self { fills_memory: true, ..self }
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The metrics of all releases that this engine loads.
    pub fn metrics(&self) -> &EngineMetrics {
        &self.metrics
    }

    /// ONNX Runtime's description of its version and build, or "none" if models run on a server.
    pub fn onnx_runtime(&self) -> &'static str {
        match &self.models {
            Models::Local(onnx_runtime) => onnx_runtime.build_info(),
            Models::Remote(_) => "none",
        }
    }

    /// Reads a release, starts all its methods and warms them up. Blocks until that is done.
    pub fn load(&self, folder: &Path) -> Result<Serving, LoadError> {
        Serving::start(self, Release::open(folder)?)
    }

    /// Whether loading the same files would fail with this error again. Otherwise a disk, a GPU, a model server or too
    /// little memory may be the cause.
    pub fn fails_again(&self, error: &LoadError) -> bool {
        let local = matches!(self.models, Models::Local(_));
        match error {
            LoadError::Release(error) => !matches!(error, ReleaseError::File { .. } | ReleaseError::Rows(_)),
            LoadError::Model(error) => match error {
                ModelError::Runtime { device, .. } => *device == Device::Cpu,
                ModelError::Contract { .. } | ModelError::Output { .. } | ModelError::Weights { .. } => local,
                ModelError::Tables(error) => !matches!(error, TablesError::File { .. }),
                ModelError::Remote { .. } | ModelError::Timeout { .. } | ModelError::File { .. } => false,
            },
            LoadError::Thread(_) => false,
            LoadError::Trial { for_good, .. } => *for_good,
        }
    }
}
