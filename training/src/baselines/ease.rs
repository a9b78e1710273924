//! EASE (Steck 2019): the linear model of an article by the others of its outfit, in closed form.

use rayon::prelude::*;

use super::{Pairs, cooccurrence::Scores};
use crate::{data::Data, engine::add_product};

/// Rows and columns that are eliminated at once.
const BLOCK: usize = 128;

/// Each article's weights on the others: `B = I - P / diag(P)`, where `P = (XᵀX + λI)⁻¹` and X says which articles are
/// in which training outfit.
#[derive(Debug)]
pub struct Ease {
    articles: usize,
    weights: Vec<f32>,
}

impl Ease {
    /// `None` if numbers overflow. Takes 2 V³ operations and 8 V² bytes.
    pub fn fit(data: &Data, pairs: &Pairs, penalty: f32) -> Option<Self> {
        let articles = data.vocabulary().len();
        let mut gram = vec![0.0; articles * articles];
        let counts = data.count_articles(data.training());
        for (article, row) in (0..).zip(gram.chunks_exact_mut(articles)) {
            for (other, times) in pairs.beside(article) {
                row[*other as usize] = to_f32(*times);
            }
            row[article as usize] = to_f32(counts[article as usize]) + penalty;
        }
        invert(&mut gram, articles);
        if gram.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let scale: Vec<f32> = (0..articles).map(|at| -1.0 / gram[at * articles + at]).collect();
        for (at, row) in gram.chunks_exact_mut(articles).enumerate() {
            row.iter_mut().zip(&scale).for_each(|(weight, scale)| *weight *= scale);
            row[at] = 0.0;
        }
        Some(Self { articles, weights: gram })
    }
}

impl Scores for Ease {
    fn add(&self, visible: u32, scores: &mut [f64]) {
        let row = &self.weights[visible as usize * self.articles..][..self.articles];
        scores.iter_mut().zip(row).for_each(|(score, weight)| *score += f64::from(*weight));
    }
}

/// Inverts a positive definite matrix in place, by Gauss and Jordan in blocks.
fn invert(matrix: &mut [f32], size: usize) {
    for start in (0..size).step_by(BLOCK) {
        let width = BLOCK.min(size - start);
        let mut pivot: Vec<f32> = matrix[start * size..]
            .chunks(size)
            .take(width)
            .flat_map(|row| &row[start..start + width])
            .copied()
            .collect();
        invert_small(&mut pivot, width);
        // The block's rows, times the pivot's inverse; their own columns become it.
        let rows = &mut matrix[start * size..(start + width) * size];
        let mut solved = vec![0.0; width * size];
        add_product(&mut solved, &pivot, width, rows, size);
        for (row, pivot) in solved.chunks_exact_mut(size).zip(pivot.chunks_exact(width)) {
            row[start..start + width].copy_from_slice(pivot);
        }
        rows.copy_from_slice(&solved);
        matrix.par_chunks_mut(BLOCK * size).enumerate().for_each(|(place, rows)| {
            if place * BLOCK == start {
                return;
            }
            let mut factors = Vec::with_capacity(rows.len() / size * width);
            for row in rows.chunks_exact_mut(size) {
                let own = &mut row[start..start + width];
                factors.extend(own.iter().map(|factor| -factor));
                own.fill(0.0);
            }
            add_product(rows, &factors, width, &solved, size);
        });
    }
}

fn invert_small(matrix: &mut [f32], size: usize) {
    for at in 0..size {
        let inverse = 1.0 / matrix[at * size + at];
        matrix[at * size + at] = 1.0;
        matrix[at * size..][..size].iter_mut().for_each(|value| *value *= inverse);
        let row = matrix[at * size..][..size].to_vec();
        for (other, values) in matrix.chunks_exact_mut(size).enumerate() {
            if other != at {
                let factor = std::mem::take(&mut values[at]);
                values.iter_mut().zip(&row).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "counts of outfits")]
fn to_f32(count: f64) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::number;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        // Larger than a block, with an incomplete one.
        let size = 2 * BLOCK + 37;
        let matrix: Vec<f32> = (0..size * size)
            .map(|at| {
                let (row, column) = (at / size, at % size);
                if row == column { 3.0 } else { number(1 + row.abs_diff(column).pow(2)).recip() }
            })
            .collect();
        let mut inverse = matrix.clone();
        invert(&mut inverse, size);
        let mut product = vec![0.0; size * size];
        add_product(&mut product, &matrix, size, &inverse, size);
        for (at, value) in product.iter().enumerate() {
            let expected = if at / size == at % size { 1.0 } else { 0.0 };
            assert!((value - expected).abs() < 1e-4, "row {}, column {}: {value}", at / size, at % size);
        }
    }
}
