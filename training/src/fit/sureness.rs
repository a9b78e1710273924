//! Sets how sure a model is.
//!
//! A model that trains for long becomes too sure about new outfits, and a customer who reads 60 % expects three of five. One
//! factor for all logits makes it as sure as it is right, and changes no order. Methods with personas stay as they are,
//! because what their articles say of personas would change, too.

use rayon::prelude::*;

use super::development::Development;
use crate::{data::Data, model::Model};

/// Questions of the development split that are asked, at most.
const ASKED: usize = 2048;
/// How far from 1 the factor is before anything is asked, about: a few questions cannot move it far.
const SPREAD: f64 = 0.2;
const ROUNDS: usize = 8;
const NEAR: f64 = 1e-4;

/// Multiplies all logits by the factor with which the development split is most likely.
pub(super) fn set(model: &mut Model, data: &Data) {
    if model.structure().head.personas.is_some() {
        return;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
    model.scale_logits(factor(model, &Development::new(data, model.config())) as f32);
}

/// By Newton's method: the mean cross-entropy is convex in the factor.
fn factor(model: &Model, questions: &Development) -> f64 {
    let mut factor = 1.0;
    for _ in 0..ROUNDS {
        let mut slopes = Slopes::default();
        for batch in questions.batches() {
            let logits = model.logits(batch);
            let rows = logits.par_chunks_exact(model.config().articles).zip(batch.targets());
            let of_rows: Vec<Slopes> = rows.map(|(row, &target)| slopes_of(row, target, factor)).collect();
            // In order, so that the sums do not depend on the number of threads.
            for of_row in of_rows {
                slopes.add(of_row);
            }
            if slopes.questions >= ASKED {
                break;
            }
        }
        let doubt = SPREAD.powi(-2);
        let step = (slopes.first + doubt * (factor - 1.0)) / (slopes.second + doubt);
        // Far from the minimum a step may go beyond it.
        let next = (factor - step).clamp(factor / 2.0, factor * 2.0);
        let moved = (next - factor).abs();
        factor = next;
        if moved < NEAR {
            break;
        }
    }
    factor
}

/// Sums over questions of the cross-entropy's first and second derivative by the factor.
#[derive(Debug, Clone, Copy, Default)]
struct Slopes {
    questions: usize,
    first: f64,
    second: f64,
}

impl Slopes {
    fn add(&mut self, other: Self) {
        self.questions += other.questions;
        self.first += other.first;
        self.second += other.second;
    }
}

/// The derivatives are the logits' mean less the true one, and their variance.
fn slopes_of(logits: &[f32], target: u32, factor: f64) -> Slopes {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (mut total, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for logit in logits {
        let below = f64::from(logit - highest);
        let weight = (factor * below).exp();
        total += weight;
        sum += weight * below;
        squares += weight * below * below;
    }
    let mean = sum / total;
    let own = f64::from(logits[target as usize] - highest);
    Slopes { questions: 1, first: mean - own, second: squares / total - mean * mean }
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::Method;

    use super::*;
    use crate::{
        fit::first_model,
        testing::{change, difference, patterned, patterned_data, run_config},
    };

    /// A model of the outfits before its first step, and the questions.
    fn model_of(method: Method, data: &Data) -> (Model, Development) {
        let config = run_config(data, method, |_| {});
        (first_model(data, &config), Development::new(data, &config.model))
    }

    #[test]
    fn all_logits_are_multiplied_whatever_they_are_made_of() {
        let data = patterned_data(100);
        for method in [Method::Gsu, Method::Match] {
            let (mut model, questions) = model_of(method, &data);
            let batch = &questions.batches()[0];
            let before = model.logits(batch);
            model.scale_logits(0.5);
            let half: Vec<f32> = before.iter().map(|logit| logit / 2.0).collect();
            assert!(half.iter().any(|logit| logit.abs() > 0.01), "{method}");
            assert!(difference(&model.logits(batch), &half) < 1e-5, "{method}");
        }
    }

    #[test]
    fn a_model_that_is_too_sure_gets_the_factor_of_the_least_cross_entropy() {
        // Enough outfits that the questions outweigh what is believed of the factor beforehand. A third has no shoe.
        let home = patterned(6000);
        change(&home, "outfits", |(place, line)| match place % 3 {
            0 => line.replace("shoe", "bag"),
            _ => line.to_owned(),
        });
        let data = Data::load(home.path()).unwrap();
        // Begins at a conditional logit, which has learned the pattern.
        let (mut model, questions) = model_of(Method::Match, &data);
        model.scale_logits(3.0);
        let too_sure = questions.evaluate(&model);
        let found = factor(&model, &questions);
        assert!(found < 0.9, "{found}");
        let scores_at = |factor: f64| {
            let mut model = model.clone();
            #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
            model.scale_logits(factor as f32);
            questions.evaluate(&model)
        };
        let best = scores_at(found);
        assert!((best.recall_at_5 - too_sure.recall_at_5).abs() < 1e-9, "no order changes");
        for other in [1.0, 0.95 * found, 1.05 * found] {
            let other = scores_at(other).cross_entropy;
            assert!(best.cross_entropy < other, "{found}: {} and {other}", best.cross_entropy);
        }
    }
}
