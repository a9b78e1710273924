//! The routes for programs.

pub(crate) mod compare;
pub(crate) mod complete;
pub(crate) mod score;
pub(crate) mod similar;
mod timing;

use super::tickets::TicketError;
use crate::platform::http::{Kind, Problem};

impl From<TicketError> for Problem {
    fn from(error: TicketError) -> Self {
        let kind = match error {
            TicketError::Unknown => Kind::NotFound,
            TicketError::Expired { .. } => Kind::Expired,
            TicketError::Store(error) => return error.into(),
        };
        Self::new(kind, error.to_string())
    }
}
