//! The tape: computes a model on one shard, records what the gradients need, and runs backwards.

use super::{
    adaptive::{self, Halting, HaltingState},
    attention::{self, Heads, Span},
    dropout::{Dropout, Mask},
    lookup, matmul,
    norm::{self, Residual},
    ops::{Activation, Adaptive, Linear, Norm, Ops, Residue, Rows},
    personas,
    shard::{Shard, Tables},
    simd,
    weights::{Gradients, Param, Weights},
};

/// A value on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node(usize);

/// One operation with what its backward pass needs besides the values of its arguments.
#[derive(Debug)]
enum Op {
    Articles,
    Matched,
    Context,
    Linear { x: Node, layer: Linear, activation: Activation, before: Vec<f32> },
    AddRelu { x: Node, y: Node, serving: Vec<u32> },
    AddNorm { x: Node, y: Node, serving: Vec<u32>, norm: Option<Norm>, kind: Residue, saved: norm::Saved },
    Attention { queries: Node, keys_values: Node, spans: Vec<Span>, weights: Vec<f32> },
    WithPosition { slots: Node, position: Node },
    AtBlank { x: Node },
    Beside { x: Node, y: Node },
    Adaptive { states: Vec<Node>, logits: Vec<Node>, halting_state: HaltingState },
    Steps,
    Personas,
}

#[derive(Debug)]
struct Recorded {
    value: Vec<f32>,
    rows: Rows,
    width: usize,
    op: Op,
}

/// Computes a model on one shard.
#[derive(Debug)]
pub(crate) struct Tape<'a> {
    weights: &'a Weights,
    tables: &'a Tables,
    shard: &'a Shard,
    halting: Halting,
    dropout: Option<Dropout>,
    nodes: Vec<Recorded>,
}

impl<'a> Tape<'a> {
    /// Without dropout it computes what the exported model answers.
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

    /// The dropout mask of the operation recorded at this place.
    fn mask(&self, node: usize, kind: Residue) -> Mask {
        self.dropout.map_or(Mask::NONE, |dropout| dropout.mask(node, kind))
    }
}

