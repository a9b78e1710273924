//! Files that pages need, served from the binary so that it runs from any folder.

use axum::{Router, http::header, response::IntoResponse, routing::get};

use super::AppState;

const STYLE: &str = include_str!("../../static/atelier.css");

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/static/atelier.css", get(style))
}

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "max-age=300")], STYLE)
}
