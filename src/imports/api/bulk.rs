//! Imports of tables over HTTP, as streams of JSON Lines.
//!
//! The stream first goes to a nameless temporary file, and from there into the database. A caller that sends slowly or stops does
//! not block other imports, and the table is never in memory.

use std::{path::Path, sync::Arc};

use atelier_files::{FileError, Report};
use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use crate::{
    imports::{
        ImportError, list_warnings,
        load::{Change, End, FeedTable, Imported, Opened, Options, Outcome},
        name_parameters, shortened,
    },
    people::{Scope, gate::Caller},
    platform::{
        db::{Author, Counts},
        http::{
            AppState, Finding, Kind, Problem,
            extract::{Incoming, Json, Query, check_media_type},
            routes::Routes,
            spool::{MEDIA_TYPES, spool},
            uncancelled::uncancelled,
        },
    },
    releases::coverage::Census,
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .streaming(Scope::Catalogue, routes!(articles))
        .streaming(Scope::Catalogue, routes!(customers))
        .streaming(Scope::Catalogue, routes!(outfits))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BulkQuery {
    /// Store the good lines even if others are bad.
    #[serde(default)]
    skip_bad: bool,
}

/// The query for a stream of a table whose rows can be changed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TableQuery {
    /// Store the good lines even if others are bad.
    #[serde(default)]
    skip_bad: bool,
    /// `replace`: a line is the complete row. `merge`: it changes the stored row, as PATCH does. `delete`: it has an `id` only,
    /// and DELETE's effect.
    #[serde(default)]
    #[param(inline)]
    mode: Change,
}

/// The result of an import.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Received)]
struct ImportBody {
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

/// Import articles
///
/// One article per line, `{"id": …, "type": …, …}`, in the format of `atelier export`. Either all articles are stored
/// or none. With `mode=merge` a line changes a stored article as PATCH does, and adds an article if it has a type.
/// With `mode=delete` a line is `{"id": …}`, and the article is deleted.
#[utoipa::path(post, path = "/articles/bulk", operation_id = "importArticles",
    tag = "articles", params(TableQuery),
    request_body(content = String, content_type = "application/x-ndjson", example =
        "{\"id\": \"a-new\", \"type\": \"hat\", \"price\": 29.9, \"in_stock\": true}\n"),
    responses((status = 200, description = "The articles are stored", body = ImportBody)),
)]
async fn articles(
    State(state): State<AppState>,
    Caller(author): Caller,
    Query(query): Query<TableQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    import(state, author, FeedTable::Articles, query, request).await
}

/// Import customers
///
/// One customer per line, `{"id": …, "features": {…}}`, in the format of `atelier export`. Either all customers are
/// stored or none. With `mode=merge` a line changes a stored customer as PATCH does, or adds one.
/// With `mode=delete` a line is `{"id": …}`, and the customer is erased.
#[utoipa::path(post, path = "/customers/bulk", operation_id = "importCustomers",
    tag = "customers", params(TableQuery),
    request_body(content = String, content_type = "application/x-ndjson", example =
        "{\"id\": \"c-new\", \"features\": {\"gender\": \"male\", \"fit\": \"slim\"}}\n"),
    responses((status = 200, description = "The customers are stored", body = ImportBody)),
)]
async fn customers(
    State(state): State<AppState>,
    Caller(author): Caller,
    Query(query): Query<TableQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    import(state, author, FeedTable::Customers, query, request).await
}

/// Import outfits
///
/// One outfit per line, `{"customer": …, "articles": […], "split": …, "features": {…}}`, in the format of
/// `atelier export`. The customers and articles must exist. Either all outfits are stored or none.
#[utoipa::path(post, path = "/outfits/bulk", operation_id = "importOutfits",
    tag = "outfits", params(BulkQuery),
    request_body(content = String, content_type = "application/x-ndjson", example =
        "{\"customer\": \"c-000010\", \"articles\": [\"a-00134\", \"a-01243\", \"a-00568\", \"a-00259\"]}\n"),
    responses((status = 200, description = "The outfits are stored", body = ImportBody)),
)]
async fn outfits(
    State(state): State<AppState>,
    Caller(author): Caller,
    Query(BulkQuery { skip_bad }): Query<BulkQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    let query = TableQuery { skip_bad, mode: Change::Replace };
    import(state, author, FeedTable::Outfits, query, request).await
}

async fn import(
    state: AppState,
    author: Author,
    table: FeedTable,
    TableQuery { skip_bad, mode: change }: TableQuery,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    check_media_type(request.headers(), MEDIA_TYPES[0], |found| MEDIA_TYPES.contains(&found))?;
    let file = spool(Incoming::new(request, state.limits.bulk_bytes, state.limits)).await?;
    let most_rows = Some(state.limits.bulk_rows);
    let options = Options { skip_bad, change, most_rows, plain_lines: true, ..Options::default() };
    let path = Path::new("the body");
    let opened = Opened::table(table, file, path, &state.schema(), &options, state.now()).map_err(refuse)?;
    let import = state.store.by(author).import(state.now()).await?;
    let mut census = state.releases().current().map(|live| Census::new(Arc::clone(live.serving.release())));
    // Dropped with this future when the caller hangs up.
    let (_waiting, hung_up) = oneshot::channel::<()>();
    let stop = async move { hung_up.await.is_err() };
    uncancelled(async move {
        let done = opened.import(import, &options, census.as_mut(), &|_| {}, stop, |_, _, _| {}).await;
        let Outcome { report, end } = done.map_err(refuse)?;
        // A commit that failed may have stored rows.
        if let End::Imported(_) | End::Stopped(_) = end {
            state.profiles().forget_all();
            state.releases().apply_change().await;
        }
        match end {
            End::Imported(imported) => Ok(Json(ImportBody::new(change, &imported, &report, census))),
            End::Refused(reason) => {
                let detail = format!("nothing was stored: {}", name_parameters(&reason));
                Err(Problem::new(Kind::Invalid, detail).with_findings(errors(&report)))
            }
            End::Stopped(error) => Err(refuse(error)),
            // There is no caller any more to read this.
            End::Cancelled => Err(Problem::new(Kind::Stopping, "the caller hung up")),
        }
    })
    .await
}

fn refuse(error: ImportError) -> Problem {
    match error {
        ImportError::Store(error) => error.into(),
        ImportError::File(FileError::TooManyRows { error, .. }) => {
            Problem::new(Kind::Invalid, format!("nothing was stored: {}", error.reason))
                .with_findings(vec![Finding::line(error.line, error.reason)])
        }
        error => Problem::inside(Kind::Internal, error),
    }
}

fn errors(report: &Report) -> Vec<Finding> {
    report.bad_rows().into_iter().map(|bad| Finding::line(bad.line, bad.reason.clone())).collect()
}

impl ImportBody {
    fn new(change: Change, imported: &Imported, report: &Report, census: Option<Census>) -> Self {
        let body = Self {
            bad: report.bad,
            errors: errors(report),
            warnings: list_warnings(report, census, |text| shortened(text.to_owned())),
            ..Self::default()
        };
        let Counts { added, changed, unchanged } = imported.counts();
        match change {
            Change::Delete => Self { deleted: changed, absent: unchanged, ..body },
            Change::Replace | Change::Merge => Self { added, changed, unchanged, ..body },
        }
    }
}
