//! Whether two halves were one outfit: two dense layers over a symmetric combination of readings.
//!
//! Each pair has three readings, row by row: the first half's, the second's and that of both together; and three
//! mixtures of personas if the model has them. This module does not know how they were computed.

use super::{
    matmul::{linear, linear_back},
    ops::Linear,
    weights::{Gradients, Weights},
};

/// Readings per pair.
pub(crate) const READINGS: usize = 3;
/// Added under the root of the mixtures' distance, whose slope is infinite at 0.
pub(crate) const DISTANCE_EPSILON: f32 = 1e-12;

/// The layers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairHead {
    pub(crate) first: Linear,
    pub(crate) second: Linear,
}

/// The readings of some pairs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readings<'a> {
    pub(crate) hidden: &'a [f32],
    pub(crate) width: usize,
    /// Mixtures, and the number of personas in each.
    pub(crate) personas: Option<(&'a [f32], usize)>,
}

/// The result of the forward pass, with what the backward pass needs.
#[derive(Debug)]
pub(crate) struct Judged {
    joined: Vec<f32>,
    hidden: Vec<f32>,
    /// One per pair; above 0 if the halves were more likely one outfit.
    pub(crate) logits: Vec<f32>,
}

/// The gradients of the readings.
#[derive(Debug)]
pub(crate) struct ReadingGradients {
    pub(crate) hidden: Vec<f32>,
    pub(crate) personas: Option<Vec<f32>>,
}

impl PairHead {
    /// The width of the first layer's input: the halves' sum, absolute difference and product, the reading of both,
    /// and the distance and divergence of their mixtures of personas.
    pub(crate) fn inputs(width: usize, personas: bool) -> usize {
        4 * width + if personas { 2 } else { 0 }
    }

    pub(crate) fn forward(&self, weights: &Weights, readings: Readings<'_>) -> Judged {
        let joined = join(readings);
        let mut hidden = linear(weights, &self.first, &joined);
        for value in &mut hidden {
            *value = value.max(0.0);
        }
        let logits = linear(weights, &self.second, &hidden);
        Judged { joined, hidden, logits }
    }

    /// Returns the cross-entropies, and replaces the logits by their gradient, each pair's loss times `share`.
    pub(crate) fn loss(logits: &mut [f32], same: &[bool], share: f32) -> Vec<f32> {
        let pairs = logits.iter_mut().zip(same);
        pairs
            .map(|(logit, &same)| {
                let z = *logit;
                let truth = f32::from(u8::from(same));
                *logit = share * (sigmoid(z) - truth);
                z.max(0.0) - z * truth + (-z.abs()).exp().ln_1p()
            })
            .collect()
    }

    /// `judged.logits` must hold the logits' gradients, as [`PairHead::loss`] leaves them.
    pub(crate) fn backward(
        &self,
        weights: &Weights,
        readings: Readings<'_>,
        judged: &Judged,
        gradients: &mut Gradients,
    ) -> ReadingGradients {
        let mut layer_back = |layer, x: &[f32], gradient: &[f32]| {
            let mut x_gradient = None;
            linear_back(weights, layer, x, gradient, gradients, &mut x_gradient);
            x_gradient.expect("the layer's input has a gradient")
        };
        let mut hidden = layer_back(&self.second, &judged.hidden, &judged.logits);
        for (gradient, value) in hidden.iter_mut().zip(&judged.hidden) {
            if *value <= 0.0 {
                *gradient = 0.0;
            }
        }
        let joined = layer_back(&self.first, &judged.joined, &hidden);
        join_back(readings, &joined)
    }
}

pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

fn join(readings: Readings<'_>) -> Vec<f32> {
    let Readings { hidden, width, personas } = readings;
    let mut joined = Vec::new();
    for (place, row) in hidden.chunks_exact(READINGS * width).enumerate() {
        let [first, second, both] = [0, 1, 2].map(|reading| &row[reading * width..][..width]);
        joined.extend(first.iter().zip(second).map(|(a, b)| a + b));
        joined.extend(first.iter().zip(second).map(|(a, b)| (a - b).abs()));
        joined.extend(first.iter().zip(second).map(|(a, b)| a * b));
        joined.extend(both);
        if let Some((mixtures, count)) = personas {
            let (p, q) = half_mixtures(mixtures, count, place);
            let apart = |(p, q): (&f32, &f32)| (p - q) * (p.ln() - q.ln());
            joined.push(distance(p, q));
            joined.push(0.5 * p.iter().zip(q).map(apart).sum::<f32>());
        }
    }
    joined
}

/// Turns the gradient of the joined rows into that of the readings.
fn join_back(readings: Readings<'_>, joined: &[f32]) -> ReadingGradients {
    let Readings { hidden, width, personas } = readings;
    let inputs = PairHead::inputs(width, personas.is_some());
    let mut to_hidden = vec![0.0; hidden.len()];
    let mut to_personas = personas.map(|(mixtures, _)| vec![0.0; mixtures.len()]);
    for (place, gradient) in joined.chunks_exact(inputs).enumerate() {
        let begin = place * READINGS * width;
        for lane in 0..width {
            let (a, b) = (hidden[begin + lane], hidden[begin + width + lane]);
            let [sum, apart, product, both] = [0, 1, 2, 3].map(|part| gradient[part * width + lane]);
            let apart = if a < b { -apart } else { apart };
            to_hidden[begin + lane] = sum + apart + product * b;
            to_hidden[begin + width + lane] = sum - apart + product * a;
            to_hidden[begin + 2 * width + lane] = both;
        }
        if let (Some(to), Some((mixtures, count))) = (&mut to_personas, personas) {
            let (p, q) = half_mixtures(mixtures, count, place);
            let (by_distance, by_divergence) = (gradient[4 * width], 0.5 * gradient[4 * width + 1]);
            let length = distance(p, q);
            let begin = place * READINGS * count;
            for (lane, (p, q)) in p.iter().zip(q).enumerate() {
                let along = by_distance * (p - q) / length;
                let logs = p.ln() - q.ln();
                to[begin + lane] = along + by_divergence * (logs + (p - q) / p);
                to[begin + count + lane] = -along - by_divergence * (logs + (p - q) / q);
            }
        }
    }
    ReadingGradients { hidden: to_hidden, personas: to_personas }
}

/// The mixtures of a pair's two halves.
fn half_mixtures(mixtures: &[f32], count: usize, pair: usize) -> (&[f32], &[f32]) {
    mixtures[pair * READINGS * count..][..2 * count].split_at(count)
}

fn distance(p: &[f32], q: &[f32]) -> f32 {
    (p.iter().zip(q).map(|(p, q)| (p - q).powi(2)).sum::<f32>() + DISTANCE_EPSILON).sqrt()
}
