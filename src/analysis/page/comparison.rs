//! `/operations/releases/{name}/comparison`: the figures of a release next to those of the live one, and where they differ most.

use std::{collections::BTreeMap, sync::Arc};

use askama::Template;
use atelier_core::{
    domain::{ArticleId, Method, list_methods},
    drawing::chart::{Scale, Whisker, WhiskerRow, Whiskers, whiskers},
    util::csv::Lines,
};
use atelier_engine::evaluation::{
    CaseDifference, EvaluationError, Figures, Interval, Metric, Pair, Ranks, Stored, Summary,
};
use axum::{
    extract::State,
    response::{Html, Response},
};
use serde::Deserialize;

use crate::{
    analysis::page::evaluation::Difference,
    catalogue::page::article_view::ArticleView,
    people::page::visitor::Analyst,
    platform::page::operations::Tab,
    platform::{
        http::{
            AppState, Kind, Problem,
            extract::{Path, ReleaseName},
        },
        page::{
            figures,
            form::PageQuery,
            format,
            shell::{Page, Shell},
        },
    },
    releases::LiveRelease,
};

/// The types and cases that are shown at each end.
const TYPES: usize = 6;
const CASES: usize = 4;

#[derive(Template)]
#[template(path = "analysis/comparison.html")]
struct ComparisonPage {
    shell: Shell,
    tab: Tab,
    name: String,
    live: String,
    compared: Result<Compared, String>,
}

struct Compared {
    /// Where the intervals come from.
    basis: &'static str,
    other_data: bool,
    rows: Vec<MethodDifference>,
    /// Methods of only one of the releases.
    lost: String,
    gained: String,
    /// Of the default methods.
    pair: String,
    types: Types,
    /// The cases that the new release answers most better, and those that the live one does.
    cases: Option<[Vec<CaseView>; 2]>,
}

/// The new release's figures minus the live one's, by metric.
struct MethodDifference {
    name: String,
    is_default: bool,
    cells: Vec<Option<(Interval, Difference)>>,
}

struct Types {
    svg: String,
    /// Type, number of slots, the difference of log-probabilities.
    all: Vec<(String, u64, Interval)>,
    /// Type, number of slots, difference with its interval.
    rows: Vec<(String, String, String)>,
    /// Those that the chart leaves out.
    others: usize,
}

struct CaseView {
    slots: Vec<Option<ArticleView>>,
    truth: ArticleView,
    /// The ranks of the missing article with the live release and the new one.
    ranks: [String; 2],
    apart: String,
}

pub(crate) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    Path(ReleaseName(name)): Path<ReleaseName>,
) -> Result<Html<String>, Problem> {
    let (live, compared) = read(&state, &name).await?;
    let shell = visitor.shell(Page::Operations);
    let live = live.name().to_owned();
    Ok(Html(ComparisonPage { shell, tab: Tab::Releases, name, live, compared }.render()?))
}

/// The live release, and the comparison with it or why there is none.
async fn read(state: &AppState, name: &str) -> Result<(Arc<LiveRelease>, Result<Compared, String>), Problem> {
    let live = state.live_release()?;
    let stored = state.releases().read_evaluation(name).await.ok_or_else(|| {
        Problem::new(Kind::NotFound, format!("there is no release {name:?} in the models folder"))
    })?;
    let compared = match stored {
        Ok(stored) => compare(&live, stored).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    Ok((live, compared))
}

#[derive(Deserialize)]
pub(crate) struct TableQuery {
    of: Table,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Table {
    Figures,
    Types,
}

pub(crate) async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    Path(ReleaseName(name)): Path<ReleaseName>,
    PageQuery(TableQuery { of }): PageQuery<TableQuery>,
) -> Result<Response, Problem> {
    let (live, compared) = read(&state, &name).await?;
    let compared = compared.map_err(|reason| Problem::new(Kind::NotFound, reason))?;
    let (what, text) = match of {
        Table::Figures => ("figures", compared.figures_csv()),
        Table::Types => ("types", compared.types.csv()),
    };
    Ok(figures::csv_file(&format!("{name}-{}-{what}.csv", live.name()), text))
}

struct Side<'a> {
    figures: &'a Figures,
    ranks: Option<&'a Ranks>,
    default: Method,
}

