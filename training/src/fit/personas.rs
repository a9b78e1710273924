//! Where the personas begin: at the parts of a mixture that is fitted to the training outfits.
//!
//! Each part has a probability for each article, and an outfit is drawn from one part. With `ln(Pr(article | part) /
//! Pr(article))` as biases, the model's mixture of personas is the mixture's posterior of the parts, given the visible
//! articles, apart from what smoothing changes.

use crate::{
    data::Data,
    number::real,
    random::{Stream, Table},
};

/// Rounds of expectation and maximisation.
const ROUNDS: usize = 40;
/// An article's count in a part, and the count that is expected by chance, are raised by this much. With less, rare articles are
/// trusted too much.
const BY_CHANCE: f64 = 5.0;

/// The biases, known article by known article.
pub(super) fn first_biases(data: &Data, parts: usize, seed: u64) -> Vec<f32> {
    let overall = shares(data);
    let mut logs = vec![0.0; overall.len() * parts];
    let mut weights = vec![1.0 / real(parts); parts];
    let mut stream = Stream::new(seed, Table::Personas, 0);
    for round in 0..ROUNDS {
        let mut counts = vec![0.0; overall.len() * parts];
        let mut outfits = vec![1.0; parts];
        for &outfit in data.training() {
            let articles = data.outfits().articles(outfit);
            let mut posterior: Vec<f64> = if round == 0 {
                (0..parts).map(|_| stream.uniform() + 0.01).collect()
            } else {
                let score = |part: usize| -> f64 {
                    let log = |article: &u32| logs[*article as usize * parts + part];
                    weights[part].ln() + articles.iter().map(log).sum::<f64>()
                };
                let scores: Vec<f64> = (0..parts).map(score).collect();
                let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                scores.into_iter().map(|score| (score - highest).exp()).collect()
            };
            let total: f64 = posterior.iter().sum();
            for share in &mut posterior {
                *share /= total;
            }
            for &article in articles {
                let to = &mut counts[article as usize * parts..][..parts];
                to.iter_mut().zip(&posterior).for_each(|(count, share)| *count += share);
            }
            outfits.iter_mut().zip(&posterior).for_each(|(count, share)| *count += share);
        }
        let all: f64 = outfits.iter().sum();
        weights = outfits.iter().map(|count| count / all).collect();
        let mut totals = vec![0.0; parts];
        for counts in counts.chunks_exact(parts) {
            totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        }
        for ((logs, counts), share) in
            logs.chunks_exact_mut(parts).zip(counts.chunks_exact(parts)).zip(&overall)
        {
            for ((log, count), total) in logs.iter_mut().zip(counts).zip(&totals) {
                // Relative to the article's own share, so that popular articles do not decide.
                *log = ((count + BY_CHANCE) / (total * share + BY_CHANCE)).ln();
            }
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
    logs.into_iter().map(|log| log as f32).collect()
}

/// Each known article's share of the training outfits' articles; one that is only in development counts as half an article.
fn shares(data: &Data) -> Vec<f64> {
    let counts = data.count_articles(data.training());
    let counts: Vec<f64> = counts[..data.count_known()].iter().map(|count| count + 0.5).collect();
    let total: f64 = counts.iter().sum();
    counts.into_iter().map(|count| count / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::patterned_data;

    #[test]
    fn articles_of_one_outfit_are_in_one_part() {
        let data = patterned_data(100);
        let biases = first_biases(&data, 2, 1);
        let is_first = |&&article: &&u32| biases[2 * article as usize] > biases[2 * article as usize + 1];
        let count = |&outfit: &u32| data.outfits().articles(outfit).iter().filter(is_first).count();
        let first: Vec<usize> = data.training().iter().map(count).collect();
        assert!(first.contains(&0) && first.contains(&4), "{first:?}");
        assert!(first.iter().all(|&count| count == 0 || count == 4), "{first:?}");
    }

    #[test]
    fn articles_that_no_training_outfit_has_get_none() {
        let data = patterned_data(9);
        assert!(data.count_known() < 40);
        assert_eq!(first_biases(&data, 3, 1).len(), 3 * data.count_known());
    }
}
