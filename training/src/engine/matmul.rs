//! Matrix products by faer's kernels, in the calling thread, and linear layers.

use faer::{Accum, MatMut, MatRef, Par, linalg::matmul::matmul};

use super::{
    ops::Linear,
    simd,
    weights::{Gradients, Weights},
};

/// A view of a row-major matrix: all of it, some columns, or its transpose.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a>(MatRef<'a, f32>);

impl<'a> Matrix<'a> {
    pub(super) fn new(data: &'a [f32], columns: usize) -> Self {
        Self(MatRef::from_row_major_slice(data, data.len() / columns, columns))
    }

    pub(super) fn columns(self, from: usize, count: usize) -> Self {
        Self(self.0.subcols(from, count))
    }

    pub(super) fn transposed(self) -> Self {
        Self(self.0.transpose())
    }
}

/// out += a b, all row-major, by the widths of `a` and `b`.
pub(crate) fn add_product(out: &mut [f32], a: &[f32], a_width: usize, b: &[f32], b_width: usize) {
    add(out, Matrix::new(a, a_width), Matrix::new(b, b_width));
}

/// out += aᵀ b, all row-major, by the widths of `a` and `b`.
pub(crate) fn add_transposed_product(out: &mut [f32], a: &[f32], a_width: usize, b: &[f32], b_width: usize) {
    add(out, Matrix::new(a, a_width).transposed(), Matrix::new(b, b_width));
}

/// out = a b, `out` row-major.
pub(super) fn assign(out: &mut [f32], a: Matrix<'_>, b: Matrix<'_>) {
    product(out, Accum::Replace, a, b);
}

/// out += a b, `out` row-major.
pub(super) fn add(out: &mut [f32], a: Matrix<'_>, b: Matrix<'_>) {
    product(out, Accum::Add, a, b);
}

fn product(out: &mut [f32], accumulate: Accum, a: Matrix<'_>, b: Matrix<'_>) {
    let (rows, columns) = (a.0.nrows(), b.0.ncols());
    let out = MatMut::from_row_major_slice_mut(out, rows, columns);
    matmul(out, accumulate, a.0, b.0, 1.0, Par::Seq);
}

/// x W + b
pub(super) fn linear(weights: &Weights, layer: &Linear, x: &[f32]) -> Vec<f32> {
    let weight = weights.tensor(layer.weight);
    let [from, to] = [weight.shape[0], weight.shape[1]];
    let mut value = vec![0.0; x.len() / from * to];
    if let Some(bias) = layer.bias {
        value.chunks_exact_mut(to).for_each(|row| row.copy_from_slice(weights.data(bias)));
    }
    add(&mut value, Matrix::new(x, from), Matrix::new(&weight.data, to));
    value
}

/// Adds the gradients of a linear layer's weight and bias, and that of its input to `x_gradient`.
pub(super) fn linear_back(
    weights: &Weights,
    layer: &Linear,
    x: &[f32],
    gradient: &[f32],
    gradients: &mut Gradients,
    x_gradient: &mut Option<Vec<f32>>,
) {
    let weight = weights.tensor(layer.weight);
    let [from, to] = [weight.shape[0], weight.shape[1]];
    let rows = Matrix::new(gradient, to);
    add(gradients.dense_mut(layer.weight, weights), Matrix::new(x, from).transposed(), rows);
    if let Some(bias) = layer.bias {
        simd::add_rows(gradients.dense_mut(bias, weights), gradient);
    }
    let weight = Matrix::new(&weight.data, to).transposed();
    match x_gradient {
        Some(sum) => add(sum, rows, weight),
        None => assign(x_gradient.insert(vec![0.0; x.len()]), rows, weight),
    }
}
