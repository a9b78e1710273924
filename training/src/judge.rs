//! Compares one row of logits with the true article: rank, probability, and the top articles.
//!
//! Training judges the development split by it and evaluation the exported files, so both give the same figures for
//! the same numbers. It knows one row; [`crate::metrics`] averages.

use crate::engine::{exp, vectorised};

/// Number of top articles in a verdict.
pub(crate) const FIRST: usize = 5;

/// How good one answer is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Verdict {
    /// In nats.
    pub(crate) cross_entropy: f64,
    /// From 1, among all articles that are judged; articles with equal logits share their mean rank.
    pub(crate) rank: f64,
    /// The articles with the highest logits, best first, filled up with `u32::MAX` if the catalogue has fewer.
    pub(crate) first: [u32; FIRST],
    /// The probability of the first of them.
    pub(crate) confidence: f64,
    /// If the types of articles are known.
    pub(crate) within_type: Option<WithinType>,
    /// If some articles count as new, and the method can suggest them.
    pub(crate) new_articles: Option<ShareOfNew>,
}

/// The probability that an answer gives to articles that count as new.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ShareOfNew {
    pub(crate) any: f64,
    /// With the type of the missing article known, among the articles of that type that are not in the outfit.
    pub(crate) within_type: f64,
}

/// How good an answer is if the type of the missing article is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WithinType {
    /// Of the true article among those of its type, in nats.
    pub(crate) cross_entropy: f64,
    /// From 1, among the articles of its type that are not in the outfit, as they are served.
    pub(crate) rank: f64,
}

impl Verdict {
    /// The probability of the true article.
    pub(crate) fn probability(&self) -> f64 {
        (-self.cross_entropy).exp()
    }
}

/// Logits per block. By its maximum, most blocks are skipped in the search for the top articles.
const BLOCK: usize = 64;

/// Judges a row in two passes: one for the target's rank and each block's maximum, one for the sum of exponentials.
pub(crate) fn judge(logits: &[f32], target: u32) -> Verdict {
    let own = logits[target as usize];
    let mut maxima = vec![f32::NEG_INFINITY; logits.len().div_ceil(BLOCK)];
    let (above, equal) = count_above_and_equal(logits, own, &mut maxima);
    let first = top_articles(logits, &maxima);
    let highest = logits[first[0] as usize];
    let total = f64::from(sum_exp(logits, highest));
    let rank = 1.0 + f64::from(above) + f64::from(equal.saturating_sub(1)) / 2.0;
    let cross_entropy = total.ln() + f64::from(highest) - f64::from(own);
    let confidence = total.recip();
    Verdict { cross_entropy, rank, first, confidence, within_type: None, new_articles: None }
}

/// Judges among the articles of the target's type. `outfit` are all articles of the outfit, and `weight` is an
/// article's probability, up to a factor.
#[expect(clippy::float_cmp, reason = "ties are equal to the bit")]
pub(crate) fn judge_within(
    of_type: &[u32],
    outfit: &[u32],
    target: u32,
    weight: impl Fn(u32) -> f64,
) -> WithinType {
    let own = weight(target);
    let (mut total, mut rank) = (own, 1.0);
    for &article in of_type.iter().filter(|article| !outfit.contains(article)) {
        let other = weight(article);
        total += other;
        rank += if other > own {
            1.0
        } else if other == own {
            0.5
        } else {
            0.0
        };
    }
    WithinType { cross_entropy: (total / own).ln(), rank }
}

vectorised! {
    /// Counts logits above and equal to `own`, and finds each block's maximum.
    #[expect(clippy::float_cmp, reason = "ties are equal to the bit")]
    fn count_above_and_equal<'a>(logits: &'a [f32], own: f32, maxima: &'a mut [f32]) -> (u32, u32) {
        // Lanes, because the compiler does not reorder operations on floats.
        let (mut above, mut equal) = ([0_u32; 16], [0_u32; 16]);
        for (block, top) in logits.chunks(BLOCK).zip(maxima) {
            let mut lanes = [f32::NEG_INFINITY; 16];
            let chunks = block.chunks_exact(16);
            for &logit in chunks.remainder() {
                above[0] += u32::from(logit > own);
                equal[0] += u32::from(logit == own);
                lanes[0] = lanes[0].max(logit);
            }
            for chunk in chunks {
                for lane in 0..16 {
                    above[lane] += u32::from(chunk[lane] > own);
                    equal[lane] += u32::from(chunk[lane] == own);
                    lanes[lane] = if chunk[lane] > lanes[lane] { chunk[lane] } else { lanes[lane] };
                }
            }
            *top = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
        }
        (above.iter().sum(), equal.iter().sum())
    }
}

vectorised! {
    /// Σ exp(logit − highest).
    fn sum_exp<'a>(logits: &'a [f32], highest: f32) -> f32 {
        let mut lanes = [0.0_f32; 16];
        let chunks = logits.chunks_exact(16);
        let rest: f32 = chunks.remainder().iter().map(|logit| exp(*logit - highest)).sum();
        for chunk in chunks {
            for lane in 0..16 {
                lanes[lane] += exp(chunk[lane] - highest);
            }
        }
        lanes.iter().sum::<f32>() + rest
    }
}

/// The articles with the highest logits; of equals the lower index comes first.
fn top_articles(logits: &[f32], maxima: &[f32]) -> [u32; FIRST] {
    let mut places = [u32::MAX; FIRST];
    let mut values = [f32::NEG_INFINITY; FIRST];
    for (place, (block, top)) in (0..).step_by(BLOCK).zip(logits.chunks(BLOCK).zip(maxima)) {
        if *top <= values[FIRST - 1] {
            continue;
        }
        for (place, &logit) in (place..).zip(block) {
            if logit > values[FIRST - 1] {
                let at = values.partition_point(|value| *value >= logit);
                values[at..].rotate_right(1);
                places[at..].rotate_right(1);
                values[at] = logit;
                places[at] = place;
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metrics, testing::near};

    #[test]
    fn verdicts_match_the_metrics() {
        // Several blocks, and twenty different logits, so there are ties everywhere and across blocks.
        let many = (0..1013_u16).map(|place| f32::from(place * 37 % 20) / 4.0).collect();
        for logits in [many, vec![0.5, 2.0, -1.0, 2.0, 0.5, 0.5, 3.0], vec![1.0, 2.0]] {
            let scores: Vec<f64> = logits.iter().copied().map(f64::from).collect();
            let total: f64 = scores.iter().map(|score| score.exp()).sum();
            let mut order: Vec<u32> = (0..).take(logits.len()).collect();
            order.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]));
            let highest = scores[order[0] as usize].exp();
            // There may be fewer articles than a verdict has.
            order.resize(logits.len().max(FIRST), u32::MAX);
            for (target, score) in scores.iter().enumerate() {
                let verdict = judge(&logits, u32::try_from(target).unwrap());
                near(verdict.rank, metrics::rank(&scores, target), 1e-12);
                near(verdict.cross_entropy, total.ln() - score, 1e-5);
                near(verdict.probability(), score.exp() / total, 1e-6);
                near(verdict.confidence, highest / total, 1e-6);
                assert_eq!(verdict.first, order[..FIRST]);
            }
        }
    }
}
