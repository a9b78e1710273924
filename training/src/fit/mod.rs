//! Fits a method to a data folder: epochs of steps, with early stopping on the development split. A run that was
//! interrupted resumes from its folder with the same numbers.
//!
//! Data comes in as [`Data`], settings as [`RunConfig`]; results go into a [`RunFolder`]. This module must never
//! know the validation split, a terminal or a signal: the caller passes a clock, a flag that stops the run, and a
//! handler of [`Event`]s.

mod batches;
mod config;
mod curves;
mod development;
mod folder;
mod handover;
mod new_share;
mod personas;
mod readme;
mod schedule;
mod shrink;
mod start;
mod sureness;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Result, bail};
use atelier_engine::outfit_memory::OutfitMemory;
use serde::{Deserialize, Serialize};

pub(crate) use config::Difference;
pub use config::{DataConfig, FitConfig, Overrides, PairConfig, RunConfig};
pub use curves::draw_alone;
pub use development::Scores;
pub use folder::RunFolder;

use self::{
    batches::{Masks, Pairs},
    development::Development,
    schedule::{Schedule, count_epochs, patience},
};
use crate::{
    baselines::Logit,
    data::Data,
    engine::ValueRows,
    model::{Loss, Model, Trainer},
    number::real,
    pair::PairFigures,
};

/// One epoch's figures: a line of `metrics.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochRecord {
    /// From 1 up.
    pub epoch: u32,
    /// Steps since the beginning.
    pub step: u32,
    /// Of the epoch's last step.
    pub learning_rate: f32,
    /// Over the epoch, with dropout, while the weights changed.
    pub training: TrainingLoss,
    /// After the epoch.
    pub development: Scores,
    /// The answers about the development split's pairs, if the run learns from pairs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<PairFigures>,
    /// Whether this epoch is the best so far on the development split.
    pub best: bool,
    pub seconds: f64,
    pub outfits_per_second: f64,
}

/// Means over the outfits of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingLoss {
    pub cross_entropy: f64,
    /// With task weights and the cost of pondering.
    pub total: f64,
    /// Mean steps, if the trunk is universal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steps: Option<f64>,
    /// Over the pairs, if the run learns from pairs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<f64>,
}

/// The events of a run.
#[derive(Debug)]
pub enum Event<'a> {
    Started { epochs: u32, steps_per_epoch: u32, resumed_at: u32 },
    Step { epoch: u32, step: u32, cross_entropy: f64, outfits: usize },
    Evaluating { epoch: u32 },
    Epoch(&'a EpochRecord),
}

/// A run's connection to its caller.
pub struct Watch<'a> {
    /// Seconds since any fixed moment.
    pub clock: &'a dyn Fn() -> f64,
    /// Set this to end the run after the current step, with a checkpoint.
    pub stop: &'a AtomicBool,
    pub on_event: &'a mut dyn FnMut(Event<'_>),
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs are done.
    Finished,
    /// A third of the epochs is done, and training is far ahead of development.
    Shortened,
    /// This many last epochs, as many as the patience allows, did not improve on the development split.
    StoppedEarly { epochs: usize },
    /// The caller stopped it; it can be resumed.
    Interrupted,
}

/// Trains until the run ends. A run that the folder holds already is resumed if `resume` is set and the settings are
/// the same.
///
/// # Errors
/// If the folder holds another run, the data has no training outfits, or a file cannot be read or written.
pub fn fit(
    data: &Data,
    config: &RunConfig,
    folder: &RunFolder,
    resume: bool,
    watch: &mut Watch<'_>,
) -> Result<Outcome> {
    if data.training().is_empty() {
        bail!("{} has no outfits to train on: one in fifty is kept for development", data.name());
    }
    let _lock = folder.lock()?;
    prepare(config, folder, resume)?;
    let mut run = Run::new(data, config, folder)?;
    (watch.on_event)(Event::Started {
        epochs: config.fit.epochs,
        steps_per_epoch: run.steps_per_epoch,
        resumed_at: run.trainer.steps(),
    });
    loop {
        if let Some(outcome) = outcome(&config.fit, &run.state) {
            run.shrink(data)?;
            return Ok(outcome);
        }
        if !run.epoch(watch)? {
            return Ok(Outcome::Interrupted);
        }
    }
}

