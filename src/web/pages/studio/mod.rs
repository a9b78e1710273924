//! `/studio`: a stylist finds a customer, lays out an outfit, sees what belongs in its blanks, and keeps it.

mod actions;
mod board;
mod people;
mod suggest;
mod view;
mod what_if;

use askama::Template;
use axum::{
    Router,
    extract::State,
    response::Html,
    routing::{get, post},
};

use self::{
    board::{Board, Pick},
    people::{CustomerView, OutfitView},
    suggest::Suggested,
    view::View,
    what_if::WhatIf,
};
use super::visitor::Stylist;
use crate::web::pages::shell::{Page, Shell};
use crate::{
    domain::{Features, Method, Schema},
    service::{completion::CompletionError, live_release::LiveRelease, routing::Choice},
    web::http::{AppState, Problem},
};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/studio", get(page))
        .route("/studio/feedback", post(actions::feedback))
        .route("/studio/outfits", post(actions::save))
}

#[derive(Template)]
#[template(path = "studio.html")]
struct StudioPage {
    shell: Shell,
    view: View,
    /// Who is worked for, if anybody is and is there.
    customer: Option<CustomerView>,
    /// Who was found, where nobody is chosen.
    found: Vec<CustomerView>,
    outfits: Vec<OutfitView>,
    board: Board,
    pick: Option<Pick>,
    what_if: WhatIf,
    suggested: Option<Suggested>,
    methods: Vec<Method>,
    /// Why nothing is suggested though something was asked.
    silent: Option<String>,
}

async fn page(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    view: View,
) -> Result<Html<String>, Problem> {
    let live = state.releases.current();
    let schema = state.schema();
    let customer = people::customer(&state, &view, &schema).await?;
    let stored = customer.as_ref().map(|customer| customer.features.clone()).unwrap_or_default();
    let found = if customer.is_none() { people::find(&state, &view, &schema).await? } else { Vec::new() };
    let outfits = match &customer {
        Some(_) if view.slots.is_empty() => people::outfits(&state, &view, &schema).await?,
        _ => Vec::new(),
    };
    let mut board = board::board(&state, &view, live.as_deref()).await?;
    let (mut suggested, mut silent) = (None, None);
    match &live {
        Some(live) if view.blanks() > 0 => {
            match suggest::suggest(&state, live, &view, stored.clone(), &board).await {
                Ok(found) => suggested = Some(found),
                // The outfit and the filters stay, so that they can be mended.
                Err(CompletionError::Faults(found)) => {
                    silent = Some(found.into_iter().map(|one| one.detail).collect::<Vec<_>>().join(". "));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Some(live) if board.is_whole() => board.judge(&state, live, &view, stored.clone()).await?,
        None if view.blanks() > 0 => {
            silent = Some(
                "No release is being served, so nothing can be suggested. An admin activates one.".into(),
            );
        }
        _ => {}
    }
    let page = StudioPage {
        shell: visitor.shell(Page::Studio),
        pick: board::pick(&state, &view).await?,
        what_if: what_if::what_if(&view, &stored, &schema),
        methods: live.map(|live| live.serving.methods().collect()).unwrap_or_default(),
        view,
        customer,
        found,
        outfits,
        board,
        suggested,
        silent,
    };
    Ok(Html(page.render()?))
}

/// What a completion is told of customer and outfit: the profile, and what the address says over it. A feature
/// that is said to be not given is taken out of the profile.
fn context(view: &View, mut stored: Features, schema: &Schema, with_changes: bool) -> (Features, Features) {
    let mut given = view.own.clone();
    if with_changes {
        given.extend(view.changed.clone());
    }
    given.retain(|name, words| {
        let taken_away = words.iter().any(|word| word == view::NOT_GIVEN);
        if taken_away {
            stored.remove(name);
        }
        !taken_away
    });
    (stored, view::features(&given, schema))
}

/// The method that answers this view.
fn method(view: &View, live: &LiveRelease) -> Choice {
    match view.method {
        Some(method) => Choice { method, arm: None },
        None => live.choose(view.customer.as_ref()),
    }
}
