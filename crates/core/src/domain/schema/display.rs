//! A customer's name for people: a text with features in braces.

use super::{Features, SchemaError};
use crate::domain::FeatureValue;

/// `{first_name} {last_name}`
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Display(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Feature(String),
}

impl Default for Display {
    fn default() -> Self {
        Self(vec![Part::Feature("name".to_owned())])
    }
}

impl Display {
    pub(super) fn parse(text: &str) -> Result<Self, SchemaError> {
        let refuse = || SchemaError::Display(text.to_owned());
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(refuse)?;
            if name.trim().is_empty() || name.contains('{') || before.contains('}') {
                return Err(refuse());
            }
            parts.extend([Part::Text(before.to_owned()), Part::Feature(name.trim().to_owned())]);
            rest = after;
        }
        if parts.is_empty() || rest.contains('}') {
            return Err(refuse());
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// The features in their order.
    pub(super) fn features(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Feature(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text with the customer's values; None if they have none.
    pub(super) fn write(&self, features: &Features) -> Option<String> {
        let value = |name: &str| match features.get(name) {
            Some(FeatureValue::Text(text)) => text.as_str(),
            _ => "",
        };
        self.features().any(|name| !value(name).trim().is_empty()).then(|| {
            let parts = self.0.iter().map(|part| match part {
                Part::Text(text) => text.as_str(),
                Part::Feature(name) => value(name),
            });
            parts.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
        })
    }
}
