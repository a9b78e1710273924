//! A release with its models running.

use std::{collections::BTreeMap, io, ops::Range, sync::Arc, time::Instant};

use atelier_core::{domain::Method, util::memory::ReturnMemoryOnDrop};

use super::{
    Admission, Articles, AskError, BLANK, Device, Engine, EngineMetrics, Models, Question, QueueState, Reply,
    Reservation, Settings, available_cores,
    model::{self, Contract, Location, Model, ModelError},
    queue::{Parallel, Queue},
    worker::Worker,
};
use crate::{
    outfit_memory::Alike,
    release::{Release, ReleaseError},
    tables::Tables,
};

/// Fewest questions for which a thread starts a run while its method's runs have fewer than half of the cores.
/// Smaller runs cost so much more per question that the machine would answer fewer questions in total.
const MIN_PARALLEL_RUN: usize = 16;

/// Why a release cannot be served. The live release stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("cannot start a thread or a process for a model: {0}")]
    Thread(#[from] io::Error),
    /// A trial in a process of its own.
    #[error("{reason}")]
    Trial { reason: String, for_good: bool },
}

/// A release with its models running. When it is dropped, its threads answer what is waiting, end, and free the models.
#[derive(Debug)]
pub struct Serving {
    release: Arc<Release>,
    device: Device,
    /// Why a better device was not used, in ONNX Runtime's words.
    device_note: Option<String>,
    methods: BTreeMap<Method, RunningMethod>,
    metrics: EngineMetrics,
}

#[derive(Debug)]
struct RunningMethod {
    queue: Arc<Queue>,
    takes_features: bool,
    gives_personas: bool,
    /// None if its model is whole.
    tables: Option<Arc<Tables>>,
}

impl Serving {
    /// Starts on the model server, or on the first device on which all models pass their trial runs.
    pub(super) fn start(engine: &Engine, release: Release) -> Result<Self, LoadError> {
        let release = Arc::new(release);
        let devices = match &engine.models {
            Models::Local(_) => engine.settings.device.candidates(),
            Models::Remote(_) => &[Device::Remote],
        };
        let start = |device| {
            let location = Location { models: engine.models.clone(), device, cores: engine.cores.clone() };
            Self::start_at(&location, engine, Arc::clone(&release))
        };
        let (&last, better) = devices.split_last().expect("each choice names a device");
        let mut note = None;
        for &device in better {
            match start(device) {
                // Other errors do not depend on the device.
                Err(LoadError::Model(ModelError::Runtime { reason, .. })) => note = Some(reason),
                started => return started,
            }
        }
        let mut serving = start(last)?;
        serving.device_note = note;
        Ok(serving)
    }

