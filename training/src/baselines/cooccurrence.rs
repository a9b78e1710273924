//! What stood beside the visible articles before: item co-occurrence.

use super::{Answers, Popularity, Question, choose};
use crate::data::Data;

/// The weight of co-occurrence against popularity, to choose from.
const WEIGHTS: [f64; 10] = [0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95];

/// `w · mean over the visible b of Pr(article | b) + (1 - w) · Pr(article)`.
#[derive(Debug)]
pub struct Cooccurrence<'a> {
    pub(super) popularity: &'a Popularity,
    pub(super) pairs: &'a Pairs,
    pub weight: f64,
}

/// For each article, those that stood beside it, with Pr(other | article).
#[derive(Debug)]
pub struct Pairs {
    starts: Vec<usize>,
    others: Vec<(u32, f64)>,
}

impl Pairs {
    /// Counts pairs in the training outfits, the development split aside.
    pub fn count(data: &Data) -> Self {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for &outfit in data.training() {
            let articles = data.outfits().articles(outfit);
            for a in articles {
                pairs.extend(articles.iter().filter(|b| *b != a).map(|b| (*a, *b)));
            }
        }
        pairs.sort_unstable();
        let mut starts = vec![0; data.vocabulary().len() + 1];
        let mut others = Vec::new();
        for beside in pairs.chunk_by(|x, y| x.0 == y.0) {
            let total = crate::number::real(beside.len());
            for same in beside.chunk_by(|x, y| x.1 == y.1) {
                others.push((same[0].1, crate::number::real(same.len()) / total));
            }
            starts[beside[0].0 as usize + 1] = others.len();
        }
        // Articles that never stood beside another have nothing between their start and the next.
        for article in 1..starts.len() {
            starts[article] = starts[article].max(starts[article - 1]);
        }
        Self { starts, others }
    }

    fn beside(&self, article: u32) -> &[(u32, f64)] {
        &self.others[self.starts[article as usize]..self.starts[article as usize + 1]]
    }
}

impl<'a> Cooccurrence<'a> {
    pub fn fit(data: &Data, popularity: &'a Popularity, pairs: &'a Pairs) -> Self {
        choose(data, &WEIGHTS, |weight| Self { popularity, pairs, weight })
    }
}

impl Answers for Cooccurrence<'_> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        // An article that was never seen beside another says nothing: its share goes to popularity.
        let known: Vec<&[(u32, f64)]> = question
            .visible
            .iter()
            .map(|article| self.pairs.beside(*article))
            .filter(|beside| !beside.is_empty())
            .collect();
        let weight = if known.is_empty() { 0.0 } else { self.weight };
        for (out, popularity) in probabilities.iter_mut().zip(&self.popularity.probabilities) {
            *out = (1.0 - weight) * popularity;
        }
        let each = weight / crate::number::real(known.len().max(1));
        for (article, probability) in known.into_iter().flatten() {
            probabilities[*article as usize] += each * probability;
        }
    }
}