/// An error says why nothing can be compared.
async fn compare(live: &LiveRelease, stored: Stored) -> Result<Compared, EvaluationError> {
    let (figures, live_figures) = (stored.figures?, live.evaluation.figures().await?);
    let (ranks, live_ranks) = (stored.ranks.ok(), live.evaluation.ranks().await.ok());
    let manifest = live.serving.release().manifest();
    // The routing's default answers with either release, if the release has it.
    let routed = live.routing.default_method.filter(|method| figures.methods().any(|other| other == *method));
    let default = routed.unwrap_or(stored.default_method);
    let new = Side { figures: &figures, ranks: ranks.as_ref(), default };
    let now = Side { figures: &live_figures, ranks: live_ranks.as_deref(), default: live.default_method() };
    let compared = Compared::new(live, &new, &now);
    Ok(Compared { other_data: stored.fingerprint != manifest.data.fingerprint, ..compared })
}

impl Compared {
    fn new(live: &LiveRelease, new: &Side<'_>, now: &Side<'_>) -> Self {
        let ranks = new.ranks.zip(now.ranks);
        let same_cases = ranks.is_some_and(|(ranks, others)| ranks.has_cases_of(others));
        let pair = |method, other| ranks.filter(|_| same_cases)?.0.pair(method, ranks?.1, other);
        let row = |method: Method, other: Method| {
            let name = if method == other { method.to_string() } else { format!("{other} → {method}") };
            let pair = pair(method, other);
            let cell = |metric| {
                let found = match pair {
                    Some(pair) => pair.difference(metric)?,
                    None => apart(new, method, now, other, metric)?,
                };
                let ends = [found.difference, found.low, found.high];
                Some((found, Difference::new(metric, found.is_significant(), ends)))
            };
            MethodDifference { name, is_default: method == new.default, cells: Metric::ALL.map(cell).into() }
        };
        let mut rows = vec![row(new.default, now.default)];
        let both = |side: &Side<'_>, other: &Side<'_>| {
            let (methods, others): (Vec<Method>, Vec<Method>) =
                (side.figures.methods().collect(), other.figures.methods().collect());
            methods.into_iter().partition::<Vec<_>, _>(|method| others.contains(method))
        };
        let (shared, gained) = both(new, now);
        let (_, lost) = both(now, new);
        rows.extend(
            shared
                .into_iter()
                .filter(|method| !(*method == new.default && new.default == now.default))
                .map(|method| MethodDifference { is_default: false, ..row(method, method) }),
        );
        let default = pair(new.default, now.default);
        let types = match default {
            Some(pair) => {
                let types = pair.by_type().into_iter();
                types.map(|(name, slots, found)| (name.to_owned(), slots as u64, found)).collect()
            }
            None => stored_types(new, now),
        };
        Self {
            basis: if same_cases {
                "Both answered the same slots. Intervals are 95 %, over outfits."
            } else {
                "The releases were tested on different slots, so intervals are wider. They are 95 %, from the stored \
                 figures."
            },
            other_data: false,
            rows,
            lost: list_methods(lost),
            gained: list_methods(gained),
            pair: format!("{} of this release, {} of the live one", new.default, now.default),
            types: Types::new(types),
            cases: default.zip(ranks).map(|(pair, (ranks, others))| {
                cases(live, pair, (ranks, new.default), (others, now.default))
            }),
        }
    }

    fn figures_csv(&self) -> String {
        let mut lines = Lines::new(&["method", "default", "metric", "difference", "low", "high"]);
        for row in &self.rows {
            for (metric, cell) in Metric::ALL.iter().zip(&row.cells) {
                let Some((Interval { difference, low, high }, _)) = cell else { continue };
                let ends = [*difference, *low, *high].map(figures::number);
                let default = if row.is_default { "true" } else { "" };
                lines.push(&[&row.name, default, metric.label(), &ends[0], &ends[1], &ends[2]]);
            }
        }
        lines.into_text()
    }
}

/// The difference of stored figures, as of separate outfits.
fn apart(new: &Side<'_>, method: Method, now: &Side<'_>, other: Method, metric: Metric) -> Option<Interval> {
    let summary = |side: &Side<'_>, method| Some(side.figures.evaluation_of(method)?.summary);
    difference(&summary(new, method)?, &summary(now, other)?, metric)
}

fn difference(one: &Summary, other: &Summary, metric: Metric) -> Option<Interval> {
    let (one, other) = (one.scores.get(metric), other.scores.get(metric));
    let error = one.standard_error?.hypot(other.standard_error?);
    Some(Interval::new(one.mean - other.mean, error))
}

