//! A model's weights by name, and their gradients.

use std::mem;

use rayon::prelude::*;

use super::simd;

/// The place of a tensor in a model's [`Weights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Param(pub(crate) usize);

/// One named tensor, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f32>,
}

/// All of a model's tensors.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Weights(pub(crate) Vec<Tensor>);

impl Weights {
    pub(crate) fn tensor(&self, param: Param) -> &Tensor {
        &self.0[param.0]
    }

    pub(crate) fn data(&self, param: Param) -> &[f32] {
        &self.0[param.0].data
    }
}

/// Gradients of some rows of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RowGradients {
    pub(crate) rows: Vec<u32>,
    /// One row of the table's width for each of `rows`; rows may repeat.
    pub(crate) values: Vec<f32>,
}

impl RowGradients {
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.rows.append(&mut other.rows);
        self.values.append(&mut other.values);
    }
}

/// The gradient of the loss with respect to each weight.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Gradients {
    /// By parameter; empty if nothing was added.
    pub(crate) dense: Vec<Vec<f32>>,
    /// Of the article table, of which a step touches only some rows.
    pub(crate) articles: RowGradients,
    /// Of the last columns of the article table, which only the match reads.
    pub(crate) matched: RowGradients,
    /// Of the personas' table for the visible articles; the rest of its gradient is dense.
    pub(crate) personas: RowGradients,
}

impl Gradients {
    pub(crate) fn new(weights: &Weights) -> Self {
        Self { dense: vec![Vec::new(); weights.0.len()], ..Self::default() }
    }

    /// Adds the parts in their order.
    pub(crate) fn add(&mut self, mut parts: Vec<Self>) {
        self.dense.par_iter_mut().enumerate().for_each(|(param, to)| {
            for from in parts.iter().map(|part| &part.dense[param]) {
                if to.is_empty() {
                    to.clone_from(from);
                } else if !from.is_empty() {
                    simd::add(to, from);
                }
            }
        });
        for part in &mut parts {
            self.articles.append(&mut part.articles);
            self.matched.append(&mut part.matched);
            self.personas.append(&mut part.personas);
        }
    }

    /// Adds the rows that outfits touched to their tables' dense gradients.
    pub(crate) fn fold(&mut self, articles: Param, personas: Option<Param>, weights: &Weights) {
        let parts = [
            (Some(articles), mem::take(&mut self.articles), true),
            (Some(articles), mem::take(&mut self.matched), false),
            (personas, mem::take(&mut self.personas), true),
        ];
        for (table, RowGradients { rows, values }, at_start) in parts {
            let Some(table) = table.filter(|_| !rows.is_empty()) else { continue };
            let stride = weights.tensor(table).shape[1];
            let width = values.len() / rows.len();
            let from = if at_start { 0 } else { stride - width };
            let into = self.dense_mut(table, weights);
            for (row, values) in rows.into_iter().zip(values.chunks_exact(width)) {
                simd::add(&mut into[row as usize * stride + from..][..width], values);
            }
        }
    }

    /// A dense gradient, to add to; zeros at first.
    pub(crate) fn dense_mut(&mut self, param: Param, weights: &Weights) -> &mut [f32] {
        let gradient = &mut self.dense[param.0];
        if gradient.is_empty() {
            gradient.resize(weights.data(param).len(), 0.0);
        }
        gradient
    }
}
