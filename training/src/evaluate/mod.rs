//! Evaluates exported models: runs each ONNX file in ONNX Runtime and asks it about every slot of every
//! validation outfit, over all learned articles.
//!
//! The file that is served is the file that is measured. Takes the file's path, and the questions from
//! [`Data`]. Returns an [`Evaluation`] per file, a [`Comparison`] of several, and each answer as Parquet. The
//! module must never know how a file was made.

mod beside;
mod bootstrap;
mod calibration;
mod cases;
mod compare;
mod few;
mod model_file;
mod new_articles;
mod pairs;
mod ranks;
mod segments;

use atelier_core::domain::Method;
use atelier_engine::onnx_runtime::OnnxRuntime;
use serde::{Deserialize, Serialize};

pub use beside::Rival;
pub use bootstrap::Difference;
pub(crate) use bootstrap::{Runs, differences};
pub use calibration::{Bin, Calibration};
pub use cases::{Answers, Case, Cases, Subject, ask};
pub use compare::{Comparison, MethodResult, Scores, Spread, ToldType, compare, name};
pub(crate) use few::table_of_answers;
pub use few::{FEW, interval_table};
pub use model_file::{About, Refusal};
pub use new_articles::{NewArticleFigures, NewArticles, Shares};
pub use pairs::{PairCases, PairEvaluation, pair_table};
pub use ranks::write_ranks;
pub use segments::Segment;

use self::{new_articles::ask_about_new, pairs::ask_pairs};
use crate::{data::Data, judge::FIRST, metrics::Summary, number::real};

/// The figures of one file on a validation split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    pub about: About,
    /// The seed of the run that made it, if known.
    pub seed: Option<u64>,
    /// Whether the run learned shared weights for article attributes.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub attributes: bool,
    /// The name of the data.
    pub data: String,
    pub fingerprint: String,
    /// Whether the data is one of the project's own worlds, next to which the paper's figures are of interest.
    pub synthetic: bool,
    pub outfits: usize,
    /// Of these outfits; `summary` is of those whose article a training outfit has.
    pub all_slots: usize,
    pub summary: Summary,
    /// The same answers with the missing article's type known and the outfit's articles left out, as they are served.
    /// Its cross-entropy is the part within the type; the rest of `summary`'s is the type's.
    pub told_type: Summary,
    /// The share of the catalogue that is in the top five of at least one answer.
    pub coverage_at_5: f64,
    pub calibration: Calibration,
    /// The mean number of steps of a universal trunk.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steps: Option<f64>,
    pub segments: Vec<Segment>,
    /// Of articles that no training outfit has, if there are any and the method can suggest them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_articles: Option<NewArticleFigures<Summary, f64>>,
    /// The figures of its pair file, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<PairEvaluation>,
}

/// Asks a method about all cases, about new articles and, if it has a pair file, about pairs. Calls `tell` with the number of
/// cases done.
///
/// # Errors
/// If the method's files break the contract.
pub fn measure(
    runtime: &OnnxRuntime,
    subject: &Subject<'_>,
    data: &Data,
    cases: &Cases,
    pairs: Option<&PairCases>,
    tell: &(dyn Fn(usize) + Sync),
) -> Result<(Evaluation, Answers), Refusal> {
    let answers = ask(runtime, subject, data, cases, tell)?;
    let mut evaluation = Evaluation::new(data, cases, &answers, None);
    if let Some((figures, all)) = ask_about_new(runtime, subject, data, (cases, &answers), &|_| {})? {
        // Of what is served.
        evaluation.calibration = Calibration::new(&all);
        evaluation.new_articles = Some(figures);
    }
    if let (Some(path), Some(cases)) = (subject.pair_path(), pairs) {
        evaluation.pair = Some(ask_pairs(runtime, &path, subject, data, cases)?);
    }
    Ok((evaluation, answers))
}

impl Evaluation {
    pub fn new(data: &Data, cases: &Cases, answers: &Answers, seed: Option<u64>) -> Self {
        Self {
            about: answers.about.clone(),
            seed,
            attributes: false,
            data: data.name().to_owned(),
            fingerprint: data.fingerprint().to_owned(),
            synthetic: false,
            outfits: data.validation().len(),
            all_slots: data.count_slots(data.validation()),
            summary: segments::summary(cases, answers),
            told_type: segments::told_type(cases, answers),
            coverage_at_5: coverage(data, answers),
            calibration: Calibration::new(&answers.verdicts),
            steps: answers.steps,
            segments: segments::segments(data, cases, answers),
            new_articles: None,
            pair: None,
        }
    }

    /// The runs of one kind share a line of a table.
    fn kind(&self) -> (Method, bool) {
        (self.about.method, self.attributes)
    }
}

fn coverage(data: &Data, answers: &Answers) -> f64 {
    let mut shown = vec![false; data.count_known()];
    let first = answers.verdicts.iter().flat_map(|verdict| verdict.first.iter().take(FIRST));
    for article in first {
        // Out of bounds if the catalogue has fewer than five articles.
        if let Some(shown) = shown.get_mut(*article as usize) {
            *shown = true;
        }
    }
    real(shown.iter().filter(|shown| **shown).count()) / real(shown.len())
}
