//! The order of a question with steering, collected while the panels go by.
//!
//! Only the end shows which articles move, and from which rank, so the logits of panels that may still count are kept.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use std::sync::Arc;

use atelier_core::domain::Mask;

use super::{
    best::{Best, Contender},
    simd::{Pairs, WithPairs, any_above, dispatch, lanes, largest, numbers},
    table::{PANEL, PART, bits_of_panel},
};
use crate::inference::{Question, Steering};

/// Rounding's part of the difference of two logits with offsets.
const ROUNDING: f32 = 1e-4;

/// Panels in order, and their logits.
type Part = Vec<(usize, [f32; PANEL])>;

#[derive(Debug)]
pub(super) struct Steered<'q> {
    question: &'q Question,
    admissible: &'q Mask,
    steering: &'q Steering,
    /// The panels of this part, and their logits.
    part: Part,
    /// The best by their logits with offsets.
    best: Best<'q>,
    /// Those of each wanted set.
    wanted: Vec<Best<'q>>,
    /// Those of the parts before that can count. The logits of articles that are not admissible are infinitely low.
    kept: Part,
    /// No article whose own logit is up to this is better than one that the answer shows.
    floor: f32,
    margin: f32,
}

/// An article that is chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    pub(super) article: u32,
    /// Without its offset.
    pub(super) logit: f32,
    /// How many admissible articles have a higher logit, if the answer shows it and steering may have moved it.
    pub(super) better: Option<usize>,
}

impl<'q> Steered<'q> {
    pub(super) fn new(question: &'q Question, admissible: &'q Mask, error: f32) -> Option<Box<Self>> {
        let steering = question.steering.as_deref()?;
        let margin = if error > 0.0 { 2.0 * error + ROUNDING } else { 0.0 };
        // A set is full once it has all that there are.
        let of_set =
            |(set, count): &(Arc<Mask>, usize)| Best::new(admissible.count_common(set).min(*count), margin);
        Some(Box::new(Self {
            question,
            admissible,
            steering,
            part: Vec::with_capacity(PART),
            best: Best::new(question.k, margin),
            wanted: steering.wanted.iter().map(of_set).collect(),
            kept: Vec::with_capacity(4 * PART),
            floor: if steering.shown.is_some() { f32::NEG_INFINITY } else { f32::INFINITY },
            margin,
        }))
    }

    /// Considers some articles of a panel for the best of all, or of a wanted set.
    #[inline(never)]
    fn consider(&mut self, set: Option<usize>, panel: usize, mut bits: u32, moved: &[f32; PANEL]) {
        let first = position(panel);
        let best = set.map_or(&mut self.best, |set| &mut self.wanted[set]);
        while bits != 0 {
            let lane = bits.trailing_zeros();
            bits &= bits - 1;
            let logit = moved[lane as usize];
            if logit > best.bar() {
                best.consider(Contender { logit, article: first + lane, articles: &self.question.articles });
            }
        }
        if self.steering.shown.is_some() {
            let bar = self.wanted.iter().fold(self.best.bar(), |lowest, best| lowest.min(best.bar()));
            self.floor = bar - self.steering.offsets.highest() - 2.0 * self.margin;
        }
    }

    /// Adds a panel with admissible articles.
    #[inline(always)]
    pub(super) fn add_panel(&mut self, panel: usize, logits: [f32; PANEL]) {
        self.part.push((panel, logits));
    }

    /// Looks at the panels of a part, one question after the other: all that a question needs then stays in the nearest cache.
    #[inline(always)]
    pub(super) fn end_part<S: Pairs, const VECTORS: usize>(&mut self, simd: S) {
        let mut part = std::mem::take(&mut self.part);
        let steering = self.steering;
        let never = simd.splat_f32s(f32::NEG_INFINITY);
        for (panel, mut logits) in part.drain(..) {
            let bits = bits_of_panel(self.admissible, panel);
            let inside = lanes::<S, VECTORS>(simd, bits);
            let (own, _) = S::as_mut_simd_f32s(&mut logits);
            let (offsets, _) = S::as_simd_f32s(steering.offsets.panel(panel));
            let mut moved = [never; VECTORS];
            for vector in 0..VECTORS {
                own[vector] = simd.select_f32s(inside[vector], own[vector], never);
                moved[vector] = simd.add_f32s(own[vector], offsets[vector]);
            }
            if any_above(simd, largest(simd, &moved), self.best.bar()) {
                self.consider(None, panel, bits, &numbers::<S, VECTORS>(&moved));
            }
            for (at, (set, _)) in steering.wanted.iter().enumerate() {
                let bits = bits & bits_of_panel(set, panel);
                if bits == 0 {
                    continue;
                }
                let (inside, mut highest) = (lanes::<S, VECTORS>(simd, bits), never);
                for vector in 0..VECTORS {
                    highest = simd.max_f32s(highest, simd.select_f32s(inside[vector], moved[vector], never));
                }
                if any_above(simd, highest, self.wanted[at].bar()) {
                    self.consider(Some(at), panel, bits, &numbers::<S, VECTORS>(&moved));
                }
            }
            if any_above(simd, largest(simd, own), self.floor) {
                self.kept.push((panel, logits));
            }
        }
        self.part = part;
    }

