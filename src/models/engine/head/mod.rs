//! The last dense layer of a model, taken out of its graph and computed here: over half of all arithmetic, and
//! with it softmax, filter and choice in one pass.
//!
//! The vector before the layer comes in, one row a question; answers go out. The logits of the whole vocabulary
//! never exist: a panel of articles at a time is multiplied for the whole batch, what is asked of it is kept, and the
//! next takes its place. All copies of a model share one table of weights. A large table is gone over in parts, by the
//! cores that are free.
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
    table::{Part, Table},
};
use super::{Answer, Question, cores::Share};

/// A model's last layer.
#[derive(Debug)]
pub(super) struct Head {
    table: Table,
    hidden: usize,
    arch: Arch,
}

/// Its weights, as a file has them: matrices with one row an article.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeadWeights {
    pub(super) vocabulary: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) personas: Option<Vec<f32>>,
}

impl Head {
    pub(super) fn new(weights: &HeadWeights) -> Self {
        let articles = weights.bias.len();
        let part = |weights| Part { weights, columns: <[f32]>::len(weights) / articles };
        let vocabulary = part(&weights.vocabulary);
        let parts: Vec<Part<'_>> =
            std::iter::once(vocabulary).chain(weights.personas.as_deref().map(part)).collect();
        Self { table: Table::new(&weights.bias, &parts), hidden: vocabulary.columns, arch: Arch::new() }
    }

    /// How many numbers of `hidden` it takes.
    pub(super) fn hidden(&self) -> usize {
        self.hidden
    }

    /// How many personas it takes.
    pub(super) fn personas(&self) -> usize {
        self.table.inputs() - self.hidden
    }

    /// One answer a question, computed on a run's share of the cores: none where a logit is no finite number.
    pub(super) fn answer(
        &self,
        hidden: &[f32],
        personas: Option<&[f32]>,
        questions: &[Question],
        share: &Share<'_>,
    ) -> Vec<Option<Answer>> {
        // A model may give personas that its last layer does not take.
        let joined = personas.filter(|_| self.personas() > 0).map(|personas| self.join(hidden, personas));
        let inputs = joined.as_deref().unwrap_or(hidden);
        let passes = share.over(self.table.parts(), |parts| {
            let row = |question| Row::new(question, self.table.articles());
            let mut rows: Vec<Row<'_>> = questions.iter().map(row).collect();
            self.arch.dispatch(Pass { table: &self.table, parts, inputs, rows: &mut rows });
            rows
        });
        let mut passes = passes.into_iter();
        let mut rows = passes.next().expect("a table has a part; this is a bug");
        for behind in passes {
            rows.iter_mut().zip(behind).for_each(|(row, behind)| row.absorb(behind));
        }
        rows.into_iter().map(Row::answer).collect()
    }

    /// Each row with its personas behind it.
    fn join(&self, hidden: &[f32], personas: &[f32]) -> Vec<f32> {
        let rows = hidden.chunks_exact(self.hidden).zip(personas.chunks_exact(self.personas()));
        rows.flat_map(|(hidden, personas)| hidden.iter().chain(personas)).copied().collect()
    }
}

#[cfg(test)]
mod tests;
