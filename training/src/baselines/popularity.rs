//! Popularity, of all articles or of those of the told type.

use super::{Answers, Question, choose};
use crate::data::Data;

/// Candidates for the number added to every count.
const ADDED: [f64; 6] = [0.5, 0.05, 0.1, 0.2, 1.0, 2.0];

/// Pr(article) from its count in the training outfits.
#[derive(Debug)]
pub struct Popularity {
    pub(super) probabilities: Vec<f64>,
    pub added: f64,
}

impl Popularity {
    pub fn fit(data: &Data) -> Self {
        let counts = data.count_articles(data.training());
        choose(data, &ADDED, |added| Self::from_counts(&counts, added))
    }

    /// Those of the first articles.
    #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
    pub(crate) fn probabilities(&self, articles: usize) -> impl Iterator<Item = f32> {
        self.probabilities[..articles].iter().map(|probability| *probability as f32)
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

/// Pr(article | its type) from the same counts: told the type of the missing article.
#[derive(Debug)]
pub struct TypePopularity<'a> {
    pub(super) data: &'a Data,
    pub(super) within_type: Vec<f64>,
    pub added: f64,
}

impl<'a> TypePopularity<'a> {
    pub fn fit(data: &'a Data) -> Self {
        let counts = data.count_articles(data.training());
        choose(data, &ADDED, |added| Self::from_counts(&counts, data, added))
    }

    pub(super) fn from_counts(counts: &[f64], data: &'a Data, added: f64) -> Self {
        let mut within_type = vec![0.0; counts.len()];
        for kind in 0..data.types().len() {
            let articles = data.articles_of_type(kind);
            let total: f64 = articles.iter().map(|article| counts[*article as usize] + added).sum();
            for article in articles {
                within_type[*article as usize] = (counts[*article as usize] + added) / total;
            }
        }
        Self { data, within_type, added }
    }
}

impl Answers for TypePopularity<'_> {
    fn knows_type(&self) -> bool {
        true
    }

    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.fill(0.0);
        for article in self.data.articles_of_type(question.told_type) {
            probabilities[*article as usize] = self.within_type[*article as usize];
        }
    }
}
