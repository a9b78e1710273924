//! `/evaluation`: Table 1, recall curves, calibration, and between which methods there is a difference.

use askama::Template;
use axum::{extract::State, response::Html};

use super::{
    Tab,
    choice::{Choice, ChoiceQuery, kind},
    lack,
    numbers::{Drawn, Numbers},
    significance::Matrix,
    table_one::{METRICS, TableOne},
    words, written,
};
use crate::{
    domain::Method,
    drawing::chart::{LineChart, Reliability, Scale, Series, line_chart, reliability},
    service::evaluation::{Bin, Figures, MOST, Ranks},
    web::{
        http::{AppState, Problem},
        pages::{
            form::PageQuery,
            shell::{Page, Shell},
            visitor::Analyst,
        },
    },
};

#[derive(Template)]
#[template(path = "evaluation/index.html")]
struct OverviewPage {
    shell: Shell,
    tab: Tab,
    release: String,
    data: String,
    outfits: String,
    slots: String,
    draws: u64,
    table: TableOne,
    words: Vec<String>,
    choice: Choice,
    /// Or why there are none.
    curves: Result<Drawn, String>,
    calibration: Vec<Calibrated>,
    bins: Numbers,
    matrix: Matrix,
}

/// One method's reliability.
struct Calibrated {
    method: Method,
    svg: String,
    error: String,
}

pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<ChoiceQuery>,
) -> Result<Html<String>, Problem> {
    let (shell, tab) = (visitor.shell(Page::Evaluation), Tab::Overview);
    let Some(live) = state.releases.current() else { return lack::no_release(shell, tab) };
    let figures = match live.evaluation.figures().await {
        Ok(figures) => figures,
        Err(found) => return lack::page(shell, tab, &found),
    };
    let ranks = live.evaluation.ranks().await;
    let choice = Choice::new(&query, &figures)?;
    let comparison = &figures.comparison;
    let (calibration, bins) = calibration(&choice, &figures);
    let page = OverviewPage {
        tab,
        release: live.name().to_owned(),
        data: comparison.data.clone(),
        outfits: written::count(comparison.outfits),
        slots: written::count(comparison.slots),
        draws: comparison.draws,
        table: TableOne::new(&figures),
        words: words::about(&figures),
        curves: ranks.map(|ranks| curves(&choice, &ranks)).map_err(|found| found.to_string()),
        calibration,
        bins,
        matrix: Matrix::new(&choice, comparison),
        choice,
        shell,
    };
    Ok(Html(page.render()?))
}

/// Where the curves have a point: every rank where they bend, fewer where they are flat.
const POINTS: [usize; 27] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 25, 30, 35, 40, 50, 60, 80, 100, 120, 150, 180, 210, MOST,
];
/// Those of them that have a mark, and stand in the table.
const MARKED: [usize; 8] = [1, 2, 5, 10, 20, 50, 100, MOST];

fn curves(choice: &Choice, ranks: &Ranks) -> Drawn {
    let number = |k: usize| f64::from(u32::try_from(k).expect("k is at most 250; this is a bug"));
    let recall = |method, k| ranks.recall(method, k).unwrap_or(0.0);
    let methods: Vec<Method> = ranks.methods().filter(|method| choice.chosen.contains(method)).collect();
    let series = methods.iter().map(|&method| Series {
        name: method.as_str(),
        kind: kind(method),
        points: POINTS.iter().map(|&k| (number(k), recall(method, k))).collect(),
        marked: (0..POINTS.len()).filter(|&place| MARKED.contains(&POINTS[place])).collect(),
    });
    let chart = LineChart {
        title: "Recall curves",
        about: "How often each method has the missing article among its first k suggestions, for k from 1 to 250.",
        x: ("first k suggestions", Scale::Log { from: 1.0, to: number(MOST) }, written::plain),
        y: ("recall@k", Scale::Linear { from: 0.0, to: 1.0 }, written::percent),
        series: series.collect(),
    };
    let row = |&method: &Method| {
        let cells = MARKED.map(|k| format!("{:.2}", 100.0 * recall(method, k)));
        (method.to_string(), cells.into())
    };
    let columns = std::iter::once("method".to_owned()).chain(MARKED.map(|k| format!("@{k}")));
    let numbers = Numbers {
        caption: "Recall at k, in percent of all slots".to_owned(),
        columns: columns.collect(),
        rows: methods.iter().map(row).collect(),
    };
    Drawn { svg: line_chart(&chart), numbers }
}

fn calibration(choice: &Choice, figures: &Figures) -> (Vec<Calibrated>, Numbers) {
    let found: Vec<_> =
        choice.chosen.iter().filter_map(|&method| Some((method, &figures.of(method)?.calibration))).collect();
    let bins = found.iter().flat_map(|(_, calibration)| &calibration.bins);
    let most = bins.fold(0.1, |most: f64, bin| most.max(bin.confidence).max(bin.accuracy));
    let calibrated = found.iter().map(|&(method, calibration)| Calibrated {
        method,
        svg: reliability(&Reliability {
            title: &format!("Calibration of {method}"),
            about: "How often the article put first was the missing one, against how sure the method was.",
            kind: kind(method),
            bins: calibration.bins.iter().map(|bin| (bin.confidence, bin.accuracy)).collect(),
            most: (most * 10.0).ceil() / 10.0,
        }),
        error: format!("{:.2}", 100.0 * calibration.expected_error),
    });
    let cell = |Bin { confidence, accuracy, .. }: &Bin| {
        format!("{:.1} → {:.1}", 100.0 * confidence, 100.0 * accuracy)
    };
    let bins = found.iter().map(|(_, calibration)| calibration.bins.len()).max().unwrap_or(0);
    let numbers = Numbers {
        caption: "Percent: how sure → how often right, from the least to the most sure tenth of the slots"
            .to_owned(),
        columns: std::iter::once("method".to_owned()).chain((1..=bins).map(|bin| bin.to_string())).collect(),
        rows: found
            .iter()
            .map(|(method, calibration)| (method.to_string(), calibration.bins.iter().map(cell).collect()))
            .collect(),
    };
    (calibrated.collect(), numbers)
}