    fn start_at(location: &Location, engine: &Engine, release: Arc<Release>) -> Result<Self, LoadError> {
        let (settings, metrics) = (engine.settings, engine.metrics.clone());
        let (device, methods) = (location.device, BTreeMap::new());
        let mut serving = Self { release, device, device_note: None, methods, metrics };
        let entries = serving.release.manifest().methods.clone();
        let return_memory = Arc::new(ReturnMemoryOnDrop);
        // A model server may be slow to answer one run while it would answer others.
        let parallel = if device == Device::Remote {
            Parallel { runs: usize::MAX, least: 1 }
        } else {
            Parallel { runs: available_cores() / 2, least: MIN_PARALLEL_RUN }
        };
        let mut models = open_models(location, &serving.release)?;
        if engine.fills_memory {
            fill_batches(&mut models, location, &serving.release, settings)?;
        }
        for (entry, model) in entries.iter().zip(models) {
            let tables = model.tables();
            let queue = Arc::new(Queue::new(settings.queue, settings.batch, parallel));
            // Inserted before its first thread starts: if a later thread fails to, dropping `serving` ends this one.
            let method = RunningMethod {
                queue: Arc::clone(&queue),
                takes_features: model.takes_features(),
                gives_personas: model.gives_personas(),
                tables: tables.clone(),
            };
            serving.methods.insert(entry.method, method);
            let metrics = serving.metrics.for_model(entry.method, &serving.release.manifest().name, device);
            let worker = Worker::new(entry.method, queue, metrics, Arc::clone(&return_memory));
            worker.clone().start(model)?;
            for _ in 1..settings.workers {
                let (location, release) = (location.clone(), Arc::clone(&serving.release));
                let (entry, tables) = (entry.clone(), tables.clone());
                let open = move || {
                    // The file may have changed since; all copies of a model must give the same answers.
                    release.check_model(&entry)?;
                    let contract = Contract { release: &release, entry: &entry };
                    Ok(Model::open(&location, contract, tables, false)?)
                };
                worker.clone().start_reserve(open)?;
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

    /// Why the device is not CUDA, if CUDA was tried.
    pub fn device_note(&self) -> Option<&str> {
        self.device_note.as_deref()
    }

    /// In the order of [`Method`].
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        self.methods.keys().copied()
    }

    pub fn has(&self, method: Method) -> bool {
        self.methods.contains_key(&method)
    }

    /// Whether the method takes the customer into account.
    pub fn takes_features(&self, method: Method) -> bool {
        self.methods.get(&method).is_some_and(|running| running.takes_features)
    }

    fn tables_of(&self, method: Method) -> Option<&Tables> {
        self.methods.get(&method)?.tables.as_deref()
    }

    /// Whether the method returns an outfit's mix of personas.
    pub fn gives_personas(&self, method: Method) -> bool {
        self.methods.get(&method).is_some_and(|running| running.gives_personas)
    }

    /// The remembered outfits that speak for an article, by positions; None if none do.
    pub fn outfits_with(
        &self,
        method: Method,
        articles: &Articles,
        slots: &[u32],
        article: u32,
    ) -> Option<Alike> {
        let outfits = self.tables_of(method)?.outfits()?;
        let own = articles.index.composition(article)?.own?;
        let mut alike = outfits.alike(&model::visible(articles, slots), own)?;
        for article in &mut alike.articles {
            *article = articles.position_in_vocabulary(*article)?;
        }
        Some(alike)
    }

    /// By position, the articles that are worn with the same others as this one, and how much so. None are if no method remembers
    /// whole outfits.
    pub fn worn_alike(&self, articles: &Articles, article: u32) -> BTreeMap<u32, f64> {
        let outfits = self.tables().find_map(|(_, tables)| tables?.outfits());
        let own = articles.index.composition(article).and_then(|composition| composition.own);
        let Some((outfits, own)) = outfits.zip(own) else { return BTreeMap::new() };
        let alike = outfits.worn_alike(own).into_iter();
        alike.filter_map(|(other, much)| Some((articles.position_in_vocabulary(other)?, much))).collect()
    }

    /// Whether the method remembers whole outfits.
    pub fn remembers_outfits(&self, method: Method) -> bool {
        self.tables_of(method).is_some_and(|tables| tables.outfits().is_some())
    }

    /// Whether the method can suggest articles that it was not trained with.
    pub fn is_open(&self, method: Method) -> bool {
        self.tables_of(method).is_some_and(Tables::is_open)
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = (Method, Option<&Tables>)> {
        self.methods.iter().map(|(method, running)| (*method, running.tables.as_deref()))
    }

    pub fn queues(&self) -> impl Iterator<Item = (Method, QueueState)> {
        self.methods.iter().map(|(method, running)| (*method, running.queue.state()))
    }

    /// Asks the method a question, to find out whether it answers at all.
    pub async fn probe(
        &self,
        articles: &Arc<Articles>,
        method: Method,
        deadline: Instant,
    ) -> Result<(), AskError> {
        let features = self.release.schema().features().len();
        let context = vec![Vec::new(); features].into();
        let question = Question { k: 1, ..Question::new(Arc::clone(articles), vec![BLANK], 0, context) };
        self.ask(method, vec![question], deadline).await.map(drop)
    }

    /// Admits the questions that a batch of requests will ask, all of them or none.
    pub fn reserve(
        &self,
        method: Method,
        questions: usize,
        deadline: Instant,
    ) -> Result<Reservation, AskError> {
        let reserved = match self.methods.get(&method) {
            Some(running) => running.queue.reserve(questions, deadline),
            None => Err(AskError::NoMethod(method)),
        };
        reserved.inspect_err(|error| self.metrics.add_rejection(method, error))
    }

    /// Asks questions as a new request without follow-ups.
    ///
    /// Dropping the future cancels what is still waiting.
    pub async fn ask(
        &self,
        method: Method,
        questions: Vec<Question>,
        deadline: Instant,
    ) -> Result<Reply, AskError> {
        let new = Admission::New { follow_ups: 0 };
        self.ask_as(new, method, questions, deadline).await.map(|(reply, _)| reply)
    }

    /// Asks questions as [`ask`](Self::ask) does, with the given admission to the queue. The reservation is for the
    /// follow-up questions of a new request.
    pub async fn ask_as(
        &self,
        admission: Admission,
        method: Method,
        questions: Vec<Question>,
        deadline: Instant,
    ) -> Result<(Reply, Reservation), AskError> {
        let asked = match self.methods.get(&method) {
            Some(running) => running.queue.ask(questions, admission, deadline).await,
            None => Err(AskError::NoMethod(method)),
        };
        asked.inspect_err(|error| self.metrics.add_rejection(method, error))
    }
}

/// Opens and tries the model of each method. Each takes a core for some time, so idle cores help; on other devices the
/// first failure ends it.
fn open_models(location: &Location, release: &Release) -> Result<Vec<Model>, ModelError> {
    let entries = &release.manifest().methods;
    let open = |range: Range<usize>| -> Result<Vec<Model>, ModelError> {
        let model = |entry| {
            let contract = Contract { release, entry };
            Model::open(location, contract, contract.open_tables()?, true)
        };
        entries[range].iter().map(model).collect()
    };
    let opened = if location.device == Device::Cpu {
        location.cores.start_run(true).map_ranges(entries.len(), usize::MAX, open)
    } else {
        vec![open(0..entries.len())]
    };
    opened.into_iter().try_fold(Vec::new(), |mut all, models| {
        all.extend(models?);
        Ok(all)
    })
}

/// Opens all further copies of the models too, and lets each answer a full batch.
fn fill_batches(
    models: &mut [Model],
    location: &Location,
    release: &Release,
    Settings { workers, batch, .. }: Settings,
) -> Result<(), ModelError> {
    let mut copies = Vec::new();
    for (entry, model) in release.manifest().methods.iter().zip(models) {
        let contract = Contract { release, entry };
        for _ in 1..workers {
            let mut copy = Model::open(location, contract, model.tables(), false)?;
            copy.answer_batch(contract, batch)?;
            copies.push(copy);
        }
        model.answer_batch(contract, batch)?;
    }
    Ok(())
}

impl Drop for Serving {
    fn drop(&mut self) {
        for running in self.methods.values() {
            running.queue.close();
        }
    }
}
