//! `evaluation.json`: the figures of a release's methods on every validation slot.
//!
//! Training writes more fields than are read here; those may come and go.

use std::{fs, path::Path};

use atelier_core::{domain::Method, named};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// All figures of a release.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Figures {
    pub comparison: Comparison,
    pub evaluations: Vec<MethodEvaluation>,
}

/// Methods on the same slots.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Comparison {
    /// The data's name.
    pub data: String,
    pub outfits: u64,
    pub slots: u64,
    pub methods: Vec<MethodResult>,
    pub baselines: Vec<Baseline>,
    /// Empty unless the data has new articles.
    #[serde(default)]
    pub new_article_baselines: Vec<NewBaseline>,
    pub differences: Vec<Difference>,
    /// The number of bootstrap samples of outfits behind the differences.
    pub draws: u64,
}

/// A figure with its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Figure {
    pub mean: f64,
    pub standard_error: Option<f64>,
}

/// One figure for each metric.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Scores {
    pub cross_entropy: Figure,
    pub recall_at_1: Figure,
    pub recall_at_5: Figure,
    pub recall_at_250: Figure,
    pub mrr: Figure,
}

impl Scores {
    pub fn get(&self, metric: Metric) -> Figure {
        match metric {
            Metric::CrossEntropy => self.cross_entropy,
            Metric::RecallAt1 => self.recall_at_1,
            Metric::RecallAt5 => self.recall_at_5,
            Metric::RecallAt250 => self.recall_at_250,
            Metric::Mrr => self.mrr,
        }
    }
}

/// One method over its runs. The errors are over runs; a single run has none.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MethodResult {
    pub method: Method,
    /// Whether articles share embeddings of their attributes.
    #[serde(default)]
    pub attributes: bool,
    pub parameters: u64,
    pub runs: u64,
    #[serde(flatten)]
    pub scores: Scores,
    pub coverage_at_5: Figure,
    pub calibration_error: Figure,
    /// None if it cannot suggest articles that no training outfit has.
    #[serde(default)]
    pub new_articles: Option<NewArticles>,
}

impl MethodResult {
    /// Its name in tables. A match always has attributes.
    pub fn name(&self) -> String {
        let attributes = self.attributes && self.method != Method::Match;
        format!("{}{}", self.method, if attributes { " + attributes" } else { "" })
    }
}

/// Figures with the missing article's type known: only articles of that type are candidates.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct TypeScores {
    pub recall_at_1: Figure,
    pub recall_at_5: Figure,
    pub mrr: Figure,
    pub cross_entropy: Figure,
}

/// Figures of articles that no training outfit has. All articles are candidates, new and known.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct NewArticles {
    /// Of the slots whose answer is a new article.
    pub new: Answered,
    pub shares: Shares,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Answered {
    pub any: NewScores,
    /// With the missing article's type known.
    pub told_type: NewScores,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct NewScores {
    pub slots: u64,
    pub cross_entropy: Figure,
    pub recall_at_1: Figure,
    pub recall_at_5: Figure,
    pub mean_rank: Figure,
}

/// New articles' shares of all slots' answers, and of the probability that a method gives to them.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Shares {
    pub of_answers: Figure,
    pub of_probability: Figure,
}

/// A simple baseline that says how well new articles can be suggested without a model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct NewBaseline {
    #[serde(rename = "baseline")]
    pub name: String,
    pub new: Answered,
}

/// A simple baseline without a model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Baseline {
    #[serde(rename = "baseline")]
    pub name: String,
    pub answers: Scores,
    /// None where the file lacks it, as the published tables do.
    #[serde(default)]
    pub told_type: Option<TypeScores>,
}

/// The first method's figure minus the second's, over bootstrap samples of the outfits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Difference {
    pub metric: Metric,
    pub first: Method,
    pub second: Method,
    pub difference: f64,
    /// The ends of the 95 % interval.
    pub low: f64,
    pub high: f64,
    /// Two-sided.
    pub p: f64,
}

/// The significance level.
const SIGNIFICANCE: f64 = 0.05;

impl Difference {
    pub fn is_significant(&self) -> bool {
        self.p < SIGNIFICANCE
    }

    /// The second method's figure minus the first's.
    fn reversed(&self) -> Self {
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

/// One method's evaluation. The errors are over outfits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MethodEvaluation {
    pub about: About,
    pub summary: Summary,
    /// None where the file lacks it, as the published tables do.
    #[serde(default)]
    pub told_type: Option<TypeScores>,
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

/// How well a method's confidence matches its accuracy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Calibration {
    /// From the least to the most confident, with about the same number of slots each.
    pub bins: Vec<Bin>,
    /// Mean distance between confidence and accuracy.
    pub expected_error: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Bin {
    pub slots: u64,
    /// Mean probability of the first suggestion.
    pub confidence: f64,
    /// How often the first suggestion was right.
    pub accuracy: f64,
}

/// The validation outfits with one value of a feature.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Segment {
    /// `type` (of the missing article), `customer`, `articles` (of the whole outfit), or a feature's name.
    pub by: String,
    pub value: String,
    pub summary: Summary,
}

impl Figures {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        let mut file: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        unpack_segments(&mut file)?;
        let figures = Self::deserialize(file).map_err(|error| error.to_string())?;
        if figures.comparison.methods.is_empty() {
            return Err("it compares no method, expected at least one".into());
        }
        Ok(figures)
    }

