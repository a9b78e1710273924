//! The tables that this project measured itself (docs/results), compiled in: what methods are worth on worlds that a
//! release does not carry.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{Baseline, MethodResult, Summary};

/// `atelier-training table --json` of one world.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Published {
    /// The data's name.
    pub data: String,
    pub outfits: u64,
    pub slots: u64,
    pub methods: Vec<MethodResult>,
    pub baselines: Vec<Baseline>,
    pub bounds: Option<Bounds>,
}

/// The best possible answers, for a sample of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Bounds {
    pub known: Summary,
    pub unknown: Summary,
}

/// The largest world first.
static PUBLISHED: LazyLock<Vec<Published>> = LazyLock::new(|| {
    [
        include_str!("../../../docs/results/paper.json"),
        include_str!("../../../docs/results/fifth.json"),
        include_str!("../../../docs/results/demo.json"),
    ]
    .map(|text| serde_json::from_str(text).expect("a table of ours, which a test reads; this is a bug"))
    .into()
});

impl Published {
    pub fn all() -> &'static [Self] {
        &PUBLISHED
    }
}
