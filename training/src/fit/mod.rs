//! Fitting a method to a data folder: epochs of steps, stopped by the development split, in a folder
//! that a killed run goes on from with the same numbers.
//!
//! Data comes in as [`Data`], settings as [`RunConfig`]; what is learned goes into a [`RunFolder`].
//! It must never know the validation split, a terminal or a signal: whoever calls hands over a clock,
//! a flag that stops, and an ear for [`Event`]s.

mod config;
mod curves;
mod development;
mod folder;
mod masks;
mod pairs;
mod readme;
mod schedule;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

pub(crate) use config::Difference;
pub use config::{DataConfig, Device, FitConfig, Given, PairConfig, RunConfig};
pub use development::Standing;
pub use folder::RunFolder;
pub use watch::{Event, Outcome, Watch};

use self::{
    development::Development,
    folder::{Running, State},
    masks::Masks,
    pairs::Pairs,
    schedule::Schedule,
};
use crate::{
    data::Data,
    engine::Sharing,
    model::{Loss, Model, Trainer},
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
    /// Over the epoch, with dropout, while the weights moved.
    pub training: TrainingLoss,
    /// After it.
    pub development: Standing,
    /// What is said of the development split's halves after it, where the run learns from pairs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<PairFigures>,
    /// Whether no epoch before did better on the development split.
    pub best: bool,
    pub seconds: f64,
    pub outfits_per_second: f64,
}

/// Means over the outfits of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingLoss {
    pub cross_entropy: f64,
    /// With task weights and what pondering costs.
    pub total: f64,
    /// Of a universal trunk.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steps: Option<f64>,
    /// Over the pairs, where the run learns from pairs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<f64>,
}

/// Fits until it is finished, settled or stopped. A run that is in the folder already goes on, if
/// `resume` says so and the settings are the same.
///
/// # Errors
/// If the folder holds another run, the data has no training outfits, or the disk refuses.
pub fn fit(
    data: &Data,
    config: &RunConfig,
    folder: &RunFolder,
    resume: bool,
    watch: &mut Watch<'_>,
) -> Result<Outcome> {
    if data.training().is_empty() {
        bail!("{} has no outfits to learn from: one in fifty is kept for development", data.name());
    }
    let _held = folder.hold()?;
    prepare(config, folder, resume)?;
    let mut run = Run::new(data, config, folder)?;
    (watch.hear)(Event::Began {
        epochs: config.fit.epochs,
        steps_an_epoch: run.steps_an_epoch,
        resumed_at: run.trainer.steps(),
    });
    loop {
        if let Some(outcome) = run.outcome() {
            return Ok(outcome);
        }
        if !run.epoch(watch)? {
            return Ok(Outcome::Stopped);
        }
    }
}

