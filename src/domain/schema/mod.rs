//! The feature schema: what can be known about a customer, and the one encoder that turns a profile
//! into the indices that models are trained on and served with.
//!
//! A schema is data. The default one is `src/domain/schema.toml`; another company's is another
//! file, with as many features as it has.

mod file;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap, fmt};

pub use file::SchemaError;

use super::{FeatureValue, Features, whole_word};

/// How wide each feature's embedding is: the context is this times the number of features, 736 for
/// the default schema's 23, as in the paper.
pub const FEATURE_WIDTH: usize = 32;

const DEFAULT: &str = include_str!("../schema.toml");

/// What a feature's values look like.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// One of `values`.
    Category,
    /// Any number of `values`; their embeddings are averaged.
    Set,
    /// A number, put into one of `edges.len() + 1` buckets. A bucket holds its lower edge.
    Number { edges: Vec<f64>, unit: String },
}

/// One feature of a schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    pub name: String,
    /// The feature in words, for pages and messages.
    pub label: String,
    pub kind: Kind,
    /// Empty for numbers.
    pub values: Vec<String>,
    /// The field or attribute of an article that this feature's values rule out: `type` for no-go types.
    pub excludes: Option<String>,
    index: HashMap<String, u32>,
}

impl Feature {
    /// Rows of this feature's embedding table, the "not given" row 0 among them.
    pub fn rows(&self) -> usize {
        1 + match &self.kind {
            Kind::Category | Kind::Set => self.values.len(),
            Kind::Number { edges, .. } => edges.len() + 1,
        }
    }

    pub(crate) fn takes_words(&self) -> bool {
        matches!(self.kind, Kind::Category | Kind::Set)
    }

    /// What a value must be, in words.
    pub(crate) fn expected(&self) -> &'static str {
        match self.kind {
            Kind::Category => "a text or a whole number",
            Kind::Set => "a list of texts or whole numbers",
            Kind::Number { .. } => "a finite number",
        }
    }

    /// The value in the form that files and requests are brought to, so that all of them are kept alike:
    /// one word of a set is a set, and a whole number where words are expected is the word that it is.
    pub fn kept(&self, value: FeatureValue) -> FeatureValue {
        let word = match (&self.kind, &value) {
            (Kind::Category | Kind::Set, FeatureValue::Number(number)) => whole_word(*number),
            (Kind::Set, FeatureValue::Text(word)) => Some(word.clone()),
            _ => None,
        };
        match word {
            Some(word) if self.kind == Kind::Set => FeatureValue::Many(vec![word]),
            Some(word) => FeatureValue::Text(word),
            None => value,
        }
    }

    /// The value's indices (1 and up). Words that the schema does not know are left out and reported.
    fn encode(
        &self,
        value: &FeatureValue,
        warnings: &mut Vec<FeatureWarning>,
    ) -> Result<Vec<u32>, FeatureError> {
        let mut known = |word: &String| {
            let found = self.index.get(word).copied();
            if found.is_none() {
                warnings
                    .push(FeatureWarning::UnknownValue { feature: self.name.clone(), value: word.clone() });
            }
            found
        };
        let refuse =
            || FeatureError { feature: self.name.clone(), expected: self.expected(), found: describe(value) };
        match (&self.kind, value) {
            (Kind::Category | Kind::Set, FeatureValue::Text(word)) => Ok(known(word).into_iter().collect()),
            (Kind::Category | Kind::Set, FeatureValue::Number(number)) => {
                let word = whole_word(*number).ok_or_else(refuse)?;
                Ok(known(&word).into_iter().collect())
            }
            (Kind::Set, FeatureValue::Many(words)) => {
                let mut indices: Vec<u32> = words.iter().filter_map(known).collect();
                // A set: neither order nor repetition may move the average.
                indices.sort_unstable();
                indices.dedup();
                Ok(indices)
            }
            (Kind::Number { edges, .. }, FeatureValue::Number(number)) if number.is_finite() => {
                let bucket = edges.partition_point(|edge| edge <= number);
                Ok(vec![
                    1 + u32::try_from(bucket)
                        .expect("fewer than four billion buckets, checked when read; this is a bug"),
                ])
            }
            _ => Err(refuse()),
        }
    }
}

