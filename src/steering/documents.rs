//! The shop's rules, looks and experiments as documents: each change is checked, stored with its entry in the audit log, and applies
//! from the next request.

use std::borrow::Borrow;

use atelier_core::domain::{LookName, RuleName, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::task;

use super::{
    looks::{self, Look},
    rules::{self, Rule},
};
use crate::{
    completion::Warning,
    platform::{
        db::{
            ChangeError, DocumentName, Expected, Named, NewDocument, Put, Store, StoreError, Stored, Version,
        },
        fault::Fault,
    },
    releases::{LiveRelease, Releases},
};

/// A rule, a look or an experiment.
pub trait Document: Serialize + DeserializeOwned + Send + 'static {
    type Name: DocumentName;

    fn name(&self) -> Option<&str>;
    fn with_name(self, name: Option<String>) -> Self;

    /// Checks it, and writes it in the one way in which it is stored.
    ///
    /// # Errors
    /// All that is wrong with it.
    fn checked(self) -> Result<Self, Vec<Fault>>;

    /// How many of the shop's articles it matches now, and what may be wrong with it.
    fn review(&self, name: &Self::Name, live: &LiveRelease) -> (usize, Vec<Warning>);
}

impl Document for Rule {
    type Name = RuleName;

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn with_name(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    fn checked(self) -> Result<Self, Vec<Fault>> {
        Self::checked(self)
    }

    fn review(&self, name: &Self::Name, live: &LiveRelease) -> (usize, Vec<Warning>) {
        rules::review(name, self, &live.rules, &live.catalogue, live.serving.release().schema())
    }
}

impl Document for Look {
    type Name = LookName;

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn with_name(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    fn checked(self) -> Result<Self, Vec<Fault>> {
        Self::checked(self)
    }

    fn review(&self, _name: &Self::Name, live: &LiveRelease) -> (usize, Vec<Warning>) {
        looks::review(self, &live.catalogue)
    }
}

/// A document that was stored or checked, and warnings about it.
#[derive(Debug)]
pub struct Changed<D> {
    pub put: Put,
    pub version: Version,
    pub document: D,
    pub article_count: usize,
    pub warnings: Vec<Warning>,
}

/// Why a document was not changed; `Refused` is the caller's own reason.
#[derive(Debug)]
pub enum EditError<E> {
    Refused(E),
    Faults(Vec<Fault>),
    Change(ChangeError),
}

impl<E> From<StoreError> for EditError<E> {
    fn from(error: StoreError) -> Self {
        Self::Change(error.into())
    }
}

/// Stores what `make` makes of the document as it is, or only checks it.
pub async fn change<D: Document, E: Send>(
    (store, releases): (&Store, &Releases),
    name: &D::Name,
    expected: &Expected,
    is_trial: bool,
    now: Timestamp,
    make: impl FnOnce(Option<Value>) -> Result<D, E> + Send,
) -> Result<Changed<D>, EditError<E>> {
    let mut next = None;
    let make = |stored, _| -> Result<NewDocument, EditError<E>> {
        let document = make(stored).map_err(EditError::Refused)?.with_name(None);
        let document = document.checked().map_err(EditError::Faults)?;
        let body = to_value(next.insert(document));
        Ok(NewDocument { body, consequences: Vec::new() })
    };
    let stored = store.documents::<D::Name>().change(name, expected, is_trial, now, make).await;
    let (put, version) = stored.map_err(EditError::Change)??;
    if !is_trial {
        releases.apply_change().await;
    }
    let document = next.expect("what is stored was made; this is a bug");
    let (own_name, live) = (name.clone(), releases.current());
    // Compiling a rule looks at all articles.
    let reviewed = task::spawn_blocking(move || {
        let reviewed = live.map(|live| document.review(&own_name, &live));
        let (article_count, warnings) = reviewed.unwrap_or_default();
        let name: &str = own_name.borrow();
        Changed { put, version, document: document.with_name(Some(name.to_owned())), article_count, warnings }
    });
    Ok(reviewed.await.expect("looking at a document does not panic; this is a bug"))
}

/// All documents of a kind. One that cannot be read does not count.
pub async fn read_all<D: Document>(store: &Store) -> Result<Vec<(D::Name, D)>, StoreError> {
    let all: Vec<Stored<Named<D::Name>>> = store.documents().list().await?;
    Ok(read_each(all.into_iter().map(|stored| stored.value)))
}

/// The same of documents that are read already.
pub(crate) fn read_each<D: Document>(stored: impl IntoIterator<Item = Named<D::Name>>) -> Vec<(D::Name, D)> {
    let read = |Named { name, body, .. }: Named<D::Name>| {
        // Another version may have written it.
        let document = serde_json::from_value(body).inspect_err(|error| {
            let name: &str = name.borrow();
            tracing::error!(name, %error, "cannot read the stored {}; it is ignored", D::Name::WHAT);
        });
        Some((name, document.ok()?))
    };
    stored.into_iter().filter_map(read).collect()
}

/// A document as it is stored.
pub(crate) fn to_value<D: Document>(document: &D) -> Value {
    serde_json::to_value(document).expect("a document is plain JSON; this is a bug")
}
