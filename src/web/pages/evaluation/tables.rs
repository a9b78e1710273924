//! `/evaluation/table.csv`: the tables of Evaluation as files, with the figures as they are stored.

use atelier_core::{domain::Method, util::csv::Lines};
use atelier_engine::evaluation::{Baseline, Figure, Figures, MethodResult, Metric, Ranks};
use axum::{extract::State, response::Response};
use serde::Deserialize;

use super::{
    Choice, ChoiceQuery, Lack, known_type, new_articles::NewArticlesTable, overview::POINTS, read_figures,
    segments,
};
use crate::web::{
    http::{AppState, Kind, Problem},
    pages::{figures::csv_file, form::PageQuery, visitor::Analyst},
};

#[derive(Debug, Deserialize)]
pub(super) struct TableQuery {
    of: Table,
}

/// The tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Table {
    KnownType,
    Methods,
    NewArticles,
    Recall,
    Calibration,
    Differences,
    Segments,
}

pub(super) async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    PageQuery(TableQuery { of }): PageQuery<TableQuery>,
    PageQuery(query): PageQuery<ChoiceQuery>,
) -> Result<Response, Problem> {
    state.live_release()?;
    let lack = |lack: Lack| Problem::new(Kind::NotFound, lack.detail);
    let (live, figures) = read_figures(&state).await.map_err(lack)?;
    let choice = Choice::new(&query, &figures)?;
    let (name, lines) = match of {
        Table::KnownType => ("known-type", known_types(&figures, live.default_method())),
        Table::Methods => ("methods", methods(&figures.comparison.methods, &figures.comparison.baselines)),
        Table::NewArticles => ("new-articles", new_articles(&figures)),
        Table::Recall => {
            let ranks = live.evaluation.ranks().await.map_err(|error| lack(error.into()))?;
            ("recall", recall(&choice, &ranks))
        }
        Table::Calibration => ("calibration", calibration(&choice, &figures)),
        Table::Differences => ("differences", differences(&choice, &figures)),
        Table::Segments => ("segments", segments::table(&query, &choice, &figures)?),
    };
    Ok(csv_file(&format!("{}-{name}.csv", live.name()), lines.into_text()))
}

/// A figure and its standard error, which may be empty.
pub(super) fn cells(figure: Figure) -> [String; 2] {
    [figure.mean.to_string(), figure.standard_error.map_or_else(String::new, |error| error.to_string())]
}

/// The headings of metrics and their standard errors after some others.
pub(super) fn headed(first: &[&str], metrics: &[Metric]) -> Lines {
    let metrics = metrics.iter().flat_map(|metric| [metric.to_string(), format!("{metric}.standard_error")]);
    let heads: Vec<String> = first.iter().map(ToString::to_string).chain(metrics).collect();
    Lines::new(&heads)
}

fn known_types(figures: &Figures, default: Method) -> Lines {
    let mut lines = headed(&["name", "default"], &known_type::COLUMNS);
    for (name, method, scores) in known_type::sorted(figures).into_iter().flatten() {
        let mut row = vec![name, (method == Some(default)).to_string()];
        row.extend(known_type::figures_of(&scores).into_iter().flat_map(cells));
        lines.push(&row);
    }
    lines
}

pub(super) fn methods(methods: &[MethodResult], baselines: &[Baseline]) -> Lines {
    let mut lines = headed(&["name", "parameters"], &Metric::ALL);
    let methods = methods.iter().map(|result| (result.name(), result.parameters.to_string(), result.scores));
    let baselines = baselines.iter().map(|baseline| (baseline.name.clone(), String::new(), baseline.answers));
    for (name, parameters, scores) in methods.chain(baselines) {
        let mut row = vec![name, parameters];
        row.extend(Metric::ALL.into_iter().flat_map(|metric| cells(scores.get(metric))));
        lines.push(&row);
    }
    lines
}

fn new_articles(figures: &Figures) -> Lines {
    let names = ["recall_at_1", "recall_at_5", "mean_rank", "cross_entropy"];
    let heads = ["any", "of_its_type"].into_iter().flat_map(|of| names.map(|name| format!("{of}.{name}")));
    let heads: Vec<String> =
        ["name".to_owned()].into_iter().chain(heads).chain(["share_of_probability".to_owned()]).collect();
    let mut lines = Lines::new(&heads);
    for row in NewArticlesTable::new(&figures.comparison).into_iter().flat_map(|table| table.groups).flatten()
    {
        lines.push(&[vec![row.name], row.cells, vec![row.share]].concat());
    }
    lines
}

fn recall(choice: &Choice, ranks: &Ranks) -> Lines {
    let mut lines = Lines::new(&["method", "k", "recall", "above_none", "low", "high"]);
    for method in ranks.methods().filter(|method| choice.chosen.contains(method)) {
        let pair = ranks.pair(method, ranks, Method::None);
        for k in POINTS {
            let above = pair.zip(u16::try_from(k).ok()).and_then(|(pair, k)| pair.recall(k));
            let above = above.map(|above| [above.difference, above.low, above.high]);
            let mut row = vec![method.to_string(), k.to_string()];
            row.push(ranks.recall(method, k).map_or_else(String::new, |recall| format!("{recall:.6}")));
            row.extend(
                (0..3).map(|index| above.map_or_else(String::new, |ends| format!("{:.6}", ends[index]))),
            );
            lines.push(&row);
        }
    }
    lines
}

fn calibration(choice: &Choice, figures: &Figures) -> Lines {
    let mut lines = Lines::new(&["method", "tenth", "slots", "confidence", "accuracy"]);
    for method in &choice.chosen {
        let bins = figures.evaluation_of(*method).map_or(&[][..], |found| &found.calibration.bins);
        for (bin, tenth) in bins.iter().zip(1..) {
            lines.push(&[
                method.as_str(),
                &tenth.to_string(),
                &bin.slots.to_string(),
                &bin.confidence.to_string(),
                &bin.accuracy.to_string(),
            ]);
        }
    }
    lines
}

/// Of all metrics, once for each pair.
fn differences(choice: &Choice, figures: &Figures) -> Lines {
    let mut lines = Lines::new(&["metric", "first", "second", "difference", "low", "high", "p"]);
    for difference in &figures.comparison.differences {
        if choice.chosen.contains(&difference.first) && choice.chosen.contains(&difference.second) {
            let numbers = [difference.difference, difference.low, difference.high, difference.p];
            let names = [difference.metric.as_str(), difference.first.as_str(), difference.second.as_str()];
            let row = names.into_iter().map(str::to_owned).chain(numbers.map(|number| number.to_string()));
            lines.push(&row.collect::<Vec<_>>());
        }
    }
    lines
}
