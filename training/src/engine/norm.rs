//! Residual connection, dropout and layer normalisation in one pass.

use super::{
    dropout::Mask,
    simd::{dot, number, sum, vectorised},
};

const EPSILON: f32 = 1e-5;

/// For the backward pass.
#[derive(Debug)]
pub(super) struct Saved {
    /// The normalised rows before scale and shift; empty without those, since the value is the same.
    pub(super) normal: Vec<f32>,
    /// 1 / each row's standard deviation.
    pub(super) inverse: Vec<f32>,
}

/// Which row of `y` is added to each row of `x`, and the dropout of `y`.
#[derive(Clone, Copy)]
pub(super) struct Residual<'a> {
    pub(super) width: usize,
    pub(super) serving: &'a [u32],
    pub(super) mask: Mask,
}

/// x + dropout(y), normalised, then times scale plus shift if `affine` has them.
pub(super) fn forward(
    x: &[f32],
    y: &[f32],
    residual: Residual<'_>,
    affine: Option<(&[f32], &[f32])>,
) -> (Vec<f32>, Saved) {
    let mut value = vec![0.0; x.len()];
    let mut inverse = vec![0.0; residual.serving.len()];
    normalise(x, y, residual, &mut value, &mut inverse);
    let mut normal = Vec::new();
    if let Some((scale, shift)) = affine {
        normal.clone_from(&value);
        rescale(&mut value, scale, shift);
    }
    (value, Saved { normal, inverse })
}

vectorised! {
    fn normalise<'a>(
        x: &'a [f32],
        y: &'a [f32],
        residual: Residual<'a>,
        value: &'a mut [f32],
        inverse: &'a mut [f32],
    ) {
        let Residual { width, serving, mask } = residual;
        let count = number(width);
        let rows = x.chunks_exact(width).zip(value.chunks_exact_mut(width)).zip(serving).zip(inverse);
        for (row, (((x, value), &served), inverse)) in rows.enumerate() {
            let y = &y[served as usize * width..][..width];
            for lane in 0..width {
                value[lane] = mask.at(row * width + lane).mul_add(y[lane], x[lane]);
            }
            let mean = sum(value) / count;
            for value in value.iter_mut() {
                *value -= mean;
            }
            *inverse = 1.0 / (dot(value, value) / count + EPSILON).sqrt();
            for value in value.iter_mut() {
                *value *= *inverse;
            }
        }
    }
}

vectorised! {
    fn rescale<'a>(value: &'a mut [f32], scale: &'a [f32], shift: &'a [f32]) {
        for row in value.chunks_exact_mut(scale.len()) {
            for ((value, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
                *value = value.mul_add(*scale, *shift);
            }
        }
    }
}

vectorised! {
    /// Adds the gradients of scale and shift, and replaces the value's gradient by the normalised rows'.
    pub(super) fn backward_affine<'a>(
        gradient: &'a mut [f32],
        normal: &'a [f32],
        scale: &'a [f32],
        scale_gradient: &'a mut [f32],
        shift_gradient: &'a mut [f32],
    ) {
        let width = scale.len();
        for (gradient, normal) in gradient.chunks_exact_mut(width).zip(normal.chunks_exact(width)) {
            for lane in 0..width {
                scale_gradient[lane] = gradient[lane].mul_add(normal[lane], scale_gradient[lane]);
                shift_gradient[lane] += gradient[lane];
                gradient[lane] *= scale[lane];
            }
        }
    }
}

vectorised! {
    /// Replaces the normalised rows' gradient by that of x.
    pub(super) fn backward<'a>(gradient: &'a mut [f32], normal: &'a [f32], inverse: &'a [f32], width: usize) {
        let count = number(width);
        let rows = gradient.chunks_exact_mut(width).zip(normal.chunks_exact(width)).zip(inverse);
        for ((gradient, normal), inverse) in rows {
            let mean = sum(gradient) / count;
            let along = dot(gradient, normal) / count;
            for (gradient, normal) in gradient.iter_mut().zip(normal) {
                *gradient = (*gradient - mean - normal * along) * inverse;
            }
        }
    }
}

vectorised! {
    /// Adds the gradient of x + dropout(y) to y's.
    pub(super) fn backward_residual<'a>(gradient: &'a [f32], residual: Residual<'a>, y_gradient: &'a mut [f32]) {
        let Residual { width, serving, mask } = residual;
        for (row, (gradient, &served)) in gradient.chunks_exact(width).zip(serving).enumerate() {
            let y = &mut y_gradient[served as usize * width..][..width];
            for lane in 0..width {
                y[lane] = mask.at(row * width + lane).mul_add(gradient[lane], y[lane]);
            }
        }
    }
}
