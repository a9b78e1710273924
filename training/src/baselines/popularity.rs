//! The most sought after first, over all or within the type of the missing article.

use super::{Answers, Dataset, Question, Types, choose, counts};

/// What is added to every count, to choose from.
const ADDED: [f64; 6] = [0.5, 0.05, 0.1, 0.2, 1.0, 2.0];

/// Pr(article) by its count in the training outfits.
#[derive(Debug)]
pub struct Popularity {
    pub(super) probabilities: Vec<f64>,
    pub added: f64,
}

impl Popularity {
    pub fn fit(data: &Dataset, types: &Types) -> Self {
        let counts = counts(data);
        choose(data, types, &ADDED, |added| Self::from_counts(&counts, added))
    }

    pub(super) fn from_counts(counts: &[f64], added: f64) -> Self {
        let total: f64 = counts.iter().map(|count| count + added).sum();
        Self { probabilities: counts.iter().map(|count| (count + added) / total).collect(), added }
    }
}

impl Answers for Popularity {
    fn answer(&self, _: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.copy_from_slice(&self.probabilities);
    }
}

/// Pr(article | its type) by the same counts: told the type of the missing article.
#[derive(Debug)]
pub struct TypePopularity {
    within_type: Vec<f64>,
    of_article: Vec<u32>,
    pub added: f64,
}

impl TypePopularity {
    pub fn fit(data: &Dataset, types: &Types) -> Self {
        let counts = counts(data);
        choose(data, types, &ADDED, |added| Self::from_counts(&counts, types, added))
    }

    pub(super) fn from_counts(counts: &[f64], types: &Types, added: f64) -> Self {
        let mut totals = vec![0.0; types.names.len()];
        for (count, kind) in counts.iter().zip(&types.of_article) {
            totals[*kind as usize] += count + added;
        }
        let within_type = counts
            .iter()
            .zip(&types.of_article)
            .map(|(count, kind)| (count + added) / totals[*kind as usize])
            .collect();
        Self { within_type, of_article: types.of_article.clone(), added }
    }

    pub(super) fn within_type(&self, article: usize) -> f64 {
        self.within_type[article]
    }
}

impl Answers for TypePopularity {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        for ((out, probability), kind) in
            probabilities.iter_mut().zip(&self.within_type).zip(&self.of_article)
        {
            *out = if *kind == question.told_type { *probability } else { 0.0 };
        }
    }
}
