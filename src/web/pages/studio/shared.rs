//! `/shared/{link}`: an outfit for its customer, who is not signed in. It shows pieces and prices, and nothing of the
//! customer, the shop's notes or the model.

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{Html, IntoResponse, Response},
    routing::get,
};

use super::outfit::pieces;
use crate::{
    service::outfits,
    store::Name,
    web::{
        http::{AppState, Problem},
        pages::article_view::ArticleView,
    },
};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/shared/{link}", get(page).layer(map_response(keep_secret)))
}

#[derive(Template)]
#[template(path = "studio/shared.html")]
struct SharedPage {
    title: String,
    pieces: Vec<ArticleView>,
    total: Option<String>,
    until: String,
    demo: bool,
}

#[derive(Template)]
#[template(path = "studio/shared-gone.html")]
struct GonePage {
    words: &'static str,
    demo: bool,
}

async fn page(State(state): State<AppState>, Path(link): Path<String>) -> Result<Response, Problem> {
    let found = outfits::shared(&state.store, &link).await?;
    let Some((saved, until)) = found.and_then(|saved| saved.link_until.map(|until| (saved, until))) else {
        return gone(
            &state,
            StatusCode::NOT_FOUND,
            "This link does not work, or your stylist has withdrawn it.",
        );
    };
    if until <= state.now() {
        return gone(&state, StatusCode::GONE, "This link has expired.");
    }
    let (pieces, total) = pieces(&state, &saved.outfit).await?;
    let page = SharedPage {
        title: saved.name.as_ref().map_or("Your outfit", Name::as_str).to_owned(),
        pieces: pieces.into_iter().flatten().collect(),
        total,
        until: state.notation.day(until.millis()),
        demo: state.is_demo(),
    };
    Ok(Html(page.render()?).into_response())
}

fn gone(state: &AppState, status: StatusCode, words: &'static str) -> Result<Response, Problem> {
    let page = GonePage { words, demo: state.is_demo() };
    Ok((status, Html(page.render()?)).into_response())
}

/// Everyone who has the address sees the page. So search engines must not list it, and servers that its photos come from
/// must not learn it.
async fn keep_secret(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
