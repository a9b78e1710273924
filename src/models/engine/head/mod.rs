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

/// What is added to the logits of some articles, in the order of the articles.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Boosts(Vec<(u32, f32)>);

impl Boosts {
    /// Returns None if an article is not one of `articles`.
    pub(super) fn new(boosted: &[i32], boosts: &[f32], articles: usize) -> Option<Self> {
        let given = boosted.iter().zip(boosts).filter(|(_, boost)| **boost != 0.0);
        let article =
            |&article: &i32| u32::try_from(article).ok().filter(|&place| (place as usize) < articles);
        let mut own: Vec<_> =
            given.map(|(place, &boost)| Some((article(place)?, boost))).collect::<Option<_>>()?;
        own.sort_by_key(|(article, _)| *article);
        own.dedup_by(|(article, boost), (before, sum)| {
            let is_same = article == before;
            *sum += if is_same { *boost } else { 0.0 };
            is_same
        });
        Some(Self(own))
    }

    fn as_slice(&self) -> &[(u32, f32)] {
        &self.0
    }
}

/// A model's last layer.
#[derive(Debug)]
pub(super) struct Head {
    table: Table,
    hidden: usize,
    is_boosted: bool,
    arch: Arch,
}

/// The weights as in the file: matrices with one row per article.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeadWeights {
    pub(super) vocabulary: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) personas: Option<Vec<f32>>,
    /// Whether boosts are added to the logits.
    pub(super) is_boosted: bool,
}

impl Head {
    pub(super) fn new(weights: &HeadWeights) -> Self {
        let articles = weights.bias.len();
        let matrix = |weights| Matrix { weights, columns: <[f32]>::len(weights) / articles };
        let vocabulary = matrix(&weights.vocabulary);
        let matrices: Vec<Matrix<'_>> =
            std::iter::once(vocabulary).chain(weights.personas.as_deref().map(matrix)).collect();
        Self {
            table: Table::new(&weights.bias, &matrices),
            hidden: vocabulary.columns,
            is_boosted: weights.is_boosted,
            arch: Arch::new(),
        }
    }

    /// Whether boosts are added to the logits.
    pub(super) fn is_boosted(&self) -> bool {
        self.is_boosted
    }

    /// The length of a hidden vector.
    pub(super) fn hidden(&self) -> usize {
        self.hidden
    }

    /// The number of personas that the layer takes.
    pub(super) fn personas(&self) -> usize {
        self.table.inputs() - self.hidden
    }

    /// One answer per question, or None if a logit is not finite. `boosts` are added to the logits of their articles.
    pub(super) fn answer(
        &self,
        hidden: &[f32],
        personas: Option<&[f32]>,
        boosts: &[Boosts],
        questions: &[Question],
        cores: &RunCores<'_>,
    ) -> Vec<Option<Answer>> {
        // A model may return personas without using them in its last layer.
        let joined = personas.filter(|_| self.personas() > 0).map(|personas| self.join(hidden, personas));
        let inputs = joined.as_deref().unwrap_or(hidden);
        let passes = cores.map_ranges(self.table.parts(), |parts| {
            let mut rows = self.rows(questions, boosts);
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

    fn rows<'q>(&self, questions: &'q [Question], boosts: &'q [Boosts]) -> Vec<Row<'q>> {
        let boosts = boosts.iter().map(Boosts::as_slice).chain(std::iter::repeat(&[][..]));
        let row = |(question, boosts)| Row::new(question, self.table.articles(), boosts);
        questions.iter().zip(boosts).map(row).collect()
    }

    /// The rows of both side by side.
    fn join(&self, hidden: &[f32], personas: &[f32]) -> Vec<f32> {
        let rows = hidden.chunks_exact(self.hidden).zip(personas.chunks_exact(self.personas()));
        rows.flat_map(|(hidden, personas)| hidden.iter().chain(personas)).copied().collect()
    }
}

#[cfg(test)]
mod tests;
