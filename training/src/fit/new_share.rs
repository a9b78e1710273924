//! Sets how likely new articles are.
//!
//! A model learns what an article's values are worth from articles with outfits, so it takes an article without outfits to
//! be as likely as those. If many articles were passed over, this is too much.

use std::sync::Arc;

use atelier_engine::averages::Averages;

use super::{config::RunConfig, development::Development, value_rows_of};
use crate::{
    data::Data,
    engine::ValueRows,
    model::Model,
    number::real,
    random::{Stream, Table},
};

/// Questions of the development split that are asked, at most.
const ASKED: usize = 2048;
/// The most that the logit of new articles moves.
const MOST: f64 = 6.0;

/// Moves the logits of articles without training outfits, so that their share of the probability is the one that
/// [`Data::share_of_unseen`] estimates. The logits of all other articles stay.
pub(super) fn set(model: &mut Model, data: &Data, config: &RunConfig) {
    let new = data.count_known()..data.articles().len();
    if config.model.values == 0 || new.is_empty() {
        return;
    }
    let share = data.share_of_unseen();
    let questions = Development::new(data, &config.model);
    let others = model.with_last_layer_of(&rows_of_new(data), new.len());
    // By question: the logit of the share of new articles.
    let mut logits: Vec<f64> = Vec::new();
    for batch in questions.batches() {
        let (known, new) = (model.logits(batch), others.logits(batch));
        let known = known.chunks_exact(model.config().articles);
        let sums = known.zip(new.chunks_exact(others.config().articles));
        logits.extend(sums.map(|(known, new)| log_sum(new) - log_sum(known)));
        if logits.len() >= ASKED {
            break;
        }
    }
    if logits.is_empty() {
        return;
    }
    let mean = |by: f64| {
        let sum: f64 = logits.iter().map(|logit| 1.0 / (1.0 + (-(logit + by)).exp())).sum();
        sum / real(logits.len())
    };
    let (mut low, mut high) = (-MOST, MOST);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if mean(middle) < share { low = middle } else { high = middle }
    }
    let names = data.attributes().names();
    let is_type = |value: u32| names[data.attributes().attribute_of(value)] == "type";
    let types: Vec<usize> = (0..)
        .take(data.attributes().count())
        .filter(|&value| is_type(value))
        .map(|value| value as usize)
        .collect();
    #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
    model.move_unknown(&types, f64::midpoint(low, high) as f32);
}

/// The values of articles without training outfits. The service gives one that says nothing of an attribute the average of
/// its type; here it has one of its values, drawn as often as articles of the type have it.
fn rows_of_new(data: &Data) -> Arc<ValueRows> {
    let attributes = data.attributes();
    let known = (0..data.count_known()).map(|article| attributes.for_article(article));
    let averages = Averages::count(attributes.encoder(), known);
    value_rows_of(data, data.count_known()..data.articles().len(), |article| {
        let own = attributes.for_article(article);
        let mut stream = Stream::new(1, Table::Unsaid, article);
        let mut values = own.to_vec();
        for average in &averages.averages_for(own) {
            let shares: Vec<f64> = average.shares.iter().map(|(_, share)| f64::from(*share)).collect();
            values.push(average.shares[stream.weighted(&shares)].0);
        }
        values.sort_unstable();
        values
    })
}

/// The logarithm of the sum of the exponentials.
fn log_sum(logits: &[f32]) -> f64 {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - highest).exp()).sum();
    f64::from(highest) + sum.ln()
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::Method;

    use super::*;
    use crate::{
        fit::first_model,
        model::Batch,
        testing::{change, difference, near, patterned, run_config},
    };

    #[test]
    fn new_articles_get_their_share_and_known_logits_stay() {
        let home = patterned(100);
        // Each hat has a new one with it.
        change(&home, "articles", |(number, line)| match number {
            ..10 => format!("{line}\n{}", line.replace("hat-", "hat-1")),
            _ => line.to_owned(),
        });
        let data = Data::load(home.path()).unwrap();
        for method in [Method::Match, Method::Latent] {
            check(&data, method);
        }
    }

    fn check(data: &Data, method: Method) {
        let mut config = run_config(data, method, |fit| fit.attributes = true);
        // Whole outfits of so regular a shop leave no doubt.
        config.model.memory = 0;
        let first = first_model(data, &config);
        let mut model = first.clone();
        set(&mut model, data, &config);

        let questions = Development::new(data, &config.model);
        let logits = |model: &Model| -> Vec<f32> {
            questions.batches().iter().flat_map(|batch: &Batch| model.logits(batch)).collect()
        };
        let (before, after) = (logits(&first), logits(&model));
        assert!(difference(&before, &after) < 1e-4);
        let (known, all) = (data.count_known(), data.articles().len());
        let new = model.with_last_layer_of(&rows_of_new(data), all - known);
        let of_known = after.chunks_exact(known).map(log_sum);
        let shares: Vec<f64> = of_known
            .zip(logits(&new).chunks_exact(all - known))
            .map(|(known, new)| 1.0 / (1.0 + (known - log_sum(new)).exp()))
            .collect();
        let mean = shares.iter().sum::<f64>() / real(shares.len());
        // The same few outfits come again and again, so each known article was chosen once. Many more should not have been
        // seen than were not, so these were not passed over.
        near(mean, real(all - known) / real(all), 1e-4);
    }
}
