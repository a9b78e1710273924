//! `/operations/feeds`: the stored sources of feeds.

use askama::Template;
use atelier_core::domain::Timestamp;
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::from_str;

use crate::{
    imports::{
        feeds::{ALERT, Authorization, PutError, Schedule, Wanted, stored_address},
        jobs::{FeedName, FeedOptions, FeedTable, Mode, StartError},
        sql::feeds::Feed,
    },
    people::page::visitor::{Admin, Analyst, Visitor},
    platform::{
        db::{ChangeError, Expected, Stored},
        http::{AppState, Kind, Problem, extract::Path, uncancelled::uncancelled},
        page::{
            figures,
            form::{self, Form},
            operations::Tab,
            shell::{Page, Shell},
        },
    },
};

const FORMATS: [&str; 6] = ["google-xml", "google-tsv", "shopify-csv", "csv", "jsonl", "parquet"];
const LIST: &str = "/operations/feeds";

#[derive(Template)]
#[template(path = "imports/feeds.html")]
struct FeedsPage {
    shell: Shell,
    tab: Tab,
    feeds: Vec<FeedView>,
    formats: [&'static str; 6],
    /// What the form has.
    typed: FeedForm,
    has_credentials: bool,
    wrong: Vec<String>,
}

struct FeedView {
    name: String,
    url: String,
    schedule: String,
    is_fetching: bool,
    due: Option<String>,
    tried: Option<String>,
    succeeded: Option<String>,
    /// Why it failed the last time.
    failure: Option<String>,
    /// How often in a row, if that is an alert.
    alert: Option<u32>,
}

impl FeedView {
    fn new(feed: &Feed, now: Timestamp) -> Self {
        Self {
            name: feed.name.clone(),
            url: shown(feed),
            schedule: in_words(feed.source.schedule.as_deref()),
            is_fetching: feed.is_leased(now),
            due: feed.due_at.map(figures::moment),
            tried: feed.tried_at.map(figures::moment),
            succeeded: feed.succeeded_at.map(figures::moment),
            failure: feed.failure.clone(),
            alert: (feed.failures >= ALERT).then_some(feed.failures),
        }
    }
}

fn shown(feed: &Feed) -> String {
    stored_address(&feed.source).map(|address| address.to_string()).unwrap_or_default()
}

fn in_words(schedule: Option<&str>) -> String {
    let schedule: Schedule = schedule.and_then(|text| from_str(text).ok()).unwrap_or_default();
    schedule.every.unwrap_or_else(|| schedule.at.join(", "))
}

/// A source as the form has it. Empty fields are those that were not filled in.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FeedForm {
    name: String,
    /// The version that is changed; empty for a new source.
    version: String,
    url: String,
    authorization: String,
    no_credentials: bool,
    schedule: String,
    table: FeedTable,
    mode: Mode,
    format: String,
    delimiter: String,
    encoding: String,
    map: String,
    skip_bad: bool,
    mirror_limit: Option<u8>,
}

impl FeedForm {
    fn new(Stored { value: feed, version }: &Stored<Feed>) -> Self {
        let options: FeedOptions = from_str(&feed.source.options).unwrap_or_default();
        Self {
            name: feed.name.clone(),
            version: version.to_string(),
            url: shown(feed),
            schedule: in_words(feed.source.schedule.as_deref()),
            table: options.table,
            mode: options.mode,
            format: options.format.unwrap_or_default(),
            delimiter: options.delimiter.unwrap_or_default(),
            encoding: options.encoding.unwrap_or_default(),
            map: options.map.join("\n"),
            skip_bad: options.skip_bad,
            mirror_limit: options.mirror_limit,
            ..Self::default()
        }
    }

    fn wanted(&self) -> Wanted {
        let filled = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        let words = |text: &str| text.split([',', ' ']).filter_map(filled).collect();
        let schedule = filled(&self.schedule).map(|text| {
            if text.contains(':') {
                Schedule { every: None, at: words(&text) }
            } else {
                Schedule { every: Some(text), at: Vec::new() }
            }
        });
        let authorization = match filled(&self.authorization) {
            Some(value) => Authorization::Set(value),
            None if self.no_credentials => Authorization::Remove,
            None => Authorization::Keep,
        };
        let options = FeedOptions {
            table: self.table,
            mode: self.mode,
            format: filled(&self.format),
            delimiter: filled(&self.delimiter),
            encoding: filled(&self.encoding),
            map: self.map.lines().filter_map(filled).collect(),
            skip_bad: self.skip_bad,
            dry_run: false,
            mirror_limit: self.mirror_limit,
        };
        Wanted { url: self.url.trim().to_owned(), authorization, options, schedule }
    }

