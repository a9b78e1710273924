//! A release with its models running.

use std::{
    collections::BTreeMap,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use tokio::sync::oneshot;

use super::{
    Answer, AskError, Device, Engine, EngineMetrics, Models, Question, QueueState,
    model::{Expected, Model, ModelError, Place},
    queue::{Asks, Job, Promise, Queue},
    worker::{self, Worker},
};
use crate::{
    domain::Method,
    models::release::{Release, ReleaseError},
    util::memory::ReturnMemoryOnDrop,
};

/// While one thread of a model runs, another begins only with so many questions: a run of fewer costs so much more a
/// question that the machine as a whole would answer less.
const WORTH_A_RUN: usize = 16;

/// Why a release cannot be served. What is served goes on being served.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("no thread can be started for a model: {0}")]
    Thread(#[from] io::Error),
}

/// A release that answers. Dropping it lets its threads finish what waits, and frees its models.
#[derive(Debug)]
pub struct Serving {
    release: Arc<Release>,
    device: Device,
    /// Why a better device was not taken, in ONNX Runtime's words.
    device_note: Option<String>,
    lines: BTreeMap<Method, MethodLine>,
    batch: usize,
    metrics: EngineMetrics,
}

/// One method: where its questions wait.
#[derive(Debug)]
struct MethodLine {
    queue: Arc<Queue>,
    takes_features: bool,
    gives_personas: bool,
}

/// Answers to questions asked together, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub answers: Vec<Answer>,
    /// The longest that any of them waited for a free model.
    pub queued: Duration,
    /// The longest that any of their runs took.
    pub inferred: Duration,
    /// The largest run that any of them was part of.
    pub batch: usize,
}

impl Serving {
    /// At the server of models, or on the first device on which all models really answer.
    pub(super) fn start(engine: &Engine, release: Release) -> Result<Self, LoadError> {
        let release = Arc::new(release);
        let onnx_runtime = match &engine.models {
            Models::Here(onnx_runtime) => onnx_runtime,
            Models::At(origin) => return Self::start_at(&Place::Remote(origin.clone()), engine, release),
        };
        let start = |device| {
            let place = Place::Local { runtime: onnx_runtime.clone(), device, cores: engine.cores.clone() };
            Self::start_at(&place, engine, Arc::clone(&release))
        };
        let (&last, better) = engine
            .settings
            .device
            .candidates()
            .split_last()
            .expect("each choice names a device; this is a bug");
        let mut note = None;
        for &device in better {
            match start(device) {
                // Only what the device may have caused is a reason to try another.
                Err(LoadError::Model(ModelError::Runtime { reason, .. })) => note = Some(reason),
                settled => return settled,
            }
        }
        let mut serving = start(last)?;
        serving.device_note = note;
        Ok(serving)
    }

    fn start_at(place: &Place, engine: &Engine, release: Arc<Release>) -> Result<Self, LoadError> {
        let (lines, settings, metrics) = (BTreeMap::new(), engine.settings, engine.metrics.clone());
        let (device, batch) = (place.device(), settings.batch.max(1));
        let mut serving = Self { release, device, device_note: None, lines, batch, metrics };
        let entries = serving.release.manifest().methods.clone();
        let return_memory = Arc::new(ReturnMemoryOnDrop);
        // One server's exchange may hang while others would answer.
        let worth_a_run = if matches!(place, Place::Remote(_)) { 1 } else { WORTH_A_RUN };
        for entry in &entries {
            let queue = Arc::new(Queue::new(settings.queue, serving.batch, worth_a_run));
            // In its place before its first thread runs: where a later model fails, dropping what was
            // begun ends that thread.
            let line = MethodLine { queue: Arc::clone(&queue), takes_features: false, gives_personas: false };
            let line = serving.lines.entry(entry.method).insert_entry(line).into_mut();
            let counted = serving.metrics.of(entry.method, &serving.release.manifest().name, serving.device);
            let return_memory = Arc::clone(&return_memory);
            let worker = Worker { method: entry.method, queue, counted, _return_memory: return_memory };
            let model = Model::open(place, Expected::new(&serving.release, entry), None)?;
            line.takes_features = model.takes_features();
            line.gives_personas = model.gives_personas();
            let head = model.head();
            worker::start(worker.clone(), model)?;
            for _ in 1..settings.workers {
                let (place, release) = (place.clone(), Arc::clone(&serving.release));
                let (entry, head) = (entry.clone(), head.clone());
                let open = move || {
                    // All copies of a model give the same answers, whatever became of its file meanwhile.
                    release.check_model(&entry)?;
                    Ok(Model::open(&place, Expected::new(&release, &entry), head)?)
                };
                worker::start_reserve(worker.clone(), open)?;
            }
        }
        Ok(serving)
    }

    pub fn release(&self) -> &Arc<Release> {
        &self.release
    }

