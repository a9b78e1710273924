//! How often the answer is an article without training outfits.
//!
//! An article has none for one of two reasons: it is unpopular and was not chosen, or it is new. The numbers of articles
//! with one and with two outfits estimate how many are unpopular. The rest are new, and as likely as other articles.

use super::Data;
use crate::number::real;

/// Chao's estimate of the number of unpopular articles without outfits is a lower bound. Up to this many times as many count
/// as unpopular.
const TAIL: f64 = 2.0;

impl Data {
    /// The estimated share of slots whose answer is an article without training outfits.
    pub(crate) fn share_of_unseen(&self) -> f64 {
        share_of_unseen(&self.count_articles(self.training()))
    }
}

fn share_of_unseen(counts: &[f64]) -> f64 {
    let of_count = |wanted: f64| real(counts.iter().filter(|count| (*count - wanted).abs() < 0.5).count());
    let (none, once, twice) = (of_count(0.0), of_count(1.0), of_count(2.0));
    let total: f64 = counts.iter().sum();
    if none < 1.0 || total < 1.0 {
        return 0.0;
    }
    let tail = (TAIL * once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0))).min(none);
    // Good and Turing: unseen articles are the answer as often as articles with one outfit were.
    let of_tail = if tail > 0.0 { once / total } else { 0.0 };
    let others = real(counts.len()) - none + tail;
    let new = (none - tail) / others;
    (of_tail + new) / (1.0 + new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_tail_is_rare_and_a_new_season_is_not() {
        let near = |counts: &[(f64, usize)], expected: f64| {
            let counts: Vec<f64> = counts.iter().flat_map(|&(count, times)| vec![count; times]).collect();
            let found = share_of_unseen(&counts);
            assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
        };
        // Forty were seen once, so the fifty that were not are rare.
        near(&[(0.0, 50), (1.0, 40), (2.0, 20), (10.0, 20)], 40.0 / 280.0);
        // All others were seen often, so ten more are new: one of eleven articles.
        near(&[(0.0, 10), (20.0, 100)], 1.0 / 11.0);
        near(&[(3.0, 5)], 0.0);
        near(&[(0.0, 5)], 0.0);
    }
}