    pub fn evaluation_of(&self, method: Method) -> Option<&MethodEvaluation> {
        self.evaluations.iter().find(|evaluation| evaluation.about.method == method)
    }

    /// In the methods' own order.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        self.comparison.methods.iter().map(|result| result.method)
    }

    /// The features that split outfits into segments, in the file's order.
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

/// Replaces each method's segments by rows of numbers, and names the segments once, because a release should be small. A row
/// has the mean and the standard error of each metric, in the order of [`Metric::ALL`]; other figures are left out.
pub fn pack_segments(file: &mut Value) {
    let mut names: Option<Vec<Value>> = None;
    for evaluation in file["evaluations"].as_array_mut().into_iter().flatten() {
        let segments = evaluation["segments"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let name = |segment: &Value| json!({"by": segment["by"], "value": segment["value"], "slots": segment["summary"]["slots"]});
        let own: Vec<Value> = segments.iter().map(name).collect();
        assert!(names.get_or_insert_with(|| own.clone()) == &own, "methods have the same slots");
        let row = |segment: Value| -> Value {
            let figures = Metric::ALL.into_iter().map(|metric| &segment["summary"][metric.as_str()]);
            figures.flat_map(|figure| [figure["mean"].clone(), figure["standard_error"].clone()]).collect()
        };
        evaluation["segments"] = segments.into_iter().map(row).collect();
    }
    file["segments"] = names.unwrap_or_default().into();
}

/// The reverse of [`pack_segments`]. Segments of earlier releases are not packed, and stay.
pub(super) fn unpack_segments(file: &mut Value) -> Result<(), String> {
    let names = file.get_mut("segments").map(Value::take).unwrap_or_default();
    let evaluations = file.get_mut("evaluations").and_then(Value::as_array_mut);
    for evaluation in evaluations.into_iter().flatten() {
        let segments = evaluation.get_mut("segments").and_then(Value::as_array_mut).into_iter().flatten();
        for (position, segment) in segments.enumerate() {
            let Some(row) = segment.as_array() else { continue };
            let Some(name) = names.get(position) else {
                return Err(format!("a method has a segment {position}, which has no name in `segments`"));
            };
            if row.len() != 2 * Metric::ALL.len() {
                return Err(format!(
                    "a segment has {} numbers, expected {}: a mean and a standard error for each metric",
                    row.len(),
                    2 * Metric::ALL.len()
                ));
            }
            let figure = |figure: &[Value]| json!({"mean": figure[0], "standard_error": figure[1]});
            let metrics = Metric::ALL.into_iter().map(|metric| metric.as_str().to_owned());
            let mut summary: Map<String, Value> = metrics.zip(row.chunks_exact(2).map(figure)).collect();
            summary.insert("slots".to_owned(), name["slots"].clone());
            *segment = json!({"by": name["by"], "value": name["value"], "summary": summary});
        }
    }
    Ok(())
}

impl Comparison {
    /// The first method's figure minus the second's, in whichever order the file has them.
    pub fn difference(&self, metric: Metric, first: Method, second: Method) -> Option<Difference> {
        let found = |one: Method, other: Method| {
            self.differences.iter().find(|difference| {
                difference.metric == metric && difference.first == one && difference.second == other
            })
        };
        found(first, second).cloned().or_else(|| found(second, first).map(Difference::reversed))
    }
}

named! {
    "a metric is cross_entropy, recall_at_1, recall_at_5, recall_at_250 or mrr"
    /// A measure of the quality of a method's answers.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Metric {
        CrossEntropy = "cross_entropy",
        #[serde(rename = "recall_at_1")]
        RecallAt1 = "recall_at_1",
        #[serde(rename = "recall_at_5")]
        RecallAt5 = "recall_at_5",
        #[serde(rename = "recall_at_250")]
        RecallAt250 = "recall_at_250",
        Mrr = "mrr",
    }
}

impl Metric {
    /// Its name on pages.
    pub fn label(self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross-entropy",
            Self::RecallAt1 => "recall@1",
            Self::RecallAt5 => "recall@5",
            Self::RecallAt250 => "recall@250",
            Self::Mrr => "MRR",
        }
    }

    pub fn lower_is_better(self) -> bool {
        self == Self::CrossEntropy
    }

    /// Whether it is a share of all slots, shown in percent.
    pub fn is_share(self) -> bool {
        matches!(self, Self::RecallAt1 | Self::RecallAt5 | Self::RecallAt250)
    }

    /// Whether the first of two figures is the better one.
    pub fn better(self, one: f64, other: f64) -> bool {
        if self.lower_is_better() { one < other } else { one > other }
    }
}