/// Makes the folder a run's, or finds that it is this run's already.
fn prepare(config: &RunConfig, folder: &RunFolder, resume: bool) -> Result<()> {
    if !folder.is_taken() {
        return folder.begin(config);
    }
    let path = folder.path().display();
    if !resume {
        bail!("{path} holds a run already: go on with it by --resume, or name another folder with --run");
    }
    let found = folder.config()?;
    if found.data.fingerprint != config.data.fingerprint {
        bail!(
            "{path} was begun on the data {} with fingerprint {}, now it is {}: a run goes on only with the \
             data that it began with",
            found.data.name,
            found.data.fingerprint,
            config.data.fingerprint
        );
    }
    if found.fit.attributes && config.fit.attributes && found.data.attributes != config.data.attributes {
        bail!(
            "{path} was begun with other attributes of the articles: a run goes on only with the data that it \
             began with"
        );
    }
    let differences = found.differences(config);
    if !differences.is_empty() {
        let shown =
            |value: &Option<toml::Value>| value.as_ref().map_or("nothing".into(), ToString::to_string);
        let differences: Vec<String> = differences
            .iter()
            .map(|Difference { key, ours, theirs }| {
                format!("{key} was {}, now {}", shown(ours), shown(theirs))
            })
            .collect();
        bail!(
            "{path} was begun with other settings ({}): repeat its command with --resume, or give its own \
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
    /// Where the run learns from pairs.
    pairs: Option<Pairs<'a>>,
    development: Development,
    schedule: Schedule,
    steps_an_epoch: u32,
    trainer: Trainer,
    state: State,
}

impl<'a> Run<'a> {
    fn new(data: &'a Data, config: &'a RunConfig, folder: &'a RunFolder) -> Result<Self> {
        let fit = &config.fit;
        let steps_an_epoch = u32::try_from(data.training().len().div_ceil(fit.batch))
            .expect("an epoch has fewer than four billion steps; this is a bug");
        let (mut trainer, state) = if folder.has_state() {
            let state = folder.state()?;
            (folder.trainer(&state)?, state)
        } else {
            (Trainer::new(Model::new(&config.model, fit.seed), config.adamw), State::default())
        };
        if fit.attributes {
            let attributes = data.attributes();
            let rows = (0..data.vocabulary().len()).map(|article| attributes.of(article));
            trainer.share(Sharing::new(attributes.count(), rows));
        }
        Ok(Self {
            config,
            folder,
            masks: Masks {
                data,
                seed: fit.seed,
                second_blank: fit.second_blank,
                weights: config.weights(data),
            },
            pairs: (config.pair.weight > 0.0).then(|| Pairs::new(data, config)),
            development: Development::new(data, &config.model),
            schedule: Schedule::new(fit, steps_an_epoch),
            steps_an_epoch,
            trainer,
            state,
        })
    }

    fn outcome(&self) -> Option<Outcome> {
        let epochs = &self.state.epochs;
        let waited = epochs.iter().rev().take_while(|epoch| !epoch.best).count();
        if epochs.len() >= self.config.fit.epochs as usize {
            Some(Outcome::Finished)
        } else if waited > 0 && waited >= self.config.fit.patience as usize {
            Some(Outcome::Settled)
        } else {
            None
        }
    }

    /// What is left of an epoch; false if it was stopped half way.
    fn epoch(&mut self, watch: &mut Watch<'_>) -> Result<bool> {
        let epoch = self.trainer.steps() / self.steps_an_epoch;
        let order = self.masks.order(epoch);
        let done = (self.trainer.steps() % self.steps_an_epoch) as usize;
        let before = self.state.running.seconds;
        let began = (watch.clock)();
        let seconds = |watch: &Watch<'_>| before + (watch.clock)() - began;
        for outfits in order.chunks(self.config.fit.batch).skip(done) {
            if watch.stop.load(Ordering::Relaxed) {
                self.state.running.seconds = seconds(watch);
                self.folder.save(&self.trainer, &mut self.state)?;
                return Ok(false);
            }
            let batch = self.masks.batch(&self.config.model, epoch, outfits);
            let rate = self.schedule.rate(self.trainer.steps());
            let pairs = self.pairs.as_ref().map(|pairs| pairs.batch(epoch, outfits));
            let weighed = pairs.as_ref().map(|pairs| (pairs, self.config.pair.weight));
            let loss = self.trainer.step(&batch, weighed, rate, self.config.fit.seed);
            if !loss.total.is_finite() {
                bail!(
                    "the loss is {} at step {}: the learning rate {rate} is too high for this data; begin \
                     again with a lower --learning-rate",
                    loss.total,
                    self.trainer.steps()
                );
            }
            self.state.running.add(loss, batch.len(), pairs.map_or(0, |pairs| pairs.len()));
            let step = self.trainer.steps() - epoch * self.steps_an_epoch;
            let cross_entropy = self.state.running.mean(self.state.running.cross_entropy);
            (watch.hear)(Event::Step { epoch: epoch + 1, step, cross_entropy, outfits: batch.len() });
        }
        (watch.hear)(Event::Asking { epoch: epoch + 1 });
        let learning = seconds(watch);
        let development = self.development.ask(self.trainer.model());
        self.close_epoch(epoch + 1, development, learning, seconds(watch))?;
        let record = self.state.epochs.last().expect("one was just added; this is a bug");
        (watch.hear)(Event::Epoch(record));
        Ok(true)
    }

    fn close_epoch(&mut self, epoch: u32, development: Standing, learning: f64, seconds: f64) -> Result<()> {
        let running = std::mem::take(&mut self.state.running);
        let so_far = self.state.epochs.iter().map(|epoch| epoch.development.cross_entropy);
        let best = development.cross_entropy < so_far.fold(f64::INFINITY, f64::min);
        let pair = self.pairs.as_ref().and_then(|pairs| pairs.ask(self.trainer.model()));
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
            // Before the state: a run killed in between makes the same epoch, and this file, again.
            self.folder.save_best(self.trainer.model())?;
        }
        self.folder.save(&self.trainer, &mut self.state)?;
        self.folder.tell(self.config, &self.state.epochs)
    }
}

impl Running {
    fn add(&mut self, loss: Loss, outfits: usize, pairs: usize) {
        let count = real(outfits as u64);
        self.outfits += outfits as u64;
        self.cross_entropy += loss.cross_entropy * count;
        self.total += loss.total * count;
        self.steps = loss.steps.map(|steps| self.steps.unwrap_or_default() + steps * count);
        if let Some(pair) = loss.pair {
            self.pairs += pairs as u64;
            self.pair = Some(self.pair.unwrap_or_default() + pair * real(pairs as u64));
        }
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / real(self.outfits.max(1))
    }
}

#[expect(clippy::cast_precision_loss, reason = "outfits are counted in millions")]
fn real(count: u64) -> f64 {
    count as f64
}
