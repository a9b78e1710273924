//! Learning by shared attributes: a value that many articles have moves all their rows.
//!
//! It is as if each row were the sum of its own vector and one for each of the article's values. The values' vectors
//! do not exist: what a step would add to them is added to the rows, so the model's weights keep their shape.

use rayon::prelude::*;

use super::{
    adamw::{Step, move_by},
    simd::add,
    weights::{Param, Weights},
};

/// The values of each of a table's first rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sharing {
    count: usize,
    /// Where each row begins in `values`, and the end.
    starts: Vec<usize>,
    values: Vec<u32>,
}

impl Sharing {
    /// `count` is the number of different values.
    pub(crate) fn new<'a>(count: usize, rows: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut sharing = Self { count, starts: vec![0], values: Vec::new() };
        for row in rows {
            sharing.values.extend_from_slice(row);
            sharing.starts.push(sharing.values.len());
        }
        sharing
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn values(&self, row: usize) -> &[u32] {
        &self.values[self.starts[row]..self.starts[row + 1]]
    }
}

/// A table's moments by value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shared {
    pub(crate) table: Param,
    width: usize,
    pub(crate) first: Vec<f32>,
    pub(crate) second: Vec<f32>,
}

impl Shared {
    pub(crate) fn new(table: Param, weights: &Weights, values: usize) -> Self {
        let width = weights.tensor(table).shape.get(1).copied().unwrap_or(1);
        let zeros = vec![0.0; values * width];
        Self { table, width, first: zeros.clone(), second: zeros }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn values(&self) -> usize {
        self.first.len() / self.width
    }

    /// Sums the rows' gradients by value, and moves every row by the steps of its values.
    pub(super) fn step<'g>(
        &mut self,
        weights: &mut Weights,
        sharing: &Sharing,
        gradients: impl Iterator<Item = (u32, &'g [f32])>,
        step: Step,
    ) {
        let width = self.width;
        let row = |value: u32| value as usize * width..(value as usize + 1) * width;
        let mut sums = vec![0.0; self.first.len()];
        // The articles' table ends with rows that share nothing: the blank's and padding's.
        for (at, gradient) in gradients.filter(|&(at, _)| (at as usize) < sharing.rows()) {
            for &value in sharing.values(at as usize) {
                add(&mut sums[row(value)], gradient);
            }
        }
        let mut moves = vec![0.0; sums.len()];
        move_by(&mut moves, &sums, &mut self.first, &mut self.second, step);
        let rows = weights.0[self.table.0].data.par_chunks_mut(width).take(sharing.rows());
        rows.enumerate().for_each(|(at, weights)| {
            for &value in sharing.values(at) {
                add(weights, &moves[row(value)]);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{AdamW, AdamWConfig, Gradients, RowGradients, Tensor};

    /// Rows 0 and 1 have value 0, rows 1 and 2 value 1, row 3 none; row 4 is the blank's.
    fn sharing() -> Sharing {
        let rows: [&[u32]; 4] = [&[0], &[0, 1], &[1], &[]];
        Sharing::new(2, rows.into_iter())
    }

    #[test]
    fn rows_move_as_sums_of_vectors_would() {
        let tensor = |name: &str| Tensor { name: name.into(), shape: vec![5, 2], data: vec![0.5; 10] };
        let mut weights = Weights(vec![tensor("articles"), tensor("vocabulary")]);
        let (articles, vocabulary) = (Param(0), Param(1));
        let mut adamw =
            AdamW::new(AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() }, &weights, articles);
        adamw.sharing = Some(sharing());
        adamw.shared = [articles, vocabulary].map(|table| Shared::new(table, &weights, 2)).into();
        // Row 0 has a gradient in both tables, the blank's row in one.
        let mut gradients = Gradients::new(&weights);
        gradients.dense_mut(vocabulary, &weights)[..2].copy_from_slice(&[3.0, -1.0]);
        gradients.articles = RowGradients { rows: vec![0, 4], values: vec![3.0, -1.0, 1.0, 1.0] };
        adamw.step(&mut weights, articles, &gradients, 0.1);
        for (param, blank) in [(articles, 0.4), (vocabulary, 0.5)] {
            // Adam's first step is the rate, whatever the gradient: once for the row, once for its value.
            let expected = [0.3, 0.7, 0.4, 0.6, 0.5, 0.5, 0.5, 0.5, blank, blank];
            for (found, expected) in weights.data(param).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{:?}", weights.data(param));
            }
        }
    }
}
