//! The columns of the comparison, one per method or customer, as a page and as a CSV file.

use atelier_core::{
    domain::{ArticleId, CustomerId, Features, Method},
    util::{csv::Lines, notation::Notation},
};

use super::View;
use crate::{
    catalogue::page::article_view::ArticleView,
    completion::{
        Blank, Placement, Request, Suggestion,
        comparison::{Column, Comparison, Pair, Subjects, compare},
    },
    customers::page::{CustomerView, CustomerViews},
    platform::{
        http::{AppState, Problem},
        page::{Address, fault, figures::number},
    },
    releases::LiveRelease,
};

pub(super) async fn compare_columns(
    state: &AppState,
    live: &LiveRelease,
    view: &View,
    given: Features,
) -> Result<Comparison, Problem> {
    let has = |method| live.serving.has(method);
    let methods = view.methods(has, live.default_method());
    let subjects = Subjects { methods, customers: view.customers.clone() };
    let times = state.times();
    let request = Request { rules: view.rules.then_some(times.now), ..request(live, view, given) };
    compare(live, state.profiles(), &subjects, &request, times).await.map_err(fault::problem)
}

fn request(live: &LiveRelease, view: &View, given: Features) -> Request {
    let blank = view.slots.iter().position(Option::is_none).unwrap_or_default();
    let types = view.kind.iter().map(|kind| (blank, vec![kind.clone()])).collect();
    Request {
        given: Some(given).filter(|given| !given.is_empty()),
        k: view.k(),
        filters: view.filter.with_types(types),
        placements_of: view.truth.iter().chain(&view.mark).cloned().collect(),
        ..Request::new(view.slots.clone(), live.default_method())
    }
}

/// A followed article and its placement in a column; `None` if it is not in the release.
type Followed = (ArticleId, Option<Placement>);

/// The placements of the true and the marked article in a column, in the order of `request`.
fn followed(view: &View, column: &Column) -> [Option<Followed>; 2] {
    let mut placements = column.blank().placements.iter().copied();
    [&view.truth, &view.mark].map(|id| id.clone().map(|id| (id, placements.next().flatten())))
}

pub(super) struct Compared {
    /// How many articles each column chooses from.
    pub(super) admissible: String,
    pub(super) columns: Vec<ColumnView>,
    pub(super) pairs: Vec<PairView>,
    pub(super) rows: usize,
}

pub(super) struct ColumnView {
    /// The customer of a comparison of customers; of methods, the method.
    pub(super) customer: Option<CustomerView>,
    pub(super) method: Method,
    pub(super) cells: Vec<CellView>,
    pub(super) truth: Option<String>,
    pub(super) mark: Option<String>,
    /// Lines from the previous column.
    pub(super) links: Vec<Link>,
    pub(super) best: bool,
}

pub(super) struct CellView {
    pub(super) rank: usize,
    pub(super) article: ArticleView,
    pub(super) share: String,
    /// The change of rank against the first column.
    pub(super) moved: String,
    /// The rules that moved it.
    pub(super) rules: String,
    pub(super) is_true: bool,
    pub(super) is_marked: bool,
    pub(super) follow: String,
}

pub(super) struct PairView {
    pub(super) titles: [String; 2],
    pub(super) overlap: String,
    pub(super) rank_biased_overlap: String,
}

impl Compared {
    pub(super) fn new(
        view: &View,
        comparison: &Comparison,
        customers: &CustomerViews,
        notation: &Notation,
    ) -> Self {
        let columns = &comparison.columns;
        let placements: Vec<[Option<Followed>; 2]> =
            columns.iter().map(|column| followed(view, column)).collect();
        let best = placements.iter().filter_map(|[truth, _]| rank(truth.as_ref())).min();
        let column_view = |(index, (column, [truth, mark])): (usize, (&Column, &[Option<Followed>; 2]))| {
            let before = index.checked_sub(1).map(|before| columns[before].blank());
            ColumnView {
                customer: subject(view, column).map(|id| customers.view(id)),
                method: column.method,
                cells: cells(view, column, columns.first().filter(|_| index > 0), notation),
                truth: truth.as_ref().map(|truth| describe_placement(truth, notation)),
                mark: mark.as_ref().map(|mark| describe_placement(mark, notation)),
                links: before.map_or_else(Vec::new, |before| links(view, before, column.blank())),
                best: best.is_some() && rank(truth.as_ref()) == best,
            }
        };
        let title = |index: usize| title(view, &columns[index], |id| customers.label(id));
        let pair_view = |pair: &Pair| PairView {
            titles: pair.columns.map(title),
            overlap: notation.percent(pair.overlap),
            rank_biased_overlap: format!("{:.2}", pair.rank_biased_overlap),
        };
        Self {
            admissible: admissible(columns, notation),
            columns: columns.iter().zip(&placements).enumerate().map(column_view).collect(),
            pairs: comparison.pairs.iter().map(pair_view).collect(),
            rows: columns.iter().map(|column| column.blank().suggestions.len()).max().unwrap_or_default(),
        }
    }

    /// The height of the drawing between columns: a hundred for each row.
    pub(super) fn height(&self) -> usize {
        self.rows * 100
    }
}

