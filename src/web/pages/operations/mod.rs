//! `/operations`: the service's load, acceptance, imports, its releases, experiments, and the default method.

mod acceptance;
mod articles;
mod comparison;
mod experiments;
mod feeds;
mod imports;
mod live;
mod releases;
mod routing;
mod rows;
mod spark;

use axum::{
    Router,
    routing::{get, post},
};

use crate::web::http::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/operations", get(live::page))
        .route("/operations/acceptance", get(acceptance::page))
        .route("/operations/acceptance.csv", get(acceptance::download))
        .route("/operations/articles", get(articles::page))
        .route("/operations/imports", get(imports::list))
        .route("/operations/imports/{id}", get(imports::one))
        .route("/operations/feeds", get(feeds::page).post(feeds::store))
        .route("/operations/feeds/{name}", get(feeds::edit))
        .route("/operations/feeds/{name}/fetch", post(feeds::fetch))
        .route("/operations/feeds/{name}/delete", post(feeds::delete))
        .route("/operations/releases", get(releases::page))
        .route("/operations/releases/{name}", get(releases::confirm).post(releases::activate))
        .route("/operations/releases/{name}/comparison", get(comparison::page))
        .route("/operations/releases/{name}/comparison.csv", get(comparison::download))
        .route("/operations/experiments", get(experiments::list).post(experiments::store))
        .route("/operations/experiments/{name}", get(experiments::one).post(experiments::change))
        .route("/operations/routing", get(routing::page).post(routing::set))
        .route("/operations/routing/change", get(routing::confirm))
}

/// The pages under `/operations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Live,
    Acceptance,
    Articles,
    Imports,
    Feeds,
    Releases,
    Experiments,
    Routing,
}
