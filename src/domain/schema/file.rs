//! Reading a schema from TOML.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::{Feature, Kind, Schema};

/// Fields of the three tables, whose columns stand beside the features in flat files.
const RESERVED: [&str; 5] = ["id", "customer", "articles", "split", "features"];

/// Why a schema is invalid.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("the schema is not valid TOML: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("a schema has at least one [[feature]], found none")]
    Empty,
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

#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Category,
    Set,
    Number,
}

impl Schema {
    /// # Errors
    /// If the text is not TOML of the right shape, or a feature is invalid.
    pub fn parse(source: &str) -> Result<Self, SchemaError> {
        let file: SchemaFile = toml::from_str(source)?;
        if file.feature.is_empty() {
            return Err(SchemaError::Empty);
        }
        let mut names = HashSet::new();
        let mut features = Vec::with_capacity(file.feature.len());
        for table in file.feature {
            if !names.insert(table.name.clone()) {
                return Err(SchemaError::Duplicate(table.name));
            }
            features.push(feature(table)?);
        }
        Ok(Self { name: file.name, features, source: source.to_owned() })
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
    Ok(Feature { name, label, kind, values, excludes: table.excludes, index })
}
