//! `/feeds`: files of a table, which are imported in the background.

use atelier_core::domain::FeedName;
use axum::{
    extract::{FromRequestParts, Request, State},
    http::request::Parts,
    response::Response,
};
use utoipa_axum::routes;

use super::imports::accepted;
use crate::{
    imports::{
        ImportRecord,
        jobs::{FeedOptions, StartError},
    },
    people::{Scope, gate::Caller},
    platform::fault::{Fault, ServiceError},
    platform::http::{
        AppState, Kind, Problem,
        extract::{Incoming, Path, check_media_type, parse_query, split},
        fault::query_problem,
        routes::Routes,
        schema::BytesSchema,
        spool::spool,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().streaming(Scope::Catalogue, routes!(send))
}

/// Send a feed
///
/// The body is a file as `atelier import` takes it, and may be compressed: JSON Lines, CSV, Parquet, a feed of Google Merchant
/// Center as XML or tab-separated text, or Shopify's export of products. The contents show which. The answer comes when the
/// service has the file; the import runs in the background, one at a time, and all of its rows are stored or none. Ask for
/// `/imports/{id}` until its state is neither `waiting` nor `running`.
#[utoipa::path(post, path = "/feeds/{name}", operation_id = "sendFeed", tag = "imports",
    params(
        ("name" = String, Path, description = "Your name for the feed", example = "shop", min_length = 1, max_length = 128),
        FeedOptions,
    ),
    request_body(content = BytesSchema, content_type = "application/octet-stream", example =
        "id,type,price\na-new,hat,29.90\n"),
    responses(
        (status = 202, description = "The import waits or runs", body = ImportRecord,
            headers(("location" = String, description = "The import's path"))),
    ),
)]
async fn send(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<FeedName>,
    FeedQuery(options): FeedQuery,
    request: Request,
) -> Result<Response, Problem> {
    options.check().map_err(refuse_options)?;
    check_media_type(request.headers(), "application/octet-stream or another type of a file", |found| {
        !found.starts_with("multipart/")
    })?;
    let file = spool(Incoming::new(request, state.limits.bulk_bytes, state.limits)).await?;
    let id = state.jobs().start(author, &name, &options, file).await.map_err(refuse)?;
    accepted(&state, id).await
}

fn refuse_options(faults: Vec<Fault>) -> Problem {
    query_problem(ServiceError::Faults(faults))
}

pub(crate) fn refuse(error: StartError) -> Problem {
    match error {
        StartError::Options(faults) => refuse_options(faults),
        StartError::File(reason) => Problem::new(Kind::Invalid, reason),
        StartError::Full => {
            Problem::new(Kind::TooManyStreams, format!("{error}; try again when one has ended"))
        }
        StartError::Busy => Problem::new(Kind::Conflict, "the feed is being fetched; see its imports"),
        StartError::Stopping => Problem::new(Kind::Stopping, "the service is stopping; send the feed again"),
        StartError::Store(error) => error.into(),
    }
}

/// A query in which the parameter `map` may be repeated.
#[derive(Debug)]
struct FeedQuery(FeedOptions);

impl<S: Send + Sync> FromRequestParts<S> for FeedQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let (map, others) = split(&parts.uri, "map")?;
        Ok(Self(FeedOptions { map, ..parse_query(&others, "")? }))
    }
}