/// `812`, or `812 to 1,032` where columns differ.
fn admissible(columns: &[Column], notation: &Notation) -> String {
    let numbers = columns.iter().map(|column| column.blank().admissible as u64);
    let (least, most) = (numbers.clone().min().unwrap_or(0), numbers.max().unwrap_or(0));
    if least == most {
        return notation.count(least);
    }
    format!("{} to {}", notation.count(least), notation.count(most))
}

/// The customer whom the column is about, if it is not about a method.
fn subject<'a>(view: &View, column: &'a Column) -> Option<&'a CustomerId> {
    column.customer.as_ref().filter(|_| view.is_of_customers())
}

fn title(view: &View, column: &Column, name: impl Fn(&CustomerId) -> String) -> String {
    subject(view, column).map_or_else(|| column.method.to_string(), name)
}

fn cells(view: &View, column: &Column, first: Option<&Column>, notation: &Notation) -> Vec<CellView> {
    let cell = |(suggestion, rank): (&Suggestion, usize)| {
        let id = &suggestion.article.id;
        let before = first.map(|first| {
            let mut ranked = first.blank().suggestions.iter().zip(1..);
            ranked.find(|(other, _)| other.index == suggestion.index).map(|(_, rank)| rank)
        });
        CellView {
            rank,
            article: ArticleView::without_price(&suggestion.article.unpack()),
            share: notation.percent(suggestion.share),
            moved: match before {
                None => String::new(),
                Some(None) => "new".into(),
                Some(Some(before)) if before > rank => format!("▲{}", before - rank),
                Some(Some(before)) if before < rank => format!("▼{}", rank - before),
                Some(Some(_)) => "=".into(),
            },
            rules: rules(suggestion),
            is_true: view.truth.as_ref() == Some(id),
            is_marked: view.mark.as_ref() == Some(id),
            follow: view.marking(id).href(),
        }
    };
    column.blank().suggestions.iter().zip(1..).map(cell).collect()
}

/// The names of the rules that moved a suggestion.
fn rules(suggestion: &Suggestion) -> String {
    let names = suggestion.rules.iter().map(|rule| rule.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

fn rank(followed: Option<&Followed>) -> Option<usize> {
    let placement = followed.and_then(|(_, placement)| *placement)?;
    placement.admissible.then_some(placement.rank)
}

fn describe_placement((_, placement): &Followed, notation: &Notation) -> String {
    match placement {
        Some(Placement { rank, share: Some(share), .. }) => {
            format!("rank {rank}, {}", notation.percent(*share))
        }
        Some(_) => "filtered out".into(),
        None => "not in this release".into(),
    }
}

/// A line that connects an article in two columns, in hundredths of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) class: &'static str,
}

fn links(view: &View, left: &Blank, right: &Blank) -> Vec<Link> {
    let line = |(row, suggestion): (usize, &Suggestion)| {
        let to = right.suggestions.iter().position(|other| other.index == suggestion.index)?;
        let id = Some(&suggestion.article.id);
        let class = match () {
            () if id == view.truth.as_ref() => "link-true",
            () if id == view.mark.as_ref() => "link-marked",
            () => "link",
        };
        Some(Link { from: row * 100 + 50, to: to * 100 + 50, class })
    };
    left.suggestions.iter().enumerate().filter_map(line).collect()
}

pub(super) fn similarity_csv(view: &View, Comparison { columns, pairs, .. }: &Comparison) -> String {
    let mut lines = Lines::new(&["first", "second", "in_common", "rank_biased_overlap"]);
    for pair in pairs {
        let [one, other] = pair.columns.map(|index| title(view, &columns[index], CustomerId::to_string));
        lines.push(&[one, other, number(pair.overlap), number(pair.rank_biased_overlap)]);
    }
    lines.into_text()
}

/// One line per suggestion, and one for the true article if it is not among them.
pub(super) fn csv(view: &View, columns: &[Column]) -> String {
    let mut lines =
        Lines::new(&["method", "customer", "rank", "article", "name", "type", "share", "true", "rules"]);
    for column in columns {
        let customer = column.customer.as_ref().map(ToString::to_string).unwrap_or_default();
        let [truth, _] = followed(view, column);
        let truth = truth.as_ref();
        for (suggestion, rank) in column.blank().suggestions.iter().zip(1..) {
            let article = suggestion.article.unpack();
            let is_true = truth.is_some_and(|(id, _)| *id == article.id);
            lines.push(&[
                column.method.as_str(),
                &customer,
                &usize::to_string(&rank),
                article.id.as_str(),
                article.words("name").next().unwrap_or_default(),
                article.kind(),
                &number(suggestion.share),
                if is_true { "true" } else { "" },
                &rules(suggestion),
            ]);
        }
        let is_suggested =
            |id: &ArticleId| column.blank().suggestions.iter().any(|suggestion| suggestion.article.id == *id);
        if let Some((id, Some(placement))) = truth.filter(|(id, _)| !is_suggested(id)) {
            // An article that the filters excluded has no rank.
            let rank = if placement.admissible { placement.rank.to_string() } else { String::new() };
            let share = placement.share.map(number).unwrap_or_default();
            lines.push(&[column.method.as_str(), &customer, &rank, id.as_str(), "", "", &share, "true", ""]);
        }
    }
    lines.into_text()
}
