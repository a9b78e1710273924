//! Articles that go with the visible ones, by counts of pairs.

use super::{Answers, Popularity, Question, choose};
use crate::{data::Data, number::real};

/// How often pairs of articles are in one training outfit.
#[derive(Debug)]
pub struct Pairs {
    starts: Vec<usize>,
    /// For each article the others seen with it, and how often.
    others: Vec<(u32, f64)>,
    /// For each article the sum of these counts.
    totals: Vec<f64>,
}

impl Pairs {
    /// Counts pairs in the training split.
    pub fn count(data: &Data) -> Self {
        Self::count_in(data, data.training())
    }

    pub(super) fn count_in(data: &Data, outfits: &[u32]) -> Self {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for &outfit in outfits {
            let articles = data.outfits().articles(outfit);
            for a in articles {
                pairs.extend(articles.iter().filter(|b| *b != a).map(|b| (*a, *b)));
            }
        }
        pairs.sort_unstable();
        let count = data.vocabulary().len();
        let (mut starts, mut others, mut totals) = (vec![0; count + 1], Vec::new(), vec![0.0; count]);
        for beside in pairs.chunk_by(|x, y| x.0 == y.0) {
            let article = beside[0].0 as usize;
            others.extend(beside.chunk_by(|x, y| x.1 == y.1).map(|same| (same[0].1, real(same.len()))));
            starts[article + 1] = others.len();
            totals[article] = real(beside.len());
        }
        // An article never seen with another has an empty range.
        for article in 1..starts.len() {
            starts[article] = starts[article].max(starts[article - 1]);
        }
        Self { starts, others, totals }
    }

    pub(crate) fn beside(&self, article: u32) -> &[(u32, f64)] {
        &self.others[self.starts[article as usize]..self.starts[article as usize + 1]]
    }

    pub(crate) fn total(&self, article: u32) -> f64 {
        self.totals[article as usize]
    }
}

/// Candidates for the weight of co-occurrence against popularity.
const WEIGHTS: [f64; 10] = [0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95];

/// `w · mean over the visible b of Pr(article | b) + (1 - w) · Pr(article)`.
#[derive(Debug)]
pub struct Cooccurrence<'a> {
    pub(crate) popularity: &'a Popularity,
    pub(crate) pairs: &'a Pairs,
    pub weight: f64,
}

impl<'a> Cooccurrence<'a> {
    pub fn fit(data: &Data, popularity: &'a Popularity, pairs: &'a Pairs) -> Self {
        choose(data, &WEIGHTS, |weight| Self { popularity, pairs, weight })
    }
}

impl Answers for Cooccurrence<'_> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        // Articles never seen with another are left out; if all are, popularity decides.
        let seen = || question.visible.iter().filter(|article| self.pairs.total(**article) > 0.0);
        let count = seen().count();
        let weight = if count == 0 { 0.0 } else { self.weight };
        for (out, popularity) in probabilities.iter_mut().zip(&self.popularity.probabilities) {
            *out = (1.0 - weight) * popularity;
        }
        for &article in seen() {
            let each = weight / real(count) / self.pairs.total(article);
            for (other, times) in self.pairs.beside(article) {
                probabilities[*other as usize] += each * times;
            }
        }
    }
}

/// A score of each article with the visible ones: the larger, the better it goes with them.
pub trait Scores: Sync + std::fmt::Debug {
    /// Adds the scores of what goes with this article.
    fn add(&self, visible: u32, scores: &mut [f64]);
}

/// Candidates for how much a score counts.
const SHARPNESS: [f64; 10] = [4.0, 0.5, 1.0, 2.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0];

/// `Pr(article) ∝ popularity · exp(sharpness · the scores' sum)`.
#[derive(Debug)]
pub struct Sharpened<'a, S> {
    popularity: &'a Popularity,
    scores: &'a S,
    pub sharpness: f64,
}

impl<'a, S: Scores> Sharpened<'a, S> {
    pub fn fit(data: &Data, popularity: &'a Popularity, scores: &'a S) -> Self {
        choose(data, &SHARPNESS, |sharpness| Self { popularity, scores, sharpness })
    }
}

impl<S: Scores> Answers for Sharpened<'_, S> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.fill(0.0);
        for &article in question.visible {
            self.scores.add(article, probabilities);
        }
        let highest = probabilities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut total = 0.0;
        for (score, popularity) in probabilities.iter_mut().zip(&self.popularity.probabilities) {
            *score = popularity * (self.sharpness * (*score - highest)).exp();
            total += *score;
        }
        for probability in probabilities {
            *probability /= total;
        }
    }
}

/// The cosine of two articles' outfits: how many they share, over the root of how many they have.
#[derive(Debug)]
pub struct Neighbours<'a> {
    pairs: &'a Pairs,
    /// Outfits with each article.
    counts: Vec<f64>,
}

impl<'a> Neighbours<'a> {
    pub fn count(data: &Data, pairs: &'a Pairs) -> Self {
        Self { pairs, counts: data.count_articles(data.training()) }
    }
}

impl Scores for Neighbours<'_> {
    fn add(&self, visible: u32, scores: &mut [f64]) {
        let own = self.counts[visible as usize];
        for (other, times) in self.pairs.beside(visible) {
            scores[*other as usize] += times / (own * self.counts[*other as usize]).sqrt();
        }
    }
}
