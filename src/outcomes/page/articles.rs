//! Articles that are new to the live release: how many, what it does not know of them, and how they fare.

use askama::Template;
use atelier_core::{domain::list_methods, util::notation::Notation};
use axum::{extract::State, response::Html};

use super::row::OutcomesRow;
use crate::{
    outcomes::{Outcomes, acceptance},
    people::page::visitor::Analyst,
    platform::{
        http::{AppState, Problem},
        page::{
            operations::Tab,
            shell::{Page, Shell},
        },
    },
    releases::coverage::{self, Report},
};

#[derive(Template)]
#[template(path = "outcomes/articles.html")]
struct ArticlesPage {
    shell: Shell,
    tab: Tab,
    coverage: Option<CoverageView>,
}

struct CoverageView {
    release: String,
    figures: Vec<(&'static str, String)>,
    /// The methods that suggest new articles.
    open: String,
    /// Attribute, value and number of new articles.
    unknown: Vec<(String, String, String)>,
    /// The number of values not shown.
    others: usize,
    /// Known articles, then new ones.
    feedback: Vec<OutcomesRow>,
}

/// The most unknown values on the page.
const MOST_VALUES: usize = 40;

pub(crate) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let coverage = match state.releases().current() {
        Some(live) => {
            let outcomes = acceptance::of_known_and_new(&state.store, live.name()).await?;
            Some(CoverageView::new(live.name(), coverage::report(&live).await, outcomes, &state.notation))
        }
        None => None,
    };
    let page = ArticlesPage { shell: visitor.shell(Page::Operations), tab: Tab::Articles, coverage };
    Ok(Html(page.render()?))
}

impl CoverageView {
    fn new(
        release: &str,
        report: Report,
        (on_known, on_new): (Outcomes, Outcomes),
        notation: &Notation,
    ) -> Self {
        let Report { known, new, retired, open, unknown } = report;
        let figures = [("known", known), ("new", new), ("retired", retired)];
        Self {
            release: release.to_owned(),
            figures: figures.map(|(name, number)| (name, notation.count(number as u64))).to_vec(),
            open: list_methods(open),
            others: unknown.len().saturating_sub(MOST_VALUES),
            unknown: unknown
                .into_iter()
                .take(MOST_VALUES)
                .map(|(value, articles)| (value.attribute, value.word, notation.count(articles)))
                .collect(),
            feedback: vec![
                OutcomesRow::new("known", on_known, notation),
                OutcomesRow::new("new", on_new, notation),
            ],
        }
    }
}