/// By type of the missing article, from the stored segments of the default methods.
fn stored_types(new: &Side<'_>, now: &Side<'_>) -> Vec<(String, u64, Interval)> {
    let types = |side: &Side<'_>| -> BTreeMap<String, Summary> {
        let segments = side.figures.evaluation_of(side.default).map(|found| &found.segments);
        let segments = segments.into_iter().flatten().filter(|segment| segment.by == "type");
        segments.map(|segment| (segment.value.clone(), segment.summary)).collect()
    };
    let (mut other, live) = (types(new), types(now));
    let mut found: Vec<_> = live
        .into_iter()
        .filter_map(|(name, old)| {
            // Less cross-entropy is more probability.
            let found = difference(&old, &other.remove(&name)?, Metric::CrossEntropy)?;
            Some((name, old.slots, found))
        })
        .collect();
    found.sort_by(|one, other| other.2.difference.total_cmp(&one.2.difference));
    found
}

/// How many times as likely.
fn times(log_ratio: f64) -> String {
    figures::times(log_ratio.exp())
}

/// A logarithmic scale with round ends around the factors.
fn round_scale(factors: impl Iterator<Item = f64>) -> Scale {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = factors.fold(ends, |(low, high), factor| (low.min(factor), high.max(factor)));
    let steps = || (-6..=6).flat_map(|power| [1.0, 2.0, 5.0].map(|part| part * 10_f64.powi(power)));
    Scale::Log {
        from: steps().rfind(|step| *step <= low).unwrap_or(1e-6),
        to: steps().find(|step| *step > low && *step >= high).unwrap_or(1e6),
    }
}

impl Types {
    fn new(all: Vec<(String, u64, Interval)>) -> Self {
        let others = all.len().saturating_sub(2 * TYPES);
        let last = all.len() - TYPES.min(all.len());
        let ends = all.iter().enumerate().filter(|(index, _)| *index < TYPES || *index >= last);
        let words = |Interval { difference, low, high }: &Interval| {
            format!("{} ({} to {})", times(*difference), times(*low), times(*high))
        };
        let rows: Vec<WhiskerRow> = ends
            .map(|(_, (name, slots, found))| WhiskerRow {
                name: name.clone(),
                note: format!("{} slots", figures::count(*slots)),
                dots: vec![Some(Whisker {
                    at: found.difference.exp(),
                    low: found.low.exp(),
                    high: found.high.exp(),
                })],
                says: vec![format!("{name}: {}", words(found))],
            })
            .collect();
        let ends = rows.iter().flat_map(|row| row.dots.iter().flatten()).flat_map(|dot| [dot.low, dot.high]);
        let svg = whiskers(&Whiskers {
            title: "Differences by type of the missing article",
            about: "A dot for each type: how many times as likely the missing article is with this release.",
            x: ("times as likely", round_scale(ends.chain([1.0])), |factor| {
                format!("×{}", format::plain(factor))
            }),
            kinds: vec![0],
            rows,
        });
        let row = |(name, slots, found): &(String, u64, Interval)| {
            (name.clone(), figures::count(*slots), words(found))
        };
        Self { svg, rows: all.iter().map(row).collect(), all, others }
    }

    fn csv(&self) -> String {
        let mut lines = Lines::new(&["type", "slots", "times_as_likely", "low", "high"]);
        for (name, slots, Interval { difference, low, high }) in &self.all {
            let ends = [difference, low, high].map(|end| figures::number(end.exp()));
            lines.push(&[name, &slots.to_string(), &ends[0], &ends[1], &ends[2]]);
        }
        lines.into_text()
    }
}

fn cases(
    live: &LiveRelease,
    pair: Pair<'_>,
    (ranks, method): (&Ranks, Method),
    (others, other): (&Ranks, Method),
) -> [Vec<CaseView>; 2] {
    let all = pair.cases();
    let view = |case: &CaseDifference| {
        let view = |id: &ArticleId| ArticleView::from_live_release(live, id);
        let found = ranks.case(case.row);
        let slots = found.articles().enumerate().map(|(slot, id)| (slot != found.slot).then(|| view(id)));
        let rank = |ranks: &Ranks, method| ranks.answer(method, case.row).unwrap_or_default().0.to_string();
        CaseView {
            slots: slots.collect(),
            truth: view(found.truth()),
            ranks: [rank(others, other), rank(ranks, method)],
            apart: format!("{} as likely", times(f64::from(case.difference))),
        }
    };
    [all.iter().take(CASES).map(view).collect(), all.iter().rev().take(CASES).map(view).collect()]
}
