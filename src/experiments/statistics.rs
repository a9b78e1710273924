//! The statistics of experiments: ratios of sums over customers, how much they differ, and what one may conclude who looks every day.
//!
//! Pure: sums come in, figures go out. `docs/experiments.md` names the sources.

use crate::outcomes::acceptance::Share;

/// The error of intervals: they are right at all looks together in 95 of 100 experiments.
pub const ALPHA: f64 = 0.05;
/// No interval before: the sequence is right for sums of many customers.
pub const LEAST_CUSTOMERS: u64 = 100;
/// The number of completions at which the sequence is tightest. It must not follow from what was seen.
const TIGHTEST: f64 = 5000.0;
/// The normal quantile of a power of 80 %.
const Z_POWER: f64 = 0.841_621_233_572_914_2;

/// Sums over an arm's customers: `x` is a customer's metric, `d` the customer's completions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    pub customers: u64,
    pub d: f64,
    pub dd: f64,
    pub x: f64,
    pub xx: f64,
    pub xd: f64,
}

impl Sums {
    /// The metric for each completion.
    pub fn ratio(&self) -> Option<f64> {
        (self.d > 0.0).then(|| self.x / self.d)
    }

    /// The variance of the ratio, by the delta method: customers are independent of each other, a customer's completions are not.
    fn variance(&self) -> Option<f64> {
        let ratio = self.ratio().filter(|_| self.customers >= LEAST_CUSTOMERS)?;
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let n = self.customers as f64;
        let residuals = self.xx - 2.0 * ratio * self.xd + ratio * ratio * self.dd;
        Some(residuals.max(0.0) * n / (n - 1.0) / (self.d * self.d))
    }
}

/// By how much the ratio of `one` is higher than that of `other`, with an interval that holds at every look. None until both have
/// customers enough, and something to tell apart.
pub fn difference(one: &Sums, other: &Sums, alpha: f64) -> Option<Share> {
    let value = one.ratio()? - other.ratio()?;
    let variance = one.variance()? + other.variance()?;
    let half = variance.sqrt() * widening(one.d + other.d, alpha);
    (variance > 0.0).then_some(Share { value, low: value - half, high: value + half })
}

/// How many standard errors the asymptotic confidence sequence (Waudby-Smith et al., theorem 2.2) reaches to each side. Time is the
/// number of completions, which grows while known customers come back.
fn widening(completions: f64, alpha: f64) -> f64 {
    // Their equation for the tightest sequence at a chosen time.
    let spread = -2.0 * alpha.ln();
    let mixed = completions * (spread + (1.0 + spread).ln()) / TIGHTEST;
    ((mixed + 1.0) / mixed * ((mixed + 1.0) / (alpha * alpha)).ln()).sqrt()
}

/// The days after which the interval leaves 0 out with a probability of 80 %, if the ratio really is higher by `effect` of the control's,
/// and customers come as in the `days` so far. It takes longer if the same ones come again: they say less than others would.
pub fn days_needed(one: &Sums, control: &Sums, effect: f64, days: f64, alpha: f64) -> Option<f64> {
    let now = one.d + control.d;
    let spread = ((one.variance()? + control.variance()?) * now).sqrt();
    let sought = control.ratio()?.abs() * effect;
    if spread <= 0.0 || sought <= 0.0 || days <= 0.0 {
        return None;
    }
    let is_enough =
        |completions: f64| spread / completions.sqrt() * (widening(completions, alpha) + Z_POWER) <= sought;
    let (mut low, mut high) = (0.0, 1e15);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    Some(((high / now - 1.0) * days).max(0.0))
}

/// The probability of a split at least as far from its shares, by Pearson's chi-squared test.
pub fn split_probability(split: &[(u64, u32)]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let counts: Vec<(f64, f64)> =
        split.iter().map(|(count, share)| (*count as f64, f64::from(*share))).collect();
    let (all, shares) = counts.iter().fold((0.0, 0.0), |(all, shares), (n, share)| (all + n, shares + share));
    // The test says nothing of a few customers.
    if all == 0.0 || counts.iter().any(|(_, share)| all * share / shares < 5.0) {
        return 1.0;
    }
    let distance = |(count, share): &(f64, f64)| {
        let expected = all * share / shares;
        (count - expected).powi(2) / expected
    };
    chi_squared_above(counts.iter().map(distance).sum(), counts.len() - 1)
}

/// The probability that chi-squared is above `x`. For two degrees more it is the same and a term more; it starts at `exp(−x/2)` for two,
/// and `erfc(√(x/2))` for one.
fn chi_squared_above(x: f64, degrees: usize) -> f64 {
    let half = x / 2.0;
    let (mut above, mut term, mut at) = if degrees.is_multiple_of(2) {
        ((-half).exp(), (-half).exp() * half, 2)
    } else {
        (erfc(half.sqrt()), (-half).exp() * half.sqrt() * std::f64::consts::FRAC_2_SQRT_PI, 1)
    };
    while at < degrees {
        above += term;
        at += 2;
        #[expect(clippy::cast_precision_loss, reason = "there are few arms")]
        let degrees = at as f64;
        term *= half / (degrees / 2.0);
    }
    above.clamp(0.0, 1.0)
}

