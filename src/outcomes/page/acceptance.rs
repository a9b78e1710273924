//! `/operations/acceptance` and `/operations/acceptance.csv`: how often suggestions were accepted.

use std::ops::RangeInclusive;

use askama::Template;
use atelier_core::{
    drawing::chart::{
        LineChart, Mark, Scale, Series, Whisker, WhiskerRow, Whiskers, Written, line_chart, whiskers,
    },
    util::{calendar, csv::Lines},
};
use axum::{
    extract::State,
    response::{Html, Response},
};
use serde::{Deserialize, Serialize};

use super::row::OutcomesRow;
use crate::{
    outcomes::{
        Source,
        acceptance::{self, Acceptance, By, USUAL_DAYS, describe, money, share},
        sql::acceptance::{CountedBy, CountedOnly, Outcomes, Sales, day_of},
    },
    people::page::visitor::Analyst,
    platform::page::wording,
    platform::{
        http::{AppState, Finding, Problem, fault::query_problem},
        page::{
            figures::{self, csv_file},
            form::{self, PageQuery},
            format,
            operations::Tab,
            shell::{Page, Shell},
        },
    },
};

const PERIODS: [u32; 3] = [7, 30, 90];
/// The most rows of a chart; the table has all.
const MOST_DRAWN: usize = 20;

