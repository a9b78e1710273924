//! Whole numbers as JSON Schema has them: 3.0 is an integer, whatever its notation.
//!
//! Some languages write every number with a fraction, and a document that says `integer` promises to take
//! what they send. `serde_json` tells the two apart, so fields of bodies name these functions.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{Error, Unexpected, Visitor},
};

/// For a field that is needed or has a default.
pub(crate) fn whole<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    deserializer.deserialize_any(Whole(PhantomData))
}

/// For a field that may be null or, with `#[serde(default)]`, missing.
pub(crate) fn whole_option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    deserializer.deserialize_option(Optional(PhantomData))
}

struct Whole<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for Whole<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let whole = u64::try_from(number).ok().and_then(|number| T::try_from(number).ok());
        whole.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        /// From 2^53 on a float no longer says which whole number was meant.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative, and small enough"
        )]
        let whole = (number.fract() == 0.0 && (0.0..EXACT).contains(&number)).then_some(number as u64);
        let whole = whole.and_then(|number| T::try_from(number).ok());
        whole.ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}

struct Optional<T>(PhantomData<T>);

impl<'de, T: TryFrom<u64>> Visitor<'de> for Optional<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0, or null")
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        whole(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Body {
        #[serde(deserialize_with = "super::whole")]
        n: u32,
        #[serde(default, deserialize_with = "super::whole_option")]
        maybe: Option<usize>,
    }

    fn read(text: &str) -> Result<(u32, Option<usize>), String> {
        let body: Result<Body, _> = serde_json::from_str(text);
        body.map(|body| (body.n, body.maybe)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_number_is_one_in_any_notation() {
        assert_eq!(read(r#"{"n": 3}"#), Ok((3, None)));
        assert_eq!(read(r#"{"n": 45710033.0, "maybe": null}"#), Ok((45_710_033, None)));
        assert_eq!(read(r#"{"n": -0.0, "maybe": 2e2}"#), Ok((0, Some(200))));
    }

    #[test]
    fn what_is_none_says_so() {
        for (number, found) in [
            ("3.5", "floating point `3.5`"),
            ("-1", "integer `-1`"),
            ("-1.0", "floating point `-1.0`"),
            ("4294967296", "integer `4294967296`"),
            ("4294967296.0", "floating point `4294967296.0`"),
            ("1e300", "floating point `1e+300`"),
        ] {
            let said = read(&format!("{{\"n\": {number}}}")).unwrap_err();
            let expected = format!("invalid value: {found}, expected a whole number from 0");
            assert!(said.starts_with(&expected), "{said}");
        }
        assert!(read(r#"{"n": 1, "maybe": "x"}"#).unwrap_err().contains("expected a whole number from 0"));
        assert!(read(r#"{"n": null}"#).unwrap_err().contains("invalid type: null"));
    }
}
