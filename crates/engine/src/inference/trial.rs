//! The trial run: what a model must show before it answers customers.
//!
//! It answers questions about outfits of every length, with and without a context, first each alone. Then the same
//! questions come in one batch, with padding between their slots, and with their slots in another order. All answers must
//! be finite, and the answers to one question equal up to rounding. Otherwise, with a model that attends to padding,
//! other callers' questions would change a customer's answer.
//!
//! Must not know releases, files or where the model runs.

use std::{sync::Arc, time::Instant};

use atelier_core::domain::{Feature, Schema};

use super::{Answer, Articles, BLANK, Context, PADDING, Question, model::ModelError};

/// The articles whose probabilities are compared, evenly from the whole vocabulary. All logits are computed and must be
/// finite, but comparing all of a large vocabulary would take seconds, and what changes one changes most.
const COMPARED: u32 = 32;
/// How much a log-probability may differ, as a part of the distance between the most and the least likely of the
/// compared articles. The demo's models differ by 5e-7 of it on a CPU; half precision and TF32 round to a thousandth.
const TOLERANCE: f64 = 0.003;
/// The effect of rounding if all articles are about equally likely.
const LEAST_TOLERANCE: f64 = 0.001;
/// Its effect on a persona's part of the mix.
const PERSONA_TOLERANCE: f64 = 0.01;
/// The questions in one run while all articles are tried.
const BATCH: usize = 64;

/// Answers questions in one run.
pub(super) type Run<'a> =
    dyn FnMut(&[Question], Instant) -> Result<Vec<Result<Answer, ModelError>>, ModelError> + 'a;

/// A trial run's subject.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) articles: &'a Arc<Articles>,
    pub(super) schema: &'a Schema,
    pub(super) deadline: Instant,
}

impl Trial<'_> {
    /// Asks all questions in one run, and one alone.
    pub(super) fn answers(&self, run: &mut Run<'_>) -> Result<(), ModelError> {
        let questions = self.questions();
        self.ask(run, &questions)?;
        self.ask(run, &questions[..1]).map(drop)
    }

    /// Asks the same questions in several ways. `varies` makes the error from what was found and expected.
    pub(super) fn same_answers(
        &self,
        run: &mut Run<'_>,
        varies: impl Fn(String, String) -> ModelError,
    ) -> Result<(), ModelError> {
        let questions = self.questions();
        let mut alone = Vec::new();
        for question in &questions {
            alone.extend(self.ask(run, std::slice::from_ref(question))?);
        }
        let padded = questions.iter().map(|question| self.with_padding(question)).collect();
        let reversed = questions.iter().map(reversed).collect();
        let ways: [(&str, Vec<Question>); 3] = [
            ("in a batch with longer outfits", questions),
            ("with padding between its slots", padded),
            ("with its slots in another order", reversed),
        ];
        for (way, questions) in ways {
            for (first, second) in alone.iter().zip(&self.ask(run, &questions)?) {
                if let Some((found, most)) = difference(first, second) {
                    return Err(varies(
                        format!("different by {found:.4} {way}"),
                        format!("the answer that it gives alone (at most {most:.4} by rounding)"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Asks about outfits that contain each article once.
    pub(super) fn every_article(&self, run: &mut Run<'_>) -> Result<(), ModelError> {
        let articles: Vec<u32> = (0..self.count()).collect();
        let empty = self.contexts()[1].clone();
        let question = |others: &[u32]| {
            let slots = [&[BLANK][..], others].concat();
            Question { k: 1, ..Question::new(Arc::clone(self.articles), slots, 0, empty.clone()) }
        };
        let questions: Vec<Question> = articles.chunks(self.most_slots() - 1).map(question).collect();
        questions.chunks(BATCH).try_for_each(|questions| self.ask(run, questions).map(drop))
    }

    fn most_slots(&self) -> usize {
        self.schema.outfit_size().most
    }

    fn count(&self) -> u32 {
        u32::try_from(self.articles.len()).expect("articles are counted in 32 bits")
    }

    fn ask(&self, run: &mut Run<'_>, questions: &[Question]) -> Result<Vec<Answer>, ModelError> {
        run(questions, self.deadline)?.into_iter().collect()
    }

    /// One question for each length. Outfits of six and more slots have two blanks.
    pub(super) fn questions(&self) -> Vec<Question> {
        let count = self.count();
        let contexts = self.contexts();
        let step = (count / COMPARED).max(1);
        let compared: Vec<u32> = (0..count).step_by(step as usize).chain([count - 1]).collect();
        // Multiples of a prime, to have articles from the whole vocabulary.
        let others = (1..).map(|position: u64| {
            u32::try_from(position * 7919 % u64::from(count)).expect("it is below the vocabulary")
        });
        let question = |length: usize| {
            let mut slots: Vec<u32> =
                std::iter::once(BLANK).chain(others.clone().skip(length).take(length - 1)).collect();
            if length > 5 {
                slots[2] = BLANK;
            }
            let context = contexts[length % 2].clone();
            let question = Question::new(Arc::clone(self.articles), slots, 0, context);
            Question { k: 1, placements_of: compared.clone(), ..question }
        };
        (1..=self.most_slots()).map(question).collect()
    }

    /// The last row of each feature's table, to find tables that are too short, and no feature at all.
    fn contexts(&self) -> [Context; 2] {
        let last = |feature: &Feature| vec![u32::try_from(feature.rows() - 1).expect("tables are small")];
        let full: Context = self.schema.features().iter().map(last).collect();
        let empty = vec![Vec::new(); full.len()].into();
        [full, empty]
    }

    /// The question with as much padding in front of its slots as fits.
    fn with_padding(&self, question: &Question) -> Question {
        let mut room = self.most_slots() - question.slots.len();
        let (mut slots, mut blank) = (Vec::new(), 0);
        for (position, &slot) in question.slots.iter().enumerate() {
            // An outfit of one slot has padding behind it, too.
            let here = room.min(2);
            slots.extend(std::iter::repeat_n(PADDING, here));
            room -= here;
            if position == question.blank {
                blank = slots.len();
            }
            slots.push(slot);
        }
        slots.extend(std::iter::repeat_n(PADDING, room));
        Question { slots, blank, ..question.clone() }
    }
}

fn reversed(question: &Question) -> Question {
    let slots: Vec<u32> = question.slots.iter().rev().copied().collect();
    let blank = slots.len() - 1 - question.blank;
    Question { slots, blank, ..question.clone() }
}

/// The difference between two answers and the most that it may be, if it is more.
fn difference(first: &Answer, second: &Answer) -> Option<(f64, f64)> {
    let logs = |answer: &Answer| -> Vec<f64> {
        answer.placements.iter().map(|placement| placement.log_probability).collect()
    };
    // A difference of infinities is NaN.
    let distance_of =
        |(a, b): (&f64, &f64)| Some((a - b).abs()).filter(|d| !d.is_nan()).unwrap_or(f64::INFINITY);
    let largest = |a: &[f64], b: &[f64]| a.iter().zip(b).map(distance_of).fold(0.0, f64::max);
    let (a, b) = (logs(first), logs(second));
    let distance = a.iter().copied().fold(f64::MIN, f64::max) - a.iter().copied().fold(f64::MAX, f64::min);
    let mixes =
        |answer: &Answer| -> Vec<f64> { answer.personas.iter().flatten().copied().map(f64::from).collect() };
    let checks = [
        (largest(&a, &b), (TOLERANCE * distance).max(LEAST_TOLERANCE)),
        (largest(&mixes(first), &mixes(second)), PERSONA_TOLERANCE),
    ];
    checks.into_iter().find(|(found, most)| found > most)
}
