//! `/operations`: how the service does, which release answers, and which of its methods.

mod live;
mod proposal;
mod releases;
mod routing;
mod rows;
mod spark;

use axum::{Router, routing::get};

use super::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/operations", get(live::page))
        .route("/operations/releases", get(releases::page))
        .route("/operations/releases/{name}", get(releases::ask).post(releases::activate))
        .route("/operations/routing", get(routing::page).post(routing::set))
        .route("/operations/routing/change", get(routing::ask))
}

/// The pages below this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Live,
    Releases,
    Routing,
}
