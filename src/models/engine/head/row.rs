//! What is kept of one row of logits while it goes by.
#![expect(clippy::inline_always, reason = "what is not inlined falls back to the baseline instructions")]

use pulp::Simd;

use super::{
    simd::{any_above, exp, lanes, largest, numbers},
    table::PANEL,
};
use crate::models::engine::{
    Answer, Candidate, Question, Standing,
    choose::{Best, Contender},
};

/// Panels whose sums are kept in single precision before they are added up in double.
const FLUSH: usize = 64;
/// Lanes of the widest register.
const LANES: usize = 16;

#[derive(Debug)]
pub(super) struct Row<'q> {
    question: &'q Question,
    articles: usize,
    /// The articles asked for by name, and how many who may be suggested stand before each.
    asked: Vec<(Contender, usize)>,
    best: Best,
    /// The largest logit of this part so far: what all its exponentials are taken less of.
    highest: f32,
    all: Sum,
    admissible: Sum,
    /// The parts that went by, in their order.
    ended: Vec<Ended>,
    /// Nought, unless a logit was no finite number.
    taint: [f32; LANES],
}

/// What a part adds up to, as exponentials less of its largest logit.
#[derive(Debug)]
struct Ended {
    highest: f32,
    all: f64,
    admissible: f64,
}

/// Σ exp(logit − highest), lane by lane and then in double precision.
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

impl<'q> Row<'q> {
    pub(super) fn new(question: &'q Question, articles: usize) -> Self {
        Self {
            question,
            articles,
            asked: Vec::new(),
            best: Best::new(question.k),
            highest: f32::NEG_INFINITY,
            all: Sum::default(),
            admissible: Sum::default(),
            ended: Vec::new(),
            taint: [0.0; LANES],
        }
    }

    /// Finds the logits of those asked for by name, before the pass: their ranks are counted on the way. Passes over
    /// parts behind the first need them for ranks only.
    #[inline(always)]
    pub(super) fn look_up<S: Simd, const VECTORS: usize>(
        &mut self,
        _simd: S,
        first: bool,
        panel: impl Fn(usize) -> [S::f32s; VECTORS],
    ) {
        if !first && !self.question.ranks {
            return;
        }
        for &article in &self.question.of {
            let place = article as usize;
            let logit = numbers::<S, VECTORS>(&panel(place / PANEL))[place % PANEL];
            self.asked.push((Contender { logit, article }, 0));
        }
    }

    /// The next panel's logits.
    #[inline(always)]
    pub(super) fn take<S: Simd, const VECTORS: usize>(
        &mut self,
        simd: S,
        panel: usize,
        logits: [S::f32s; VECTORS],
    ) {
        let most = largest(simd, &logits);
        if any_above(simd, most, self.highest) {
            self.rise(simd.reduce_max_f32s(most));
        }
        if panel.is_multiple_of(FLUSH) {
            self.all.flush();
            self.admissible.flush();
        }
        let (highest, nought) = (simd.splat_f32s(self.highest), simd.splat_f32s(0.0));
        let first = |lanes: &[f32; LANES]| S::as_simd_f32s(lanes).0[0];
        let mut taint = first(&self.taint);
        let mut sum = first(&self.all.lanes);
        let mut shares = logits;
        for (share, logit) in shares.iter_mut().zip(logits) {
            taint = simd.mul_add_e_f32s(logit, nought, taint);
            *share = exp(simd, simd.sub_f32s(logit, highest));
            sum = simd.add_f32s(sum, *share);
        }
        S::as_mut_simd_f32s(&mut self.taint).0[0] = taint;
        S::as_mut_simd_f32s(&mut self.all.lanes).0[0] = sum;

        let bits = self.bits(panel);
        if bits == 0 {
            return;
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
            for ((inside, share), logit) in inside.into_iter().zip(shares).zip(logits) {
                sum = simd.add_f32s(sum, simd.select_f32s(inside, share, nought));
                most = simd.max_f32s(most, simd.select_f32s(inside, logit, never));
            }
            above |= any_above(simd, most, self.best.bar());
        }
        S::as_mut_simd_f32s(&mut self.admissible.lanes).0[0] = sum;
        if above || self.question.ranks {
            self.look_at(panel, bits, &numbers::<S, VECTORS>(&logits));
        }
    }

