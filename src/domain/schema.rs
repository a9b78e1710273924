//! The feature schema: what can be known about a customer, and the one encoder that turns a profile
//! into the indices that models are trained on and served with.
//!
//! A schema is data. The default one is `schema.toml` beside this file; another company's is another
//! file, with as many features as it has.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use serde::Deserialize;

use super::{Article, FeatureValue, Features};

/// How wide each feature's embedding is: the context is this times the number of features, 736 for
/// the default schema's 23, as in the paper.
pub const FEATURE_WIDTH: usize = 32;

const DEFAULT: &str = include_str!("schema.toml");

/// Names that the three tables use for fields of their own, where features stand beside them.
const RESERVED: [&str; 5] = ["id", "customer", "articles", "split", "features"];

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

    /// What a value must be, in words.
    pub(crate) fn expected(&self) -> &'static str {
        match self.kind {
            Kind::Category => "a text",
            Kind::Set => "a list of texts",
            Kind::Number { .. } => "a finite number",
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
        match (&self.kind, value) {
            (Kind::Category | Kind::Set, FeatureValue::Text(word)) => Ok(known(word).into_iter().collect()),
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
            _ => Err(FeatureError {
                feature: self.name.clone(),
                expected: self.expected(),
                found: describe(value),
            }),
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

/// Why a text is not a schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("the schema is not the TOML it should be: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("a schema needs at least one [[feature]]")]
    Empty,
    #[error("the schema has feature {0:?} twice")]
    Twice(String),
    #[error(
        "a feature's name is made of a-z, 0-9 and _, begins with a letter, and is none of {RESERVED:?}; found {0:?}"
    )]
    Name(String),
    #[error("feature {feature:?}: {reason}")]
    Feature { feature: String, reason: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaFile {
    name: String,
    #[serde(default)]
    feature: Vec<FeatureTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureTable {
    name: String,
    label: Option<String>,
    kind: KindName,
    values: Option<Vec<String>>,
    edges: Option<Vec<f64>>,
    unit: Option<String>,
    excludes: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Category,
    Set,
    Number,
}

impl Schema {
    /// The schema of the paper's 23 features.
    pub fn default_schema() -> Self {
        Self::parse(DEFAULT).expect("the built-in schema is tested; this is a bug")
    }

    /// # Errors
    /// If the text is not TOML of the right shape, or a feature makes no sense.
    pub fn parse(source: &str) -> Result<Self, SchemaError> {
        let file: SchemaFile = toml::from_str(source)?;
        if file.feature.is_empty() {
            return Err(SchemaError::Empty);
        }
        let mut names = HashSet::new();
        let mut features = Vec::with_capacity(file.feature.len());
        for table in file.feature {
            if !names.insert(table.name.clone()) {
                return Err(SchemaError::Twice(table.name));
            }
            features.push(feature(table)?);
        }
        Ok(Self { name: file.name, features, source: source.to_owned() })
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

    /// The feature by which this customer rules the article out, if any does: the no-go's.
    pub fn excluded_by<'s>(&'s self, features: &Features, article: &Article) -> Option<&'s Feature> {
        self.features.iter().find(|feature| {
            let Some(attribute) = &feature.excludes else { return false };
            let ruled_out = |word: &str| match features.get(&feature.name) {
                Some(FeatureValue::Text(text)) => text == word,
                Some(FeatureValue::Many(words)) => words.iter().any(|w| w == word),
                Some(FeatureValue::Number(_)) | None => false,
            };
            article.words(attribute).any(ruled_out)
        })
    }
}

fn feature(table: FeatureTable) -> Result<Feature, SchemaError> {
    let name = table.name;
    let sound = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !RESERVED.contains(&name.as_str());
    if !sound {
        return Err(SchemaError::Name(name));
    }
    let refuse = |reason: String| SchemaError::Feature { feature: name.clone(), reason };
    let (kind, values) = match (table.kind, table.values, table.edges) {
        (KindName::Number, None, Some(edges)) => {
            if edges.is_empty()
                || edges.iter().any(|e| !e.is_finite())
                || edges.windows(2).any(|w| w[0] >= w[1])
            {
                return Err(refuse(format!("edges must be finite and rise, found {edges:?}")));
            }
            (Kind::Number { edges, unit: table.unit.unwrap_or_default() }, Vec::new())
        }
        (KindName::Number, ..) => return Err(refuse("a number takes edges and no values".into())),
        (KindName::Category | KindName::Set, _, Some(_)) => {
            return Err(refuse("only a number takes edges".into()));
        }
        (KindName::Category | KindName::Set, None, _) => {
            return Err(refuse("a category or set needs values".into()));
        }
        (KindName::Category, Some(values), None) => (Kind::Category, values),
        (KindName::Set, Some(values), None) => (Kind::Set, values),
    };
    let mut index = HashMap::with_capacity(values.len());
    for (row, value) in (1..).zip(&values) {
        if value.trim() != value || value.is_empty() || value.chars().any(char::is_control) {
            return Err(refuse(format!("a value cannot be empty, padded or unprintable, found {value:?}")));
        }
        if index.insert(value.clone(), row).is_some() {
            return Err(refuse(format!("value {value:?} stands in it twice")));
        }
    }
    if values.is_empty() && !matches!(kind, Kind::Number { .. }) {
        return Err(refuse("a category or set needs values".into()));
    }
    if table.excludes.is_some() && matches!(kind, Kind::Number { .. }) {
        return Err(refuse("a number cannot exclude articles".into()));
    }
    let label = table.label.unwrap_or_else(|| name.replace('_', " "));
    Ok(Feature { name, label, kind, values, excludes: table.excludes, index })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(word: &str) -> FeatureValue {
        FeatureValue::Text(word.into())
    }

    fn many(words: &[&str]) -> FeatureValue {
        FeatureValue::Many(words.iter().map(ToString::to_string).collect())
    }

    fn profile(given: &[(&str, FeatureValue)]) -> Features {
        given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    const SMALL: &str = r#"
        name = "small"
        [[feature]]
        name = "gender"
        kind = "category"
        values = ["female", "male"]
        [[feature]]
        name = "colours"
        kind = "set"
        values = ["red", "green", "blue"]
        [[feature]]
        name = "age"
        kind = "number"
        edges = [18, 30]
        [[feature]]
        name = "never"
        kind = "set"
        values = ["coat", "hat"]
        excludes = "type"
    "#;

    #[test]
    fn the_default_schema_has_the_papers_width() {
        let schema = Schema::default_schema();
        assert_eq!(schema.features().len(), 23);
        assert_eq!(schema.context_width(), 736);
    }

    #[test]
    fn a_profile_becomes_indices() {
        let schema = Schema::parse(SMALL).unwrap();
        let given = profile(&[
            ("gender", text("male")),
            ("colours", many(&["blue", "red", "blue"])),
            ("age", FeatureValue::Number(18.0)),
        ]);
        let encoding = schema.encode(&given).unwrap();
        assert_eq!(encoding.indices, [vec![2], vec![1, 3], vec![2], vec![]]);
        assert_eq!(encoding.warnings, []);
        for (age, bucket) in [(-5.0, 1), (17.9, 1), (18.0, 2), (29.9, 2), (30.0, 3), (1e9, 3)] {
            let encoding = schema.encode(&profile(&[("age", FeatureValue::Number(age))])).unwrap();
            assert_eq!(encoding.indices[2], [bucket], "age {age}");
        }
        assert_eq!(schema.features().iter().map(Feature::rows).collect::<Vec<_>>(), [3, 4, 4, 3]);
    }

    #[test]
    fn what_the_schema_does_not_know_is_a_warning() {
        let schema = Schema::parse(SMALL).unwrap();
        let given =
            profile(&[("gender", text("divers")), ("colours", many(&["red", "mauve"])), ("mood", text("x"))]);
        let encoding = schema.encode(&given).unwrap();
        assert_eq!(encoding.indices, [vec![], vec![1], vec![], vec![]]);
        let said: Vec<String> = encoding.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "feature \"colours\" has no value \"mauve\"; models do not see it",
                "feature \"gender\" has no value \"divers\"; models do not see it",
                "the schema has no feature \"mood\"; models do not see it",
            ]
        );
    }

    #[test]
    fn a_wrong_type_is_an_error_and_all_are_told_at_once() {
        let schema = Schema::parse(SMALL).unwrap();
        let given = profile(&[
            ("gender", many(&["male"])),
            ("colours", FeatureValue::Number(3.0)),
            ("age", FeatureValue::Number(f64::NAN)),
        ]);
        let errors = schema.encode(&given).unwrap_err();
        let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "feature \"age\" takes a finite number, found the number NaN",
                "feature \"colours\" takes a list of texts, found the number 3",
                "feature \"gender\" takes a text, found a list of 1",
            ]
        );
    }

    #[test]
    fn no_gos_rule_articles_out() {
        let schema = Schema::parse(SMALL).unwrap();
        let article = |kind: &str| {
            Article::new(
                super::super::ArticleId::new("a").unwrap(),
                kind,
                json!({}).as_object().unwrap().clone(),
            )
            .unwrap()
        };
        let given = profile(&[("never", many(&["coat"]))]);
        assert_eq!(schema.excluded_by(&given, &article("coat")).map(|f| f.name.as_str()), Some("never"));
        assert_eq!(schema.excluded_by(&given, &article("hat")), None);
        assert_eq!(schema.excluded_by(&profile(&[]), &article("coat")), None);
    }

    #[test]
    fn a_schema_that_makes_no_sense_says_why() {
        let said = |toml: &str| Schema::parse(toml).unwrap_err().to_string();
        let feature = |rest: &str| format!("name = \"x\"\n[[feature]]\n{rest}");
        assert_eq!(said("name = \"x\""), "a schema needs at least one [[feature]]");
        assert!(said("nmae = 1").contains("nmae"), "names the field");
        assert!(
            said(&feature("name = \"Ä\"\nkind = \"set\"\nvalues = [\"a\"]"))
                .starts_with("a feature's name is made of")
        );
        assert!(
            said(&feature("name = \"id\"\nkind = \"set\"\nvalues = [\"a\"]"))
                .starts_with("a feature's name is made of")
        );
        assert!(
            said(&feature("name = \"a\"\nkind = \"number\"\nedges = [2, 1]"))
                .contains("edges must be finite and rise")
        );
        assert!(said(&feature("name = \"a\"\nkind = \"set\"")).contains("needs values"));
        assert!(said(&feature("name = \"a\"\nkind = \"set\"\nvalues = []")).contains("needs values"));
        assert!(
            said(&feature("name = \"a\"\nkind = \"category\"\nvalues = [\"b\", \"b\"]")).contains("twice")
        );
        let two = "name = \"x\"\n[[feature]]\nname = \"a\"\nkind = \"set\"\nvalues = [\"a\"]\n".to_owned()
            + "[[feature]]\nname = \"a\"\nkind = \"set\"\nvalues = [\"a\"]";
        assert_eq!(said(&two), "the schema has feature \"a\" twice");
    }
}
