//! The routes for programs.

pub(crate) mod compare;
pub(crate) mod complete;
pub(crate) mod score;
pub(crate) mod similar;
mod timing;

use std::sync::Arc;

use super::tickets::TicketError;
use crate::platform::http::{AppState, Kind, Problem};

impl From<TicketError> for Problem {
    fn from(error: TicketError) -> Self {
        let kind = match error {
            TicketError::Unknown | TicketError::Damaged => Kind::NotFound,
            TicketError::Expired { .. } => Kind::Expired,
            TicketError::Store(error) => return error.into(),
        };
        Self::new(kind, error.to_string())
    }
}

/// The attributes of articles that answers to publishable keys have.
#[derive(Clone)]
pub(crate) struct PublicAttributes(pub(crate) Arc<[String]>);

impl AppState {
    pub(crate) fn public_attributes(&self) -> Arc<[String]> {
        Arc::clone(&self.part::<PublicAttributes>().0)
    }
}
