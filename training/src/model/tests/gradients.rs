use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::*;
use crate::engine::number;

/// Every tensor's gradient against central differences of the loss, along the gradient itself and along a
/// random direction.
#[test]
fn gradients_are_what_finite_differences_say() {
    Method::ALL.into_par_iter().for_each(|method| {
        let mut model = small(method);
        let outfits = examples(model.config(), 8, false, 3);
        let batch = batch(model.config(), &outfits);
        let (_, gradients) = model.gradients(&batch, None, &mut Vec::new());
        let mut dense = gradients.dense.clone();
        let width = model.config.width;
        let merged = gradients.articles.merged(width);
        let articles = model.structure.tables.articles.0;
        dense[articles] = vec![0.0; model.weights.0[articles].data.len()];
        for (row, values) in merged.rows.iter().zip(merged.values.chunks_exact(width)) {
            dense[articles][*row as usize * width..][..width].copy_from_slice(values);
        }
        let mut random = Pcg64::seed_from_u64(5);
        for (place, gradient) in dense.iter().enumerate() {
            let name = model.weights.0[place].name.clone();
            assert_eq!(gradient.len(), model.weights.0[place].data.len(), "{method}: {name} has a gradient");
            let length = gradient.len();
            let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
            assert!(norm > 1e-6, "{method}: nothing moves {name}");
            let along: Vec<f32> = gradient.iter().map(|g| g / norm).collect();
            let signs = (0..length).map(|_| if random.random_bool(0.5) { 1.0 } else { -1.0 });
            let across: Vec<f32> = signs.map(|sign: f32| sign / number(length).sqrt()).collect();
            let directions = [along, across];
            for direction in directions {
                let expected: f64 =
                    gradient.iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
                // A long step sees kinks and curvature, a short one the rounding of float32: one has to agree.
                let agrees = [3e-3, 3e-4, 1e-4, 3e-5].into_iter().any(|step| {
                    let found = slope(&mut model, place, &direction, step, &batch);
                    (found - expected).abs() < 3e-2 * f64::from(norm) + 1e-3
                });
                assert!(
                    agrees,
                    "{method}: {name}: no difference agrees with the gradient, {expected} of {norm}"
                );
            }
        }
    });
}

fn slope(model: &mut Model, place: usize, direction: &[f32], step: f32, batch: &Batch) -> f64 {
    let before = model.weights.0[place].data.clone();
    let mut loss = |step: f32| {
        for ((to, from), by) in model.weights.0[place].data.iter_mut().zip(&before).zip(direction) {
            *to = from + step * by;
        }
        model.loss(batch).total
    };
    let slope = (loss(step) - loss(-step)) / f64::from(2.0 * step);
    model.weights.0[place].data = before;
    slope
}

/// What is dropped going forwards is dropped going backwards; another key drops other numbers.
#[test]
fn gradients_hold_under_dropout() {
    let mut model = small(Method::Gsu);
    let outfits = examples(model.config(), 12, false, 37);
    let batch = batch(model.config(), &outfits);
    let (loss, gradients) = model.gradients(&batch, Some(41), &mut Vec::new());
    assert_ne!(loss, model.gradients(&batch, Some(43), &mut Vec::new()).0);
    assert_ne!(loss, model.loss(&batch));
    for (place, gradient) in gradients.dense.iter().enumerate().filter(|(_, gradient)| !gradient.is_empty()) {
        let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
        let before = model.weights.0[place].data.clone();
        let mut loss = |step: f32| {
            for ((to, from), by) in model.weights.0[place].data.iter_mut().zip(&before).zip(gradient) {
                *to = from + step * by / norm;
            }
            model.gradients(&batch, Some(41), &mut Vec::new()).0.total
        };
        let agrees = [3e-3, 3e-4, 1e-4].into_iter().any(|step| {
            let slope = (loss(step) - loss(-step)) / f64::from(2.0 * step);
            (slope - f64::from(norm)).abs() < 3e-2 * f64::from(norm) + 1e-3
        });
        model.weights.0[place].data.clone_from(&before);
        assert!(agrees, "{}: no difference agrees with the gradient, {norm}", model.weights.0[place].name);
    }
}