    /// Adds the panels that follow.
    pub(super) fn append(&mut self, next: Self) {
        next.best.all().for_each(|contender| self.best.consider(contender));
        for (best, next) in self.wanted.iter_mut().zip(next.wanted) {
            next.all().for_each(|contender| best.consider(contender));
        }
        self.kept.extend(next.kept);
    }

    /// The `k` best, and the best of each wanted set. `exact` is an article's logit without its offset.
    pub(super) fn choose(mut self, exact: &impl Fn(u32) -> f32) -> (Vec<Chosen>, Vec<Vec<Chosen>>) {
        let best = std::mem::take(&mut self.best);
        let mut top = self.sort(best, self.question.k, exact);
        let sets = std::mem::take(&mut self.wanted).into_iter().zip(&self.steering.wanted);
        let mut wanted: Vec<Vec<Chosen>> =
            sets.map(|(best, (_, count))| self.sort(best, *count, exact)).collect();
        self.count_better(&mut top, &mut wanted, exact);
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

    /// Counts what is better than the articles that the answer shows at other places than their own: by the pass's logits, and
    /// by the exact ones of articles whose order those do not say.
    fn count_better(&self, top: &mut [Chosen], wanted: &mut [Vec<Chosen>], exact: &impl Fn(u32) -> f32) {
        let Some(shown) = &self.steering.shown else { return };
        let positions = |chosen: &[Chosen]| chosen.iter().map(|chosen| chosen.article).collect::<Vec<u32>>();
        let in_sets: Vec<Vec<u32>> = wanted.iter().map(|set| positions(set)).collect();
        let shown = shown.choose(&positions(top), &in_sets);
        let mut moved: Vec<&mut Chosen> = top.iter_mut().chain(wanted.iter_mut().flatten()).collect();
        moved.retain(|chosen| shown.contains(&chosen.article));
        if moved.is_empty() {
            return;
        }
        moved.sort_unstable_by(|one, other| one.logit.total_cmp(&other.logit));
        let error = self.margin / 2.0;
        let logits: Vec<f32> = moved.iter().map(|own| own.logit).collect();
        let (counts, near) = dispatch(Count { kept: &self.kept, logits: &logits, error });
        let contender = |article, logit| Contender { logit, article, articles: &self.question.articles };
        for (own, count) in moved.iter_mut().zip(counts) {
            own.better = Some(count);
        }
        for (at, (panel, logits)) in near {
            let own = &mut *moved[at];
            let this = contender(own.article, own.logit);
            let near_by = own.logit - error..=own.logit + error;
            let is_near = |article: u32, logit: f32| near_by.contains(&logit) && article != own.article;
            let near = (position(*panel)..).zip(logits).filter(|(article, logit)| is_near(*article, **logit));
            let better = near.filter(|(near, _)| contender(*near, exact(*near)) < this).count();
            own.better = own.better.map(|sure| sure + better);
        }
    }
}

/// Counts, for each of some logits, those that are surely higher, and finds the panels with some that may be.
struct Count<'a> {
    kept: &'a Part,
    /// From the lowest.
    logits: &'a [f32],
    error: f32,
}

impl<'a> WithPairs for Count<'a> {
    /// The counts, and panels with the number of a logit that is near one of theirs.
    type Output = (Vec<usize>, Vec<(usize, &'a (usize, [f32; PANEL]))>);

    #[inline(always)]
    fn with_pairs<S: Pairs, const VECTORS: usize>(self, simd: S) -> Self::Output {
        let Self { kept, logits, error } = self;
        let (none, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
        let mut counts = vec![none; logits.len()];
        let mut near = Vec::new();
        for panel in kept {
            let (vectors, _) = S::as_simd_f32s(&panel.1);
            let highest = largest(simd, vectors);
            for (number, logit) in logits.iter().enumerate() {
                let (low, high) = (logit - error, logit + error);
                if !any_above(simd, highest, low.next_down()) {
                    break;
                }
                let (low, high) = (simd.splat_f32s(low), simd.splat_f32s(high));
                let (mut above, mut between) = (counts[number], none);
                for &vector in vectors {
                    let higher = simd.select_f32s(simd.greater_than_f32s(vector, high), one, none);
                    let as_high = simd.select_f32s(simd.greater_than_or_equal_f32s(vector, low), one, none);
                    above = simd.add_f32s(above, higher);
                    between = simd.add_f32s(between, simd.sub_f32s(as_high, higher));
                }
                counts[number] = above;
                if any_above(simd, between, 0.0) {
                    near.push((number, panel));
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let whole = |counts: S::f32s| simd.reduce_sum_f32s(counts) as usize;
        (counts.into_iter().map(whole).collect(), near)
    }
}

/// The position of a panel's first article.
fn position(panel: usize) -> u32 {
    u32::try_from(panel * PANEL).expect("articles are counted in 32 bits")
}
