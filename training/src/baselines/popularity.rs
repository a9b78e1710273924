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
pub struct TypePopularity {
    within_type: Vec<f64>,
    pub(super) articles_of_type: Vec<Vec<u32>>,
    pub added: f64,
}

impl TypePopularity {
    pub fn fit(data: &Data) -> Self {
        let counts = counts(data);
        choose(data, &ADDED, |added| Self::from_counts(&counts, data, added))
    }

    pub(super) fn from_counts(counts: &[f64], data: &Data, added: f64) -> Self {
        let mut articles_of_type = vec![Vec::new(); data.types().len()];
        for article in 0..data.vocabulary().blank() {
            articles_of_type[data.type_of(article)].push(article);
        }
        let mut within_type = vec![0.0; counts.len()];
        for articles in &articles_of_type {
            let total: f64 = articles.iter().map(|article| counts[*article as usize] + added).sum();
            for article in articles {
                within_type[*article as usize] = (counts[*article as usize] + added) / total;
            }
        }
        Self { within_type, articles_of_type, added }
    }

    pub(super) fn within_type(&self, article: usize) -> f64 {
        self.within_type[article]
    }
}

impl Answers for TypePopularity {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.fill(0.0);
        for article in &self.articles_of_type[question.told_type] {
            probabilities[*article as usize] = self.within_type[*article as usize];
        }
    }
}
