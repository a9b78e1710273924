//! Use cases' faults as the API reports them: each field is a JSON pointer into the request's body.

use atelier_core::util::json_pointer::step;
use atelier_engine::inference::AskError;

use super::{Finding, Kind, Problem};
use crate::platform::fault::{Fault, ServiceError};

pub(crate) fn problem(error: ServiceError) -> Problem {
    match error {
        ServiceError::Faults(faults) => Problem::invalid(faults.into_iter().map(finding).collect()),
        ServiceError::Ask(error) => error.into(),
        ServiceError::Store(error) => error.into(),
    }
}

pub(crate) fn query_problem(error: ServiceError) -> Problem {
    match error {
        ServiceError::Faults(faults) => {
            let parameter = |fault: Fault| {
                let name = fault.field.steps().last().cloned().unwrap_or_default();
                Finding::parameter(name, fault.detail)
            };
            Problem::invalid(faults.into_iter().map(parameter).collect())
        }
        error => problem(error),
    }
}

pub(crate) fn finding(fault: Fault) -> Finding {
    let pointer: String = fault.field.steps().iter().map(|name| step(name)).collect();
    Finding::at(pointer, fault.detail)
}

/// The same everywhere: pages have no other words for it.
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
