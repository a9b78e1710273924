//! Shared by unit tests.

use std::{fs, path::Path};

use atelier_core::domain::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    data::Data,
    fit::{FitConfig, Overrides, RunConfig},
};

#[track_caller]
pub(crate) fn near(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() < within, "found {found}, expected {expected}");
}

/// The largest difference of two numbers.
#[track_caller]
pub(crate) fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The text has to have all of these parts.
#[track_caller]
pub(crate) fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// JSON lines.
pub(crate) fn lines(rows: impl IntoIterator<Item = Value>) -> String {
    rows.into_iter().map(|row| row.to_string() + "\n").collect()
}

/// Replaces each line of a data folder's table.
pub(crate) fn change(folder: &TempDir, table: &str, change: impl FnMut((usize, &str)) -> String) {
    let path = folder.path().join(format!("{table}.jsonl"));
    let lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().enumerate().map(change).collect();
    fs::write(path, lines.join("\n")).unwrap();
}

/// A data folder of these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// A shop whose outfits follow patterns: the customer's gender determines which of two ranges the articles
/// are from, and each article determines the one of the next type.
pub(crate) fn patterned(outfits: usize) -> TempDir {
    let kinds = ["hat", "coat", "shoe", "bag"];
    let article = |at: usize| {
        let kind = kinds[at / 10];
        json!({"id": format!("{kind}-{}", at % 10), "type": kind})
    };
    let outfit = |place: usize| {
        let number = (place / 2) % 5 + 5 * (place % 2);
        let beside = number / 5 * 5 + (number + 1) % 5;
        let numbers = kinds.iter().zip([number, beside, number, beside]);
        let articles: Vec<String> = numbers.map(|(kind, number)| format!("{kind}-{number}")).collect();
        let split = if place % 10 == 9 { "validation" } else { "train" };
        json!({"customer": format!("c-{}", 1 + place % 2), "articles": articles, "split": split})
    };
    let customers = [
        json!({"id": "c-1", "features": {"gender": "female"}}),
        json!({"id": "c-2", "features": {"gender": "male", "colours": ["red", "blue"]}}),
    ];
    folder(&[
        ("schema.toml", crate::data::tests::SCHEMA),
        ("articles.jsonl", &lines((0..40).map(article))),
        ("customers.jsonl", &lines(customers)),
        ("outfits.jsonl", &lines((0..outfits).map(outfit))),
    ])
}

pub(crate) fn patterned_data(outfits: usize) -> Data {
    Data::load(patterned(outfits).path()).unwrap()
}

/// Settings of a small model.
pub(crate) fn run_config(data: &Data, method: Method, fit: impl FnOnce(&mut FitConfig)) -> RunConfig {
    let mut config = RunConfig::new(method, data, Path::new("shop"), Overrides::default(), fit).unwrap();
    let model = &mut config.model;
    (model.width, model.heads, model.hidden, model.blocks) = (16, 2, 32, 2);
    (model.feature_width, model.personas) = (8, 3);
    config
}
