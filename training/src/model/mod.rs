//! The models of every method: configuration, weights, one step of training.
//!
//! A model is a [`ModelConfig`] and weights. It turns a [`Batch`] of encoded outfits into logits, or into the loss
//! and its gradients; a [`Trainer`] updates it. It knows no data files, schedule, split or metric, nor what the
//! indices stand for.

mod batch;
mod build;
mod config;
mod file;
mod method;
mod pair;
mod step;
mod structure;

pub use batch::{Batch, Example};
pub use config::{FeatureRows, InitialScales, ModelConfig, UniversalConfig};
pub use file::FileError;
pub use method::{Axes, Conditioning, Trunk};
pub use pair::{PairBatch, PairExample};
pub use step::{Loss, Trainer};
pub(crate) use structure::{Output, Structure};

use crate::engine::Weights;

/// A model of one method.
#[derive(Debug, Clone)]
pub struct Model {
    config: ModelConfig,
    structure: Structure,
    weights: Weights,
}

impl Model {
    /// A new model: the same configuration and seed give the same weights.
    pub fn new(config: &ModelConfig, seed: u64) -> Self {
        let (structure, weights) = build::build(config, seed);
        Self { config: config.clone(), structure, weights }
    }

    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    pub(crate) fn structure(&self) -> &Structure {
        &self.structure
    }

    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }
}

#[cfg(test)]
pub(crate) mod tests;
