//! `/feedback/outfits.jsonl`: outfits that came about by accepting suggestions, as data to train on.

use axum::{
    body::Body,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{TryStreamExt, stream};
use utoipa_axum::routes;

use crate::service::access::Scope;
use crate::web::http::routes::Routes;
use crate::{service::feedback::accepted_outfits, store::StoreError, web::http::AppState};

pub(super) fn router() -> Routes {
    Routes::new().scoped(Scope::Feedback, routes!(accepted))
}

/// Accepted outfits as training data
///
/// One outfit a line, as `atelier export` writes them: of every completion of the release that is served now,
/// for a known customer, whose every blank has an accepted or bought article, where the whole has four to
/// eight articles. An article that was rejected after it was accepted does not count.
#[utoipa::path(get, path = "/feedback/outfits.jsonl", tag = "feedback", responses(
    (status = 200, description = "The outfits", body = String, content_type = "application/x-ndjson"),
))]
async fn accepted(State(state): State<AppState>) -> Response {
    let pages = stream::try_unfold(Some(String::new()), move |after| {
        let state = state.clone();
        async move {
            let Some(after) = after else { return Ok(None) };
            accepted_outfits(&state.store, &state.releases, &state.tickets, &after).await.map(Some)
        }
    });
    // The answer has begun by then: all that is left is to break it off, and to say why in the log.
    let pages = pages.inspect_err(|error: &StoreError| tracing::error!(%error, "accepted outfits broke off"));
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(pages)).into_response()
}
