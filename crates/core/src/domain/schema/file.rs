//! Reading a schema from TOML.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use serde::Deserialize;
use toml::Spanned;

use super::{
    super::fold_for,
    Feature, Kind, OutfitSize, Schema,
    display::Display,
    requirement::{Requirement, without_values},
};

/// Fields of the three tables, whose columns stand next to the features in flat files.
const RESERVED: [&str; 5] = ["id", "customer", "articles", "split", "features"];

/// The feature of outfits in a schema that does not say which are theirs.
const OF_OUTFITS: &str = "occasion";

/// Why a schema is invalid.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("the schema is not valid TOML: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("a schema has at least one [[feature]], found none")]
    Empty,
    #[error(
        "`outfit` is a range within {limits}, such as {{least = 2, most = 6}}; found {{least = {least}, most = {most}}}",
        limits = OutfitSize::default(), least = .0.least, most = .0.most
    )]
    OutfitSize(OutfitSize),
    #[error("`display` names features in braces, such as \"{{first_name}} {{last_name}}\"; found {0:?}")]
    Display(String),
    #[error("the schema has two features named {0:?}")]
    Duplicate(String),
    #[error(
        "a feature's name contains only a-z, 0-9 and _, begins with a letter, and is none of {RESERVED:?}; found {0:?}"
    )]
    Name(String),
    #[error("feature {feature:?}: {reason}")]
    Feature { feature: String, reason: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaFile {
    name: String,
    outfit: Option<Spanned<OutfitSize>>,
    display: Option<Spanned<String>>,
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
    of: Option<Spanned<Of>>,
    types: Option<Spanned<Vec<String>>>,
    /// One table or a list of tables.
    requires: Option<Spanned<toml::Value>>,
}

/// A feature describes the customer or the outfit.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Of {
    Customer,
    Outfit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequirementTable {
    attribute: String,
    types: Option<Vec<String>>,
    #[serde(default)]
    values: BTreeMap<String, OneOrMany>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a word or a list of words")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Category,
    Set,
    Number,
}

impl Schema {
    pub fn parse(source: &str) -> Result<Self, SchemaError> {
        Self::parse_or(source, OutfitSize::default())
    }

    /// Reads a release's schema. Releases say the size of outfits since it may be another than the paper's.
    pub fn parse_released(source: &str) -> Result<Self, SchemaError> {
        Self::parse_or(source, OutfitSize::PAPER)
    }

    /// `unsaid` is the size of outfits if the text does not say it.
    fn parse_or(source: &str, unsaid: OutfitSize) -> Result<Self, SchemaError> {
        let file: SchemaFile = toml::from_str(source)?;
        if file.feature.is_empty() {
            return Err(SchemaError::Empty);
        }
        let mut names = HashSet::new();
        let mut features = Vec::with_capacity(file.feature.len());
        let (mut spans, mut says_of) = (Vec::new(), false);
        spans.extend(file.outfit.as_ref().map(Spanned::span));
        spans.extend(file.display.as_ref().map(Spanned::span));
        let display = match &file.display {
            Some(display) => Display::parse(display.get_ref())?,
            None => Display::default(),
        };
        let said = file.outfit.map(Spanned::into_inner);
        let outfit @ OutfitSize { least, most } = said.unwrap_or(unsaid);
        let limits = OutfitSize::default();
        if least < limits.least || least > most || most > limits.most {
            return Err(SchemaError::OutfitSize(outfit));
        }
        for table in file.feature {
            if !names.insert(table.name.clone()) {
                return Err(SchemaError::Duplicate(table.name));
            }
            spans.extend(table.requires.as_ref().map(Spanned::span));
            spans.extend(table.of.as_ref().map(Spanned::span));
            spans.extend(table.types.as_ref().map(Spanned::span));
            says_of |= table.of.is_some();
            features.push(feature(table)?);
        }
        spans.sort_unstable_by_key(|span| span.start);
        if !says_of && let Some(usual) = features.iter_mut().find(|feature| feature.name == OF_OUTFITS) {
            usual.of_outfit = true;
        }
        let schema = Self {
            name: file.name,
            outfit,
            display,
            features,
            learned: source.to_owned(),
            source: source.to_owned(),
        };
        let mut schema = schema.with_learned(&spans);
        if said.is_none() {
            schema.source.insert_str(0, &format!("outfit = {{least = {least}, most = {most}}}\n"));
        }
        Ok(schema)
    }

    /// The text with another size of outfits.
    pub fn source_with(&self, OutfitSize { least, most }: OutfitSize) -> String {
        #[derive(Deserialize)]
        struct Declared {
            outfit: Spanned<OutfitSize>,
        }
        let declared: Declared = toml::from_str(&self.source).expect("its text says the size");
        let mut source = self.source.clone();
        source.replace_range(declared.outfit.span(), &format!("{{least = {least}, most = {most}}}"));
        // A table of its own is no value to replace.
        if Self::parse(&source).is_ok() { source } else { self.source.clone() }
    }

    /// Finds the text that models depend on. `spans` are the bytes of what `outfit`, `display`, `requires`, `of` and `types` say in
    /// the source.
    fn with_learned(mut self, spans: &[Range<usize>]) -> Self {
        if !spans.is_empty() {
            let learned = without_values(&self.source, spans);
            let features = |schema: Self| {
                let features = schema.features.into_iter();
                let learned = |feature| Feature {
                    requires: Vec::new(),
                    types: Vec::new(),
                    of_outfit: false,
                    ..feature
                };
                features.map(learned).collect::<Vec<_>>()
            };
            // Tables may be written so that lines do not part them; then the whole text counts.
            if Self::parse(&learned).is_ok_and(|parsed| features(parsed) == features(self.clone())) {
                self.learned = learned;
            }
        }
        self
    }
}

fn feature(table: FeatureTable) -> Result<Feature, SchemaError> {
    let name = table.name;
    let valid = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !RESERVED.contains(&name.as_str());
    if !valid {
        return Err(SchemaError::Name(name));
    }
    let refuse = |reason: String| SchemaError::Feature { feature: name.clone(), reason };
    let (kind, values) = match table.kind {
        KindName::Number => {
            let (None, Some(edges)) = (table.values, table.edges) else {
                return Err(refuse("a number takes edges and no values".into()));
            };
            if table.excludes.is_some() {
                return Err(refuse("a number cannot exclude articles".into()));
            }
            if table.requires.is_some() {
                return Err(refuse(
                    "a number cannot require anything of articles; list its values as words".into(),
                ));
            }
            if edges.is_empty()
                || edges.iter().any(|e| !e.is_finite())
                || edges.windows(2).any(|w| w[0] >= w[1])
            {
                return Err(refuse(format!("edges must be finite and increase, found {edges:?}")));
            }
            (Kind::Number { edges, unit: table.unit.unwrap_or_default() }, Vec::new())
        }
        KindName::Category | KindName::Set => {
            if table.edges.is_some() || table.unit.is_some() {
                return Err(refuse("only a number takes edges or a unit".into()));
            }
            let Some(values) = table.values.filter(|values| !values.is_empty()) else {
                return Err(refuse("a category or set needs values".into()));
            };
            let kind = if table.kind == KindName::Set { Kind::Set } else { Kind::Category };
            (kind, values)
        }
    };
    let mut index = HashMap::with_capacity(values.len());
    for (row, value) in (1..).zip(&values) {
        if value.trim() != value || value.is_empty() || value.chars().any(char::is_control) {
            return Err(refuse(format!(
                "a value cannot be empty, begin or end with a space, or contain control characters; found {value:?}"
            )));
        }
        if index.insert(value.clone(), row).is_some() {
            return Err(refuse(format!("value {value:?} appears twice")));
        }
    }
    let label = table.label.unwrap_or_else(|| name.replace('_', " "));
    let requires = match table.requires {
        Some(requires) => requirements(requires.into_inner(), &index).map_err(refuse)?,
        None => Vec::new(),
    };
    let of_outfit = table.of.is_some_and(|of| *of.get_ref() == Of::Outfit);
    let types = table.types.map(Spanned::into_inner);
    if types.as_ref().is_some_and(|types| types.is_empty() || types.iter().any(|kind| kind.trim().is_empty()))
    {
        return Err(refuse("`types` has no type, or one without a name; leave it out for all".into()));
    }
    let types = types.unwrap_or_default().iter().map(|kind| fold_for("type", kind)).collect();
    Ok(Feature { name, label, kind, values, excludes: table.excludes, requires, types, of_outfit, index })
}

/// `index` has the feature's values.
fn requirements(requires: toml::Value, index: &HashMap<String, u32>) -> Result<Vec<Requirement>, String> {
    let tables = match requires {
        toml::Value::Array(tables) if tables.is_empty() => {
            return Err("`requires` is an empty list; leave it out".into());
        }
        toml::Value::Array(tables) => tables,
        table => vec![table],
    };
    let requirement = |table: toml::Value| {
        let table: RequirementTable = table.try_into().map_err(|error: toml::de::Error| {
            format!(
                "`requires` is a table such as {{attribute = \"sizes\", types = [\"jeans\"]}}, or a list of tables: {}",
                error.message()
            )
        })?;
        let is_blank = |word: &String| word.trim().is_empty();
        if is_blank(&table.attribute) {
            return Err("`requires` names no attribute".into());
        }
        if table.types.as_ref().is_some_and(|types| types.is_empty() || types.iter().any(is_blank)) {
            return Err(
                "`requires` has no type in `types`, or one without a name; leave it out for all".into()
            );
        }
        let mut values = BTreeMap::new();
        for (value, words) in table.values {
            if !index.contains_key(&value) {
                return Err(format!("`requires` maps {value:?}, which is not one of the feature's values"));
            }
            let words = match words {
                OneOrMany::One(word) => vec![word],
                OneOrMany::Many(words) => words,
            };
            if words.is_empty() || words.iter().any(is_blank) {
                return Err(format!("`requires` maps {value:?} to no word of an article"));
            }
            values.insert(value, words);
        }
        Ok(Requirement::new(&table.attribute, &table.types.unwrap_or_default(), &values))
    };
    tables.into_iter().map(requirement).collect()
}
