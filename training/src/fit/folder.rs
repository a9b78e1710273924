//! A run's folder and its files.
//!
//! `state.json` names its checkpoint and is replaced atomically, so a run that is killed at any moment leaves a
//! checkpoint and the state that belongs to it.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{
    EpochRecord, RunConfig, State, curves, development::judge_with_types, handover, new_share, outcome,
    readme, remembered, sureness, value_rows,
};
use crate::{
    data::Data,
    files,
    judge::Verdict,
    model::{Model, Trainer},
};

/// A run's folder.
#[derive(Debug, Clone)]
pub struct RunFolder(PathBuf);

const CONFIG: &str = "config.toml";
const STATE: &str = "state.json";
const METRICS: &str = "metrics.jsonl";
const CURVES: &str = "curves.svg";
const BEST: &str = "best.safetensors";
/// The initial weights, for other trainers and of runs that begin at another model; and the encoded outfits.
const START: &str = "start.safetensors";
const OUTFITS: &str = "data.safetensors";
const README: &str = "README.md";
/// Never replaced, so a lock on it holds.
const LOCK: &str = ".lock";

impl RunFolder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether the folder holds a run.
    pub fn has_run(&self) -> bool {
        self.0.join(CONFIG).is_file()
    }

    /// # Errors
    /// If there is no run here, or its configuration cannot be read.
    pub fn config(&self) -> Result<RunConfig> {
        let path = self.0.join(CONFIG);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} holds no run: cannot read {CONFIG}", self.0.display()))?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The model of the best epoch on the development split.
    ///
    /// # Errors
    /// If the run has not finished its first epoch yet, or was trained on other data.
    pub fn best_for(&self, data: &Data) -> Result<Model> {
        let (mut model, config) = (self.best()?, self.config()?);
        if config.data.fingerprint != data.fingerprint() {
            bail!(
                "{} was trained on data with fingerprint {}, but {} has {}: a run belongs to its own data",
                self.0.display(),
                config.data.fingerprint,
                data.name(),
                data.fingerprint()
            );
        }
        if config.fit.attributes {
            if config.data.attributes.as_deref() != Some(data.attributes().fingerprint()) {
                bail!(
                    "{} was trained with other attributes of the articles than {} has: train it again",
                    self.0.display(),
                    data.name()
                );
            }
            model.set_values(value_rows(data));
        }
        if config.model.memory > 0 {
            model.set_outfits(remembered(data));
        }
        if config.fit.calibrate {
            sureness::set(&mut model, data);
        }
        if config.fit.attributes {
            new_share::set(&mut model, data, &config);
        }
        Ok(model)
    }

    /// The best weights' answers to the slots of the development split.
    pub(crate) fn judge_development(&self, data: &Data) -> Result<Vec<Verdict>> {
        Ok(judge_with_types(&self.best_for(data)?, data))
    }

    pub(super) fn best(&self) -> Result<Model> {
        let path = self.0.join(BEST);
        if !path.is_file() {
            bail!(
                "{} has no {BEST} yet: a run writes it after its first epoch; resume it with `fit --resume`",
                self.0.display()
            );
        }
        Ok(Model::load(&path)?)
    }

    /// The finished epochs.
    ///
    /// # Errors
    /// If there is no run here.
    pub fn epochs(&self) -> Result<Vec<EpochRecord>> {
        Ok(self.state()?.epochs)
    }

    /// The epoch whose weights are kept, 0 for the start, and their cross-entropy on the development split. `None` before the
    /// first epoch ends.
    ///
    /// # Errors
    /// If there is no run here.
    pub fn best_epoch(&self) -> Result<Option<(u32, f64)>> {
        let State { start, epochs, .. } = self.state()?;
        let best = epochs.iter().rfind(|epoch| epoch.best);
        let best = best.map(|epoch| (epoch.epoch, epoch.development.cross_entropy));
        let start = start.filter(|_| !epochs.is_empty()).map(|scores| (0, scores.cross_entropy));
        Ok(best.or(start))
    }

    /// Why the run counts as unfinished, if its state says so; the state of a finished one may be deleted.
    ///
    /// # Errors
    /// If there is no run here.
    pub fn unfinished(&self) -> Result<Option<String>> {
        let (config, path) = (self.config()?.fit, self.0.display());
        if !self.has_state() {
            return Ok(None);
        }
        let state = self.state()?;
        Ok(outcome(&config, &state).is_none().then(|| {
            format!(
                "{path} has not ended: {} of at most {} epochs are done; `fit --resume` goes on with it",
                state.epochs.len(),
                config.epochs
            )
        }))
    }

    /// The file of the exported model's evaluation.
    pub fn evaluation(&self) -> PathBuf {
        self.0.join("evaluation.json")
    }

    /// The file of its evaluation with all features left empty.
    pub fn without_profiles(&self) -> PathBuf {
        self.0.join("without-profiles.json")
    }

    /// Creates the folder of a new run, with its configuration and README.
    pub(super) fn create(&self, config: &RunConfig) -> Result<()> {
        fs::create_dir_all(&self.0).with_context(|| format!("cannot create {}", self.0.display()))?;
        let text = toml::to_string(config).expect("a configuration is TOML");
        self.put(README, readme::text(config, &self.0).as_bytes())?;
        self.put(CONFIG, text.as_bytes())
    }

    /// Keeps other processes from training here until the returned file is dropped: two that save in turns would
    /// leave a checkpoint that does not match the state.
    pub(super) fn lock(&self) -> Result<File> {
        fs::create_dir_all(&self.0).with_context(|| format!("cannot create {}", self.0.display()))?;
        let path = self.0.join(LOCK);
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => bail!(
                "another process trains in {}: wait for it, or stop it (Ctrl-C leaves a checkpoint)",
                self.0.display()
            ),
            // Some file systems have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
        }
    }

    pub(super) fn state(&self) -> Result<State> {
        let path = self.0.join(STATE);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Whether there is a checkpoint to resume from.
    pub(super) fn has_state(&self) -> bool {
        self.0.join(STATE).is_file()
    }

    pub(super) fn trainer(&self, state: &State) -> Result<Trainer> {
        Ok(Trainer::load(&self.0.join(&state.checkpoint))?)
    }

    /// Saves a checkpoint, then the state that names it, and then deletes the previous checkpoint.
    pub(super) fn save(&self, trainer: &Trainer, state: &mut State) -> Result<()> {
        let before = std::mem::replace(
            &mut state.checkpoint,
            format!("checkpoint-{:08}.safetensors", trainer.steps()),
        );
        trainer.save(&self.0.join(&state.checkpoint))?;
        let text = serde_json::to_string(state).expect("a state is JSON");
        self.put(STATE, text.as_bytes())?;
        if !before.is_empty() && before != state.checkpoint {
            let path = self.0.join(&before);
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Whether the run begins at another model's weights: its settings alone do not make it again.
    pub(crate) fn is_continued(&self) -> bool {
        self.0.join(START).is_file() && !self.0.join(OUTFITS).is_file()
    }

    /// The weights at which the run begins, if they are another model's.
    pub(super) fn start(&self) -> Result<Option<Model>> {
        Ok(self.is_continued().then(|| Model::load(&self.0.join(START))).transpose()?)
    }

    pub(super) fn save_start(&self, model: &Model) -> Result<()> {
        Ok(model.save(&self.0.join(START))?)
    }

    /// Saves what another trainer starts from.
    pub(super) fn hand_over(&self, data: &Data, config: &RunConfig, model: &Model) -> Result<()> {
        self.save_start(model)?;
        handover::write(data, config, &self.0.join(OUTFITS))
    }

    pub(super) fn save_best(&self, model: &Model) -> Result<()> {
        Ok(model.save(&self.0.join(BEST))?)
    }

    /// Writes the epochs as lines of JSON and as curves.
    pub(super) fn write_metrics(&self, config: &RunConfig, epochs: &[EpochRecord]) -> Result<()> {
        let lines: Vec<String> = epochs
            .iter()
            .map(|epoch| serde_json::to_string(epoch).expect("a record is JSON") + "\n")
            .collect();
        self.put(METRICS, lines.concat().as_bytes())?;
        self.put(CURVES, curves::draw(config, epochs).as_bytes())
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<()> {
        files::write(&self.0.join(name), content)
    }
}
