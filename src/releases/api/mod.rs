//! The routes for programs.

pub(crate) mod releases;
pub(crate) mod routing;

use super::{ActivateError, release_folder::AddError};
use crate::platform::http::{Finding, Kind, Problem};

impl From<ActivateError> for Problem {
    fn from(error: ActivateError) -> Self {
        match error {
            ActivateError::NoRelease { .. } => Self::new(Kind::NotFound, error.to_string()),
            ActivateError::Load(_) => Self::new(Kind::Refused, error.to_string()),
            ActivateError::CoversLittle { .. } => {
                Self::new(Kind::Refused, format!("{error} with the query parameter force=true"))
            }
            ActivateError::Compared { .. } => Self::new(Kind::Conflict, error.to_string()),
            ActivateError::Store(error) => error.into(),
        }
    }
}

impl From<AddError> for Problem {
    fn from(error: AddError) -> Self {
        match error {
            AddError::Digest { .. } => {
                Self::invalid(vec![Finding::parameter("X-Content-SHA256", error.to_string())])
            }
            AddError::Archive(reason) => Self::new(Kind::Invalid, reason),
            AddError::Exists(_) => Self::new(Kind::Conflict, error.to_string()),
            AddError::Refused { reason, .. } => Self::new(Kind::Refused, reason),
            AddError::Disk(_) => Self::inside(Kind::Unavailable, error),
            AddError::Store(error) => error.into(),
        }
    }
}
