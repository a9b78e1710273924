//! Questions as input tensors of a release's models.

use super::{BLANK, Context, PADDING, Question, model::Form};
use crate::tables::ContextEncoder;

/// The inputs of one run, row-major.
#[derive(Debug, PartialEq)]
pub(super) struct Inputs {
    pub(super) batch: usize,
    pub(super) slots: usize,
    pub(super) articles: ArticleCells,
    pub(super) blanks: Vec<i64>,
    /// The width of the input `context` and its numbers, if a trunk takes it.
    pub(super) context: Option<(usize, Vec<f32>)>,
    /// None if the model takes no features.
    pub(super) features: Option<FeatureCells>,
}

/// The outfits, padded to the longest.
#[derive(Debug, PartialEq)]
pub(super) enum ArticleCells {
    /// The input `articles` of a whole model: numbers of the vocabulary, of blanks and of padding.
    Numbers(Vec<i64>),
    /// The inputs `rows` and `kinds` of a trunk.
    Rows { width: usize, rows: Vec<f32>, kinds: Vec<i64> },
}

/// What a slot holds, in the input `kinds`.
const KIND_ARTICLE: i64 = 0;
const KIND_BLANK: i64 = 1;
const KIND_PADDING: i64 = 2;

/// The input `features`: the values of each feature, padded with zeros to the longest list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FeatureCells {
    pub(super) features: usize,
    pub(super) values: usize,
    pub(super) cells: Vec<i64>,
}

impl Inputs {
    /// `features` is the number of features, or None if the model takes none.
    pub(super) fn new(questions: &[Question], form: &Form, features: Option<usize>) -> Self {
        let batch = questions.len();
        let slots = questions.iter().map(|question| question.slots.len()).max().unwrap_or(0);
        let padded = questions.iter().flat_map(|question| {
            let padding = std::iter::repeat(PADDING);
            question.slots.iter().copied().chain(padding).take(slots).map(move |slot| (question, slot))
        });
        let position = |question: &Question| i64::try_from(question.blank).expect("a slot; this is a bug");
        let contexts = questions.iter().map(|question| &question.context);
        let encoder = if let Form::Trunk(tables) = form { tables.context() } else { None };
        let encode = |encoder: &ContextEncoder| {
            let mut numbers = Vec::with_capacity(batch * encoder.width());
            contexts.clone().for_each(|context| encoder.write(context, &mut numbers));
            (encoder.width(), numbers)
        };
        Self {
            batch,
            slots,
            articles: ArticleCells::new(padded, batch * slots, form),
            blanks: questions.iter().map(position).collect(),
            context: encoder.map(encode),
            features: features.map(|features| FeatureCells::new(contexts, features)),
        }
    }
}

impl ArticleCells {
    fn new<'q>(slots: impl Iterator<Item = (&'q Question, u32)>, count: usize, form: &Form) -> Self {
        let known = |question: &'q Question, slot: u32| {
            question
                .articles
                .composition(slot)
                .expect("a slot holds an article of the catalogue; this is a bug")
        };
        match form {
            Form::Whole { articles } => {
                let blank =
                    i64::try_from(*articles).expect("a vocabulary is counted in 32 bits; this is a bug");
                let number = |(question, slot): (&'q Question, u32)| match slot {
                    BLANK => blank,
                    PADDING => blank + 1,
                    slot => known(question, slot).own.map_or(blank + 1, i64::from),
                };
                Self::Numbers(slots.map(number).collect())
            }
            Form::Trunk(tables) => {
                let width = tables.widths().row();
                let (mut rows, mut kinds) = (vec![0.0; count * width], Vec::with_capacity(count));
                for ((question, slot), row) in slots.zip(rows.chunks_exact_mut(width)) {
                    kinds.push(match slot {
                        BLANK => KIND_BLANK,
                        PADDING => KIND_PADDING,
                        slot => {
                            tables.write_row(known(question, slot), row);
                            KIND_ARTICLE
                        }
                    });
                }
                Self::Rows { width, rows, kinds }
            }
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
