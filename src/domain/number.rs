//! The one form that a number has wherever Atelier writes it down.

use serde_json::Number;

/// From here on JSON writes a float with an exponent, and not every integer is a float.
const WHOLE: f64 = 1e16;

/// The number as JSON, a whole one below 10^16 without a fraction, so that equal numbers are equal texts
/// in files and in the database alike. `None` for NaN and the infinities, which are no numbers to JSON.
pub fn json_number(number: f64) -> Option<Number> {
    #[expect(clippy::cast_possible_truncation, reason = "whole and below 10^16")]
    if number.fract() == 0.0 && number.abs() < WHOLE {
        return Some(Number::from(number as i64));
    }
    Number::from_f64(number)
}

/// The digits of a whole number that stands where words are expected: shops write the shoe size 38 without
/// quotes. `None` for what is no whole number, or too large to be surely the one that was meant.
pub fn whole_word(number: f64) -> Option<String> {
    json_number(number).filter(|number| !number.is_f64()).map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for (number, written) in [
            (79.0, "79"),
            (79.9, "79.9"),
            (-0.0, "0"),
            (1e3, "1000"),
            (9_007_199_254_740_994.0, "9007199254740994"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(json_number(number).unwrap().to_string(), written);
            assert_eq!(written.parse::<f64>().unwrap().to_bits(), (number + 0.0).to_bits(), "{written}");
        }
        let large = json_number(1e16).unwrap();
        assert!(large.is_f64(), "{large}");
        for no_number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(json_number(no_number), None);
        }
    }

    #[test]
    fn only_a_whole_number_is_a_word() {
        let words = [38.0, -1.0, -0.0].map(|number| whole_word(number).unwrap());
        assert_eq!(words, ["38", "-1", "0"]);
        for number in [38.5, 1e16, f64::NAN, f64::INFINITY] {
            assert_eq!(whole_word(number), None);
        }
    }
}
