//! Names and draws a model's weights.

use atelier_engine::outfit_memory::FEATURES;

use super::{
    Axes, Conditioning, ModelConfig, Trunk,
    structure::{AttentionLayer, Block, Conditioned, Fnn, Structure, Update},
};
use crate::{
    engine::{
        Composed, Head, Linear, Memory, Norm, PairHead, Param, Tables, Tensor, Weights, count_weights,
        number, set_first_weights,
    },
    random::{Stream, Table},
};

pub(super) fn build(config: &ModelConfig, seed: u64) -> (Structure, Weights) {
    Builder { config, seed, weights: Weights::default(), composed: Vec::new() }.structure()
}

/// The memory's first weights: of what was found with the visible articles, of these themselves, and, a tenth of what it
/// multiplies by, of each feature.
const FIRST_BESIDE: f64 = 0.1;
const FIRST_OWN: f64 = -3.0;
const FIRST_MEMORY: f32 = 0.01;

struct Builder<'a> {
    config: &'a ModelConfig,
    seed: u64,
    weights: Weights,
    composed: Vec<Composed>,
}

impl Builder<'_> {
    fn structure(mut self) -> (Structure, Weights) {
        let config = self.config;
        let axes = Axes::new(config.method);
        let (width, scales) = (config.width, &config.initial);
        let articles = self.table("articles", &[config.articles + 2, width], scales.articles);
        let weight = self.table("vocabulary", &[config.articles, width], scales.vocabulary);
        let bias = self.biases("vocabulary.bias", config.articles);
        let personas = axes.personas.then(|| {
            let shape = [config.articles, config.personas];
            self.sums("personas", &shape, scales.personas, config.personas)
        });
        let features = if axes.conditioning == Conditioning::None { Vec::new() } else { self.features() };
        let matched = if config.matching > 0 { self.matched() } else { Vec::new() };
        let tables = Tables {
            articles,
            features,
            matched,
            width,
            feature_width: config.feature_width,
            heads: config.heads,
        };
        let conditioned = self.conditioned(axes.conditioning);
        let has_state = matches!(conditioned, Conditioned::State { .. });
        let blocks = match axes.trunk {
            Trunk::Stacked => config.blocks,
            Trunk::Universal => config.universal.blocks,
        };
        let blocks = (0..blocks).map(|place| self.block(&format!("blocks.{place}"), has_state)).collect();
        let halting = (axes.trunk == Trunk::Universal).then(|| {
            let halting = self.linear("halting", width, 1);
            let bias = halting.bias.expect("the halting layer has a bias");
            self.weights.0[bias.0].data.fill(config.universal.halting_bias);
            halting
        });
        let transform = self.linear("transform", width, width);
        let head = Head { weight, bias, personas };
        let memory = (config.memory > 0).then(|| self.memory());
        // Last, so that the other weights of a seed are the same with and without pairs.
        let pair = config.pair.then(|| PairHead {
            first: self.linear("pair.first", PairHead::inputs(config.hidden_width(), axes.personas), width),
            second: self.linear("pair.second", width, 1),
        });
        let structure = Structure {
            tables,
            composed: self.composed,
            conditioned,
            blocks,
            halting,
            transform,
            matches: config.matching > 0,
            head,
            evidence: personas,
            memory,
            pair,
        };
        (structure, self.weights)
    }

    /// A table with a row per article, whose last columns are the match's: composed if articles share values.
    fn table(&mut self, name: &str, shape: &[usize; 2], scale: f32) -> Param {
        self.sums(name, shape, scale, self.config.hidden_width())
    }

    /// A table with a row per article, and this width if articles share values.
    fn sums(&mut self, name: &str, shape: &[usize; 2], scale: f32, width: usize) -> Param {
        let full = format!("{name}.weight");
        if self.config.values == 0 {
            return self.drawn(&full, shape, scale);
        }
        let own = self.drawn(&format!("{name}.own"), shape, scale);
        let values = self.zeros(&format!("{name}.values"), &[self.config.values, width]);
        let embedding = self.embedding(&format!("{name}.embedding"), &shape[1..]);
        let sum = self.zeros(&full, &[shape[0], width]);
        self.composed.push(Composed { sum, own, values, embedding });
        sum
    }

    fn biases(&mut self, name: &str, articles: usize) -> Param {
        if self.config.values == 0 {
            return self.filled(name, articles, 0.0);
        }
        let own = self.filled("vocabulary.own_bias", articles, 0.0);
        let values = self.filled("vocabulary.value_biases", self.config.values, 0.0);
        let embedding = self.embedding("vocabulary.embedding_biases", &[]);
        let sum = self.filled(name, articles, 0.0);
        self.composed.push(Composed { sum, own, values, embedding });
        sum
    }

    /// The rows of this shape for the numbers of an embedding; zeros at first.
    fn embedding(&mut self, name: &str, row: &[usize]) -> Option<Param> {
        let shape: Vec<usize> = [self.config.embedding].iter().chain(row).copied().collect();
        (self.config.embedding > 0).then(|| self.zeros(name, &shape))
    }

    /// Each feature's values in the match; zeros at first.
    fn matched(&mut self) -> Vec<Param> {
        let config = self.config;
        let table = |feature: &super::FeatureRows| {
            self.zeros(&format!("match.{}.weight", feature.name), &[feature.rows, config.matching])
        };
        config.features.iter().map(table).collect()
    }

    /// Empty at first.
    fn memory(&mut self) -> Memory {
        let (features, named) = self.config.rows_of_articles();
        let shape = [self.config.articles + 2, self.config.memory];
        let count = count_weights(features.iter().flatten().count());
        let weights = self.filled("memory.weights", count, FIRST_MEMORY);
        set_first_weights(&mut self.weights.0[weights.0].data, FIRST_BESIDE, FIRST_OWN, &[]);
        Memory {
            articles: self.zeros("memory.articles", &shape),
            counts: self.zeros("memory.counts", &shape),
            expected: self.zeros("memory.expected", &shape),
            named: self.filled("memory.named", named, 0.0),
            weights,
            outfits: self.filled("memory.outfits", FEATURES, 0.0),
            features,
        }
    }

    fn features(&mut self) -> Vec<Param> {
        let config = self.config;
        let table = |feature: &super::FeatureRows| {
            let shape = [feature.rows, config.feature_width];
            self.drawn(&format!("features.{}.weight", feature.name), &shape, config.initial.features)
        };
        config.features.iter().map(table).collect()
    }

    fn conditioned(&mut self, conditioning: Conditioning) -> Conditioned {
        let (width, context) = (self.config.width, self.config.features.len() * self.config.feature_width);
        match conditioning {
            Conditioning::None => Conditioned::None,
            Conditioning::Concat => {
                // One matrix in two parts, so both have the scale of its whole input.
                let scale = self.scale(width + context);
                let article = self.drawn("concat.article.weight", &[width, width], scale);
                let weight = self.drawn("concat.context.weight", &[context, width], scale);
                let bias = self.filled("concat.context.bias", width, 0.0);
                Conditioned::Concat {
                    article: Linear { weight: article, bias: None },
                    context: Linear { weight, bias: Some(bias) },
                    out: self.linear("concat.out", width, width),
                }
            }
            Conditioning::Position => {
                Conditioned::Position { context: self.linear("position", context, width) }
            }
            Conditioning::State => self.state(context, false),
            Conditioning::StateUpdate => self.state(context, true),
        }
    }

    fn state(&mut self, context: usize, updates: bool) -> Conditioned {
        let (width, hidden) = (self.config.width, self.config.hidden);
        let context = Fnn {
            first: self.linear("state.first", context, width),
            second: self.linear("state.second", width, width),
        };
        let count = if updates { self.config.blocks - 1 } else { 0 };
        let updates = (0..count).map(|place| {
            let name = format!("updates.{place}");
            Update {
                fnn: self.fnn(&format!("{name}.fnn"), width, hidden),
                norm: self.norm(&format!("{name}.norm")),
            }
        });
        Conditioned::State { context, updates: updates.collect() }
    }

    fn block(&mut self, name: &str, has_state: bool) -> Block {
        let (width, hidden) = (self.config.width, self.config.hidden);
        Block {
            attention: self.attention(&format!("{name}.attention")),
            state: has_state.then(|| self.linear(&format!("{name}.state"), width, width)),
            fnn: self.fnn(&format!("{name}.fnn"), width, hidden),
            norm: self.norm(&format!("{name}.norm")),
        }
    }

    fn attention(&mut self, name: &str) -> AttentionLayer {
        let width = self.config.width;
        AttentionLayer {
            query: self.linear(&format!("{name}.query"), width, width),
            key_value: self.linear(&format!("{name}.key_value"), width, 2 * width),
            out: self.linear(&format!("{name}.out"), width, width),
            norm: self.norm(&format!("{name}.norm")),
        }
    }

    fn fnn(&mut self, name: &str, width: usize, hidden: usize) -> Fnn {
        Fnn {
            first: self.linear(&format!("{name}.first"), width, hidden),
            second: self.linear(&format!("{name}.second"), hidden, width),
        }
    }

    fn linear(&mut self, name: &str, from: usize, to: usize) -> Linear {
        let weight = self.drawn(&format!("{name}.weight"), &[from, to], self.scale(from));
        Linear { weight, bias: Some(self.filled(&format!("{name}.bias"), to, 0.0)) }
    }

    fn norm(&mut self, name: &str) -> Norm {
        let width = self.config.width;
        Norm {
            scale: self.filled(&format!("{name}.scale"), width, 1.0),
            shift: self.filled(&format!("{name}.shift"), width, 0.0),
        }
    }

    fn scale(&self, from: usize) -> f32 {
        self.config.initial.linear / number(from).sqrt()
    }

    fn filled(&mut self, name: &str, length: usize, value: f32) -> Param {
        self.push(name, &[length], vec![value; length])
    }

    fn zeros(&mut self, name: &str, shape: &[usize]) -> Param {
        self.push(name, shape, vec![0.0; shape.iter().product()])
    }

    /// Draws from a normal distribution; each tensor has its own stream.
    fn drawn(&mut self, name: &str, shape: &[usize], scale: f32) -> Param {
        let mut stream = Stream::new(self.seed, Table::Weights, self.weights.0.len());
        let data = stream.normals(shape.iter().product(), f64::from(scale));
        self.push(name, shape, data)
    }

    fn push(&mut self, name: &str, shape: &[usize], data: Vec<f32>) -> Param {
        self.weights.0.push(Tensor { name: name.to_owned(), shape: shape.to_vec(), data });
        Param(self.weights.0.len() - 1)
    }
}
