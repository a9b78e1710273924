//! The best articles of those that are considered one after the other.

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::inference::Articles;

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

/// A logit and the position of its article. The greatest is the worst, so that a heap removes the worst first. Of equal
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
        by_logit.then_with(|| self.articles.index.compare(self.article, other.article))
    }
}

impl PartialOrd for Contender<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// For tests: articles whose ids are in another order than their positions.
#[cfg(test)]
pub(super) fn with_mixed_ids(articles: u32) -> std::sync::Arc<Articles> {
    let index = crate::catalogue::ArticleIndex::of_ids((0..articles).map(mixed_id));
    std::sync::Arc::new(Articles::new(index, std::iter::empty()))
}

#[cfg(test)]
pub(super) fn mixed_id(position: u32) -> atelier_core::domain::ArticleId {
    atelier_core::domain::ArticleId::new(format!("a-{:05}", position.wrapping_mul(48_271) % 65_521)).unwrap()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            let position = |(at, contender): (usize, Contender<'_>)| {
                (at < k || (k > 0 && margin > 0.0 && contender.logit >= worst)).then_some(contender.article)
            };
            let expected: Vec<u32> = expected.into_iter().enumerate().filter_map(position).collect();
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
}
