//! Makes an answer from a row of logits.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{
    Answer, Candidate, Placement, Question,
    softmax::{largest, masked_sum_exp, sum_exp},
};

/// The `k` articles with the highest logits. Articles with equal logits must be considered in ascending order.
#[derive(Debug)]
pub(super) struct Best {
    heap: BinaryHeap<Contender>,
    k: usize,
    /// Rejects most articles with one comparison. Of articles with equal logits, the first is kept.
    bar: f32,
}

impl Best {
    pub(super) fn new(k: usize) -> Self {
        let bar = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { heap: BinaryHeap::with_capacity(k + 1), k, bar }
    }

    /// A logit that is not above this need not be considered. It is below all numbers until there are `k` articles.
    pub(super) fn bar(&self) -> f32 {
        self.bar
    }

    pub(super) fn consider(&mut self, article: u32, logit: f32) {
        if logit > self.bar || self.heap.len() < self.k {
            self.heap.push(Contender { logit, article });
            if self.heap.len() > self.k {
                self.heap.pop();
            }
            if self.heap.len() == self.k {
                self.bar = self.heap.peek().map_or(self.bar, |worst| worst.logit);
            }
        }
    }

    /// Best first.
    pub(super) fn sorted(self) -> Vec<Contender> {
        self.heap.into_sorted_vec()
    }
}

/// A logit and its article. The greatest is the worst, so that a heap removes the worst first. Of equal logits, the
/// later article is worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Contender {
    pub(super) logit: f32,
    pub(super) article: u32,
}

impl Eq for Contender {}

impl Ord for Contender {
    fn cmp(&self, other: &Self) -> Ordering {
        other.logit.total_cmp(&self.logit).then(self.article.cmp(&other.article))
    }
}

impl PartialOrd for Contender {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Makes an answer from each row of logits.
pub(super) fn choose_all(logits: &[f32], articles: usize, questions: &[Question]) -> Vec<Option<Answer>> {
    logits.chunks_exact(articles).zip(questions).map(|(logits, question)| choose(logits, question)).collect()
}

/// Returns None if a logit is not finite.
pub(super) fn choose(logits: &[f32], question: &Question) -> Option<Answer> {
    let highest = largest(logits);
    if !highest.is_finite() {
        return None;
    }
    let total = sum_exp(logits, highest);
    let probability = |logit: f32| f64::from(logit - highest).exp() / total;
    let mask = question.admissible.as_deref();
    let admissible_probability =
        mask.map_or(1.0, |mask| (masked_sum_exp(logits, mask, highest) / total).min(1.0));
    let top = choose_best(logits, question)
        .into_iter()
        .map(|Contender { logit, article }| Candidate { article, probability: probability(logit) })
        .collect();
    let placement = |&article: &u32| {
        let logit = logits[article as usize];
        Placement {
            log_probability: f64::from(logit - highest) - total.ln(),
            rank: question.ranks.then(|| 1 + count_above(logits, question, Contender { logit, article })),
        }
    };
    Some(Answer {
        top,
        placements: question.placements_of.iter().map(placement).collect(),
        admissible: mask.map_or(logits.len(), crate::domain::Mask::count),
        admissible_probability,
        personas: None,
        steps: None,
    })
}

/// The best `k` articles, best first.
fn choose_best(logits: &[f32], question: &Question) -> Vec<Contender> {
    let mut best = Best::new(question.k);
    for_each_admissible(logits, question, |article, logit| best.consider(article, logit));
    best.sorted()
}

/// The number of admissible articles that are better than this one.
fn count_above(logits: &[f32], question: &Question, one: Contender) -> usize {
    let mut count = 0;
    for_each_admissible(logits, question, |article, logit| {
        count += usize::from(Contender { logit, article } < one);
    });
    count
}

fn for_each_admissible(logits: &[f32], question: &Question, mut visit: impl FnMut(u32, f32)) {
    match question.admissible.as_deref() {
        None => (0..).zip(logits).for_each(|(article, &logit)| visit(article, logit)),
        Some(mask) => mask.iter().for_each(|article| visit(article, logits[article as usize])),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::domain::Mask;

    fn question(admissible: Option<Mask>, k: usize, placements_of: Vec<u32>) -> Question {
        let context: Vec<Vec<u32>> = Vec::new();
        let admissible = admissible.map(Arc::new);
        Question { admissible, k, placements_of, ranks: true, ..Question::new(vec![], 0, context.into()) }
    }

    proptest! {
        #[test]
        fn the_choice_equals_sorting(
            logits in prop::collection::vec((-40i16..40).prop_map(|l| f32::from(l) / 2.0), 1..300),
            keep in any::<u64>(),
            k in 0usize..40,
        ) {
            let mut mask = Mask::none(logits.len());
            for article in (0..u32::try_from(logits.len()).unwrap()).filter(|a| keep >> (a % 61) & 1 == 1) {
                mask.insert(article);
            }
            let total: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
            let mut sorted: Vec<u32> = mask.iter().collect();
            sorted.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
            let named: Vec<u32> = sorted.first().into_iter().chain(sorted.last()).copied().collect();
            let answer = choose(&logits, &question(Some(mask), k, named.clone())).unwrap();
            let found: Vec<u32> = answer.top.iter().map(|candidate| candidate.article).collect();
            prop_assert_eq!(&found, &sorted[..k.min(sorted.len())]);
            for candidate in &answer.top {
                let expected = f64::from(logits[candidate.article as usize]).exp() / total;
                prop_assert!((candidate.probability / expected - 1.0).abs() < 1e-5);
            }
            let share: f64 = sorted.iter().map(|&a| f64::from(logits[a as usize]).exp()).sum::<f64>() / total;
            prop_assert!((answer.admissible_probability - share).abs() < 1e-5);
            prop_assert_eq!(answer.admissible, sorted.len());
            for (article, placement) in named.iter().zip(&answer.placements) {
                let place = sorted.iter().position(|a| a == article).unwrap();
                prop_assert_eq!(placement.rank, Some(place + 1));
                let expected = f64::from(logits[*article as usize]) - total.ln();
                prop_assert!((placement.log_probability - expected).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn without_a_mask_all_articles_are_admissible() {
        let answer = choose(&[0.0, 1.0, 1.0, -1.0], &question(None, 250, vec![2])).unwrap();
        assert_eq!(answer.top.iter().map(|c| c.article).collect::<Vec<_>>(), [1, 2, 0, 3]);
        assert_eq!((answer.admissible, answer.placements[0].rank), (4, Some(2)));
        assert!((answer.top.iter().map(|c| c.probability).sum::<f64>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn logits_that_are_not_finite_give_no_answer() {
        assert_eq!(choose(&[0.0, f32::NAN], &question(None, 1, vec![])), None);
        assert_eq!(choose(&[0.0, f32::INFINITY], &question(None, 1, vec![])), None);
    }
}
