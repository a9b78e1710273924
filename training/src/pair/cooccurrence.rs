//! The baseline: how often the halves' articles were worn together in training.

use std::collections::HashMap;

use super::Pair;
use crate::{data::Data, number::real};

/// Counts of articles and of pairs of articles in the training outfits.
#[derive(Debug)]
pub struct Cooccurrence {
    alone: Vec<u32>,
    /// The lower index first.
    together: HashMap<(u32, u32), u32>,
    outfits: usize,
}

impl Cooccurrence {
    /// Counts the training outfits, without the development split.
    pub fn count(data: &Data) -> Self {
        let mut alone = vec![0; data.vocabulary().len()];
        let mut together = HashMap::new();
        for &outfit in data.training() {
            let articles = data.outfits().articles(outfit);
            for (place, &a) in articles.iter().enumerate() {
                alone[a as usize] += 1;
                for &b in &articles[place + 1..] {
                    *together.entry(ordered(a, b)).or_default() += 1;
                }
            }
        }
        Self { alone, together, outfits: data.training().len() }
    }

    /// The mean of ln((times together + 1) / (times expected + 1)) over all pairs of an article of each half; the
    /// expectation is that of independent articles.
    pub fn score(&self, pair: &Pair) -> f64 {
        let all = pair.first.iter().flat_map(|&a| pair.second.iter().map(move |&b| (a, b)));
        let score = |(a, b): (u32, u32)| {
            let count = |article: u32| f64::from(self.alone[article as usize]);
            let expected = count(a) * count(b) / real(self.outfits.max(1));
            let found = f64::from(self.together.get(&ordered(a, b)).copied().unwrap_or_default());
            ((found + 1.0) / (expected + 1.0)).ln()
        };
        all.map(score).sum::<f64>() / real(pair.first.len() * pair.second.len())
    }
}

fn ordered(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}
