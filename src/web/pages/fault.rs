//! Use cases' faults in words, for people.

use crate::{
    service::{
        fault::{Fault, ServiceError},
        feedback::ReportError,
    },
    web::http::{Kind, Problem},
};

pub(super) fn problem(error: ServiceError) -> Problem {
    match error {
        ServiceError::Faults(faults) => Problem::new(Kind::Invalid, words(&faults)),
        ServiceError::Ask(error) => error.into(),
        ServiceError::Store(error) => error.into(),
    }
}

/// The problem of a verdict that was not recorded.
pub(super) fn event_problem(error: ReportError) -> Problem {
    match error {
        ReportError::Fault(fault) => Problem::new(Kind::Invalid, fault.detail),
        ReportError::Ticket(error) => error.into(),
        ReportError::Store(error) => error.into(),
    }
}

pub(super) fn words(faults: &[Fault]) -> String {
    faults.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join(". ")
}
