//! The shop's rules, looks, experiments and stored feeds as documents: each change is checked, stored with its entry in the audit log, and applies
//! from the next request.

use std::borrow::Borrow;

use atelier_core::domain::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::task;

use crate::{
    completion::Warning,
    platform::{
        db::{
            ChangeError, Consequence, DocumentName, Expected, Named, NewDocument, Put, Store, StoreError,
            Stored, Version,
        },
        fault::Fault,
        http::Problem,
    },
    releases::{LiveRelease, Releases},
};

/// A rule, a look, an experiment or a stored feed.
pub trait Document: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    type Name: DocumentName;
    /// The inputs of a change that take too long for its transaction.
    type Ready: Default + Send + Sync;

    fn name_mut(&mut self) -> &mut Option<String>;

    fn with_name(mut self, name: Option<String>) -> Self {
        *self.name_mut() = name;
        self
    }

    /// Checks it, and writes it in the one way in which it is stored.
    fn checked(self) -> Result<Self, Vec<Fault>>;

    /// How many of the shop's articles it matches now, and what may be wrong with it.
    fn review(&self, _name: &Self::Name, _live: &LiveRelease) -> (usize, Vec<Warning>) {
        (0, Vec::new())
    }

    /// Gets ready what a change needs, if the document depends on the others of its kind. There is no wish if the change will be refused.
    fn prepare(
        _wish: Option<Wish<'_, Self>>,
        _store: &Store,
        _releases: &Releases,
    ) -> impl Future<Output = Result<Self::Ready, EditError>> + Send {
        async { Ok(Self::Ready::default()) }
    }

    /// The new document, and the other changes with it.
    fn follow(
        wish: Wish<'_, Self>,
        _ready: &Self::Ready,
        _releases: &Releases,
    ) -> Result<(Self, Vec<Consequence>), Vec<Fault>> {
        Ok((wish.wanted, Vec::new()))
    }

    /// # Errors
    /// Why the document, as it is stored, must stay.
    fn check_deletion(_stored: &Value) -> Result<(), Fault> {
        Ok(())
    }
}

/// The wanted document.
#[derive(Debug)]
pub struct Wish<'a, D: Document> {
    pub name: &'a D::Name,
    pub before: Option<D>,
    pub wanted: D,
    /// Those next to it, if the document depends on them.
    pub others: Vec<(D::Name, D)>,
    pub now: Timestamp,
}

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
pub enum EditError {
    Refused(Problem),
    Faults(Vec<Fault>),
    Change(ChangeError),
}

impl From<StoreError> for EditError {
    fn from(error: StoreError) -> Self {
        Self::Change(error.into())
    }
}

impl From<ChangeError> for EditError {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}

impl From<Problem> for EditError {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

/// Where documents are stored, and what they apply to.
pub type Scene<'a> = (&'a Store, &'a Releases);

/// Stores what `make` makes of the document as it is, or only checks it. It may be asked twice: before the transaction, and in it.
pub async fn change<D: Document>(
    (store, releases): Scene<'_>,
    name: &D::Name,
    expected: &Expected,
    is_trial: bool,
    now: Timestamp,
    make: impl Fn(Option<Value>) -> Result<D, EditError> + Send + Sync,
) -> Result<Changed<D>, EditError> {
    let wish = |stored: Option<Value>, others| -> Result<Wish<'_, D>, EditError> {
        let before = stored.clone().and_then(|body| serde_json::from_value(body).ok());
        let wanted = make(stored)?.with_name(None).checked().map_err(EditError::Faults)?;
        Ok(Wish { name, before, wanted, others, now })
    };
    let mut ready = D::Ready::default();
    if D::Name::TAKES_TURNS {
        let stored = store.documents().get(name).await?;
        let is_expected = expected.check(stored.as_ref().map(|stored| &stored.version)).is_ok();
        let mut others = read_all::<D>(store).await?;
        others.retain(|(other, _)| Borrow::<str>::borrow(other) != name.borrow());
        // Problems of the change show in its transaction.
        let wish = wish(stored.map(|stored| stored.value.body), others).ok().filter(|_| is_expected);
        ready = D::prepare(wish, store, releases).await?;
    }
    let mut next = None;
    let follow = |stored, others| {
        let wish = wish(stored, read_each(&others))?;
        let (document, consequences) = D::follow(wish, &ready, releases).map_err(EditError::Faults)?;
        Ok::<_, EditError>(NewDocument { body: to_value(next.insert(document)), consequences })
    };
    let (put, version) = store.documents().change(name, expected, is_trial, now, follow).await??;
    if !is_trial {
        releases.apply_change().await;
    }
    let document = next.expect("what is stored was made");
    let (own_name, live) = (name.clone(), releases.current());
    // Compiling a rule looks at all articles.
    let reviewed = task::spawn_blocking(move || {
        let reviewed = live.map(|live| document.review(&own_name, &live));
        let (article_count, warnings) = reviewed.unwrap_or_default();
        let name: &str = own_name.borrow();
        Changed { put, version, document: document.with_name(Some(name.to_owned())), article_count, warnings }
    });
    Ok(reviewed.await.expect("looking at a document does not panic"))
}

/// The new document, made from the stored one.
pub fn of_stored<D: Document>(next: impl Fn(D) -> D) -> impl Fn(Option<Value>) -> Result<D, EditError> {
    move |stored| {
        let document = stored.and_then(|body| serde_json::from_value(body).ok());
        Ok(next(document.ok_or(ChangeError::Missing)?))
    }
}

/// Deletes a document. False if there is none.
pub async fn delete<D: Document>(
    (store, releases): Scene<'_>,
    name: &D::Name,
    expected: &Expected,
    now: Timestamp,
) -> Result<bool, EditError> {
    let deleted = store.documents().delete(name, expected, now, D::check_deletion).await?;
    let deleted = deleted.map_err(|fault| EditError::Faults(vec![fault]))?;
    if deleted {
        releases.apply_change().await;
    }
    Ok(deleted)
}

/// All documents of a kind. One that cannot be read does not count.
pub async fn read_all<D: Document>(store: &Store) -> Result<Vec<(D::Name, D)>, StoreError> {
    let all: Vec<Stored<Named<D::Name>>> = store.documents().list().await?;
    Ok(read_each(all.iter().map(|stored| &stored.value)))
}

/// The same of documents that are read already.
pub(crate) fn read_each<'a, D: Document>(
    stored: impl IntoIterator<Item = &'a Named<D::Name>>,
) -> Vec<(D::Name, D)> {
    let read = |Named { name, body, .. }: &Named<D::Name>| {
        // Another version may have written it.
        let document = D::deserialize(body).inspect_err(|error| {
            let name: &str = name.borrow();
            tracing::error!(name, %error, "cannot read the stored {}; it is ignored", D::Name::WHAT);
        });
        Some((name.clone(), document.ok()?))
    };
    stored.into_iter().filter_map(read).collect()
}

/// A document as it is stored.
fn to_value<D: Document>(document: &D) -> Value {
    serde_json::to_value(document).expect("a document is plain JSON")
}
