//! The mixture of personas of an outfit: the softmax of its visible articles' summed biases, times 0.99, plus a
//! hundredth spread evenly.

use super::{shard::Shard, simd::number, weights::RowGradients};

/// The share of the softmax in the mixture; the rest is spread evenly, so that no persona is ruled out.
pub(crate) const EVIDENCE: f32 = 0.99;

pub(super) fn forward(shard: &Shard, table: &[f32], count: usize) -> Vec<f32> {
    let mut value = vec![0.0; shard.outfits() * count];
    for (outfit, shares) in value.chunks_exact_mut(count).enumerate() {
        for article in shard.visible(outfit) {
            let row = &table[article as usize * count..][..count];
            shares.iter_mut().zip(row).for_each(|(share, bias)| *share += bias);
        }
        let highest = shares.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for share in shares.iter_mut() {
            *share = (*share - highest).exp();
        }
        let total: f32 = shares.iter().sum();
        for share in shares {
            *share = EVIDENCE * *share / total + even(count);
        }
    }
    value
}

/// Adds the gradients of the visible articles' biases to `into`.
pub(super) fn backward(
    gradient: &[f32],
    value: &[f32],
    shard: &Shard,
    count: usize,
    into: &mut RowGradients,
) {
    let rows = gradient.chunks_exact(count).zip(value.chunks_exact(count));
    for (outfit, (gradient, value)) in rows.enumerate() {
        let softmax = || value.iter().map(|share| (share - even(count)) / EVIDENCE);
        let mean: f32 = softmax().zip(gradient).map(|(share, gradient)| share * gradient).sum();
        for article in shard.visible(outfit) {
            into.rows.push(article);
            into.values.extend(
                softmax().zip(gradient).map(|(share, gradient)| EVIDENCE * share * (gradient - mean)),
            );
        }
    }
}

fn even(count: usize) -> f32 {
    (1.0 - EVIDENCE) / number(count)
}