#[derive(Template)]
#[template(path = "outcomes/acceptance.html")]
struct AcceptancePage {
    shell: Shell,
    tab: Tab,
    /// For an address, and for people.
    by: String,
    label: String,
    days: u32,
    periods: [u32; 3],
    filters: Vec<Filter>,
    csv: String,
    /// The choices: those of suggestions, and the customers' features.
    plain: Vec<(String, String)>,
    features: Vec<(String, String)>,
    of_customers: bool,
    svg: String,
    drawn: usize,
    rows: Vec<OutcomesRow>,
    total: OutcomesRow,
    /// Why suggestions were refused, and how often.
    reasons: Vec<(&'static str, String)>,
    /// All events of the shop: kind, count and value.
    events: Vec<[String; 3]>,
}

/// A choice of the suggestions to count.
struct Filter {
    name: &'static str,
    label: &'static str,
    /// Each with its words, and whether it is chosen.
    values: Vec<(String, String, bool)>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct AcceptanceQuery {
    by: Option<String>,
    days: Option<u32>,
    release: Option<String>,
    method: Option<String>,
    arm: Option<String>,
    r#type: Option<String>,
    slot: Option<u32>,
    source: Option<Source>,
}

impl AcceptanceQuery {
    async fn read(&self, state: &AppState) -> Result<(By, u32, Acceptance), Problem> {
        let refuse = |name, detail| Problem::invalid(vec![Finding::parameter(name, detail)]);
        let by =
            self.by.as_ref().map_or(Ok(By::DAY), |by| by.parse()).map_err(|detail| refuse("by", detail))?;
        let days = self.days.unwrap_or(USUAL_DAYS);
        if !PERIODS.contains(&days) {
            return Err(refuse("days", format!("a period has 7, 30 or 90 days, found {days}")));
        }
        let schema = state.releases().schema();
        let Self { release, method, arm, r#type, slot, source, .. } = self.clone();
        let only = CountedOnly { release, method, arm, article_type: r#type, slot, source };
        let found = acceptance::acceptance(&state.store, &schema, &by, &only, days, state.now()).await;
        Ok((by, days, found.map_err(query_problem)?))
    }

    /// The choices in the period.
    async fn filters(&self, state: &AppState, since: i64) -> Result<Vec<Filter>, Problem> {
        let slot = self.slot.map(|slot| slot.to_string());
        let source = self.source.map(|source| source.to_string());
        let all = [
            ("method", "Method", CountedBy::Method, &self.method),
            ("type", "Type", CountedBy::ArticleType, &self.r#type),
            ("slot", "Place", CountedBy::Slot, &slot),
            ("arm", "Arm", CountedBy::Arm, &self.arm),
            ("release", "Release", CountedBy::Release, &self.release),
            ("source", "Reported by", CountedBy::Source, &source),
        ];
        let mut filters = Vec::new();
        for (name, label, by, chosen) in all {
            let found = state.store.feedback().acceptance(by, since, &CountedOnly::default()).await?;
            let mut found: Vec<String> = found.into_iter().map(|(value, _)| value).collect();
            found.retain(|value| !value.is_empty());
            found.extend(chosen.clone().filter(|chosen| !found.contains(chosen)));
            let words = |value: &str| match by {
                CountedBy::Slot => place(value),
                CountedBy::Source => describe(by, value.to_owned()),
                CountedBy::ArticleType => wording::spaced(value),
                _ => value.to_owned(),
            };
            let choice = |value: String| {
                let (words, is_chosen) = (words(&value), chosen.as_ref() == Some(&value));
                (value, words, is_chosen)
            };
            if !found.is_empty() {
                filters.push(Filter { name, label, values: found.into_iter().map(choice).collect() });
            }
        }
        Ok(filters)
    }
}

pub(crate) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<AcceptanceQuery>,
) -> Result<Html<String>, Problem> {
    let (by, days, Acceptance { mut rows, total }) = query.read(&state).await?;
    if by == By::Counted(CountedBy::Slot) {
        for (slot, _) in &mut rows {
            *slot = place(slot);
        }
    }
    let schema = state.releases().schema();
    let choice = |by: By| (by.to_string(), by.label(&schema));
    let label = by.label(&schema);
    let today = day_of(state.now());
    let svg = if by == By::DAY {
        draw_days(today + 1 - i64::from(days)..=today, &rows)
    } else {
        draw_values(&label, &rows)
    };
    let notation = &state.notation;
    let drawn = if by == By::DAY { rows.len() } else { MOST_DRAWN.min(rows.len()) };
    if by == By::DAY {
        rows.reverse();
    }
    let since = day_of(state.now()) + 1 - i64::from(days);
    let reasons = state.store.feedback().refusal_reasons(since).await?;
    let events = state.store.events().counts(since).await?;
    let page = AcceptancePage {
        events: events
            .into_iter()
            .map(|(kind, events, value)| {
                [kind.shop_word().to_owned(), notation.count(events), notation.price(money(value), None)]
            })
            .collect(),
        reasons: reasons
            .into_iter()
            .map(|(reason, count)| (reason.in_words(), notation.count(count)))
            .collect(),
        shell: visitor.shell(Page::Operations),
        tab: Tab::Acceptance,
        by: by.to_string(),
        days,
        periods: PERIODS,
        filters: query.filters(&state, since).await?,
        csv: form::address("/operations/acceptance.csv", &query),
        plain: CountedBy::ALL.map(|by| choice(By::Counted(by))).into(),
        features: schema.features().iter().map(|feature| choice(By::Feature(feature.name.clone()))).collect(),
        of_customers: matches!(by, By::Feature(_)),
        svg,
        drawn,
        rows: rows.iter().map(|(value, outcomes)| OutcomesRow::new(value, *outcomes, notation)).collect(),
        total: OutcomesRow::new("all", total, notation),
        label,
    };
    Ok(Html(page.render()?))
}

pub(crate) async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<AcceptanceQuery>,
) -> Result<Response, Problem> {
    let (by, days, Acceptance { rows, .. }) = query.read(&state).await?;
    let by = by.to_string();
    let mut lines = Lines::new(&[
        by.as_str(),
        "shown",
        "accepted",
        "rejected",
        "bought",
        "returned",
        "kept",
        "revenue",
        "window_bought",
        "window_returned",
        "window_kept",
        "window_revenue",
        "acceptance",
        "low",
        "high",
    ]);
    let sales = |Sales { bought, returned, kept, revenue }: Sales| {
        [bought.to_string(), returned.to_string(), kept.to_string(), money(revenue).to_string()]
    };
    for (value, outcomes) in rows {
        let Outcomes { shown, accepted, rejected, sold, in_window } = outcomes;
        let mut cells = vec![value];
        cells.extend([shown, accepted, rejected].map(|count| count.to_string()));
        cells.extend(sales(sold).into_iter().chain(sales(in_window)));
        let found = share(accepted, shown);
        let ends =
            [found.map(|share| share.value), found.map(|share| share.low), found.map(|share| share.high)];
        cells.extend(ends.map(|end| end.map_or_else(String::new, figures::number)));
        lines.push(&cells);
    }
    Ok(csv_file(&format!("acceptance-{by}-{days}-days.csv"), lines.into_text()))
}

/// `piece 1`, of the number that files and the API have.
fn place(slot: &str) -> String {
    slot.parse::<u32>().map_or_else(|_| slot.to_owned(), |slot| format!("piece {}", slot + 1))
}

/// A line with its interval; days without suggestions have no point.
fn draw_days(days: RangeInclusive<i64>, rows: &[(String, Outcomes)]) -> String {
    let number = |day: i64| f64::from(i32::try_from(day).expect("a day of this era"));
    let mut series = Series { name: "", kind: 0, points: Vec::new(), marked: Vec::new(), band: Vec::new() };
    for day in days.clone() {
        let date = calendar::date(day);
        let found = rows.iter().find(|(value, _)| *value == date);
        let Some((outcomes, share)) =
            found.and_then(|(_, outcomes)| Some((outcomes, share(outcomes.accepted, outcomes.shown)?)))
        else {
            continue;
        };
        let says = format!("{date}: {} of {}", share.in_words(), figures::count(outcomes.shown));
        series.marked.push(Mark { point: series.points.len(), says });
        series.points.push((number(day), share.value));
        series.band.push((number(day), share.low, share.high));
    }
    let ends = series.band.iter().flat_map(|(_, low, high)| [*low, *high]);
    let y = ("accepted, of those shown", Scale::around(ends), format::percent as Written);
    line_chart(&LineChart {
        title: "Acceptance by day",
        about: "A point for each day, with its 95 % interval as a band.",
        x: ("day", Scale::Linear { from: number(*days.start()), to: number(*days.end()) }, day_and_month),
        y,
        series: vec![series],
    })
}

/// `11-21`, of a number of days since 1970.
fn day_and_month(day: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a whole number of days")]
    let date = calendar::date(day as i64);
    date.split_once('-').map_or(String::new(), |(_, rest)| rest.to_owned())
}

fn draw_values(label: &str, rows: &[(String, Outcomes)]) -> String {
    let row = |(value, outcomes): &(String, Outcomes)| {
        let share = share(outcomes.accepted, outcomes.shown)?;
        Some(WhiskerRow {
            name: value.clone(),
            note: format!("{} shown", figures::count(outcomes.shown)),
            dots: vec![Some(Whisker { at: share.value, low: share.low, high: share.high })],
            says: vec![format!("{value}: {}", share.in_words())],
        })
    };
    let rows: Vec<WhiskerRow> = rows.iter().filter_map(row).take(MOST_DRAWN).collect();
    let ends = rows.iter().flat_map(|row| &row.dots).flatten().flat_map(|dot| [dot.low, dot.high]);
    whiskers(&Whiskers {
        title: &format!("Acceptance by {label}"),
        about: "A dot for each share of accepted suggestions, with its 95 % interval.",
        x: ("accepted, of those shown", Scale::around(ends), format::percent),
        kinds: vec![0],
        rows,
    })
}
