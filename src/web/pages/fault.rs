//! Use cases' faults in words, for people.

use crate::{
    service::fault::{Fault, ServiceError},
    web::http::{Kind, Problem},
};

pub(super) fn problem(error: ServiceError) -> Problem {
    match error {
        ServiceError::Faults(faults) => Problem::new(Kind::Invalid, words(&faults)),
        ServiceError::Ask(error) => error.into(),
        ServiceError::Store(error) => error.into(),
    }
}

pub(super) fn words(faults: &[Fault]) -> String {
    faults.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join(". ")
}
