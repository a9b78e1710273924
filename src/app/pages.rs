//! All pages.

use axum::{
    Router,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};

use crate::{
    analysis,
    people::{self, page::visitor::Guest},
    platform::{
        http::{AppState, Problem},
        page::{assets, shell::Page},
    },
    steering, studio,
};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/", get(home))
        .route("/demo/shop", get(super::shop::page))
        .merge(people::page::router())
        .merge(assets::router())
        .merge(steering::page::router())
        .merge(super::operations::router())
        .merge(studio::side_by_side::router())
        .merge(people::page::sign_in::router())
        .merge(analysis::page::evaluation::router())
        .merge(analysis::page::personas::router())
        .merge(studio::router())
}

/// Sends people to the studio, or to sign in.
async fn home(Guest(visitor): Guest) -> Result<Response, Problem> {
    let path = if visitor.is_some() { Page::Studio.path() } else { "/sign-in" };
    Ok(Redirect::to(path).into_response())
}
