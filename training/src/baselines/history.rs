//! The customer's past articles.

use std::collections::HashMap;

use super::{Answers, Question, choose};
use crate::data::Data;

/// Candidates for the number of articles that another baseline's answer is worth.
const STRENGTHS: [f64; 8] = [10.0, 1.0, 3.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];

/// `(times the customer had the article + s · another baseline's probability) / (the customer's articles + s)`; the
/// visible articles count as never had, because an outfit does not repeat them.
#[derive(Debug)]
pub struct History<'a> {
    base: &'a dyn Answers,
    counts: &'a Histories,
    pub strength: f64,
}

/// By customer and article: how often.
pub type Histories = HashMap<u32, HashMap<u32, f64>>;

/// How often each customer had each article in these outfits.
pub fn count_histories(data: &Data, outfits: &[u32]) -> Histories {
    let mut counts = Histories::new();
    for &outfit in outfits {
        let own = counts.entry(data.outfits().customer(outfit)).or_default();
        for &article in data.outfits().articles(outfit) {
            *own.entry(article).or_default() += 1.0;
        }
    }
    counts
}

impl<'a> History<'a> {
    pub fn fit(data: &Data, base: &'a dyn Answers, counts: &'a Histories) -> Self {
        choose(data, &STRENGTHS, |strength| Self { base, counts, strength })
    }
}

impl Answers for History<'_> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        self.base.answer(question, probabilities);
        let Some(own) = self.counts.get(&question.customer) else { return };
        let had = || own.iter().filter(|(article, _)| !question.visible.contains(article));
        let total: f64 = had().map(|(_, times)| times).sum();
        for probability in &mut *probabilities {
            *probability *= self.strength / (total + self.strength);
        }
        for (article, times) in had() {
            probabilities[*article as usize] += times / (total + self.strength);
        }
    }
}
