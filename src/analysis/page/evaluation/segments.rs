//! `/evaluation/segments`: how methods perform on parts of the outfits, split by a feature's values.

use askama::Template;
use atelier_core::{
    domain::{Method, Schema},
    drawing::chart::{Scale, Whisker, WhiskerRow, Whiskers, whiskers},
    util::csv::Lines,
};
use atelier_engine::evaluation::{Figures, LEAST_SLOTS, Metric, Segment, Summary};
use axum::{extract::State, response::Html};

use super::{Choice, ChoiceQuery, Drawn, Numbers, Tab, read_figures, series_kind, tables};
use crate::{
    people::page::visitor::Analyst,
    platform::{
        http::{AppState, Finding, Problem},
        page::{Page, PageQuery, Shell, format},
    },
};

/// Segments with fewer slots are marked: their recall's standard error exceeds two percentage points.
const SMALL: u64 = 400;
/// The most dots that say their figures when they are pointed at: each takes 200 bytes of the page.
const MOST_SPOTS: usize = 240;

#[derive(Template)]
#[template(path = "analysis/evaluation/segments.html")]
struct SegmentsPage {
    shell: Shell,
    release: String,
    choice: Choice,
    /// Each feature's name and label, and whether it is shown.
    features: Vec<(String, String, bool)>,
    heading: String,
    drawn: Option<Drawn>,
    /// The query of the table's file.
    query: String,
}

pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<ChoiceQuery>,
) -> Result<Html<String>, Problem> {
    let shell = visitor.shell(Page::Evaluation);
    let (live, figures) = match read_figures(&state).await {
        Ok(found) => found,
        Err(lack) => return lack.page(shell, Tab::Segments),
    };
    let choice = Choice::new(&query, &figures)?;
    let by = feature(&query, &figures)?;
    let schema = live.serving.release().schema();
    let features = figures.features().into_iter();
    let features = features.map(|name| (name.to_owned(), label(name, schema), by == Some(name)));
    let page = SegmentsPage {
        release: live.name().to_owned(),
        features: features.collect(),
        heading: by.map_or_else(String::new, |by| heading(choice.metric, &label(by, schema))),
        drawn: by.map(|by| draw(by, &label(by, schema), &choice, &figures)),
        query: choice.query(),
        choice,
        shell,
    };
    Ok(Html(page.render()?))
}

/// The feature in the query, or else the first one.
fn feature<'a>(query: &ChoiceQuery, figures: &'a Figures) -> Result<Option<&'a str>, Problem> {
    let features = figures.features();
    let Some(by) = &query.by else {
        return Ok(features.first().copied());
    };
    let found = features.iter().find(|feature| *feature == by).copied();
    let detail = || format!("there are no segments by {by:?}; choose one of {}", features.join(", "));
    found.map(Some).ok_or_else(|| Problem::invalid(vec![Finding::parameter("by", detail())]))
}

fn label(feature: &str, schema: &Schema) -> String {
    match feature {
        "customer" => "customer seen in training".to_owned(),
        "articles" => "number of articles".to_owned(),
        "type" => "type of the missing article".to_owned(),
        name => schema.feature(name).map_or_else(|| name.to_owned(), |feature| feature.label.clone()),
    }
}

/// `Recall@1 by age`
fn heading(metric: Metric, label: &str) -> String {
    let name = metric.label();
    let (first, rest) = name.split_at(1);
    format!("{}{rest} by {label}", first.to_uppercase())
}

