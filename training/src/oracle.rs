//! The best possible answers: what the world itself, asked about a blank, would say.
//!
//! With the context known the answer is exact. With the customer unknown it is the average over
//! contexts drawn as outfits draw them, each weighted by how likely it makes the other articles. A
//! finite draw of contexts misses some of those that matter and overstates that cross-entropy, so it
//! is reported at several sizes of draw. This module sees the world only; no method, no file.

use std::collections::HashSet;

use rayon::prelude::*;
use serde::Serialize;

use crate::{
    metrics::{Summary, Tally, rank},
    number::real,
    random::{Stream, Table},
    world::{Evidence, OCCASIONS, Occasion, Reading, World},
};

/// How much to ask.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Validation slots, drawn without replacement, each equally likely.
    pub slots: usize,
    /// Contexts to average over where the customer is unknown.
    pub contexts: usize,
}

/// What the oracle knows of the customer and the occasion.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Customer and occasion known: exact.
    pub known: Summary,
    /// The same, for customers who have training outfits and for those who have none.
    pub known_seen: Summary,
    pub known_unseen: Summary,
    /// Neither known, by the number of contexts averaged over.
    pub unknown: Vec<AtSize>,
    /// Neither known, with the slot's own context added to the largest draw. It errs the other way:
    /// it understates the cross-entropy.
    pub unknown_with_own: Summary,
    /// Occasion known, customer not, by the number of contexts averaged over.
    pub occasion: Vec<AtSize>,
    pub occasion_with_own: Summary,
}

#[derive(Debug, Clone, Serialize)]
pub struct AtSize {
    pub contexts: usize,
    /// Contexts that carry the average: the mean over slots of (Σw)²/Σw².
    pub effective_contexts: f64,
    pub answers: Summary,
}

/// One blank of a validation outfit.
#[derive(Debug)]
struct Question {
    customer: usize,
    occasion: Option<Occasion>,
    seen: bool,
    evidence: Evidence,
    /// Where the true article stands on the shelf.
    answer: usize,
}

/// How likely and how high the true article came.
#[derive(Debug, Clone, Copy)]
struct Answer {
    probability: f64,
    rank: f64,
}

/// Questions worked on at once, so that their tables fit in memory.
const BATCH: usize = 1024;
/// Contexts read at once.
const BLOCK: usize = 48;

/// How many steps [`consult`] tells of, if there are as many slots as asked for.
pub fn steps(effort: Effort) -> usize {
    effort.slots.div_ceil(BATCH) * (2 + OCCASIONS.len())
}

/// Where the cross-entropy goes as the draw of contexts grows: what was gained over the last doubling,
/// as a share of the one before, is taken to go on; held between the largest draw and the same with the
/// slot's own context. `None` where there are fewer than three sizes.
pub fn limit(sizes: &[AtSize], with_own: &Summary) -> Option<f64> {
    let [.., first, second, third] = sizes else { return None };
    let at = |size: &AtSize| size.answers.cross_entropy.mean;
    let (before, last) = (at(first) - at(second), at(second) - at(third));
    let ratio = (last / before).clamp(0.3, 0.75);
    let left = if last > 0.0 && before > 0.0 { last * ratio / (1.0 - ratio) } else { 0.0 };
    Some((at(third) - left).max(with_own.cross_entropy.mean))
}

