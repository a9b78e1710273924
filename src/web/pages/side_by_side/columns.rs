//! One column a method or customer: asking, and what is shown of the answers.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;

use super::{View, links};
use crate::{
    domain::{ArticleId, CustomerId, Features, Method},
    service::{
        completion::{self, Blank, Filters, Placement, Request, overlap, rank_biased_overlap},
        live_release::LiveRelease,
    },
    web::{
        api::complete::profile,
        http::{AppState, Problem},
        pages::{article_view::ArticleView, figures::percent},
    },
};

/// An answer, with whose and which it is.
pub(super) struct Column {
    pub(super) method: Method,
    pub(super) customer: Option<CustomerId>,
    pub(super) blank: Blank,
    /// Of the true and of the followed article.
    pub(super) truth: Option<(ArticleId, Option<Placement>)>,
    pub(super) mark: Option<(ArticleId, Option<Placement>)>,
}

pub(super) async fn ask(
    state: &AppState,
    live: &LiveRelease,
    view: &View,
    own: &Features,
) -> Result<Vec<Column>, Problem> {
    let profiles = view.customers.iter().map(async |id| {
        let features = profile(state, id, "/customer").await?;
        Ok::<_, Problem>((Some(id.clone()), features))
    });
    let mut people = try_join_all(profiles).await?;
    if people.is_empty() {
        people.push((None, Features::default()));
    }
    let has = |method| live.serving.has(method);
    let methods = view.methods(has, live.choose(None).method);
    let each = people.iter().flat_map(|person| methods.iter().map(move |method| (*method, person)));
    let deadline = std::time::Instant::now() + state.limits.deadline();
    let column = async |(method, (customer, stored)): (Method, &(Option<CustomerId>, Features))| {
        let asked = request(view, method, stored.clone(), own.clone());
        let completion = completion::complete(live.served(), &asked, deadline).await?;
        let blank = completion.blanks.into_iter().next().expect("there is a blank; this is a bug");
        let mut stands = blank.placements.iter().copied();
        let mut placement = |of: &Option<ArticleId>| of.clone().map(|id| (id, stands.next().flatten()));
        let (truth, mark) = (placement(&view.truth), placement(&view.mark));
        Ok::<_, Problem>(Column { method, customer: customer.clone(), blank, truth, mark })
    };
    try_join_all(each.map(column)).await
}

fn request(view: &View, method: Method, stored: Features, given: Features) -> Request {
    let blank = view.slots.iter().position(Option::is_none).unwrap_or_default();
    let types = view.kind.iter().map(|kind| (blank, vec![kind.clone()])).collect::<BTreeMap<_, _>>();
    Request {
        stored,
        given,
        outfit: view.slots.clone(),
        method,
        k: view.k(),
        filters: Filters { types, no_gos: view.no_gos, ..Filters::default() },
        diversity: 0.0,
        lift: false,
        explain: false,
        sets: 0,
        placements_of: view.truth.iter().chain(&view.mark).cloned().collect(),
    }
}

/// What the page shows of all columns.
pub(super) struct Compared {
    pub(super) admissible: usize,
    pub(super) columns: Vec<ColumnView>,
    /// Each two columns.
    pub(super) pairs: Vec<PairView>,
    pub(super) rows: usize,
}

pub(super) struct ColumnView {
    pub(super) title: String,
    pub(super) cells: Vec<CellView>,
    /// Where the true article stands.
    pub(super) truth: Option<String>,
    pub(super) mark: Option<String>,
    /// Lines from the column before: from which row to which, of the true or the followed article.
    pub(super) links: Vec<links::Link>,
    pub(super) best: bool,
}

pub(super) struct CellView {
    pub(super) rank: usize,
    pub(super) article: ArticleView,
    pub(super) probability: String,
    /// Against the first column.
    pub(super) moved: String,
    pub(super) is_true: bool,
    pub(super) is_marked: bool,
    pub(super) follow: String,
}

