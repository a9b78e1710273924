//! The feature schema, and the one encoder that turns a profile into the indices that models take.
//!
//! A schema is data: the default one is `domain/schema.toml`, and a shop may use a file of its own.

mod display;
mod file;
mod requirement;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap};

use serde_json::Value;

pub use file::SchemaError;
pub use requirement::Requirement;

use self::display::Display;
use super::{
    Article, FeatureValue, Features, OutfitSize, WrongFeature, fold_for, json_number, number::integer_word,
};

/// The width of a feature's embedding. The default schema's 23 features make a context of 736 numbers, as in the paper.
pub const FEATURE_WIDTH: usize = 32;

/// The feature with the articles that a customer had before. Purchases extend it.
pub const HAD: &str = "had";

/// The feature of customers with the address of their photo, for people only.
pub const PHOTO: &str = "photo";

const DEFAULT: &str = include_str!("../schema.toml");

/// The kind of a feature's values.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// One of `values`.
    Category,
    /// Any number of `values`; their embeddings are averaged.
    Set,
    /// A number, put into one of `edges.len() + 1` buckets. A bucket includes its lower edge.
    Number { edges: Vec<f64>, unit: String },
}

/// One feature of a schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    pub name: String,
    /// The name for people.
    pub label: String,
    pub kind: Kind,
    /// Empty for numbers.
    pub values: Vec<String>,
    /// The field or attribute of articles that this feature's values exclude: `type` for no-go types.
    pub excludes: Option<String>,
    /// Articles must say this to fit a customer with the feature.
    pub requires: Vec<Requirement>,
    /// The types of articles that it is about, as they are compared; empty if the schema does not say.
    types: Vec<String>,
    /// Whether it describes an outfit, such as its occasion, instead of the customer.
    pub of_outfit: bool,
    index: HashMap<String, u32>,
}

impl Feature {
    /// Rows of this feature's embedding table, including row 0 for "not given".
    pub fn rows(&self) -> usize {
        1 + match &self.kind {
            Kind::Category | Kind::Set => self.values.len(),
            Kind::Number { edges, .. } => edges.len() + 1,
        }
    }

    /// Whether a value of it is about an article whose type says these words: one of its `types`, or of those that it requires
    /// something of. What somebody never wears is about these types only.
    pub fn concerns(&self, value: &FeatureValue, kinds: &[String]) -> bool {
        if self.excludes.as_deref() == Some("type") {
            return value.words().iter().any(|word| kinds.contains(&fold_for("type", word)));
        }
        if self.types.is_empty() {
            return self.requires.is_empty() || self.requires.iter().any(|required| required.is_about(kinds));
        }
        self.types.iter().any(|kind| kinds.contains(kind))
    }

    pub fn has_value(&self, word: &str) -> bool {
        self.index.contains_key(word)
    }

    pub fn takes_words(&self) -> bool {
        matches!(self.kind, Kind::Category | Kind::Set)
    }

