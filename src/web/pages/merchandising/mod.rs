//! `/merchandising`: what the shop's people want of suggestions, whatever the models say.

mod form;
mod looks;
mod rule;
mod rules;
mod words;

use axum::{
    Router,
    routing::{get, post},
};

use crate::web::http::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/merchandising", get(rules::list))
        .route("/merchandising/state", post(rules::set_state))
        .route("/merchandising/holdout", post(rules::set_holdout))
        .route(RULE, get(rule::page).post(rule::store))
        .route("/merchandising/rule/delete", post(rule::delete))
        .route("/merchandising/looks", get(looks::list).post(looks::change))
        .route("/merchandising/looks/outfit", post(looks::publish))
}

const LIST: &str = "/merchandising";
const RULE: &str = "/merchandising/rule";

/// The pages under `/merchandising`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Rules,
    Looks,
}
