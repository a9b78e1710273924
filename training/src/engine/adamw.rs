//! AdamW in one pass over each tensor. Every row of the article table moves at every step, as momentum and decay say,
//! whether or not the step saw the article.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    simd::vectorised,
    weights::{Gradients, Param, Weights},
};

/// AdamW's settings, apart from the learning rate, which each step passes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdamWConfig {
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
    /// Of matrices; biases, scales and shifts do not decay.
    pub weight_decay: f32,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 }
    }
}

/// AdamW and its state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdamW {
    pub(crate) config: AdamWConfig,
    pub(crate) steps: u32,
    /// First and second moments, by parameter; empty for sums.
    pub(crate) first: Vec<Vec<f32>>,
    pub(crate) second: Vec<Vec<f32>>,
}

/// One step's constants, with the bias corrections.
#[derive(Clone, Copy)]
struct Step {
    beta1: f32,
    beta2: f32,
    rate: f32,
    epsilon: f32,
    /// The factor by which weights decay.
    kept: f32,
    second_correction: f32,
}

/// Numbers per task.
const CHUNK: usize = 1 << 16;

impl AdamW {
    /// `sums` are tensors that never have a gradient.
    pub(crate) fn new(config: AdamWConfig, weights: &Weights, sums: &[Param]) -> Self {
        let mut zeros: Vec<_> = weights.0.iter().map(|tensor| vec![0.0; tensor.data.len()]).collect();
        for sum in sums {
            zeros[sum.0] = Vec::new();
        }
        Self { config, steps: 0, first: zeros.clone(), second: zeros }
    }

    pub(crate) fn step(&mut self, weights: &mut Weights, gradients: &Gradients, rate: f32) {
        self.steps += 1;
        let tensors = weights.0.iter_mut().zip(&gradients.dense);
        for ((tensor, gradient), (first, second)) in tensors.zip(self.first.iter_mut().zip(&mut self.second))
        {
            if gradient.is_empty() {
                continue;
            }
            let step = step_constants(self.config, self.steps, rate, tensor.shape.len() > 1);
            (tensor.data.par_chunks_mut(CHUNK), gradient.par_chunks(CHUNK))
                .into_par_iter()
                .zip((first.par_chunks_mut(CHUNK), second.par_chunks_mut(CHUNK)).into_par_iter())
                .for_each(|((weights, gradient), (first, second))| {
                    move_by(weights, gradient, first, second, step);
                });
        }
    }
}

#[expect(clippy::cast_possible_wrap, reason = "fewer than 2^31 steps")]
fn step_constants(config: AdamWConfig, steps: u32, rate: f32, decays: bool) -> Step {
    let AdamWConfig { beta1, beta2, epsilon, weight_decay } = config;
    let correction = |beta: f32| 1.0 - f64::from(beta).powi(steps as i32);
    #[expect(clippy::cast_possible_truncation, reason = "near one")]
    let (first, second) = (correction(beta1) as f32, correction(beta2) as f32);
    Step {
        beta1,
        beta2,
        rate: rate / first,
        epsilon,
        kept: if decays { 1.0 - rate * weight_decay } else { 1.0 },
        second_correction: 1.0 / second,
    }
}

vectorised! {
    fn move_by<'a>(
        weights: &'a mut [f32],
        gradient: &'a [f32],
        first: &'a mut [f32],
        second: &'a mut [f32],
        step: Step,
    ) {
        let Step { beta1, beta2, rate, epsilon, kept, second_correction } = step;
        for (((weight, gradient), first), second) in weights.iter_mut().zip(gradient).zip(first).zip(second) {
            *first = beta1 * *first + (1.0 - beta1) * gradient;
            *second = beta2 * *second + (1.0 - beta2) * gradient * gradient;
            *weight = *weight * kept - rate * *first / ((*second * second_correction).sqrt() + epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Tensor, number, weights::RowGradients};

    /// AdamW as PyTorch has it, in float64, one number at a time.
    #[test]
    fn rows_that_a_step_does_not_see_move_on() {
        const STEPS: u32 = 200;
        let (rows, width, rate) = (7_u32, 3, 1e-2);
        let config = AdamWConfig::default();
        let count = rows as usize * width;
        let start: Vec<f32> = (0..count).map(|at| (number(at) * 0.37).sin()).collect();
        let tensor =
            Tensor { name: "articles".into(), shape: vec![rows as usize, width], data: start.clone() };
        let mut weights = Weights(vec![tensor]);
        let mut adamw = AdamW::new(config, &weights, &[]);
        let mut expected: Vec<f64> = start.into_iter().map(f64::from).collect();
        let (mut first, mut second) = (vec![0.0; count], vec![0.0; count]);
        for step in 1..=STEPS {
            // Row 0 is seen always, row 6 once in 49 steps; a row may be seen twice.
            let seen: Vec<u32> =
                (0..rows).filter(|row| step % (row * row + 1).max(1) == 0).chain([2]).collect();
            let values: Vec<f32> =
                (0..seen.len() * width).map(|at| number(step as usize * 31 + at * 17).sin()).collect();
            let mut dense = vec![0.0; count];
            for (row, values) in seen.iter().zip(values.chunks(width)) {
                for (at, value) in values.iter().enumerate() {
                    dense[*row as usize * width + at] += f64::from(*value);
                }
            }
            let mut gradients = Gradients::new(&weights);
            gradients.articles = RowGradients { rows: seen, values };
            gradients.fold(Param(0), None, &weights);
            adamw.step(&mut weights, &gradients, rate);
            let (beta1, beta2) = (f64::from(config.beta1), f64::from(config.beta2));
            let steps = f64::from(step);
            for at in 0..count {
                first[at] = beta1 * first[at] + (1.0 - beta1) * dense[at];
                second[at] = beta2 * second[at] + (1.0 - beta2) * dense[at] * dense[at];
                let moved: f64 = first[at] / (1.0 - beta1.powf(steps));
                let scale = (second[at] / (1.0 - beta2.powf(steps))).sqrt() + f64::from(config.epsilon);
                expected[at] *= 1.0 - f64::from(rate) * f64::from(config.weight_decay);
                expected[at] -= f64::from(rate) * moved / scale;
            }
        }
        for (found, expected) in weights.data(Param(0)).iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "found {found}, expected {expected}");
        }
    }
}
