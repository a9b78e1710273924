//! A question's needs of its row of logits, collected while the panels go by.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use atelier_core::domain::Mask;
use pulp::Simd;

use super::{
    best::{Best, Contender},
    simd::{Pairs, any_above, exp, lanes, largest, numbers},
    steered::{Chosen, Steered},
    table::{NO_ARTICLE, PANEL, bits_of_panel},
};
use crate::inference::{Answer, Candidate, Placement, Question};

/// The number of panels that are summed in single precision before they are added in double precision.
const FLUSH: usize = 64;
/// The lanes of the widest register.
const LANES: usize = 16;
/// The number of most likely articles that count with their exact logits in the sum over all. It is the same for any `k`, so
/// that an article has the same probability among few suggestions and among many.
const LIKELIEST: usize = 8;

#[derive(Debug)]
pub(super) struct Tally<'q> {
    question: &'q Question,
    /// The articles that may be suggested.
    mask: &'q Mask,
    /// Added to logits, by article.
    boosts: &'q [(u32, f32)],
    /// Those of panels that did not go by yet.
    next_boosts: &'q [(u32, f32)],
    /// The articles whose ranks are wanted, each with the number of admissible articles that are better.
    named: Vec<(Contender<'q>, usize)>,
    best: Best<'q>,
    steered: Option<Box<Steered<'q>>>,
    /// The most likely of all articles, if all count.
    likeliest: Best<'q>,
    /// The largest logit of this part so far. It is subtracted from all logits before the exponential.
    highest: f32,
    all: Sum,
    admissible: Sum,
    /// The finished parts, in order.
    parts: Vec<PartSums>,
    /// Zero unless a logit was not finite.
    taint: [f32; LANES],
}

/// The sums of one part, relative to its largest logit.
#[derive(Debug)]
struct PartSums {
    highest: f32,
    all: f64,
    admissible: f64,
}

/// Σ exp(logit − highest), first lane by lane, then in double precision.
#[derive(Debug, Default)]
struct Sum {
    lanes: [f32; LANES],
    total: f64,
}

impl Sum {
    fn flush(&mut self) {
        self.total += f64::from(self.lanes.iter().sum::<f32>());
        self.lanes = [0.0; LANES];
    }

    fn scale(&mut self, by: f64) {
        self.flush();
        self.total *= by;
    }
}

/// The number of best articles whose exact logits are computed. Steering has its own.
fn kept(question: &Question) -> usize {
    let k = if question.steering.is_none() || question.ranks { question.k } else { 0 };
    k.max(LIKELIEST)
}

impl<'q> Tally<'q> {
    /// The pass's logits are at most `error` from the exact ones.
    pub(super) fn new(question: &'q Question, known: &'q Mask, boosts: &'q [(u32, f32)], error: f32) -> Self {
        let mask = question.admissible.as_deref().unwrap_or(known);
        let likeliest = if question.only_admissible { 0 } else { LIKELIEST };
        Self {
            question,
            mask,
            boosts,
            next_boosts: boosts,
            named: Vec::new(),
            // Both logits may be off, in opposite directions.
            best: Best::new(kept(question), 2.0 * error),
            steered: Steered::new(question, mask, error),
            likeliest: Best::new(likeliest, 0.0),
            highest: f32::NEG_INFINITY,
            all: Sum::default(),
            admissible: Sum::default(),
            parts: Vec::new(),
            taint: [0.0; LANES],
        }
    }

    /// Computes the logits of the named articles before the pass, which counts their ranks.
    #[inline(always)]
    pub(super) fn find_named<S: Simd, const VECTORS: usize>(
        &mut self,
        _simd: S,
        panel: impl Fn(usize) -> [S::f32s; VECTORS],
    ) {
        if !self.question.ranks {
            return;
        }
        for &article in &self.question.placements_of {
            let position = article as usize;
            let logit = numbers::<S, VECTORS>(&panel(position / PANEL))[position % PANEL];
            self.named.push((self.contender(article, logit + self.boost(article)), 0));
        }
    }

    fn boost(&self, article: u32) -> f32 {
        let position = self.boosts.binary_search_by_key(&article, |(article, _)| *article);
        position.map_or(0.0, |position| self.boosts[position].1)
    }

    /// Says which article the pass starts with.
    pub(super) fn start_at(&mut self, first: usize) {
        let before = self.boosts.partition_point(|(article, _)| (*article as usize) < first);
        self.next_boosts = &self.boosts[before..];
    }

    pub(super) fn is_steered(&self) -> bool {
        self.steered.is_some()
    }

