//! A run's curves as one small SVG: cross-entropy and recall@5 by epoch.

use atelier_core::drawing::chart::{LineChart, Mark, Scale, Series, line_chart};

use super::{EpochRecord, RunConfig};

/// The height of one chart, as its `viewBox` says.
const HEIGHT: u32 = 400;

/// The charts' classes in colours for light and dark; a lone file has no page's style sheet.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#333}path{fill:none}.grid{stroke:#ddd}.axis{stroke:#888}\
.line{stroke-width:2}.spot circle{fill:transparent}.tip{visibility:hidden}.spot:hover .tip{visibility:visible}.s1 path{stroke:#1f6feb}.s2 path{stroke:#bf5700}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}.s1 path{stroke:#79b8ff}.s2 path{stroke:#ffa657}}";

/// Draws both charts, one below the other. A mark shows the best epoch.
pub(super) fn draw(config: &RunConfig, epochs: &[EpochRecord]) -> String {
    let best = epochs.iter().rposition(|epoch| epoch.best);
    let series = |name, kind, value: fn(&EpochRecord) -> f64| Series {
        name,
        kind,
        points: epochs.iter().map(|epoch| (f64::from(epoch.epoch), value(epoch))).collect(),
        marked: best
            .map(|best| Mark { point: best, says: format!("epoch {}, the best", epochs[best].epoch) })
            .into_iter()
            .collect(),
        band: Vec::new(),
    };
    let chart = |title, y, series: Vec<Series<'_>>| {
        let last = epochs.last().map_or(2.0, |epoch| f64::from(epoch.epoch).max(2.0));
        let values = series.iter().flat_map(|series| &series.points).map(|&(_, value)| value);
        line_chart(&LineChart {
            title,
            about: "The mark is the best epoch.",
            x: ("epoch", Scale::Linear { from: 1.0, to: last }, whole_number),
            y: (y, Scale::around(values), short),
            series,
        })
    };
    let loss = chart(
        "Cross-entropy by epoch",
        "cross-entropy (nats)",
        vec![
            series("training", 0, |epoch| epoch.training.cross_entropy),
            series("development", 1, |epoch| epoch.development.cross_entropy),
        ],
    );
    let recall = chart(
        "Recall@5 by epoch",
        "recall@5 (%)",
        vec![series("development", 1, |epoch| 100.0 * epoch.development.recall_at_5)],
    );
    let label = format!(
        "Method {}, seed {}: cross-entropy and recall@5 by epoch",
        config.model.method, config.fit.seed
    );
    draw_alone(&label, &[loss, recall])
}

/// Charts, one below the other, as a file of their own.
pub fn draw_alone(label: &str, charts: &[String]) -> String {
    let (mut y, mut placed) = (0, String::new());
    for chart in charts {
        let place = format!("<svg y=\"{y}\" width=\"760\" height=\"{HEIGHT}\" ");
        placed += &chart.replacen("<svg ", &place, 1);
        y += HEIGHT;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 {y}\" role=\"img\" aria-label=\"{label}\"><style>{STYLE}</style>\
         {placed}</svg>\n"
    )
}

/// Ticks between epochs have no label.
fn whole_number(epoch: f64) -> String {
    if epoch.fract() == 0.0 { epoch.to_string() } else { String::new() }
}

fn short(value: f64) -> String {
    ((value * 1e3).round() / 1e3).to_string()
}
