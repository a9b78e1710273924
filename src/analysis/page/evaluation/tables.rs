//! `/evaluation/table.csv`: the tables of Evaluation as files, with the figures as they are stored.

use atelier_core::{domain::Method, util::csv::Lines};
use atelier_engine::evaluation::{
    Answered, Baseline, Comparison, Figure, Figures, MethodResult, Metric, Ranks, TypeScores,
};
use axum::{extract::State, response::Response};
use serde::Deserialize;

use super::{
    Choice, ChoiceQuery, Shortfall, known_type, new_articles, overview::POINTS, read_figures, segments,
    table_one,
};
use crate::{
    people::page::visitor::Analyst,
    platform::{
        http::{AppState, Kind, Problem},
        page::{
            PageQuery,
            figures::{csv_file, number},
        },
    },
};

#[derive(Debug, Deserialize)]
pub(super) struct TableQuery {
    of: Table,
}

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
    let lack = |lack: Shortfall| Problem::new(Kind::NotFound, lack.detail);
    let (live, figures) = read_figures(&state).await.map_err(lack)?;
    let choice = Choice::new(&query, &figures)?;
    let (name, lines) = match of {
        Table::KnownType => ("known-type", known_types(&figures, live.default_method())),
        Table::Methods => {
            let Comparison { methods: results, baselines, .. } = &figures.comparison;
            ("methods", methods(results, baselines, Some(&figures)))
        }
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

/// The first cells of a row, and its figures.
pub(super) type Row = (Vec<String>, Vec<Figure>);

/// A table of metrics, each with its standard error if any row has one.
pub(super) fn table(first: &[&str], metrics: &[Metric], rows: &[Row]) -> Lines {
    let has_error = |column: usize| rows.iter().any(|(_, figures)| figures[column].standard_error.is_some());
    let has_error: Vec<bool> = (0..metrics.len()).map(has_error).collect();
    let mut heads: Vec<String> = first.iter().map(ToString::to_string).collect();
    for (metric, has_error) in metrics.iter().zip(&has_error) {
        heads.push(metric.to_string());
        heads.extend(has_error.then(|| format!("{metric}.standard_error")));
    }
    let mut lines = Lines::new(&heads);
    for (cells, figures) in rows {
        let mut row = cells.clone();
        for (figure, has_error) in figures.iter().zip(&has_error) {
            row.push(number(figure.mean));
            row.extend(has_error.then(|| figure.standard_error.map_or_else(String::new, number)));
        }
        lines.push(&row);
    }
    lines
}

fn known_types(figures: &Figures, default: Method) -> Lines {
    let row = |(name, method, scores): (String, Option<Method>, TypeScores)| {
        (
            vec![name, (method == Some(default)).to_string()],
            known_type::figures_of(&scores).map(|(_, figure)| figure).to_vec(),
        )
    };
    let rows: Vec<Row> = known_type::sorted(figures).into_iter().flatten().map(row).collect();
    table(&["name", "default"], &known_type::COLUMNS, &rows)
}

/// Where a method has one run, the errors are over outfits if `figures` has them.
pub(super) fn methods(methods: &[MethodResult], baselines: &[Baseline], figures: Option<&Figures>) -> Lines {
    let method = |result: &MethodResult| {
        let scores = Metric::ALL.map(|metric| table_one::figure(result, metric, figures));
        (vec![result.name(), result.parameters.to_string()], scores.to_vec())
    };
    let baseline = |baseline: &Baseline| {
        let scores = Metric::ALL.map(|metric| baseline.answers.get(metric));
        (vec![baseline.name.clone(), String::new()], scores.to_vec())
    };
    let rows: Vec<Row> = methods.iter().map(method).chain(baselines.iter().map(baseline)).collect();
    table(&["name", "parameters"], &Metric::ALL, &rows)
}

fn new_articles(figures: &Figures) -> Lines {
    let names = ["recall_at_1", "recall_at_5", "mean_rank", "cross_entropy"];
    let heads = ["any", "of_its_type"].into_iter().flat_map(|of| names.map(|name| format!("{of}.{name}")));
    let heads: Vec<String> =
        ["name".to_owned()].into_iter().chain(heads).chain(["share_of_probability".to_owned()]).collect();
    let mut lines = Lines::new(&heads);
    let figures_of = |Answered { any, told_type }: &Answered| {
        let scores = [any, told_type].into_iter();
        let scores = scores.flat_map(|of| [of.recall_at_1, of.recall_at_5, of.mean_rank, of.cross_entropy]);
        scores.map(|figure| number(figure.mean)).collect::<Vec<_>>()
    };
    for (name, found) in new_articles::open(&figures.comparison) {
        let share = number(found.shares.of_probability.mean);
        lines.push(&[vec![name], figures_of(&found.new), vec![share]].concat());
    }
    for baseline in &figures.comparison.new_article_baselines {
        lines.push(&[vec![baseline.name.clone()], figures_of(&baseline.new), vec![String::new()]].concat());
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
            row.push(ranks.recall(method, k).map_or_else(String::new, number));
            row.extend((0..3).map(|index| above.map_or_else(String::new, |ends| number(ends[index]))));
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
                &number(bin.confidence),
                &number(bin.accuracy),
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
            let row = names.into_iter().map(str::to_owned).chain(numbers.map(number));
            lines.push(&row.collect::<Vec<_>>());
        }
    }
    lines
}
