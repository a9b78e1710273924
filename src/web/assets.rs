//! Files that pages need, served from the binary so that it runs from any folder.

use axum::{http::header, response::IntoResponse};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::AppState;

const STYLE: &str = include_str!("../../static/atelier.css");

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(style))
}

/// The style sheet of the pages
#[utoipa::path(get, path = "/static/atelier.css", tag = "documents", responses(
    (status = 200, description = "The style sheet", body = String, content_type = "text/css"),
))]
async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "max-age=300")], STYLE)
}