    /// Adds the logits of a panel. Rows that are not `STEERED` are compiled apart, so that they pay nothing for steering.
    #[inline(always)]
    pub(super) fn add_panel<S: Pairs, const VECTORS: usize, const STEERED: bool>(
        &mut self,
        simd: S,
        panel: usize,
        mut logits: [S::f32s; VECTORS],
    ) {
        let bits = bits_of_panel(self.mask, panel);
        // Other questions of the batch may need this panel.
        if bits == 0 && self.question.only_admissible {
            return;
        }
        if self.next_boosts.first().is_some_and(|(article, _)| *article as usize / PANEL <= panel) {
            let boosts = self.take_boosts(panel);
            for (logits, boost) in logits.iter_mut().zip(S::as_simd_f32s(&boosts).0) {
                *logits = simd.add_f32s(*logits, *boost);
            }
        }
        let most = largest(simd, &logits);
        if any_above(simd, most, self.highest) {
            self.raise_highest(simd.reduce_max_f32s(most));
        }
        if panel.is_multiple_of(FLUSH) {
            self.all.flush();
            self.admissible.flush();
        }
        let (highest, zero) = (simd.splat_f32s(self.highest), simd.splat_f32s(0.0));
        let first = |lanes: &[f32; LANES]| S::as_simd_f32s(lanes).0[0];
        let mut taint = first(&self.taint);
        let mut sum = first(&self.all.lanes);
        let mut shares = logits;
        for vector in 0..VECTORS {
            taint = simd.mul_add_e_f32s(logits[vector], zero, taint);
            shares[vector] = exp(simd, simd.sub_f32s(logits[vector], highest));
            sum = simd.add_f32s(sum, shares[vector]);
        }
        S::as_mut_simd_f32s(&mut self.taint).0[0] = taint;
        S::as_mut_simd_f32s(&mut self.all.lanes).0[0] = sum;
        if any_above(simd, most, self.likeliest.bar()) {
            self.find_likeliest(panel, &numbers::<S, VECTORS>(&logits));
        }

        if bits == 0 {
            return;
        }
        if STEERED && let Some(steered) = &mut self.steered {
            steered.add_panel(panel, numbers::<S, VECTORS>(&logits));
        }
        let mut sum = first(&self.admissible.lanes);
        let mut above = false;
        if bits == u32::MAX {
            for share in shares {
                sum = simd.add_f32s(sum, share);
            }
            above = any_above(simd, most, self.best.bar());
        } else {
            let never = simd.splat_f32s(f32::NEG_INFINITY);
            let inside = lanes::<S, VECTORS>(simd, bits);
            let mut most = never;
            for vector in 0..VECTORS {
                sum = simd.add_f32s(sum, simd.select_f32s(inside[vector], shares[vector], zero));
                most = simd.max_f32s(most, simd.select_f32s(inside[vector], logits[vector], never));
            }
            above |= any_above(simd, most, self.best.bar());
        }
        S::as_mut_simd_f32s(&mut self.admissible.lanes).0[0] = sum;
        if above || self.question.ranks {
            self.scan(panel, bits, &numbers::<S, VECTORS>(&logits));
        }
    }

    /// Takes the boosts of a panel, and drops those of panels that were left out.
    #[inline(never)]
    fn take_boosts(&mut self, panel: usize) -> [f32; PANEL] {
        let boosts = self.next_boosts;
        let count = boosts.partition_point(|(article, _)| (*article as usize) < (panel + 1) * PANEL);
        let (now, later) = boosts.split_at(count);
        self.next_boosts = later;
        let now = &now[now.partition_point(|(article, _)| (*article as usize) < panel * PANEL)..];
        let mut boosts = [0.0; PANEL];
        for &(article, boost) in now {
            boosts[article as usize % PANEL] += boost;
        }
        boosts
    }

