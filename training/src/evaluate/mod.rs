//! How good an exported model is: its ONNX file, run in ONNX Runtime, asked about every slot of every
//! validation outfit in turn, over the whole catalogue.
//!
//! What is measured is what is served. A file comes in by its path, the questions from [`Data`]; out
//! go an [`Evaluation`] a file, the [`Comparison`] of several, and each single answer as Parquet. It
//! must never know how a file came to be: a run's, a release's and a foreigner's are the same to it.

mod answers;
mod bootstrap;
mod calibration;
mod cases;
mod compare;
mod model_file;
mod pairs;
mod ranks;
mod segments;

use atelier::domain::Method;
use serde::{Deserialize, Serialize};

pub use answers::{Answers, ask};
pub use bootstrap::Difference;
pub use calibration::{Bin, Calibration};
pub use cases::{Case, Cases};
pub use compare::{Comparison, MethodResult, Spread, compare, name};
pub use model_file::{About, Refusal};
pub use pairs::{PairCases, PairEvaluation, ask_pairs, pair_table};
pub use ranks::write_ranks;
pub use segments::Segment;

use crate::{data::Data, judge::FIRST, metrics::Summary, number::real};

/// What one file is worth on one data's validation split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    pub about: About,
    /// The seed of the run that made it, where that is known.
    pub seed: Option<u64>,
    /// Whether it was a run in which articles learned together what they have in common.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub attributes: bool,
    /// Of the data that it was asked about.
    pub data: String,
    pub fingerprint: String,
    pub outfits: usize,
    pub summary: Summary,
    /// The share of the catalogue that stands among the first five of at least one answer.
    pub coverage_at_5: f64,
    pub calibration: Calibration,
    /// Mean steps of a universal trunk.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steps: Option<f64>,
    pub segments: Vec<Segment>,
    /// Of the pair file beside it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<PairEvaluation>,
}

impl Evaluation {
    pub fn new(data: &Data, cases: &Cases, answers: &Answers, seed: Option<u64>) -> Self {
        Self {
            about: answers.about.clone(),
            seed,
            attributes: false,
            data: data.name().to_owned(),
            fingerprint: data.fingerprint().to_owned(),
            outfits: data.validation().len(),
            summary: segments::summary(cases, answers),
            coverage_at_5: coverage(data, answers),
            calibration: Calibration::new(&answers.verdicts),
            steps: answers.steps,
            segments: segments::segments(data, cases, answers),
            pair: None,
        }
    }

    /// What runs of one line of a table have in common.
    fn kind(&self) -> (Method, bool) {
        (self.about.method, self.attributes)
    }
}

fn coverage(data: &Data, answers: &Answers) -> f64 {
    let mut shown = vec![false; data.vocabulary().len()];
    let first = answers.verdicts.iter().flat_map(|verdict| verdict.first.iter().take(FIRST));
    for article in first {
        // Past the end of a catalogue of fewer than five.
        if let Some(shown) = shown.get_mut(*article as usize) {
            *shown = true;
        }
    }
    real(shown.iter().filter(|shown| **shown).count()) / real(shown.len())
}
