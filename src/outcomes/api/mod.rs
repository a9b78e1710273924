//! The routes for programs.

pub(crate) mod acceptance;
pub(crate) mod coverage;
pub(crate) mod events;
pub(crate) mod feedback;

use super::feedback::ReportError;
use crate::platform::http::{Problem, fault};

fn event_problem(error: ReportError) -> Problem {
    match error {
        ReportError::Fault(wrong) => Problem::invalid(vec![fault::finding(wrong)]),
        ReportError::Ticket(error) => error.into(),
        ReportError::Store(error) => error.into(),
    }
}
