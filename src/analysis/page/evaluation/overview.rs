//! `/evaluation`: Table 1, recall curves, calibration, and the significance of the methods' differences.

use std::sync::Arc;

use askama::Template;
use atelier_core::{
    domain::Method,
    drawing::chart::{LineChart, Mark, Reliability, Scale, Series, Written, line_chart, reliability},
};
use atelier_engine::evaluation::{Bin, Comparison, Figures, Interval, MAX_RANK, Metric, Ranks};
use axum::{extract::State, response::Html};

use super::{
    Choice, ChoiceQuery, Difference, Drawn, Numbers, Tab,
    known_type::{self, KnownType},
    new_articles::NewArticlesTable,
    read_figures, series_kind, summary,
    table_one::{METRICS, TableOne},
};
use crate::{
    people::page::visitor::Analyst,
    platform::{
        http::{AppState, Problem},
        page::{Page, PageQuery, Shell, format},
    },
};

#[derive(Template)]
#[template(path = "analysis/evaluation/index.html")]
struct OverviewPage {
    shell: Shell,
    release: String,
    figures: Arc<Figures>,
    known_type: Option<KnownType>,
    /// The query of the tables' files.
    query: String,
    table: TableOne,
    words: Vec<String>,
    new_articles: Option<NewArticlesTable>,
    choice: Choice,
    /// An error says why there are none.
    curves: Result<Curves, String>,
    calibration: Vec<Calibrated>,
    bins: Numbers,
    matrix: Matrix,
}

/// Recall, and how much higher it is than without the customer.
struct Curves {
    recall: Drawn,
    above: Option<Drawn>,
}

/// A method, its reliability as an SVG, and its expected error.
type Calibrated = (Method, String, String);

pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<ChoiceQuery>,
) -> Result<Html<String>, Problem> {
    let shell = visitor.shell(Page::Evaluation);
    let (live, figures) = match read_figures(&state).await {
        Ok(found) => found,
        Err(lack) => return lack.page(shell, Tab::Overview),
    };
    let ranks = live.evaluation.ranks().await;
    let choice = Choice::new(&query, &figures)?;
    let comparison = &figures.comparison;
    let (calibration, bins) = calibration(&choice, &figures);
    let page = OverviewPage {
        release: live.name().to_owned(),
        known_type: KnownType::new(&figures, live.default_method()),
        query: choice.query(),
        table: TableOne::new(&figures),
        words: summary::paragraphs(&figures),
        new_articles: NewArticlesTable::new(comparison),
        curves: ranks
            .map(|ranks| Curves { recall: curves(&choice, &ranks), above: curves_above(&choice, &ranks) })
            .map_err(|error| error.to_string()),
        calibration,
        bins,
        matrix: Matrix::new(&choice, comparison),
        choice,
        shell,
        figures,
    };
    Ok(Html(page.render()?))
}

/// The k of the curves' points: dense where the curves bend, sparse where they are flat.
#[rustfmt::skip]
pub(super) const POINTS: [usize; 27] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 25, 30, 35, 40, 50, 60, 80, 100, 120, 150, 180, 210, MAX_RANK,
];
/// The points with a mark and a column in the table.
const MARKED: [usize; 8] = [1, 2, 5, 10, 20, 50, 100, MAX_RANK];

fn curves(choice: &Choice, ranks: &Ranks) -> Drawn {
    let recall = |method, k| ranks.recall(method, k).unwrap_or(0.0);
    let methods: Vec<Method> = ranks.methods().filter(|method| choice.chosen.contains(method)).collect();
    let series = methods.iter().map(|method| Series {
        name: method.as_str(),
        kind: series_kind(*method),
        points: POINTS.iter().map(|&k| (number(k), recall(*method, k))).collect(),
        marked: (0..POINTS.len())
            .filter(|&index| MARKED.contains(&POINTS[index]))
            .map(|point| {
                let k = POINTS[point];
                Mark { point, says: format!("{method}: {} at {k}", format::percent(recall(*method, k))) }
            })
            .collect(),
        band: Vec::new(),
    });
    let row = |&method: &Method| {
        let cells = MARKED.map(|k| format!("{:.2}", 100.0 * recall(method, k)));
        (method.to_string(), cells.into())
    };
    let about = "How often the missing article is among a method's first k suggestions, for k from 1 to 250.";
    let y = ("recall@k", Scale::Linear { from: 0.0, to: 1.0 }, format::percent as Written);
    let svg = draw_over_k("Recall curves", about, y, series.collect());
    let rows = methods.iter().map(row).collect();
    Drawn { svg, numbers: numbers_over_k("Recall at k, in percent of all slots", rows) }
}

fn draw_over_k(title: &str, about: &str, y: (&str, Scale, Written), series: Vec<Series<'_>>) -> String {
    let x = ("first k suggestions", Scale::Log { from: 1.0, to: number(MAX_RANK) }, format::plain as Written);
    line_chart(&LineChart { title, about, x, y, series })
}

/// A row for each method, with the figures of the marked points.
fn numbers_over_k(caption: &str, rows: Vec<(String, Vec<String>)>) -> Numbers {
    let columns = std::iter::once("method".to_owned()).chain(MARKED.map(|k| format!("@{k}")));
    Numbers { caption: caption.to_owned(), columns: columns.collect(), rows }
}

