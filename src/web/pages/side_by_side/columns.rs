//! One column a method or customer: asking, and what is shown of the answers.

use std::time::Instant;

use super::{View, links};
use crate::{
    domain::{ArticleId, Features, Method},
    service::{
        comparison::{Column, Comparison, Pair, Subjects, compare},
        completion::{Filters, Placement, Request, Suggestion},
        live_release::LiveRelease,
    },
    web::{
        http::{AppState, Problem},
        pages::{article_view::ArticleView, figures::percent},
    },
};

/// The answers that the page shows.
pub(super) async fn ask(
    state: &AppState,
    live: &LiveRelease,
    view: &View,
    own: &Features,
) -> Result<Comparison, Problem> {
    let has = |method| live.serving.has(method);
    let methods = view.methods(has, live.choose(None).method);
    let subjects = Subjects { methods, customers: view.customers.clone() };
    let times = (Instant::now(), state.deadline());
    Ok(compare(live, &state.profiles, &subjects, &request(view, own.clone()), times).await?)
}

fn request(view: &View, given: Features) -> Request {
    let blank = view.slots.iter().position(Option::is_none).unwrap_or_default();
    let types = view.kind.iter().map(|kind| (blank, vec![kind.clone()])).collect();
    Request {
        given,
        k: view.k(),
        filters: Filters { types, no_gos: view.no_gos, ..Filters::default() },
        placements_of: view.truth.iter().chain(&view.mark).cloned().collect(),
        ..Request::new(view.slots.clone(), Method::None)
    }
}

/// An article that the page looks for in every column, and where it is. `None` if the release does not know it.
type Sought = (ArticleId, Option<Placement>);

/// The true article in this column, then the marked one: in the order in which `request` asks for them.
pub(super) fn sought(view: &View, column: &Column) -> [Option<Sought>; 2] {
    let mut placements = column.blank.placements.iter().copied();
    [&view.truth, &view.mark].map(|id| id.clone().map(|id| (id, placements.next().flatten())))
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
    pub(super) fn new(view: &View, comparison: &Comparison) -> Self {
        let columns = &comparison.columns;
        let found: Vec<[Option<Sought>; 2]> = columns.iter().map(|column| sought(view, column)).collect();
        let best = found.iter().filter_map(|[truth, _]| rank(truth.as_ref())).min();
        let shown =
            columns.iter().zip(&found).enumerate().map(|(place, (column, [truth, mark]))| ColumnView {
                title: title(view, column),
                cells: cells(view, column, columns.first().filter(|_| place > 0)),
                truth: truth.as_ref().map(describe_placement),
                mark: mark.as_ref().map(describe_placement),
                links: place.checked_sub(1).map_or_else(Vec::new, |before| {
                    links::between(
                        &columns[before].blank,
                        &column.blank,
                        view.truth.as_ref(),
                        view.mark.as_ref(),
                    )
                }),
                best: best.is_some() && rank(truth.as_ref()) == best,
            });
        Self {
            admissible: columns.first().map_or(0, |column| column.blank.admissible),
            columns: shown.collect(),
            pairs: comparison.pairs.iter().map(|pair| PairView::new(view, columns, *pair)).collect(),
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
    let cell = |(suggestion, rank): (&Suggestion, usize)| {
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

fn rank(sought: Option<&Sought>) -> Option<usize> {
    let placement = sought.and_then(|(_, placement)| *placement)?;
    placement.admissible.then_some(placement.rank)
}

fn describe_placement((_, placement): &Sought) -> String {
    match placement {
        Some(placement) if placement.admissible => {
            format!("rank {}, {}", placement.rank, percent(placement.probability))
        }
        Some(placement) => format!("filtered out, {}", percent(placement.probability)),
        None => "not in this release".into(),
    }
}

impl PairView {
    fn new(view: &View, columns: &[Column], pair: Pair) -> Self {
        let [one, other] = pair.columns.map(|place| title(view, &columns[place]));
        Self {
            one,
            other,
            overlap: percent(pair.overlap),
            rank_biased_overlap: format!("{:.2}", pair.rank_biased_overlap),
        }
    }
}
