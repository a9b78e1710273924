//! Vectors as whole numbers of 16 bits: their products take half the instructions and half the memory of floats'.
//!
//! A vector is words: for each chunk the size of its steps, a float's bits, and then its numbers of steps, two to a word.

/// The words of a chunk after the first. Their products are added up as whole numbers.
pub(super) const CHUNK: usize = 16;
/// The lengths of a chunk of an article's weights and of a question's inputs, in steps: their product, rounded, fits in 32 bits.
/// Inputs have the finer steps, because all articles share their errors, which do not average out in a sum over articles.
pub(super) const OF_WEIGHTS: f64 = 31_500.0;
const OF_INPUTS: f64 = 68_000.0;
/// The largest number of steps.
const MOST: f32 = 32_767.0;
/// Smaller sizes of steps count as zero: their inverse could overflow.
const LEAST: f32 = 1e-30;

/// A number in steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    pub(super) size: f32,
    pub(super) whole: f32,
    /// Between -1/2 and 1/2.
    pub(super) rest: f32,
}

/// The words of a vector, of which no chunk is longer than `length` steps. Where a number is not finite, the size of its chunk's
/// steps is NaN.
pub(super) fn round(numbers: &[f32], length: f64, mut put_word: impl FnMut(i32), mut see: impl FnMut(Steps)) {
    for chunk in numbers.chunks(2 * CHUNK) {
        let size = size_of_steps(chunk, length);
        let in_one = if size == 0.0 { 0.0 } else { size.recip() };
        put_word(size.to_bits().cast_signed());
        for two in chunk.chunks(2) {
            let mut both = [0.0; 2];
            for (number, whole) in two.iter().zip(&mut both) {
                let exact = number * in_one;
                *whole = nearest(exact);
                see(Steps { size, whole: *whole, rest: exact - *whole });
            }
            put_word(pair(both));
        }
    }
}

/// The number of words of a vector.
pub(super) fn words(numbers: usize) -> usize {
    numbers.div_ceil(2 * CHUNK) + numbers.div_ceil(2)
}

fn size_of_steps(chunk: &[f32], length: f64) -> f32 {
    let squares: f64 = chunk.iter().map(|&number| f64::from(number) * f64::from(number)).sum();
    let largest = chunk.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    if !squares.is_finite() {
        return f32::NAN;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a float's precision is enough for a step")]
    let size = ((squares.sqrt() / length) as f32).max(largest / MOST);
    if size < LEAST { 0.0 } else { size }
}

/// The nearest whole number. The number must be less than 2²² in size.
pub(super) fn nearest(number: f32) -> f32 {
    /// Shifts the fraction out.
    const ROUND: f32 = 12_582_912.0;
    (number + ROUND) - ROUND
}

/// Two numbers of steps in a word, the first in the low half.
fn pair([first, second]: [f32; 2]) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "numbers of steps have 16 bits; NaN counts as none")]
    let half = |number: f32| (number as i16).cast_unsigned();
    (u32::from(half(first)) | u32::from(half(second)) << 16).cast_signed()
}

/// Both numbers of a word.
pub(super) fn halves(pair: i32) -> [i16; 2] {
    let pair = pair.cast_unsigned();
    #[expect(clippy::cast_possible_truncation, reason = "that half of the word")]
    let half = |bits: u32| (bits as u16).cast_signed();
    [half(pair), half(pair >> 16)]
}

/// The last layer's input for one question.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) numbers: &'a [f32],
    pub(super) words: Vec<i32>,
    /// The length of the vector.
    pub(super) length: f32,
    /// The length of what rounding took from it.
    pub(super) lost: f32,
}

impl<'a> Input<'a> {
    pub(super) fn new(numbers: &'a [f32]) -> Self {
        let mut words = Vec::with_capacity(self::words(numbers.len()));
        let mut lost = 0.0;
        round(
            numbers,
            OF_INPUTS,
            |word| words.push(word),
            |Steps { size, rest, .. }| lost += (size * rest).powi(2),
        );
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
        Self { numbers, words, length, lost: lost.sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(numbers: &[f32], length: f64) -> Vec<f32> {
        let mut whole = Vec::new();
        round(numbers, length, |_| {}, |steps| whole.push(steps.whole));
        whole
    }

    proptest! {
        #[test]
        fn products_of_chunks_fit(
            numbers in prop::collection::vec((-1e3_f32..1e3, -1e-3_f32..1e-3), 1..300), same in any::<bool>(),
        ) {
            let inputs: Vec<f32> = numbers.iter().map(|two| two.0).collect();
            let weights: Vec<f32> = numbers.iter().map(|two| if same { two.0 } else { two.1 }).collect();
            let (inputs, weights) = (whole(&inputs, OF_INPUTS), whole(&weights, OF_WEIGHTS));
            for (inputs, weights) in inputs.chunks(2 * CHUNK).zip(weights.chunks(2 * CHUNK)) {
                let product = |(a, b): (&f32, &f32)| f64::from(*a) * f64::from(*b);
                let sum: f64 = inputs.iter().zip(weights).map(product).sum();
                prop_assert!(sum.abs() <= f64::from(i32::MAX), "{sum}");
            }
        }
    }

    #[test]
    fn numbers_of_any_size_have_steps() {
        for numbers in [&[0.0, 0.0, 0.0][..], &[1e-38], &[3e38, -3e38], &[-1.0, 1e-20]] {
            let mut expected = numbers.iter();
            round(
                numbers,
                OF_INPUTS,
                |_| {},
                |Steps { size, whole, .. }| {
                    let number = expected.next().unwrap();
                    assert!((whole * size - number).abs() <= size.max(LEAST), "{number}");
                },
            );
            assert_eq!(Input::new(numbers).words.len(), words(numbers.len()));
        }
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(f32::from_bits(Input::new(&[1.0, bad]).words[0].cast_unsigned()).is_nan());
        }
    }
}
