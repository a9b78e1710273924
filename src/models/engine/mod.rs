//! The engine: which articles belong in a blank, answered by a release's models in ONNX Runtime.
//!
//! A [`Question`] comes in (an outfit by the vocabulary's indices, the blank that is asked about, the
//! customer's context, who may be suggested); an [`Answer`] goes out: the best of those who may be, and
//! how likely they are. Questions to one method wait in one bounded queue; OS threads that own their
//! sessions take from it as many as fit a batch whenever they are free, so batches fill while models
//! are busy, without a timer. Choosing happens there too, outside the graph: V-wide logits never leave those threads,
//! and where `head` computes a model's last layer they never exist; `cores` that are free help with that. Instead of
//! a session a thread may own a connection to a server that has the same model.
//!
//! A [`Serving`] is a release with all its methods loaded. It is shared; when the last request that holds
//! it is answered its threads end and its models are freed.
//!
//! Must not know HTTP, the database, customers or what an article is beyond its index.

mod choose;
mod cores;
mod device;
mod graph;
mod head;
mod inputs;
mod local;
mod metrics;
mod model;
mod queue;
mod remote;
mod serving;
mod softmax;
mod surface;
mod weights;
mod worker;

use std::{path::Path, sync::Arc};

pub use cores::cores_here;
pub use device::{Device, DeviceChoice};
pub use metrics::EngineMetrics;
pub use model::ModelError;
pub use queue::{Admission, AskError, QueueState, Reply, Reservation};
pub use serving::{LoadError, Serving};

use self::cores::Cores;
use crate::{
    domain::Mask,
    models::{onnx_runtime::OnnxRuntime, release::Release},
    util::http_client::Origin,
};

/// A customer's context as models take it: for each feature of the schema the indices of its values,
/// 1 and up; empty where it is not given.
pub type Context = Arc<[Vec<u32>]>;

/// What is asked: who belongs in one blank of an outfit.
#[derive(Debug, Clone)]
pub struct Question {
    /// One to eight slots by the vocabulary's indices; blanks are [`Vocabulary::blank`].
    ///
    /// [`Vocabulary::blank`]: crate::domain::Vocabulary::blank
    pub slots: Vec<u32>,
    /// The place of the blank that is asked about.
    pub blank: usize,
    pub context: Context,
    /// Who may be suggested; everybody if not given.
    pub admissible: Option<Arc<Mask>>,
    /// How many of the best are wanted.
    pub k: usize,
    /// Articles whose standing is asked for by name, suggested or not.
    pub of: Vec<u32>,
    /// Whether their ranks are wanted: each costs a pass over the vocabulary.
    pub ranks: bool,
}

impl Question {
    /// About everybody, with nothing wanted of the answer yet.
    pub fn new(slots: Vec<u32>, blank: usize, context: Context) -> Self {
        Self { slots, blank, context, admissible: None, k: 0, of: Vec::new(), ranks: false }
    }
}

/// What a model says.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The best `k` of those who may be suggested, best first; equal ones by index.
    pub top: Vec<Candidate>,
    /// Of the articles asked for, in their order.
    pub of: Vec<Standing>,
    /// How many may be suggested, and their probability together.
    pub admissible: usize,
    pub admissible_probability: f64,
    /// The outfit's personas, where the method has them.
    pub personas: Option<Vec<f32>>,
    /// Mean steps of a universal trunk, where the method has one.
    pub steps: Option<f32>,
}

/// An article and its probability over the whole vocabulary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    pub article: u32,
    pub probability: f64,
}

/// Where an article stands that was asked for by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Natural logarithm of the probability over the whole vocabulary.
    pub log_probability: f64,
    /// Among those who may be suggested, from 1 up: one more than how many of them are more likely.
    pub rank: Option<usize>,
}

/// How much the engine takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Most threads a method, each with a session of its own that computes on that thread alone: two such
    /// answer more in a second than one session with two threads does. All but the first open their session
    /// when those before them cannot keep up. Of so many cores, or of the machine's where it has fewer, those that no
    /// run needs help with large last layers.
    pub workers: usize,
    /// Most questions that a session is given at once.
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
}

/// Where models run.
#[derive(Debug, Clone)]
pub enum Models {
    /// In sessions of this process.
    Here(OnnxRuntime),
    /// At a server that speaks the Open Inference Protocol and knows the model of a method as `<release>-<method>`.
    At(Origin),
}

impl From<OnnxRuntime> for Models {
    fn from(onnx_runtime: OnnxRuntime) -> Self {
        Self::Here(onnx_runtime)
    }
}

impl From<Origin> for Models {
    fn from(server: Origin) -> Self {
        Self::At(server)
    }
}

impl Engine {
    pub fn new(models: impl Into<Models>, settings: Settings) -> Self {
        // Threads beyond the machine's cores would only take them from each other.
        let (cores, metrics) = (Cores::new(settings.workers.min(cores_here())), EngineMetrics::default());
        Self { models: models.into(), settings, cores, metrics }
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// What is counted of all releases that this engine loads.
    pub fn metrics(&self) -> &EngineMetrics {
        &self.metrics
    }

    /// What computes here, in its own words: nothing where models are at a server.
    pub fn onnx_runtime(&self) -> &'static str {
        match &self.models {
            Models::Here(onnx_runtime) => onnx_runtime.build_info(),
            Models::At(_) => "none",
        }
    }

    /// Reads a release and starts all its methods, warmed up. Takes as long as that takes: not for a
    /// thread that others wait on.
    pub fn load(&self, folder: &Path) -> Result<Serving, LoadError> {
        Serving::start(self, Release::open(folder)?)
    }
}
