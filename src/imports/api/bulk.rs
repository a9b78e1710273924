//! Imports of tables over HTTP, as streams of JSON Lines.
//!
//! The stream first goes to a nameless temporary file, and from there into the database. A caller that sends slowly or stops does
//! not block other imports, and the table is never in memory.

use std::{fs::File, path::Path, sync::Arc};

use atelier_core::{domain::Article, util::text::abbreviate};
use atelier_files::{Checker, CountedWarning, FileError, Report, Table};
use axum::extract::Request;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    imports::{ImportError, Importable, import_table, may_commit, sql::import::Import},
    platform::{
        db::{Author, Counts, StoreError},
        http::{
            AppState, Finding, Kind, Problem,
            extract::{Incoming, check_media_type},
            spool::{MEDIA_TYPES, spool},
            uncancelled::uncancelled,
        },
    },
    releases::coverage::Census,
};

/// The most characters of a warning.
const WARNING_LENGTH: usize = 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BulkQuery {
    /// Store the good lines even if others are bad.
    #[serde(default)]
    pub(crate) skip_bad: bool,
}

/// The query for a stream of a table whose rows can be changed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TableQuery {
    /// Store the good lines even if others are bad.
    #[serde(default)]
    pub(crate) skip_bad: bool,
    /// `replace`: a line is the complete row. `merge`: it changes the stored row, as PATCH does. `delete`: it has an `id` only,
    /// and DELETE's effect.
    #[serde(default)]
    #[param(inline)]
    pub(crate) mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    #[default]
    Replace,
    Merge,
    Delete,
}

/// The result of an import.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Received)]
pub(crate) struct ImportBody {
    /// Number of new lines.
    added: u64,
    /// Number of lines that changed stored data.
    changed: u64,
    /// Number of lines that were already stored.
    unchanged: u64,
    /// With `mode=delete`: number of articles or customers that were deleted.
    deleted: u64,
    /// With `mode=delete`: number of ids that none had.
    absent: u64,
    /// Number of bad lines, which were not stored.
    bad: u64,
    /// The first bad lines.
    errors: Vec<Finding>,
    /// Warnings about lines that were stored, and about what the live release does not know of new articles.
    warnings: Vec<Finding>,
}

/// Imports the body into the table.
pub(crate) async fn import<T: Importable>(
    state: &AppState,
    author: Author,
    skip_bad: bool,
    request: Request,
) -> Result<ImportBody, Problem> {
    check_media_type(request.headers(), MEDIA_TYPES[0], |found| MEDIA_TYPES.contains(&found))?;
    let file = spool(Incoming::new(request, state.limits.bulk_bytes, state.limits)).await?;
    let mut import = state.store.by(author).import(state.now()).await?;
    let mut census = state.releases().current().map(|live| Census::new(Arc::clone(live.serving.release())));
    let read = read::<T>(state, &mut import, file, census.as_mut()).await;
    let read = read.and_then(|(counts, report)| {
        if may_commit(&report, skip_bad) { Ok((counts, report)) } else { Err(refusal(&report)) }
    });
    let (counts, report) = match read {
        Ok(read) => read,
        Err(problem) => {
            import.abandon().await?;
            return Err(problem);
        }
    };
    let state = state.clone();
    uncancelled(async move {
        let committed = import.commit().await;
        state.profiles().forget_all();
        committed?;
        state.releases().apply_change().await;
        Ok::<_, StoreError>(())
    })
    .await?;
    Ok(ImportBody::new(counts, &report, census))
}

async fn read<T: Importable>(
    state: &AppState,
    import: &mut Import,
    file: File,
    census: Option<&mut Census>,
) -> Result<(Counts, Report), Problem> {
    // Articles and variants share their ids.
    let articles =
        if T::REFERS || T::NAME == Article::NAME { import.article_ids().await? } else { Vec::new() };
    let customers = if T::REFERS { import.customer_ids().await? } else { Vec::new() };
    let variants = if articles.is_empty() { Vec::new() } else { import.variants().await? };
    let checker = Checker::new(articles, customers).with_variants(variants);
    let mut checker = checker.at_most(state.limits.bulk_rows);
    let length = file.metadata().map_err(|error| Problem::inside(Kind::Internal, error))?.len();
    let rows = atelier_files::read_json_lines::<T>(file, length, Path::new("the body"), &state.schema());
    let rows = rows.map_err(unreadable)?;
    let counts =
        import_table(import, &mut checker, rows, census, |_| {}).await.map_err(|error| match error {
            ImportError::Store(error) => error.into(),
            ImportError::File(error) => unreadable(error),
            ImportError::Mapping(_) => Problem::inside(Kind::Internal, error),
        })?;
    Ok((counts, checker.report().clone()))
}

fn unreadable(error: FileError) -> Problem {
    match error {
        FileError::TooManyRows { error, .. } => {
            Problem::new(Kind::Invalid, format!("nothing was stored: {}", error.reason))
                .with_findings(vec![Finding::line(error.line, error.reason)])
        }
        error => Problem::inside(Kind::Internal, error),
    }
}

fn refusal(report: &Report) -> Problem {
    let Report { good, bad, .. } = report;
    let alternative = if *good > 0 {
        format!(", or store the {good} good ones with ?skip_bad=true")
    } else {
        String::new()
    };
    let detail = format!("nothing was stored: {bad} of {} lines are bad; fix them{alternative}", good + bad);
    Problem::new(Kind::Invalid, detail).with_findings(errors(report))
}

fn errors(report: &Report) -> Vec<Finding> {
    report.bad_rows().into_iter().map(|bad| Finding::line(bad.line, bad.reason.clone())).collect()
}

impl ImportBody {
    /// Deletions count as changes.
    pub(crate) fn of_deletions(self) -> Self {
        Self { changed: 0, unchanged: 0, deleted: self.changed, absent: self.unchanged, ..self }
    }

    fn new(counts: Counts, report: &Report, census: Option<Census>) -> Self {
        let warning = |noted: &CountedWarning| {
            let others =
                if noted.rows > 1 { format!(" ({} lines in all)", noted.rows) } else { String::new() };
            let mut warning = noted.warning.to_string();
            // It may quote a cell.
            abbreviate(&mut warning, WARNING_LENGTH);
            Finding::line(noted.line, warning + &others)
        };
        let unknown = census.into_iter().flat_map(Census::into_warnings).map(|mut warning| {
            abbreviate(&mut warning, WARNING_LENGTH);
            Finding::general(warning)
        });
        Self {
            added: counts.added,
            changed: counts.changed,
            unchanged: counts.unchanged,
            deleted: 0,
            absent: 0,
            bad: report.bad,
            errors: errors(report),
            warnings: report.warnings.iter().map(warning).chain(unknown).collect(),
        }
    }
}
