//! Multi-head attention within each outfit. An outfit has at most nine rows, so there are no tiles and no masks.

use super::{
    ops::Rows,
    shard::Shard,
    simd::{dot, exp, number, vectorised},
};

/// One outfit's rows in the queries and in the keys and values, and where its attention weights begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    query: usize,
    queries: usize,
    key: usize,
    keys: usize,
    weight: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    pub(super) width: usize,
    pub(super) count: usize,
}

pub(super) fn spans(shard: &Shard, queries: Rows, keys: Rows, heads: usize) -> Vec<Span> {
    let mut weight = 0;
    let mut spans = Vec::with_capacity(shard.outfits());
    for outfit in 0..shard.outfits() {
        let (query, key) = (shard.range(queries, outfit), shard.range(keys, outfit));
        let span = Span { query: query.start, queries: query.len(), key: key.start, keys: key.len(), weight };
        weight += heads * span.queries * span.keys;
        spans.push(span);
    }
    spans
}

/// The attended values, and the attention weights for the backward pass.
pub(super) fn forward(
    queries: &[f32],
    keys_values: &[f32],
    spans: &[Span],
    heads: Heads,
) -> (Vec<f32>, Vec<f32>) {
    let mut value = vec![0.0; queries.len()];
    let mut weights = vec![0.0; spans.iter().map(|span| heads.count * span.queries * span.keys).sum()];
    attend(queries, keys_values, spans, heads, &mut value, &mut weights);
    (value, weights)
}

vectorised! {
    fn attend<'a>(
        queries: &'a [f32],
        keys_values: &'a [f32],
        spans: &'a [Span],
        heads: Heads,
        value: &'a mut [f32],
        weights: &'a mut [f32],
    ) {
        let (width, head) = (heads.width, heads.width / heads.count);
        let scale = 1.0 / number(head).sqrt();
        for span in spans {
            let keys_values = &keys_values[span.key * 2 * width..][..span.keys * 2 * width];
            let mut weights = weights[span.weight..].chunks_exact_mut(span.keys);
            for at in (0..width).step_by(head) {
                for query in span.query..span.query + span.queries {
                    let weights = weights.next().expect("one row of weights per head and query");
                    let query = query * width + at..query * width + at + head;
                    let mut highest = f32::NEG_INFINITY;
                    for (weight, row) in weights.iter_mut().zip(keys_values.chunks_exact(2 * width)) {
                        *weight = dot(&queries[query.clone()], &row[at..at + head]) * scale;
                        highest = highest.max(*weight);
                    }
                    let mut total = 0.0;
                    for weight in weights.iter_mut() {
                        *weight = exp(*weight - highest);
                        total += *weight;
                    }
                    let value = &mut value[query];
                    for (weight, row) in weights.iter_mut().zip(keys_values.chunks_exact(2 * width)) {
                        *weight /= total;
                        for (value, from) in value.iter_mut().zip(&row[width + at..width + at + head]) {
                            *value = weight.mul_add(*from, *value);
                        }
                    }
                }
            }
        }
    }
}

/// Gradients of the queries and of the keys and values.
pub(super) fn backward(
    gradient: &[f32],
    queries: &[f32],
    keys_values: &[f32],
    weights: &[f32],
    spans: &[Span],
    heads: Heads,
) -> (Vec<f32>, Vec<f32>) {
    let mut query_gradient = vec![0.0; queries.len()];
    let mut key_value_gradient = vec![0.0; keys_values.len()];
    unattend(
        gradient,
        (queries, keys_values, weights),
        spans,
        heads,
        &mut query_gradient,
        &mut key_value_gradient,
    );
    (query_gradient, key_value_gradient)
}

vectorised! {
    fn unattend<'a>(
        gradient: &'a [f32],
        saved: (&'a [f32], &'a [f32], &'a [f32]),
        spans: &'a [Span],
        heads: Heads,
        query_gradient: &'a mut [f32],
        key_value_gradient: &'a mut [f32],
    ) {
        let (queries, keys_values, weights) = saved;
        let (width, head) = (heads.width, heads.width / heads.count);
        let scale = 1.0 / number(head).sqrt();
        for span in spans {
            let here = span.key * 2 * width..(span.key + span.keys) * 2 * width;
            let (keys_values, into) = (&keys_values[here.clone()], &mut key_value_gradient[here]);
            let mut weights = weights[span.weight..].chunks_exact(span.keys);
            for at in (0..width).step_by(head) {
                for query in span.query..span.query + span.queries {
                    let weights = weights.next().expect("one row of weights per head and query");
                    let query = query * width + at..query * width + at + head;
                    let (gradient, from) = (&gradient[query.clone()], &queries[query.clone()]);
                    let to = &mut query_gradient[query];
                    let mut mean = 0.0;
                    for (weight, row) in weights.iter().zip(keys_values.chunks_exact(2 * width)) {
                        mean += weight * dot(gradient, &row[width + at..width + at + head]);
                    }
                    let rows = keys_values.chunks_exact(2 * width).zip(into.chunks_exact_mut(2 * width));
                    for (weight, (row, into)) in weights.iter().zip(rows) {
                        let score = dot(gradient, &row[width + at..width + at + head]);
                        let score = weight * (score - mean) * scale;
                        let (keys, values) = into.split_at_mut(width);
                        let (keys, values) = (&mut keys[at..at + head], &mut values[at..at + head]);
                        let key = &row[at..at + head];
                        for lane in 0..head {
                            values[lane] = weight.mul_add(gradient[lane], values[lane]);
                            keys[lane] = score.mul_add(from[lane], keys[lane]);
                            to[lane] = score.mul_add(key[lane], to[lane]);
                        }
                    }
                }
            }
        }
    }
}
