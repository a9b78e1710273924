//! `/evaluation/cases` and `/evaluation/cases.csv`: the slots on which two methods differ most.

use askama::Template;
use atelier_core::{
    domain::{ArticleId, Method},
    util::{csv::Lines, notation::Notation},
};
use atelier_engine::evaluation::{By, Case, CaseDifference, Lead, Ranks, Versus};
use axum::{
    extract::State,
    response::{Html, Response},
};
use tokio::task;

use super::{
    Tab,
    case_query::{CaseParameters, CaseQuery, CaseView},
};
use crate::{
    catalogue::page::article_view::ArticleView,
    completion::Filters,
    customers::page::{CustomerView, CustomerViews},
    people::page::visitor::Analyst,
    platform::{
        http::{AppState, Kind, Problem},
        page::{Page, PageQuery, Pager, Shell, address::Address, figures, format},
    },
    studio::side_by_side,
};

/// Cases per page.
const SIZE: usize = 12;

#[derive(Template)]
#[template(path = "analysis/evaluation/cases.html")]
struct CasesPage {
    shell: Shell,
    query: CaseQuery,
    pager: Pager,
    cases: Vec<ShownCase>,
    /// The address of the same cases as a file.
    csv: String,
}

struct ShownCase {
    customer: CustomerView,
    seen: bool,
    slots: Vec<Option<ArticleView>>,
    truth: ArticleView,
    /// The methods' difference in words.
    apart: String,
    answers: Vec<AnswerView>,
    /// Its address in Side by side, if the customer is in the database.
    side_by_side: Option<String>,
}

struct AnswerView {
    method: Method,
    rank: String,
    probability: String,
    better: bool,
}

pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(parameters): PageQuery<CaseParameters>,
) -> Result<Html<String>, Problem> {
    let shell = visitor.shell(Page::Evaluation);
    let view = match CaseView::read(&state, parameters).await? {
        Ok(view) => view,
        Err(lack) => return lack.page(shell, Tab::Cases),
    };
    let found = find(&view.ranks, &view.query, &view.known);
    let query = &view.query;
    let pager = Pager::new(query.page(), found.len(), SIZE, false, &state.notation, |page| {
        query.link(Tab::Cases.path(), page)
    });
    let on_page = pager.part_of(&found);
    let customers = on_page.iter().map(|found| view.ranks.case(found.row).customer);
    let customers = CustomerViews::read(&state, customers, view.live.serving.release().schema()).await?;
    let cases = on_page.iter().map(|case| ShownCase::new(*case, &view, &customers, &state.notation));
    let page = CasesPage {
        shell,
        cases: cases.collect(),
        pager,
        csv: query.link("/evaluation/cases.csv", 1),
        query: view.query,
    };
    Ok(Html(page.render()?))
}

/// The cases in the query's order.
fn find(ranks: &Ranks, query: &CaseQuery, known: &[bool]) -> Vec<CaseDifference> {
    let selection = query.selection(known);
    if query.versus.lead == Lead::Apart {
        ranks.cases_by_distance(&query.shown, query.versus.by, selection)
    } else {
        ranks.cases_by_difference(query.versus, selection)
    }
}

impl ShownCase {
    fn new(
        CaseDifference { row, difference }: CaseDifference,
        CaseView { live, ranks, query, known }: &CaseView,
        customers: &CustomerViews,
        notation: &Notation,
    ) -> Self {
        let case = ranks.case(row);
        let view = |id: &ArticleId| ArticleView::from_live_release(live, id);
        let slots = case.articles().enumerate().map(|(slot, id)| (slot != case.slot).then(|| view(id)));
        let mut answers: Vec<(Method, f32, f32)> = query
            .shown
            .iter()
            .filter_map(|&method| {
                ranks.answer(method, row).map(|(rank, log_probability)| (method, rank, log_probability))
            })
            .collect();
        let worth = |&(_, rank, log_probability): &(Method, f32, f32)| match query.versus.by {
            By::LogProbability => log_probability,
            By::Rank => -rank,
        };
        let best = answers.iter().map(worth).fold(f32::NEG_INFINITY, f32::max);
        let all_alike = answers.iter().all(|answer| worth(answer) >= best);
        let views = answers.iter().map(|answer| AnswerView {
            method: answer.0,
            rank: answer.1.to_string(),
            probability: notation.percent(f64::from(answer.2).exp()),
            better: !all_alike && worth(answer) >= best,
        });
        let views: Vec<AnswerView> = views.collect();
        answers.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
        let versus = match (query.versus.lead, answers.first(), answers.last()) {
            (Lead::Apart, Some(best), Some(worst)) => {
                Versus { first: best.0, second: worst.0, ..query.versus }
            }
            _ => query.versus,
        };
        Self {
            customer: customers.view(case.customer),
            seen: case.seen,
            slots: slots.collect(),
            truth: view(case.truth()),
            apart: difference_in_words(versus, difference.into()),
            answers: views,
            side_by_side: known[ranks.customer_place(row)].then(|| side_by_side(&case, &query.shown)),
        }
    }
}

