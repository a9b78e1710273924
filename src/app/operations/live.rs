//! The service's current load, and its totals since it started.

use std::{sync::Arc, time::SystemTime};

use askama::Template;
use atelier_core::{
    domain::Timestamp,
    util::{calendar, histogram::Distribution},
};
use atelier_engine::inference::EngineMetrics;
use axum::{extract::State, response::Html};

use super::{
    rows::{milliseconds, most_frequent, parameters, quantiles, refused},
    spark::{Spark, sparks},
};
use crate::{
    imports::feeds::ALERT,
    outcomes::exposure::Exposure,
    people::{RequireKey, page::visitor::Analyst},
    platform::{
        http::{
            AppState, Problem,
            metrics::{RequestLabels, Usage},
        },
        page::{
            figures,
            operations::Tab,
            shell::{Page, Shell},
        },
    },
    releases::LiveRelease,
};

#[derive(Template)]
#[template(path = "app/operations.html")]
struct LivePage<'a> {
    shell: Shell,
    tab: Tab,
    /// The time of day, in UTC.
    at: String,
    live: Option<Arc<LiveRelease>>,
    /// Feeds that failed more than once in a row: the name, how often, and why.
    failing: Vec<(String, u32, String)>,
    figures: Vec<(&'static str, String)>,
    sparks: Vec<Spark>,
    metrics: &'a EngineMetrics,
    /// By route and status, with how long the answers took.
    requests: Vec<(RequestLabels, Distribution)>,
    /// The number of routes not shown.
    others: usize,
    runs: Vec<(&'static str, String)>,
}

/// A script reloads this page and replaces its live part.
pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let (requests, live) = (state.metrics.requests(), state.releases().current());
    let now = state.clock.now();
    let figures = totals(&state, &requests, live.as_deref()).await?;
    let (requests, others) = most_frequent(requests);
    let page = LivePage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Live,
        at: time_of_day(now),
        failing: failing(&state),
        figures,
        sparks: sparks(&state.metrics.moments()),
        metrics: state.releases().engine().metrics(),
        requests,
        others,
        runs: runs(&state, live.as_deref(), now.into()),
        live,
    };
    Ok(Html(page.render()?))
}

fn number(number: usize) -> String {
    figures::count(number as u64)
}

fn failing(state: &AppState) -> Vec<(String, u32, String)> {
    let feeds = state.feeds().listed();
    let states = feeds.iter().map(|feed| (feed.name.to_string(), feed.state.clone()));
    let failing = states.filter(|(_, state)| state.failures >= ALERT);
    failing.map(|(name, state)| (name, state.failures, state.failure.unwrap_or_default())).collect()
}

fn time_of_day(now: SystemTime) -> String {
    let now = calendar::rfc3339(now);
    let (_, time) = now.split_once('T').expect("a timestamp has a time of day");
    time.trim_end_matches('Z').to_owned()
}

async fn totals(
    state: &AppState,
    requests: &[(RequestLabels, Distribution)],
    live: Option<&LiveRelease>,
) -> Result<Vec<(&'static str, String)>, Problem> {
    let store = &state.store;
    let (articles, customers, outfits) = (store.articles(), store.customers(), store.outfits());
    let (articles, customers, outfits) =
        tokio::try_join!(articles.count(), customers.count(), outfits.count())?;
    let count = |wanted: fn(u16) -> bool| -> u64 {
        let wanted = requests.iter().filter(|(answered, _)| wanted(answered.status));
        wanted.map(|(_, took)| took.count()).sum()
    };
    let mut figures = vec![
        ("articles", state.notation.count(articles)),
        ("customers", state.notation.count(customers)),
        ("outfits", state.notation.count(outfits)),
        ("answers", state.notation.count(count(|_| true))),
        ("errors (5xx)", state.notation.count(count(|status| status >= 500))),
    ];
    let unknown = state.releases().follower::<Exposure>().count_unknown_articles();
    if unknown > 0 {
        figures.push(("events of unknown articles", state.notation.count(unknown)));
    }
    if let Some(live) = live {
        let coverage = live.catalogue.coverage();
        let new = ("articles new to the release", state.notation.count(coverage.only_catalogue as u64));
        let gone = ("articles only in the release", state.notation.count(coverage.only_release as u64));
        figures.splice(1..1, [new, gone]);
    }
    Ok(figures)
}

/// This process: what it runs and what it uses. Figures that the system does not report are left out.
fn runs(state: &AppState, live: Option<&LiveRelease>, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut runs = vec![
        ("Atelier", env!("CARGO_PKG_VERSION").to_owned()),
        ("Database", state.store.kind().to_owned()),
        ("ONNX Runtime", state.releases().engine().onnx_runtime().to_owned()),
    ];
    if let Some(live) = live {
        let device = live.serving.device();
        let note = live.serving.device_note();
        runs.push(("Device", note.map_or_else(|| device.to_string(), |note| format!("{device} ({note})"))));
    }
    let keys = match state.access().rule() {
        RequireKey::Always => "required",
        RequireKey::Never => "not required",
        RequireKey::Demo => "not required in the demo",
    };
    runs.push(("API keys", keys.to_owned()));
    let usage = Usage::now();
    if let Some(times) = &usage.times {
        #[expect(clippy::cast_precision_loss, reason = "a date")]
        runs.push(("Uptime", figures::duration((now.millis() as f64 / 1000.0 - times.started).max(0.0))));
    }
    if let Some(bytes) = usage.resident_bytes {
        #[expect(clippy::cast_precision_loss, reason = "megabytes")]
        runs.push(("Memory", format!("{} MB", figures::rounded(bytes as f64 / 1e6))));
    }
    if let Some(times) = usage.times {
        runs.push(("Processor time", figures::duration(times.used)));
    }
    runs
}