    /// Describes the values it takes, for messages.
    pub fn expected(&self) -> &'static str {
        match self.kind {
            Kind::Category => "a string or a whole number",
            Kind::Set => "a list of strings or whole numbers",
            Kind::Number { .. } => "a finite number",
        }
    }

    /// The value in its stored form: a set of one word is a list, and a whole number where words are expected
    /// is a word.
    pub fn normalise<'v>(&self, value: Cow<'v, FeatureValue>) -> Cow<'v, FeatureValue> {
        let word = match (&self.kind, &*value) {
            (Kind::Category | Kind::Set, FeatureValue::Number(number)) => integer_word(*number),
            (Kind::Set, FeatureValue::Text(word)) => Some(word.clone()),
            _ => None,
        };
        match word {
            Some(word) if self.kind == Kind::Set => Cow::Owned(FeatureValue::Many(vec![word])),
            Some(word) => Cow::Owned(FeatureValue::Text(word)),
            None => value,
        }
    }

    /// The value's indices, from 1. Words that the schema does not list are dropped with a warning.
    fn encode(
        &self,
        value: &FeatureValue,
        warnings: &mut Vec<FeatureWarning>,
    ) -> Result<Vec<u32>, WrongFeature> {
        let mut index = |word: &String| {
            let found = self.index.get(word).copied();
            if found.is_none() {
                warnings
                    .push(FeatureWarning::UnknownValue { feature: self.name.clone(), value: word.clone() });
            }
            found
        };
        let refuse = || {
            let (name, expected) = (self.name.clone(), self.expected());
            let reason = format!("feature {name:?} takes {expected}, found {}", describe(value));
            WrongFeature { name, reason }
        };
        match (&self.kind, value) {
            (Kind::Category | Kind::Set, FeatureValue::Text(word)) => Ok(index(word).into_iter().collect()),
            (Kind::Category | Kind::Set, FeatureValue::Number(number)) => {
                let word = integer_word(*number).ok_or_else(refuse)?;
                Ok(index(&word).into_iter().collect())
            }
            (Kind::Set, FeatureValue::Many(words)) => {
                let mut indices: Vec<u32> = words.iter().filter_map(index).collect();
                // Neither order nor repetition changes the average of a set's embeddings.
                indices.sort_unstable();
                indices.dedup();
                Ok(indices)
            }
            (Kind::Number { edges, unit }, FeatureValue::Number(number)) if number.is_finite() => {
                warnings.extend(self.warn_of_implausible(*number, edges, unit));
                let bucket = edges.partition_point(|edge| edge <= number);
                Ok(vec![1 + u32::try_from(bucket).expect("fewer than four billion buckets")])
            }
            _ => Err(refuse()),
        }
    }

    /// The rows of its embedding table that a value takes; row 0 without a value that the schema lists.
    pub fn rows_of(&self, value: Option<&FeatureValue>) -> Vec<u32> {
        let encoded = value.and_then(|value| self.encode(value, &mut Vec::new()).ok());
        encoded.filter(|rows| !rows.is_empty()).unwrap_or_else(|| vec![0])
    }

    /// The name of a row of its embedding table.
    pub fn row_name(&self, row: u32) -> String {
        let Some(index) = (row as usize).checked_sub(1) else { return "not given".to_owned() };
        match &self.kind {
            Kind::Category | Kind::Set => self.values[index].clone(),
            Kind::Number { edges, unit } => {
                let range = match (index.checked_sub(1).map(|below| edges[below]), edges.get(index)) {
                    (None, Some(to)) => format!("under {to}"),
                    (Some(from), Some(to)) => format!("{from} to under {to}"),
                    (Some(from), None) => format!("{from} and over"),
                    (None, None) => unreachable!("a number has an edge"),
                };
                if unit.is_empty() { range } else { format!("{range} {unit}") }
            }
        }
    }

    /// A number is plausible within the edges and once their span beyond them, and not below 0 if no edge is. Edges
    /// without a span, of which there is one at 0, do not say what is plausible.
    fn warn_of_implausible(&self, number: f64, edges: &[f64], unit: &str) -> Option<FeatureWarning> {
        let (first, last) = (*edges.first()?, *edges.last()?);
        let span = if edges.len() == 1 { last.abs() } else { last - first };
        let lowest = if first >= 0.0 { (first - span).max(0.0) } else { first - span };
        let plausible = lowest..=last + span;
        (span > 0.0 && !plausible.contains(&number)).then(|| FeatureWarning::ImplausibleNumber {
            feature: self.name.clone(),
            value: json_number(number).map(|number| number.to_string()).unwrap_or_default(),
            plausible: format!("{} to {} {unit}", plausible.start(), plausible.end()).trim_end().to_owned(),
        })
    }
}

fn describe(value: &FeatureValue) -> String {
    match value {
        FeatureValue::Text(text) => format!("the string {text:?}"),
        FeatureValue::Number(number) => format!("the number {number}"),
        FeatureValue::Many(words) => format!("a list of {}", words.len()),
    }
}

/// A part of a profile that the schema does not list, or a number that cannot be true. The former is encoded as not given,
/// and stays in the stored profile: a later schema may list it. The latter is in the lowest or highest bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum FeatureWarning {
    #[error("the schema has no feature {feature:?}; models do not see it")]
    UnknownFeature { feature: String },
    #[error("feature {feature:?} has no value {value:?}; models do not see it")]
    UnknownValue { feature: String, value: String },
    #[error("feature {feature:?} is {value}, but {plausible} is plausible; models see the nearest bucket")]
    ImplausibleNumber { feature: String, value: String, plausible: String },
}

impl FeatureWarning {
    /// The name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownFeature { .. } => "unknown-feature",
            Self::UnknownValue { .. } => "unknown-value",
            Self::ImplausibleNumber { .. } => "implausible-number",
        }
    }

    /// The name of the feature that it is about.
    pub fn feature(&self) -> &str {
        let (Self::UnknownFeature { feature }
        | Self::UnknownValue { feature, .. }
        | Self::ImplausibleNumber { feature, .. }) = self;
        feature
    }

    /// Whether a report counts both as one: numbers differ from row to row.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ImplausibleNumber { feature, .. }, Self::ImplausibleNumber { feature: other, .. }) => {
                feature == other
            }
            _ => self == other,
        }
    }
}

/// A profile in the form that models take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// One entry for each feature, in the schema's order; empty where it is not given.
    pub indices: Vec<Vec<u32>>,
    pub warnings: Vec<FeatureWarning>,
}

/// The features that a model is trained on, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    name: String,
    outfit: OutfitSize,
    display: Display,
    features: Vec<Feature>,
    source: String,
    learned: String,
}

impl Schema {
    /// The schema of the paper's 23 features.
    pub fn default_schema() -> Self {
        Self::parse(DEFAULT).expect("the built-in schema is tested")
    }

