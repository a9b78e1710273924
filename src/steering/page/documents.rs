//! Documents of every kind on pages: read one, store what a form or a button says, and delete one.

use std::borrow::Borrow;

use atelier_core::domain::LookName;
use axum::{extract::State, response::Redirect};
use serde_json::Value;

use super::{
    LIST, LOOKS,
    fields::{Fields, Wrong},
};
use crate::{
    people::page::visitor::{Merchandiser, Visitor},
    platform::{
        db::{AuditEntry, ChangeError, DocumentName, Expected, Version},
        fault::{Fault, ServiceError},
        http::{AppState, Kind, Problem, uncancelled::uncancelled},
        page::{
            change::{self, Change, Undo},
            fault,
            form::{Form, address, changed_before, expected, gone, line},
        },
    },
    steering::documents::{self, Changed, Document, EditError},
};

/// A document in its form.
#[derive(Default)]
pub(crate) struct Edit {
    pub(crate) name: String,
    /// The version that is changed; empty for a new one.
    pub(crate) version: String,
    pub(crate) form: Fields,
    pub(crate) wrong: Problems,
}

impl Edit {
    pub(crate) fn new(name: String, version: String, form: Fields) -> Self {
        Self { name, version, form, wrong: Problems::default() }
    }

    pub(crate) fn sent(mut form: Fields) -> Self {
        let [name, version] = ["name", "version"].map(|field| form.take(field));
        Self::new(name, version, form)
    }

    /// Names the document, so that the address leads back to it.
    pub(super) fn action(&self, page: &str) -> String {
        if self.version.is_empty() { page.to_owned() } else { address(page, &[("name", &self.name)]) }
    }

    /// The version that was edited, which must still be stored; empty for a new document.
    pub(super) fn expected(&self) -> Expected {
        expected(&self.version)
    }

    /// Stores the document that was read of the form. None if something is wrong with it, which the form then says.
    pub(crate) async fn store<D: Document>(
        &mut self,
        scene: (&AppState, &Visitor),
        read: Result<D, Wrong>,
        locate: fn(Fault) -> (String, String),
    ) -> Result<Option<Changed<D>>, Problem> {
        self.wrong.0 = match self.named(read) {
            Err(wrong) => wrong,
            Ok((name, document)) => {
                let make = move |_| Ok(document.clone());
                match save(scene, &name, &self.expected(), false, make).await? {
                    Ok(changed) => return Ok(Some(changed)),
                    Err(faults) => faults.into_iter().map(locate).collect(),
                }
            }
        };
        Ok(None)
    }

    /// The name, and the document that was read, or all that is wrong with both.
    pub(super) fn named<D: Document>(&self, read: Result<D, Wrong>) -> Result<(D::Name, D), Wrong> {
        match (self.name.parse::<D::Name>(), read) {
            (Ok(name), Ok(document)) => Ok((name, document)),
            (name, document) => {
                let name = name.err().map(|error| ("name".to_owned(), error.to_string()));
                Err(name.into_iter().chain(document.err().into_iter().flatten()).collect())
            }
        }
    }
}

/// Problems by the names of fields; those of the whole document have an empty name.
#[derive(Default)]
pub(crate) struct Problems(pub(super) Wrong);

impl Problems {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn with(&self, field: &str) -> Option<String> {
        let details = self.0.iter().filter(|(name, _)| name == field).map(|(_, detail)| &**detail);
        Some(details.collect::<Vec<_>>().join("; ")).filter(|details| !details.is_empty())
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(field, detail)| line(field, detail))
    }
}

impl From<Vec<Fault>> for Problems {
    fn from(faults: Vec<Fault>) -> Self {
        Self(faults.into_iter().map(by_name).collect())
    }
}

pub(crate) fn by_name(Fault { field, detail }: Fault) -> (String, String) {
    (field.to_string(), detail)
}

pub(crate) fn parse_name<Name: DocumentName>(name: &str) -> Result<Name, Problem> {
    name.parse().map_err(|_| gone(Name::KIND, name))
}

pub(crate) fn parse<D: Document>(body: Value) -> Result<D, Problem> {
    serde_json::from_value(body).map_err(|error| Problem::inside(Kind::Internal, error))
}

pub(crate) async fn find<D: Document>(state: &AppState, name: &D::Name) -> Result<(D, Version), Problem> {
    let stored = state.store.documents().get(name).await?;
    let stored = stored.ok_or_else(|| gone(D::Name::KIND, name.borrow()))?;
    Ok((parse(stored.value.body)?, stored.version))
}

