//! `/evaluation/cases` and `/evaluation/cases.csv`: the slots on which two methods differ most.

use askama::Template;
use axum::{
    extract::State,
    http::header,
    response::{Html, IntoResponse, Response},
};
use tokio::task;

use super::{
    Tab,
    case_query::{CaseParameters, CaseQuery, Pager, known_customers, page_of},
    error_page, format, no_release_page,
};
use crate::{
    domain::{ArticleId, Method},
    service::{
        evaluation::{By, CaseDifference, Lead, Ranks, Versus},
        live_release::LiveRelease,
    },
    util::csv::Lines,
    web::{
        http::{AppState, Kind, Problem},
        pages::{
            article_view::ArticleView,
            figures,
            form::PageQuery,
            shell::{Page, Shell},
            visitor::Analyst,
        },
    },
};

/// Cases per page.
const SIZE: usize = 12;

#[derive(Template)]
#[template(path = "evaluation/cases.html")]
struct CasesPage {
    shell: Shell,
    tab: Tab,
    query: CaseQuery,
    pager: Pager,
    cases: Vec<CaseView>,
    /// The address of the same cases as a file.
    csv: String,
    bys: [By; 2],
    leads: [Lead; 2],
}

/// A case as the page shows it.
struct CaseView {
    customer: String,
    seen: bool,
    slots: Vec<Option<ArticleView>>,
    truth: ArticleView,
    /// The methods' difference in words.
    apart: String,
    answers: [AnswerView; 2],
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
    let (shell, tab) = (visitor.shell(Page::Evaluation), Tab::Cases);
    let Some(live) = state.releases.current() else { return no_release_page(shell, tab) };
    let ranks = match live.evaluation.ranks().await {
        Ok(ranks) => ranks,
        Err(error) => return error_page(shell, tab, &error),
    };
    let query = CaseQuery::new(parameters, &ranks, live.serving.release().manifest().default_method)?;
    let known = known_customers(&state.store, &ranks).await?;
    let found = ranks.cases_by_difference(query.versus, query.selection(&known));
    let view = |case: &CaseDifference| CaseView::new(*case, query.versus, &ranks, &known, &live);
    let page = CasesPage {
        tab,
        pager: Pager::new(&query, tab.path(), found.len(), SIZE),
        cases: page_of(&found, query.page, SIZE).map(view).collect(),
        csv: query.link("/evaluation/cases.csv", 1),
        query,
        bys: By::ALL,
        leads: Lead::ALL,
        shell,
    };
    Ok(Html(page.render()?))
}

impl CaseView {
    fn new(
        CaseDifference { row, difference }: CaseDifference,
        versus: Versus,
        ranks: &Ranks,
        known: &[bool],
        live: &LiveRelease,
    ) -> Self {
        let case = ranks.case(row);
        let view = |id: &ArticleId| ArticleView::from_live_release(live, id);
        let slots = case.articles().enumerate().map(|(slot, id)| (slot != case.slot).then(|| view(id)));
        let answer = |method, better| {
            let (rank, log_probability) = ranks.answer(method, row).unwrap_or_default();
            AnswerView {
                method,
                rank: rank.to_string(),
                probability: figures::percent(f64::from(log_probability).exp()),
                better,
            }
        };
        let known = known[ranks.customer_place(row)];
        Self {
            customer: case.customer.to_string(),
            seen: case.seen,
            slots: slots.collect(),
            truth: view(case.truth()),
            apart: difference_in_words(versus, difference.into()),
            answers: [answer(versus.first, difference > 0.0), answer(versus.second, difference < 0.0)],
            side_by_side: known.then(|| {
                let mut query = form_urlencoded::Serializer::new(String::new());
                query.append_pair("customer", case.customer.as_str());
                for (slot, id) in case.articles().enumerate() {
                    query.append_pair("slot", if slot == case.slot { "" } else { id.as_str() });
                }
                query.append_pair("truth", case.truth().as_str());
                query
                    .append_pair("method", versus.second.as_str())
                    .append_pair("method", versus.first.as_str())
                    // The evaluation ranks the whole catalogue.
                    .append_pair("unfit", "on")
                    .append_pair("sold_out", "on");
                format!("/side-by-side?{}", query.finish())
            }),
        }
    }
}

/// The difference between two methods, without logarithms.
pub(super) fn difference_in_words(versus: Versus, difference: f64) -> String {
    let ahead = if difference < 0.0 { versus.second } else { versus.first };
    match versus.by {
        By::LogProbability => {
            let times = difference.abs().exp();
            let times = match () {
                () if times < 9.95 => format!("{times:.1}"),
                () if times < 10_000.0 => format!("{times:.0}"),
                () => "over 10,000".to_owned(),
            };
            format!("{times} times as likely with {ahead}")
        }
        By::Rank => format!("{} ranks higher with {ahead}", format::plain(difference.abs())),
    }
}

/// All cases of the view as a CSV file.
pub(super) async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    PageQuery(parameters): PageQuery<CaseParameters>,
) -> Result<Response, Problem> {
    let live = state.live_release()?;
    let ranks = live.evaluation.ranks().await;
    let ranks = ranks.map_err(|error| Problem::new(Kind::NotFound, error.to_string()))?;
    let query = CaseQuery::new(parameters, &ranks, live.serving.release().manifest().default_method)?;
    let known = known_customers(&state.store, &ranks).await?;
    let versus = query.versus;
    let name = format!("{}-{}-{}-cases.csv", live.name(), versus.first, versus.second);
    // At full scale the file has 84,000 lines.
    let text = task::spawn_blocking(move || table(&ranks, &query, &known));
    let text = text.await.map_err(|error| Problem::inside(Kind::Internal, error))?;
    let disposition = format!("attachment; filename=\"{}\"", name.replace(['"', '\\'], "_"));
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, text).into_response())
}

fn table(ranks: &Ranks, query: &CaseQuery, known: &[bool]) -> String {
    let (first, second) = (query.versus.first, query.versus.second);
    let headings = |what: &str| [format!("{first}.{what}"), format!("{second}.{what}")];
    let (rank_headings, log_headings) = (headings("rank"), headings("log_probability"));
    let mut lines = Lines::new(&[
        "outfit",
        "slot",
        "customer",
        "seen",
        "type",
        "article",
        "articles",
        &rank_headings[0],
        &rank_headings[1],
        &log_headings[0],
        &log_headings[1],
        "difference",
    ]);
    for CaseDifference { row, difference } in ranks.cases_by_difference(query.versus, query.selection(known))
    {
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