fn number(k: usize) -> f64 {
    f64::from(u32::try_from(k).expect("k is at most 250"))
}

/// Each method's recall minus that of the method that ignores the customer: curves that all rise to 1 look the same.
fn curves_above(choice: &Choice, ranks: &Ranks) -> Option<Drawn> {
    let mut series = Vec::new();
    let mut rows = Vec::new();
    let methods = ranks.methods().filter(|method| choice.chosen.contains(method) && *method != Method::None);
    let methods: Vec<Method> = methods.collect();
    for method in &methods {
        let pair = ranks.pair(*method, ranks, Method::None)?;
        let found: Vec<(usize, Interval)> =
            MARKED.into_iter().filter_map(|k| Some((k, pair.recall(u16::try_from(k).ok()?)?))).collect();
        let above =
            |k| ranks.recall(*method, k).unwrap_or(0.0) - ranks.recall(Method::None, k).unwrap_or(0.0);
        let words = |found: &Interval| {
            let interval = format::interval(Metric::RecallAt1, found.low, found.high);
            format!("{} ({interval})", format::signed(Metric::RecallAt1, found.difference))
        };
        series.push(Series {
            name: method.as_str(),
            kind: series_kind(*method),
            points: POINTS.iter().map(|&k| (number(k), above(k))).collect(),
            marked: found
                .iter()
                .filter_map(|(k, found)| {
                    let point = POINTS.iter().position(|point| point == k)?;
                    Some(Mark { point, says: format!("{method} at {k}: {}", words(found)) })
                })
                .collect(),
            band: Vec::new(),
        });
        rows.push((method.to_string(), found.iter().map(|(_, found)| words(found)).collect()));
    }
    let ends = series.iter().flat_map(|series| &series.points).map(|(_, above)| *above);
    let y = ("recall@k above none, points", Scale::around(ends.chain([0.0])), format::points as Written);
    let about = "How much more often than with none, which ignores the customer, the missing article is among the first k.";
    let svg = draw_over_k("Recall above that of none", about, y, series);
    let caption = "Difference to none’s recall at k, in percentage points, with 95 % intervals over outfits";
    (!rows.is_empty()).then(|| Drawn { svg, numbers: numbers_over_k(caption, rows) })
}

fn calibration(choice: &Choice, figures: &Figures) -> (Vec<Calibrated>, Numbers) {
    let calibrations: Vec<_> = choice
        .chosen
        .iter()
        .filter_map(|&method| Some((method, &figures.evaluation_of(method)?.calibration)))
        .collect();
    let bins = calibrations.iter().flat_map(|(_, calibration)| &calibration.bins);
    let most = bins.fold(0.1, |most: f64, bin| most.max(bin.confidence).max(bin.accuracy));
    let says = |Bin { confidence, accuracy, slots }: &Bin| {
        let (sure, right) = (100.0 * confidence, 100.0 * accuracy);
        format!("{sure:.0} % sure, {right:.0} % right, {}", format::count(*slots))
    };
    let calibrated = calibrations.iter().map(|&(method, calibration)| {
        let svg = reliability(&Reliability {
            title: &format!("Calibration of {method}"),
            about: "How often the first suggestion was the missing article, against the method's confidence.",
            kind: series_kind(method),
            bins: calibration.bins.iter().map(|bin| (bin.confidence, bin.accuracy)).collect(),
            says: calibration.bins.iter().map(says).collect(),
            most: (most * 10.0).ceil() / 10.0,
        });
        (method, svg, format!("{:.2}", 100.0 * calibration.expected_error))
    });
    let cell = |Bin { confidence, accuracy, .. }: &Bin| {
        format!("{:.1} → {:.1}", 100.0 * confidence, 100.0 * accuracy)
    };
    let bins = calibrations.iter().map(|(_, calibration)| calibration.bins.len()).max().unwrap_or(0);
    let numbers = Numbers {
        caption: "Confidence → accuracy in percent, from the least to the most confident tenth of the slots"
            .to_owned(),
        columns: std::iter::once("method".to_owned()).chain((1..=bins).map(|bin| bin.to_string())).collect(),
        rows: calibrations
            .iter()
            .map(|(method, calibration)| (method.to_string(), calibration.bins.iter().map(cell).collect()))
            .collect(),
    };
    (calibrated.collect(), numbers)
}

/// The differences from the methods of the columns, each with its p; none from itself.
type Cells = Vec<Option<(Difference, String)>>;

/// The difference between each two methods.
#[derive(Debug)]
struct Matrix {
    methods: Vec<Method>,
    /// Each cell is the row's figure minus the column's, and p.
    rows: Vec<(Method, Cells)>,
}

impl Matrix {
    fn new(choice: &Choice, comparison: &Comparison) -> Self {
        let cell = |row, column| {
            let found = comparison.difference(choice.metric, row, column)?;
            let p = format::p(found.p, comparison.draws);
            let ends = [found.difference, found.low, found.high];
            Some((Difference::new(choice.metric, found.is_significant(), ends), p))
        };
        let methods = choice.chosen.clone();
        let rows =
            methods.iter().map(|&row| (row, methods.iter().map(|&column| cell(row, column)).collect()));
        Self { rows: rows.collect(), methods }
    }
}
