//! The most sought after first, over all or within the type of the missing article.

use super::{Answers, Question, choose, counts};
use crate::data::Data;

/// What is added to every count, to choose from.
const ADDED: [f64; 6] = [0.5, 0.05, 0.1, 0.2, 1.0, 2.0];

/// Pr(article) by its count in the training outfits.
#[derive(Debug)]
pub struct Popularity {
    pub(super) probabilities: Vec<f64>,
    pub added: f64,
}

impl Popularity {
    pub fn fit(data: &Data) -> Self {
        let counts = counts(data);
        choose(data, &ADDED, |added| Self::from_counts(&counts, added))
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
pub struct TypePopularity<'a> {
    data: &'a Data,
    within_type: Vec<f64>,
    pub added: f64,
}

impl<'a> TypePopularity<'a> {
    pub fn fit(data: &'a Data) -> Self {
        let counts = counts(data);
        choose(data, &ADDED, |added| Self::from_counts(&counts, data, added))
    }

    pub(super) fn from_counts(counts: &[f64], data: &'a Data, added: f64) -> Self {
        let mut totals = vec![0.0; data.types().len()];
        for (article, count) in (0..).zip(counts) {
            totals[data.type_of(article)] += count + added;
        }
        let within_type = (0..)
            .zip(counts)
            .map(|(article, count)| (count + added) / totals[data.type_of(article)])
            .collect();
        Self { data, within_type, added }
    }

    pub(super) fn within_type(&self, article: usize) -> f64 {
        self.within_type[article]
    }
}

impl Answers for TypePopularity<'_> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        for (article, (out, probability)) in (0..).zip(probabilities.iter_mut().zip(&self.within_type)) {
            *out = if self.data.type_of(article) == question.told_type { *probability } else { 0.0 };
        }
    }
}
