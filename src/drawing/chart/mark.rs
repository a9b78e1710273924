//! A mark for each series, so that none is known by its colour alone.

use super::svg::Short;

/// How many series have a colour and a mark of their own.
pub(super) const KINDS: usize = 10;

/// The classes of a series: its colour, and whether its marks are filled.
pub(super) fn classes(series: usize) -> String {
    let hollow = if series % KINDS >= KINDS / 2 { " hollow" } else { "" };
    format!("series s{}{hollow}", series % KINDS + 1)
}

/// The outline of a series' mark around a point: five shapes, filled and then hollow.
pub(super) fn outline(series: usize, (x, y): (f64, f64), size: f64) -> String {
    let r = size;
    let at = |dx: f64, dy: f64| format!("{} {}", Short(x + dx), Short(y + dy));
    match series % (KINDS / 2) {
        0 => format!(
            "M{}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",
            at(-r, 0.0),
            r = Short(r),
            d = Short(2.0 * r)
        ),
        1 => {
            let edge = 1.8 * r;
            format!("M{}h{s}v{s}h-{s}z", at(-edge / 2.0, -edge / 2.0), s = Short(edge))
        }
        2 => format!("M{}L{}L{}z", at(0.0, -1.2 * r), at(1.2 * r, 0.9 * r), at(-1.2 * r, 0.9 * r)),
        3 => format!(
            "M{}L{}L{}L{}z",
            at(0.0, -1.35 * r),
            at(1.35 * r, 0.0),
            at(0.0, 1.35 * r),
            at(-1.35 * r, 0.0)
        ),
        _ => format!("M{}L{}L{}z", at(0.0, 1.2 * r), at(1.2 * r, -0.9 * r), at(-1.2 * r, -0.9 * r)),
    }
}

/// The mark by itself, to stand beside its name in a text.
pub fn mark(series: usize) -> String {
    format!(
        "<svg class=\"mark\" viewBox=\"0 0 16 16\" aria-hidden=\"true\"><g class=\"{}\"><path class=\"point\" \
         d=\"{}\"/></g></svg>",
        classes(series),
        outline(series, (8.0, 8.0), 4.5)
    )
}
