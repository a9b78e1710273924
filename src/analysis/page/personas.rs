//! `/personas`: the typical articles and outfits of each latent persona, and the mix of a customer or an outfit.
//!
//! `crate::analysis::personas` asks the models in the background; until they have answered, the page shows the
//! progress and reloads itself.

use askama::Template;
use atelier_core::{
    domain::{ArticleId, CustomerId, IdError, Method, list_methods},
    drawing::chart::{Bar, Bars, bars},
};
use axum::{
    Router,
    extract::State,
    http::{HeaderName, HeaderValue},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;

use crate::{
    analysis::personas::{Mix, Persona, Personas, Portrait, Progress, mean_mix, mixes_of},
    catalogue::page::article_view::ArticleView,
    customers::page::CustomerViews,
    outfits::OutfitRecord,
    people::page::visitor::Stylist,
    platform::{
        http::{AppState, Finding, Kind, Problem},
        page::{Page, PageQuery, Shell},
    },
    releases::LiveRelease,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/personas", get(page))
}

#[derive(Debug, Deserialize)]
struct PersonasQuery {
    /// Defaults to the first method with personas.
    method: Option<Method>,
    customer: Option<String>,
    /// A stored outfit's number.
    outfit: Option<i64>,
}

#[derive(Template)]
#[template(path = "analysis/personas.html")]
struct PersonasPage {
    shell: Shell,
    release: String,
    method: Option<Method>,
    methods: Vec<Method>,
    customer: String,
    outfit: Option<i64>,
    content: Content,
}

enum Content {
    NoRelease,
    NoPersonas,
    Working { done: usize, of: usize },
    Failed,
    Ready(Box<ReadyView>),
}

struct ReadyView {
    /// How distinct the personas are.
    words: String,
    articles: String,
    outfits: String,
    cards: Vec<PersonaCard>,
    mixture: Option<Mixture>,
}

/// Reloads an unfinished page without a script.
const REFRESH: HeaderName = HeaderName::from_static("refresh");
const SECONDS: HeaderValue = HeaderValue::from_static("2");

async fn page(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<PersonasQuery>,
) -> Result<Response, Problem> {
    let customer = customer(query.customer.as_deref())?;
    let mut page = PersonasPage {
        shell: visitor.shell(Page::Evaluation),
        release: String::new(),
        method: None,
        methods: Vec::new(),
        customer: query.customer.unwrap_or_default(),
        outfit: query.outfit,
        content: Content::NoRelease,
    };
    if let Some(live) = state.releases().current() {
        live.name().clone_into(&mut page.release);
        page.methods = live.follower::<Personas>().methods();
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
    let finding = |error: IdError| Finding::parameter("customer", error.to_string());
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    text.map(CustomerId::new).transpose().map_err(|error| Problem::invalid(vec![finding(error)]))
}

fn method(chosen: Option<Method>, available: &[Method]) -> Result<Option<Method>, Problem> {
    let Some(method) = chosen else { return Ok(available.first().copied()) };
    if available.contains(&method) {
        return Ok(Some(method));
    }
    let names = if available.is_empty() { "none".to_owned() } else { list_methods(available) };
    let detail = format!("{method} has no personas in the live release; methods with personas: {names}");
    Err(Problem::invalid(vec![Finding::parameter("method", detail)]))
}

async fn content(
    state: &AppState,
    live: &LiveRelease,
    method: Method,
    customer: Option<&CustomerId>,
    outfit: Option<i64>,
) -> Result<Content, Problem> {
    let portrait = match live.follower::<Personas>().portrait(method, &live.rows, &state.store).await? {
        Progress::Working { done, of } => return Ok(Content::Working { done, of }),
        Progress::Failed => return Ok(Content::Failed),
        Progress::Ready(portrait) => portrait,
    };
    Ok(Content::Ready(Box::new(ReadyView {
        words: distinctness(live, &portrait),
        articles: state.notation.count(portrait.articles as u64),
        outfits: state.notation.count(portrait.outfits as u64),
        mixture: mixture(state, live, method, &portrait, customer, outfit).await?,
        cards: cards(state, live, &portrait).await?,
    })))
}

/// How far the mixes are from even, in sentences.
fn distinctness(live: &LiveRelease, portrait: &Portrait) -> String {
    let Some((persona, index, share)) = portrait.largest() else { return String::new() };
    let name = live
        .serving
        .release()
        .vocabulary()
        .article(index)
        .map(|id| ArticleView::from_live_release(live, id).name);
    let even = portrait.even();
    let measured = format!(
        "The most typical article, {}, has {} of persona {}; an even mix has {}. On average, an article’s largest share \
         is {}.",
        name.unwrap_or_default(),
        percent(share),
        persona + 1,
        percent(even),
        percent(portrait.mean_largest),
    );
    // Shares up to a quarter above even hardly distinguish the personas.
    let verdict = if portrait.mean_largest < 1.25 * even {
        " Most articles are close to an even mix, so the personas differ only slightly."
    } else {
        ""
    };
    measured + verdict
}

/// With one decimal, since shares are close to even.
fn percent(share: f32) -> String {
    format!("{:.1} %", 100.0 * share)
}

struct PersonaCard {
    /// Starts at 1.
    number: usize,
    share: String,
    leads: usize,
    articles: Vec<(ArticleView, String)>,
    outfits: Vec<OutfitView>,
}

struct OutfitView {
    number: i64,
    customer: String,
    articles: Vec<ArticleView>,
    share: String,
}

/// Outfits shown for a persona.
const OUTFITS: usize = 2;

async fn cards(
    state: &AppState,
    live: &LiveRelease,
    portrait: &Portrait,
) -> Result<Vec<PersonaCard>, Problem> {
    let mut cards = Vec::with_capacity(portrait.personas.len());
    for (persona, number) in portrait.personas.iter().zip(1..) {
        cards.push(PersonaCard {
            number,
            share: percent(persona.share),
            leads: persona.leads,
            articles: typical_articles(live, persona),
            outfits: typical_outfits(state, live, persona).await?,
        });
    }
    Ok(cards)
}

fn typical_articles(live: &LiveRelease, persona: &Persona) -> Vec<(ArticleView, String)> {
    let vocabulary = live.serving.release().vocabulary();
    let view = |&(index, share): &(u32, f32)| {
        let id = vocabulary.article(index)?;
        Some((ArticleView::from_live_release(live, id), percent(share)))
    };
    persona.articles.iter().filter_map(view).collect()
}

/// The typical outfits that still exist.
async fn typical_outfits(
    state: &AppState,
    live: &LiveRelease,
    persona: &Persona,
) -> Result<Vec<OutfitView>, Problem> {
    let mut found = Vec::with_capacity(OUTFITS);
    for &(number, share) in &persona.outfits {
        if found.len() == OUTFITS {
            break;
        }
        if let Some(record) = state.store.outfits().get(number).await? {
            found.push((record, share));
        }
    }
    let customers = found.iter().map(|(record, _)| &record.outfit.customer);
    let customers = CustomerViews::read(state, customers, live.serving.release().schema()).await?;
    let view = |(record, share): (OutfitRecord, f32)| {
        let customer = customers.label(&record.outfit.customer);
        OutfitView::new(live, &record, customer, percent(share))
    };
    Ok(found.into_iter().map(view).collect())
}

impl OutfitView {
    fn new(live: &LiveRelease, record: &OutfitRecord, customer: String, share: String) -> Self {
        let article = |id: &ArticleId| ArticleView::from_live_release(live, id);
        Self {
            number: record.seq,
            customer,
            articles: record.outfit.articles().iter().map(article).collect(),
            share,
        }
    }
}

/// A mix, and the outfits behind it.
struct Mixture {
    title: String,
    /// An SVG; none without outfits.
    drawn: Option<String>,
    /// Why there is none.
    missing: String,
    /// The mix in words, persona by persona.
    shares: Vec<String>,
    outfits: Vec<OutfitView>,
}

/// At most this many of a customer's outfits count, the oldest first; they fit one batch.
const MIXED_OUTFITS: u32 = 50;
/// The outfits shown next to a mix.
const SHOWN_OUTFITS: usize = 8;

/// The mix of the outfit if there is one in the query, or of the customer.
async fn mixture(
    state: &AppState,
    live: &LiveRelease,
    method: Method,
    portrait: &Portrait,
    customer: Option<&CustomerId>,
    outfit: Option<i64>,
) -> Result<Option<Mixture>, Problem> {
    let label = async |id: &CustomerId| {
        let customers = CustomerViews::read(state, [id], live.serving.release().schema()).await?;
        Ok::<_, Problem>(customers.label(id))
    };
    let (title, records, missing) = match (outfit, customer) {
        (Some(number), _) => {
            let record = state.store.outfits().get(number).await?;
            let not_found = || Problem::new(Kind::NotFound, format!("there is no stored outfit {number}"));
            let record = record.ok_or_else(not_found)?;
            let missing = format!("{method} knows none of its articles, so there is no mix to show.");
            (format!("An outfit of {}", label(&record.outfit.customer).await?), vec![record], missing)
        }
        (None, Some(customer)) => {
            let records = state.store.outfits().for_customer(customer, 0, MIXED_OUTFITS).await?;
            let missing = match state.store.customers().get(customer).await? {
                Some(_) => "This customer has no outfits, so there is no mix to show.".to_owned(),
                None => format!("There is no customer {customer}."),
            };
            (format!("The outfits of {}", label(customer).await?), records, missing)
        }
        (None, None) => return Ok(None),
    };
    // An outfit without any article that the method knows has no mix.
    let known = |record: OutfitRecord| (known_places(live, method, &record), record);
    let known = records.into_iter().map(known).filter(|(places, _)| !places.is_empty());
    let (outfits, records): (Vec<Vec<u32>>, Vec<OutfitRecord>) = known.unzip();
    let patience = state.limits.deadline();
    let mixes = mixes_of(&live.serving, &live.rows, method, &outfits, patience, |_| {}).await?;
    let mean = mean_mix(&mixes);
    let shown = records.iter().zip(&mixes).take(SHOWN_OUTFITS);
    // The title says whose they are.
    let view = |(record, mix)| OutfitView::new(live, record, String::new(), largest_share(mix));
    Ok(Some(Mixture {
        drawn: mean.as_ref().map(|mean| draw(&title, mean, portrait)),
        missing,
        shares: mean
            .iter()
            .flatten()
            .zip(1..)
            .map(|(share, number)| share_in_words(*share, number))
            .collect(),
        outfits: shown.map(view).collect(),
        title,
    }))
}

/// The places of an outfit's articles that the method knows.
fn known_places(live: &LiveRelease, method: Method, record: &OutfitRecord) -> Vec<u32> {
    let known = live.rows.known(method);
    let is_known = |place: &u32| known.is_some_and(|known| known.contains(*place));
    let articles = record.outfit.articles().iter();
    articles.filter_map(|id| live.catalogue.position_of(id.as_str())).filter(is_known).collect()
}

fn draw(title: &str, mix: &Mix, portrait: &Portrait) -> String {
    let even = f64::from(portrait.even());
    let furthest = mix.iter().map(|share| (f64::from(*share) - even).abs()).fold(0.0, f64::max);
    let largest = portrait.largest().map_or(0.0, |(_, _, share)| f64::from(share) - even);
    bars(&Bars {
        title,
        about: "The share of each persona; bars start at the share in an even mix.",
        bars: mix
            .iter()
            .zip(1..)
            .map(|(share, number)| Bar {
                name: format!("Persona {number}"),
                share: f64::from(*share),
                written: percent(*share),
            })
            .collect(),
        even,
        // At least as far as any article's share, so the charts of two customers can be compared.
        reach: furthest.max(largest).max(0.005),
    })
}

fn share_in_words(share: f32, number: usize) -> String {
    format!("{} of persona {number}", percent(share))
}

fn largest_share(mix: &Mix) -> String {
    let largest = mix.iter().zip(1..).max_by(|one, other| one.0.total_cmp(other.0));
    largest.map_or_else(String::new, |(share, number)| share_in_words(*share, number))
}
