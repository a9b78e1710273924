//! Why a form is refused.

use std::fmt::Display;

use axum::http::StatusCode;

use super::fault;
use crate::platform::{db::StoreError, fault::ServiceError, http::Problem};

#[derive(Debug)]
pub(crate) enum Refused {
    /// The page shows the form again, with what was typed and why it was refused.
    Form(StatusCode, String),
    /// Another input would not help, so the problem has a page of its own.
    Problem(Problem),
}

impl Refused {
    pub(crate) fn invalid(reason: impl Display) -> Self {
        Self::Form(StatusCode::UNPROCESSABLE_ENTITY, reason.to_string())
    }

    /// Someone else changed it first, or something that exists prevents it.
    pub(crate) fn conflict(reason: impl Display) -> Self {
        Self::Form(StatusCode::CONFLICT, reason.to_string())
    }

    /// The status and the words for the form's page.
    pub(crate) fn for_form(self) -> Result<(StatusCode, String), Problem> {
        match self {
            Self::Form(status, reason) => Ok((status, reason)),
            Self::Problem(problem) => Err(problem),
        }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(conflict) => Self::conflict(conflict),
            error => Self::Problem(error.into()),
        }
    }
}

impl From<ServiceError> for Refused {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Faults(faults) => Self::invalid(fault::words(&faults)),
            ServiceError::Store(error) => error.into(),
            ServiceError::Ask(error) => Self::Problem(error.into()),
        }
    }
}
