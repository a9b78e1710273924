//! The models of every method: configuration, weights, one step of training.
//!
//! A model is a [`ModelConfig`] and weights. It turns a [`Batch`] of encoded outfits into logits, or into the loss
//! and its gradients; a `Trainer` updates it. It knows no data files, schedule, split or metric, nor what the
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
pub(crate) use step::{Loss, Trainer};
pub(crate) use structure::{Output, Structure};

use std::sync::Arc;

use atelier_engine::outfit_memory::OutfitMemory;

use crate::engine::{Composed, Head, Param, Tensor, ValueRows, Weights, add_embedding};

/// A model of one method.
#[derive(Debug, Clone)]
pub struct Model {
    config: ModelConfig,
    structure: Structure,
    weights: Weights,
    /// Which values the articles have, if they share any; needed to learn, not to answer.
    values: Option<Arc<ValueRows>>,
    /// The outfits that its memory holds.
    outfits: Option<Arc<OutfitMemory>>,
    /// The tables of sums are made for these.
    sums: Needs,
}

/// Which sums a step needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needs {
    /// The articles with own vectors; all if `None`.
    pub(crate) kept: Option<Vec<bool>>,
    /// The rows of the table of visible articles that are needed, in ascending order; all if `None`.
    pub(crate) visible: Option<Vec<u32>>,
}

impl Needs {
    /// The rows that are needed of a table of sums; all if `None`. `visible` is the table of visible articles.
    fn rows(&self, table: &Composed, visible: Param) -> Option<&[u32]> {
        self.visible.as_deref().filter(|_| table.sum == visible)
    }
}

impl Model {
    /// A new model: the same configuration and seed give the same weights.
    pub fn new(config: &ModelConfig, seed: u64) -> Self {
        let (structure, weights) = build::build(config, seed);
        let sums = Needs::default();
        Self { config: config.clone(), structure, weights, values: None, outfits: None, sums }
    }

    /// Gives its memory whole outfits.
    pub(crate) fn set_outfits(&mut self, outfits: Arc<OutfitMemory>) {
        self.outfits = Some(outfits);
    }

    /// The outfits that its memory holds, and what they count; None if they count nothing.
    pub(crate) fn outfits(&self) -> Option<(&OutfitMemory, &[f32])> {
        let weights = self.weights.data(self.structure.memory.as_ref()?.outfits);
        let outfits = self.outfits.as_deref().filter(|_| weights.iter().any(|weight| *weight != 0.0));
        Some((outfits?, weights))
    }

    /// Says which values the articles have.
    pub(crate) fn set_values(&mut self, rows: Arc<ValueRows>) {
        self.values = Some(rows);
        self.compose(Needs::default());
    }

    /// Makes the tables of sums from what they are made of.
    pub(crate) fn compose(&mut self, sums: Needs) {
        let Some(rows) = &self.values else { return };
        for table in &self.structure.composed {
            let only = sums.rows(table, self.structure.tables.articles);
            table.compose(&mut self.weights, rows, sums.kept.as_deref(), only);
        }
        self.sums = sums;
    }

    /// Sets the biases of the last dense layer. If articles share values, these explain what they can of them, and the
    /// articles' own biases are the rest.
    pub(crate) fn set_bias(&mut self, bias: &[f32]) {
        let head = self.structure.head.bias;
        let composed = self.composed(head);
        let (Some(table), Some(rows)) = (composed, &self.values) else {
            self.weights.0[head.0].data.copy_from_slice(bias);
            return;
        };
        let shared = rows.explain(bias);
        for (article, (own, bias)) in self.weights.0[table.own.0].data.iter_mut().zip(bias).enumerate() {
            let explained: f32 = rows.of_article(article).iter().map(|&value| shared[value as usize]).sum();
            *own = bias - explained;
        }
        self.weights.0[table.values.0].data = shared;
        self.compose(Needs::default());
    }

