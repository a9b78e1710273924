//! Published results: the project's own tables (docs/results), on worlds that a release does not include, and the
//! paper's Table 1.

use std::sync::LazyLock;

use atelier_core::domain::Method;
use serde::{Deserialize, Serialize};

use super::{Baseline, MethodResult, Summary};

/// The output of `atelier-training table --json` for one world.
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

/// The figures of the best possible answers, on a sample of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Bounds {
    pub known: Summary,
    pub unknown: Summary,
}

/// The largest world first.
static PUBLISHED: LazyLock<Vec<Published>> = LazyLock::new(|| {
    [
        include_str!("../../../../docs/results/paper.json"),
        include_str!("../../../../docs/results/fifth.json"),
        include_str!("../../../../docs/results/demo.json"),
    ]
    .map(|text| serde_json::from_str(text).expect("the published tables are valid"))
    .into()
});

impl Published {
    pub fn all() -> &'static [Self] {
        &PUBLISHED
    }
}

/// A row of Table 1 of "Contextual BERT": means and standard errors over three runs, recall in percent. The data set
/// is another, unpublished one (380,000 outfits, 30,000 articles), so the figures cannot be compared with ours.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PaperRow {
    pub method: Method,
    pub cross_entropy: (f64, f64),
    pub recall_at_1: (f64, f64),
    pub recall_at_5: (f64, f64),
    pub recall_at_250: (f64, f64),
    pub parameters: u64,
}

pub const PAPER: [PaperRow; 5] = [
    row(Method::None, (5.2636, 0.0038), [(8.53, 0.06), (21.44, 0.04), (87.14, 0.09)], 546_432),
    row(Method::C, (4.9428, 0.0047), [(10.26, 0.16), (25.75, 0.09), (90.76, 0.10)], 673_664),
    row(Method::Np, (4.9260, 0.0078), [(10.53, 0.06), (26.27, 0.25), (90.80, 0.11)], 640_768),
    row(Method::Gs, (4.8542, 0.0084), [(11.19, 0.06), (27.56, 0.28), (91.35, 0.13)], 723_328),
    row(Method::Gsu, (4.7459, 0.0043), [(12.21, 0.17), (29.40, 0.06), (92.19, 0.08)], 921_856),
];

/// `recall` is at 1, 5 and 250.
const fn row(
    method: Method,
    cross_entropy: (f64, f64),
    recall: [(f64, f64); 3],
    parameters: u64,
) -> PaperRow {
    let [recall_at_1, recall_at_5, recall_at_250] = recall;
    PaperRow { method, cross_entropy, recall_at_1, recall_at_5, recall_at_250, parameters }
}
