//! Questions as input tensors of a release's models.

use super::{Context, Question};

/// The inputs of one run, row-major.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inputs {
    pub(super) batch: usize,
    pub(super) slots: usize,
    /// Padded to the longest outfit.
    pub(super) articles: Vec<i64>,
    pub(super) blanks: Vec<i64>,
    /// None if the model takes no features.
    pub(super) features: Option<FeatureCells>,
}

/// The input `features`: the values of each feature, padded with zeros to the longest list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FeatureCells {
    pub(super) features: usize,
    pub(super) values: usize,
    pub(super) cells: Vec<i64>,
}

impl Inputs {
    /// `articles` is the size of the vocabulary; `features` is the number of features, or None if the model takes none.
    pub(super) fn new(questions: &[Question], articles: usize, features: Option<usize>) -> Self {
        let batch = questions.len();
        let slots = questions.iter().map(|question| question.slots.len()).max().unwrap_or(0);
        let padding = i64::try_from(articles + 1).expect("a vocabulary is counted in 32 bits; this is a bug");
        let mut cells = vec![padding; batch * slots];
        for (row, question) in cells.chunks_exact_mut(slots.max(1)).zip(questions) {
            for (cell, &slot) in row.iter_mut().zip(&question.slots) {
                *cell = slot.into();
            }
        }
        let place = |question: &Question| i64::try_from(question.blank).expect("a slot; this is a bug");
        let contexts = questions.iter().map(|question| &question.context);
        Self {
            batch,
            slots,
            articles: cells,
            blanks: questions.iter().map(place).collect(),
            features: features.map(|features| FeatureCells::new(contexts, features)),
        }
    }
}

impl FeatureCells {
    fn new<'a>(contexts: impl Iterator<Item = &'a Context> + Clone, features: usize) -> Self {
        let values =
            contexts.clone().flat_map(|context| context.iter()).map(Vec::len).max().unwrap_or(0).max(1);
        let mut cells = Vec::new();
        for context in contexts {
            assert_eq!(context.len(), features, "the context has the schema's features; this is a bug");
            for indices in context.iter() {
                cells.extend(indices.iter().copied().map(i64::from));
                cells.extend(std::iter::repeat_n(0, values - indices.len()));
            }
        }
        Self { features, values, cells }
    }
}
