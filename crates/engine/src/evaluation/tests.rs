use std::{collections::HashMap, fs, path::PathBuf};

use atelier_core::domain::Method;
use serde::Deserialize;
use serde_json::Value;

use super::{figures::unpack_segments, *};

fn demo() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models/demo")
}

fn both() -> (Figures, Ranks) {
    (Figures::read(&demo().join(FIGURES)).unwrap(), Ranks::read(&demo().join(RANKS)).unwrap())
}

const VERSUS: Versus =
    Versus { first: Method::Gsu, second: Method::None, by: By::LogProbability, lead: Lead::First };

/// The single answers lead to the same figures.
#[test]
fn ranks_and_figures_agree() {
    let (figures, ranks) = both();
    assert_eq!(ranks.len() as u64, figures.comparison.slots);
    assert!(ranks.methods().eq(Method::ALL) && figures.methods().eq(Method::ALL));
    assert_eq!((ranks.types().len(), ranks.types()[0].as_str()), (43, "backpack"));
    assert_eq!(ranks.customers().len(), 1813);
    for method in Method::ALL {
        let scores = figures.evaluation_of(method).unwrap().summary.scores;
        for (k, figure) in [(1, scores.recall_at_1), (5, scores.recall_at_5), (250, scores.recall_at_250)] {
            let recall = ranks.recall(method, k).unwrap();
            assert!((recall - figure.mean).abs() < 6e-5, "{method} recall@{k}: {recall} and {figure:?}");
        }
        let sum: f64 = (0..ranks.len()).map(|row| f64::from(ranks.answer(method, row).unwrap().1)).sum();
        let entropy = -sum / f64::from(u32::try_from(ranks.len()).unwrap());
        assert!((entropy - scores.cross_entropy.mean).abs() < 6e-4, "{method}: {entropy}");
    }
    assert_eq!((ranks.recall(Method::Gsu, 0), ranks.recall(Method::Gsu, 251)), (None, None));
}

#[test]
fn packed_segments_are_the_same() {
    let mut file: Value = serde_json::from_slice(&fs::read(demo().join(FIGURES)).unwrap()).unwrap();
    unpack_segments(&mut file).unwrap();
    let figures = Figures::deserialize(&file).unwrap();
    assert!(figures.evaluations[0].segments.len() > 200);
    let whole = file.to_string().len();
    pack_segments(&mut file);
    assert!(file.to_string().len() < whole / 3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FIGURES);
    let read = |file: &Value| {
        fs::write(&path, file.to_string()).unwrap();
        Figures::read(&path)
    };
    assert_eq!(read(&file).unwrap(), figures);
    let mut short = file.clone();
    short["evaluations"][1]["segments"][7].as_array_mut().unwrap().pop();
    let expected = "a segment has 9 numbers, expected 10: a mean and a standard error for each metric";
    assert_eq!(read(&short).unwrap_err(), expected);
    file["segments"].as_array_mut().unwrap().truncate(5);
    let expected = "a method has a segment 5, which has no name in `segments`";
    assert_eq!(read(&file).unwrap_err(), expected);
}

#[test]
fn a_difference_can_be_seen_from_both_sides() {
    let (figures, _) = both();
    let difference = |one, other| figures.comparison.difference(Metric::CrossEntropy, one, other).unwrap();
    let (one, other) = (difference(Method::None, Method::Gsu), difference(Method::Gsu, Method::None));
    assert!(0.0 < one.low && one.low < one.difference && one.difference < one.high, "{one:?}");
    assert_eq!((other.difference, other.low, other.high), (-one.difference, -one.high, -one.low));
    assert_eq!((other.first, other.second, other.p), (Method::Gsu, Method::None, one.p));
    assert!(one.is_significant() && !difference(Method::Np, Method::Gsu).is_significant());
    assert!(figures.comparison.difference(Metric::Mrr, Method::Gsu, Method::Gsu).is_none());
}