    pub fn device(&self) -> Device {
        self.device
    }

    /// Why it is not CUDA, where that was tried.
    pub fn device_note(&self) -> Option<&str> {
        self.device_note.as_deref()
    }

    /// In the methods' own order.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        self.lines.keys().copied()
    }

    pub fn has(&self, method: Method) -> bool {
        self.lines.contains_key(&method)
    }

    /// Whether the method sees customers at all.
    pub fn takes_features(&self, method: Method) -> bool {
        self.lines.get(&method).is_some_and(|line| line.takes_features)
    }

    /// Whether the method says how an outfit is mixed of personas.
    pub fn gives_personas(&self, method: Method) -> bool {
        self.lines.get(&method).is_some_and(|line| line.gives_personas)
    }

    pub fn queues(&self) -> impl Iterator<Item = (Method, QueueState)> {
        self.lines.iter().map(|(method, line)| (*method, line.queue.state()))
    }

    /// Whether a method answers at all.
    pub async fn try_out(&self, method: Method, deadline: Instant) -> Result<(), AskError> {
        let features = self.release.schema().features().len();
        let slots = vec![self.release.vocabulary().blank()];
        let context = vec![Vec::new(); features].into();
        let question = Question { k: 1, ..Question::new(slots, 0, context) };
        self.ask(method, vec![question], deadline).await.map(drop)
    }

    /// Answers in the order of the questions. Whoever drops the future has left: what still waits is
    /// skipped.
    pub async fn ask(
        &self,
        method: Method,
        questions: Vec<Question>,
        deadline: Instant,
    ) -> Result<Answered, AskError> {
        self.ask_first(method, questions, 0, deadline).await.map(|(answered, _)| answered)
    }

    /// As [`ask`](Self::ask), for a request that will ask so many questions more: it is let in only where there is
    /// room for all of them, which is held until the promise is dropped.
    pub async fn ask_first(
        &self,
        method: Method,
        questions: Vec<Question>,
        later: usize,
        deadline: Instant,
    ) -> Result<(Answered, Promise), AskError> {
        self.answer(method, questions, deadline, Asks::Anew { later }).await
    }

    /// As [`ask`](Self::ask), for whoever waits for as long as it takes: only the queue's limit counts.
    pub async fn ask_patiently(
        &self,
        method: Method,
        questions: Vec<Question>,
        deadline: Instant,
    ) -> Result<Answered, AskError> {
        self.answer(method, questions, deadline, Asks::Patiently).await.map(|(answered, _)| answered)
    }

    /// For a request that has had answers already: the queue's limit is for those that come anew. Were it refused
    /// now, under overload most runs would be for requests that come to nothing.
    pub async fn ask_further(
        &self,
        method: Method,
        questions: Vec<Question>,
        deadline: Instant,
    ) -> Result<Answered, AskError> {
        self.answer(method, questions, deadline, Asks::Further).await.map(|(answered, _)| answered)
    }

    /// With whoever goes without an answer counted.
    async fn answer(
        &self,
        method: Method,
        questions: Vec<Question>,
        deadline: Instant,
        asks: Asks,
    ) -> Result<(Answered, Promise), AskError> {
        let answered = self.wait_for(method, questions, deadline, asks).await;
        answered.inspect_err(|error| self.metrics.rejected(method, error))
    }

    async fn wait_for(
        &self,
        method: Method,
        questions: Vec<Question>,
        deadline: Instant,
        asks: Asks,
    ) -> Result<(Answered, Promise), AskError> {
        let line = self.lines.get(&method).ok_or(AskError::NoMethod(method))?;
        let since = Instant::now();
        let mut jobs = Vec::new();
        let mut replies = Vec::new();
        let mut questions = questions.into_iter().peekable();
        while questions.peek().is_some() {
            let (reply, answer) = oneshot::channel();
            jobs.push(Job {
                questions: questions.by_ref().take(self.batch).collect(),
                since,
                deadline,
                reply,
            });
            replies.push(answer);
        }
        let promise = line.queue.push(jobs, asks)?;
        let late = || AskError::Deadline { waited: since.elapsed() };
        let all = try_join_all(replies.into_iter().map(async |reply| {
            reply.await.unwrap_or_else(|_| Err(AskError::Failed("its thread ended".into())))
        }));
        let replies = tokio::time::timeout_at(deadline.into(), all).await.map_err(|_| late())??;
        let mut whole =
            Answered { answers: Vec::new(), queued: Duration::ZERO, inferred: Duration::ZERO, batch: 0 };
        for reply in replies {
            whole.answers.extend(reply.answers);
            whole.queued = whole.queued.max(reply.queued);
            whole.inferred = whole.inferred.max(reply.inferred);
            whole.batch = whole.batch.max(reply.batch);
        }
        Ok((whole, promise))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        for line in self.lines.values() {
            line.queue.close();
        }
    }
}
