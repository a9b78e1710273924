//! AdamW in one pass over each tensor. A row of the article table moves only in the steps that touch it.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    shared::{Shared, Sharing},
    simd::vectorised,
    weights::{Gradients, Param, RowGradients, Weights},
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
    /// First and second moments, by parameter.
    pub(crate) first: Vec<Vec<f32>>,
    pub(crate) second: Vec<Vec<f32>>,
    /// The step at which each row of the article table last moved.
    pub(crate) touched: Vec<u32>,
    /// Which articles share values, and the moments of the tables that learn by them.
    pub(crate) sharing: Option<Sharing>,
    pub(crate) shared: Vec<Shared>,
}

/// One step's constants, with the bias corrections.
#[derive(Clone, Copy)]
pub(super) struct Step {
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
    pub(crate) fn new(config: AdamWConfig, weights: &Weights, articles: Param) -> Self {
        let zeros = || weights.0.iter().map(|tensor| vec![0.0; tensor.data.len()]).collect();
        let rows = weights.tensor(articles).shape[0];
        let touched = vec![0; rows];
        Self { config, steps: 0, first: zeros(), second: zeros(), touched, sharing: None, shared: Vec::new() }
    }

    pub(crate) fn step(&mut self, weights: &mut Weights, articles: Param, gradients: &Gradients, rate: f32) {
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
        let rows = gradients.articles.merged(weights.tensor(articles).shape[1]);
        self.step_rows(weights, articles, &rows, rate);
        self.step_shared(weights, articles, &gradients.dense, &rows, rate);
    }

    fn step_shared(
        &mut self,
        weights: &mut Weights,
        articles: Param,
        dense: &[Vec<f32>],
        rows: &RowGradients,
        rate: f32,
    ) {
        let Some(sharing) = &self.sharing else { return };
        // Without decay: the rows themselves decay already.
        let step = step_constants(self.config, self.steps, rate, false);
        for shared in &mut self.shared {
            let width = shared.width();
            if shared.table == articles {
                let gradients = rows.rows.iter().copied().zip(rows.values.chunks_exact(width));
                shared.step(weights, sharing, gradients, step);
            } else {
                let gradients = (0..).zip(dense[shared.table.0].chunks_exact(width));
                shared.step(weights, sharing, gradients, step);
            }
        }
    }

    /// A row does not change in a step that does not touch it. The next step that does first applies the decay of
    /// the missed steps to the row and its moments.
    #[expect(clippy::cast_possible_wrap, reason = "fewer than 2^31 steps")]
    fn step_rows(&mut self, weights: &mut Weights, articles: Param, merged: &RowGradients, rate: f32) {
        let table = &mut weights.0[articles.0];
        let width = table.shape[1];
        let step = step_constants(self.config, self.steps, rate, true);
        for (&row, gradient) in merged.rows.iter().zip(merged.values.chunks_exact(width)) {
            let row = row as usize;
            let missed = (self.steps - self.touched[row] - 1) as i32;
            self.touched[row] = self.steps;
            let here = row * width..(row + 1) * width;
            let weights = &mut table.data[here.clone()];
            let (first, second) =
                (&mut self.first[articles.0][here.clone()], &mut self.second[articles.0][here]);
            if missed > 0 {
                let shrink = |values: &mut [f32], factor: f32| {
                    for value in values {
                        *value *= factor.powi(missed);
                    }
                };
                shrink(first, step.beta1);
                shrink(second, step.beta2);
                shrink(weights, step.kept);
            }
            move_by(weights, gradient, first, second, step);
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
    pub(super) fn move_by<'a>(
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