impl Ops for Tape<'_> {
    type Value = Node;

    fn articles(&mut self) -> Node {
        let (table, width) = (self.weights.tensor(self.tables.articles), self.tables.width);
        let value =
            lookup::articles(self.shard, table, width, self.mask(self.nodes.len(), Residue::Computed));
        self.record(value, Rows::Slots, width, Op::Articles)
    }

    fn matched(&mut self) -> Node {
        let value = lookup::matched(self.shard, self.weights, self.tables);
        let width = value.len() / self.shard.outfits();
        self.record(value, Rows::Outfits, width, Op::Matched)
    }

    fn beside(&mut self, x: Node, y: Node) -> Node {
        let (left, right) = (&self.nodes[x.0], &self.nodes[y.0]);
        let (rows, width) = (left.rows, left.width + right.width);
        let mut value = Vec::with_capacity(left.value.len() + right.value.len());
        for (left, right) in left.value.chunks_exact(left.width).zip(right.value.chunks_exact(right.width)) {
            value.extend_from_slice(left);
            value.extend_from_slice(right);
        }
        self.record(value, rows, width, Op::Beside { x, y })
    }

    fn context(&mut self) -> Node {
        let value = lookup::context(self.shard, self.weights, self.tables);
        let width = self.tables.features.len() * self.tables.feature_width;
        self.record(value, Rows::Outfits, width, Op::Context)
    }

    fn linear(&mut self, x: Node, layer: &Linear, activation: Activation) -> Node {
        let rows = self.nodes[x.0].rows;
        let width = self.weights.tensor(layer.weight).shape[1];
        let mut value = matmul::linear(self.weights, layer, self.value(x));
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

    fn add_norm(&mut self, x: Node, y: Node, norm: Option<&Norm>, kind: Residue) -> Node {
        let (to, from) = (&self.nodes[x.0], &self.nodes[y.0]);
        let (rows, width) = (to.rows, to.width);
        let serving = self.shard.serving(rows, from.rows);
        let residual = Residual { width, serving: &serving, mask: self.mask(self.nodes.len(), kind) };
        let affine = norm.map(|norm| (self.weights.data(norm.scale), self.weights.data(norm.shift)));
        let (value, saved) = norm::forward(&to.value, &from.value, residual, affine);
        self.record(value, rows, width, Op::AddNorm { x, y, serving, norm: norm.copied(), kind, saved })
    }

    fn attention(&mut self, x: Node, source: Node, query: &Linear, key_value: &Linear) -> Node {
        let queries = self.linear(x, query, Activation::Identity);
        let keys_values = self.linear(source, key_value, Activation::Identity);
        let (from, to) = (&self.nodes[queries.0], &self.nodes[keys_values.0]);
        let (rows, width) = (from.rows, from.width);
        let spans = attention::spans(self.shard, rows, to.rows, self.tables.heads);
        let heads = Heads { width, count: self.tables.heads };
        let (value, weights) = attention::forward(&from.value, &to.value, &spans, heads);
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
        let mut halting_state = HaltingState::new(self.halting, self.shard.slots.len());
        let (mut states, mut logits) = (Vec::new(), Vec::new());
        let mut state = x;
        loop {
            state = unit(self, state);
            let logit = self.linear(state, halting, Activation::Identity);
            states.push(state);
            logits.push(logit);
            if !halting_state.step(self.value(logit)) {
                break;
            }
        }
        let width = self.nodes[x.0].width;
        let mut value = vec![0.0; self.value(x).len()];
        for (state, shares) in states.iter().zip(&halting_state.shares) {
            adaptive::mix(&mut value, self.value(*state), shares, width);
        }
        let steps =
            (0..self.shard.outfits()).map(|outfit| self.mean_over_slots(outfit, &halting_state.halted));
        let steps = steps.collect();
        let value = self.record(value, Rows::Slots, width, Op::Adaptive { states, logits, halting_state });
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

impl Tape<'_> {
    /// Adds the weights' gradients to `gradients`, from the gradients of some nodes. `ponder` is the loss per unit
    /// of an outfit's mean pondering.
    pub(crate) fn backward(self, seeds: Vec<(Node, Vec<f32>)>, ponder: f32, gradients: &mut Gradients) {
        let mut pass = Pass { by_node: vec![None; self.nodes.len()], ponder, gradients };
        for (node, seed) in seeds {
            pass.add(node, seed);
        }
        for place in (0..self.nodes.len()).rev() {
            if let Some(gradient) = pass.by_node[place].take() {
                self.step_back(place, gradient, &mut pass);
            }
        }
    }

    fn step_back(&self, place: usize, mut gradient: Vec<f32>, pass: &mut Pass<'_>) {
        let Recorded { value, width, op, .. } = &self.nodes[place];
        let width = *width;
        match op {
            Op::Articles => {
                self.mask(place, Residue::Computed).apply(&mut gradient);
                pass.gradients.articles.rows.extend_from_slice(&self.shard.slots);
                pass.gradients.articles.values.append(&mut gradient);
            }
            Op::Matched => {
                lookup::matched_backward(&gradient, self.shard, self.weights, self.tables, pass.gradients);
            }
            Op::Beside { x, y } => {
                let (mut to_x, mut to_y) = (Vec::new(), Vec::new());
                for from in gradient.chunks_exact(width) {
                    let (left, right) = from.split_at(self.nodes[x.0].width);
                    to_x.extend_from_slice(left);
                    to_y.extend_from_slice(right);
                }
                pass.add(*x, to_x);
                pass.add(*y, to_y);
            }
            Op::Context => {
                lookup::context_backward(&gradient, self.shard, self.weights, self.tables, pass.gradients);
            }
            Op::Linear { x, layer, activation, before } => {
                activation_back(*activation, &mut gradient, value, before);
                let x_gradient = &mut pass.by_node[x.0];
                matmul::linear_back(
                    self.weights,
                    layer,
                    self.value(*x),
                    &gradient,
                    pass.gradients,
                    x_gradient,
                );
            }
            Op::AddRelu { x, y, serving } => {
                activation_back(Activation::Relu, &mut gradient, value, &[]);
                let to = pass.zeroed(*y, &self.nodes);
                for (row, &served) in gradient.chunks_exact(width).zip(serving) {
                    simd::add(&mut to[served as usize * width..][..width], row);
                }
                pass.add(*x, gradient);
            }
            Op::AddNorm { x, y, serving, norm, kind, saved } => {
                let mut normal = value;
                if let Some(norm) = norm {
                    normal = &saved.normal;
                    let scale = self.weights.data(norm.scale);
                    let mut shift = vec![0.0; width];
                    let into = pass.gradients.dense_mut(norm.scale, self.weights);
                    norm::backward_affine(&mut gradient, normal, scale, into, &mut shift);
                    simd::add(pass.gradients.dense_mut(norm.shift, self.weights), &shift);
                }
                norm::backward(&mut gradient, normal, &saved.inverse, width);
                let residual = Residual { width, serving, mask: self.mask(place, *kind) };
                norm::backward_residual(&gradient, residual, pass.zeroed(*y, &self.nodes));
                pass.add(*x, gradient);
            }
            Op::Attention { queries, keys_values, spans, weights } => {
                let heads = Heads { width, count: self.tables.heads };
                let (from, to) = (self.value(*queries), self.value(*keys_values));
                let (from, to) = attention::backward(&gradient, from, to, weights, spans, heads);
                pass.add(*queries, from);
                pass.add(*keys_values, to);
            }
            Op::WithPosition { slots, position } => self.split_position(*slots, *position, &gradient, pass),
            Op::AtBlank { x } => {
                let rows = self.nodes[x.0].rows;
                let to = pass.zeroed(*x, &self.nodes);
                for (outfit, from) in gradient.chunks_exact(width).enumerate() {
                    simd::add(&mut to[self.shard.blank_row(rows, outfit) * width..][..width], from);
                }
            }
            Op::Adaptive { states, logits, halting_state } => {
                let shares: Vec<_> = states
                    .iter()
                    .map(|state| adaptive::unmix(&gradient, self.value(*state), width))
                    .collect();
                let by_logit = halting_state.backward(&shares, &self.ponder_by_slot(pass.ponder));
                for ((state, logit), (shares, by_logit)) in
                    states.iter().zip(logits).zip(halting_state.shares.iter().zip(by_logit))
                {
                    adaptive::mix(pass.zeroed(*state, &self.nodes), &gradient, shares, width);
                    pass.add(*logit, by_logit);
                }
            }
            Op::Steps => unreachable!("steps have no gradient"),
            Op::Personas => {
                personas::backward(&gradient, value, self.shard, width, &mut pass.gradients.personas);
            }
        }
    }

    fn split_position(&self, slots: Node, position: Node, gradient: &[f32], pass: &mut Pass<'_>) {
        let width = self.nodes[slots.0].width;
        for outfit in 0..self.shard.outfits() {
            let both = self.shard.range(Rows::Positions, outfit);
            let (one, many) = gradient[both.start * width..both.end * width].split_at(width);
            simd::add(&mut pass.zeroed(position, &self.nodes)[outfit * width..][..width], one);
            let here = self.shard.range(Rows::Slots, outfit).start * width;
            simd::add(&mut pass.zeroed(slots, &self.nodes)[here..here + many.len()], many);
        }
    }

    /// The loss per unit of each slot's pondering: an outfit's pondering is the mean over its slots.
    fn ponder_by_slot(&self, ponder: f32) -> Vec<f32> {
        let slots = |outfit| self.shard.range(Rows::Slots, outfit).len();
        (0..self.shard.outfits())
            .flat_map(|outfit| std::iter::repeat_n(ponder / simd::number(slots(outfit)), slots(outfit)))
            .collect()
    }

    /// Steps plus remainder, averaged over each outfit's slots and summed over the outfits.
    pub(crate) fn ponder(&self) -> f64 {
        let mut total = 0.0;
        for node in &self.nodes {
            if let Op::Adaptive { halting_state, .. } = &node.op {
                let by_slot: Vec<f32> = halting_state.ponder().collect();
                for outfit in 0..self.shard.outfits() {
                    let slots = &by_slot[self.shard.range(Rows::Slots, outfit)];
                    total += f64::from(slots.iter().sum::<f32>() / simd::number(slots.len()));
                }
            }
        }
        total
    }
}

/// The backward pass under way.
struct Pass<'a> {
    /// Gradients of nodes that are not done yet.
    by_node: Vec<Option<Vec<f32>>>,
    ponder: f32,
    gradients: &'a mut Gradients,
}

