//! `/personas`: what is typical of each latent persona, and how a customer's or an outfit's mix looks.
//!
//! The models are asked in the background (`crate::service::personas`); while they are, the page says so and loads itself
//! again.

mod card;
mod mixture;

use askama::Template;
use axum::{
    Router,
    extract::State,
    http::{HeaderName, HeaderValue},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;

use self::{
    card::{PersonaCard, cards},
    mixture::{Mixture, mixture},
};
use super::{figures::count, form::PageQuery, visitor::Stylist};
use crate::web::pages::shell::{Page, Shell};
use crate::{
    domain::{CustomerId, Method},
    service::{
        live_release::LiveRelease,
        personas::{Portrait, Progress},
    },
    web::http::{AppState, Finding, Problem},
};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/personas", get(page))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersonasQuery {
    /// The first that has personas if not given.
    method: Option<Method>,
    customer: Option<String>,
    /// A stored outfit's number.
    outfit: Option<i64>,
}

#[derive(Template)]
#[template(path = "personas.html")]
struct PersonasPage {
    shell: Shell,
    release: String,
    method: Option<Method>,
    methods: Vec<Method>,
    customer: String,
    content: Content,
}

enum Content {
    NoRelease,
    NoPersonas,
    Working { done: usize, of: usize },
    Failed,
    Ready(Box<Shown>),
}

/// What is shown once it is computed.
struct Shown {
    words: String,
    articles: String,
    outfits: String,
    cards: Vec<PersonaCard>,
    mixture: Option<Mixture>,
}

/// A page that is not ready yet loads itself again: a header does it without a script.
const REFRESH: HeaderName = HeaderName::from_static("refresh");
const SECONDS: HeaderValue = HeaderValue::from_static("2");

async fn page(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<PersonasQuery>,
) -> Result<Response, Problem> {
    let customer = customer(query.customer.as_deref())?;
    let mut page = PersonasPage {
        shell: visitor.shell(Page::Personas),
        release: String::new(),
        method: None,
        methods: Vec::new(),
        customer: query.customer.unwrap_or_default(),
        content: Content::NoRelease,
    };
    if let Some(live) = state.releases.current() {
        live.name().clone_into(&mut page.release);
        page.methods = live.personas.methods();
        page.method = method(query.method, &page.methods)?;
        page.content = match page.method {
            Some(method) => content(&state, &live, method, customer.as_ref(), query.outfit).await?,
            None => Content::NoPersonas,
        };
    }
    let waiting = matches!(page.content, Content::Working { .. });
    let html = Html(page.render()?);
    Ok(if waiting { ([(REFRESH, SECONDS)], html).into_response() } else { html.into_response() })
}

fn customer(text: Option<&str>) -> Result<Option<CustomerId>, Problem> {
    let finding = |error: crate::domain::IdError| Finding::parameter("customer", error.to_string());
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    text.map(CustomerId::new).transpose().map_err(|error| Problem::invalid(vec![finding(error)]))
}

fn method(asked: Option<Method>, there: &[Method]) -> Result<Option<Method>, Problem> {
    let Some(method) = asked else { return Ok(there.first().copied()) };
    if there.contains(&method) {
        return Ok(Some(method));
    }
    let names: Vec<&str> = there.iter().map(|method| method.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let detail = format!("{method} has no personas in the release that is served; those that have: {names}");
    Err(Problem::invalid(vec![Finding::parameter("method", detail)]))
}

async fn content(
    state: &AppState,
    live: &LiveRelease,
    method: Method,
    customer: Option<&CustomerId>,
    outfit: Option<i64>,
) -> Result<Content, Problem> {
    let portrait = match live.personas.of(method, &state.store).await? {
        Progress::Working { done, of } => return Ok(Content::Working { done, of }),
        Progress::Failed => return Ok(Content::Failed),
        Progress::Ready(portrait) => portrait,
    };
    Ok(Content::Ready(Box::new(Shown {
        words: words(live, &portrait),
        articles: count(portrait.articles as u64),
        outfits: count(portrait.outfits as u64),
        mixture: mixture(state, live, method, &portrait, customer, outfit).await?,
        cards: cards(&state.store, live, &portrait).await?,
    })))
}

/// How far from even the mixes are, as it was measured.
fn words(live: &LiveRelease, portrait: &Portrait) -> String {
    let Some((place, index, share)) = portrait.largest() else { return String::new() };
    let name = live.serving.release().vocabulary().article(index).map(|id| card::article(live, id).name);
    let even = portrait.even();
    let measured = format!(
        "The most typical article of all, {}, has {} of persona {}, where even is {}. On the average an article’s \
         largest share is {}.",
        name.unwrap_or_default(),
        percent(share),
        place + 1,
        percent(even),
        percent(portrait.mean_largest),
    );
    // A quarter more than even is little to tell one kind from another.
    let judged = if portrait.mean_largest < 1.25 * even {
        " So most articles hardly differ from an even mix: the orders below are as measured, the kinds are faint."
    } else {
        ""
    };
    measured + judged
}

/// With the digit that tells a share from an even one.
fn percent(share: f32) -> String {
    format!("{:.1} %", 100.0 * share)
}
