//! Table 1: the release's methods next to the paper's and simple baselines.

use atelier_core::domain::Method;
use atelier_engine::evaluation::{
    Baseline, Bounds, Figure, Figures, MethodResult, Metric, PAPER, PaperRow, Published, Scores,
};

use super::mark;
use crate::platform::page::format;

#[derive(Debug)]
pub(super) struct TableOne {
    pub(super) methods: Vec<TableOneRow>,
    pub(super) baselines: Vec<TableOneRow>,
    /// The source of the standard errors.
    pub(super) errors: &'static str,
}

#[derive(Debug)]
pub(super) struct TableOneRow {
    pub(super) name: String,
    pub(super) mark: String,
    pub(super) ours: Vec<Cell>,
    pub(super) parameters: String,
    /// Empty if the paper has no such row.
    pub(super) paper: Vec<Cell>,
}

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) figure: String,
    pub(super) error: String,
    /// Whether it is the best of the methods in its column.
    pub(super) best: bool,
}

/// Our columns. The paper has all but the last.
pub(super) const METRICS: [Metric; 5] =
    [Metric::CrossEntropy, Metric::RecallAt1, Metric::RecallAt5, Metric::RecallAt250, Metric::Mrr];

impl TableOne {
    pub(super) fn new(figures: &Figures) -> Self {
        let results = &figures.comparison.methods;
        let over_runs = results.iter().all(|result| result.runs > 1);
        Self {
            methods: results
                .iter()
                .map(|result| TableOneRow::from_method(result, Some(figures), results))
                .collect(),
            baselines: baselines(&figures.comparison.baselines),
            errors: if over_runs { "over runs" } else { "over outfits, one run per method" },
        }
    }

    /// The oracle's bounds come after the baselines.
    pub(super) fn from_published(published: &Published) -> Self {
        let results = &published.methods;
        let mut baselines = baselines(&published.baselines);
        if let Some(Bounds { known, unknown }) = &published.bounds {
            baselines.push(TableOneRow::from_baseline("oracle, customer unknown", &unknown.scores));
            baselines.push(TableOneRow::from_baseline("oracle, customer known", &known.scores));
        }
        Self {
            methods: results.iter().map(|result| TableOneRow::from_method(result, None, results)).collect(),
            baselines,
            errors: "over runs, if a method has several",
        }
    }
}

fn baselines(baselines: &[Baseline]) -> Vec<TableOneRow> {
    baselines.iter().map(|baseline| TableOneRow::from_baseline(&baseline.name, &baseline.answers)).collect()
}

/// A method's figure. A single run has no error over runs; it has that over outfits instead, if `figures` has it.
pub(super) fn figure(result: &MethodResult, metric: Metric, figures: Option<&Figures>) -> Figure {
    let found = result.scores.get(metric);
    let over_outfits = figures.and_then(|figures| figures.evaluation_of(result.method));
    let over_outfits = over_outfits.and_then(|own| own.summary.scores.get(metric).standard_error);
    Figure { standard_error: found.standard_error.or(over_outfits), ..found }
}

impl TableOneRow {
    fn from_method(result: &MethodResult, figures: Option<&Figures>, all: &[MethodResult]) -> Self {
        let cell = |metric: Metric| {
            let figure = figure(result, metric, figures);
            Cell::new(metric, figure, is_best(metric, figure.mean, all))
        };
        Self {
            name: result.name(),
            mark: mark(result.method),
            ours: METRICS.map(cell).into(),
            parameters: format::count(result.parameters),
            paper: if result.attributes { Vec::new() } else { paper(result.method) },
        }
    }

    fn from_baseline(name: &str, answers: &Scores) -> Self {
        Self {
            name: name.to_owned(),
            mark: String::new(),
            ours: METRICS.map(|metric| Cell::new(metric, answers.get(metric), false)).into(),
            parameters: String::new(),
            paper: Vec::new(),
        }
    }
}

impl Cell {
    fn new(metric: Metric, figure: Figure, best: bool) -> Self {
        Self { figure: format::figure(metric, figure.mean), error: format::error(metric, figure), best }
    }
}

fn is_best(metric: Metric, mean: f64, results: &[MethodResult]) -> bool {
    !results.iter().any(|other| metric.better(other.scores.get(metric).mean, mean))
}

fn paper(method: Method) -> Vec<Cell> {
    let figures = |row: &PaperRow| {
        let percent = |(mean, error): (f64, f64)| (mean / 100.0, error / 100.0);
        [
            (Metric::CrossEntropy, row.cross_entropy),
            (Metric::RecallAt1, percent(row.recall_at_1)),
            (Metric::RecallAt5, percent(row.recall_at_5)),
            (Metric::RecallAt250, percent(row.recall_at_250)),
        ]
    };
    let cell = |(metric, (mean, error)): (Metric, (f64, f64))| {
        let mut column = PAPER.iter().flat_map(figures).filter(|(other, _)| *other == metric);
        let best = column.all(|(_, (other, _))| !metric.better(other, mean));
        Cell::new(metric, Figure { mean, standard_error: Some(error) }, best)
    };
    PAPER.iter().find(|row| row.method == method).map(|row| figures(row).map(cell).into()).unwrap_or_default()
}
