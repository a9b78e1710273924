//! `/evaluation/cases.csv`: all cases of a view as a table for a spreadsheet.

use std::fmt::Write;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use tokio::task;

use super::versus::{Asked, VersusQuery, known};
use crate::{
    domain::ArticleId,
    evaluation::{Apart, Ranks},
    web::{
        AppState, Kind, Problem,
        dashboard::{form::PageQuery, visitor::Analyst},
    },
};

pub(super) async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<VersusQuery>,
) -> Result<Response, Problem> {
    let offer = state.offer()?;
    let ranks = offer.evaluation.ranks().await;
    let ranks = ranks.map_err(|found| Problem::new(Kind::NotFound, found.to_string()))?;
    let asked = Asked::new(query, &ranks, offer.serving.release().manifest().default_method)?;
    let known = known(&state.store, &ranks).await?;
    let versus = asked.versus;
    let name = format!("{}-{}-{}-cases.csv", offer.name(), versus.first, versus.second);
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
    let mut text = format!(
        "outfit,slot,customer,seen,type,article,articles,{first}.rank,{second}.rank,{first}.log_probability,\
         {second}.log_probability,difference\r\n"
    );
    for Apart { row, difference } in ranks.apart(asked.versus, asked.selection(known)) {
        let case = ranks.case(row);
        let answers = ranks.answer(first, row).zip(ranks.answer(second, row));
        let ((rank, log), (other_rank, other_log)) = answers.unwrap_or_default();
        let articles: Vec<&str> = case.articles().map(ArticleId::as_str).collect();
        let written = writeln!(
            text,
            "{},{},{},{},{},{},{},{rank},{other_rank},{log},{other_log},{difference}\r",
            case.outfit,
            case.slot,
            cell(case.customer.as_str()),
            case.seen,
            cell(case.kind),
            cell(case.truth().as_str()),
            cell(&articles.join("|")),
        );
        written.expect("writing to a String never fails; this is a bug");
    }
    text
}

/// A text as a cell (RFC 4180). Spreadsheets take what begins like a formula for one, so it begins with an
/// apostrophe instead.
fn cell(text: &str) -> String {
    let guarded =
        if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if guarded.contains(['"', ',', '\r', '\n']) {
        return format!("\"{}\"", guarded.replace('"', "\"\""));
    }
    guarded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_cell_and_no_formula() {
        assert_eq!(cell("a-00017"), "a-00017");
        assert_eq!(cell("a,b \"c\""), "\"a,b \"\"c\"\"\"");
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("-2,5"), "\"'-2,5\"");
        assert_eq!(cell("two\nlines"), "\"two\nlines\"");
        assert_eq!(cell("@sum(a1)"), "'@sum(a1)");
    }
}