impl Pass<'_> {
    fn add(&mut self, node: Node, gradient: Vec<f32>) {
        match &mut self.by_node[node.0] {
            None => self.by_node[node.0] = Some(gradient),
            Some(to) => simd::add(to, &gradient),
        }
    }

    /// A node's gradient, to add to.
    fn zeroed(&mut self, node: Node, nodes: &[Recorded]) -> &mut [f32] {
        self.by_node[node.0].get_or_insert_with(|| vec![0.0; nodes[node.0].value.len()])
    }
}

/// Turns the gradient of an activation's value into that of its argument.
fn activation_back(activation: Activation, gradient: &mut [f32], value: &[f32], before: &[f32]) {
    match activation {
        Activation::Identity => {}
        Activation::Relu => {
            for (gradient, value) in gradient.iter_mut().zip(value) {
                if *value <= 0.0 {
                    *gradient = 0.0;
                }
            }
        }
        Activation::Gelu => {
            for (gradient, &x) in gradient.iter_mut().zip(before) {
                let density = (-0.5 * x * x).exp() * 0.398_942_3;
                *gradient *= normal_cdf(x) + x * density;
            }
        }
    }
}

/// Φ of the normal distribution, by the exact error function.
fn normal_cdf(x: f32) -> f32 {
    0.5 * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}
