//! Errors of the service that are the same problem everywhere. Faults are not among them: the API names a place in the
//! request's body, pages use words.

use atelier_engine::inference::AskError;

use super::{Finding, Kind, Problem};
use crate::releases::{ActivateError, release_folder::AddError};

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Full { retry_after, .. } => {
                Self::new(Kind::QueueFull, error.to_string()).retry_after(retry_after)
            }
            AskError::Deadline { .. } => Self::new(Kind::Deadline, error.to_string()),
            AskError::Unreachable(_) => Self::inside(Kind::Unavailable, error),
            AskError::Failed(_) | AskError::NoMethod(_) => Self::inside(Kind::Internal, error),
        }
    }
}

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
