//! The last dense layer of a model, computed here instead of in ONNX Runtime. It is over half of all arithmetic.
//! Softmax, filters and choice happen in the same pass.
//!
//! The hidden vectors before the layer come in, one row per question; answers go out. The logits of the whole
//! catalogue are never stored: a panel of articles is multiplied for the whole batch, what the questions need of it is
//! kept, and the next panel replaces it. The table of weights is divided into parts, with which idle cores help.
//!
//! Must not know ONNX, sessions or files.

mod pass;
mod row;
mod simd;
mod table;

use std::borrow::Cow;

use pulp::Arch;

use self::{
    pass::{All, Pass},
    row::Row,
};
pub(super) use self::{
    simd::exp,
    table::{NO_ARTICLE, Table},
};
use super::{Answer, Question, cores::RunCores};
use crate::domain::Mask;

/// What is added to the logits of some articles, in the order of the articles.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Boosts(Vec<(u32, f32)>);

impl Boosts {
    /// Boosts of the same place are added up.
    pub(super) fn new(mut boosts: Vec<(u32, f32)>) -> Self {
        boosts.sort_by_key(|(place, _)| *place);
        boosts.dedup_by(|(place, boost), (before, sum)| {
            let is_same = place == before;
            *sum += if is_same { *boost } else { 0.0 };
            is_same
        });
        Self(boosts)
    }

    fn as_slice(&self) -> &[(u32, f32)] {
        &self.0
    }
}

/// What the trunk says of a batch: one row per question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read<'a> {
    pub(super) hidden: &'a [f32],
    pub(super) personas: Option<&'a [f32]>,
    /// One per question, or none at all.
    pub(super) boosts: &'a [Boosts],
}

/// One answer per question, or None if a logit is not finite. `known` are the places of articles, of which all may be
/// suggested if a question does not say which.
pub(super) fn answer(
    table: &Table,
    known: &Mask,
    read: Read<'_>,
    questions: &[Question],
    cores: &RunCores<'_>,
) -> Vec<Option<Answer>> {
    let joined =
        read.personas.filter(|_| table.personas() > 0).map(|personas| join(table, read.hidden, personas));
    let inputs = joined.as_deref().unwrap_or(read.hidden);
    let order = order(questions);
    let inputs = sort(inputs, table.inputs(), &order);
    let arch = Arch::new();
    let passes = cores.map_ranges(table.parts(), |parts| {
        let mut rows = rows(table, known, questions, read.boosts, &order);
        arch.dispatch(Pass { table, parts, inputs: &inputs, rows: &mut rows });
        rows
    });
    let mut passes = passes.into_iter();
    let mut rows = passes.next().expect("a table has at least one part; this is a bug");
    for next in passes {
        rows.iter_mut().zip(next).for_each(|(row, next)| row.append(next));
    }
    let mut answers = vec![None; questions.len()];
    for (row, place) in rows.into_iter().zip(order) {
        answers[place] = row.answer();
    }
    answers
}

/// The order in which questions are computed: first those about all articles, then those about some, of which neighbours
/// need the same panels.
fn order(questions: &[Question]) -> Vec<usize> {
    let first_place = |place: &usize| {
        let question = &questions[*place];
        let admissible = question.admissible.as_deref().filter(|_| question.only_admissible);
        admissible.map(|mask| mask.iter().next())
    };
    let mut order: Vec<usize> = (0..questions.len()).collect();
    order.sort_by_cached_key(first_place);
    order
}

/// The rows in an order.
fn sort<'a>(rows: &'a [f32], width: usize, order: &[usize]) -> Cow<'a, [f32]> {
    if order.is_sorted() {
        return rows.into();
    }
    order.iter().flat_map(|place| &rows[place * width..][..width]).copied().collect()
}

/// All logits, one row per question and in it one for each place.
pub(super) fn logits(table: &Table, read: Read<'_>) -> Vec<Vec<f32>> {
    let joined =
        read.personas.filter(|_| table.personas() > 0).map(|personas| join(table, read.hidden, personas));
    let inputs = joined.as_deref().unwrap_or(read.hidden);
    let mut rows = Arch::new().dispatch(All { table, inputs });
    for (row, boosts) in rows.iter_mut().zip(read.boosts) {
        boosts.as_slice().iter().for_each(|(place, boost)| row[*place as usize] += boost);
    }
    rows
}

fn rows<'q>(
    table: &Table,
    known: &'q Mask,
    questions: &'q [Question],
    boosts: &'q [Boosts],
    order: &[usize],
) -> Vec<Row<'q>> {
    let row = |place: &usize| {
        let boosts = boosts.get(*place).map_or(&[][..], Boosts::as_slice);
        Row::new(&questions[*place], known, boosts)
    };
    debug_assert_eq!(known.length(), table.places(), "a bit for each place; this is a bug");
    order.iter().map(row).collect()
}

/// The rows of both side by side.
fn join(table: &Table, hidden: &[f32], personas: &[f32]) -> Vec<f32> {
    let rows = hidden.chunks_exact(table.hidden()).zip(personas.chunks_exact(table.personas()));
    rows.flat_map(|(hidden, personas)| hidden.iter().chain(personas)).copied().collect()
}

#[cfg(test)]
mod tests;