/// Asks the oracle. `tell` hears how many steps are done.
pub fn consult(world: &World, effort: Effort, tell: &mut dyn FnMut(usize)) -> Report {
    let questions = questions(world, effort.slots);
    let sizes: Vec<usize> =
        [8, 4, 2, 1].iter().map(|part| effort.contexts / part).filter(|size| *size > 0).collect();
    let mut done = 0;
    let mut step = || {
        done += 1;
        tell(done);
    };

    let seed = world.plan().seed;
    let population = |occasion: Option<Option<Occasion>>, table_index: usize| -> Vec<_> {
        let mut stream = Stream::new(seed, Table::Contexts, table_index);
        (0..effort.contexts).map(|_| world.draw_context(&mut stream, occasion)).collect()
    };
    let mut known = Vec::with_capacity(questions.len());
    let mut unknown = Mixed::new(sizes.len());
    let mut by_occasion = Mixed::new(sizes.len());
    let everyone = population(None, 0);
    for batch in questions.chunks(BATCH) {
        let all: Vec<&Question> = batch.iter().collect();
        known.extend(batch.par_iter().map(|question| exact(world, question)).collect::<Vec<_>>());
        unknown.extend(mix(world, &all, &everyone, &sizes));
        step();
        let occasions = OCCASIONS.iter().copied().map(Some).chain([None]);
        for (index, occasion) in occasions.enumerate() {
            let those: Vec<&Question> =
                batch.iter().filter(|question| question.occasion == occasion).collect();
            if !those.is_empty() {
                let contexts = population(Some(occasion), 1 + index);
                by_occasion.extend(mix(world, &those, &contexts, &sizes));
            }
            step();
        }
    }
    let seen = |wanted: bool| {
        tally(questions.iter().zip(&known).filter(|(question, _)| question.seen == wanted).map(|(_, a)| a))
    };
    Report {
        known: tally(&known),
        known_seen: seen(true),
        known_unseen: seen(false),
        unknown: unknown.at_sizes(&sizes),
        unknown_with_own: tally(&unknown.with_own),
        occasion: by_occasion.at_sizes(&sizes),
        occasion_with_own: tally(&by_occasion.with_own),
    }
}

fn tally<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Summary {
    let mut tally = Tally::default();
    answers.into_iter().for_each(|answer| tally.add(answer.probability, answer.rank));
    tally.summary()
}

/// Validation slots, each outfit's slots equally likely.
fn questions(world: &World, slots: usize) -> Vec<Question> {
    let validation: HashSet<usize> = world.validation().into_iter().collect();
    let trained: HashSet<usize> = (0..world.outfit_count())
        .into_par_iter()
        .filter(|number| !validation.contains(number))
        .map(|number| world.customer_of(number))
        .collect();
    let laid: Vec<_> = world.validation().into_par_iter().map(|number| world.lay(number)).collect();
    let mut all: Vec<(usize, usize)> = laid
        .iter()
        .enumerate()
        .flat_map(|(outfit, laid)| (0..laid.articles.len()).map(move |slot| (outfit, slot)))
        .collect();
    Stream::new(world.plan().seed, Table::Slots, 0).shuffle(&mut all);
    all.truncate(slots);
    all.into_iter()
        .map(|(outfit, slot)| {
            let laid = &laid[outfit];
            let others = laid.articles.iter().enumerate().filter(|(at, _)| *at != slot);
            Question {
                customer: laid.customer,
                occasion: laid.occasion,
                seen: trained.contains(&laid.customer),
                evidence: world.evidence(others.map(|(_, article)| *article)),
                answer: world.place_of(laid.articles[slot]),
            }
        })
        .collect()
}

/// The answer of one who knows the customer and the occasion.
fn exact(world: &World, question: &Question) -> Answer {
    let mut belief = Belief::new(world);
    let reading = world.read(world.context(question.customer, question.occasion));
    belief.hear(world, &question.evidence, &reading);
    belief.answer(question.answer)
}

/// Answers of one who knows the contexts that there are, at several numbers of them.
#[derive(Debug)]
struct Mixed {
    answers: Vec<Vec<Answer>>,
    effective: Vec<f64>,
    with_own: Vec<Answer>,
}

impl Mixed {
    fn new(sizes: usize) -> Self {
        Self { answers: vec![Vec::new(); sizes], effective: vec![0.0; sizes], with_own: Vec::new() }
    }

    fn extend(&mut self, other: Mixed) {
        for (mine, theirs) in self.answers.iter_mut().zip(other.answers) {
            mine.extend(theirs);
        }
        for (mine, theirs) in self.effective.iter_mut().zip(other.effective) {
            *mine += theirs;
        }
        self.with_own.extend(other.with_own);
    }

    fn at_sizes(&self, sizes: &[usize]) -> Vec<AtSize> {
        sizes
            .iter()
            .zip(&self.answers)
            .zip(&self.effective)
            .map(|((contexts, answers), effective)| AtSize {
                contexts: *contexts,
                effective_contexts: effective / real(answers.len().max(1)),
                answers: tally(answers),
            })
            .collect()
    }
}

fn mix(
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
