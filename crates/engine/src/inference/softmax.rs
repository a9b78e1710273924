//! The largest logit of a row, and sums of exponentials over it.

use atelier_core::domain::Mask;
use pulp::{Arch, Simd, WithSimd};

use super::head::exp;

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
    Arch::new().dispatch(SumExp { logits, shift })
}

/// The same sum over the articles in the mask.
pub(super) fn masked_sum_exp(logits: &[f32], mask: &Mask, shift: f32) -> f64 {
    let mut kept = Vec::with_capacity(logits.len());
    for (&word, block) in mask.words().iter().zip(logits.chunks(u64::BITS as usize)) {
        match word {
            0 => {}
            u64::MAX => kept.extend_from_slice(block),
            bits => kept.extend(
                (0..).zip(block).filter(|(place, _)| bits >> place & 1 == 1).map(|(_, &logit)| logit),
            ),
        }
    }
    sum_exp(&kept, shift)
}

struct SumExp<'a> {
    logits: &'a [f32],
    shift: f32,
}

impl WithSimd for SumExp<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        /// Sums in single precision are exact enough over this many logits.
        const BLOCK: usize = 64 * LANES;
        let shift = simd.splat_f32s(self.shift);
        let mut total = 0.0;
        for block in self.logits.chunks(BLOCK) {
            let (vectors, rest) = S::as_simd_f32s(block);
            let mut sum = simd.splat_f32s(0.0);
            for &logits in vectors {
                sum = simd.add_f32s(sum, exp(simd, simd.sub_f32s(logits, shift)));
            }
            let mut last = [f32::NEG_INFINITY; LANES];
            last[..rest.len()].copy_from_slice(rest);
            for logits in S::as_mut_simd_f32s(&mut last).0 {
                *logits = exp(simd, simd.sub_f32s(*logits, shift));
            }
            total += f64::from(simd.reduce_sum_f32s(sum) + last[..rest.len()].iter().sum::<f32>());
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exp() {
        let exp = |x: f32| sum_exp(&[x], 0.0);
        for step in 0..86_000_u32 {
            let x = -1e-3 * f32::from(u16::try_from(step / 2).unwrap()) * 2.0;
            let (found, expected) = (exp(x), f64::from(x).exp());
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
