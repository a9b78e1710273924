//! Versions of rows, by which a caller makes sure to change what it has read.

use std::fmt;

use atelier_core::domain::PatchError;
use sha2::{Digest, Sha256};

use super::{Put, StoreError};

/// Identifies the contents of a row. A row that was deleted and added again has another version, unless it is the same
/// in everything that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(String);

impl Version {
    /// `contents` are the columns that are read. They are part of the version because a row may be deleted and added
    /// within the same millisecond.
    pub(crate) fn new(created_at: i64, revision: i64, contents: &[&str]) -> Self {
        let mut digest = Sha256::new();
        digest.update(created_at.to_be_bytes());
        digest.update(revision.to_be_bytes());
        for text in contents {
            digest.update(text.len().to_be_bytes());
            digest.update(text);
        }
        Self(hex::encode(&digest.finalize()[..12]))
    }

    /// The version of a text that is in no table.
    pub fn of_text(text: &[u8]) -> Self {
        Self(hex::encode(&Sha256::digest(text)[..12]))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stored<T> {
    pub value: T,
    pub version: Version,
}

/// Versions that a caller names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versions {
    /// Whichever there is.
    Any,
    OneOf(Vec<String>),
}

impl Versions {
    /// False if there is no row.
    pub fn contain(&self, current: Option<&Version>) -> bool {
        match (self, current) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::OneOf(versions), Some(current)) => versions.contains(&current.0),
        }
    }
}

/// The state a caller expects before a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    pub one_of: Option<Versions>,
    pub none_of: Option<Versions>,
}

impl Expected {
    /// Whether every row is fine, and so is none.
    pub(crate) fn is_anything(&self) -> bool {
        *self == Self::default()
    }

    pub fn check(&self, current: Option<&Version>) -> Result<(), ChangeError> {
        let allows = self.one_of.as_ref().is_none_or(|versions| versions.contain(current))
            && self.none_of.as_ref().is_none_or(|versions| !versions.contain(current));
        if allows { Ok(()) } else { Err(ChangeError::Differs(current.cloned())) }
    }

    /// Like [`Expected::check`], after a row was written. Another caller may have added it since it was looked for.
    pub(crate) fn check_put(&self, put: Put, found: bool) -> Result<(), ChangeError> {
        let added_by_another = !self.is_anything() && !found && put != Put::Added;
        if added_by_another { Err(ChangeError::Differs(None)) } else { Ok(()) }
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no such row")]
    Missing,
    /// The row's version, unless there is no row or another caller has just added it.
    #[error("the row has another version than expected")]
    Differs(Option<Version>),
    #[error(transparent)]
    Invalid(#[from] PatchError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for ChangeError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}
