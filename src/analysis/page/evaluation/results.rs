//! `/evaluation/results`: the project's own published results, on worlds that the release does not include.

use askama::Template;
use atelier_engine::evaluation::Published;
use axum::{
    extract::State,
    response::{Html, Response},
};
use serde::Deserialize;

use super::{
    Tab, read_figures,
    table_one::{METRICS, TableOne},
    tables,
};
use crate::{
    people::page::visitor::Analyst,
    platform::{
        http::{AppState, Finding, Problem},
        page::{Page, PageQuery, Shell, figures::csv_file, format},
    },
};

#[derive(Template)]
#[template(path = "analysis/evaluation/results.html")]
struct ResultsPage {
    shell: Shell,
    /// Each with its table, and whether the live release was evaluated on another data set of this name.
    results: Vec<(&'static Published, TableOne, bool)>,
}

pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let live = read_figures(&state).await.ok();
    let is_other = |published: &Published| {
        live.as_ref().is_some_and(|(_, figures)| {
            let own = &figures.comparison;
            own.data == published.data && (own.outfits, own.slots) != (published.outfits, published.slots)
        })
    };
    let results = Published::all()
        .iter()
        .map(|published| (published, TableOne::from_published(published), is_other(published)));
    let page = ResultsPage { shell: visitor.shell(Page::Evaluation), results: results.collect() };
    Ok(Html(page.render()?))
}

#[derive(Debug, Deserialize)]
pub(super) struct WorldQuery {
    data: String,
}

pub(super) async fn download(
    Analyst(_): Analyst,
    PageQuery(WorldQuery { data }): PageQuery<WorldQuery>,
) -> Result<Response, Problem> {
    let Some(world) = Published::all().iter().find(|world| world.data == data) else {
        let worlds: Vec<&str> = Published::all().iter().map(|world| world.data.as_str()).collect();
        let detail = format!("there is no world {data:?}; choose one of {}", worlds.join(", "));
        return Err(Problem::invalid(vec![Finding::parameter("data", detail)]));
    };
    let lines = tables::methods(&world.methods, &world.baselines, None);
    Ok(csv_file(&format!("results-{data}.csv"), lines.into_text()))
}
