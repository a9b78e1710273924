//! A tensor's numbers in the protocol's JSON: one flat list or nested lists.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, SeqAccess, Visitor},
};

/// Row-major.
#[derive(Debug)]
pub(super) struct Numbers(pub(super) Vec<f32>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut numbers = Vec::new();
        Append(&mut numbers).deserialize(deserializer)?;
        Ok(Self(numbers))
    }
}

/// Appends the numbers that it reads.
struct Append<'n>(&'n mut Vec<f32>);

impl<'de> DeserializeSeed<'de> for Append<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Append<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a list of numbers")
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the text of a float32 may have more digits than the number"
    )]
    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.0.push(number as f32);
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a float32 without a fraction may be written without a point"
    )]
    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.0.push(number as f32);
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a float32 without a fraction may be written without a point"
    )]
    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.0.push(number as f32);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Append(&mut *self.0))?.is_some() {}
        Ok(())
    }
}
