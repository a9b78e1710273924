//! A view's parameters, each described once: [`parameters!`] lists a view's fields with their names in an address, and that
//! list both reads addresses and writes links. A link from elsewhere may be old, so parts that no longer work are left out
//! with a note. A form's view must be complete. Pages whose parameters are strict use serde in both directions instead.

use std::{borrow::Cow, collections::BTreeMap, fmt::Display};

use atelier_core::domain::{
    ArticleId, CustomerId, FeatureValue, Features, Kind, Method, OutfitSize, Schema, parse_price,
};

use crate::platform::http::Finding;

/// In place of a feature's value: the feature counts as unknown.
pub(crate) const NOT_GIVEN: &str = "(not given)";

/// The view of a page whose whole state is in its address.
pub(crate) trait Address: Sized {
    const PATH: &'static str;

    /// In the order of the address. A name with a dot at its end is the beginning of several: `own.occasion`.
    fn parameters(&self) -> Vec<(&'static str, &dyn Parameter)>;

    fn parameter(&mut self, name: &str) -> Option<&mut dyn Parameter>;

    /// Parameters that the view does not have are ignored: mails and advertisements add theirs to links.
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let (name, key) = name.split_at(name.find('.').map_or(name.len(), |dot| dot + 1));
        self.parameter(name).map_or(Ok(()), |parameter| parameter.take(key, value))
    }

    fn pairs(&self) -> Vec<(String, String)> {
        let parameters = self.parameters().into_iter();
        let pairs = parameters.flat_map(|(name, parameter)| {
            parameter.values().into_iter().map(move |(key, value)| (format!("{name}{key}"), value))
        });
        pairs.collect()
    }

    /// The hidden fields of a form that has fields for `own` itself. A name with a dot at its end is the beginning of several.
    fn besides(&self, own: &[&str]) -> Vec<(String, String)> {
        let is = |name: &str, own: &str| name == own || own.ends_with('.') && name.starts_with(own);
        self.pairs().into_iter().filter(|(name, _)| !own.iter().any(|own| is(name, own))).collect()
    }

    fn query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.pairs()).finish()
    }

    fn href(&self) -> String {
        format!("{}?{}", Self::PATH, self.query())
    }
}

/// Implements [`Address`] by the list of a view's parameters, and makes it an extractor by its `read`.
macro_rules! parameters {
    ($view:ty, $path:literal: $($name:literal => $($field:ident).+),+ $(,)?) => {
        impl $crate::platform::page::address::Address for $view {
            const PATH: &'static str = $path;

            fn parameters(&self) -> Vec<(&'static str, &dyn $crate::platform::page::address::Parameter)> {
                vec![$(($name, &self.$($field).+)),+]
            }

            fn parameter(&mut self, name: &str) -> Option<&mut dyn $crate::platform::page::address::Parameter> {
                match name {
                    $($name => Some(&mut self.$($field).+),)+
                    _ => None,
                }
            }
        }

        impl<S: Send + Sync> axum::extract::FromRequestParts<S> for $view {
            type Rejection = $crate::platform::http::Problem;

            async fn from_request_parts(
                parts: &mut axum::http::request::Parts,
                _state: &S,
            ) -> Result<Self, Self::Rejection> {
                Ok(Self::read(parts.uri.query().unwrap_or_default()))
            }
        }
    };
}
pub(crate) use parameters;

/// A field of a view, as an address has it.
pub(crate) trait Parameter {
    /// Takes a value. An empty one counts as missing. `key` is the rest of a name with a dot.
    fn take(&mut self, key: &str, value: &str) -> Result<(), String>;

    /// Its values with their keys; none while it is as usual.
    fn values(&self) -> Vec<(&str, String)>;
}

/// A value that is one word in an address.
pub(crate) trait Word: Display + Sized {
    fn read(text: &str) -> Result<Self, String>;
}

macro_rules! words {
    ($($word:ty: $read:expr),+ $(,)?) => {$(
        impl $crate::platform::page::address::Word for $word {
            fn read(text: &str) -> Result<Self, String> {
                $read(text).map_err(|error| error.to_string())
            }
        }
    )+};
}
pub(crate) use words;

words!(
    ArticleId: ArticleId::new,
    CustomerId: CustomerId::new,
    Method: str::parse::<Method>,
    String: str::parse::<String>,
    i64: str::parse::<i64>,
);

impl Word for usize {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("expected a whole number, found {text:?}"))
    }
}

/// A price. Our own links and a browser's number field write 1.5 for one and a half, whatever the language.
impl Word for f64 {
    fn read(text: &str) -> Result<Self, String> {
        let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
        price.map_or_else(|| parse_price(text), Ok)
    }
}

/// The last one counts.
impl<T: Word> Parameter for Option<T> {
    fn take(&mut self, _: &str, value: &str) -> Result<(), String> {
        *self = (!value.is_empty()).then(|| T::read(value)).transpose()?;
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        self.iter().map(|value| ("", value.to_string())).collect()
    }
}

/// Each counts once.
impl<T: Word + PartialEq> Parameter for Vec<T> {
    fn take(&mut self, _: &str, value: &str) -> Result<(), String> {
        if !value.is_empty() {
            let value = T::read(value)?;
            if !self.contains(&value) {
                self.push(value);
            }
        }
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        self.iter().map(|value| ("", value.to_string())).collect()
    }
}

