//! The tape: computes a model on one shard and remembers what its gradients need.

use super::{
    adaptive::{Course, Halting, mix},
    attention::{self, Heads, Span},
    lookup,
    matmul::{self, Matrix},
    norm::{self, Residual},
    ops::{Activation, Adaptive, Linear, Norm, Ops, Rows},
    personas,
    shard::{Shard, Tables},
    simd,
    weights::{Param, Weights},
};

/// Dropout of one step: how much, and from which randomness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropout {
    pub(crate) rate: f32,
    pub(crate) key: u32,
}

/// Which numbers are dropped: computed from where they are, so that the backward pass needs no memory
/// of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mask {
    key: u32,
    /// Below this, dropped; 0 drops nothing.
    threshold: u32,
    kept: f32,
}

impl Mask {
    /// What the number at this place is multiplied with.
    #[expect(clippy::inline_always, reason = "has to be inlined into a vectorised loop")]
    #[inline(always)]
    pub(super) fn at(self, place: usize) -> f32 {
        #[expect(clippy::cast_possible_truncation, reason = "a shard holds far fewer than 2^32 numbers")]
        let mut hash = (place as u32).wrapping_mul(0x9e37_79b1) ^ self.key;
        hash = (hash ^ (hash >> 16)).wrapping_mul(0x7feb_352d);
        hash = (hash ^ (hash >> 15)).wrapping_mul(0x846c_a68b);
        hash ^= hash >> 16;
        if hash >= self.threshold { self.kept } else { 0.0 }
    }

    pub(super) fn apply(self, values: &mut [f32]) {
        if self.threshold > 0 {
            values.iter_mut().enumerate().for_each(|(place, value)| *value *= self.at(place));
        }
    }
}

/// A value on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node(pub(super) usize);

/// One operation with what its backward pass needs beside the values of its arguments.
#[derive(Debug)]
pub(super) enum Op {
    Articles,
    Context,
    Linear { x: Node, layer: Linear, activation: Activation, before: Vec<f32> },
    AddRelu { x: Node, y: Node, serving: Vec<u32> },
    AddNorm { x: Node, y: Node, serving: Vec<u32>, norm: Option<Norm>, saved: norm::Saved },
    Attention { queries: Node, keys_values: Node, spans: Vec<Span>, weights: Vec<f32> },
    WithPosition { slots: Node, position: Node },
    AtBlank { x: Node },
    Adaptive { states: Vec<Node>, logits: Vec<Node>, course: Course },
    Steps,
    Personas,
}

#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) value: Vec<f32>,
    pub(super) rows: Rows,
    pub(super) width: usize,
    pub(super) op: Op,
}

/// Computes a model on one shard.
#[derive(Debug)]
pub(crate) struct Tape<'a> {
    pub(super) weights: &'a Weights,
    pub(super) tables: &'a Tables,
    pub(super) shard: &'a Shard,
    halting: Halting,
    dropout: Option<Dropout>,
    pub(super) nodes: Vec<Recorded>,
}

impl<'a> Tape<'a> {
    /// Without dropout it computes what is served.
    pub(crate) fn new(
        weights: &'a Weights,
        tables: &'a Tables,
        shard: &'a Shard,
        halting: Halting,
        dropout: Option<Dropout>,
    ) -> Self {
        Self { weights, tables, shard, halting, dropout, nodes: Vec::new() }
    }

    pub(crate) fn value(&self, node: Node) -> &[f32] {
        &self.nodes[node.0].value
    }

    fn record(&mut self, value: Vec<f32>, rows: Rows, width: usize, op: Op) -> Node {
        self.nodes.push(Recorded { value, rows, width, op });
        Node(self.nodes.len() - 1)
    }

    /// The mask of the operation that is recorded at this place.
    pub(super) fn mask(&self, node: usize) -> Mask {
        match self.dropout {
            None => Mask { key: 0, threshold: 0, kept: 1.0 },
            Some(Dropout { rate, key }) => {
                #[expect(clippy::cast_possible_truncation, reason = "a tape has far fewer than 2^32 nodes")]
                let node = node as u32;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a rate lies between 0 and 1"
                )]
                let threshold = (f64::from(rate) * f64::from(u32::MAX)) as u32;
                let key = (key ^ node.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0xc2b2_ae35);
                Mask { key, threshold, kept: 1.0 / (1.0 - rate) }
            }
        }
    }
}

