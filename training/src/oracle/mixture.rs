//! Averaging over contexts: what many a customer would have had the stylist pick, each weighted by how
//! likely it makes the other articles.

use rayon::prelude::*;

use super::{AtSize, Unknown};
use crate::{
    metrics::{Estimate, Summary, Tally, rank},
    number::real,
    world::{Evidence, Occasion, Reading, World},
};

/// One blank of a validation outfit.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) customer: usize,
    pub(super) occasion: Option<Occasion>,
    pub(super) seen: bool,
    pub(super) evidence: Evidence,
    /// Where the true article stands on the shelf.
    pub(super) answer: usize,
}

/// How likely and how high the true article came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) probability: f64,
    pub(super) rank: f64,
}

/// Contexts read at once.
const BLOCK: usize = 48;

/// The answer of one who knows the customer and the occasion.
pub(super) fn exact(world: &World, question: &Question) -> Answer {
    let mut belief = Belief::new(world);
    let reading = world.read(world.context(question.customer, question.occasion));
    belief.hear(world, &question.evidence, &reading);
    belief.answer(question.answer)
}

/// Answers of one who knows the contexts that there are, at several numbers of them.
#[derive(Debug)]
pub(super) struct Mixed {
    answers: Vec<Vec<Answer>>,
    effective: Vec<f64>,
    with_own: Vec<Answer>,
}

impl Mixed {
    pub(super) fn new(sizes: usize) -> Self {
        Self { answers: vec![Vec::new(); sizes], effective: vec![0.0; sizes], with_own: Vec::new() }
    }

    pub(super) fn extend(&mut self, other: Mixed) {
        for (mine, theirs) in self.answers.iter_mut().zip(other.answers) {
            mine.extend(theirs);
        }
        for (mine, theirs) in self.effective.iter_mut().zip(other.effective) {
            *mine += theirs;
        }
        self.with_own.extend(other.with_own);
    }

    /// These answers beside those of one who knows all, to the same questions in the same order.
    pub(super) fn against(&self, known: &[Answer], sizes: &[usize]) -> Unknown {
        let at_sizes: Vec<AtSize> = sizes
            .iter()
            .zip(&self.answers)
            .zip(&self.effective)
            .map(|((contexts, answers), effective)| AtSize {
                contexts: *contexts,
                effective_contexts: effective / real(answers.len().max(1)),
                answers: tally(answers),
            })
            .collect();
        let worth = |answers: &[Answer]| {
            Estimate::from_values(
                known
                    .iter()
                    .zip(answers)
                    .map(|(with, without)| with.probability.ln() - without.probability.ln()),
            )
        };
        let with_own = tally(&self.with_own);
        Unknown {
            limit: limit(&at_sizes, &with_own),
            sizes: at_sizes,
            worth_at_most: worth(self.answers.last().map_or(&[], Vec::as_slice)),
            worth_at_least: worth(&self.with_own),
            with_own,
        }
    }
}

fn limit(sizes: &[AtSize], with_own: &Summary) -> Option<f64> {
    let [.., first, second, third] = sizes else { return None };
    let at = |size: &AtSize| size.answers.cross_entropy.mean;
    let (before, last) = (at(first) - at(second), at(second) - at(third));
    let ratio = (last / before).clamp(0.3, 0.75);
    let left = if last > 0.0 && before > 0.0 { last * ratio / (1.0 - ratio) } else { 0.0 };
    Some((at(third) - left).max(with_own.cross_entropy.mean))
}

pub(super) fn mix(
    world: &World,
    questions: &[&Question],
    contexts: &[(usize, Option<Occasion>)],
    sizes: &[usize],
) -> Mixed {
    let mut states: Vec<(Belief, Vec<(Answer, f64)>)> =
        questions.iter().map(|_| (Belief::new(world), Vec::new())).collect();
    for block in contexts.chunks(BLOCK) {
        let readings: Vec<Reading<'_>> = block
            .par_iter()
            .map(|(customer, occasion)| world.read(world.context(*customer, *occasion)))
            .collect();
        states.par_iter_mut().zip(questions).for_each(|((belief, answers), question)| {
            for reading in &readings {
                belief.hear(world, &question.evidence, reading);
                if sizes.contains(&belief.heard) {
                    answers.push((belief.answer(question.answer), belief.effective()));
                }
            }
        });
    }
    let with_own = states
        .par_iter_mut()
        .zip(questions)
        .map(|((belief, _), question)| {
            let reading = world.read(world.context(question.customer, question.occasion));
            belief.hear(world, &question.evidence, &reading);
            belief.answer(question.answer)
        })
        .collect();
    let mut mixed = Mixed::new(sizes.len());
    mixed.with_own = with_own;
    for (_, answers) in states {
        for (size, (answer, effective)) in answers.into_iter().enumerate() {
            mixed.answers[size].push(answer);
            mixed.effective[size] += effective;
        }
    }
    mixed
}

pub(super) fn tally<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Summary {
    let mut tally = Tally::default();
    answers.into_iter().for_each(|answer| tally.add(answer.probability, answer.rank));
    tally.summary()
}

/// What the contexts heard so far say, summed: Pr(article, others | context) for every article.
#[derive(Debug)]
struct Belief {
    joint: Vec<f64>,
    evidence: f64,
    evidence_squared: f64,
    heard: usize,
}

impl Belief {
    /// A context that makes the others this much less likely than all those before it together adds
    /// nothing that a printed digit could show, even if a hundred thousand such are passed over.
    const NEGLIGIBLE: f64 = 1e-9;

    fn new(world: &World) -> Self {
        Self { joint: vec![0.0; world.plan().articles], evidence: 0.0, evidence_squared: 0.0, heard: 0 }
    }

    fn hear(&mut self, world: &World, evidence: &Evidence, reading: &Reading<'_>) {
        self.heard += 1;
        let floor = Self::NEGLIGIBLE * self.evidence;
        let Some(posterior) = world.posterior(evidence, reading, floor) else { return };
        self.evidence += posterior.evidence;
        self.evidence_squared += posterior.evidence * posterior.evidence;
        for (cell, factor) in &posterior.cells {
            let places = world.places_of(*cell);
            for (joint, score) in self.joint[places.clone()].iter_mut().zip(reading.scores.places(places)) {
                *joint += factor * score;
            }
        }
    }

    fn answer(&self, place: usize) -> Answer {
        Answer { probability: self.joint[place] / self.evidence, rank: rank(&self.joint, place) }
    }

    fn effective(&self) -> f64 {
        self.evidence * self.evidence / self.evidence_squared
    }
}