    /// Without what may be secret.
    fn without_secrets(self) -> Self {
        let is_shown = !self.url.contains(['@', '?']) || self.url.contains('…');
        let url = if is_shown { self.url } else { String::new() };
        Self { url, authorization: String::new(), ..self }
    }
}

pub(crate) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    render(&state, &visitor, FeedForm::default(), Vec::new()).await
}

/// The same page, with a form that has the source.
pub(crate) async fn edit(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(name): Path<FeedName>,
) -> Result<Html<String>, Problem> {
    let stored = state.store.feeds().get(name.as_str()).await?.ok_or_else(|| unknown(&name))?;
    render(&state, &visitor, FeedForm::new(&stored), Vec::new()).await
}

async fn render(
    state: &AppState,
    visitor: &Visitor,
    typed: FeedForm,
    wrong: Vec<String>,
) -> Result<Html<String>, Problem> {
    let (feeds, now) = (state.store.feeds().list().await?, state.now());
    let edited = feeds.iter().find(|feed| !typed.version.is_empty() && feed.value.name == typed.name);
    let page = FeedsPage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Feeds,
        has_credentials: edited.is_some_and(|feed| feed.value.source.has_credentials()),
        feeds: feeds.iter().map(|feed| FeedView::new(&feed.value, now)).collect(),
        formats: FORMATS,
        typed,
        wrong,
    };
    Ok(Html(page.render()?))
}

/// Adds or changes a source.
pub(crate) async fn store(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Form(typed): Form<FeedForm>,
) -> Result<Response, Problem> {
    let name = FeedName::new(typed.name.trim());
    let (wanted, expected, author) = (typed.wanted(), form::expected(&typed.version), visitor.author());
    let stored = match name {
        Err(reason) => Err(vec![reason]),
        Ok(name) => {
            let feeds = state.feeds().clone();
            let put = uncancelled(async move { feeds.put(author, &name, wanted, &expected).await });
            match put.await {
                Ok(_) => Ok(()),
                Err(PutError::Faults(faults)) => Err(form::lines(&faults)),
                Err(PutError::Change(ChangeError::Store(error))) => return Err(error.into()),
                Err(PutError::Change(_)) => Err(form::lines(&[form::meanwhile("feed")])),
            }
        }
    };
    match stored {
        Ok(()) => Ok(Redirect::to(LIST).into_response()),
        Err(wrong) => {
            let page = render(&state, &visitor, typed.without_secrets(), wrong).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn fetch(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(name): Path<FeedName>,
    Form(Nothing {}): Form<Nothing>,
) -> Result<Redirect, Problem> {
    let author = visitor.author();
    let begun = uncancelled(async move {
        let begun = state.feeds().fetch_now(author, &name).await;
        begun.map(|begun| begun.ok_or_else(|| unknown(&name)))
    });
    match begun.await {
        Ok(begun) => begun.map(|_| Redirect::to(LIST)),
        Err(StartError::Store(error)) => Err(error.into()),
        Err(error) => Err(Problem::new(Kind::Conflict, format!("{error}; try again in a while"))),
    }
}

pub(crate) async fn delete(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(name): Path<FeedName>,
    Form(Nothing {}): Form<Nothing>,
) -> Result<Redirect, Problem> {
    let author = visitor.author();
    let deleted = uncancelled(async move {
        let store = state.store.by(author);
        store.feeds().delete(name.as_str(), &Expected::default(), state.now()).await
    });
    match deleted.await {
        Err(ChangeError::Store(error)) => Err(error.into()),
        _ => Ok(Redirect::to(LIST)),
    }
}

fn unknown(name: &FeedName) -> Problem {
    form::gone("feed", name.as_str())
}
