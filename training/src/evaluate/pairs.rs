//! Evaluates pair files on halves of the validation split's outfits, next to a baseline that counts
//! co-occurrence, and next to what the masked model says of the halves without having learned pairs.

use std::{fmt::Write, path::Path, sync::Arc};

use atelier_engine::{inference::Scorer, onnx_runtime::OnnxRuntime};
use ort::{session::Session, value::Tensor};
use serde::{Deserialize, Serialize};

use super::{
    About, Evaluation, Refusal, Subject,
    model_file::{about, entry, features, open, refused},
};
use crate::{
    data::Data,
    judge::judge,
    number::real,
    pair::{Cooccurrence, Halves, Pair, PairFigures},
};

/// The figures of one pair file on a validation split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairEvaluation {
    pub about: About,
    pub figures: PairFigures,
    /// The figures of counting how often the halves' articles were in one outfit, with the threshold that is best
    /// on the development split.
    pub cooccurrence: PairFigures,
    /// The figures of the same method's masked model: how much more likely the first half makes the second's articles,
    /// log p(second | first) − log p(second), with the threshold that is best on the development split.
    pub likelihood: PairFigures,
}

/// The questions, and the baseline's figures.
#[derive(Debug)]
pub struct PairCases {
    pairs: Vec<Pair>,
    same: Vec<bool>,
    development: Vec<Pair>,
    cooccurrence: PairFigures,
}

/// Pairs per batch.
const BATCH: usize = 64;
/// The probability from which a pair counts as one outfit.
const THRESHOLD: f64 = 0.5;

impl PairCases {
    /// `None` if no outfit of the split has a half of the same types in another outfit.
    pub fn of_validation(data: &Data) -> Option<Self> {
        let counted = Cooccurrence::count(data);
        let score = |outfits: &[u32]| {
            let pairs = Halves::new(data, outfits).questions();
            let same: Vec<bool> = pairs.iter().map(|pair| pair.same).collect();
            let scores: Vec<f64> = pairs.iter().map(|pair| counted.score(pair)).collect();
            (pairs, same, scores)
        };
        let (development, same, scores) = score(data.development());
        let threshold = PairFigures::best_threshold(&scores, &same);
        let (pairs, same, scores) = score(data.validation());
        let cooccurrence = PairFigures::new(&scores, &same, threshold);
        (!pairs.is_empty()).then_some(Self { pairs, same, development, cooccurrence })
    }
}

/// Asks a file about all pairs, and the method's masked model, on one thread.
pub(super) fn ask_pairs(
    runtime: &OnnxRuntime,
    path: &Path,
    subject: &Subject<'_>,
    data: &Data,
    cases: &PairCases,
) -> Result<PairEvaluation, Refusal> {
    let mut session = open(runtime, path)?;
    let about = about(path, &session)?;
    let task = entry(path, &session, "task")?;
    if task != "pair" {
        let path = path.to_owned();
        return Err(Refusal::Value { path, key: "task", found: task, expected: "pair" });
    }
    let mut scores = Vec::with_capacity(cases.pairs.len());
    for pairs in cases.pairs.chunks(BATCH) {
        scores.extend(ask_batch(path, &mut session, data, pairs)?);
    }
    let figures = PairFigures::new(&scores, &cases.same, THRESHOLD);
    let mut masked = subject.open(runtime)?;
    let threshold = {
        let same: Vec<bool> = cases.development.iter().map(|pair| pair.same).collect();
        PairFigures::best_threshold(&log_lifts(&mut masked, subject, data, &cases.development)?, &same)
    };
    let scores = log_lifts(&mut masked, subject, data, &cases.pairs)?;
    let likelihood = PairFigures::new(&scores, &cases.same, threshold);
    Ok(PairEvaluation { about, figures, cooccurrence: cases.cooccurrence, likelihood })
}

