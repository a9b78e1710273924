//! Who learns: a model on the CPU, or one whose numbers live on a GPU. A run does not know which.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Batch, DeviceTrainer, Loss, PairBatch, Trainer};
use crate::engine::{DeviceError, device::Cuda};

/// Where a run computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    #[default]
    Cpu,
    Cuda,
}

/// A model that learns, with its optimiser.
pub trait Learner {
    /// What it computes on, in words.
    fn device(&self) -> &str;

    /// Steps made so far.
    fn steps(&self) -> u32;

    /// Learns from a batch, and from pairs, whose loss counts as often as the number beside them says.
    /// Dropout comes from `seed` and the number of the step alone.
    fn step(
        &mut self,
        batch: &Batch,
        pairs: Option<(&PairBatch, f32)>,
        learning_rate: f32,
        seed: u64,
    ) -> Result<Loss, DeviceError>;

    /// What the exported model answers, outfit by outfit: one logit an article.
    fn logits(&self, batch: &Batch) -> Result<Vec<f32>, DeviceError>;

    /// Weights and optimiser as they are now: what is saved.
    fn trainer(&mut self) -> Result<&Trainer, DeviceError>;
}

/// A device that is there and ready.
#[derive(Debug)]
pub struct OpenDevice(Option<Cuda>);

impl DeviceKind {
    /// # Errors
    /// If the machine has no such device, or not what it needs to use it.
    pub fn open(self) -> Result<OpenDevice, DeviceError> {
        Ok(OpenDevice(match self {
            Self::Cpu => None,
            Self::Cuda => Some(Cuda::open()?),
        }))
    }
}

impl OpenDevice {
    /// Lets a model learn here.
    ///
    /// # Errors
    /// If the model is too large.
    pub fn learner(self, trainer: Trainer) -> Result<Box<dyn Learner>, DeviceError> {
        match self.0 {
            None => Ok(Box::new(trainer)),
            Some(cuda) => Ok(Box::new(DeviceTrainer::new(cuda, trainer)?)),
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        })
    }
}

impl FromStr for DeviceKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            _ => Err(format!("{text:?} is no device; expected cpu or cuda")),
        }
    }
}

impl Learner for Trainer {
    fn device(&self) -> &'static str {
        "cpu"
    }

    fn steps(&self) -> u32 {
        self.steps()
    }

    fn step(
        &mut self,
        batch: &Batch,
        pairs: Option<(&PairBatch, f32)>,
        learning_rate: f32,
        seed: u64,
    ) -> Result<Loss, DeviceError> {
        Ok(match pairs {
            None => self.step(batch, learning_rate, seed),
            Some((pairs, weight)) => self.step_with_pairs(batch, pairs, weight, learning_rate, seed),
        })
    }

    fn logits(&self, batch: &Batch) -> Result<Vec<f32>, DeviceError> {
        Ok(self.model().logits(batch))
    }

    fn trainer(&mut self) -> Result<&Trainer, DeviceError> {
        Ok(self)
    }
}