/// The complementary error function from 0: the series of erf near 0, the continued fraction beyond.
fn erfc(x: f64) -> f64 {
    if x < 2.0 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-17 * sum.abs() {
            n += 1.0;
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return 1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let fraction = (1..60).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below);
    (-x * x).exp() / fraction * std::f64::consts::FRAC_2_SQRT_PI / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator, so that a test is the same everywhere.
    struct Chance(u64);

    impl Chance {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            f64::from(u32::try_from((z ^ (z >> 31)) >> 32).unwrap()) / 2.0_f64.powi(32)
        }
    }

    /// Customers of two arms who come back, each with tastes of their own; a day is a look.
    struct Shop {
        chance: Chance,
        customers: Vec<(bool, f64, f64, f64)>,
        sums: [Sums; 2],
    }

    impl Shop {
        fn new(seed: u64) -> Self {
            Self { chance: Chance(seed), customers: Vec::new(), sums: [Sums::default(); 2] }
        }

        /// Other customers come instead of those before.
        fn welcome(&mut self, customers: usize) {
            let mut customer = || (self.chance.unit() < 0.5, 0.1 + 0.4 * self.chance.unit(), 0.0, 0.0);
            self.customers = (0..customers).map(|_| customer()).collect();
        }

        /// Each customer is shown a completion with probability `visits`, and accepts with a probability of their own, which is higher by a
        /// factor in the second arm.
        fn day(&mut self, visits: f64, times: f64) {
            for (is_other, taste, x, d) in &mut self.customers {
                if self.chance.unit() >= visits {
                    continue;
                }
                let sums = &mut self.sums[usize::from(*is_other)];
                let accepts = self.chance.unit() < *taste * if *is_other { times } else { 1.0 };
                let more = if accepts { 1.0 } else { 0.0 };
                sums.customers += u64::from(*d == 0.0);
                sums.d += 1.0;
                sums.dd += 2.0 * *d + 1.0;
                sums.x += more;
                sums.xx += more * (2.0 * *x + 1.0);
                sums.xd += (*x + more) * (*d + 1.0) - *x * *d;
                (*x, *d) = (*x + more, *d + 1.0);
            }
        }

        fn found(&self) -> Option<Share> {
            difference(&self.sums[1], &self.sums[0], ALPHA)
        }
    }

    #[test]
    fn arms_that_are_the_same_differ_in_one_of_twenty_experiments_at_most_over_all_daily_looks() {
        let wrong = (0..2000)
            .filter(|seed| {
                let mut shop = Shop::new(*seed);
                shop.welcome(300);
                (0..28).any(|_| {
                    shop.day(0.3, 1.0);
                    shop.found().is_some_and(|found| found.low > 0.0 || found.high < 0.0)
                })
            })
            .count();
        assert!(wrong <= 100, "{wrong} of 2000");
    }

    #[test]
    fn a_lift_of_a_tenth_is_found_in_the_days_that_were_foretold() {
        let day = |shop: &mut Shop, times: f64| {
            shop.welcome(500);
            shop.day(0.9, times);
            shop.day(0.5, times);
        };
        let (mut found, mut foretold) = (0, 0.0);
        for seed in 0..200 {
            // Foretold from three days on which the arms are the same.
            let mut shop = Shop::new(1_000_000 + seed);
            (0..3).for_each(|_| day(&mut shop, 1.0));
            let needed = days_needed(&shop.sums[1], &shop.sums[0], 0.1, 3.0, ALPHA).unwrap() + 3.0;
            foretold += needed / 200.0;
            let (mut shop, mut days) = (Shop::new(2_000_000 + seed), 0.0);
            while days < needed {
                day(&mut shop, 1.1);
                days += 1.0;
                if shop.found().is_some_and(|found| found.low > 0.0) {
                    found += 1;
                    break;
                }
            }
        }
        assert!(found >= 160, "{found} of 200 in {foretold} days");
        assert!((20.0..40.0).contains(&foretold), "{foretold}");
    }

    #[test]
    fn a_broken_split_shows() {
        // A tenth of the customers of an arm is lost.
        assert!(split_probability(&[(50_000, 1), (45_000, 1)]) < 1e-6);
        assert!(split_probability(&[(9_030, 9), (970, 1)]) > 0.05);
        assert!((split_probability(&[]) - 1.0).abs() < 1e-12);
        assert!(split_probability(&[(2, 1), (8, 99)]) > 0.05, "too few for a test");
    }

    /// Critical values from printed tables.
    #[test]
    fn the_tail_of_chi_squared_is_that_of_tables() {
        let few = [(3.841_459, 1, 0.05), (10.827_566, 1, 0.001), (5.991_465, 2, 0.05), (7.814_728, 3, 0.05)];
        let many = [(13.276_704, 4, 0.01), (11.070_498, 5, 0.05), (30.143_527, 19, 0.05)];
        for (x, degrees, above) in few.into_iter().chain(many) {
            let found = chi_squared_above(x, degrees);
            assert!((found / above - 1.0).abs() < 1e-5, "{found} is not {above}");
        }
    }

    #[test]
    fn an_interval_needs_customers_and_a_difference_of_ratios_is_by_customer() {
        let sums = |customers: u64, each: f64, accepted: f64| {
            let n = f64::from(u32::try_from(customers).unwrap());
            // Half of the customers accept twice as much, the other half nothing.
            let (x, d) = (accepted * each, each);
            Sums { customers, d: n * d, dd: n * d * d, x: n * x, xx: 2.0 * n * x * x, xd: n * x * d }
        };
        assert_eq!(difference(&sums(99, 1.0, 0.3), &sums(100, 1.0, 0.3), ALPHA), None);
        let width = |each| {
            let found = difference(&sums(1000, each, 0.3), &sums(1000, each, 0.3), ALPHA).unwrap();
            (found.high - found.low) / widening(2000.0 * each, ALPHA)
        };
        // Ten completions of the same customer say no more than one.
        assert!((width(10.0) - width(1.0)).abs() < 1e-12);
    }
}