    /// The same model over other articles, made of their values alone: what it says of those that it does not know. Visible
    /// articles keep their numbers.
    pub(crate) fn with_last_layer_of(&self, rows: &ValueRows, articles: usize) -> Self {
        let mut model = self.clone();
        model.config.articles = articles;
        // A memory of pairs says nothing of new articles.
        model.structure.memory = None;
        let Head { weight, bias, personas } = model.structure.head;
        if let Some(personas) = personas {
            model.structure.evidence = Some(Param(model.weights.0.len()));
            let evidence = model.weights.tensor(personas).clone();
            model.weights.0.push(evidence);
        }
        for table in [Some(weight), Some(bias), personas].into_iter().flatten() {
            let Some(table) = model.composed(table) else { continue };
            for param in [table.sum, table.own] {
                let Tensor { shape, data, .. } = &mut model.weights.0[param.0];
                shape[0] = articles;
                *data = vec![0.0; shape.iter().product()];
            }
            table.compose(&mut model.weights, rows, None, None);
        }
        model
    }

    /// Adds a number to the logits of articles that the model does not know: to the biases of these values, of which each
    /// article has one. The biases of known articles stay as they are.
    pub(crate) fn move_unknown(&mut self, values: &[usize], by: f32) {
        let (Some(table), Some(rows)) = (self.composed(self.structure.head.bias), self.values.clone()) else {
            return;
        };
        for &value in values {
            self.weights.0[table.values.0].data[value] += by;
            for &article in rows.with_value(value) {
                self.weights.0[table.own.0].data[article as usize] -= by;
            }
        }
        self.compose(Needs::default());
    }

    /// Multiplies all logits by a factor. Not of a model with personas: their biases also say which personas an outfit
    /// has.
    pub(crate) fn scale_logits(&mut self, factor: f32) {
        let Head { weight, bias, personas } = self.structure.head;
        assert!(personas.is_none(), "a model with personas cannot be scaled");
        let memory = self.structure.memory.iter();
        let mut params: Vec<Param> = memory.flat_map(|memory| [memory.weights, memory.outfits]).collect();
        for table in [weight, bias] {
            params.push(table);
            if let Some(Composed { own, values, embedding, .. }) = self.composed(table) {
                params.extend([own, values]);
                params.extend(embedding);
            }
        }
        for param in params {
            self.weights.0[param.0].data.iter_mut().for_each(|number| *number *= factor);
        }
    }

    /// Moves all weights this part of the way to those of another model of the same shape.
    pub(crate) fn move_towards(&mut self, other: &Self, part: f32) {
        for (own, other) in self.weights.0.iter_mut().zip(&other.weights.0) {
            own.data.iter_mut().zip(&other.data).for_each(|(own, other)| *own += part * (other - *own));
        }
    }

    /// The parts of a table of sums; None for other tables.
    pub(crate) fn composed(&self, table: Param) -> Option<Composed> {
        self.structure.composed.iter().find(|composed| composed.sum == table).copied()
    }

    /// The articles' own vectors with what their embeddings add: new articles have only the latter.
    pub(crate) fn own_vectors(&self, table: Composed) -> Tensor {
        let mut own = self.weights.tensor(table.own).clone();
        let columns = own.shape.get(1).copied().unwrap_or(1);
        if let (Some(embedding), Some(rows)) = (table.embedding, &self.values) {
            let embedding = self.weights.tensor(embedding);
            for (article, vector) in own.data.chunks_exact_mut(columns).enumerate() {
                add_embedding(vector, embedding, rows.embedding(article));
            }
        }
        own
    }

    /// The vectors of values as sums take them: those of the match, from this column on, times their factors.
    pub(crate) fn scaled_values(&self, values: Param, from: usize) -> Tensor {
        let mut tensor = self.weights.tensor(values).clone();
        let columns = tensor.shape.get(1).copied().unwrap_or(1);
        if let Some(rows) = &self.values {
            for (value, vector) in tensor.data.chunks_exact_mut(columns).enumerate() {
                vector[from..].iter_mut().for_each(|number| *number *= rows.factor(value));
            }
        }
        tensor
    }

    /// Sets the personas' biases, if the model has personas.
    pub(crate) fn set_personas(&mut self, biases: &[f32]) {
        let Some(personas) = self.structure.head.personas else { return };
        let own = self.composed(personas).map_or(personas, |table| table.own);
        self.weights.0[own.0].data.copy_from_slice(biases);
        self.compose(Needs::default());
    }

    /// A tensor's numbers, by its name.
    pub(crate) fn named_mut(&mut self, name: &str) -> Option<&mut Tensor> {
        self.weights.0.iter_mut().find(|tensor| tensor.name == name)
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
