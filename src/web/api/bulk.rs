//! Whole tables over HTTP, as streams of JSON Lines.
//!
//! The stream goes to a temporary file first, and from there into the database in one transaction: a caller
//! that sends slowly, or breaks off, holds up nobody else's writes, and no table is ever whole in memory.

use std::io;

use axum::extract::Request;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;
use utoipa::{IntoParams, ToSchema};

use crate::web::http::{
    AppState, Finding, Kind, Problem,
    extract::{Incoming, media_type},
};
use crate::{
    files::{self, BadRow, Checker, ExchangeError, Noted, Report},
    service::intake::{self, Intake, IntakeError},
    store::{Actor, Counts, Import},
};

/// What JSON Lines is called: nobody ever registered a name.
const MEDIA_TYPES: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BulkQuery {
    /// Store the good lines though others are bad.
    #[serde(default)]
    skip_bad: bool,
}

/// What became of a stream.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Brought {
    /// Lines that are new.
    added: u64,
    /// Lines that changed what was there.
    changed: u64,
    /// Lines that were there already, exactly so.
    unchanged: u64,
    /// Lines that were left out.
    bad: u64,
    /// The first of those.
    errors: Vec<Finding>,
    /// What is odd about lines that are stored all the same.
    warnings: Vec<Finding>,
}

/// Reads the body into the table.
pub(crate) async fn bring_in<T: Intake>(
    state: &AppState,
    actor: Actor,
    query: &BulkQuery,
    request: Request,
) -> Result<Brought, Problem> {
    let named = media_type(request.headers());
    if !named.as_deref().is_some_and(|named| MEDIA_TYPES.contains(&named)) {
        let found = named.map_or("none".into(), |found| format!("{found:?}"));
        let detail = format!("the Content-Type must be {}, found {found}", MEDIA_TYPES[0]);
        return Err(Problem::new(Kind::UnsupportedMediaType, detail));
    }
    let file = spool(Incoming::new(request, state.limits.bulk_bytes)).await?;
    let mut import = state.store.import(state.now()).await?;
    let (counts, report) = read::<T>(state, &mut import, &file).await?;
    if report.bad > 0 && !(query.skip_bad && report.good > 0) {
        return Err(refusal(&report));
    }
    let committed = import.commit().await;
    state.profiles.forget_all();
    committed?;
    let Counts { added, changed, .. } = counts;
    if added + changed > 0 {
        let details = json!({"added": added, "changed": changed, "bad": report.bad});
        state.note(actor, &format!("{}.bulk", T::NAME), T::NAME, details).await?;
    }
    Ok(Brought::new(counts, &report))
}

/// The body as a file, which goes when it is dropped.
async fn spool(mut body: Incoming) -> Result<NamedTempFile, Problem> {
    let full = |error: io::Error| {
        Problem::inside(Kind::Unavailable, format_args!("a stream cannot be kept for reading: {error}"))
    };
    let file = tempfile::Builder::new().suffix(".jsonl").tempfile().map_err(full)?;
    let mut out = tokio::fs::File::from_std(file.reopen().map_err(full)?);
    while let Some(bytes) = body.next().await? {
        out.write_all(&bytes).await.map_err(full)?;
    }
    out.flush().await.map_err(full)?;
    Ok(file)
}

async fn read<T: Intake>(
    state: &AppState,
    import: &mut Import,
    file: &NamedTempFile,
) -> Result<(Counts, Report), Problem> {
    // Asked inside the transaction: what is referred to cannot go meanwhile.
    let mut checker = if T::REFERS {
        Checker::new(import.article_ids().await?, import.customer_ids().await?)
    } else {
        Checker::new([], [])
    };
    let rows = files::read::<T>(file.path(), &state.schema()).map_err(unreadable)?;
    let counts = intake::table(import, &mut checker, rows, |_| {}).await.map_err(|error| match error {
        IntakeError::Store(error) => error.into(),
        IntakeError::Exchange(error) => unreadable(error),
    })?;
    Ok((counts, checker.report().clone()))
}

fn unreadable(error: ExchangeError) -> Problem {
    Problem::inside(Kind::Internal, error)
}

fn refusal(report: &Report) -> Problem {
    let Report { good, bad, .. } = report;
    let way = if *good > 0 {
        format!(", or store the {good} good ones with ?skip_bad=true")
    } else {
        String::new()
    };
    let detail = format!("nothing was stored: {bad} of {} lines are bad; mend them{way}", good + bad);
    Problem::new(Kind::Invalid, detail).with_findings(errors(report))
}

fn errors(report: &Report) -> Vec<Finding> {
    let finding = |bad: &BadRow| Finding::line(bad.error.line, bad.error.reason.clone());
    report.errors.iter().map(finding).collect()
}

impl Brought {
    fn new(counts: Counts, report: &Report) -> Self {
        let warning = |noted: &Noted| {
            let others =
                if noted.rows > 1 { format!(" ({} lines in all)", noted.rows) } else { String::new() };
            Finding::line(noted.line, format!("{}{others}", noted.warning))
        };
        Self {
            added: counts.added,
            changed: counts.changed,
            unchanged: counts.unchanged,
            bad: report.bad,
            errors: errors(report),
            warnings: report.warnings.iter().map(warning).collect(),
        }
    }
}
