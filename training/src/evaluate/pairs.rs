//! What a pair file is worth: asked about halves of the validation split's outfits, beside what counting
//! would say.

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

/// What one pair file is worth on one data's validation split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairEvaluation {
    pub about: About,
    pub figures: PairFigures,
    /// Of how often the halves' articles stood together; its threshold does best on the development split.
    pub cooccurrence: PairFigures,
}

/// The questions, and what counting says of them.
#[derive(Debug)]
pub struct PairCases {
    pairs: Vec<Pair>,
    same: Vec<bool>,
    cooccurrence: PairFigures,
}

/// Pairs asked about at once.
const BATCH: usize = 64;
/// From here on a pair is said to have been one outfit.
const EVEN: f64 = 0.5;

impl PairCases {
    /// Nothing where no outfit of the split finds a half of the same types among the others.
    pub fn of_validation(data: &Data) -> Option<Self> {
        let counted = Cooccurrence::count(data);
        let asked = |outfits: &[u32]| {
            let pairs = Halves::new(data, outfits).questions();
            let same: Vec<bool> = pairs.iter().map(|pair| pair.same).collect();
            let scores: Vec<f64> = pairs.iter().map(|pair| counted.score(pair)).collect();
            (pairs, same, scores)
        };
        let (_, same, scores) = asked(data.development());
        let threshold = PairFigures::best_threshold(&scores, &same);
        let (pairs, same, scores) = asked(data.validation());
        let cooccurrence = PairFigures::new(&scores, &same, threshold);
        (!pairs.is_empty()).then_some(Self { pairs, same, cooccurrence })
    }
}

/// Asks a file about all pairs, on one thread.
///
/// # Errors
/// If the file does not keep the contract of a pair file, or was made for another vocabulary or schema.
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
        scores.extend(ask(path, &mut session, data, pairs)?);
    }
    let figures = PairFigures::new(&scores, &cases.same, EVEN);
    Ok(PairEvaluation { about, figures, cooccurrence: cases.cooccurrence })
}

/// The figures of some methods as a table, if any of them judged pairs.
pub fn pair_table(evaluations: &[Evaluation]) -> Option<String> {
    let judged = || evaluations.iter().filter_map(|evaluation| Some((evaluation, evaluation.pair.as_ref()?)));
    let (_, first) = judged().next()?;
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
    for (evaluation, pair) in judged() {
        let seed = evaluation.seed.map_or_else(String::new, |seed| seed.to_string());
        row(evaluation.about.method.as_str(), &seed, &pair.figures);
    }
    row("*co-occurrence*", "", &first.cooccurrence);
    Some(table)
}

fn ask(path: &Path, session: &mut Session, data: &Data, pairs: &[Pair]) -> Result<Vec<f64>, Refusal> {
    let refuse = |error: ort::Error| refused(path, &error);
    let slots = pairs.iter().map(|pair| pair.first.len().max(pair.second.len())).max().unwrap_or_default();
    let half = |of: fn(&Pair) -> &[u32]| {
        let padding = std::iter::repeat(data.vocabulary().padding());
        let flat = pairs.iter().flat_map(|pair| of(pair).iter().copied().chain(padding.clone()).take(slots));
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
