//! `/evaluation/cases.csv`: all cases of a view as a table for a spreadsheet.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use tokio::task;

use super::versus::{Asked, VersusQuery, known};
use crate::{
    domain::ArticleId,
    service::evaluation::{Apart, Ranks},
    util::csv::Lines,
    web::{
        http::{AppState, Kind, Problem},
        pages::{form::PageQuery, visitor::Analyst},
    },
};

pub(super) async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<VersusQuery>,
) -> Result<Response, Problem> {
    let live = state.live_release()?;
    let ranks = live.evaluation.ranks().await;
    let ranks = ranks.map_err(|found| Problem::new(Kind::NotFound, found.to_string()))?;
    let asked = Asked::new(query, &ranks, live.serving.release().manifest().default_method)?;
    let known = known(&state.store, &ranks).await?;
    let versus = asked.versus;
    let name = format!("{}-{}-{}-cases.csv", live.name(), versus.first, versus.second);
    // At full scale it is 84,000 lines.
    let text = task::spawn_blocking(move || table(&ranks, &asked, &known));
    let text = text.await.map_err(|error| Problem::inside(Kind::Internal, error))?;
    let disposition = format!("attachment; filename=\"{}\"", name.replace(['"', '\\'], "_"));
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, text).into_response())
}

fn table(ranks: &Ranks, asked: &Asked, known: &[bool]) -> String {
    let (first, second) = (asked.versus.first, asked.versus.second);
    let of_both = |what: &str| [format!("{first}.{what}"), format!("{second}.{what}")];
    let (heads, logs) = (of_both("rank"), of_both("log_probability"));
    let mut lines = Lines::new(&[
        "outfit",
        "slot",
        "customer",
        "seen",
        "type",
        "article",
        "articles",
        &heads[0],
        &heads[1],
        &logs[0],
        &logs[1],
        "difference",
    ]);
    for Apart { row, difference } in ranks.apart(asked.versus, asked.selection(known)) {
        let case = ranks.case(row);
        let answers = ranks.answer(first, row).zip(ranks.answer(second, row));
        let ((rank, log), (other_rank, other_log)) = answers.unwrap_or_default();
        let articles: Vec<&str> = case.articles().map(ArticleId::as_str).collect();
        lines.push(&[
            &case.outfit.to_string(),
            &case.slot.to_string(),
            case.customer.as_str(),
            &case.seen.to_string(),
            case.kind,
            case.truth().as_str(),
            &articles.join("|"),
            &rank.to_string(),
            &other_rank.to_string(),
            &log.to_string(),
            &other_log.to_string(),
            &difference.to_string(),
        ]);
    }
    lines.into_text()
}
