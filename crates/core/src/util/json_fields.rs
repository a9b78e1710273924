//! Readers for fields of JSON bodies, where serde and JSON Schema disagree about objects and integers, and writers of values as their
//! texts.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serializer,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};

/// Reads an object. Serde also reads a struct from an array of its fields' values, which the document does not allow.
pub fn read_object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Object::deserialize(deserializer).map(|object| object.0)
}

/// Reads a field that may be missing, with `#[serde(default)]`, but not null.
pub fn read_present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads an array of objects.
pub fn read_objects<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Vec::<Object<T>>::deserialize(deserializer)
        .map(|objects| objects.into_iter().map(|object| object.0).collect())
}

/// Reads an integer as JSON Schema defines it: 3.0 is one, because some languages write every number with a fraction.
/// `serde_json` rejects 3.0.
pub fn read_integer<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    Whole::deserialize(deserializer).map(|whole| whole.0)
}

/// Reads an integer or null; with `#[serde(default)]` the field may also be missing.
pub fn read_optional_integer<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    Option::<Whole<T>>::deserialize(deserializer).map(|whole| whole.map(|whole| whole.0))
}

/// Writes a value as its text.
pub fn write_text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Writes a value as its text, or null.
pub fn write_optional_text<S: Serializer>(
    value: &Option<impl fmt::Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

struct Whole<T>(T);

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Integer(PhantomData)).map(Self)
    }
}

struct Integer<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for Integer<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let integer = u64::try_from(number).ok().and_then(|number| T::try_from(number).ok());
        integer.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        /// From 2^53 on, a float may stand for several integers.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an integer, not negative, and small enough"
        )]
        let integer = (number.fract() == 0.0 && (0.0..EXACT).contains(&number)).then_some(number as u64);
        let integer = integer.and_then(|number| T::try_from(number).ok());
        integer.ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Body {
        #[serde(deserialize_with = "super::read_integer")]
        n: u32,
        #[serde(default, deserialize_with = "super::read_optional_integer")]
        maybe: Option<usize>,
    }

    fn read(text: &str) -> Result<(u32, Option<usize>), String> {
        let body: Result<Body, _> = serde_json::from_str(text);
        body.map(|body| (body.n, body.maybe)).map_err(|error| error.to_string())
    }

    #[test]
    fn integers_are_read_in_any_notation() {
        assert_eq!(read(r#"{"n": 3}"#), Ok((3, None)));
        assert_eq!(read(r#"{"n": 45710033.0, "maybe": null}"#), Ok((45_710_033, None)));
        assert_eq!(read(r#"{"n": -0.0, "maybe": 2e2}"#), Ok((0, Some(200))));
    }

    #[test]
    fn other_values_are_rejected() {
        for (number, found) in [
            ("3.5", "floating point `3.5`"),
            ("-1", "integer `-1`"),
            ("-1.0", "floating point `-1.0`"),
            ("4294967296", "integer `4294967296`"),
            ("4294967296.0", "floating point `4294967296.0`"),
            ("1e300", "floating point `1e+300`"),
        ] {
            let error = read(&format!("{{\"n\": {number}}}")).unwrap_err();
            let expected = format!("invalid value: {found}, expected a whole number from 0");
            assert!(error.starts_with(&expected), "{error}");
        }
        assert!(read(r#"{"n": 1, "maybe": "x"}"#).unwrap_err().contains("expected a whole number from 0"));
        assert!(read(r#"{"n": null}"#).unwrap_err().contains("invalid type: null"));
    }
}
