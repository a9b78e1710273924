//! `/evaluation/cases`: the single slots in which two methods differ most.

use askama::Template;
use axum::{extract::State, response::Html};

use super::{
    Tab, lack,
    versus::{Asked, Pager, VersusQuery, known, page_of},
    written,
};
use crate::{
    domain::{ArticleId, Method},
    service::{
        evaluation::{Apart, By, Lead, Ranks, Versus},
        live_release::LiveRelease,
    },
    web::{
        http::{AppState, Problem},
        pages::{
            article_view::ArticleView,
            figures,
            form::PageQuery,
            shell::{Page, Shell},
            visitor::Analyst,
        },
    },
};

/// Cases of a page.
const SIZE: usize = 12;

#[derive(Template)]
#[template(path = "evaluation/cases.html")]
struct CasesPage {
    shell: Shell,
    tab: Tab,
    asked: Asked,
    pager: Pager,
    cases: Vec<CaseView>,
    /// The same cases as a file.
    csv: String,
    bys: [By; 2],
    leads: [Lead; 2],
}

/// A case as a person sees it.
struct CaseView {
    customer: String,
    seen: bool,
    slots: Vec<Option<ArticleView>>,
    truth: ArticleView,
    /// How far the methods are apart, in words.
    apart: String,
    answers: [AnswerView; 2],
    /// Where it opens in Side by side; not for customers whose profile is not known here.
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
    PageQuery(query): PageQuery<VersusQuery>,
) -> Result<Html<String>, Problem> {
    let (shell, tab) = (visitor.shell(Page::Evaluation), Tab::Cases);
    let Some(live) = state.releases.current() else { return lack::no_release(shell, tab) };
    let ranks = match live.evaluation.ranks().await {
        Ok(ranks) => ranks,
        Err(found) => return lack::page(shell, tab, &found),
    };
    let asked = Asked::new(query, &ranks, live.serving.release().manifest().default_method)?;
    let known = known(&state.store, &ranks).await?;
    let found = ranks.apart(asked.versus, asked.selection(&known));
    let view = |apart: &Apart| CaseView::new(*apart, asked.versus, &ranks, &known, &live);
    let page = CasesPage {
        tab,
        pager: Pager::new(&asked, tab.path(), found.len(), SIZE),
        cases: page_of(&found, asked.page, SIZE).map(view).collect(),
        csv: asked.link("/evaluation/cases.csv", 1),
        asked,
        bys: By::ALL,
        leads: Lead::ALL,
        shell,
    };
    Ok(Html(page.render()?))
}

impl CaseView {
    fn new(apart: Apart, versus: Versus, ranks: &Ranks, known: &[bool], live: &LiveRelease) -> Self {
        let case = ranks.case(apart.row);
        let view = |id: &ArticleId| ArticleView::offered(live, id);
        let slots = case.articles().enumerate().map(|(slot, id)| (slot != case.slot).then(|| view(id)));
        let answer = |method, better| {
            let (rank, log_probability) = ranks.answer(method, apart.row).unwrap_or_default();
            AnswerView {
                method,
                rank: rank.to_string(),
                probability: figures::percent(f64::from(log_probability).exp()),
                better,
            }
        };
        let known = known[ranks.customer_place(apart.row)];
        Self {
            customer: case.customer.to_string(),
            seen: case.seen,
            slots: slots.collect(),
            truth: view(case.truth()),
            apart: words(versus, apart.difference.into()),
            answers: [
                answer(versus.first, apart.difference > 0.0),
                answer(versus.second, apart.difference < 0.0),
            ],
            side_by_side: known.then(|| {
                let mut query = form_urlencoded::Serializer::new(String::new());
                query.append_pair("customer", case.customer.as_str());
                for (slot, id) in case.articles().enumerate() {
                    query.append_pair("slot", if slot == case.slot { "" } else { id.as_str() });
                }
                query.append_pair("truth", case.truth().as_str());
                query
                    .append_pair("method", versus.second.as_str())
                    .append_pair("method", versus.first.as_str());
                format!("/side-by-side?{}", query.finish())
            }),
        }
    }
}

/// How far two methods are apart. Logarithms are nobody's language.
pub(super) fn words(versus: Versus, difference: f64) -> String {
    let ahead = if difference < 0.0 { versus.second } else { versus.first };
    match versus.by {
        By::LogProbability => {
            let times = difference.abs().exp();
            let times = match () {
                () if times < 9.95 => format!("{times:.1}"),
                () if times < 10_000.0 => format!("{times:.0}"),
                () => "over 10,000".to_owned(),
            };
            format!("{times} times as likely to {ahead}")
        }
        By::Rank => format!("{} places further up with {ahead}", written::plain(difference.abs())),
    }
}
