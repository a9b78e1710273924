//! Matrix products by faer's kernels, in the calling thread.

use faer::{Accum, MatMut, MatRef, Par, linalg::matmul::matmul};

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
