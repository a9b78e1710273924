//! Makes an answer from a row of logits.

use std::{cmp::Ordering, collections::BinaryHeap};

use atelier_core::domain::Mask;

use super::{
    Answer, Articles, Candidate, Placement, Question,
    softmax::{largest, masked_sum_exp, sum_exp},
};

/// The `k` articles with the highest logits, and those that are within a margin of them, in whichever order they are
/// considered.
#[derive(Debug, Default)]
pub(super) struct Best<'a> {
    heap: BinaryHeap<Contender<'a>>,
    /// Considered articles that are worse, some of which may be below the margin by now.
    near: Vec<Contender<'a>>,
    k: usize,
    margin: f32,
    /// Rejects most articles with one comparison: just below the worst logit and the margin, so that an equal one is looked
    /// at.
    bar: f32,
}

impl<'a> Best<'a> {
    pub(super) fn new(k: usize, margin: f32) -> Self {
        let bar = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { heap: BinaryHeap::with_capacity(k), near: Vec::new(), k, margin, bar }
    }

    /// A logit that is not above this need not be considered. It is below all numbers until there are `k` articles.
    pub(super) fn bar(&self) -> f32 {
        self.bar
    }

    pub(super) fn consider(&mut self, contender: Contender<'a>) {
        let displaced = if self.heap.len() < self.k {
            self.heap.push(contender);
            None
        } else if let Some(mut worst) = self.heap.peek_mut()
            && contender < *worst
        {
            Some(std::mem::replace(&mut *worst, contender))
        } else {
            Some(contender)
        };
        if self.heap.len() == self.k {
            self.bar = self.heap.peek().map_or(self.bar, |worst| (worst.logit - self.margin).next_down());
        }
        if let Some(displaced) = displaced {
            self.keep_near(displaced);
        }
    }

    fn keep_near(&mut self, contender: Contender<'a>) {
        if self.margin <= 0.0 || contender.logit <= self.bar {
            return;
        }
        let full = self.near.capacity();
        if self.near.len() == full {
            self.near.retain(|contender| contender.logit > self.bar);
            // Else the next ones could be retained one by one.
            self.near.reserve(if self.near.len() > full / 2 { full } else { 0 });
        }
        self.near.push(contender);
    }

    /// In no order.
    pub(super) fn all(self) -> impl Iterator<Item = Contender<'a>> {
        let near = self.near.into_iter().filter(move |contender| contender.logit > self.bar);
        self.heap.into_iter().chain(near)
    }
}

/// A logit and the place of its article. The greatest is the worst, so that a heap removes the worst first. Of equal
/// logits, the article with the later id is worse.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contender<'a> {
    pub(super) logit: f32,
    pub(super) article: u32,
    pub(super) articles: &'a Articles,
}

impl PartialEq for Contender<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Contender<'_> {}

impl Ord for Contender<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_logit = other.logit.total_cmp(&self.logit);
        by_logit.then_with(|| self.articles.compare(self.article, other.article))
    }
}

impl PartialOrd for Contender<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Makes an answer from a row of logits, one for each place. `known` are the places of articles, of which all may be
/// suggested if the question does not say which. Returns None if a logit is not finite.
pub(super) fn choose(logits: &[f32], known: &Mask, question: &Question) -> Option<Answer> {
    let admissible = question.admissible.as_deref().unwrap_or(known);
    let highest = largest(logits);
    if !highest.is_finite() {
        return None;
    }
    if question.only_admissible && admissible.is_empty() {
        return Some(Answer::empty(question));
    }
    let of_admissible = masked_sum_exp(logits, admissible, highest);
    let total = if question.only_admissible { of_admissible } else { sum_exp(logits, highest) };
    let probability = |logit: f32| f64::from(logit - highest).exp() / total;
    let admissible_probability = (of_admissible / total).min(1.0);
    let contender =
        |article: u32| Contender { logit: logits[article as usize], article, articles: &question.articles };
    let mut best = Best::new(question.k, 0.0);
    admissible.iter().for_each(|article| best.consider(contender(article)));
    let mut best: Vec<Contender<'_>> = best.all().collect();
    best.sort_unstable();
    let top = best
        .into_iter()
        .map(|Contender { logit, article, .. }| Candidate { article, probability: probability(logit) })
        .collect();
    let placement = |&article: &u32| {
        let one = contender(article);
        let count_above = || admissible.iter().filter(|&article| contender(article) < one).count();
        Placement {
            log_probability: f64::from(one.logit - highest) - total.ln(),
            rank: question.ranks.then(|| 1 + count_above()),
        }
    };
    Some(Answer {
        top,
        placements: question.placements_of.iter().map(placement).collect(),
        admissible: admissible.count(),
        admissible_probability,
        personas: None,
        steps: None,
    })
}