/// Creates a run's folder for another trainer: settings, initial weights and encoded outfits.
///
/// # Errors
/// If the folder holds a run already, or a file cannot be written.
pub fn hand_over(data: &Data, config: &RunConfig, folder: &RunFolder) -> Result<()> {
    let _lock = folder.lock()?;
    prepare(config, folder, false)?;
    // Other trainers do not look into whole outfits.
    folder.hand_over(data, config, &first_model_at(Logit::fit_for_file, data, config))
}

/// Creates a run's folder that begins at these weights. `fit` resumes it.
pub(crate) fn begin_at(model: &Model, config: &RunConfig, folder: &RunFolder) -> Result<()> {
    let _lock = folder.lock()?;
    prepare(config, folder, false)?;
    folder.save_start(model)
}

/// The cross-entropy of a model on the development split.
pub(crate) fn score(model: &Model, data: &Data) -> f64 {
    Development::new(data, model.config()).evaluate(model).cross_entropy
}

/// A run's model before its first step: the folder's, or one that is made from the settings.
fn begin(data: &Data, config: &RunConfig, folder: &RunFolder) -> Result<Model> {
    let Some(mut model) = folder.start()? else { return Ok(first_model(data, config)) };
    if config.fit.attributes {
        model.set_values(value_rows(data));
    }
    if config.model.memory > 0 {
        model.set_outfits(remembered(data));
    }
    Ok(model)
}

/// A run's model before its first step, from its settings.
pub(crate) fn first_model(data: &Data, config: &RunConfig) -> Model {
    first_model_at(Logit::fit_without_histories, data, config)
}

/// The same, with this logit if it is a match.
fn first_model_at<'a>(fit_logit: fn(&'a Data) -> Logit<'a>, data: &'a Data, config: &RunConfig) -> Model {
    let mut model = Model::new(&config.model, config.fit.seed);
    if config.fit.mixture {
        let biases = personas::first_biases(data, config.model.personas, config.fit.seed);
        model.set_personas(&biases);
    }
    if config.fit.attributes {
        model.set_values(value_rows(data));
    }
    if config.model.memory > 0 {
        start::set_memory(&mut model, data);
        model.set_outfits(remembered(data));
    }
    if config.model.matching > 0 {
        let begin = if config.fit.begin_at_logit { start::begin_at_logit } else { start::begin_at_counts };
        begin(&mut model, data, &fit_logit(data), config.fit.seed);
    } else if config.fit.count_bias {
        model.set_bias(&log_counts(data));
    }
    model
}

/// Creates the run in its folder, or checks that the run there may be resumed.
fn prepare(config: &RunConfig, folder: &RunFolder, resume: bool) -> Result<()> {
    if !folder.has_run() {
        return folder.create(config);
    }
    let path = folder.path().display();
    if !resume {
        bail!("{path} already holds a run: resume it with --resume, or choose another folder with --run");
    }
    let found = folder.config()?;
    if found.data.fingerprint != config.data.fingerprint {
        bail!(
            "{path} was started on the data {} with fingerprint {}, now it is {}: a run can only be resumed on the \
             same data",
            found.data.name,
            found.data.fingerprint,
            config.data.fingerprint
        );
    }
    if found.fit.attributes && config.fit.attributes && found.data.attributes != config.data.attributes {
        bail!(
            "{path} was started with other attributes of the articles: a run can only be resumed on the same data"
        );
    }
    let differences = found.differences(config);
    if !differences.is_empty() {
        let text = |value: &Option<toml::Value>| value.as_ref().map_or("nothing".into(), ToString::to_string);
        let differences: Vec<String> = differences
            .iter()
            .map(|Difference { key, ours, theirs }| format!("{key} was {}, now {}", text(ours), text(theirs)))
            .collect();
        bail!(
            "{path} was started with other settings ({}): repeat its command with --resume, or pass its own \
             configuration with --config {path}/config.toml",
            differences.join("; ")
        );
    }
    Ok(())
}

/// A run under way.
struct Run<'a> {
    config: &'a RunConfig,
    folder: &'a RunFolder,
    masks: Masks<'a>,
    /// If the run learns from pairs.
    pairs: Option<Pairs<'a>>,
    development: Development,
    schedule: Schedule,
    steps_per_epoch: u32,
    trainer: Trainer,
    state: State,
}

