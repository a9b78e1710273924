//! Questions as input tensors of a release's models.

use serde::{Serialize, Serializer};

use super::{BLANK, Context, PADDING, Question, model::Form};
use crate::tables::Composition;

/// The inputs of one run.
#[derive(Debug, PartialEq)]
pub(super) struct Inputs {
    pub(super) batch: usize,
    pub(super) tensors: Vec<Input>,
}

/// A tensor, as the Open Inference Protocol describes it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Input {
    pub(super) name: &'static str,
    datatype: &'static str,
    pub(super) shape: Shape,
    pub(super) data: Data,
}

/// One to three lengths. The others are 0: each run makes some of these, and a list would be an allocation.
#[derive(Debug, PartialEq)]
pub(super) struct Shape([usize; 3], usize);

impl Shape {
    pub(super) fn lengths(&self) -> &[usize] {
        &self.0[..self.1]
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lengths().serialize(serializer)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(lengths: [usize; N]) -> Self {
        let mut shape = [0; 3];
        shape[..N].copy_from_slice(&lengths);
        Self(shape, N)
    }
}

/// Row-major.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Data {
    Integers(Vec<i64>),
    Floats(Vec<f32>),
}

/// A slot's kind, in the input `kinds`.
const KIND_ARTICLE: i64 = 0;
const KIND_BLANK: i64 = 1;
const KIND_PADDING: i64 = 2;

impl Inputs {
    /// `features` is the number of features, or None if the model takes none.
    pub(super) fn new(questions: &[Question], form: &Form, features: Option<usize>) -> Self {
        let batch = questions.len();
        let slots = questions.iter().map(|question| question.slots.len()).max().unwrap_or(0);
        // Padded to the longest outfit.
        let padded = questions.iter().flat_map(|question| {
            let padding = std::iter::repeat(PADDING);
            question.slots.iter().copied().chain(padding).take(slots).map(move |slot| (question, slot))
        });
        let position = |question: &Question| i64::try_from(question.blank).expect("a slot");
        let contexts = questions.iter().map(|question| &question.context);
        let mut tensors = Vec::with_capacity(5);
        match form {
            Form::Whole { articles } => {
                tensors.push(Input::integers("articles", [batch, slots], numbers(padded, *articles)));
            }
            Form::Trunk(tables) => {
                let width = tables.widths().row();
                let (mut rows, mut kinds) =
                    (vec![0.0; batch * slots * width], Vec::with_capacity(batch * slots));
                for ((question, slot), row) in padded.zip(rows.chunks_exact_mut(width)) {
                    kinds.push(match slot {
                        BLANK => KIND_BLANK,
                        PADDING => KIND_PADDING,
                        slot => {
                            tables.write_row(composition(question, slot), row);
                            KIND_ARTICLE
                        }
                    });
                }
                tensors.push(Input::floats("rows", [batch, slots, width], rows));
                tensors.push(Input::integers("kinds", [batch, slots], kinds));
            }
        }
        tensors.push(Input::integers("blank", [batch], questions.iter().map(position).collect()));
        if let Form::Trunk(tables) = form
            && let Some(encoder) = tables.context()
        {
            let mut numbers = Vec::with_capacity(batch * encoder.width());
            contexts.clone().for_each(|context| encoder.write(context, &mut numbers));
            tensors.push(Input::floats("context", [batch, encoder.width()], numbers));
        }
        tensors.extend(features.map(|features| feature_values(contexts, batch, features)));
        Self { batch, tensors }
    }
}

impl Input {
    fn integers<const N: usize>(name: &'static str, shape: [usize; N], numbers: Vec<i64>) -> Self {
        Self { name, datatype: "INT64", shape: shape.into(), data: Data::Integers(numbers) }
    }

    fn floats<const N: usize>(name: &'static str, shape: [usize; N], numbers: Vec<f32>) -> Self {
        Self { name, datatype: "FP32", shape: shape.into(), data: Data::Floats(numbers) }
    }
}

fn composition(question: &Question, slot: u32) -> &Composition {
    question.articles.index.composition(slot).expect("a slot holds an article of the catalogue")
}

/// The numbers of the vocabulary's articles, of blanks and of padding, as a whole model takes them.
fn numbers<'q>(slots: impl Iterator<Item = (&'q Question, u32)>, articles: usize) -> Vec<i64> {
    let blank = i64::try_from(articles).expect("a vocabulary is counted in 32 bits");
    let number = |(question, slot)| match slot {
        BLANK => blank,
        PADDING => blank + 1,
        slot => composition(question, slot).own.map_or(blank + 1, i64::from),
    };
    slots.map(number).collect()
}

/// The values of each feature, padded with zeros to the longest list.
fn feature_values<'a>(
    contexts: impl Iterator<Item = &'a Context> + Clone,
    batch: usize,
    features: usize,
) -> Input {
    let values = contexts.clone().flat_map(|context| context.iter()).map(Vec::len).max().unwrap_or(0).max(1);
    let mut cells = Vec::new();
    for context in contexts {
        assert_eq!(context.len(), features, "the context has the schema's features");
        for indices in context.iter() {
            cells.extend(indices.iter().copied().map(i64::from));
            cells.extend(std::iter::repeat_n(0, values - indices.len()));
        }
    }
    Input::integers("features", [batch, features, values], cells)
}
