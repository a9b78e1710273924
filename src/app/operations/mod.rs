//! `/operations`: the service's load, acceptance, imports, its releases, experiments, and the default method.

mod live;
mod rows;
mod spark;

use axum::{
    Router,
    routing::{get, post},
};

use crate::{analysis, experiments, imports, outcomes, platform::http::AppState, releases};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/operations", get(live::page))
        .route("/operations/acceptance", get(outcomes::page::acceptance::page))
        .route("/operations/acceptance.csv", get(outcomes::page::acceptance::download))
        .route("/operations/articles", get(outcomes::page::articles::page))
        .route("/operations/imports", get(imports::page::imports::list))
        .route("/operations/imports/{id}", get(imports::page::imports::one))
        .route("/operations/imports/{id}/undo", post(imports::page::imports::undo))
        .route("/operations/feeds", get(imports::page::feeds::page).post(imports::page::feeds::store))
        .route("/operations/feeds/{name}", get(imports::page::feeds::edit))
        .route("/operations/feeds/{name}/fetch", post(imports::page::feeds::fetch))
        .route("/operations/feeds/{name}/delete", post(imports::page::feeds::delete))
        .route("/operations/releases", get(releases::page::releases::page).post(releases::page::upload::send))
        .route(
            "/operations/releases/{name}",
            get(releases::page::releases::confirm).post(releases::page::releases::activate),
        )
        .route("/operations/releases/{name}/comparison", get(analysis::page::comparison::page))
        .route("/operations/releases/{name}/comparison.csv", get(analysis::page::comparison::download))
        .route("/operations/experiments", get(experiments::page::list).post(experiments::page::store))
        .route("/operations/experiments/{name}", get(experiments::page::one).post(experiments::page::change))
        .route("/operations/routing", get(releases::page::routing::page).post(releases::page::routing::set))
        .route("/operations/routing/change", get(releases::page::routing::confirm))
}
