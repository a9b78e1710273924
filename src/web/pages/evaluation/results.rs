//! `/evaluation/results`: what the project itself measured, on worlds that the release does not carry.

use askama::Template;
use axum::response::Html;

use super::{
    Tab,
    table_one::{METRICS, TableOne},
    written,
};
use crate::{
    service::evaluation::Published,
    web::{
        http::Problem,
        pages::{
            shell::{Page, Shell},
            visitor::Analyst,
        },
    },
};

#[derive(Template)]
#[template(path = "evaluation/results.html")]
struct ResultsPage {
    shell: Shell,
    tab: Tab,
    results: Vec<Shown>,
}

struct Shown {
    data: &'static str,
    outfits: String,
    slots: String,
    /// How many of them the oracle answered.
    bounded: Option<String>,
    table: TableOne,
}

pub(super) async fn page(Analyst(visitor): Analyst) -> Result<Html<String>, Problem> {
    let results = Published::all().iter().map(|published| Shown {
        data: &published.data,
        outfits: written::count(published.outfits),
        slots: written::count(published.slots),
        bounded: published.bounds.map(|bounds| written::count(bounds.known.slots)),
        table: TableOne::of_published(published),
    });
    let page =
        ResultsPage { shell: visitor.shell(Page::Evaluation), tab: Tab::Results, results: results.collect() };
    Ok(Html(page.render()?))
}
