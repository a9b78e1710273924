//! Sums of exponentials over a row of logits, in a form that the compiler vectorises.

use crate::domain::Mask;

/// The number of partial sums: the lanes of the widest registers.
const LANES: usize = 16;

/// The largest logit, or NaN if there is one.
pub(super) fn largest(logits: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    // Comparisons lose NaN; sums keep it.
    let mut taint = [0.0_f32; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = if chunk[lane] > lanes[lane] { chunk[lane] } else { lanes[lane] };
            taint[lane] += chunk[lane] * 0.0;
        }
    }
    let tail = rest.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let tainted = taint.iter().sum::<f32>() + rest.iter().map(|logit| logit * 0.0).sum::<f32>();
    lanes.into_iter().fold(tail, f32::max) + tainted
}

/// Σ exp(logit − shift). No logit may be above the shift.
pub(super) fn sum_exp(logits: &[f32], shift: f32) -> f64 {
    /// Sums in single precision are exact enough over this many logits.
    const BLOCK: usize = 64 * LANES;
    let block_sum = |block: &[f32]| {
        let mut lanes = [0.0_f32; LANES];
        let (chunks, rest) = block.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                lanes[lane] += exp(chunk[lane] - shift);
            }
        }
        let tail: f32 = rest.iter().map(|logit| exp(logit - shift)).sum();
        f64::from(lanes.iter().sum::<f32>() + tail)
    };
    logits.chunks(BLOCK).map(block_sum).sum()
}

/// The same sum over the articles in the mask.
pub(super) fn masked_sum_exp(logits: &[f32], mask: &Mask, shift: f32) -> f64 {
    let word_sum = |(word, block): (&u64, &[f32])| match *word {
        0 => 0.0,
        u64::MAX => sum_exp(block, shift),
        bits => {
            let kept = |(place, logit): (usize, &f32)| {
                if bits >> place & 1 == 1 { exp(logit - shift) } else { 0.0 }
            };
            f64::from(block.iter().enumerate().map(kept).sum::<f32>())
        }
    };
    mask.words().iter().zip(logits.chunks(u64::BITS as usize)).map(word_sum).sum()
}

/// e^x for x up to 0, within two units in the last place: 2^n · p(r), without a branch. Below the
/// smallest normal number it is nought.
#[inline]
#[expect(clippy::excessive_precision, reason = "the coefficients of a known polynomial (Cephes)")]
fn exp(x: f32) -> f32 {
    const LOWEST: f32 = -87.0;
    /// Rounds to the nearest whole number when added and taken away: it shifts the fraction out.
    const SHIFT: f32 = 12_582_912.0;
    let clamped = if x < LOWEST { LOWEST } else { x };
    let n = (clamped * std::f32::consts::LOG2_E + SHIFT) - SHIFT;
    let r = clamped - n * 0.693_359_375 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.000_000_1e-1] {
        p = p * r + coefficient;
    }
    let value = p * r * r + r + 1.0;
    // n is a whole number from −126 to 0, so the exponent's bits can be made from it.
    #[expect(clippy::cast_possible_truncation, reason = "a whole number from -126 to 0")]
    let exponent = ((n as i32 + 127) << 23).cast_unsigned();
    let scaled = value * f32::from_bits(exponent);
    if x < LOWEST { 0.0 } else { scaled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exp() {
        for step in 0..86_000_u32 {
            let x = -1e-3 * f32::from(u16::try_from(step / 2).unwrap()) * 2.0;
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found / expected - 1.0).abs() < 3e-7, "{x}: {found} {expected}");
        }
        assert!(exp(-200.0).abs() < 1e-30);
        assert!((exp(0.0) - 1.0).abs() < 1e-7);
    }

    #[test]
    fn a_masked_sum_is_the_sum_of_its_articles() {
        let logits: Vec<f32> = (0..200_u8).map(|i| -f32::from(i % 13)).collect();
        let mut mask = Mask::none(200);
        for article in (0..64).chain([70, 131, 199]) {
            mask.insert(article);
        }
        let expected: f64 = mask.iter().map(|article| f64::from(logits[article as usize]).exp()).sum();
        assert!((masked_sum_exp(&logits, &mask, 0.0) / expected - 1.0).abs() < 1e-6);
        assert!((masked_sum_exp(&logits, &Mask::all(200), 0.0) / sum_exp(&logits, 0.0) - 1.0).abs() < 1e-6);
        assert!(masked_sum_exp(&logits, &Mask::none(200), 0.0).abs() < f64::EPSILON);
    }

    #[test]
    fn sums_and_maxima_of_any_length() {
        for length in [1, 7, 16, 17, 1500, 30_000] {
            let logits: Vec<f32> =
                (0..length).map(|i: u16| f32::from(i.wrapping_mul(7919) % 1000) / 100.0 - 5.0).collect();
            let expected_max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert!((largest(&logits) - expected_max).abs() < f32::EPSILON);
            let expected: f64 = logits.iter().map(|l| f64::from(l - expected_max).exp()).sum();
            let found = sum_exp(&logits, expected_max);
            assert!((found / expected - 1.0).abs() < 1e-6, "{length}: {found} {expected}");
        }
        let mut bad = vec![0.0; 40];
        for place in [0, 20, 39] {
            bad[place] = f32::NAN;
            assert!(largest(&bad).is_nan(), "{place}");
            bad[place] = f32::INFINITY;
            assert!(!largest(&bad).is_finite(), "{place}");
            bad[place] = 0.0;
        }
    }
}
