//! The order of a question with steering, collected while the panels go by.
//!
//! Keeps the logits of all admissible articles: which of them are moved, and from which rank, is known only at the end.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use pulp::Simd;

use super::{
    best::{Best, Contender},
    simd::{any_above, lanes, largest, numbers},
    table::PANEL,
};
use crate::inference::{Question, Steering};

/// What rounding adds to the difference of two logits with offsets.
const ROUNDING: f32 = 1e-4;

#[derive(Debug)]
pub(super) struct Steered<'q> {
    question: &'q Question,
    steering: &'q Steering,
    /// The best by their logits with offsets.
    best: Best<'q>,
    /// The panels with admissible articles, each with its logits; those of other articles are infinitely low.
    panels: Vec<(usize, [f32; PANEL])>,
    margin: f32,
}

/// An article that is chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    pub(super) article: u32,
    /// Without its offset.
    pub(super) logit: f32,
    /// How many admissible articles have a higher logit, if steering may have moved it.
    pub(super) better: Option<usize>,
}

impl<'q> Steered<'q> {
    pub(super) fn new(question: &'q Question, error: f32) -> Option<Self> {
        let steering = question.steering.as_deref()?;
        let margin = if error > 0.0 { 2.0 * error + ROUNDING } else { 0.0 };
        Some(Self { question, steering, best: Best::new(question.k, margin), panels: Vec::new(), margin })
    }

    /// Adds a panel with admissible articles.
    #[inline(always)]
    pub(super) fn add_panel<S: Simd, const VECTORS: usize>(
        &mut self,
        simd: S,
        panel: usize,
        bits: u32,
        logits: &[S::f32s; VECTORS],
    ) {
        let never = simd.splat_f32s(f32::NEG_INFINITY);
        let inside = lanes::<S, VECTORS>(simd, bits);
        let offsets = S::as_simd_f32s(self.steering.offsets.panel(panel)).0;
        let (mut own, mut moved) = (*logits, *logits);
        for vector in 0..VECTORS {
            own[vector] = simd.select_f32s(inside[vector], logits[vector], never);
            moved[vector] = simd.add_f32s(own[vector], offsets[vector]);
        }
        self.panels.push((panel, numbers::<S, VECTORS>(&own)));
        if any_above(simd, largest(simd, &moved), self.best.bar()) {
            scan(&mut self.best, self.question, panel, &numbers::<S, VECTORS>(&moved), u32::MAX);
        }
    }

    /// Adds the panels that follow.
    pub(super) fn append(&mut self, next: Self) {
        next.best.all().for_each(|contender| self.best.consider(contender));
        self.panels.extend(next.panels);
    }

    /// The `k` best, and the best of each wanted set. `exact` is an article's logit without its offset.
    pub(super) fn choose(mut self, exact: &impl Fn(u32) -> f32) -> (Vec<Chosen>, Vec<Vec<Chosen>>) {
        let best = std::mem::take(&mut self.best);
        let mut top = self.sort(best, self.question.k, exact);
        let mut wanted = Vec::with_capacity(self.steering.wanted.len());
        for (set, count) in &self.steering.wanted {
            let mut best = Best::new(*count, self.margin);
            for (panel, logits) in &self.panels {
                #[expect(clippy::cast_possible_truncation, reason = "that half of the word")]
                let bits = (set.words()[panel / 2] >> (panel % 2 * PANEL)) as u32;
                if bits != 0 {
                    let offsets = self.steering.offsets.panel(*panel);
                    let moved = std::array::from_fn(|lane| logits[lane] + offsets[lane]);
                    scan(&mut best, self.question, *panel, &moved, bits);
                }
            }
            wanted.push(self.sort(best, *count, exact));
        }
        let is_moved = |chosen: &&mut Chosen| self.steering.offsets.of(chosen.article).abs() > 0.0;
        let mut moved: Vec<&mut Chosen> = top.iter_mut().filter(is_moved).collect();
        moved.extend(wanted.iter_mut().flatten());
        self.count_better(&mut moved, exact);
        (top, wanted)
    }

    fn sort(&self, best: Best<'q>, count: usize, exact: &impl Fn(u32) -> f32) -> Vec<Chosen> {
        let with_offset = |contender: Contender<'q>| {
            let logit = exact(contender.article);
            (Contender { logit: logit + self.steering.offsets.of(contender.article), ..contender }, logit)
        };
        let mut sorted: Vec<(Contender<'_>, f32)> = best.all().map(with_offset).collect();
        sorted.sort_unstable_by_key(|(contender, _)| *contender);
        let chosen = sorted.into_iter().take(count);
        chosen.map(|(Contender { article, .. }, logit)| Chosen { article, logit, better: None }).collect()
    }

    /// Compares the pass's logits, and the exact ones of articles whose order those do not say.
    fn count_better(&self, moved: &mut [&mut Chosen], exact: &impl Fn(u32) -> f32) {
        let error = self.margin / 2.0;
        let lowest = moved.iter().map(|own| own.logit).fold(f32::INFINITY, f32::min) - error;
        let contender = |article, logit| Contender { logit, article, articles: &self.question.articles };
        for (panel, logits) in &self.panels {
            if logits.iter().copied().fold(f32::NEG_INFINITY, f32::max) < lowest {
                continue;
            }
            for own in &mut *moved {
                let above = logits.iter().map(|logit| u32::from(*logit > own.logit + error)).sum::<u32>();
                let at_least = logits.iter().map(|logit| u32::from(*logit >= own.logit - error)).sum::<u32>();
                let mut better = above as usize;
                if above < at_least {
                    let is_near = |logit: f32| logit >= own.logit - error && logit <= own.logit + error;
                    let near = (0..).zip(logits).filter(|(_, logit)| is_near(**logit));
                    let near = near.map(|(lane, _)| position(*panel) + lane);
                    let this = contender(own.article, own.logit);
                    better += near.filter(|near| contender(*near, exact(*near)) < this).count();
                }
                *own.better.get_or_insert(0) += better;
            }
        }
    }
}

/// The position of a panel's first article.
fn position(panel: usize) -> u32 {
    u32::try_from(panel * PANEL).expect("articles are counted in 32 bits; this is a bug")
}

/// Considers the articles of a panel whose bits are set and whose logits are finite.
#[inline(never)]
fn scan<'q>(best: &mut Best<'q>, question: &'q Question, panel: usize, logits: &[f32; PANEL], bits: u32) {
    for (lane, &logit) in (0..).zip(logits) {
        // An article that is not admissible is infinitely low.
        if logit > best.bar() && logit > f32::NEG_INFINITY && bits >> lane & 1 == 1 {
            best.consider(Contender { logit, article: position(panel) + lane, articles: &question.articles });
        }
    }
}
