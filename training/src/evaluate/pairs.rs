//! Evaluates pair files on halves of the validation split's outfits, beside a baseline that counts
//! co-occurrence.

use std::{fmt::Write, path::Path};

use atelier::models::onnx_runtime::OnnxRuntime;
use ort::{session::Session, value::Tensor};
use serde::{Deserialize, Serialize};

use super::{
    About, Evaluation, Refusal,
    model_file::{about, entry, features, open, refused},
};
use crate::{
    data::Data,
    pair::{Cooccurrence, Halves, Pair, PairFigures},
};

/// The figures of one pair file on a validation split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairEvaluation {
    pub about: About,
    pub figures: PairFigures,
    /// The figures of counting how often the halves' articles were worn together, with the threshold that is best
    /// on the development split.
    pub cooccurrence: PairFigures,
}

/// The questions, and the baseline's figures.
#[derive(Debug)]
pub struct PairCases {
    pairs: Vec<Pair>,
    same: Vec<bool>,
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
        let (_, same, scores) = score(data.development());
        let threshold = PairFigures::best_threshold(&scores, &same);
        let (pairs, same, scores) = score(data.validation());
        let cooccurrence = PairFigures::new(&scores, &same, threshold);
        (!pairs.is_empty()).then_some(Self { pairs, same, cooccurrence })
    }
}

/// Asks a file about all pairs, on one thread.
pub fn ask_pairs(
    runtime: &OnnxRuntime,
    path: &Path,
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
    Ok(PairEvaluation { about, figures, cooccurrence: cases.cooccurrence })
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
            .expect("a String takes everything; this is a bug");
    };
    for (evaluation, pair) in with_pairs() {
        let seed = evaluation.seed.map_or_else(String::new, |seed| seed.to_string());
        row(evaluation.about.method.as_str(), &seed, &pair.figures);
    }
    row("*co-occurrence*", "", &first.cooccurrence);
    Some(table)
}

fn ask_batch(path: &Path, session: &mut Session, data: &Data, pairs: &[Pair]) -> Result<Vec<f64>, Refusal> {
    let refuse = |error: ort::Error| refused(path, &error);
    let slots = pairs.iter().map(|pair| pair.first.len().max(pair.second.len())).max().unwrap_or_default();
    let half = |articles: fn(&Pair) -> &[u32]| {
        let padding =
            u32::try_from(data.known() + 1).expect("a vocabulary is counted in 32 bits; this is a bug");
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