    /// The same, of outfits as the paper has them.
    pub fn paper_schema() -> Self {
        Self::parse(&DEFAULT.replace("{least = 2, most = 12}", "{least = 4, most = 8}"))
            .expect("the built-in schema is tested")
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn outfit_size(&self) -> OutfitSize {
        self.outfit
    }

    #[must_use]
    pub fn with_outfit_size(self, outfit: OutfitSize) -> Self {
        Self { outfit, ..self }
    }

    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    pub fn feature(&self, name: &str) -> Option<&Feature> {
        self.features.iter().find(|feature| feature.name == name)
    }

    /// A customer's name, by the schema's `display`; None if their features have none.
    pub fn display_name(&self, features: &Features) -> Option<String> {
        self.display.write(features)
    }

    /// The features of customers that are for people only: those of `display`, and their photo.
    pub fn for_people(&self) -> impl Iterator<Item = &str> {
        self.display.features().chain([PHOTO])
    }

    /// The TOML that it was read from, with the size of outfits if that did not say it. A model is saved with its schema.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The part of the TOML that models depend on: without `requires`, which only filters, `of`, which only
    /// sorts the features, `types` and `display`, which are for people, and `outfit`, which outfits themselves show. Adding them leaves models valid.
    pub fn learned_source(&self) -> &str {
        &self.learned
    }

    /// Encodes a profile, for training and serving alike.
    pub fn encode(&self, features: &Features) -> Result<Encoding, Vec<WrongFeature>> {
        let mut warnings = Vec::new();
        let mut errors = Vec::new();
        let mut indices = vec![Vec::new(); self.features.len()];
        for (name, value) in features.iter() {
            match self.features.iter().position(|feature| feature.name == name) {
                None if self.for_people().any(|own| own == name) => {}
                None => warnings.push(FeatureWarning::UnknownFeature { feature: name.to_owned() }),
                Some(index) => match self.features[index].encode(value, &mut warnings) {
                    Ok(found) => indices[index] = found,
                    Err(error) => errors.push(error),
                },
            }
        }
        if errors.is_empty() { Ok(Encoding { indices, warnings }) } else { Err(errors) }
    }

    /// Whether an article has sizes, and the schema requires sizes only of articles of other types.
    pub fn ignores_sizes(&self, article: &Article) -> bool {
        let of_sizes: Vec<&Requirement> =
            self.requirements().filter(|required| required.is_of_sizes()).collect();
        let kinds = article.folded_words("type");
        let counts_sizes =
            || article.stock().is_some_and(|counts| counts.iter().any(|count| !count.words.is_empty()));
        let has_sizes =
            |required: &&Requirement| required.excludes_some(&article.folded_words(&required.attribute));
        !of_sizes.is_empty()
            && of_sizes.iter().all(|required| !required.is_about(&kinds))
            && (of_sizes.iter().any(has_sizes) || counts_sizes())
    }

    /// The attributes that a customer's features require something of, and that say nothing that can be compared although the
    /// article has them: it fits every customer.
    pub fn unreadable_requirements(&self, article: &Article) -> Vec<&str> {
        fn is_read(value: &Value) -> bool {
            match value {
                Value::String(_) | Value::Number(_) => true,
                Value::Array(values) => values.iter().all(is_read),
                Value::Object(fields) => fields.values().all(is_read),
                Value::Null | Value::Bool(_) => false,
            }
        }
        let is_unreadable =
            |name: &str| article.attribute(name).is_some_and(|value| !value.is_null() && !is_read(value));
        let mut names: Vec<&str> = self.requirements().map(|required| required.attribute.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| is_unreadable(name));
        names
    }

    /// The requirements with words of their own for articles of which this one says none, although it says something: it fits no
    /// customer with such a value.
    pub fn unmet_requirements(&self, article: &Article) -> Vec<&Requirement> {
        let kinds = article.folded_words("type");
        let is_unmet = |required: &&Requirement| {
            let words = article.folded_words(&required.attribute);
            let expected = required.words_of_articles();
            !expected.is_empty()
                && required.is_about(&kinds)
                && required.excludes_some(&words)
                && !words.iter().any(|word| expected.contains(&word.as_str()))
        };
        self.requirements().filter(is_unmet).collect()
    }

    fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.features.iter().flat_map(|feature| &feature.requires)
    }

    /// Whether a feature excludes or requires something of this attribute of articles.
    pub fn names_attribute(&self, name: &str) -> bool {
        self.features.iter().any(|feature| {
            feature.excludes.as_deref() == Some(name)
                || feature.requires.iter().any(|requirement| requirement.attribute == name)
        })
    }

    /// The words that a customer excludes, each with the field or attribute of articles that must not have it.
    pub fn exclusions<'a>(&'a self, features: &'a Features) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let no_gos = self.features.iter().filter_map(|feature| {
            let attribute = feature.excludes.as_deref()?;
            let words: Vec<Cow<'a, str>> = match features.get(&feature.name)? {
                FeatureValue::Text(word) => vec![word.as_str().into()],
                FeatureValue::Many(words) => words.iter().map(|word| word.as_str().into()).collect(),
                FeatureValue::Number(number) => integer_word(*number).map(Cow::from).into_iter().collect(),
            };
            Some(words.into_iter().map(move |word| (attribute, word)))
        });
        no_gos.flatten()
    }
}
