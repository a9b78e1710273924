//! Embeddings of articles and of customers' features.

use super::{
    dropout::Mask,
    shard::{Shard, Tables},
    simd,
    weights::{Gradients, Tensor, Weights},
};

/// The match is multiplied by this, so that it is learned faster than the blocks.
pub(crate) const MATCH_GAIN: f32 = 3.0;

/// The first columns of rows of the article table, with dropout.
pub(super) fn articles(shard: &Shard, table: &Tensor, width: usize, mask: Mask) -> Vec<f32> {
    let mut value = Vec::with_capacity(shard.slots.len() * width);
    for &row in &shard.slots {
        value.extend_from_slice(&table.data[row as usize * table.shape[1]..][..width]);
    }
    mask.apply(&mut value);
    value
}

/// The sum over each outfit's visible articles, of their last columns, and over its features, of the sum of their values
/// over the root of their number: a value counts for less among others, but not as little as in a mean.
pub(super) fn matched(shard: &Shard, weights: &Weights, tables: &Tables) -> Vec<f32> {
    let articles = weights.tensor(tables.articles);
    let stride = articles.shape[1];
    let width = stride - tables.width;
    let mut value = vec![0.0; shard.outfits() * width];
    for (outfit, to) in value.chunks_exact_mut(width).enumerate() {
        for row in shard.visible(outfit) {
            simd::add(to, &articles.data[row as usize * stride + tables.width..][..width]);
        }
    }
    let count = tables.matched.len();
    for place in 0..shard.outfits() * count {
        let table = weights.data(tables.matched[place % count]);
        let rows = shard.values_of_feature(place);
        let to = &mut value[place / count * width..][..width];
        let part = 1.0 / simd::number(rows.len()).sqrt();
        for &row in rows {
            simd::add_scaled(to, &table[row as usize * width..][..width], part);
        }
    }
    for number in &mut value {
        *number *= MATCH_GAIN;
    }
    value
}

pub(super) fn matched_backward(
    gradient: &[f32],
    shard: &Shard,
    weights: &Weights,
    tables: &Tables,
    gradients: &mut Gradients,
) {
    let width = gradient.len() / shard.outfits();
    let gradient: Vec<f32> = gradient.iter().map(|gradient| MATCH_GAIN * gradient).collect();
    for (outfit, from) in gradient.chunks_exact(width).enumerate() {
        for row in shard.visible(outfit) {
            gradients.matched.rows.push(row);
            gradients.matched.values.extend_from_slice(from);
        }
    }
    let count = tables.matched.len();
    for place in 0..shard.outfits() * count {
        let rows = shard.values_of_feature(place);
        let from = &gradient[place / count * width..][..width];
        let into = gradients.dense_mut(tables.matched[place % count], weights);
        let part = 1.0 / simd::number(rows.len()).sqrt();
        for &row in rows {
            simd::add_scaled(&mut into[row as usize * width..][..width], from, part);
        }
    }
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
