//! `/shared/{link}`: an outfit for its customer, who is not signed in. It shows pieces, prices and the stylist's message, and
//! nothing of the customer, the shop's notes or the model. What the customer answers reaches the stylists' queue.

use std::time::Duration;

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use serde::Deserialize;

use super::outfit::pieces;
use crate::{
    catalogue::page::article_view::ArticleView,
    outfits::{self, Reply, ReplyError, ReplyKind},
    people::Token,
    platform::{
        db::{Name, Note},
        http::{AppState, Kind, Problem},
        page::{OpenForm, PageQuery},
    },
};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/shared/{link}", get(page).post(answer).layer(map_response(keep_secret)))
}

/// After so long, a customer who answered very often may answer again.
const HOUR: Duration = Duration::from_hours(1);

#[derive(Template)]
#[template(path = "studio/shared.html")]
struct SharedPage {
    title: String,
    pieces: Vec<ArticleView>,
    total: Option<String>,
    until: String,
    author: Option<String>,
    message: String,
    /// Where replies go.
    link: String,
    notice: Notice,
    demo: bool,
}

/// The notice after a reply.
#[derive(Default)]
struct Notice {
    is_sent: bool,
    /// Why it was not, and what was typed.
    refused: Option<String>,
    typed: String,
}

#[derive(Template)]
#[template(path = "studio/shared-gone.html")]
struct GonePage {
    words: &'static str,
    demo: bool,
}

#[derive(Deserialize)]
struct SharedQuery {
    replied: Option<String>,
}

async fn page(
    State(state): State<AppState>,
    Path(link): Path<String>,
    PageQuery(SharedQuery { replied }): PageQuery<SharedQuery>,
) -> Result<Response, Problem> {
    let notice = Notice { is_sent: replied.is_some(), ..Notice::default() };
    show(&state, &link, notice).await
}

/// The outfit, or that the link does not work.
async fn show(state: &AppState, link: &str, notice: Notice) -> Result<Response, Problem> {
    let found = outfits::shared(&state.store, link).await?;
    let Some((saved, until)) = found.and_then(|saved| saved.link_until.map(|until| (saved, until))) else {
        return gone(
            state,
            StatusCode::NOT_FOUND,
            "This link does not work, or your stylist has withdrawn it.",
        );
    };
    if until <= state.now() {
        return gone(state, StatusCode::GONE, "This link has expired.");
    }
    let (pieces, total) = pieces(state, &saved).await?;
    let page = SharedPage {
        title: saved.name.as_ref().map_or("Your outfit", Name::as_str).to_owned(),
        pieces: pieces.into_iter().flatten().collect(),
        total,
        until: state.notation.day(until.millis()),
        author: saved.author,
        message: saved.message.as_str().to_owned(),
        link: format!("/shared/{link}"),
        notice,
        demo: state.is_demo(),
    };
    Ok(Html(page.render()?).into_response())
}

#[derive(Deserialize)]
struct ReplyForm {
    /// The piece that is disliked.
    dislikes: Option<String>,
    likes: Option<String>,
    #[serde(default)]
    text: String,
}

async fn answer(
    State(state): State<AppState>,
    Path(link): Path<String>,
    OpenForm(ReplyForm { dislikes, likes, text }): OpenForm<ReplyForm>,
) -> Result<Response, Problem> {
    // A path may have any characters; a redirect leads to a link's only.
    let link =
        Token::parse(&link).ok_or_else(|| Problem::new(Kind::NotFound, ReplyError::NoLink.to_string()))?;
    let link = link.as_str();
    let now = state.now();
    let refuse = async |status: StatusCode, reason: String, typed: String| {
        let notice = Notice { refused: Some(reason), typed, is_sent: false };
        let page = show(&state, link, notice).await?;
        Ok(if page.status().is_success() { (status, page).into_response() } else { page })
    };
    let note = match Note::new(&text) {
        Ok(note) => note,
        Err(error) => return refuse(StatusCode::UNPROCESSABLE_ENTITY, error.to_string(), text).await,
    };
    let kind = match (&dislikes, likes) {
        (Some(_), _) => ReplyKind::Dislikes,
        (None, Some(_)) => ReplyKind::Likes,
        (None, None) if note.as_str().is_empty() => {
            return Ok(Redirect::to(&format!("/shared/{link}")).into_response());
        }
        (None, None) => ReplyKind::Asks,
    };
    let reply = Reply { at: now.millis(), kind, article: dislikes, text: note.as_str().to_owned() };
    match outfits::reply(&state.store, link, reply, now).await {
        Ok(()) => Ok(Redirect::to(&format!("/shared/{link}?replied=on#reply")).into_response()),
        Err(error @ ReplyError::NoLink) => Err(Problem::new(Kind::NotFound, error.to_string())),
        Err(error @ ReplyError::NoPiece(_)) => {
            refuse(StatusCode::UNPROCESSABLE_ENTITY, error.to_string(), text).await
        }
        Err(error @ ReplyError::TooMany) => {
            let page = refuse(StatusCode::TOO_MANY_REQUESTS, error.to_string(), text).await?;
            Ok(([(header::RETRY_AFTER, HOUR.as_secs())], page).into_response())
        }
        Err(ReplyError::Store(error)) => Err(error.into()),
    }
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
