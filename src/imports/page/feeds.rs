//! `/operations/feeds`: the stored sources of feeds.

use askama::Template;
use atelier_core::{
    domain::{FeedName, Timestamp},
    util::zone::Zone,
};
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    imports::{
        feeds::{ALERT, FeedSource, FeedStatus, FetchOptions, Schedule},
        jobs::StartError,
        sql::feeds::Feed,
    },
    people::page::visitor::{Admin, Analyst, Visitor},
    platform::{
        http::{AppState, Kind, Problem, extract::Path, uncancelled::uncancelled},
        page::{
            figures,
            form::{self, Form},
            operations::Tab,
            shell::{Page, Shell},
        },
    },
    steering::{
        api::documents::ApiDocument,
        page::{
            documents::{self, Edit, by_name},
            fields::{Fields, Kind as FieldKind, Wrong, field},
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
    edit: Edit,
    has_credentials: bool,
}

struct FeedView {
    name: String,
    url: String,
    schedule: String,
    status: FeedStatus,
}

impl FeedView {
    fn new(feed: Feed, now: Timestamp) -> Self {
        Self {
            name: feed.name.to_string(),
            schedule: in_words(feed.source.schedule.as_ref()),
            url: feed.source.clone().without_secrets().url,
            status: FeedStatus::new(feed, now),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
fn moment(at: &Timestamp) -> String {
    figures::moment(*at)
}

fn in_words(schedule: Option<&Schedule>) -> String {
    let Schedule { every, at } = schedule.cloned().unwrap_or_default();
    every.unwrap_or_else(|| at.join(", "))
}

/// The form's fields that are those of the source. Its `schedule` is an interval or times of day.
const FIELDS: [(&str, FieldKind); 10] = [
    ("url", FieldKind::Text),
    ("authorization", FieldKind::Text),
    ("options.table", FieldKind::Text),
    ("options.mode", FieldKind::Text),
    ("options.format", FieldKind::Text),
    ("options.delimiter", FieldKind::Text),
    ("options.encoding", FieldKind::Text),
    ("options.map", FieldKind::Lines),
    ("options.skip_bad", FieldKind::Flag),
    ("options.mirror_limit", FieldKind::Whole),
];

fn write(source: FeedSource, zone: Zone) -> Fields {
    let source = source.without_secrets();
    let mut form = Fields::fill(&json!(source), &FIELDS.map(field), zone);
    form.set("schedule", &in_words(source.schedule.as_ref()));
    form
}

fn read(form: &Fields, zone: Zone) -> Result<FeedSource, Wrong> {
    let source: FeedSource = form.read(&FIELDS.map(field), zone)?;
    let schedule = match form.get("schedule") {
        "" => None,
        times if times.contains(':') => {
            let at = times.split([',', ' ', '|']).filter(|time| !time.is_empty());
            Some(Schedule { every: None, at: at.map(str::to_owned).collect() })
        }
        every => Some(Schedule { every: Some(every.to_owned()), at: Vec::new() }),
    };
    Ok(FeedSource { schedule, has_credentials: Some(!form.has("no_credentials", "true")), ..source })
}

pub(crate) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    render(&state, &visitor, Edit::default()).await
}

/// The same page, with a form that has the source.
pub(crate) async fn edit(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(name): Path<FeedName>,
) -> Result<Html<String>, Problem> {
    let (source, version) = documents::find(&state, &name).await?;
    let edit = Edit::new(name.to_string(), version.to_string(), write(source, state.zone));
    render(&state, &visitor, edit).await
}

async fn render(state: &AppState, visitor: &Visitor, edit: Edit) -> Result<Html<String>, Problem> {
    let (feeds, now) = (state.store.feeds().list().await?, state.now());
    let edited = feeds.iter().find(|feed| !edit.version.is_empty() && feed.name.as_str() == edit.name);
    let page = FeedsPage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Feeds,
        has_credentials: edited.is_some_and(|feed| feed.source.has_authorization()),
        feeds: feeds.into_iter().map(|feed| FeedView::new(feed, now)).collect(),
        formats: FORMATS,
        edit,
    };
    Ok(Html(page.render()?))
}

pub(crate) async fn store(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Form(form): Form<Fields>,
) -> Result<Response, Problem> {
    let mut edit = Edit::sent(form);
    let read = read(&edit.form, state.zone).map(|source| source.received(&state));
    if edit.store((&state, &visitor), read, by_name).await?.is_some() {
        return Ok(Redirect::to(LIST).into_response());
    }
    edit.form.take("authorization");
    // An address with a user or a query may be secret.
    let url = edit.form.take("url");
    if !url.contains(['@', '?']) || url.contains('…') {
        edit.form.set("url", &url);
    }
    let page = render(&state, &visitor, edit).await?;
    Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
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
        let begun = state.feeds().fetch_now(author, &name, FetchOptions::default()).await;
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
