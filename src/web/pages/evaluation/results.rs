//! `/evaluation/results`: the project's own published results, on worlds that the release does not include.

use askama::Template;
use axum::response::Html;

use super::{
    Tab, format,
    table_one::{METRICS, TableOne},
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
    results: Vec<ResultView>,
}

struct ResultView {
    data: &'static str,
    outfits: String,
    slots: String,
    /// The number of slots that the oracle answered.
    bounded: Option<String>,
    table: TableOne,
}

pub(super) async fn page(Analyst(visitor): Analyst) -> Result<Html<String>, Problem> {
    let results = Published::all().iter().map(|published| ResultView {
        data: &published.data,
        outfits: format::count(published.outfits),
        slots: format::count(published.slots),
        bounded: published.bounds.map(|bounds| format::count(bounds.known.slots)),
        table: TableOne::from_published(published),
    });
    let page =
        ResultsPage { shell: visitor.shell(Page::Evaluation), tab: Tab::Results, results: results.collect() };
    Ok(Html(page.render()?))
}
