//! Everything that says which model this is, apart from its weights.

use atelier::domain::{FEATURE_WIDTH, Feature, Method, Schema};
use serde::{Deserialize, Serialize};

use super::{Axes, Conditioning};

/// A model's shape and how its weights are drawn; saved with the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    pub method: Method,
    /// Articles in the vocabulary.
    pub articles: usize,
    /// The schema's features, in its order.
    pub features: Vec<FeatureRows>,
    pub feature_width: usize,
    pub width: usize,
    pub heads: usize,
    /// Blocks of a stacked trunk.
    pub blocks: usize,
    /// Hidden width of the blocks' and the updates' feed-forward networks.
    pub hidden: usize,
    pub dropout: f32,
    pub universal: UniversalConfig,
    /// Latent personas, where the method has them.
    pub personas: usize,
    /// Whether it also judges if two halves were one outfit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pair: bool,
    pub initial: InitialScales,
}

/// One feature's embedding table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureRows {
    pub name: String,
    /// The row for "not given" among them.
    pub rows: usize,
}

/// The recurrent trunk's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniversalConfig {
    /// Blocks of the recurrent unit.
    pub blocks: usize,
    pub most_steps: usize,
    pub epsilon: f32,
    /// What one unit of an outfit's mean pondering adds to the loss.
    pub ponder_weight: f32,
    /// Where the halting unit's bias begins: 1 means a chance of 0.73, so two steps.
    pub halting_bias: f32,
}

/// Standard deviations that the weights are drawn with. They decide how soon a method learns from the visible
/// articles, and where it ends (docs/results.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitialScales {
    pub articles: f32,
    /// What does best depends on where the context goes.
    pub features: f32,
    /// The last dense layer.
    pub vocabulary: f32,
    pub personas: f32,
    /// Of every other matrix, times the root of the numbers that it takes in. Biases begin at 0.
    pub linear: f32,
}

impl ModelConfig {
    /// The papers' model of this method, for a vocabulary and a schema.
    pub fn new(method: Method, articles: usize, schema: &Schema) -> Self {
        let rows = |feature: &Feature| FeatureRows { name: feature.name.clone(), rows: feature.rows() };
        Self {
            method,
            articles,
            features: schema.features().iter().map(rows).collect(),
            feature_width: FEATURE_WIDTH,
            width: 128,
            heads: 8,
            blocks: 4,
            hidden: 256,
            dropout: 0.1,
            universal: UniversalConfig {
                blocks: 3,
                most_steps: 8,
                epsilon: 0.01,
                ponder_weight: 0.01,
                halting_bias: 1.0,
            },
            personas: 8,
            pair: false,
            initial: InitialScales {
                articles: 0.02,
                features: first_features(method),
                vocabulary: 0.02,
                personas: 0.1,
                linear: 0.577,
            },
        }
    }

    /// The index that stands for a blank slot.
    pub fn blank(&self) -> u32 {
        u32::try_from(self.articles)
            .expect("a vocabulary has fewer than four billion articles; this is a bug")
    }

    /// The index that stands for no slot.
    pub fn padding(&self) -> u32 {
        self.blank() + 1
    }
}

/// Among the articles a context must begin as small as they are, or it drowns them; gsu normalises its state by itself.
/// gs never does and gsx only with what it has read: a state that begins small stays unheard (docs/results.md).
fn first_features(method: Method) -> f32 {
    match Axes::of(method).conditioning {
        Conditioning::Concat | Conditioning::Position | Conditioning::StateUpdate => 0.02,
        // Of None no feature is used.
        Conditioning::None | Conditioning::State | Conditioning::StateExchange => 1.0,
    }
}
