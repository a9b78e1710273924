//! The last dense layer of a model, computed here instead of in ONNX Runtime. It is over half of all arithmetic.
//! Softmax, filters and choice happen in the same pass.
//!
//! The hidden vectors before the layer come in, one row per question; answers go out. The logits of the whole
//! vocabulary are never stored: a panel of articles is multiplied for the whole batch, what the questions need of it is
//! kept, and the next panel replaces it. All copies of a model share one table of weights. A large table is divided
//! into parts, with which idle cores help.
//!
//! Must not know ONNX, sessions or files.

mod pass;
mod row;
mod simd;
mod table;

use pulp::Arch;

pub(super) use self::simd::exp;
use self::{
    pass::Pass,
    row::Row,
    table::{Matrix, Table},
};
use super::{Answer, Question, cores::RunCores};

/// A model's last layer.
#[derive(Debug)]
pub(super) struct Head {
    table: Table,
    hidden: usize,
    arch: Arch,
}

/// The weights as in the file: matrices with one row per article.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeadWeights {
    pub(super) vocabulary: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) personas: Option<Vec<f32>>,
}

impl Head {
    pub(super) fn new(weights: &HeadWeights) -> Self {
        let articles = weights.bias.len();
        let matrix = |weights| Matrix { weights, columns: <[f32]>::len(weights) / articles };
        let vocabulary = matrix(&weights.vocabulary);
        let matrices: Vec<Matrix<'_>> =
            std::iter::once(vocabulary).chain(weights.personas.as_deref().map(matrix)).collect();
        Self { table: Table::new(&weights.bias, &matrices), hidden: vocabulary.columns, arch: Arch::new() }
    }

    /// The length of a hidden vector.
    pub(super) fn hidden(&self) -> usize {
        self.hidden
    }

    /// The number of personas that the layer takes.
    pub(super) fn personas(&self) -> usize {
        self.table.inputs() - self.hidden
    }

    /// One answer per question, or None if a logit is not finite.
    pub(super) fn answer(
        &self,
        hidden: &[f32],
        personas: Option<&[f32]>,
        questions: &[Question],
        cores: &RunCores<'_>,
    ) -> Vec<Option<Answer>> {
        // A model may return personas without using them in its last layer.
        let joined = personas.filter(|_| self.personas() > 0).map(|personas| self.join(hidden, personas));
        let inputs = joined.as_deref().unwrap_or(hidden);
        let passes = cores.map_ranges(self.table.parts(), |parts| {
            let row = |question| Row::new(question, self.table.articles());
            let mut rows: Vec<Row<'_>> = questions.iter().map(row).collect();
            self.arch.dispatch(Pass { table: &self.table, parts, inputs, rows: &mut rows });
            rows
        });
        let mut passes = passes.into_iter();
        let mut rows = passes.next().expect("a table has at least one part; this is a bug");
        for next in passes {
            rows.iter_mut().zip(next).for_each(|(row, next)| row.append(next));
        }
        rows.into_iter().map(Row::answer).collect()
    }

    /// The rows of both side by side.
    fn join(&self, hidden: &[f32], personas: &[f32]) -> Vec<f32> {
        let rows = hidden.chunks_exact(self.hidden).zip(personas.chunks_exact(self.personas()));
        rows.flat_map(|(hidden, personas)| hidden.iter().chain(personas)).copied().collect()
    }
}

#[cfg(test)]
mod tests;
