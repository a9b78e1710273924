//! `/operations`: the service's load, acceptance, imports, its releases, experiments, and the default method.

mod live;
pub(crate) mod rows;
mod spark;

use axum::{
    Router,
    routing::{get, post},
};

use crate::platform::http::AppState;

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/operations", get(self::live::page))
        .route("/operations/acceptance", get(crate::outcomes::page::acceptance::page))
        .route("/operations/acceptance.csv", get(crate::outcomes::page::acceptance::download))
        .route("/operations/articles", get(crate::outcomes::page::articles::page))
        .route("/operations/imports", get(crate::imports::page::imports::list))
        .route("/operations/imports/{id}", get(crate::imports::page::imports::one))
        .route(
            "/operations/feeds",
            get(crate::imports::page::feeds::page).post(crate::imports::page::feeds::store),
        )
        .route("/operations/feeds/{name}", get(crate::imports::page::feeds::edit))
        .route("/operations/feeds/{name}/fetch", post(crate::imports::page::feeds::fetch))
        .route("/operations/feeds/{name}/delete", post(crate::imports::page::feeds::delete))
        .route("/operations/releases", get(crate::releases::page::releases::page))
        .route(
            "/operations/releases/{name}",
            get(crate::releases::page::releases::confirm).post(crate::releases::page::releases::activate),
        )
        .route("/operations/releases/{name}/comparison", get(crate::releases::page::comparison::page))
        .route("/operations/releases/{name}/comparison.csv", get(crate::releases::page::comparison::download))
        .route(
            "/operations/experiments",
            get(crate::experiments::page::list).post(crate::experiments::page::store),
        )
        .route(
            "/operations/experiments/{name}",
            get(crate::experiments::page::one).post(crate::experiments::page::change),
        )
        .route(
            "/operations/routing",
            get(crate::releases::page::routing::page).post(crate::releases::page::routing::set),
        )
        .route("/operations/routing/change", get(crate::releases::page::routing::confirm))
}