/// For tests: articles whose ids are in another order than their places.
#[cfg(test)]
pub(super) fn with_mixed_ids(articles: u32) -> std::sync::Arc<Articles> {
    let index = crate::catalogue::ArticleIndex::of_ids((0..articles).map(mixed_id));
    std::sync::Arc::new(Articles::new(index, std::iter::empty()))
}

#[cfg(test)]
pub(super) fn mixed_id(place: u32) -> atelier_core::domain::ArticleId {
    atelier_core::domain::ArticleId::new(format!("a-{:05}", place.wrapping_mul(48_271) % 65_521)).unwrap()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn question(admissible: Option<Mask>, k: usize, placements_of: Vec<u32>) -> Question {
        let context: Vec<Vec<u32>> = Vec::new();
        let admissible = admissible.map(Arc::new);
        let question = Question::new(with_mixed_ids(300), vec![], 0, context.into());
        Question { admissible, k, placements_of, ranks: true, ..question }
    }

    fn choose(logits: &[f32], question: &Question) -> Option<Answer> {
        super::choose(logits, &Mask::all(logits.len()), question)
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
            let id = |place: u32| mixed_id(place).to_string();
            sorted.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then_with(|| id(a).cmp(&id(b))));
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

    proptest! {
        #[test]
        fn the_best_and_what_is_near_them_are_kept(
            steps in prop::collection::vec(-50_i8..50, 0..300), k in 0_usize..30, margin in 0_u8..4, cut in 0_usize..300,
        ) {
            let articles = with_mixed_ids(300);
            let contenders = (0..).zip(&steps).map(|(article, &step)| {
                Contender { logit: f32::from(step) / 4.0, article, articles: &articles }
            });
            let margin = f32::from(margin) / 8.0;
            let mut expected: Vec<Contender<'_>> = contenders.clone().collect();
            expected.sort_unstable();
            let worst = expected.get(k.wrapping_sub(1)).map_or(f32::NEG_INFINITY, |worst| worst.logit - margin);
            let place = |(at, contender): (usize, Contender<'_>)| {
                (at < k || (k > 0 && margin > 0.0 && contender.logit >= worst)).then_some(contender.article)
            };
            let expected: Vec<u32> = expected.into_iter().enumerate().filter_map(place).collect();
            // In two halves that are merged, as on two cores.
            let (mut best, mut rest) = (Best::new(k, margin), Best::new(k, margin));
            for (at, contender) in contenders.enumerate() {
                let half = if at < cut { &mut best } else { &mut rest };
                half.consider(contender);
            }
            rest.all().for_each(|contender| best.consider(contender));
            let mut found: Vec<Contender<'_>> = best.all().collect();
            found.sort_unstable();
            prop_assert_eq!(found.into_iter().map(|contender| contender.article).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn without_a_mask_all_articles_are_admissible() {
        let answer = choose(&[0.0, 1.0, 1.0, -1.0], &question(None, 250, vec![2])).unwrap();
        assert!(mixed_id(2) < mixed_id(1), "of equal logits, the first id is first");
        assert_eq!(answer.top.iter().map(|c| c.article).collect::<Vec<_>>(), [2, 1, 0, 3]);
        assert_eq!((answer.admissible, answer.placements[0].rank), (4, Some(1)));
        assert!((answer.top.iter().map(|c| c.probability).sum::<f64>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn logits_that_are_not_finite_give_no_answer() {
        assert_eq!(choose(&[0.0, f32::NAN], &question(None, 1, vec![])), None);
        assert_eq!(choose(&[0.0, f32::INFINITY], &question(None, 1, vec![])), None);
    }
}
