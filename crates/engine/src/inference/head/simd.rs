//! Arithmetic on the machine's widest registers. All functions are inlined into loops that [`pulp`] compiles once per
//! instruction set. Inner loops use an index: the compiler may not inline iterator adapters if it optimises the parts of a
//! crate apart.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use pulp::{Arch, NullaryFnOnce, Scalar, Simd};

use super::{
    rounded::{CHUNK, halves},
    table::PANEL,
};

/// An instruction set that multiplies pairs of whole numbers.
pub(super) trait Pairs: Simd {
    /// Lane by lane, both products of two pairs and a sum.
    fn add_products(self, sum: Self::i32s, a: Self::i32s, b: Self::i32s) -> Self::i32s;

    fn floats(self, numbers: Self::i32s) -> Self::f32s;
}

#[cfg(target_arch = "x86_64")]
impl Pairs for pulp::x86::V4 {
    #[inline(always)]
    fn add_products(self, sum: Self::i32s, a: Self::i32s, b: Self::i32s) -> Self::i32s {
        let products = self.avx512bw._mm512_madd_epi16(pulp::cast(a), pulp::cast(b));
        pulp::cast(self.avx512f._mm512_add_epi32(pulp::cast(sum), products))
    }

    #[inline(always)]
    fn floats(self, numbers: Self::i32s) -> Self::f32s {
        self.convert_i32x16_to_f32x16(numbers)
    }
}

#[cfg(target_arch = "x86_64")]
impl Pairs for pulp::x86::V3 {
    #[inline(always)]
    fn add_products(self, sum: Self::i32s, a: Self::i32s, b: Self::i32s) -> Self::i32s {
        let products = self.avx2._mm256_madd_epi16(pulp::cast(a), pulp::cast(b));
        pulp::cast(self.avx2._mm256_add_epi32(pulp::cast(sum), products))
    }

    #[inline(always)]
    fn floats(self, numbers: Self::i32s) -> Self::f32s {
        self.convert_i32x8_to_f32x8(numbers)
    }
}

#[cfg(target_arch = "aarch64")]
impl Pairs for pulp::aarch64::Neon {
    #[inline(always)]
    fn add_products(self, sum: Self::i32s, a: Self::i32s, b: Self::i32s) -> Self::i32s {
        let (mut sum, a, b): ([i32; 4], [i32; 4], [i32; 4]) = (pulp::cast(sum), pulp::cast(a), pulp::cast(b));
        for lane in 0..4 {
            sum[lane] = Scalar::new().add_products(sum[lane], a[lane], b[lane]);
        }
        pulp::cast(sum)
    }

    #[inline(always)]
    fn floats(self, numbers: Self::i32s) -> Self::f32s {
        let numbers: [i32; 4] = pulp::cast(numbers);
        pulp::cast(numbers.map(|number| Scalar::new().floats(number)))
    }
}

impl Pairs for Scalar {
    #[inline(always)]
    fn add_products(self, sum: i32, a: i32, b: i32) -> i32 {
        let ([a, b], [c, d]) = (halves(a), halves(b));
        let product = |a: i16, b: i16| i32::from(a) * i32::from(b);
        sum.wrapping_add(product(a, c)).wrapping_add(product(b, d))
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "a float's precision is enough for a logit")]
    fn floats(self, number: i32) -> f32 {
        number as f32
    }
}

/// Work that is compiled once per instruction set. A panel takes `VECTORS` of its vectors.
pub(super) trait WithPairs {
    type Output;

    fn with_pairs<S: Pairs, const VECTORS: usize>(self, simd: S) -> Self::Output;
}

/// Runs it on the best instruction set of this machine.
pub(super) fn dispatch<Op: WithPairs>(op: Op) -> Op::Output {
    match Arch::new() {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(simd) => on(simd, op),
        #[cfg(target_arch = "x86_64")]
        Arch::V3(simd) => on(simd, op),
        #[cfg(target_arch = "aarch64")]
        Arch::Neon(simd) => on(simd, op),
        _ => on(Scalar::new(), op),
    }
}

