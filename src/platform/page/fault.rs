//! Use cases' faults in words, for people.

use crate::platform::{
    fault::{Fault, ServiceError},
    http::{Kind, Problem},
};

pub(crate) fn problem(error: ServiceError) -> Problem {
    match error {
        ServiceError::Faults(faults) => Problem::new(Kind::Invalid, words(&faults)),
        ServiceError::Ask(error) => error.into(),
        ServiceError::Store(error) => error.into(),
    }
}

pub(crate) fn words(faults: &[Fault]) -> String {
    let words = |fault: &Fault| match fault.field.index_in("articles") {
        Some(index) => format!(
            "piece {} is no longer in the catalogue. Replace it or remove it, then save again",
            index + 1
        ),
        None => fault.detail.clone(),
    };
    faults.iter().map(words).collect::<Vec<_>>().join(". ")
}
