//! The faults of a request, part by part, and why a use case has no answer.

use std::fmt;

use atelier_engine::inference::AskError;

use super::db::StoreError;

/// One thing that is wrong with a request. HTTP turns the field into a JSON pointer, pages and files into words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub field: Field,
    /// The error, what was expected, and what to do.
    pub detail: String,
}

impl Fault {
    pub fn new(field: impl Into<Field>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), detail: detail.into() }
    }
}

/// The part of a request that a [`Fault`] is about, by the names and indices that lead to it: `filters`, `types`, `1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field(Vec<String>);

impl Field {
    /// The item of the field that has this name, or this index from 0.
    pub fn item(mut self, name: &(impl ToString + ?Sized)) -> Self {
        self.0.push(name.to_string());
        self
    }

    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// The index of an item of this list.
    pub fn index_in(&self, list: &str) -> Option<usize> {
        match &self.0[..] {
            [name, index] if name == list => index.parse().ok(),
            _ => None,
        }
    }
}

/// Names that are separated by dots.
impl From<&str> for Field {
    fn from(names: &str) -> Self {
        Self(names.split('.').map(str::to_owned).collect())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [outfit, slot] if outfit == "outfit" => write!(f, "slot {slot}"),
            [features, name] if features == "features" => write!(f, "feature {name}"),
            steps => f.write_str(&steps.join(".")),
        }
    }
}

/// Why a use case has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("the request is invalid in {} places", .0.len())]
    Faults(Vec<Fault>),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Vec<Fault>> for ServiceError {
    fn from(faults: Vec<Fault>) -> Self {
        Self::Faults(faults)
    }
}

impl From<Fault> for ServiceError {
    fn from(fault: Fault) -> Self {
        Self::Faults(vec![fault])
    }
}
