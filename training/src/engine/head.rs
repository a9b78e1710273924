//! The last dense layer, over the whole catalogue, with its loss: half of all arithmetic.
//!
//! The gradient of the softmax overwrites the logits, so there is no second array of that size.

use super::{
    matmul::{self, Matrix},
    simd::{exp, vectorised},
    weights::{Param, Weights},
};

/// The last dense layer: per article a row of weights, a bias, and the personas' biases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) weight: Param,
    pub(crate) bias: Param,
    pub(crate) personas: Option<Param>,
}

/// The gradients of the head's inputs.
#[derive(Debug, Default)]
pub(crate) struct HeadGradients {
    pub(crate) hidden: Vec<f32>,
    pub(crate) personas: Option<Vec<f32>>,
}

impl Head {
    pub(crate) fn logits(
        &self,
        weights: &Weights,
        hidden: &[f32],
        shares: Option<&[f32]>,
        logits: &mut [f32],
    ) {
        let bias = weights.data(self.bias);
        let table = weights.tensor(self.weight);
        logits.chunks_exact_mut(bias.len()).for_each(|row| row.copy_from_slice(bias));
        let table = Matrix::new(&table.data, table.shape[1]).transposed();
        matmul::add(logits, Matrix::new(hidden, hidden.len() / (logits.len() / bias.len())), table);
        if let (Some(personas), Some(shares)) = (self.personas, shares) {
            let personas = weights.tensor(personas);
            let (table, count) = (&personas.data, personas.shape[1]);
            matmul::add(logits, Matrix::new(shares, count), Matrix::new(table, count).transposed());
        }
    }

    /// Returns the cross-entropies, and replaces the logits by their gradient, each row's loss times its weight.
    pub(crate) fn loss(logits: &mut [f32], targets: &[u32], weights: &[f32]) -> Vec<f32> {
        let width = logits.len() / targets.len();
        let mut losses = vec![0.0; targets.len()];
        softmax(logits, width, targets, weights, &mut losses);
        losses
    }

    pub(crate) fn backward(&self, weights: &Weights, logit_gradients: &[f32]) -> HeadGradients {
        let articles = weights.data(self.bias).len();
        let through = |param: Param| {
            let table = weights.tensor(param);
            let mut to = vec![0.0; logit_gradients.len() / articles * table.shape[1]];
            matmul::assign(
                &mut to,
                Matrix::new(logit_gradients, articles),
                Matrix::new(&table.data, table.shape[1]),
            );
            to
        };
        HeadGradients { hidden: through(self.weight), personas: self.personas.map(through) }
    }

    /// Adds the gradient of a table's rows from article `first` on: of the weights, whose `inputs` are the hidden
    /// rows, or of the personas, whose `inputs` are the mixtures.
    pub(crate) fn add_table_gradient(
        rows: &mut [f32],
        first: usize,
        width: usize,
        logit_gradients: &[f32],
        articles: usize,
        inputs: &[f32],
    ) {
        let gradients = Matrix::new(logit_gradients, articles).columns(first, rows.len() / width);
        matmul::add(rows, gradients.transposed(), Matrix::new(inputs, width));
    }

    /// Adds the gradient of the biases from article `first` on.
    pub(crate) fn add_bias_gradient(
        biases: &mut [f32],
        first: usize,
        logit_gradients: &[f32],
        articles: usize,
    ) {
        for row in logit_gradients.chunks_exact(articles) {
            super::simd::add(biases, &row[first..first + biases.len()]);
        }
    }
}

vectorised! {
    fn softmax<'a>(
        logits: &'a mut [f32],
        width: usize,
        targets: &'a [u32],
        weights: &'a [f32],
        losses: &'a mut [f32],
    ) {
        for (((row, &target), &weight), loss) in
            logits.chunks_exact_mut(width).zip(targets).zip(weights).zip(losses)
        {
            let highest = highest(row);
            let wanted = row[target as usize] - highest;
            // Partial sums, because the compiler does not reorder additions of floats.
            let mut lanes = [0.0_f32; 16];
            let mut chunks = row.chunks_exact_mut(16);
            for chunk in &mut chunks {
                for lane in 0..16 {
                    chunk[lane] = exp(chunk[lane] - highest);
                    lanes[lane] += chunk[lane];
                }
            }
            let mut total: f32 = lanes.iter().sum();
            for logit in chunks.into_remainder() {
                *logit = exp(*logit - highest);
                total += *logit;
            }
            *loss = total.ln() - wanted;
            let share = weight / total;
            for logit in row.iter_mut() {
                *logit *= share;
            }
            row[target as usize] -= weight;
        }
    }
}

#[expect(clippy::inline_always, reason = "has to be inlined into a vectorised loop")]
#[inline(always)]
fn highest(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = row.chunks_exact(16);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for chunk in chunks {
        for lane in 0..16 {
            lanes[lane] = lanes[lane].max(chunk[lane]);
        }
    }
    lanes.into_iter().fold(rest, f32::max)
}
