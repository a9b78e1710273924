//! `/operations/imports`: the feeds that are imported in the background, and what was wrong with one.

use askama::Template;
use atelier_core::util::notation::Notation;
use axum::{
    extract::State,
    response::{Html, Redirect},
};

use crate::{
    imports::{
        api::imports::undo_by,
        sql::imports::{ImportId, ImportRecord, ImportState},
    },
    people::page::{
        Confirmed,
        visitor::{Admin, Analyst},
    },
    platform::page::operations::Tab,
    platform::{
        http::{AppState, Kind, Problem, extract::Path},
        page::{
            figures,
            form::Form,
            shell::{Page, Shell},
        },
    },
};

#[derive(Template)]
#[template(path = "imports/imports.html")]
struct ImportsPage {
    shell: Shell,
    tab: Tab,
    imports: Vec<ImportView>,
}

#[derive(Template)]
#[template(path = "imports/import.html")]
struct ImportPage {
    shell: Shell,
    tab: Tab,
    import: ImportView,
}

struct ImportView {
    record: ImportRecord,
    created: String,
    ended: Option<String>,
    /// How much of the file was read.
    percent: u64,
    /// The counts that are not zero, with their names.
    counts: Vec<(&'static str, String)>,
}

impl ImportView {
    fn new(record: ImportRecord, notation: &Notation) -> Self {
        let counts = record.result.as_ref().map_or_else(Vec::new, |result| {
            let counts = [
                ("new", result.added),
                ("changed", result.changed),
                ("unchanged", result.unchanged),
                ("retired", result.retired),
                ("deleted", result.deleted),
                ("absent", result.absent),
                ("left out", result.left_out),
                ("bad", result.bad),
            ];
            let counts = counts.into_iter().filter(|(_, count)| *count > 0);
            counts.map(|(name, count)| (name, notation.count(count))).collect()
        });
        Self {
            created: figures::moment(record.created_at),
            ended: record.ended_at.map(figures::moment),
            percent: (100 * record.progress.read).checked_div(record.progress.total).unwrap_or_default(),
            counts,
            record,
        }
    }
}

pub(crate) async fn list(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let imports = state.store.imports().list().await?.into_iter();
    let imports = imports.map(|record| ImportView::new(record, &state.notation)).collect();
    let page = ImportsPage { shell: visitor.shell(Page::Operations), tab: Tab::Imports, imports };
    Ok(Html(page.render()?))
}

pub(crate) async fn one(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    Path(id): Path<ImportId>,
) -> Result<Html<String>, Problem> {
    let found = state.store.imports().get(id).await?;
    let found = found.ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no import {}", id.0)))?;
    let import = ImportView::new(found, &state.notation);
    let page = ImportPage { shell: visitor.shell(Page::Operations), tab: Tab::Imports, import };
    Ok(Html(page.render()?))
}

pub(crate) async fn undo(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<ImportId>,
    Form(Confirmed {}): Form<Confirmed>,
) -> Result<Redirect, Problem> {
    undo_by(state, visitor.author(), id).await?;
    Ok(Redirect::to(&format!("/operations/imports/{}", id.0)))
}