fn draw(by: &str, label: &str, choice: &Choice, figures: &Figures) -> Drawn {
    let metric = choice.metric;
    let groups = groups(by, &choice.chosen, figures);
    let dot = |summary: &Summary| {
        let figure = summary.scores.get(metric);
        // The 95 % confidence interval.
        let reach = 1.96 * figure.standard_error.unwrap_or(0.0);
        Whisker { at: figure.mean, low: figure.mean - reach, high: figure.mean + reach }
    };
    let says = |method: Method, value: &str, summary: &Summary| {
        let Whisker { at, low, high } = dot(summary);
        let [at, low, high] = [at, low, high].map(|number| format::with_unit(metric, number));
        format!("{method}, {value}: {at} ({low} to {high})")
    };
    let note = |slots: u64| {
        let few = if slots < SMALL { ", few" } else { "" };
        format!("{} slots{few}", format::count(slots))
    };
    let rows: Vec<WhiskerRow> = groups
        .iter()
        .map(|(value, slots, summaries)| WhiskerRow {
            name: (*value).to_owned(),
            note: note(*slots),
            dots: summaries.iter().map(|summary| summary.as_ref().map(dot)).collect(),
            says: choice
                .chosen
                .iter()
                .zip(summaries)
                .filter(|_| groups.len() * choice.chosen.len() <= MOST_SPOTS)
                .map(|(method, summary)| {
                    summary.as_ref().map_or_else(String::new, |summary| says(*method, value, summary))
                })
                .collect(),
        })
        .collect();
    let ends = rows.iter().flat_map(|row| row.dots.iter().flatten()).flat_map(|dot| [dot.low, dot.high]);
    let svg = whiskers(&Whiskers {
        title: &heading(metric, label),
        about: "A dot for each method's figure, with its 95 % confidence interval.",
        x: (metric.label(), Scale::around(ends), format::on_axis(metric)),
        kinds: choice.chosen.iter().map(|method| series_kind(*method)).collect(),
        rows,
    });
    let cell = |summary: &Option<Summary>| {
        summary.as_ref().map_or_else(String::new, |summary| {
            let figure = summary.scores.get(metric);
            format!("{} {}", format::figure(metric, figure.mean), format::error(metric, figure))
        })
    };
    let unit = if metric.is_share() { " in percent" } else { "" };
    let columns = [label.to_owned(), "slots".to_owned()];
    let numbers = Numbers {
        caption: format!("{}{unit}, ± standard error over outfits", metric.label()),
        columns: columns.into_iter().chain(choice.chosen.iter().map(Method::to_string)).collect(),
        rows: groups
            .iter()
            .map(|(value, slots, summaries)| {
                let cells = std::iter::once(format::count(*slots)).chain(summaries.iter().map(cell));
                ((*value).to_owned(), cells.collect())
            })
            .collect(),
    };
    Drawn { svg, numbers }
}

pub(super) fn table(query: &ChoiceQuery, choice: &Choice, figures: &Figures) -> Result<Lines, Problem> {
    let by = feature(query, figures)?.unwrap_or("value");
    let mut rows: Vec<tables::Row> = Vec::new();
    for (value, slots, summaries) in groups(by, &choice.chosen, figures) {
        for (method, summary) in choice.chosen.iter().zip(summaries) {
            let Some(summary) = summary else { continue };
            let cells = vec![value.to_owned(), slots.to_string(), method.to_string()];
            rows.push((cells, vec![summary.scores.get(choice.metric)]));
        }
    }
    Ok(tables::table(&[by, "slots", "method"], &[choice.metric], &rows))
}

/// A feature's value, its number of slots, and each method's figures.
type Group<'a> = (&'a str, u64, Vec<Option<Summary>>);

fn groups<'a>(by: &str, methods: &[Method], figures: &'a Figures) -> Vec<Group<'a>> {
    let segments = |method: &Method| -> &'a [Segment] {
        figures.evaluation_of(*method).map_or(&[], |evaluation| &evaluation.segments)
    };
    let mut values: Vec<(&str, u64)> = Vec::new();
    for segment in methods.iter().flat_map(segments).filter(|segment| segment.by == by) {
        if !values.iter().any(|(value, _)| *value == segment.value) {
            values.push((&segment.value, segment.summary.slots));
        }
    }
    let summary = |method: &Method, value: &str| {
        let found = segments(method).iter().find(|segment| segment.by == by && segment.value == value);
        found.map(|segment| segment.summary)
    };
    let group = |(value, slots): (&'a str, u64)| {
        (value, slots, methods.iter().map(|method| summary(method, value)).collect())
    };
    values.into_iter().map(group).collect()
}
