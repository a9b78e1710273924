//! Loops that the compiler vectorises for the widest registers of the machine.

/// Defines a function whose body is compiled once per instruction set; a call picks the best.
///
/// The body must be plain loops over slices. A function that it calls must be `#[inline(always)]`, or it is
/// compiled for the baseline instructions.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<'a>($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name<'a>($($arg: $ty),*) $(-> $out)? {
            struct Kernel<'a>($($ty,)* std::marker::PhantomData<&'a ()>);
            impl<'a> pulp::NullaryFnOnce for Kernel<'a> {
                type Output = vectorised!(@output $($out)?);
                #[inline(always)]
                fn call(self) -> Self::Output {
                    let Kernel($($arg,)* _) = self;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Kernel($($arg,)* std::marker::PhantomData))
        }
    };
    (@output) => { () };
    (@output $out:ty) => { $out };
}
pub(crate) use vectorised;

/// Partial sums in [`dot`] and [`sum`]: the lanes of the widest register, and the width of a head.
const LANES: usize = 16;

/// e^x to about one unit in the last place, at least the smallest normal number.
///
/// Scalar, for the compiler to vectorise, and with its own rounding: the service's vector version (`engine::head`)
/// would change what a seed trains to.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding and subtracting this rounds: it shifts the fraction out of the mantissa.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let rest = whole.mul_add(-LN2_LOW, whole.mul_add(-LN2_HIGH, x));
    let mut series = 1.987_569_1e-4_f32;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5] {
        series = series.mul_add(rest, coefficient);
    }
    let fraction = series.mul_add(rest * rest, rest) + 1.0;
    fraction * f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
}

#[expect(clippy::inline_always, reason = "has to be inlined into a vectorised loop")]
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] = a[lane].mul_add(b[lane], lanes[lane]);
        }
    }
    fold(lanes) + rest
}

#[expect(clippy::inline_always, reason = "has to be inlined into a vectorised loop")]
#[inline(always)]
pub(super) fn sum(a: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let chunks = a.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().sum();
    for a in chunks {
        for lane in 0..LANES {
            lanes[lane] += a[lane];
        }
    }
    fold(lanes) + rest
}

#[expect(clippy::inline_always, reason = "has to be inlined into a vectorised loop")]
#[inline(always)]
fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// A count as a float.
#[expect(clippy::cast_precision_loss, reason = "rows, widths, outfits: all far below 2^24")]
pub(crate) fn number(count: usize) -> f32 {
    count as f32
}

vectorised! {
    /// to += from
    pub(crate) fn add<'a>(to: &'a mut [f32], from: &'a [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to += from;
        }
    }
}

vectorised! {
    /// to += factor · from
    pub(super) fn add_scaled<'a>(to: &'a mut [f32], from: &'a [f32], factor: f32) {
        for (to, from) in to.iter_mut().zip(from) {
            *to += factor * from;
        }
    }
}

vectorised! {
    /// Adds each row of `rows` to `to`: the gradient of a bias.
    pub(super) fn add_rows<'a>(to: &'a mut [f32], rows: &'a [f32]) {
        for row in rows.chunks_exact(to.len()) {
            for (to, from) in to.iter_mut().zip(row) {
                *to += from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_matches_the_standard_librarys() {
        for step in -8600..8700_i16 {
            let x = f32::from(step) / 100.0;
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found / expected - 1.0).abs() < 2e-7, "exp({x}) = {found}, expected {expected}");
        }
        assert!((exp(0.0) - 1.0).abs() < f32::EPSILON);
        assert!(exp(-1e9) < 1e-37 && exp(-1e9) >= 0.0);
    }

    #[test]
    fn sums_of_any_length() {
        for length in [0, 1, 16, 31, 32, 33, 100_u16] {
            let values: Vec<f32> = (0..length).map(f32::from).collect();
            let expected: f32 = values.iter().sum();
            assert!((sum(&values) - expected).abs() < f32::EPSILON);
            assert!((dot(&values, &vec![2.0; values.len()]) - 2.0 * expected).abs() < f32::EPSILON);
        }
    }
}