/// Stores what `make` makes of a document, or only checks it. What is wrong is for the person; a failing database is a problem.
pub(crate) async fn save<D: Document>(
    (state, visitor): (&AppState, &Visitor),
    name: &D::Name,
    expected: &Expected,
    is_trial: bool,
    make: impl Fn(Option<Value>) -> Result<D, EditError> + Send + Sync + 'static,
) -> Result<Result<Changed<D>, Vec<Fault>>, Problem> {
    let (state, author, own, expected) = (state.clone(), visitor.author(), name.clone(), expected.clone());
    let changed = uncancelled(async move {
        let store = state.store.by(author);
        documents::change((&store, state.releases()), &own, &expected, is_trial, state.now(), make).await
    });
    match changed.await {
        Ok(changed) => Ok(Ok(changed)),
        Err(EditError::Faults(faults)) => Ok(Err(faults)),
        Err(EditError::Refused(problem)) => Err(problem),
        Err(EditError::Change(ChangeError::Store(error))) => Err(error.into()),
        Err(EditError::Change(ChangeError::Missing)) => Err(gone(D::Name::KIND, name.borrow())),
        Err(EditError::Change(_)) => Ok(Err(vec![changed_before(D::Name::KIND)])),
    }
}

/// The same for a button, which has no form to say what is wrong.
pub(super) async fn save_at_once<D: Document>(
    scene: (&AppState, &Visitor),
    name: &D::Name,
    is_trial: bool,
    make: impl Fn(Option<Value>) -> Result<D, EditError> + Send + Sync + 'static,
) -> Result<Changed<D>, Problem> {
    let saved = save(scene, name, &Expected::default(), is_trial, make).await?;
    saved.map_err(|faults| fault::problem(ServiceError::Faults(faults)))
}

/// Deletes a document of this version; one that is gone already is fine.
pub(crate) async fn delete<D: Document>(
    (state, visitor): (&AppState, &Visitor),
    name: &D::Name,
    version: &str,
) -> Result<(), Problem> {
    let (state, author, own, expected) = (state.clone(), visitor.author(), name.clone(), expected(version));
    let deleted = uncancelled(async move {
        let store = state.store.by(author);
        documents::delete::<D>((&store, state.releases()), &own, &expected, state.now()).await
    });
    match deleted.await {
        Ok(_) | Err(EditError::Change(ChangeError::Missing | ChangeError::Differs(None))) => Ok(()),
        Err(EditError::Faults(faults)) => Err(Problem::new(Kind::Conflict, fault::words(&faults))),
        Err(EditError::Refused(problem)) => Err(problem),
        Err(EditError::Change(ChangeError::Store(error))) => Err(error.into()),
        Err(EditError::Change(_)) => {
            let (what, name): (_, &str) = (D::Name::KIND, name.borrow());
            let detail = format!(
                "the {what} {name:?} was changed in the meantime, so it was not deleted; open it again"
            );
            Err(Problem::new(Kind::Conflict, detail))
        }
    }
}

/// Offers to take a change back.
pub(super) async fn offer(
    (state, visitor): (&AppState, &Visitor),
    action: &str,
    seq: Option<i64>,
    form: &str,
) -> Result<Option<Undo>, Problem> {
    let entry = change::undoable(state, visitor.author(), action, seq).await?;
    Ok(entry.map(|entry| {
        let now = entry.details.get("after").and_then(|after| after["state"].as_str()).unwrap_or_default();
        let words = format!("{} is stored. It is {now} now.", entry.subject);
        Undo { words, action: form.to_owned(), fields: vec![("undo", entry.seq.to_string())] }
    }))
}

/// Takes a change back, unless the document was changed since then.
pub(super) async fn undo<D: Document>(
    Merchandiser(visitor): Merchandiser,
    State(state): State<AppState>,
    Form(Change { undo }): Form<Change>,
) -> Result<Redirect, Problem> {
    let (action, scene) = (format!("{}.put", D::Name::KIND), (&state, &visitor));
    let list = if D::Name::KIND == LookName::KIND { LOOKS } else { LIST };
    let entry = change::check_undo(&state, visitor.author(), &action, undo).await?;
    let Some(AuditEntry { subject, mut details, .. }) = entry else { return Ok(Redirect::to(list)) };
    let [before, after] = ["before", "after"].map(|part| details.remove(part).filter(|body| !body.is_null()));
    let name: D::Name = parse_name(&subject)?;
    let stored = state.store.documents().get(&name).await?;
    let stored = stored.filter(|stored| Some(&stored.value.body) == after.as_ref());
    let refused = |faults: Vec<Fault>| Problem::new(Kind::Conflict, fault::words(&faults));
    let version = stored.ok_or_else(|| refused(vec![changed_before(D::Name::KIND)]))?.version.to_string();
    if let Some(before) = before {
        let before: D = parse(before)?;
        let saved = save(scene, &name, &expected(&version), false, move |_| Ok(before.clone())).await?;
        saved.map_err(refused)?;
    } else {
        delete::<D>(scene, &name, &version).await?;
    }
    change::made(&state, visitor.author(), &action, list).await
}
