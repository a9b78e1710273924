//! The tape run backwards.

use super::{
    adaptive::{mix, unmix},
    attention::{self, Heads},
    lookup,
    matmul::{self, Matrix},
    norm::{self, Residual},
    ops::{Activation, Linear, Rows},
    personas, simd,
    tape::{Node, Op, Recorded, Tape, normal_cdf},
    weights::Gradients,
};

impl Tape<'_> {
    /// Adds to `gradients` what the given gradients of some nodes mean for the weights. `ponder` is what
    /// one unit of an outfit's mean pondering adds to the loss.
    pub(crate) fn backward(self, seeds: Vec<(Node, Vec<f32>)>, ponder: f32, gradients: &mut Gradients) {
        let mut pass = Pass { of: vec![None; self.nodes.len()], ponder, gradients };
        for (node, seed) in seeds {
            pass.give(node, seed);
        }
        for place in (0..self.nodes.len()).rev() {
            if let Some(gradient) = pass.of[place].take() {
                self.step_back(place, gradient, &mut pass);
            }
        }
    }

    fn step_back(&self, place: usize, mut gradient: Vec<f32>, pass: &mut Pass<'_>) {
        let Recorded { value, width, op, .. } = &self.nodes[place];
        let width = *width;
        match op {
            Op::Articles => {
                self.mask(place).apply(&mut gradient);
                pass.gradients.articles.rows.extend_from_slice(&self.shard.slots);
                pass.gradients.articles.values.append(&mut gradient);
            }
            Op::Context => {
                lookup::context_backward(&gradient, self.shard, self.weights, self.tables, pass.gradients);
            }
            Op::Linear { x, layer, activation, before } => {
                unactivate(*activation, &mut gradient, value, before);
                self.linear_back(*x, layer, &gradient, pass);
            }
            Op::AddRelu { x, y, serving } => {
                unactivate(Activation::Relu, &mut gradient, value, &[]);
                let to = pass.zeroed(*y, &self.nodes);
                for (row, &served) in gradient.chunks_exact(width).zip(serving) {
                    simd::add(&mut to[served as usize * width..][..width], row);
                }
                pass.give(*x, gradient);
            }
            Op::AddNorm { x, y, serving, norm, saved } => {
                let mut normal = value;
                if let Some(norm) = norm {
                    normal = &saved.normal;
                    let scale = self.weights.data(norm.scale);
                    let mut shift = vec![0.0; width];
                    let into = pass.gradients.of(norm.scale, self.weights);
                    norm::backward_affine(&mut gradient, normal, scale, into, &mut shift);
                    simd::add(pass.gradients.of(norm.shift, self.weights), &shift);
                }
                norm::backward(&mut gradient, normal, &saved.inverse, width);
                let residual = Residual { width, serving, mask: self.mask(place) };
                norm::backward_residual(&gradient, residual, pass.zeroed(*y, &self.nodes));
                pass.give(*x, gradient);
            }
            Op::Attention { queries, keys_values, spans, weights } => {
                let heads = Heads { width, count: self.tables.heads };
                let (asking, asked) = (self.value(*queries), self.value(*keys_values));
                let (asking, asked) = attention::backward(&gradient, asking, asked, weights, spans, heads);
                pass.give(*queries, asking);
                pass.give(*keys_values, asked);
            }
            Op::WithPosition { slots, position } => self.without_position(*slots, *position, &gradient, pass),
            Op::AtBlank { x } => {
                let rows = self.nodes[x.0].rows;
                let to = pass.zeroed(*x, &self.nodes);
                for (outfit, from) in gradient.chunks_exact(width).enumerate() {
                    simd::add(&mut to[self.shard.blank_row(rows, outfit) * width..][..width], from);
                }
            }
            Op::Adaptive { states, logits, course } => {
                let shares: Vec<_> =
                    states.iter().map(|state| unmix(&gradient, self.value(*state), width)).collect();
                let by_logit = course.backward(&shares, &self.ponder_by_slot(pass.ponder));
                for ((state, logit), (shares, by_logit)) in
                    states.iter().zip(logits).zip(course.shares.iter().zip(by_logit))
                {
                    mix(pass.zeroed(*state, &self.nodes), &gradient, shares, width);
                    pass.give(*logit, by_logit);
                }
            }
            Op::Steps => unreachable!("steps are counted, not differentiated; this is a bug"),
            Op::Personas => {
                personas::backward(&gradient, value, self.shard, width, &mut pass.gradients.personas);
            }
        }
    }

    fn linear_back(&self, x: Node, layer: &Linear, gradient: &[f32], pass: &mut Pass<'_>) {
        let from = &self.nodes[x.0];
        let weight = self.weights.tensor(layer.weight);
        let width = weight.shape[1];
        let (gradient_rows, x_rows) = (Matrix::new(gradient, width), Matrix::new(&from.value, from.width));
        matmul::add(pass.gradients.of(layer.weight, self.weights), x_rows.transposed(), gradient_rows);
        if let Some(bias) = layer.bias {
            simd::add_rows(pass.gradients.of(bias, self.weights), gradient);
        }
        let weight = Matrix::new(&weight.data, width).transposed();
        if let Some(to) = &mut pass.of[x.0] {
            matmul::add(to, gradient_rows, weight);
        } else {
            let mut to = vec![0.0; from.value.len()];
            matmul::assign(&mut to, gradient_rows, weight);
            pass.of[x.0] = Some(to);
        }
    }

    fn without_position(&self, slots: Node, position: Node, gradient: &[f32], pass: &mut Pass<'_>) {
        let width = self.nodes[slots.0].width;
        for outfit in 0..self.shard.outfits() {
            let both = self.shard.range(Rows::Positions, outfit);
            let (one, many) = gradient[both.start * width..both.end * width].split_at(width);
            simd::add(&mut pass.zeroed(position, &self.nodes)[outfit * width..][..width], one);
            let here = self.shard.range(Rows::Slots, outfit).start * width;
            simd::add(&mut pass.zeroed(slots, &self.nodes)[here..here + many.len()], many);
        }
    }

    /// An outfit's pondering is the mean over its slots.
    fn ponder_by_slot(&self, ponder: f32) -> Vec<f32> {
        let slots = |outfit| self.shard.range(Rows::Slots, outfit).len();
        (0..self.shard.outfits())
            .flat_map(|outfit| std::iter::repeat_n(ponder / simd::number(slots(outfit)), slots(outfit)))
            .collect()
    }

    /// The mean over each outfit's slots of steps and remainder, added up over the outfits.
    pub(crate) fn ponder(&self) -> f64 {
        let mut total = 0.0;
        for node in &self.nodes {
            if let Op::Adaptive { course, .. } = &node.op {
                let of_slots: Vec<f32> = course.ponder().collect();
                for outfit in 0..self.shard.outfits() {
                    let slots = &of_slots[self.shard.range(Rows::Slots, outfit)];
                    total += f64::from(slots.iter().sum::<f32>() / simd::number(slots.len()));
                }
            }
        }
        total
    }
}

/// Where the backward pass is.
struct Pass<'a> {
    of: Vec<Option<Vec<f32>>>,
    ponder: f32,
    gradients: &'a mut Gradients,
}

impl Pass<'_> {
    fn give(&mut self, node: Node, gradient: Vec<f32>) {
        match &mut self.of[node.0] {
            None => self.of[node.0] = Some(gradient),
            Some(to) => simd::add(to, &gradient),
        }
    }

    /// A node's gradient to add to.
    fn zeroed(&mut self, node: Node, nodes: &[Recorded]) -> &mut [f32] {
        self.of[node.0].get_or_insert_with(|| vec![0.0; nodes[node.0].value.len()])
    }
}

/// From the gradient of an activation's value to that of its argument.
fn unactivate(activation: Activation, gradient: &mut [f32], value: &[f32], before: &[f32]) {
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
