//! Table 1: the release's methods beside the paper's, and beside what counting achieves.

use super::{choice::kind, written};
use crate::{
    domain::Method,
    drawing::chart,
    service::evaluation::{
        Baseline, Bounds, Figure, Figures, MethodResult, Metric, PAPER, PaperRow, Published, Scores,
    },
};

/// The whole table.
#[derive(Debug)]
pub(super) struct TableOne {
    pub(super) methods: Vec<Row>,
    pub(super) baselines: Vec<Row>,
    /// What the errors are over.
    pub(super) errors: &'static str,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// How a method looks in charts.
    pub(super) mark: String,
    pub(super) ours: Vec<Cell>,
    pub(super) parameters: String,
    /// Empty where the paper has no such line.
    pub(super) paper: Vec<Cell>,
}

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) figure: String,
    pub(super) error: String,
    /// The best of its column, among methods.
    pub(super) best: bool,
}

/// The columns of ours; the paper has all but the last.
pub(super) const METRICS: [Metric; 5] =
    [Metric::CrossEntropy, Metric::RecallAt1, Metric::RecallAt5, Metric::RecallAt250, Metric::Mrr];

impl TableOne {
    pub(super) fn new(figures: &Figures) -> Self {
        let results = &figures.comparison.methods;
        let over_runs = results.iter().all(|result| result.runs > 1);
        let of_outfits = |method| figures.of(method).map(|evaluation| evaluation.summary.scores);
        Self {
            methods: results
                .iter()
                .map(|result| Row::of_method(result, of_outfits(result.method), results))
                .collect(),
            baselines: baselines(&figures.comparison.baselines),
            errors: if over_runs { "over runs" } else { "over outfits, of one run a method" },
        }
    }

    /// The oracle's bounds stand beneath the baselines.
    pub(super) fn of_published(published: &Published) -> Self {
        let results = &published.methods;
        let mut baselines = baselines(&published.baselines);
        if let Some(Bounds { known, unknown }) = &published.bounds {
            baselines.push(Row::of_baseline("oracle, customer unknown", &unknown.scores));
            baselines.push(Row::of_baseline("oracle, customer known", &known.scores));
        }
        Self {
            methods: results.iter().map(|result| Row::of_method(result, None, results)).collect(),
            baselines,
            errors: "over runs, where a method has several",
        }
    }
}

fn baselines(baselines: &[Baseline]) -> Vec<Row> {
    baselines.iter().map(|baseline| Row::of_baseline(&baseline.name, &baseline.answers)).collect()
}

impl Row {
    /// A single run has no error over runs, but one over the outfits that it was asked about, where that is known.
    fn of_method(result: &MethodResult, of_outfits: Option<Scores>, all: &[MethodResult]) -> Self {
        let cell = |metric: Metric| {
            let found = result.scores.of(metric);
            let of_outfits = of_outfits.and_then(|scores| scores.of(metric).standard_error);
            let figure = Figure { standard_error: found.standard_error.or(of_outfits), ..found };
            Cell::new(metric, figure, is_best(metric, found.mean, all))
        };
        Self {
            name: result.name(),
            mark: chart::mark(kind(result.method)),
            ours: METRICS.map(cell).into(),
            parameters: written::count(result.parameters),
            paper: if result.attributes { Vec::new() } else { paper(result.method) },
        }
    }

    fn of_baseline(name: &str, answers: &Scores) -> Self {
        Self {
            name: name.to_owned(),
            mark: String::new(),
            ours: METRICS.map(|metric| Cell::new(metric, answers.of(metric), false)).into(),
            parameters: String::new(),
            paper: Vec::new(),
        }
    }
}

impl Cell {
    fn new(metric: Metric, figure: Figure, best: bool) -> Self {
        Self { figure: written::figure(metric, figure.mean), error: written::error(metric, figure), best }
    }
}

fn is_best(metric: Metric, mean: f64, results: &[MethodResult]) -> bool {
    !results.iter().any(|other| metric.better(other.scores.of(metric).mean, mean))
}

fn paper(method: Method) -> Vec<Cell> {
    let of = |row: &PaperRow| {
        let percent = |(mean, error): (f64, f64)| (mean / 100.0, error / 100.0);
        [
            (Metric::CrossEntropy, row.cross_entropy),
            (Metric::RecallAt1, percent(row.recall_at_1)),
            (Metric::RecallAt5, percent(row.recall_at_5)),
            (Metric::RecallAt250, percent(row.recall_at_250)),
        ]
    };
    let cell = |(metric, (mean, error)): (Metric, (f64, f64))| {
        let best = PAPER.iter().flat_map(of).filter(|(other, _)| *other == metric);
        let best = best.into_iter().all(|(_, (other, _))| !metric.better(other, mean));
        Cell::new(metric, Figure { mean, standard_error: Some(error) }, best)
    };
    PAPER.iter().find(|row| row.method == method).map(|row| of(row).map(cell).into()).unwrap_or_default()
}