fn describe(value: &FeatureValue) -> String {
    match value {
        FeatureValue::Text(text) => format!("the text {text:?}"),
        FeatureValue::Number(number) => format!("the number {number}"),
        FeatureValue::Many(words) => format!("a list of {}", words.len()),
    }
}

/// A feature's value has the wrong type: the request or the row is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("feature {feature:?} takes {expected}, found {found}")]
pub struct FeatureError {
    pub feature: String,
    pub expected: &'static str,
    pub found: String,
}

/// Something in a profile means nothing to the schema: it is encoded as not given. Where the profile is
/// kept, it stays: a later schema may know it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FeatureWarning {
    UnknownFeature { feature: String },
    UnknownValue { feature: String, value: String },
}

impl FeatureWarning {
    /// The warning by one word, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownFeature { .. } => "unknown-feature",
            Self::UnknownValue { .. } => "unknown-value",
        }
    }
}

impl fmt::Display for FeatureWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFeature { feature } => {
                write!(f, "the schema has no feature {feature:?}; models do not see it")
            }
            Self::UnknownValue { feature, value } => {
                write!(f, "feature {feature:?} has no value {value:?}; models do not see it")
            }
        }
    }
}

/// A profile as models take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// One entry a feature, in the schema's order; empty where it is not given.
    pub indices: Vec<Vec<u32>>,
    pub warnings: Vec<FeatureWarning>,
}

/// The features that a model is trained on, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    name: String,
    features: Vec<Feature>,
    source: String,
}

impl Schema {
    /// The schema of the paper's 23 features.
    pub fn default_schema() -> Self {
        Self::parse(DEFAULT).expect("the built-in schema is tested; this is a bug")
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    pub fn feature(&self, name: &str) -> Option<&Feature> {
        self.features.iter().find(|feature| feature.name == name)
    }

    /// The TOML it was read from, to be kept beside whatever was trained with it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Width of the context vector: the paper's `d_context`.
    pub fn context_width(&self) -> usize {
        FEATURE_WIDTH * self.features.len()
    }

    /// The one encoder: training and serving both call it.
    ///
    /// # Errors
    /// Every feature whose value has the wrong type.
    pub fn encode(&self, features: &Features) -> Result<Encoding, Vec<FeatureError>> {
        let mut warnings = Vec::new();
        let mut errors = Vec::new();
        let mut indices = vec![Vec::new(); self.features.len()];
        for (name, value) in features.iter() {
            match self.features.iter().position(|feature| feature.name == name) {
                None => warnings.push(FeatureWarning::UnknownFeature { feature: name.to_owned() }),
                Some(place) => match self.features[place].encode(value, &mut warnings) {
                    Ok(found) => indices[place] = found,
                    Err(error) => errors.push(error),
                },
            }
        }
        if errors.is_empty() { Ok(Encoding { indices, warnings }) } else { Err(errors) }
    }

    /// What a customer rules out: attributes of articles (or `type`), and the word that none may have there.
    pub fn ruled_out<'a>(&'a self, features: &'a Features) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let no_gos = self.features.iter().filter_map(|feature| {
            let attribute = feature.excludes.as_deref()?;
            let words: Vec<Cow<'a, str>> = match features.get(&feature.name)? {
                FeatureValue::Text(word) => vec![word.as_str().into()],
                FeatureValue::Many(words) => words.iter().map(|word| word.as_str().into()).collect(),
                FeatureValue::Number(number) => whole_word(*number).map(Cow::from).into_iter().collect(),
            };
            Some(words.into_iter().map(move |word| (attribute, word)))
        });
        no_gos.flatten()
    }
}
