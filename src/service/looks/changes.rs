//! Changes of looks: each is checked, stored with its entry in the audit log, and shown from the next request on.

use atelier_core::domain::{LookName, Timestamp};
use serde_json::Value;

use super::{Look, review};
use crate::{
    service::{completion::Warning, fault::Fault, live_release::Releases},
    store::{ChangeError, Expected, Put, Store, StoreError, Version},
};

/// A look that was stored, and what may be wrong with it.
#[derive(Debug)]
pub struct Changed {
    pub put: Put,
    pub version: Version,
    pub look: Look,
    pub warnings: Vec<Warning>,
}

/// Why a look was not changed; `Refused` is the caller's own reason.
#[derive(Debug)]
pub enum LookError<E> {
    Refused(E),
    Faults(Vec<Fault>),
    Change(ChangeError),
}

impl<E> From<StoreError> for LookError<E> {
    fn from(error: StoreError) -> Self {
        Self::Change(error.into())
    }
}

/// Stores what `make` makes of the look as it is.
pub async fn change_look<E: Send>(
    (store, releases): (&Store, &Releases),
    name: &LookName,
    expected: &Expected,
    now: Timestamp,
    make: impl FnOnce(Option<Value>) -> Result<Look, E> + Send,
) -> Result<Changed, LookError<E>> {
    let mut next = None;
    let make = |stored| -> Result<Value, LookError<E>> {
        let look = Look { name: None, ..make(stored).map_err(LookError::Refused)? };
        let look = look.checked().map_err(LookError::Faults)?;
        Ok(serde_json::to_value(next.insert(look)).expect("a look is plain JSON; this is a bug"))
    };
    let stored = store.looks().change(name, expected, now, make).await;
    let (put, version) = stored.map_err(LookError::Change)??;
    let look = next.expect("what is stored was made; this is a bug");
    releases.refresh().await?;
    let warnings = releases.current().map(|live| review(&look, &live.catalogue)).unwrap_or_default();
    Ok(Changed { put, version, look: Look { name: Some(name.to_string()), ..look }, warnings })
}
