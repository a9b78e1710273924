//! The pages for stylists, analysts, merchandisers and admins.
//!
//! Each page is a private template struct with its handler, in the module of its name; its template mirrors the
//! URL. A view's whole state is in its address, so every view is a link and works without a script (`address` describes
//! its parameters); htmx only avoids reloading the full page. Pages call `service` and `store`, as the JSON endpoints do; they are not part of
//! `/openapi.json`.

mod access;
mod address;
mod article_view;
pub(crate) mod assets;
mod customer_view;
pub(crate) mod docs;
mod evaluation;
mod fault;
mod figures;
mod form;
mod merchandising;
mod operations;
mod pager;
mod personas;
pub(crate) mod pictures;
pub(crate) mod problem;
mod shell;
mod side_by_side;
mod sign_in;
mod studio;
mod visitor;

use axum::{
    Router,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};

use crate::web::http::{AppState, Problem};
use shell::Page;
use visitor::Guest;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/", get(home))
        .merge(access::router())
        .merge(assets::router())
        .merge(merchandising::router())
        .merge(operations::router())
        .merge(side_by_side::router())
        .merge(sign_in::router())
        .merge(evaluation::router())
        .merge(personas::router())
        .merge(studio::router())
}

/// Sends people to the studio, or to sign in.
async fn home(Guest(visitor): Guest) -> Result<Response, Problem> {
    let path = if visitor.is_some() { Page::Studio.path() } else { "/sign-in" };
    Ok(Redirect::to(path).into_response())
}