/// An outfit's slots; an empty value is a blank.
impl Parameter for Vec<Option<ArticleId>> {
    fn take(&mut self, _: &str, value: &str) -> Result<(), String> {
        self.push((!value.is_empty()).then(|| Word::read(value)).transpose()?);
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        self.iter().map(|slot| ("", slot.as_ref().map(ToString::to_string).unwrap_or_default())).collect()
    }
}

/// Words of a search.
impl Parameter for String {
    fn take(&mut self, _: &str, value: &str) -> Result<(), String> {
        value.clone_into(self);
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        (!self.is_empty()).then(|| ("", self.clone())).into_iter().collect()
    }
}

impl Parameter for bool {
    fn take(&mut self, _: &str, value: &str) -> Result<(), String> {
        *self = value == "on";
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        self.then(|| ("", "on".to_owned())).into_iter().collect()
    }
}

/// A number that is usually 0.
impl Parameter for usize {
    fn take(&mut self, _: &str, value: &str) -> Result<(), String> {
        *self = if value.is_empty() { 0 } else { Word::read(value)? };
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        (*self > 0).then(|| ("", self.to_string())).into_iter().collect()
    }
}

/// Words by slot: `2:coat`.
impl Parameter for BTreeMap<usize, String> {
    fn take(&mut self, _: &str, value: &str) -> Result<(), String> {
        if let Some((slot, word)) = value.split_once(':') {
            let slot = Word::read(slot)?;
            if !word.is_empty() {
                self.insert(slot, word.to_owned());
            }
        }
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        self.iter().map(|(slot, word)| ("", format!("{slot}:{word}"))).collect()
    }
}

/// A word by key.
impl Parameter for BTreeMap<String, String> {
    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        if !value.is_empty() {
            self.insert(key.to_owned(), value.to_owned());
        }
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        self.iter().map(|(key, word)| (key.as_str(), word.clone())).collect()
    }
}

/// Values by feature's name.
pub(crate) type FeatureWords = BTreeMap<String, Vec<String>>;

/// Of `NOT_GIVEN` and values, the last counts: forms send it before their fields, which may all be empty.
impl Parameter for FeatureWords {
    fn take(&mut self, feature: &str, value: &str) -> Result<(), String> {
        if !value.is_empty() {
            let words = self.entry(feature.to_owned()).or_default();
            words.retain(|word| word != NOT_GIVEN && value != NOT_GIVEN);
            words.push(value.to_owned());
        }
        Ok(())
    }

    fn values(&self) -> Vec<(&str, String)> {
        let all =
            self.iter().flat_map(|(name, words)| words.iter().map(|word| (name.as_str(), word.clone())));
        all.collect()
    }
}

/// Features for the encoder, which reports values that do not fit the schema.
pub(crate) fn features(words: &FeatureWords, schema: &Schema) -> Features {
    let value = |name: &String, words: &Vec<String>| {
        let last = words.last().cloned().unwrap_or_default();
        match schema.feature(name).map(|feature| &feature.kind) {
            Some(Kind::Set) => FeatureValue::Many(words.clone()),
            Some(Kind::Number { .. }) => last.parse().map_or(FeatureValue::Text(last), FeatureValue::Number),
            _ => FeatureValue::Text(last),
        }
    };
    words.iter().map(|(name, words)| (name.clone(), value(name, words))).collect()
}

/// The values of features as an address has them.
pub(crate) fn values(features: &Features) -> FeatureWords {
    let words = |value: &FeatureValue| match value {
        FeatureValue::Text(word) => vec![word.clone()],
        FeatureValue::Many(words) => words.clone(),
        FeatureValue::Number(number) => vec![number.to_string()],
    };
    features.iter().map(|(name, value)| (name.to_owned(), words(value))).collect()
}

/// Passes each parameter of a query to `take`, and returns a finding for each that it refused.
pub(crate) fn each_parameter(
    query: &str,
    mut take: impl FnMut(&str, &str) -> Result<(), String>,
) -> Vec<Finding> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let finding = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
        take(&name, value.trim()).err().map(|detail| Finding::parameter(name, detail))
    };
    pairs.filter_map(finding).collect()
}

/// The lost parts of a link, in words, each once.
pub(crate) fn lost_parts(wrong: Vec<Finding>) -> Vec<String> {
    let words = |parameter: &str| match parameter {
        "slot" => "a piece",
        "truth" => "the stylist’s article",
        "type" => "a type",
        "method" => "a method",
        "customer" | "customers" => "a customer",
        "exclude" | "left_out" => "a refused article",
        "price_min" | "price_max" => "a price limit",
        "total" => "the total budget",
        "k" => "the number of suggestions",
        "outfit" => "the saved outfit",
        // The rest of the page's state.
        _ => "the place on the page",
    };
    let mut lost: Vec<String> = Vec::new();
    for words in wrong.into_iter().filter_map(|finding| finding.parameter.as_deref().map(words)) {
        if !lost.iter().any(|other| other == words) {
            lost.push(words.to_owned());
        }
    }
    lost
}

/// A finding if the outfit has too many slots for any schema.
pub(crate) fn too_long<T>(slots: &[T]) -> Option<Finding> {
    let checked = OutfitSize::default().check_slots(slots.len());
    checked.err().map(|error| Finding::parameter("slot", error.to_string()))
}
