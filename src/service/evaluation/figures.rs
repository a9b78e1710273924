//! `evaluation.json`: what was found when a release's methods were asked about every validation slot.
//!
//! Training writes it and writes more into it than is read here: a field that nobody looks at may come and go.

use std::{fs, path::Path};

use serde::Deserialize;

use super::Metric;
use crate::domain::Method;

/// All figures of a release.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Figures {
    pub comparison: Comparison,
    pub evaluations: Vec<MethodEvaluation>,
}

/// Methods side by side, on the same questions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Comparison {
    /// The data's name.
    pub data: String,
    pub outfits: u64,
    pub slots: u64,
    pub methods: Vec<MethodResult>,
    pub baselines: Vec<Baseline>,
    pub differences: Vec<Difference>,
    /// How often the outfits were drawn for the differences.
    pub draws: u64,
}

/// A figure, and how far chance may have moved it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Figure {
    pub mean: f64,
    pub standard_error: Option<f64>,
}

/// What answers are worth, by every metric.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Scores {
    pub cross_entropy: Figure,
    pub recall_at_1: Figure,
    pub recall_at_5: Figure,
    pub recall_at_250: Figure,
    pub mrr: Figure,
}

impl Scores {
    pub fn of(&self, metric: Metric) -> Figure {
        match metric {
            Metric::CrossEntropy => self.cross_entropy,
            Metric::RecallAt1 => self.recall_at_1,
            Metric::RecallAt5 => self.recall_at_5,
            Metric::RecallAt250 => self.recall_at_250,
            Metric::Mrr => self.mrr,
        }
    }
}

/// One method over its runs. The errors are over runs: one run has none.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MethodResult {
    pub method: Method,
    /// Whether its runs are of those in which articles learn together what they have in common.
    #[serde(default)]
    pub attributes: bool,
    pub parameters: u64,
    pub runs: u64,
    #[serde(flatten)]
    pub scores: Scores,
    pub coverage_at_5: Figure,
    pub calibration_error: Figure,
}

impl MethodResult {
    /// As tables call it.
    pub fn name(&self) -> String {
        format!("{}{}", self.method, if self.attributes { " + attributes" } else { "" })
    }
}

/// What counting achieves.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Baseline {
    #[serde(rename = "baseline")]
    pub name: String,
    pub answers: Scores,
}

/// The first method's figure less the second's.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Difference {
    pub metric: Metric,
    pub first: Method,
    pub second: Method,
    pub difference: f64,
    /// 95 of 100 draws lie between these.
    pub low: f64,
    pub high: f64,
    /// Two-sided.
    pub p: f64,
}

/// How sure a difference must be to be told as one.
const SURE: f64 = 0.05;

impl Difference {
    /// Whether it is more than the luck of the draw.
    pub fn is_sure(&self) -> bool {
        self.p < SURE
    }

    /// The same, seen from the second method.
    fn turned(&self) -> Self {
        Self {
            first: self.second,
            second: self.first,
            difference: -self.difference,
            low: -self.high,
            high: -self.low,
            ..self.clone()
        }
    }
}

/// One method's file, on its own. The errors are over outfits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MethodEvaluation {
    pub about: About,
    pub summary: Summary,
    pub calibration: Calibration,
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct About {
    pub method: Method,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Summary {
    pub slots: u64,
    #[serde(flatten)]
    pub scores: Scores,
}

/// Whether a method is as sure as it may be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Calibration {
    /// From the least to the most confident, each of about as many slots.
    pub bins: Vec<Bin>,
    /// Mean distance between confidence and accuracy.
    pub expected_error: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Bin {
    pub slots: u64,
    /// Mean probability of the article put first.
    pub confidence: f64,
    /// How often it was the right one.
    pub accuracy: f64,
}

/// A part of the validation outfits: those of one value of a feature.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Segment {
    /// `type` (of the missing article), `customer`, `articles` (of the whole outfit), or a feature's name.
    pub by: String,
    pub value: String,
    pub summary: Summary,
}

impl Figures {
    /// # Errors
    /// What is the matter with the file, in words.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        let figures: Self = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        if figures.comparison.methods.is_empty() {
            return Err("it compares no method, expected at least one".into());
        }
        Ok(figures)
    }

    pub fn of(&self, method: Method) -> Option<&MethodEvaluation> {
        self.evaluations.iter().find(|evaluation| evaluation.about.method == method)
    }

    /// In the methods' own order.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        self.comparison.methods.iter().map(|result| result.method)
    }

    /// What outfits can be parted by, in the file's order.
    pub fn features(&self) -> Vec<&str> {
        let mut features: Vec<&str> = Vec::new();
        for segment in self.evaluations.iter().flat_map(|evaluation| &evaluation.segments) {
            if !features.contains(&segment.by.as_str()) {
                features.push(&segment.by);
            }
        }
        features
    }
}

impl Comparison {
    /// The first method less the second, whichever way round the file has them.
    pub fn difference(&self, metric: Metric, first: Method, second: Method) -> Option<Difference> {
        let found = |one: Method, other: Method| {
            self.differences.iter().find(|difference| {
                difference.metric == metric && difference.first == one && difference.second == other
            })
        };
        found(first, second).cloned().or_else(|| found(second, first).map(Difference::turned))
    }
}
