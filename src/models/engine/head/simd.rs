//! Arithmetic on the machine's widest registers. All functions are inlined into loops that [`pulp`] compiles once per
//! instruction set. Inner loops use an index: the compiler may not inline iterator adapters if it optimises the parts of a
//! crate apart.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use pulp::Simd;

use super::table::PANEL;

/// The logits of a panel's articles for some rows. `inputs` is transposed: the first input of each row, then the
/// second, and so on.
///
/// A logit has the same bits however many rows are computed together.
#[inline(always)]
pub(super) fn logits<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    panel: &[f32],
    inputs: &[[f32; ROWS]],
) -> [[S::f32s; VECTORS]; ROWS] {
    let (rows, _) = S::as_simd_f32s(panel).0.as_chunks::<VECTORS>();
    let (bias, weights) = rows.split_first().expect("a panel has biases; this is a bug");
    let mut logits = [*bias; ROWS];
    for (weights, inputs) in weights.iter().zip(inputs) {
        for row in 0..ROWS {
            let input = simd.splat_f32s(inputs[row]);
            for vector in 0..VECTORS {
                logits[row][vector] = simd.mul_add_e_f32s(weights[vector], input, logits[row][vector]);
            }
        }
    }
    logits
}

/// e^x for x up to 0, to about two units in the last place, and at least the smallest normal number.
#[inline(always)]
#[expect(clippy::excessive_precision, reason = "the coefficients of a known polynomial (Cephes)")]
pub(in super::super) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    /// Rounds to the nearest integer when added and subtracted again: it shifts the fraction out.
    const ROUND: f32 = 12_582_912.0;
    let number = |number| simd.splat_f32s(number);
    let x = simd.max_f32s(x, number(-87.0));
    let shifted = simd.mul_add_e_f32s(x, number(std::f32::consts::LOG2_E), number(ROUND));
    let whole = simd.sub_f32s(shifted, number(ROUND));
    // ln 2 in two parts. The first has few digits, so its product with an integer is exact.
    let rest = simd.mul_add_e_f32s(whole, number(-0.693_359_375), x);
    let rest = simd.mul_add_e_f32s(whole, number(2.121_944_4e-4), rest);
    let mut series = number(1.987_569_1e-4);
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.000_000_1e-1] {
        series = simd.mul_add_e_f32s(series, rest, number(coefficient));
    }
    let fraction = simd.mul_add_e_f32s(series, simd.mul_f32s(rest, rest), simd.add_f32s(rest, number(1.0)));
    // The integer is in the low bits of `shifted`. Moved to the exponent field, plus the exponent's bias, it is a power of
    // two.
    let exponent = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    let scale = simd.transmute_f32s_u32s(simd.add_u32s(exponent, simd.splat_u32s(0x3f80_0000)));
    simd.mul_f32s(fraction, scale)
}

/// Whether one of the values is greater than the bar.
#[inline(always)]
pub(super) fn any_above<S: Simd>(simd: S, values: S::f32s, bar: f32) -> bool {
    // If comparisons return a register of bits, testing it is fastest. Otherwise finding the maximum is faster.
    if size_of::<S::m32s>() < size_of::<S::u32s>() {
        simd.first_true_m32s(simd.greater_than_f32s(values, simd.splat_f32s(bar))) < S::F32_LANES
    } else {
        simd.reduce_max_f32s(values) > bar
    }
}

/// The lanes of a panel whose bits are set.
#[inline(always)]
pub(super) fn lanes<S: Simd, const VECTORS: usize>(simd: S, bits: u32) -> [S::m32s; VECTORS] {
    const PLACES: [u32; PANEL] = {
        let mut places = [0; PANEL];
        let mut lane = 0;
        while lane < PANEL {
            places[lane] = 1 << lane;
            lane += 1;
        }
        places
    };
    let (places, _) = S::as_simd_u32s(&PLACES);
    let bits = simd.splat_u32s(bits);
    let mut lanes = [simd.equal_u32s(bits, bits); VECTORS];
    for vector in 0..VECTORS {
        lanes[vector] = simd.equal_u32s(simd.and_u32s(bits, places[vector]), places[vector]);
    }
    lanes
}

/// Copies the panel's logits out of the registers.
#[inline(always)]
pub(super) fn numbers<S: Simd, const VECTORS: usize>(logits: &[S::f32s; VECTORS]) -> [f32; PANEL] {
    let mut numbers = [0.0; PANEL];
    let (vectors, _) = S::as_mut_simd_f32s(&mut numbers);
    vectors.copy_from_slice(logits);
    numbers
}

/// The maximum of the vectors, lane by lane.
#[inline(always)]
pub(super) fn largest<S: Simd>(simd: S, vectors: &[S::f32s]) -> S::f32s {
    let mut largest = vectors[0];
    for &vector in &vectors[1..] {
        largest = simd.max_f32s(largest, vector);
    }
    largest
}