/// Runs it on one instruction set.
pub(super) fn on<S: Pairs, Op: WithPairs>(simd: S, op: Op) -> Op::Output {
    struct On<S, Op>(S, Op);

    impl<S: Pairs, Op: WithPairs> NullaryFnOnce for On<S, Op> {
        type Output = Op::Output;

        #[inline(always)]
        fn call(self) -> Op::Output {
            match S::F32_LANES {
                16 => self.1.with_pairs::<S, 2>(self.0),
                8 => self.1.with_pairs::<S, 4>(self.0),
                4 => self.1.with_pairs::<S, 8>(self.0),
                _ => self.1.with_pairs::<S, 32>(self.0),
            }
        }
    }

    simd.vectorize(On(simd, op))
}

/// The logits of a panel's articles for some rows. `inputs` is transposed: the first word of each row, then the second,
/// and so on.
///
/// A logit has the same bits however many rows are computed together.
#[inline(always)]
pub(super) fn logits<S: Pairs, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    panel: &[i32],
    inputs: &[[i32; ROWS]],
) -> [[S::f32s; VECTORS]; ROWS] {
    let (rows, _) = S::as_simd_i32s(panel).0.as_chunks::<VECTORS>();
    let (biases, rows) = rows.split_first().expect("a panel has biases");
    let mut logits = [biases.map(pulp::cast); ROWS];
    for (weights, inputs) in rows.chunks(1 + CHUNK).zip(inputs.chunks(1 + CHUNK)) {
        let mut sums = [[simd.splat_i32s(0); VECTORS]; ROWS];
        for (weights, inputs) in weights[1..].iter().zip(&inputs[1..]) {
            for row in 0..ROWS {
                let input = simd.splat_i32s(inputs[row]);
                for vector in 0..VECTORS {
                    sums[row][vector] = simd.add_products(sums[row][vector], weights[vector], input);
                }
            }
        }
        for row in 0..ROWS {
            let step: S::f32s = pulp::cast(simd.splat_i32s(inputs[0][row]));
            for vector in 0..VECTORS {
                let by = simd.mul_f32s(step, pulp::cast(weights[0][vector]));
                let sum = simd.floats(sums[row][vector]);
                logits[row][vector] = simd.mul_add_e_f32s(sum, by, logits[row][vector]);
            }
        }
    }
    logits
}

/// e^x for x up to 0, to about two units in the last place, and at least the smallest normal number.
#[inline(always)]
#[expect(clippy::excessive_precision, reason = "the coefficients of a known polynomial (Cephes)")]
pub(super) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
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
        let mut positions = [0; PANEL];
        let mut lane = 0;
        while lane < PANEL {
            positions[lane] = 1 << lane;
            lane += 1;
        }
        positions
    };
    let (positions, _) = S::as_simd_u32s(&PLACES);
    let bits = simd.splat_u32s(bits);
    let mut lanes = [simd.equal_u32s(bits, bits); VECTORS];
    for vector in 0..VECTORS {
        lanes[vector] = simd.equal_u32s(simd.and_u32s(bits, positions[vector]), positions[vector]);
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Exp(f32);

    impl WithPairs for Exp {
        type Output = f32;

        #[inline(always)]
        fn with_pairs<S: Pairs, const VECTORS: usize>(self, simd: S) -> f32 {
            simd.reduce_max_f32s(exp(simd, simd.splat_f32s(self.0)))
        }
    }

    #[test]
    fn exp_is_exp() {
        let exp = |x: f32| f64::from(dispatch(Exp(x)));
        for step in 0..43_000_u16 {
            let x = -2e-3 * f32::from(step);
            let (found, expected) = (exp(x), f64::from(x).exp());
            assert!((found / expected - 1.0).abs() < 3e-7, "{x}: {found} {expected}");
        }
        assert!(exp(-200.0).abs() < 1e-30);
        assert!((exp(0.0) - 1.0).abs() < 1e-7);
    }
}
