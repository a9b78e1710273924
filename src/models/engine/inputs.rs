//! Questions as the tensors that a release's models take.

use super::{Context, Question};

/// What one run is given, row-major.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inputs {
    pub(super) batch: usize,
    pub(super) slots: usize,
    /// Padded up to the longest outfit.
    pub(super) articles: Vec<i64>,
    pub(super) blanks: Vec<i64>,
    /// Where the model sees customers.
    pub(super) features: Option<FeatureCells>,
}

/// The input `features`: for each feature its values, and noughts up to the most that one of them has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FeatureCells {
    pub(super) features: usize,
    pub(super) values: usize,
    pub(super) cells: Vec<i64>,
}

impl Inputs {
    /// For a vocabulary of so many articles; with so many features, or none where the model takes none.
    pub(super) fn new(questions: &[Question], articles: usize, features: Option<usize>) -> Self {
        let batch = questions.len();
        let slots = questions.iter().map(|question| question.slots.len()).max().unwrap_or(0);
        let padding = i64::try_from(articles + 1).expect("vocabularies are smaller; this is a bug");
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
            assert_eq!(context.len(), features, "a context of the release's schema; this is a bug");
            for given in context.iter() {
                cells.extend(given.iter().copied().map(i64::from));
                cells.extend(std::iter::repeat_n(0, values - given.len()));
            }
        }
        Self { features, values, cells }
    }
}
