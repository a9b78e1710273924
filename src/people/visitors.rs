//! The requests of visitors of a shop's pages, with a publishable key. Anyone can read that key and change what a page sends.

use std::time::Instant;

use atelier_core::domain::{CustomerId, Timestamp};

use super::{gate::Reader, read_signed};
use crate::platform::http::{AppState, Finding, Problem};

/// The customer in a request. A program may name anyone; a page, only a customer whom the shop's backend signed.
pub(crate) fn read_customer(
    reader: &Reader,
    text: Option<&str>,
    now: Timestamp,
) -> Result<Option<CustomerId>, String> {
    let Some(text) = text else { return Ok(None) };
    let id = match reader {
        Reader::Program => CustomerId::new(text).map_err(|error| error.to_string()),
        Reader::Visitors(secret) => read_signed(text, secret, now).map_err(|error| error.to_string()),
    };
    id.map(Some)
}

/// Ignores a page's customer if the service does not know them, because the shop signs all of its customers.
pub(crate) async fn drop_unknown(
    state: &AppState,
    reader: &Reader,
    customer: Option<CustomerId>,
) -> Result<Option<CustomerId>, Problem> {
    match (reader, customer) {
        (Reader::Visitors(_), Some(id)) => Ok(state.profiles().get(&id, Instant::now()).await?.map(|_| id)),
        (_, customer) => Ok(customer),
    }
}

/// The customer of a query.
pub(crate) async fn query_customer(
    state: &AppState,
    reader: &Reader,
    text: Option<&str>,
) -> Result<Option<CustomerId>, Problem> {
    let customer = read_customer(reader, text, state.now());
    let customer =
        customer.map_err(|reason| Problem::invalid(vec![Finding::parameter("customer", reason)]))?;
    drop_unknown(state, reader, customer).await
}
