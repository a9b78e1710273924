//! The order of a question with steering, collected while the panels go by.
//!
//! Keeps the logits of all admissible articles: which of them are moved, and from which rank, is known only at the end.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use super::{
    best::{Best, Contender},
    simd::{Pairs, WithPairs, any_above, dispatch},
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
    /// The panels with admissible articles, in order.
    panels: Vec<Kept>,
    margin: f32,
}

/// The logits of a panel; those of articles that are not admissible are infinitely low.
#[derive(Debug)]
struct Kept {
    panel: usize,
    logits: [f32; PANEL],
    /// The highest of them, without offsets and with them.
    highest: f32,
    highest_moved: f32,
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
    pub(super) fn new(question: &'q Question, error: f32) -> Option<Box<Self>> {
        let steering = question.steering.as_deref()?;
        let margin = if error > 0.0 { 2.0 * error + ROUNDING } else { 0.0 };
        let best = Best::new(question.k, margin);
        Some(Box::new(Self { question, steering, best, panels: Vec::new(), margin }))
    }

    /// Adds a panel with admissible articles. It is apart from the pass, so that a question without steering pays nothing.
    #[inline(never)]
    pub(super) fn add_panel(&mut self, panel: usize, bits: u32, logits: &[f32; PANEL]) {
        let offsets = self.steering.offsets.panel(panel);
        let (mut own, mut moved) = ([f32::NEG_INFINITY; PANEL], [f32::NEG_INFINITY; PANEL]);
        for lane in 0..PANEL {
            own[lane] = if bits & (1 << lane) == 0 { f32::NEG_INFINITY } else { logits[lane] };
            moved[lane] = own[lane] + offsets[lane];
        }
        let kept = Kept { panel, logits: own, highest: highest(&own), highest_moved: highest(&moved) };
        scan(&mut self.best, self.question, self.steering, &kept, bits);
        self.panels.push(kept);
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
        let mut places: Vec<Option<usize>> = Vec::new();
        for (at, kept) in self.panels.iter().enumerate() {
            places.resize(kept.panel, None);
            places.push(Some(at));
        }
        let mut wanted = Vec::with_capacity(self.steering.wanted.len());
        for (set, count) in &self.steering.wanted {
            let mut best = Best::new(*count, self.margin);
            for (word, bits) in set.words().iter().enumerate().filter(|(_, bits)| **bits != 0) {
                for half in 0..2 {
                    let Some(at) = places.get(2 * word + half).copied().flatten() else { continue };
                    #[expect(clippy::cast_possible_truncation, reason = "that half of the word")]
                    let bits = (bits >> (half * PANEL)) as u32;
                    scan(&mut best, self.question, self.steering, &self.panels[at], bits);
                }
            }
            wanted.push(self.sort(best, *count, exact));
        }
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
        let error = self.margin / 2.0;
        let logits: Vec<f32> = moved.iter().map(|own| own.logit).collect();
        let (counts, near) = dispatch(Count { panels: &self.panels, logits: &logits, error });
        let contender = |article, logit| Contender { logit, article, articles: &self.question.articles };
        for (own, count) in moved.iter_mut().zip(counts) {
            own.better = Some(count);
        }
        for (at, panel) in near {
            let (own, Kept { panel, logits, .. }) = (&mut moved[at], &self.panels[panel]);
            let this = contender(own.article, own.logit);
            let is_near = |logit: f32| logit >= own.logit - error && logit <= own.logit + error;
            let near = (position(*panel)..).zip(logits).filter(|(_, logit)| is_near(**logit));
            let better = near.filter(|(near, _)| contender(*near, exact(*near)) < this).count();
            own.better = own.better.map(|sure| sure + better);
        }
    }
}

/// Counts, for each of some logits, those that are surely higher, and finds the panels with some that may be.
struct Count<'a> {
    panels: &'a [Kept],
    logits: &'a [f32],
    error: f32,
}

impl WithPairs for Count<'_> {
    /// The counts, and pairs of a logit's and a panel's numbers.
    type Output = (Vec<usize>, Vec<(usize, usize)>);

    #[inline(always)]
    fn with_pairs<S: Pairs>(self, simd: S) -> Self::Output {
        let Self { panels, logits, error } = self;
        let lowest = logits.iter().copied().fold(f32::INFINITY, f32::min) - error;
        let (none, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
        let mut counts = vec![none; logits.len()];
        let mut near = Vec::new();
        for (at, kept) in panels.iter().enumerate() {
            if kept.highest < lowest {
                continue;
            }
            let (vectors, _) = S::as_simd_f32s(&kept.logits);
            for (number, logit) in logits.iter().enumerate() {
                let (low, high) = (simd.splat_f32s(logit - error), simd.splat_f32s(logit + error));
                let (mut above, mut between) = (counts[number], none);
                for &vector in vectors {
                    let higher = simd.select_f32s(simd.greater_than_f32s(vector, high), one, none);
                    let as_high = simd.select_f32s(simd.greater_than_or_equal_f32s(vector, low), one, none);
                    above = simd.add_f32s(above, higher);
                    between = simd.add_f32s(between, simd.sub_f32s(as_high, higher));
                }
                counts[number] = above;
                if any_above(simd, between, 0.0) {
                    near.push((number, at));
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let whole = |counts: S::f32s| simd.reduce_sum_f32s(counts) as usize;
        (counts.into_iter().map(whole).collect(), near)
    }
}

/// Of a panel; in lanes, which the compiler computes together.
fn highest(logits: &[f32; PANEL]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 8];
    for eight in logits.as_chunks::<8>().0 {
        for (highest, logit) in lanes.iter_mut().zip(eight) {
            *highest = if *logit > *highest { *logit } else { *highest };
        }
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// The position of a panel's first article.
fn position(panel: usize) -> u32 {
    u32::try_from(panel * PANEL).expect("articles are counted in 32 bits; this is a bug")
}

/// Considers the admissible articles of a panel whose bits are set.
fn scan<'q>(best: &mut Best<'q>, question: &'q Question, steering: &Steering, kept: &Kept, mut bits: u32) {
    if kept.highest_moved <= best.bar() {
        return;
    }
    let (first, offsets) = (position(kept.panel), steering.offsets.panel(kept.panel));
    while bits != 0 {
        let lane = bits.trailing_zeros();
        bits &= bits - 1;
        let logit = kept.logits[lane as usize] + offsets[lane as usize];
        // An article that is not admissible is infinitely low.
        if logit > best.bar() && logit > f32::NEG_INFINITY {
            best.consider(Contender { logit, article: first + lane, articles: &question.articles });
        }
    }
}
