//! A model's configuration: everything but its weights.

use atelier_core::domain::{FEATURE_WIDTH, Feature, Method, Schema};
use serde::{Deserialize, Serialize};

use super::{Axes, Conditioning};
use crate::engine::Dropout;

/// A model's shape and initial scales; saved with the weights.
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
    /// Hidden width of the feed-forward networks in blocks and state updates.
    pub hidden: usize,
    /// Of what attention and the global state say, as in the paper.
    pub dropout: f32,
    /// Of articles' vectors and of what feed-forward networks say.
    pub dropout_elsewhere: f32,
    pub universal: UniversalConfig,
    /// Number of latent personas, if the method has them.
    pub personas: usize,
    /// Number of values that articles share; 0 if each article has only its own vectors.
    pub values: usize,
    /// How many numbers models take of an article's embedding; 0 if articles have none.
    pub embedding: usize,
    /// Width of the match of what the customer and the visible articles say with each article's values; 0 is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub matching: usize,
    /// How many articles the memory holds for each article; 0 is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory: usize,
    /// Features whose values are articles, such as what the customer had; the memory boosts these articles.
    pub of_articles: Vec<String>,
    /// Whether the model also judges if two halves were one outfit.
    pub pair: bool,
    pub initial: InitialScales,
}

/// One feature's embedding table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureRows {
    pub name: String,
    /// Including row 0, "not given".
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
    /// The loss per unit of an outfit's mean pondering.
    pub ponder_weight: f32,
    /// The initial bias of the halting unit: at 1 its probability is 0.73, so slots take two steps.
    pub halting_bias: f32,
}

/// Standard deviations of the initial weights. They decide how soon a method learns from the visible articles, and
/// how well it ends (docs/results.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitialScales {
    pub articles: f32,
    /// The best value depends on the conditioning.
    pub features: f32,
    /// The last dense layer.
    pub vocabulary: f32,
    pub personas: f32,
    /// Of every other matrix, times the square root of its input width. Biases start at 0.
    pub linear: f32,
}

impl ModelConfig {
    /// The papers' model of this method.
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
            dropout_elsewhere: 0.1,
            universal: UniversalConfig {
                blocks: 3,
                most_steps: 8,
                epsilon: 0.01,
                ponder_weight: 0.01,
                halting_bias: 1.0,
            },
            personas: 8,
            values: 0,
            embedding: 0,
            matching: if method == Method::Match { 128 } else { 0 },
            memory: if method == Method::Match { 64 } else { 0 },
            of_articles: Vec::new(),
            pair: false,
            initial: InitialScales {
                articles: 0.02,
                features: feature_scale(method),
                vocabulary: vocabulary_scale(method),
                personas: 0.1,
                linear: 0.577,
            },
        }
    }

    /// The width of the last dense layer's input.
    pub(super) fn hidden_width(&self) -> usize {
        self.width + self.matching
    }

    /// For each feature whose values are articles, the first of its rows among those of all such features, and the number
    /// of these rows.
    pub(crate) fn rows_of_articles(&self) -> (Vec<Option<usize>>, usize) {
        let mut rows = 0;
        let place = |feature: &FeatureRows| {
            let first = rows;
            self.of_articles.contains(&feature.name).then(|| {
                rows += feature.rows;
                first
            })
        };
        (self.features.iter().map(place).collect(), rows)
    }

    pub(super) fn dropout(&self, key: u32) -> Dropout {
        Dropout { rate: self.dropout, elsewhere: self.dropout_elsewhere, key }
    }

    /// The index of the blank.
    pub fn blank(&self) -> u32 {
        u32::try_from(self.articles).expect("a vocabulary has fewer than four billion articles")
    }

    /// The index of padding.
    pub fn padding(&self) -> u32 {
        self.blank() + 1
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// As large as every other matrix, a last layer takes a method out of its first plateau, the articles' frequencies, in half
/// as many epochs (docs/results.md). A match begins at counts, and the last layer is to add little to them.
fn vocabulary_scale(method: Method) -> f32 {
    if method == Method::Match { 0.02 } else { 0.051 }
}

/// A context among the articles must start as small as they are, or it drowns them; gsu normalises its state. gs never
/// normalises it, so a state that starts small has no effect (docs/results.md).
fn feature_scale(method: Method) -> f32 {
    match Axes::new(method).conditioning {
        Conditioning::Concat | Conditioning::Position | Conditioning::StateUpdate => 0.02,
        Conditioning::None | Conditioning::State => 1.0,
    }
}
