use std::collections::HashSet;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::{
    pairs::{pair_batch, pairs, small_pair},
    *,
};
use crate::engine::{Gradients, PairHead, number};

/// Compares every tensor's gradient with central differences of the loss, along the gradient itself and along a
/// random direction.
#[test]
fn gradients_match_finite_differences() {
    let models: Vec<Model> = Method::ALL.into_iter().map(small).chain([small_with_embeddings()]).collect();
    models.into_par_iter().for_each(|mut model| {
        let batch = batch(model.config(), &examples(model.config(), 8, false, 3));
        let (_, gradients) = model.gradients(&batch, None, &mut Vec::new());
        let unmoved = names_of_unmoved(&model);
        check(&mut model, &gradients, &|name| !unmoved.contains(name), &|model| model.loss(&batch).total);
    });
}

/// The last dense layer has no gradient from pairs.
#[test]
fn gradients_through_pairs_match_finite_differences() {
    Method::ALL.into_par_iter().for_each(|method| {
        let mut model = small_pair(method);
        let batch = pair_batch(model.config(), &pairs(model.config(), 8, false, 3));
        let (pair_loss, gradients) = model.pair_gradients(&batch, 0.7, None);
        let loss = |model: &Model| {
            let mut tape = model.tape(&batch.readings.packed, None);
            let read = model.structure.forward(&mut tape);
            let mut judged = model.pair_head().forward(&model.weights, model.readings(&tape, read));
            let losses = PairHead::loss(&mut judged.logits, &batch.same, 1.0);
            let ponder = f64::from(model.config.universal.ponder_weight) * tape.ponder() / 3.0;
            0.7 * (losses.iter().copied().map(f64::from).sum::<f64>() + ponder) / 8.0
        };
        assert!((loss(&model) - pair_loss.total).abs() < 1e-6, "{method}: the reported loss");
        let unmoved = names_of_unmoved(&model);
        let last_layer = |name: &str| name.starts_with("vocabulary.") || name.starts_with("memory.");
        let has_gradient = |name: &str| !unmoved.contains(name) && !last_layer(name);
        check(&mut model, &gradients, &has_gradient, &loss);
    });
}

/// A step makes only the sums that its outfits show; the others are as they were before.
#[test]
fn rows_that_no_outfit_shows_need_no_sums() {
    for mut model in [small(Method::Match), small_with_embeddings()] {
        let batch = batch(model.config(), &examples(model.config(), 3, false, 5));
        let kept: Vec<bool> = (0..model.config().articles).map(|article| article % 3 != 0).collect();
        model.compose(Needs { kept: Some(kept.clone()), visible: None });
        let (_, all) = model.gradients(&batch, None, &mut Vec::new());
        let own = model.weights.0.iter().position(|tensor| tensor.name == "vocabulary.own").unwrap();
        for (row, kept) in all.dense[own].chunks(model.weights.0[own].shape[1]).zip(&kept) {
            assert_eq!(row.iter().any(|gradient| *gradient != 0.0), *kept, "a dropped vector learns nothing");
        }
        let mut visible = batch.packed.slots.clone();
        visible.sort_unstable();
        visible.dedup();
        assert!(visible.len() < kept.len() / 2, "{}", visible.len());
        let stale = model.structure.tables.articles;
        model.weights.0[stale.0].data.fill(f32::NAN);
        model.compose(Needs { kept: Some(kept.clone()), visible: Some(visible) });
        assert_eq!(model.gradients(&batch, None, &mut Vec::new()).1, all);
    }
}

/// Tensors without gradients.
fn names_of_unmoved(model: &Model) -> HashSet<String> {
    model.structure.unmoved().into_iter().map(|sum| model.weights.tensor(sum).name.clone()).collect()
}

fn check(
    model: &mut Model,
    gradients: &Gradients,
    has_gradient: &dyn Fn(&str) -> bool,
    loss: &dyn Fn(&Model) -> f64,
) {
    let method = model.config.method;
    let mut random = Pcg64::seed_from_u64(5);
    for (place, gradient) in gradients.dense.iter().enumerate() {
        let name = model.weights.0[place].name.clone();
        if !has_gradient(&name) {
            assert!(gradient.is_empty(), "{method}: {name} has no gradient");
            continue;
        }
        assert_eq!(gradient.len(), model.weights.0[place].data.len(), "{method}: {name} has a gradient");
        let length = gradient.len();
        let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
        assert!(norm > 1e-6, "{method}: {name} has no effect");
        let along: Vec<f32> = gradient.iter().map(|g| g / norm).collect();
        let signs = (0..length).map(|_| if random.random_bool(0.5) { 1.0 } else { -1.0 });
        let across: Vec<f32> = signs.map(|sign: f32| sign / number(length).sqrt()).collect();
        for direction in [along, across] {
            let expected: f64 =
                gradient.iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
            // A long step meets kinks and curvature, a short one float32's rounding: one of them must agree.
            let agrees = [3e-3, 3e-4, 1e-4, 3e-5].into_iter().any(|step| {
                let found = slope(model, place, &direction, step, loss);
                (found - expected).abs() < 3e-2 * f64::from(norm) + 1e-3
            });
            assert!(agrees, "{method}: {name}: no difference agrees with the gradient, {expected} of {norm}");
        }
    }
}

fn slope(model: &mut Model, place: usize, direction: &[f32], step: f32, loss: &dyn Fn(&Model) -> f64) -> f64 {
    let before = model.weights.0[place].data.clone();
    let mut loss = |step: f32| {
        for ((to, from), by) in model.weights.0[place].data.iter_mut().zip(&before).zip(direction) {
            *to = from + step * by;
        }
        model.compose(Needs::default());
        loss(model)
    };
    let slope = (loss(step) - loss(-step)) / f64::from(2.0 * step);
    model.weights.0[place].data = before;
    model.compose(Needs::default());
    slope
}

/// The backward pass drops the same numbers as the forward pass; another key drops others.
#[test]
fn gradients_hold_under_dropout() {
    let mut model = small(Method::Gsu);
    let batch = batch(model.config(), &examples(model.config(), 12, false, 37));
    let under = |model: &Model, key: u64| model.gradients(&batch, Some(key), &mut Vec::new());
    let (loss, gradients) = under(&model, 41);
    assert_ne!(loss, under(&model, 43).0);
    assert_ne!(loss, model.loss(&batch));
    let unmoved = names_of_unmoved(&model);
    check(&mut model, &gradients, &|name| !unmoved.contains(name), &|model| under(model, 41).0.total);
}