pub(super) struct PairView {
    pub(super) one: String,
    pub(super) other: String,
    pub(super) overlap: String,
    pub(super) rank_biased_overlap: String,
}

impl Compared {
    pub(super) fn new(view: &View, columns: &[Column]) -> Self {
        let best = columns.iter().filter_map(|column| rank(column.truth.as_ref())).min();
        let shown = columns.iter().enumerate().map(|(place, column)| ColumnView {
            title: title(view, column),
            cells: cells(view, column, columns.first().filter(|_| place > 0)),
            truth: column.truth.as_ref().map(placement),
            mark: column.mark.as_ref().map(placement),
            links: place.checked_sub(1).map_or_else(Vec::new, |before| {
                links::between(&columns[before].blank, &column.blank, view.truth.as_ref(), view.mark.as_ref())
            }),
            best: best.is_some() && rank(column.truth.as_ref()) == best,
        });
        Self {
            admissible: columns.first().map_or(0, |column| column.blank.admissible),
            columns: shown.collect(),
            pairs: pairs(view, columns),
            rows: columns.iter().map(|column| column.blank.suggestions.len()).max().unwrap_or_default(),
        }
    }

    /// The height of the drawing between columns, a hundred a row.
    pub(super) fn height(&self) -> usize {
        self.rows * 100
    }
}

fn title(view: &View, column: &Column) -> String {
    match &column.customer {
        Some(customer) if view.is_of_customers() => customer.to_string(),
        _ => column.method.to_string(),
    }
}

fn cells(view: &View, column: &Column, first: Option<&Column>) -> Vec<CellView> {
    let cell = |(suggestion, rank): (&completion::Suggestion, usize)| {
        let id = &suggestion.article.id;
        let before = first.map(|first| {
            first
                .blank
                .suggestions
                .iter()
                .position(|other| other.index == suggestion.index)
                .map(|place| place + 1)
        });
        CellView {
            rank,
            article: ArticleView::new(&suggestion.article),
            probability: percent(suggestion.probability),
            moved: match before {
                None => String::new(),
                Some(None) => "new".into(),
                Some(Some(before)) if before > rank => format!("▲{}", before - rank),
                Some(Some(before)) if before < rank => format!("▼{}", rank - before),
                Some(Some(_)) => "=".into(),
            },
            is_true: view.truth.as_ref() == Some(id),
            is_marked: view.mark.as_ref() == Some(id),
            follow: view.marking(id).href(),
        }
    };
    column.blank.suggestions.iter().zip(1..).map(cell).collect()
}

fn rank(of: Option<&(ArticleId, Option<Placement>)>) -> Option<usize> {
    of.and_then(|(_, stands)| stands.filter(|stands| stands.admissible).map(|stands| stands.rank))
}

fn placement((_, stands): &(ArticleId, Option<Placement>)) -> String {
    match stands {
        Some(stands) if stands.admissible => {
            format!("rank {}, {}", stands.rank, percent(stands.probability))
        }
        Some(stands) => format!("filtered out, {}", percent(stands.probability)),
        None => "not in this release".into(),
    }
}

fn pairs(view: &View, columns: &[Column]) -> Vec<PairView> {
    let indices = |column: &Column| -> Vec<u32> {
        column.blank.suggestions.iter().map(|suggestion| suggestion.index).collect()
    };
    let places = 0..columns.len();
    let two = places.clone().flat_map(|one| (one + 1..places.end).map(move |other| (one, other)));
    let pair = |(one, other): (usize, usize)| {
        let (left, right) = (indices(&columns[one]), indices(&columns[other]));
        PairView {
            one: title(view, &columns[one]),
            other: title(view, &columns[other]),
            overlap: percent(overlap(&left, &right)),
            rank_biased_overlap: format!("{:.2}", rank_biased_overlap(&left, &right)),
        }
    };
    two.map(pair).collect()
}
