//! Embeddings of articles and of customers' features.

use super::{
    dropout::Mask,
    shard::{Shard, Tables},
    simd,
    weights::{Gradients, Weights},
};

/// Rows of the article table, with dropout.
pub(super) fn articles(shard: &Shard, table: &[f32], width: usize, mask: Mask) -> Vec<f32> {
    let mut value = Vec::with_capacity(shard.slots.len() * width);
    for &row in &shard.slots {
        value.extend_from_slice(&table[row as usize * width..][..width]);
    }
    mask.apply(&mut value);
    value
}

/// Each outfit's features side by side: the mean over a feature's values, or row 0 if it has none.
pub(super) fn context(shard: &Shard, weights: &Weights, tables: &Tables) -> Vec<f32> {
    let width = tables.feature_width;
    let mut value = vec![0.0; shard.outfits() * tables.features.len() * width];
    for (place, to) in value.chunks_exact_mut(width).enumerate() {
        let table = weights.data(tables.features[place % tables.features.len()]);
        let rows = shard.values_of_feature(place);
        for &row in rows {
            simd::add(to, &table[row as usize * width..][..width]);
        }
        let part = 1.0 / simd::number(rows.len());
        for to in to {
            *to *= part;
        }
    }
    value
}

pub(super) fn context_backward(
    gradient: &[f32],
    shard: &Shard,
    weights: &Weights,
    tables: &Tables,
    gradients: &mut Gradients,
) {
    let width = tables.feature_width;
    for (place, from) in gradient.chunks_exact(width).enumerate() {
        let into = gradients.dense_mut(tables.features[place % tables.features.len()], weights);
        let rows = shard.values_of_feature(place);
        let part = 1.0 / simd::number(rows.len());
        for &row in rows {
            let into = &mut into[row as usize * width..][..width];
            for (into, from) in into.iter_mut().zip(from) {
                *into += part * from;
            }
        }
    }
}
