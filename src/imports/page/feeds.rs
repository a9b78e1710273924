//! `/operations/feeds`: the stored sources of feeds.

use askama::Template;
use atelier_core::domain::{FeedName, Timestamp};
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use crate::{
    imports::{
        feeds::{ALERT, FeedSource, Schedule},
        jobs::{FeedOptions, FeedTable, Mode, StartError},
        sql::feeds::Feed,
    },
    people::page::visitor::{Admin, Analyst, Visitor},
    platform::{
        db::Version,
        http::{AppState, Kind, Problem, extract::Path, uncancelled::uncancelled},
        page::{
            figures,
            form::{self, Form},
            operations::Tab,
            shell::{Page, Shell},
        },
    },
    steering::{api::documents::ApiDocument, page::documents},
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
    fn new(feed: Feed, now: Timestamp) -> Self {
        let moment = |at: Option<i64>| at.map(|at| figures::moment(Timestamp::from_millis(at)));
        Self {
            name: feed.name.to_string(),
            schedule: in_words(feed.source.schedule.as_ref()),
            is_fetching: feed.is_leased(now),
            due: feed.due_at().map(figures::moment),
            tried: moment(feed.state.tried_at),
            succeeded: moment(feed.state.succeeded_at),
            alert: Some(feed.state.failures).filter(|failures| *failures >= ALERT),
            failure: feed.state.failure,
            url: feed.source.without_secrets().url,
        }
    }
}

fn in_words(schedule: Option<&Schedule>) -> String {
    let Schedule { every, at } = schedule.cloned().unwrap_or_default();
    every.unwrap_or_else(|| at.join(", "))
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
    fn new(name: &FeedName, source: FeedSource, version: &Version) -> Self {
        let FeedSource { url, schedule, options, .. } = source.without_secrets();
        Self {
            name: name.to_string(),
            version: version.to_string(),
            url,
            schedule: in_words(schedule.as_ref()),
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

    fn source(&self) -> FeedSource {
        let filled = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        let words = |text: &str| text.split([',', ' ']).filter_map(filled).collect();
        let schedule = filled(&self.schedule).map(|text| {
            if text.contains(':') {
                Schedule { every: None, at: words(&text) }
            } else {
                Schedule { every: Some(text), at: Vec::new() }
            }
        });
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
        FeedSource {
            url: self.url.trim().to_owned(),
            authorization: filled(&self.authorization),
            has_credentials: Some(!self.no_credentials),
            schedule,
            options,
            ..FeedSource::default()
        }
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
    let (source, version) = documents::find(&state, &name).await?;
    render(&state, &visitor, FeedForm::new(&name, source, &version), Vec::new()).await
}

async fn render(
    state: &AppState,
    visitor: &Visitor,
    typed: FeedForm,
    wrong: Vec<String>,
) -> Result<Html<String>, Problem> {
    let (feeds, now) = (state.store.feeds().list().await?, state.now());
    let edited = feeds.iter().find(|feed| !typed.version.is_empty() && feed.name.as_str() == typed.name);
    let page = FeedsPage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Feeds,
        has_credentials: edited.is_some_and(|feed| feed.source.has_authorization()),
        feeds: feeds.into_iter().map(|feed| FeedView::new(feed, now)).collect(),
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
    let stored = match typed.name.parse::<FeedName>() {
        Err(error) => Err(vec![form::line("name", &error.to_string())]),
        Ok(name) => {
            let source = typed.source().received(&state);
            let (expected, make) = (form::expected(&typed.version), move |_| Ok(source.clone()));
            let saved = documents::save((&state, &visitor), &name, &expected, false, make).await?;
            saved.map_err(|faults| form::lines(&faults))
        }
    };
    match stored {
        Ok(_) => Ok(Redirect::to(LIST).into_response()),
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
        begun.map(|begun| begun.ok_or_else(|| form::gone("feed", name.as_str())))
    });
    match begun.await {
        Ok(begun) => begun.map(|_| Redirect::to(LIST)),
        Err(StartError::Store(error)) => Err(error.into()),
        Err(error) => Err(Problem::new(Kind::Conflict, format!("{error}; try again in a while"))),
    }
}

#[derive(Deserialize)]
pub(crate) struct Deleted {
    version: String,
}

pub(crate) async fn delete(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(name): Path<FeedName>,
    Form(Deleted { version }): Form<Deleted>,
) -> Result<Redirect, Problem> {
    documents::delete::<FeedSource>((&state, &visitor), &name, &version).await?;
    Ok(Redirect::to(LIST))
}
