//! `/merchandising`: the shop's people change what the models suggest.

mod choices;
pub(crate) mod documents;
pub(crate) mod fields;
mod form;
mod look;
mod looks;
mod rule;
mod rules;
mod words;

use axum::{
    Router,
    routing::{get, post},
};

use super::looks::Look;
use crate::{
    completion::rules::{Rule, Window},
    platform::http::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route(LIST, get(rules::list))
        .route(STATE, post(rules::set_state))
        .route(UNDO, post(documents::undo::<Rule>))
        .route("/merchandising/holdout", post(rules::set_holdout))
        .route(RULE, get(rule::page).post(rule::store))
        .route("/merchandising/rule/delete", post(rule::delete))
        .route(LOOKS, get(looks::list).post(looks::change))
        .route(LOOK, get(look::page).post(look::store))
        .route(UNDO_LOOK, post(documents::undo::<Look>))
}

const LIST: &str = "/merchandising";
const RULE: &str = "/merchandising/rule";
const STATE: &str = "/merchandising/state";
/// The actions of changes in the audit log.
const PUT_RULE: &str = "rule.put";
const PUT_LOOK: &str = "look.put";
const UNDO: &str = "/merchandising/undo";
const UNDO_LOOK: &str = "/merchandising/looks/undo";
const LOOKS: &str = "/merchandising/looks";
const LOOK: &str = "/merchandising/look";

/// The state of a rule or a look at this moment, and when it begins and ends.
struct Current {
    state: &'static str,
    starts: Option<String>,
    ends: Option<String>,
}

impl Current {
    /// `state` is its own word, with which it counts if `is_on`.
    fn new(state: &'static str, is_on: bool, window: &Window, app: &AppState) -> Self {
        let state = match app.now().millis() {
            now if is_on && now < window.start => "scheduled",
            now if is_on && now >= window.end => "ended",
            _ => state,
        };
        let moment = |at: &i64| rule::shown(app.zone, *at);
        let starts = Some(&window.start).filter(|at| **at > i64::MIN).map(moment);
        let ends = Some(&window.end).filter(|at| **at < i64::MAX).map(moment);
        Self { state, starts, ends }
    }
}

/// The pages under `/merchandising`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Rules,
    Looks,
}
