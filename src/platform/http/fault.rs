//! Use cases' faults as the API reports them: each field is a JSON pointer into the request's body.

use atelier_core::util::json_pointer::step;

use super::{Finding, Problem};
use crate::platform::fault::{Fault, ServiceError};

pub(crate) fn problem(error: ServiceError) -> Problem {
    match error {
        ServiceError::Faults(faults) => Problem::invalid(faults.into_iter().map(finding).collect()),
        ServiceError::Ask(error) => error.into(),
        ServiceError::Store(error) => error.into(),
    }
}

/// The problem of a request whose fields are in its query.
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
