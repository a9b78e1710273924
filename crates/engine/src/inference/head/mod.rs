//! The last dense layer of a model, computed here instead of in ONNX Runtime. It is over half of all arithmetic.
//! Softmax, filters and choice happen in the same pass.
//!
//! The hidden vectors before the layer come in, one row per question; answers go out. The logits of the whole
//! catalogue are never stored: each panel of articles is multiplied for the whole batch, reduced to what the questions
//! need, and replaced by the next. The table of weights is divided into parts, with which idle cores help.
//!
//! The pass multiplies whole numbers of 16 bits, which takes half the time of floats. Its logits may be off by an error that
//! [`Bounds`](table::Bounds) limits. All articles within twice that error of the k-th are kept, and ranked by their exact logits.
//!
//! Must not know ONNX, sessions or files.

mod best;
mod pass;
mod rounded;
mod simd;
mod steered;
mod table;
mod tally;

use atelier_core::domain::Mask;

pub(super) use self::table::{NO_ARTICLE, PANEL, Table};
use self::{
    pass::{All, Pass, Stored},
    rounded::Input,
    simd::dispatch,
    tally::Tally,
};
use super::{Answer, Question, cores::RunCores};
use crate::pairs;

/// The panels, times questions, for which it pays to wake another core: 64,000 logits.
const PAYS: usize = 2_000;

/// Added to the logits of some articles, in the order of the articles.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Boosts(Vec<(u32, f32)>);

impl Boosts {
    /// Boosts of the same position are added up.
    pub(super) fn new(boosts: impl Iterator<Item = (u32, f32)>) -> Self {
        let mut pairs: Vec<u64> =
            boosts.map(|(position, boost)| pairs::pack(position, boost.to_bits())).collect();
        let boosts = pairs::by_first(&mut pairs);
        Self(boosts.map(|(position, boosts)| (position, boosts.map(f32::from_bits).sum())).collect())
    }

    fn as_slice(&self) -> &[(u32, f32)] {
        &self.0
    }
}

/// The trunk's output for a batch: one row per question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read<'a> {
    pub(super) hidden: &'a [f32],
    pub(super) personas: Option<&'a [f32]>,
    /// One per question, or none at all.
    pub(super) boosts: &'a [Boosts],
}

/// One answer per question, or None if a logit is not finite. `known` are the positions of articles, of which all may be
/// suggested if a question does not say which.
pub(super) fn answer(
    table: &Table,
    known: &Mask,
    read: Read<'_>,
    questions: &[Question],
    cores: &RunCores<'_>,
) -> Vec<Option<Answer>> {
    debug_assert_eq!(known.length(), table.positions(), "a bit for each position");
    let joined = join(table, read);
    let inputs: Vec<&[f32]> = rows_of(table, read, joined.as_deref()).collect();
    let order = order(questions);
    let inputs: Vec<Input<'_>> = order.iter().map(|position| Input::new(inputs[*position])).collect();
    let bounds = table.bounds();
    let panels = known.length().div_ceil(PANEL);
    let needed = |question: &Question| {
        let admissible = question.admissible.as_deref().filter(|_| question.only_admissible);
        admissible.map_or(panels, |mask| mask.count().min(panels))
    };
    let most = questions.iter().map(needed).sum::<usize>() / PAYS;
    let passes = cores.map_ranges(table.parts(), most.max(1), |parts| {
        let row = |(position, input): (&usize, &Input<'_>)| {
            let boosts = read.boosts.get(*position).map_or(&[][..], Boosts::as_slice);
            Tally::new(&questions[*position], known, boosts, bounds.error(input))
        };
        let mut rows: Vec<Tally<'_>> = order.iter().zip(&inputs).map(row).collect();
        dispatch(Pass { table, parts, inputs: &inputs, rows: &mut rows });
        rows
    });
    let mut passes = passes.into_iter();
    let mut rows = passes.next().expect("a table has at least one part");
    for next in passes {
        rows.iter_mut().zip(next).for_each(|(row, next)| row.append(next));
    }
    let mut answers = vec![None; questions.len()];
    for ((row, position), input) in rows.into_iter().zip(order).zip(&inputs) {
        answers[position] = row.answer(|article| table.logit(article as usize, input.numbers));
    }
    answers
}

/// The same for one question whose logits, one for each position, a whole model has computed.
pub(super) fn choose(mut logits: Vec<f32>, known: &Mask, question: &Question) -> Option<Answer> {
    let mut row = Tally::new(question, known, &[], 0.0);
    logits.resize(logits.len().next_multiple_of(PANEL), NO_ARTICLE);
    dispatch(Stored { panels: logits.as_chunks().0, row: &mut row });
    row.answer(|article| logits[article as usize])
}

/// The order in which questions are computed: first those about all articles, then those about some, of which neighbours
/// need the same panels.
fn order(questions: &[Question]) -> Vec<usize> {
    let first_position = |position: &usize| {
        let question = &questions[*position];
        let admissible = question.admissible.as_deref().filter(|_| question.only_admissible);
        admissible.map(|mask| mask.iter().next())
    };
    let mut order: Vec<usize> = (0..questions.len()).collect();
    order.sort_by_cached_key(first_position);
    order
}

/// All logits as the pass has them, one row per question and in it one for each position.
pub(super) fn logits(table: &Table, read: Read<'_>) -> Vec<Vec<f32>> {
    let joined = join(table, read);
    let inputs: Vec<Input<'_>> = rows_of(table, read, joined.as_deref()).map(Input::new).collect();
    let mut rows = dispatch(All { table, inputs: &inputs });
    for (row, boosts) in rows.iter_mut().zip(read.boosts) {
        boosts.as_slice().iter().for_each(|(position, boost)| row[*position as usize] += boost);
    }
    rows
}

/// The last layer's input, a row per question.
fn rows_of<'a>(table: &Table, read: Read<'a>, joined: Option<&'a [f32]>) -> impl Iterator<Item = &'a [f32]> {
    joined.unwrap_or(read.hidden).chunks_exact(table.inputs())
}

/// The hidden vectors and the personas side by side; None if the table has no personas.
fn join(table: &Table, read: Read<'_>) -> Option<Vec<f32>> {
    let personas = read.personas.filter(|_| table.personas() > 0)?.chunks_exact(table.personas());
    let rows = read.hidden.chunks_exact(table.hidden()).zip(personas);
    Some(rows.flat_map(|(hidden, personas)| hidden.iter().chain(personas)).copied().collect())
}

#[cfg(test)]
mod tests;
