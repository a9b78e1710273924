//! What counting would say of two halves: how often their articles stood together before.

use std::collections::HashMap;

use super::Pair;
use crate::{data::Data, number::real};

/// Articles of the training outfits, counted alone and two by two.
#[derive(Debug)]
pub struct Cooccurrence {
    alone: Vec<u32>,
    /// The lower index first.
    together: HashMap<(u32, u32), u32>,
    outfits: usize,
}

impl Cooccurrence {
    /// Counts the training outfits, the development split aside.
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

    /// The mean over an article of each half of ln (times together + 1) / (times expected + 1), where
    /// the expectation is that of articles which do not care for one another.
    pub fn score(&self, pair: &Pair) -> f64 {
        let all = pair.first.iter().flat_map(|&a| pair.second.iter().map(move |&b| (a, b)));
        let of_two = |(a, b): (u32, u32)| {
            let count = |article: u32| f64::from(self.alone[article as usize]);
            let expected = count(a) * count(b) / real(self.outfits.max(1));
            let found = f64::from(self.together.get(&ordered(a, b)).copied().unwrap_or_default());
            ((found + 1.0) / (expected + 1.0)).ln()
        };
        all.map(of_two).sum::<f64>() / real(pair.first.len() * pair.second.len())
    }
}

fn ordered(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}
