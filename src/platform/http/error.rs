//! Errors of the service that are the same problem everywhere. Faults are not among them: the API names a place in the
//! request's body, pages use words.

use atelier_engine::inference::AskError;

use super::{Kind, Problem};

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
