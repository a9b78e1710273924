//! From a row of logits to an answer: the part of a question that a model cannot do.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{
    Answer, Candidate, Question, Standing,
    softmax::{largest, sum_exp, sum_exp_of},
};

/// The best `k` of those that come by, in the articles' order.
#[derive(Debug)]
pub(super) struct Best {
    heap: BinaryHeap<Contender>,
    k: usize,
    /// Most articles fall to this one comparison. Of equal logits the first stays: articles come in order.
    bar: f32,
}

impl Best {
    pub(super) fn new(k: usize) -> Self {
        let bar = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { heap: BinaryHeap::with_capacity(k + 1), k, bar }
    }

    /// Who is not above it need not come by once there are `k`; until then it is below every number.
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

/// A logit and its article. The greatest is the worst, so that a heap gives the worst away first; of equal logits
/// the later article is the worse.
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

/// The answers in rows of all logits.
pub(super) fn choose_each(logits: &[f32], articles: usize, questions: &[Question]) -> Vec<Option<Answer>> {
    logits.chunks_exact(articles).zip(questions).map(|(logits, question)| choose(logits, question)).collect()
}

/// None where the model answered with something that is no number.
pub(super) fn choose(logits: &[f32], question: &Question) -> Option<Answer> {
    let highest = largest(logits);
    if !highest.is_finite() {
        return None;
    }
    let total = sum_exp(logits, highest);
    let probability = |logit: f32| f64::from(logit - highest).exp() / total;
    let mask = question.admissible.as_deref();
    let admissible_probability =
        mask.map_or(1.0, |mask| (sum_exp_of(logits, mask, highest) / total).min(1.0));
    let top = best(logits, question)
        .into_iter()
        .map(|Contender { logit, article }| Candidate { article, probability: probability(logit) })
        .collect();
    let standing = |&article: &u32| {
        let logit = logits[article as usize];
        Standing {
            log_probability: f64::from(logit - highest) - total.ln(),
            rank: question.ranks.then(|| 1 + above(logits, question, Contender { logit, article })),
        }
    };
    Some(Answer {
        top,
        of: question.of.iter().map(standing).collect(),
        admissible: mask.map_or(logits.len(), crate::domain::Mask::count),
        admissible_probability,
        personas: None,
        steps: None,
    })
}

/// The best `k`, best first.
fn best(logits: &[f32], question: &Question) -> Vec<Contender> {
    let mut best = Best::new(question.k);
    each(logits, question, |article, logit| best.consider(article, logit));
    best.sorted()
}

/// How many of those who may be suggested stand before this one.
fn above(logits: &[f32], question: &Question, one: Contender) -> usize {
    let mut count = 0;
    each(logits, question, |article, logit| {
        count += usize::from(Contender { logit, article } < one);
    });
    count
}

fn each(logits: &[f32], question: &Question, mut visit: impl FnMut(u32, f32)) {
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

    fn question(admissible: Option<Mask>, k: usize, of: Vec<u32>) -> Question {
        let context: Vec<Vec<u32>> = Vec::new();
        let admissible = admissible.map(Arc::new);
        Question { slots: vec![], blank: 0, context: context.into(), admissible, k, of, ranks: true }
    }

    proptest! {
        #[test]
        fn it_is_what_sorting_says(
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
            let of: Vec<u32> = sorted.first().into_iter().chain(sorted.last()).copied().collect();
            let answer = choose(&logits, &question(Some(mask), k, of.clone())).unwrap();
            let found: Vec<u32> = answer.top.iter().map(|candidate| candidate.article).collect();
            prop_assert_eq!(&found, &sorted[..k.min(sorted.len())]);
            for candidate in &answer.top {
                let expected = f64::from(logits[candidate.article as usize]).exp() / total;
                prop_assert!((candidate.probability / expected - 1.0).abs() < 1e-5);
            }
            let share: f64 = sorted.iter().map(|&a| f64::from(logits[a as usize]).exp()).sum::<f64>() / total;
            prop_assert!((answer.admissible_probability - share).abs() < 1e-5);
            prop_assert_eq!(answer.admissible, sorted.len());
            for (article, standing) in of.iter().zip(&answer.of) {
                let place = sorted.iter().position(|a| a == article).unwrap();
                prop_assert_eq!(standing.rank, Some(place + 1));
                let expected = f64::from(logits[*article as usize]) - total.ln();
                prop_assert!((standing.log_probability - expected).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn everybody_may_be_suggested_where_nothing_is_said() {
        let answer = choose(&[0.0, 1.0, 1.0, -1.0], &question(None, 250, vec![2])).unwrap();
        assert_eq!(answer.top.iter().map(|c| c.article).collect::<Vec<_>>(), [1, 2, 0, 3]);
        assert_eq!((answer.admissible, answer.of[0].rank), (4, Some(2)));
        assert!((answer.top.iter().map(|c| c.probability).sum::<f64>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_number_is_no_answer() {
        assert_eq!(choose(&[0.0, f32::NAN], &question(None, 1, vec![])), None);
        assert_eq!(choose(&[0.0, f32::INFINITY], &question(None, 1, vec![])), None);
    }
}