impl<'a> Run<'a> {
    fn new(data: &'a Data, config: &'a RunConfig, folder: &'a RunFolder) -> Result<Self> {
        let fit = &config.fit;
        let steps_per_epoch = u32::try_from(data.training().len().div_ceil(fit.batch))
            .expect("an epoch has fewer than four billion steps");
        let (mut trainer, mut state) = if folder.has_state() {
            let state = folder.state()?;
            (folder.trainer(&state)?, state)
        } else {
            (Trainer::new(begin(data, config, folder)?, config.adamw), State::default())
        };
        if fit.attributes {
            trainer.share(value_rows(data), fit.drop_own);
        }
        if config.model.memory > 0 {
            trainer.set_outfits(remembered(data));
        }
        let development = Development::new(data, &config.model);
        if (fit.begin_at_logit || folder.is_continued()) && state.checkpoint.is_empty() {
            let start = trainer.model();
            state.start = Some(development.evaluate(start));
            folder.save_best(start)?;
        }
        Ok(Self {
            config,
            folder,
            masks: Masks::new(data, config),
            pairs: (config.pair.weight > 0.0).then(|| Pairs::new(data, config)),
            development,
            schedule: Schedule::new(fit, steps_per_epoch),
            steps_per_epoch,
            trainer,
            state,
        })
    }

    /// Runs the rest of the current epoch; false if it was interrupted.
    fn epoch(&mut self, watch: &mut Watch<'_>) -> Result<bool> {
        let epoch = self.trainer.steps() / self.steps_per_epoch;
        let order = self.masks.order(epoch);
        let done = (self.trainer.steps() % self.steps_per_epoch) as usize;
        let before = self.state.running.seconds;
        let start = (watch.clock)();
        let seconds = |watch: &Watch<'_>| before + (watch.clock)() - start;
        for outfits in order.chunks(self.config.fit.batch).skip(done) {
            if watch.stop.load(Ordering::Relaxed) {
                self.state.running.seconds = seconds(watch);
                self.folder.save(&self.trainer, &mut self.state)?;
                return Ok(false);
            }
            let batch = self.masks.batch(epoch, outfits);
            let rate = self.schedule.rate(self.trainer.steps());
            let pairs = self.pairs.as_ref().map(|pairs| pairs.batch(epoch, outfits));
            let weighted = pairs.as_ref().map(|pairs| (pairs, self.config.pair.weight));
            let loss = self.trainer.step(&batch, weighted, rate, self.config.fit.seed);
            if !loss.total.is_finite() {
                bail!(
                    "the loss is {} at step {}: the learning rate {rate} is too high for this data; start again \
                     with a lower --learning-rate",
                    loss.total,
                    self.trainer.steps()
                );
            }
            self.state.running.add(loss, batch.len(), pairs.map_or(0, |pairs| pairs.len()));
            let step = self.trainer.steps() - epoch * self.steps_per_epoch;
            let cross_entropy = self.state.running.mean(self.state.running.cross_entropy);
            (watch.on_event)(Event::Step { epoch: epoch + 1, step, cross_entropy, outfits: batch.len() });
        }
        (watch.on_event)(Event::Evaluating { epoch: epoch + 1 });
        let learning = seconds(watch);
        let development = self.development.evaluate(self.trainer.model());
        self.close_epoch(epoch + 1, development, learning, seconds(watch))?;
        let record = self.state.epochs.last().expect("the epoch was just added");
        (watch.on_event)(Event::Epoch(record));
        Ok(true)
    }

    /// Moves the best weights towards the start, once, if the run began at a logit.
    fn shrink(&mut self, data: &Data) -> Result<()> {
        let improved = self.state.epochs.iter().any(|epoch| epoch.best);
        if self.state.start.is_none() || !improved || self.state.shrunk.is_some() {
            return Ok(());
        }
        let start = begin(data, self.config, self.folder)?;
        let best = self.folder.best()?;
        let models = shrink::PARTS.map(|part| {
            let mut model = start.clone();
            model.move_towards(&best, 1.0 - part);
            model
        });
        let losses = models.each_ref().map(|model| self.development.losses(model));
        let chosen = shrink::choose(&losses);
        self.folder.save_best(&models[chosen])?;
        self.state.shrunk = Some(shrink::PARTS[chosen]);
        self.folder.save(&self.trainer, &mut self.state)
    }