    fn contender(&self, article: u32, logit: f32) -> Contender<'q> {
        Contender { logit, article, articles: &self.question.articles }
    }

    /// The articles that must be looked at; None for all.
    pub(super) fn needs(&self) -> Option<&'q Mask> {
        self.question.only_admissible.then_some(self.mask)
    }

    #[cold]
    #[inline(never)]
    fn raise_highest(&mut self, highest: f32) {
        let scale = f64::from(self.highest - highest).exp();
        self.all.scale(scale);
        self.admissible.scale(scale);
        self.highest = highest;
    }

    #[inline(never)]
    fn scan(&mut self, panel: usize, mut bits: u32, logits: &[f32; PANEL]) {
        let first = u32::try_from(panel * PANEL).expect("articles are counted in 32 bits");
        while bits != 0 {
            let lane = bits.trailing_zeros();
            bits &= bits - 1;
            let contender = self.contender(first + lane, logits[lane as usize]);
            // Most articles of a panel are not among the best, even if one is.
            if contender.logit > self.best.bar() {
                self.best.consider(contender);
            }
            if self.question.ranks {
                for (named, better) in &mut self.named {
                    *better += usize::from(contender < *named);
                }
            }
        }
    }

    #[inline(never)]
    fn find_likeliest(&mut self, panel: usize, logits: &[f32; PANEL]) {
        let first = u32::try_from(panel * PANEL).expect("articles are counted in 32 bits");
        for (article, &logit) in (first..).zip(logits) {
            if logit > self.likeliest.bar() && logit > NO_ARTICLE / 2.0 {
                self.likeliest.consider(self.contender(article, logit));
            }
        }
    }

    #[inline(always)]
    pub(super) fn end_part<S: Pairs, const VECTORS: usize>(&mut self, simd: S) {
        if let Some(steered) = &mut self.steered {
            steered.end_part::<S, VECTORS>(simd);
        }
        let total = |sum: &mut Sum| {
            sum.flush();
            std::mem::take(sum).total
        };
        let highest = std::mem::replace(&mut self.highest, f32::NEG_INFINITY);
        self.parts.push(PartSums {
            highest,
            all: total(&mut self.all),
            admissible: total(&mut self.admissible),
        });
    }

    /// Adds the same row's results for the parts that follow.
    pub(super) fn append(&mut self, next: Self) {
        next.best.all().for_each(|contender| self.best.consider(contender));
        if let (Some(steered), Some(next)) = (&mut self.steered, next.steered) {
            steered.append(*next);
        }
        next.likeliest.all().for_each(|contender| self.likeliest.consider(contender));
        for ((_, better), (_, more)) in self.named.iter_mut().zip(next.named) {
            *better += more;
        }
        self.parts.extend(next.parts);
        for (taint, more) in self.taint.iter_mut().zip(next.taint) {
            *taint += more;
        }
    }

    /// `exact` is an article's logit without its boost. Returns None if a logit was not finite.
    pub(super) fn answer(mut self, exact: impl Fn(u32) -> f32) -> Option<Answer> {
        if self.question.only_admissible && self.mask.is_empty() {
            return Some(Answer::empty(self.question));
        }
        let highest = self.parts.iter().map(|part| part.highest).fold(f32::NEG_INFINITY, f32::max);
        if !highest.is_finite() || self.taint.iter().any(|taint| *taint != 0.0) {
            return None;
        }
        let total = |sum: fn(&PartSums) -> f64| -> f64 {
            self.parts.iter().map(|part| sum(part) * f64::from(part.highest - highest).exp()).sum()
        };
        let share = |logit: f32| f64::from(logit - highest).exp();
        let (mut all, mut admissible) = (total(|part| part.all), total(|part| part.admissible));
        let steered = self.steered.take();
        let mut best: Vec<Contender<'_>> = std::mem::take(&mut self.best).all().collect();
        let mut likeliest: Vec<Contender<'_>> = std::mem::take(&mut self.likeliest).all().collect();
        // Sums are added up in the same order on any number of cores.
        best.sort_unstable();
        likeliest.sort_unstable();
        let exact = |article: u32| exact(article) + self.boost(article);
        let mut difference = 0.0;
        for (position, contender) in best.iter_mut().enumerate() {
            let pass = std::mem::replace(&mut contender.logit, exact(contender.article));
            if position < LIKELIEST {
                difference += share(contender.logit) - share(pass);
            }
        }
        admissible += difference;
        for Contender { logit, article, .. } in likeliest {
            let computed = best.iter().take(LIKELIEST).find(|contender| contender.article == article);
            all += share(computed.map_or_else(|| exact(article), |computed| computed.logit)) - share(logit);
        }
        best.sort_unstable();
        if self.question.only_admissible {
            all = admissible;
        }
        // Among the best it is exact: what is better than one of them is one of them.
        let rank = |named: Contender<'_>, better: usize| match best
            .partition_point(|contender| *contender < named)
        {
            better if better < kept(self.question) => better + 1,
            _ => better.max(kept(self.question)) + 1,
        };
        let placement = |(at, &article): (usize, &u32)| {
            let named = self.contender(article, exact(article));
            Placement {
                log_probability: f64::from(named.logit - highest) - all.ln(),
                rank: self.named.get(at).map(|(_, better)| rank(named, *better)),
            }
        };
        let candidate = |Chosen { article, logit, better }: Chosen| Candidate {
            article,
            probability: share(logit) / all,
            own_rank: better.map(|better| rank(self.contender(article, logit), better)),
        };
        let (top, wanted) = if let Some(steered) = steered {
            let (top, wanted) = steered.choose(&exact);
            let candidates = |chosen: Vec<Chosen>| chosen.into_iter().map(candidate).collect();
            (candidates(top), wanted.into_iter().map(candidates).collect())
        } else {
            let own = |&Contender { article, logit, .. }: &Contender<'_>| {
                candidate(Chosen { article, logit, better: None })
            };
            (best.iter().take(self.question.k).map(own).collect(), Vec::new())
        };
        let placements = self.question.placements_of.iter().enumerate().map(placement).collect();
        Some(Answer {
            top,
            wanted,
            placements,
            admissible: self.mask.count(),
            admissible_probability: (admissible / all).min(1.0),
            personas: None,
            steps: None,
        })
    }
}
