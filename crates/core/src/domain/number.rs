//! One written form for every number.

use serde_json::Number;

/// JSON writes larger floats with an exponent, and not every larger integer is a float.
const LARGEST_INTEGER: f64 = 1e16;

/// The number as JSON. A whole number below 10^16 has no fraction, so equal numbers are equal texts in files and
/// in the database. `None` for NaN and the infinities, which JSON cannot express.
pub fn json_number(number: f64) -> Option<Number> {
    #[expect(clippy::cast_possible_truncation, reason = "whole and below 10^16")]
    if number.fract() == 0.0 && number.abs() < LARGEST_INTEGER {
        return Some(Number::from(number as i64));
    }
    Number::from_f64(number)
}

/// The digits of a whole number given where a word is expected: shops write the shoe size 38 without quotes.
/// `None` if the number has a fraction, or is too large to be exact.
pub(super) fn integer_word(number: f64) -> Option<String> {
    json_number(number).filter(|number| !number.is_f64()).map(|number| number.to_string())
}