    fn close_epoch(&mut self, epoch: u32, development: Scores, learning: f64, seconds: f64) -> Result<()> {
        let running = std::mem::take(&mut self.state.running);
        let best = development.cross_entropy < self.state.least();
        let pair = self.pairs.as_ref().and_then(|pairs| pairs.evaluate(self.trainer.model()));
        self.state.epochs.push(EpochRecord {
            epoch,
            step: self.trainer.steps(),
            learning_rate: self.schedule.rate(self.trainer.steps() - 1),
            training: TrainingLoss {
                cross_entropy: running.mean(running.cross_entropy),
                total: running.mean(running.total),
                steps: running.steps.map(|steps| running.mean(steps)),
                pair: running.pair.map(|pair| pair / real(running.pairs.max(1))),
            },
            development,
            pair,
            best,
            seconds,
            outfits_per_second: real(running.outfits) / learning.max(1e-9),
        });
        if best {
            // Before the state: a run killed in between repeats the epoch and writes the same file.
            self.folder.save_best(self.trainer.model())?;
        }
        self.folder.save(&self.trainer, &mut self.state)?;
        self.folder.write_metrics(self.config, &self.state.epochs)
    }
}

/// How a run ended after these epochs; `None` if it goes on.
fn outcome(config: &FitConfig, state: &State) -> Option<Outcome> {
    let epochs = &state.epochs;
    let lead = |epoch: &EpochRecord| epoch.development.cross_entropy - epoch.training.cross_entropy;
    let leads: Vec<f64> = epochs.iter().map(lead).collect();
    let lead = leads.last().copied().unwrap_or_default();
    let behind = epochs.last().map_or(0.0, |last| last.development.cross_entropy - state.least());
    let waited = epochs.iter().rev().take_while(|epoch| !epoch.best).count();
    let end = count_epochs(config, &leads);
    if epochs.len() >= end as usize {
        Some(if end < config.epochs { Outcome::Shortened } else { Outcome::Finished })
    } else if waited > 0 && waited >= patience(config, epochs.len(), lead, behind) as usize {
        Some(Outcome::StoppedEarly { epochs: waited })
    } else {
        None
    }
}

/// The outfits that a model's memory holds.
fn remembered(data: &Data) -> Arc<OutfitMemory> {
    Arc::new(data.remember(data.training()))
}

/// Which article has which values, and what models take of its embedding, for articles that models know.
fn value_rows(data: &Data) -> Arc<ValueRows> {
    value_rows_of(data, 0..data.count_known(), |article| data.attributes().for_article(article))
}

/// Which values articles count as having. `values` are those of one.
fn value_rows_of<R: AsRef<[u32]>>(
    data: &Data,
    articles: Range<usize>,
    values: impl Fn(usize) -> R,
) -> Arc<ValueRows> {
    let attributes = data.attributes();
    let embeddings = attributes.embeddings(articles.clone()).to_vec();
    let rows: Vec<R> = articles.map(values).collect();
    let rows = ValueRows::new(attributes.factors(), rows.iter().map(AsRef::as_ref));
    Arc::new(rows.with_embeddings(attributes.components(), embeddings))
}

/// The logarithm of how often each article occurs in the training outfits; one that never does counts as one.
fn log_counts(data: &Data) -> Vec<f32> {
    let mut counts = data.count_articles(data.training());
    counts.truncate(data.count_known());
    let all = counts.iter().map(|count| count.max(1.0)).sum::<f64>();
    #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
    counts.into_iter().map(|count| (count.max(1.0) / all).ln() as f32).collect()
}

/// How far a run is: its `state.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// The name of the checkpoint file that belongs to this state.
    checkpoint: String,
    /// Sums over the epoch under way.
    running: Running,
    /// Before the first step, if that may be the best.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    start: Option<Scores>,
    epochs: Vec<EpochRecord>,
    /// The part of the way to the start that the best weights went when the run ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    shrunk: Option<f32>,
}

impl State {
    /// The least cross-entropy on the development split so far.
    fn least(&self) -> f64 {
        let epochs = self.epochs.iter().map(|epoch| &epoch.development);
        epochs.chain(&self.start).map(|scores| scores.cross_entropy).fold(f64::INFINITY, f64::min)
    }
}

/// Sums over the steps of an epoch so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Running {
    outfits: usize,
    cross_entropy: f64,
    total: f64,
    steps: Option<f64>,
    pairs: usize,
    pair: Option<f64>,
    seconds: f64,
}

impl Running {
    fn add(&mut self, loss: Loss, outfits: usize, pairs: usize) {
        let count = real(outfits);
        self.outfits += outfits;
        self.cross_entropy += loss.cross_entropy * count;
        self.total += loss.total * count;
        self.steps = loss.steps.map(|steps| self.steps.unwrap_or_default() + steps * count);
        if let Some(pair) = loss.pair {
            self.pairs += pairs;
            self.pair = Some(self.pair.unwrap_or_default() + pair * real(pairs));
        }
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / real(self.outfits.max(1))
    }
}