    /// Who of a panel may be suggested.
    #[inline(always)]
    fn bits(&self, panel: usize) -> u32 {
        match self.question.admissible.as_deref() {
            #[expect(clippy::cast_possible_truncation, reason = "that half of the word")]
            Some(mask) => (mask.words()[panel / 2] >> (panel % 2 * PANEL)) as u32,
            None if (panel + 1) * PANEL <= self.articles => u32::MAX,
            None => (1 << (self.articles % PANEL)) - 1,
        }
    }

    #[cold]
    #[inline(never)]
    fn rise(&mut self, highest: f32) {
        let scale = f64::from(self.highest - highest).exp();
        self.all.scale(scale);
        self.admissible.scale(scale);
        self.highest = highest;
    }

    #[inline(never)]
    fn look_at(&mut self, panel: usize, mut bits: u32, logits: &[f32; PANEL]) {
        let first = u32::try_from(panel * PANEL).expect("articles are counted in 32 bits; this is a bug");
        while bits != 0 {
            let lane = bits.trailing_zeros();
            bits &= bits - 1;
            let (article, logit) = (first + lane, logits[lane as usize]);
            // Most of a panel is not among the best, even where somebody is.
            if logit > self.best.bar() {
                self.best.consider(article, logit);
            }
            if self.question.ranks {
                for (asked, above) in &mut self.asked {
                    *above += usize::from(Contender { logit, article } < *asked);
                }
            }
        }
    }

    pub(super) fn end_part(&mut self) {
        let total = |sum: &mut Sum| {
            sum.flush();
            std::mem::take(sum).total
        };
        let highest = std::mem::replace(&mut self.highest, f32::NEG_INFINITY);
        self.ended.push(Ended {
            highest,
            all: total(&mut self.all),
            admissible: total(&mut self.admissible),
        });
    }

    /// Takes in what the same row became over the parts behind this one's.
    pub(super) fn absorb(&mut self, behind: Self) {
        for Contender { logit, article } in behind.best.sorted() {
            self.best.consider(article, logit);
        }
        for ((_, above), (_, more)) in self.asked.iter_mut().zip(behind.asked) {
            *above += more;
        }
        self.ended.extend(behind.ended);
        for (taint, more) in self.taint.iter_mut().zip(behind.taint) {
            *taint += more;
        }
    }

    /// None where a logit was no finite number.
    pub(super) fn answer(self) -> Option<Answer> {
        let highest = self.ended.iter().map(|part| part.highest).fold(f32::NEG_INFINITY, f32::max);
        if !highest.is_finite() || self.taint.iter().any(|taint| *taint != 0.0) {
            return None;
        }
        let over_all = |of: fn(&Ended) -> f64| -> f64 {
            self.ended.iter().map(|part| of(part) * f64::from(part.highest - highest).exp()).sum()
        };
        let (total, admissible) = (over_all(|part| part.all), over_all(|part| part.admissible));
        let probability = |logit: f32| f64::from(logit - highest).exp() / total;
        let candidate = |Contender { logit, article }| Candidate { article, probability: probability(logit) };
        let standing = |(asked, above): (Contender, usize)| Standing {
            log_probability: f64::from(asked.logit - highest) - total.ln(),
            rank: self.question.ranks.then_some(1 + above),
        };
        let mask = self.question.admissible.as_deref();
        Some(Answer {
            top: self.best.sorted().into_iter().map(candidate).collect(),
            of: self.asked.into_iter().map(standing).collect(),
            admissible: mask.map_or(self.articles, crate::domain::Mask::count),
            admissible_probability: mask.map_or(1.0, |_| (admissible / total).min(1.0)),
            personas: None,
            steps: None,
        })
    }
}
