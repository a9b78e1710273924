use std::collections::BTreeSet;

use super::*;
use crate::{domain::Method, drawing::chart::line::spread};

fn written(number: f64) -> String {
    format!("{number}")
}

#[test]
fn ticks_are_round() {
    let ticks = |from, to| Scale::Linear { from, to }.ticks();
    assert_eq!(ticks(0.0, 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    assert_eq!(ticks(3.1, 4.9), [3.5, 4.0, 4.5]);
    assert_eq!(Scale::Log { from: 1.0, to: 250.0 }.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 250.0]);
    assert_eq!(Scale::around([0.164, 0.207].into_iter()), Scale::Linear { from: 0.16, to: 0.21 });
    assert_eq!(Scale::around([3.0].into_iter()).ticks(), [3.0], "a single number");
    assert_eq!(Scale::around(std::iter::empty()).ticks().len(), 6);
}

#[test]
fn numbers_are_placed_between_the_ends() {
    let log = Scale::Log { from: 1.0, to: 100.0 };
    assert!((log.position(10.0) - 0.5).abs() < 1e-12);
    let linear = Scale::Linear { from: 2.0, to: 4.0 };
    assert_eq!((linear.position(1.0), linear.position(3.0), linear.position(9.0)), (0.0, 0.5, 1.0));
    assert!(Scale::Linear { from: 1.0, to: 1.0 }.position(1.0).abs() < 1e-12, "an axis of length 0");
}

#[test]
fn labels_do_not_touch() {
    let apart = spread(&[100.0, 101.0, 20.0, 102.0], 0.0, 110.0, 18.0);
    assert_eq!(apart, [74.0, 92.0, 20.0, 110.0]);
    assert_eq!(spread(&[], 0.0, 1.0, 1.0), [0.0; 0]);
}

#[test]
fn lines_have_labels_marks_and_escaped_texts() {
    let series = |name, kind| Series {
        name,
        kind,
        points: vec![(1.0, 0.2), (10.0, 0.9)],
        marked: vec![Mark { point: 1, says: format!("{name}: <90 %") }],
        band: vec![(1.0, 0.1, 0.3), (10.0, 0.8, 1.0)],
    };
    let chart = LineChart {
        title: "Recall <of> \"two\" & more",
        about: "It rises.",
        x: ("k", Scale::Log { from: 1.0, to: 10.0 }, written),
        y: ("recall", Scale::Linear { from: 0.0, to: 1.0 }, written),
        series: vec![series("none", 0), series("latent", 9)],
    };
    let svg = line_chart(&chart);
    for part in [
        "aria-label=\"Recall &lt;of&gt; &quot;two&quot; &amp; more\"",
        "<desc>It rises.</desc>",
        ">none: &lt;90 %</text></g>",
        "class=\"band\" d=\"M56 311.2L640 81.6L640 16L56 245.6z\"",
        "role=\"img\"",
        "class=\"series s1\"",
        "class=\"series s10 hollow\"",
        "d=\"M56 278.4L640 48.8\"",
        ">latent</text>",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert!(!svg.contains("style"), "{svg}");
    assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
}

#[test]
fn all_whiskers_of_a_series_share_a_path() {
    let dot = |at: f64| Some(Whisker { at, low: at - 1.0, high: at + 1.0 });
    let row = |name: &str, dots| WhiskerRow {
        name: name.into(),
        note: "9 slots".into(),
        dots,
        says: vec!["first".into()],
    };
    let chart = Whiskers {
        title: "t",
        about: "a",
        x: ("recall", Scale::Linear { from: 0.0, to: 10.0 }, written),
        kinds: vec![0, 1],
        rows: vec![row("a&b", vec![dot(2.0), dot(5.0)]), row("c", vec![None, dot(9.5)])],
    };
    let svg = whiskers(&chart);
    assert!(svg.contains(">a&amp;b</text>") && svg.contains(">9 slots</text>"));
    assert_eq!(svg.matches("class=\"line\"").count(), 2);
    assert_eq!(svg.matches(">first</text></g>").count(), 1, "the second row has no first dot");
    let second = svg.split("series s2").nth(1).unwrap();
    assert_eq!(second.matches('H').count(), 2, "{second}");
    assert!(second.contains("H744"), "an interval ends where the axis ends: {second}");
}

#[test]
fn bars_start_at_the_even_share() {
    let bar = |share: f64| Bar { name: "one".into(), share, written: "x".into() };
    let chart = Bars { title: "t", about: "a", bars: vec![bar(0.135), bar(0.115)], even: 0.125, reach: 0.02 };
    let svg = bars(&chart);
    assert!(svg.contains("x=\"218\" y=\"7\" width=\"61\""), "{svg}");
    assert!(svg.contains("x=\"157\" y=\"33\" width=\"61\""), "{svg}");
}

#[test]
fn a_reliable_method_lies_on_the_diagonal() {
    let chart = Reliability {
        title: "t",
        about: "a",
        kind: 2,
        bins: vec![(0.0, 0.0), (0.5, 0.5)],
        says: vec!["0".into(), "half".into()],
        most: 0.5,
    };
    let svg = reliability(&chart);
    assert!(svg.contains("class=\"even\" d=\"M30 192L228 8\""), "{svg}");
    assert!(svg.contains("class=\"line\" d=\"M30 192L228 8\""), "{svg}");
    assert!(
        svg.contains("<circle cx=\"228\" cy=\"8\" r=\"8\"/>") && svg.contains(">half</text></g>"),
        "{svg}"
    );
}

#[test]
fn each_method_has_its_own_colour_and_shape() {
    let marks: Vec<String> = (0..Method::ALL.len()).map(mark).collect();
    let part = |mark: &str, start: &str, end: &str| {
        mark.split_once(start).unwrap().1.split_once(end).unwrap().0.to_owned()
    };
    let colours: BTreeSet<String> =
        marks.iter().map(|mark| part(mark, "series s", "\"").replace(" hollow", "")).collect();
    let shapes: BTreeSet<_> =
        marks.iter().map(|mark| (part(mark, " d=\"", "\""), mark.contains("hollow"))).collect();
    assert_eq!((colours.len(), shapes.len()), (Method::ALL.len(), Method::ALL.len()), "{marks:?}");
}