impl Ops for Tape<'_> {
    type Value = Node;

    fn articles(&mut self) -> Node {
        let (table, width) = (self.weights.data(self.tables.articles), self.tables.width);
        let value = lookup::articles(self.shard, table, width, self.mask(self.nodes.len()));
        self.record(value, Rows::Slots, width, Op::Articles)
    }

    fn context(&mut self) -> Node {
        let value = lookup::context(self.shard, self.weights, self.tables);
        let width = self.tables.features.len() * self.tables.feature_width;
        self.record(value, Rows::Outfits, width, Op::Context)
    }

    fn linear(&mut self, x: Node, layer: &Linear, activation: Activation) -> Node {
        let from = &self.nodes[x.0];
        let (rows, weight) = (from.rows, self.weights.tensor(layer.weight));
        let width = weight.shape[1];
        let mut value = vec![0.0; self.shard.rows(rows) * width];
        if let Some(bias) = layer.bias {
            value.chunks_exact_mut(width).for_each(|row| row.copy_from_slice(self.weights.data(bias)));
        }
        matmul::add(&mut value, Matrix::new(&from.value, from.width), Matrix::new(&weight.data, width));
        let mut before = Vec::new();
        match activation {
            Activation::Identity => {}
            Activation::Relu => {
                for value in &mut value {
                    *value = value.max(0.0);
                }
            }
            Activation::Gelu => {
                before.clone_from(&value);
                for value in &mut value {
                    *value *= normal_cdf(*value);
                }
            }
        }
        self.record(value, rows, width, Op::Linear { x, layer: *layer, activation, before })
    }

    fn add_relu(&mut self, x: Node, y: Node) -> Node {
        let (to, from) = (&self.nodes[x.0], &self.nodes[y.0]);
        let (rows, width) = (to.rows, to.width);
        let serving = self.shard.serving(rows, from.rows);
        let mut value = to.value.clone();
        for (row, &served) in value.chunks_exact_mut(width).zip(&serving) {
            simd::add(row, &from.value[served as usize * width..][..width]);
        }
        for value in &mut value {
            *value = value.max(0.0);
        }
        self.record(value, rows, width, Op::AddRelu { x, y, serving })
    }

    fn add_norm(&mut self, x: Node, y: Node, norm: Option<&Norm>) -> Node {
        let (to, from) = (&self.nodes[x.0], &self.nodes[y.0]);
        let (rows, width) = (to.rows, to.width);
        let serving = self.shard.serving(rows, from.rows);
        let residual = Residual { width, serving: &serving, mask: self.mask(self.nodes.len()) };
        let affine = norm.map(|norm| (self.weights.data(norm.scale), self.weights.data(norm.shift)));
        let (value, saved) = norm::forward(&to.value, &from.value, residual, affine);
        self.record(value, rows, width, Op::AddNorm { x, y, serving, norm: norm.copied(), saved })
    }

    fn attention(&mut self, asking: Node, asked: Node, query: &Linear, key_value: &Linear) -> Node {
        let queries = self.linear(asking, query, Activation::Identity);
        let keys_values = self.linear(asked, key_value, Activation::Identity);
        let (asking, asked) = (&self.nodes[queries.0], &self.nodes[keys_values.0]);
        let (rows, width) = (asking.rows, asking.width);
        let spans = attention::spans(self.shard, rows, asked.rows, self.tables.heads);
        let heads = Heads { width, count: self.tables.heads };
        let (value, weights) = attention::forward(&asking.value, &asked.value, &spans, heads);
        self.record(value, rows, width, Op::Attention { queries, keys_values, spans, weights })
    }

    fn with_position(&mut self, slots: Node, position: Node) -> Node {
        let (many, one) = (&self.nodes[slots.0], &self.nodes[position.0]);
        let width = many.width;
        let mut value = Vec::with_capacity(many.value.len() + one.value.len());
        for outfit in 0..self.shard.outfits() {
            let slots = self.shard.range(Rows::Slots, outfit);
            value.extend_from_slice(&one.value[outfit * width..][..width]);
            value.extend_from_slice(&many.value[slots.start * width..slots.end * width]);
        }
        self.record(value, Rows::Positions, width, Op::WithPosition { slots, position })
    }

    fn at_blank(&mut self, x: Node) -> Node {
        let from = &self.nodes[x.0];
        let (rows, width) = (from.rows, from.width);
        let mut value = Vec::with_capacity(self.shard.outfits() * width);
        for outfit in 0..self.shard.outfits() {
            value.extend_from_slice(&from.value[self.shard.blank_row(rows, outfit) * width..][..width]);
        }
        self.record(value, Rows::Outfits, width, Op::AtBlank { x })
    }

    fn adaptive(
        &mut self,
        x: Node,
        halting: &Linear,
        unit: &mut dyn FnMut(&mut Self, Node) -> Node,
    ) -> Adaptive<Node> {
        let mut course = Course::new(self.halting, self.shard.slots.len());
        let (mut states, mut logits) = (Vec::new(), Vec::new());
        let mut state = x;
        loop {
            state = unit(self, state);
            let logit = self.linear(state, halting, Activation::Identity);
            states.push(state);
            logits.push(logit);
            if !course.step(self.value(logit)) {
                break;
            }
        }
        let width = self.nodes[x.0].width;
        let mut value = vec![0.0; self.value(x).len()];
        for (state, shares) in states.iter().zip(&course.shares) {
            mix(&mut value, self.value(*state), shares, width);
        }
        let steps = (0..self.shard.outfits()).map(|outfit| self.mean_over_slots(outfit, &course.halted));
        let steps = steps.collect();
        let value = self.record(value, Rows::Slots, width, Op::Adaptive { states, logits, course });
        let steps = self.record(steps, Rows::Outfits, 1, Op::Steps);
        Adaptive { value, steps }
    }

    fn personas(&mut self, table: Param) -> Node {
        let width = self.weights.tensor(table).shape[1];
        let value = personas::forward(self.shard, self.weights.data(table), width);
        self.record(value, Rows::Outfits, width, Op::Personas)
    }
}

impl Tape<'_> {
    fn mean_over_slots(&self, outfit: usize, halted: &[usize]) -> f32 {
        let slots = &halted[self.shard.range(Rows::Slots, outfit)];
        simd::number(slots.iter().sum()) / simd::number(slots.len())
    }
}

/// The normal distribution's Φ, by the exact error function.
pub(super) fn normal_cdf(x: f32) -> f32 {
    0.5 * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}