/// The case in Side by side, where the whole catalogue counts: the evaluation's articles, and new ones.
fn side_by_side(case: &Case<'_>, shown: &[Method]) -> String {
    let slots = case.articles().enumerate();
    let view = side_by_side::View {
        customers: vec![case.customer.clone()],
        slots: slots.map(|(slot, id)| (slot != case.slot).then(|| id.clone())).collect(),
        truth: Some(case.truth().clone()),
        methods: shown.iter().rev().copied().collect(),
        filter: Filters::everything(),
        ..side_by_side::View::default()
    };
    view.href()
}

/// The difference between two methods, without logarithms.
pub(super) fn difference_in_words(versus: Versus, difference: f64) -> String {
    let ahead = if difference < 0.0 { versus.second } else { versus.first };
    match versus.by {
        By::LogProbability => {
            let times = difference.abs().exp();
            let times = match () {
                () if times < 9.95 => format!("{times:.1}"),
                () if times < 1_000.0 => format!("{times:.0}"),
                () if times < 10_000.0 => format::count(rounded(times)),
                () => "over 10,000".to_owned(),
            };
            format!("{times} times as likely with {ahead}")
        }
        By::Rank => format!("{} ranks higher with {ahead}", format::plain(difference.abs())),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

pub(super) async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    PageQuery(parameters): PageQuery<CaseParameters>,
) -> Result<Response, Problem> {
    let CaseView { live, ranks, query, known } = CaseView::for_file(&state, parameters).await?;
    let versus = query.versus;
    let name = format!("{}-{}-{}-cases.csv", live.name(), versus.first, versus.second);
    // At full scale the file has 84,000 lines.
    let text = task::spawn_blocking(move || table(&ranks, &query, &known));
    let text = text.await.map_err(|error| Problem::inside(Kind::Internal, error))?;
    Ok(figures::csv_file(&name, text))
}

fn table(ranks: &Ranks, query: &CaseQuery, known: &[bool]) -> String {
    let heads = ["outfit", "slot", "customer", "seen", "type", "article", "articles"].map(str::to_owned);
    let of_method = |what: &'static str| query.shown.iter().map(move |method| format!("{method}.{what}"));
    let heads = heads.into_iter().chain(of_method("rank")).chain(of_method("log_probability"));
    let heads: Vec<String> = heads.chain(["difference".to_owned()]).collect();
    let mut lines = Lines::new(&heads);
    for CaseDifference { row, difference } in find(ranks, query, known) {
        let case = ranks.case(row);
        let answers: Vec<(f32, f32)> =
            query.shown.iter().map(|method| ranks.answer(*method, row).unwrap_or_default()).collect();
        let articles: Vec<&str> = case.articles().map(ArticleId::as_str).collect();
        let mut cells = vec![
            case.outfit.to_string(),
            case.slot.to_string(),
            case.customer.to_string(),
            case.seen.to_string(),
            case.kind.to_owned(),
            case.truth().to_string(),
            articles.join("|"),
        ];
        cells.extend(answers.iter().map(|(rank, _)| figures::number((*rank).into())));
        cells.extend(answers.iter().map(|(_, log)| figures::number((*log).into())));
        cells.push(figures::number(difference.into()));
        lines.push(&cells);
    }
    lines.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_factors_are_easy_to_read() {
        let versus =
            Versus { first: Method::Gsu, second: Method::None, by: By::LogProbability, lead: Lead::First };
        let words = |factor: f64| difference_in_words(versus, factor.ln());
        assert_eq!(words(7733.0), "7,733 times as likely with gsu");
        assert_eq!(words(1.0 / 12.0), "12 times as likely with none");
    }
}