/// For each pair, how much more likely the first half makes the second's articles, in nats per article. The model is asked
/// for each of them with those before it, once with the first half and once without.
fn log_lifts(
    masked: &mut Scorer,
    subject: &Subject<'_>,
    data: &Data,
    pairs: &[Pair],
) -> Result<Vec<f64>, Refusal> {
    let articles = Arc::clone(masked.articles());
    pairs
        .iter()
        .map(|pair| {
            let mut questions = Vec::new();
            for place in 0..pair.second.len() {
                for first in [&pair.first[..], &[]] {
                    let visible = first.iter().chain(&pair.second[..place]).copied();
                    questions.push(subject.ask_beside(data, &articles, pair.outfit, visible));
                }
            }
            let answers = masked.scores(&questions)?;
            let targets = pair.second.iter().flat_map(|&target| [(1.0, target), (-1.0, target)]);
            let sum: f64 = targets
                .zip(answers)
                .map(|((sign, target), answer)| {
                    let logits: Vec<f32> = (0..data.count_known())
                        .map(|article| answer.logits[subject.position(article)])
                        .collect();
                    -sign * judge(&logits, target).cross_entropy
                })
                .sum();
            Ok(sum / real(pair.second.len()))
        })
        .collect()
}

/// A table of the methods with pair files; `None` if there are none.
pub fn pair_table(evaluations: &[Evaluation]) -> Option<String> {
    let with_pairs =
        || evaluations.iter().filter_map(|evaluation| Some((evaluation, evaluation.pair.as_ref()?)));
    let (_, first) = with_pairs().next()?;
    let mut table = format!(
        "{} pairs of halves of validation outfits, half of them with a half of another outfit of the same types\n\n\
         | method | seed | accuracy % | AUC |\n|---|---|---|---|\n",
        first.figures.pairs
    );
    let mut row = |name: &str, seed: &str, figures: &PairFigures| {
        let PairFigures { accuracy, auc, .. } = figures;
        writeln!(table, "| {name} | {seed} | {:.2} | {auc:.4} |", 100.0 * accuracy)
            .expect("a String takes everything");
    };
    for (evaluation, pair) in with_pairs() {
        let seed = evaluation.seed.map_or_else(String::new, |seed| seed.to_string());
        let name = evaluation.about.method.as_str();
        row(name, &seed, &pair.figures);
        row(&format!("{name}, by the likelihood of the halves"), &seed, &pair.likelihood);
    }
    row("*co-occurrence*", "", &first.cooccurrence);
    Some(table)
}

fn ask_batch(path: &Path, session: &mut Session, data: &Data, pairs: &[Pair]) -> Result<Vec<f64>, Refusal> {
    let refuse = |error: ort::Error| refused(path, &error);
    let slots = pairs.iter().map(|pair| pair.first.len().max(pair.second.len())).max().unwrap_or_default();
    let half = |articles: fn(&Pair) -> &[u32]| {
        let padding = u32::try_from(data.count_known() + 1).expect("a vocabulary is counted in 32 bits");
        let padding = std::iter::repeat(padding);
        let flat =
            pairs.iter().flat_map(|pair| articles(pair).iter().copied().chain(padding.clone()).take(slots));
        let flat: Vec<i64> = flat.map(i64::from).collect();
        Tensor::from_array(([pairs.len(), slots], flat))
    };
    let mut inputs = vec![
        ("first", half(|pair| &pair.first).map_err(refuse)?),
        ("second", half(|pair| &pair.second).map_err(refuse)?),
    ];
    if session.inputs().iter().any(|input| input.name() == "features") {
        let (shape, values) = features(data, pairs.iter().map(|pair| pair.outfit));
        inputs.push(("features", Tensor::from_array((shape, values)).map_err(refuse)?));
    }
    let outputs = session.run(inputs).map_err(refuse)?;
    let Some(probability) = outputs.get("probability") else {
        let found = outputs.keys().collect::<Vec<_>>().join(", ");
        let expected = "probability".to_owned();
        return Err(Refusal::Shape { path: path.to_owned(), what: "outputs", found, expected });
    };
    let (shape, values) = probability.try_extract_tensor::<f32>().map_err(refuse)?;
    if values.len() != pairs.len() {
        let (found, expected) = (format!("{shape:?}"), format!("[{}]", pairs.len()));
        return Err(Refusal::Shape { path: path.to_owned(), what: "probability", found, expected });
    }
    Ok(values.iter().copied().map(f64::from).collect())
}
