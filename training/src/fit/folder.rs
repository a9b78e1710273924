//! A run's folder: what lies in it, and how nothing in it is ever half-written.
//!
//! `state.json` names the checkpoint that goes with it, and is replaced in one move; so a run that is
//! killed anywhere leaves the last checkpoint and the numbers that belong to it.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{EpochRecord, RunConfig, curves, readme};
use crate::{
    files,
    model::{Model, Trainer},
};

/// Where a run lives.
#[derive(Debug, Clone)]
pub struct RunFolder(PathBuf);

/// How far a run has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    /// The file with the weights and what the optimiser remembers.
    pub(super) checkpoint: String,
    /// Of the epoch that is under way.
    pub(super) running: Running,
    /// Of the epochs that are done.
    pub(super) epochs: Vec<EpochRecord>,
}

/// Sums over the steps of an epoch so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Running {
    pub(super) outfits: u64,
    pub(super) cross_entropy: f64,
    pub(super) total: f64,
    /// Of a universal trunk.
    pub(super) steps: Option<f64>,
    /// Pairs, and their cross-entropy, where the run learns from them.
    #[serde(default)]
    pub(super) pairs: u64,
    #[serde(default)]
    pub(super) pair: Option<f64>,
    pub(super) seconds: f64,
}

const CONFIG: &str = "config.toml";
const STATE: &str = "state.json";
const METRICS: &str = "metrics.jsonl";
const CURVES: &str = "curves.svg";
const BEST: &str = "best.safetensors";
const README: &str = "README.md";
/// A file of its own, which nobody replaces.
const LOCK: &str = ".lock";

impl RunFolder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether a run lives here already.
    pub fn is_taken(&self) -> bool {
        self.0.join(CONFIG).is_file()
    }

    /// # Errors
    /// If there is no run here, or its configuration is not one that this program wrote.
    pub fn config(&self) -> Result<RunConfig> {
        let path = self.0.join(CONFIG);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} holds no run: cannot read {CONFIG}", self.0.display()))?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The weights of the epoch that did best on the development split.
    ///
    /// # Errors
    /// If the run has not finished its first epoch yet.
    pub fn best(&self) -> Result<Model> {
        let path = self.0.join(BEST);
        if !path.is_file() {
            bail!(
                "{} has no {BEST} yet: a run has one after its first epoch; go on with `fit --resume`",
                self.0.display()
            );
        }
        Ok(Model::load(&path)?)
    }

    /// The epochs that are done.
    ///
    /// # Errors
    /// If there is no run here.
    pub fn epochs(&self) -> Result<Vec<EpochRecord>> {
        Ok(self.state()?.epochs)
    }

    /// Where the model goes when it is exported.
    pub fn onnx(&self, config: &RunConfig) -> PathBuf {
        self.0.join(format!("{}.onnx", config.model.method))
    }

    /// Where what it says of pairs goes, if it does.
    pub fn pair_onnx(&self, config: &RunConfig) -> PathBuf {
        self.onnx(config).with_extension("pair.onnx")
    }

    /// Where the evaluation of both files goes.
    pub fn evaluation(&self) -> PathBuf {
        self.0.join("evaluation.json")
    }

    /// A new run: the configuration, and what explains it.
    pub(super) fn begin(&self, config: &RunConfig) -> Result<()> {
        fs::create_dir_all(&self.0).with_context(|| format!("cannot make {}", self.0.display()))?;
        let text = toml::to_string(config).expect("a configuration is TOML; this is a bug");
        self.put(README, readme::text(config, &self.0).as_bytes())?;
        self.put(CONFIG, text.as_bytes())
    }

    /// As long as what is returned is there, no other process trains here: two that save in turns would leave a
    /// checkpoint that is not the state's.
    pub(super) fn hold(&self) -> Result<File> {
        fs::create_dir_all(&self.0).with_context(|| format!("cannot make {}", self.0.display()))?;
        let path = self.0.join(LOCK);
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => bail!(
                "another process trains in {} just now: wait for it, or stop it (Ctrl-C leaves a checkpoint)",
                self.0.display()
            ),
            // Or a file system that has no locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
        }
    }

    pub(super) fn state(&self) -> Result<State> {
        self.read(STATE)
    }

    /// Whether there is a checkpoint to go on from: a run that was stopped before its first has none.
    pub(super) fn has_state(&self) -> bool {
        self.0.join(STATE).is_file()
    }

    pub(super) fn trainer(&self, state: &State) -> Result<Trainer> {
        Ok(Trainer::load(&self.0.join(&state.checkpoint))?)
    }

    /// The weights first, then the state that names them, then the old weights go.
    pub(super) fn save(&self, trainer: &Trainer, state: &mut State) -> Result<()> {
        let before = std::mem::replace(
            &mut state.checkpoint,
            format!("checkpoint-{:08}.safetensors", trainer.steps()),
        );
        trainer.save(&self.0.join(&state.checkpoint))?;
        let text = serde_json::to_string(state).expect("a state is JSON; this is a bug");
        self.put(STATE, text.as_bytes())?;
        if !before.is_empty() && before != state.checkpoint {
            let path = self.0.join(&before);
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    pub(super) fn save_best(&self, model: &Model) -> Result<()> {
        Ok(model.save(&self.0.join(BEST))?)
    }

    /// The epochs for programs, and as curves for people.
    pub(super) fn tell(&self, config: &RunConfig, epochs: &[EpochRecord]) -> Result<()> {
        let lines: Vec<String> = epochs
            .iter()
            .map(|epoch| serde_json::to_string(epoch).expect("a record is JSON; this is a bug") + "\n")
            .collect();
        self.put(METRICS, lines.concat().as_bytes())?;
        self.put(CURVES, curves::draw(config, epochs).as_bytes())
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = self.0.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<()> {
        files::put(&self.0.join(name), content)
    }
}
