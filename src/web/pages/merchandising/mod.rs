//! `/merchandising`: what the shop's people want of suggestions, whatever the models say.

mod rules;

use axum::{
    Router,
    routing::{get, post},
};

use crate::web::http::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/merchandising", get(rules::list))
        .route("/merchandising/state", post(rules::set_state))
}

/// The pages under `/merchandising`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Rules,
}
