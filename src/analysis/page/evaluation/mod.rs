//! `/evaluation`: how good the release's methods are, where they differ, and how significant the differences are.
//!
//! The figures come from the release or, under Results, from the project's published tables; nothing is measured
//! here. Each view is a file with its template.

mod case_query;
mod cases;
mod customers;
mod known_type;
mod new_articles;
mod overview;
mod results;
mod segments;
mod summary;
mod table_one;
mod tables;

use std::sync::Arc;

use askama::Template;
use atelier_core::{
    domain::{Method, list_methods},
    drawing::chart,
};
use atelier_engine::evaluation::{EvaluationError, Figures, Metric, PAPER, RANKS};
use axum::{Router, response::Html, routing::get};
use serde::{Deserialize, Serialize};

use crate::{
    platform::{
        http::{AppState, Finding, Problem},
        page::{Shell, form, format},
    },
    releases::LiveRelease,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/evaluation", get(overview::page))
        .route("/evaluation/table.csv", get(tables::download))
        .route("/evaluation/segments", get(segments::page))
        .route("/evaluation/cases", get(cases::page))
        .route("/evaluation/cases.csv", get(cases::download))
        .route("/evaluation/customers", get(customers::page))
        .route("/evaluation/customers.csv", get(customers::download))
        .route("/evaluation/results", get(results::page))
        .route("/evaluation/results.csv", get(results::download))
}

/// The views, as the tabs above each of them.
#[derive(Debug, Clone, Copy)]
enum Tab {
    Overview,
    Segments,
    Cases,
    Customers,
    Results,
}

impl Tab {
    const ALL: [Tab; 5] = [Tab::Overview, Tab::Segments, Tab::Cases, Tab::Customers, Tab::Results];

    /// Its path and its title.
    fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Overview => ("/evaluation", "Methods"),
            Self::Segments => ("/evaluation/segments", "Segments"),
            Self::Cases => ("/evaluation/cases", "Cases"),
            Self::Customers => ("/evaluation/customers", "Customers"),
            Self::Results => ("/evaluation/results", "Results"),
        }
    }

    fn path(self) -> &'static str {
        self.about().0
    }
}

struct Shortfall {
    title: &'static str,
    detail: String,
    /// Whether the release lacks the file, so that training could add it.
    missing: bool,
}

#[derive(Template)]
#[template(path = "analysis/evaluation/lack.html")]
struct LackPage {
    shell: Shell,
    tab: Tab,
    lack: Shortfall,
}

impl Shortfall {
    fn of_release() -> Self {
        let detail =
            "An admin can activate one under Operations; its evaluation then appears here".to_owned();
        Self { title: "No release is live", detail, missing: false }
    }

    fn page(self, shell: Shell, tab: Tab) -> Result<Html<String>, Problem> {
        Ok(Html(LackPage { shell, tab, lack: self }.render()?))
    }
}

impl From<EvaluationError> for Shortfall {
    fn from(error: EvaluationError) -> Self {
        let (title, missing) = match &error {
            EvaluationError::Missing { file, .. } if *file == RANKS => {
                ("This release has no single cases", true)
            }
            EvaluationError::Missing { .. } => ("This release has no evaluation", true),
            EvaluationError::Changed(_) | EvaluationError::Damaged { .. } => {
                ("The release's evaluation cannot be read", false)
            }
        };
        if !missing {
            tracing::warn!(%error, "cannot read the release's evaluation");
        }
        Self { title, detail: error.to_string(), missing }
    }
}

async fn read_figures(state: &AppState) -> Result<(Arc<LiveRelease>, Arc<Figures>), Shortfall> {
    let live = state.releases().current().ok_or_else(Shortfall::of_release)?;
    let figures = live.evaluation.figures().await?;
    Ok((live, figures))
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct ChoiceQuery {
    /// Defaults to the paper's five.
    #[serde(default)]
    method: Vec<Method>,
    metric: Option<Metric>,
    /// The feature that splits outfits into segments; only for Segments.
    by: Option<String>,
}

/// The methods and the metric to show, with the methods to choose from.
#[derive(Debug)]
struct Choice {
    /// In the methods' own order.
    chosen: Vec<Method>,
    metric: Metric,
    methods: Vec<Method>,
}

impl Choice {
    fn new(query: &ChoiceQuery, figures: &Figures) -> Result<Self, Problem> {
        let evaluated: Vec<Method> = figures.methods().collect();
        if let Some(missing) = query.method.iter().find(|method| !evaluated.contains(method)) {
            return Err(Problem::invalid(vec![not_evaluated("method", *missing, &evaluated)]));
        }
        let select =
            |wanted: &[Method]| evaluated.iter().copied().filter(|method| wanted.contains(method)).collect();
        let mut chosen: Vec<Method> = select(&query.method);
        if chosen.is_empty() {
            chosen = select(&PAPER.map(|row| row.method));
        }
        if chosen.is_empty() {
            chosen.clone_from(&evaluated);
        }
        Ok(Self { chosen, metric: query.metric.unwrap_or(Metric::CrossEntropy), methods: evaluated })
    }

    fn query(&self) -> String {
        form::query(&ChoiceQuery { method: self.chosen.clone(), metric: Some(self.metric), by: None })
    }
}

/// A method's colour and mark: the same in every chart and for every release.
fn series_kind(method: Method) -> usize {
    let of_name = || method.as_str().bytes().map(usize::from).sum();
    Method::ALL.iter().position(|other| *other == method).unwrap_or_else(of_name)
}

fn mark(method: Method) -> String {
    chart::mark(series_kind(method))
}

fn not_evaluated(parameter: &str, method: Method, evaluated: &[Method]) -> Finding {
    let names = list_methods(evaluated);
    let detail = format!("the release's evaluation has no method {method}; it has {names}");
    Finding::parameter(parameter, detail)
}

/// The numbers of a chart as a table, for readers who cannot see the chart and for copying.
#[derive(Debug)]
struct Numbers {
    caption: String,
    /// The first one heads the rows' names.
    columns: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

/// A chart with its numbers.
#[derive(Debug)]
struct Drawn {
    /// An SVG that is safe to insert into a page.
    svg: String,
    numbers: Numbers,
}

/// A difference between two figures, as a cell of a table.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) words: &'static str,
    pub(crate) written: String,
    pub(crate) interval: String,
}

impl Difference {
    /// `ends` are the difference and its interval.
    pub(crate) fn new(metric: Metric, is_significant: bool, ends: [f64; 3]) -> Self {
        let [difference, low, high] = ends;
        let (class, sign, words) = match () {
            () if !is_significant => ("quiet", "≈", "no significant difference"),
            () if metric.better(difference, 0.0) => ("good", "▲", "better"),
            () => ("bad", "▼", "worse"),
        };
        let interval = format::interval(metric, low, high);
        Self { class, sign, words, written: format::signed(metric, difference), interval }
    }
}