/// The intervals from single answers are those that training found by resampling outfits.
#[test]
fn paired_answers_have_the_intervals_of_the_bootstrap() {
    let ((figures, ranks), (_, again)) = (both(), both());
    let pair = ranks.pair(Method::Gsu, &again, Method::None).expect("the same cases");
    for metric in Metric::ALL {
        let stored = figures.comparison.difference(metric, Method::Gsu, Method::None).unwrap();
        let found = pair.difference(metric).unwrap();
        let near = |one: f64, other: f64| (one - other).abs() < 0.05 * (stored.high - stored.low) + 1e-4;
        for (found, stored) in
            [(found.difference, stored.difference), (found.low, stored.low), (found.high, stored.high)]
        {
            assert!(near(found, stored), "{metric}: {found} and {stored}");
        }
    }
    let recall = pair.recall(5).unwrap();
    assert_eq!(recall, pair.difference(Metric::RecallAt5).unwrap());
    let types = pair.by_type();
    assert_eq!(types.iter().map(|(_, cases, _)| cases).sum::<usize>(), ranks.len());
    assert!(types.is_sorted_by(|one, next| one.2.difference >= next.2.difference));
    assert_eq!(pair.cases(), ranks.cases_by_difference(VERSUS, Selection::default()));
}

#[test]
fn cases_and_customers_are_sorted_by_their_difference() {
    let (_, ranks) = both();
    let all = ranks.cases_by_difference(VERSUS, Selection::default());
    assert_eq!(all.len(), ranks.len());
    assert!(all.is_sorted_by(|one, next| one.difference >= next.difference));
    let turned = ranks.cases_by_difference(Versus { lead: Lead::Second, ..VERSUS }, Selection::default());
    assert!(turned.is_sorted_by(|one, next| one.difference <= next.difference));
    let unseen_coats = Selection { seen: Some(false), kind: Some("coat"), ..Selection::default() };
    let found = ranks.cases_by_difference(VERSUS, unseen_coats);
    assert!(!found.is_empty() && found.len() < all.len());
    for difference in &found {
        let case = ranks.case(difference.row);
        assert_eq!((case.seen, case.kind), (false, "coat"));
        assert_eq!(case.articles().nth(case.slot), Some(case.truth()));
    }

    let customers = ranks.customers_by_difference(VERSUS, Selection::default());
    assert_eq!(customers.len(), ranks.customers().len());
    assert_eq!(customers.iter().map(|customer| customer.cases as usize).sum::<usize>(), ranks.len());
    let (first, mut of_customer) = (customers[0], HashMap::<_, (f64, f64)>::new());
    for case in &all {
        let (sum, cases) = of_customer.entry(ranks.case(case.row).customer).or_default();
        (*sum, *cases) = (*sum + f64::from(case.difference), *cases + 1.0);
    }
    let most = of_customer.values().map(|(sum, cases)| sum / cases).fold(f64::MIN, f64::max);
    assert!((first.difference - most).abs() < 1e-9);
    let select = |selection| ranks.cases_by_difference(VERSUS, selection);
    let own = select(Selection { customer: Some(first.customer), ..Selection::default() });
    assert_eq!(own.len(), first.cases as usize);
    let among: Vec<bool> = ranks.customers().iter().map(|customer| customer == first.customer).collect();
    assert_eq!(select(Selection { among: Some(&among), ..Selection::default() }), own);
}

/// Any damage to a file is an error with a description.
#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranks.parquet");
    let whole = fs::read(demo().join(RANKS)).unwrap();
    for (bytes, expected) in [(&b"no parquet"[..], "Parquet"), (&whole[..5000], "Parquet"), (&[], "")] {
        fs::write(&path, bytes).unwrap();
        let reason = Ranks::read(&path).unwrap_err();
        assert!(reason.to_lowercase().contains(&expected.to_lowercase()), "{reason}");
    }
    // Bytes changed in the middle, where columns are.
    for at in [1000, 40_000, 200_000, 400_000, whole.len() - 3000] {
        let mut bytes = whole.clone();
        bytes[at..at + 64].fill(0xAA);
        fs::write(&path, bytes).unwrap();
        // Not every change is detected, but none may panic.
        if let Err(reason) = Ranks::read(&path) {
            assert!(!reason.is_empty());
        }
    }
    let other = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/outfits-polars.parquet");
    assert_eq!(Ranks::read(&other).unwrap_err(), "there is no column \"outfit\"");

    let path = folder.path().join("evaluation.json");
    fs::write(&path, "{\"comparison\": {}}").unwrap();
    assert!(Figures::read(&path).unwrap_err().contains("missing field"));
}
