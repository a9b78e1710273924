//! The best possible answers to blanks, from the world's own probabilities.
//!
//! With the context known the answer is exact. With the customer unknown it is the average over contexts
//! drawn the way outfits draw them, each weighted by how likely it makes the other articles. A finite
//! draw misses some contexts that matter and overstates the cross-entropy, so it is reported for several
//! sizes of the draw. This module knows the world, but no method and no file.

use std::collections::HashSet;

use atelier_training::{
    metrics::{Estimate, Summary, Tally, rank},
    number::real,
    random::{Stream, Table},
    table::{AtSize, Report, Unknown},
    world::{Evidence, OCCASIONS, Occasion, ScoredContext, World},
};
use rayon::prelude::*;

/// How much to compute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Validation slots, drawn without replacement, each equally likely.
    pub(crate) slots: usize,
    /// Contexts to average over if nothing is known. If the occasion is, a quarter of them is enough,
    /// because all of them have that occasion.
    pub(crate) contexts: usize,
}

/// Questions answered at once; bounds the memory.
const BATCH: usize = 1024;
/// Contexts scored at once.
const BLOCK: usize = 48;

/// The number of steps that [`consult`] reports if the world has all the slots of `effort`.
pub(crate) fn steps(effort: Effort) -> usize {
    effort.slots.div_ceil(BATCH) * (2 + OCCASIONS.len())
}

/// Answers blanks of the validation split. Calls `tell` with the number of steps done.
pub(crate) fn consult(world: &World, effort: Effort, tell: &mut dyn FnMut(usize)) -> Report {
    let questions = draw_questions(world, effort.slots);
    let halvings = |most: usize| -> Vec<usize> {
        [8, 4, 2, 1].iter().map(|part| most / part).filter(|size| *size > 0).collect()
    };
    let sizes = halvings(effort.contexts);
    let sizes_of_occasion = halvings(effort.contexts.div_ceil(4));
    let mut done = 0;
    let mut step = || {
        done += 1;
        tell(done);
    };

    let stream = |number: usize| Stream::new(world.plan().seed, Table::Contexts, number);
    let mut draws = stream(0);
    let everyone: Vec<_> = (0..effort.contexts).map(|_| world.draw_context(&mut draws)).collect();
    let mut known = Vec::with_capacity(questions.len());
    // In the order of `by_occasion`.
    let mut known_by_occasion = Vec::with_capacity(questions.len());
    let mut unknown = Mixed::new(sizes.len());
    let mut by_occasion = Mixed::new(sizes_of_occasion.len());
    for batch in questions.chunks(BATCH) {
        let all: Vec<&Question> = batch.iter().collect();
        let known_of_batch: Vec<Answer> = batch.par_iter().map(|question| exact(world, question)).collect();
        known.extend(&known_of_batch);
        unknown.extend(mix(world, &all, &everyone, &sizes));
        step();
        let occasions = OCCASIONS.iter().copied().map(Some).chain([None]);
        for (index, occasion) in occasions.enumerate() {
            let (those, answers): (Vec<&Question>, Vec<Answer>) = batch
                .iter()
                .zip(&known_of_batch)
                .filter(|(question, _)| question.occasion == occasion)
                .unzip();
            known_by_occasion.extend(answers);
            if !those.is_empty() {
                let mut draws = stream(1 + index);
                let contexts: Vec<_> = (0..effort.contexts.div_ceil(4))
                    .map(|_| (world.draw_customer_with(&mut draws, occasion), occasion))
                    .collect();
                by_occasion.extend(mix(world, &those, &contexts, &sizes_of_occasion));
            }
            step();
        }
    }
    let known_where = |seen: bool| {
        summarise(questions.iter().zip(&known).filter(|(question, _)| question.seen == seen).map(|(_, a)| a))
    };
    Report {
        known: summarise(&known),
        known_told_type: summarise_told_type(&known),
        known_seen: known_where(true),
        known_unseen: known_where(false),
        unknown: unknown.compare_with(&known, &sizes),
        occasion: by_occasion.compare_with(&known_by_occasion, &sizes_of_occasion),
    }
}

/// Draws validation slots, each equally likely.
fn draw_questions(world: &World, slots: usize) -> Vec<Question> {
    let validation: HashSet<usize> = world.validation().into_iter().collect();
    let trained: HashSet<usize> = (0..world.outfit_count())
        .into_par_iter()
        .filter(|number| !validation.contains(number))
        .map(|number| world.customer_of(number))
        .collect();
    let outfits: Vec<_> = world.validation().into_par_iter().map(|number| world.outfit(number)).collect();
    let mut all: Vec<_> = outfits
        .iter()
        .flat_map(|outfit| (0..outfit.articles.len()).map(move |slot| (outfit, slot)))
        .collect();
    Stream::new(world.plan().seed, Table::Slots, 0).shuffle(&mut all);
    all.truncate(slots);
    all.into_iter()
        .map(|(outfit, slot)| {
            let others = outfit.articles.iter().enumerate().filter(|(at, _)| *at != slot);
            Question {
                customer: outfit.customer,
                occasion: outfit.occasion,
                seen: trained.contains(&outfit.customer),
                evidence: world.evidence(others.map(|(_, article)| *article)),
                answer: world.place_of(outfit.articles[slot]),
            }
        })
        .collect()
}

/// One blank of a validation outfit.
#[derive(Debug)]
struct Question {
    customer: usize,
    occasion: Option<Occasion>,
    seen: bool,
    evidence: Evidence,
    /// The true article's place on the shelf.
    answer: usize,
}

/// The probability and the rank of the true article, among all articles and among those of its type.
#[derive(Debug, Clone, Copy)]
struct Answer {
    probability: f64,
    rank: f64,
    probability_in_type: f64,
    rank_in_type: f64,
}

/// The answer with the customer and the occasion known.
fn exact(world: &World, question: &Question) -> Answer {
    let mut mixture = Mixture::new(world);
    mixture.add_own_context(world, question);
    mixture.answer(world, question.answer)
}

/// Answers with the customer unknown, for several sizes of the draw.
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

    /// Compares these answers with those with everything known, to the same questions in the same order.
    fn compare_with(&self, known: &[Answer], sizes: &[usize]) -> Unknown {
        let at_sizes: Vec<AtSize> = sizes
            .iter()
            .zip(&self.answers)
            .zip(&self.effective)
            .map(|((contexts, answers), effective)| AtSize {
                contexts: *contexts,
                effective_contexts: effective / real(answers.len().max(1)),
                answers: summarise(answers),
                told_type: summarise_told_type(answers),
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
        let with_own = summarise(&self.with_own);
        Unknown {
            limit: extrapolate(&at_sizes, &with_own),
            sizes: at_sizes,
            worth_at_most: worth(self.answers.last().map_or(&[], Vec::as_slice)),
            worth_at_least: worth(&self.with_own),
            with_own,
        }
    }
}

fn extrapolate(sizes: &[AtSize], with_own: &Summary) -> Option<f64> {
    let [.., first, second, third] = sizes else { return None };
    let at = |size: &AtSize| size.answers.cross_entropy.mean;
    let (before, last) = (at(first) - at(second), at(second) - at(third));
    let ratio = (last / before).clamp(0.3, 0.75);
    let left = if last > 0.0 && before > 0.0 { last * ratio / (1.0 - ratio) } else { 0.0 };
    Some((at(third) - left).max(with_own.cross_entropy.mean))
}

/// Averages over contexts, each weighted by how likely it makes the other articles.
fn mix(
    world: &World,
    questions: &[&Question],
    contexts: &[(usize, Option<Occasion>)],
    sizes: &[usize],
) -> Mixed {
    let mut states: Vec<(Mixture, Vec<(Answer, f64)>)> =
        questions.iter().map(|_| (Mixture::new(world), Vec::new())).collect();
    for block in contexts.chunks(BLOCK) {
        let scored: Vec<ScoredContext<'_>> = block
            .par_iter()
            .map(|(customer, occasion)| world.score(world.context(*customer, *occasion)))
            .collect();
        states.par_iter_mut().zip(questions).for_each(|((mixture, answers), question)| {
            for context in &scored {
                mixture.add(world, &question.evidence, context);
                if sizes.contains(&mixture.contexts) {
                    answers.push((mixture.answer(world, question.answer), mixture.effective_contexts()));
                }
            }
        });
    }
    let with_own = states
        .par_iter_mut()
        .zip(questions)
        .map(|((mixture, _), question)| {
            mixture.add_own_context(world, question);
            mixture.answer(world, question.answer)
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

fn summarise<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Summary {
    let mut tally = Tally::default();
    answers.into_iter().for_each(|answer| tally.add(answer.probability, answer.rank));
    tally.summary()
}

fn summarise_told_type(answers: &[Answer]) -> Summary {
    let mut tally = Tally::default();
    for answer in answers {
        tally.add(answer.probability_in_type, answer.rank_in_type);
    }
    tally.summary()
}

/// The sum over contexts of Pr(article, others | context), for every article.
#[derive(Debug)]
struct Mixture {
    joint: Vec<f64>,
    evidence: f64,
    evidence_squared: f64,
    contexts: usize,
}

impl Mixture {
    /// A context is skipped if it makes the others less likely than this share of the sum so far: even a
    /// hundred thousand of them would not change a printed digit.
    const NEGLIGIBLE: f64 = 1e-9;

    fn new(world: &World) -> Self {
        Self { joint: vec![0.0; world.plan().articles], evidence: 0.0, evidence_squared: 0.0, contexts: 0 }
    }

    fn add_own_context(&mut self, world: &World, question: &Question) {
        let scored = world.score(world.context(question.customer, question.occasion));
        self.add(world, &question.evidence, &scored);
    }

    fn add(&mut self, world: &World, evidence: &Evidence, scored: &ScoredContext<'_>) {
        self.contexts += 1;
        let floor = Self::NEGLIGIBLE * self.evidence;
        let Some(posterior) = world.posterior(evidence, scored, floor) else { return };
        self.evidence += posterior.evidence;
        self.evidence_squared += posterior.evidence * posterior.evidence;
        for (cell, factor) in &posterior.cells {
            let places = world.places_of(*cell);
            for (joint, score) in self.joint[places.clone()].iter_mut().zip(scored.scores(places)) {
                *joint += factor * score;
            }
        }
    }

    fn answer(&self, world: &World, place: usize) -> Answer {
        let of_type = world.places_of_same_type(place);
        let in_type = &self.joint[of_type.clone()];
        Answer {
            probability: self.joint[place] / self.evidence,
            rank: rank(&self.joint, place),
            probability_in_type: self.joint[place] / in_type.iter().sum::<f64>(),
            rank_in_type: rank(in_type, place - of_type.start),
        }
    }

    fn effective_contexts(&self) -> f64 {
        self.evidence * self.evidence / self.evidence_squared
    }
}

#[cfg(test)]
mod tests {
    use atelier_training::world::Plan;

    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn knowing_the_customer_helps_and_more_contexts_are_closer() {
        let plan = Plan { seed: 2, articles: 400, customers: 300, outfits: 600, validation: 120, new: 0 };
        let world = World::new(plan).unwrap();
        let report = consult(&world, Effort { slots: 80, contexts: 200 }, &mut |_| {});
        let losses: Vec<f64> =
            report.unknown.sizes.iter().map(|size| size.answers.cross_entropy.mean).collect();
        let (known, with_own) = (report.known.cross_entropy.mean, report.unknown.with_own.cross_entropy.mean);
        assert_eq!((report.known.slots, report.known_seen.slots + report.known_unseen.slots), (80, 80));
        let contexts = |unknown: &Unknown| unknown.sizes.iter().map(|size| size.contexts).collect::<Vec<_>>();
        assert_eq!(contexts(&report.unknown), [25, 50, 100, 200]);
        assert_eq!(contexts(&report.occasion), [6, 12, 25, 50]);
        assert!(known + 0.3 < losses[3] && losses[3] < losses[0], "{known} {losses:?}");
        assert!(report.known_told_type.cross_entropy.mean < known);
        assert!(report.known_told_type.recall_at_1.mean >= report.known.recall_at_1.mean);
        assert!(known < with_own && with_own < losses[3], "{known} {with_own} {losses:?}");
        let limit = report.unknown.limit.unwrap();
        assert!((with_own..=losses[3]).contains(&limit), "{limit}");
        near(report.unknown.worth_at_most.mean, losses[3] - known);
        let occasion = report.occasion.sizes[3].answers.cross_entropy.mean;
        near(report.occasion.worth_at_most.mean, occasion - known);
        assert!(report.occasion.worth_at_most.standard_error > 0.0);
        assert!(report.known.recall_at_250.mean > 0.95, "400 articles, {:?}", report.known.recall_at_250);
    }

    #[test]
    fn the_report_is_the_same_on_any_number_of_threads() {
        let plan = Plan { seed: 3, articles: 100, customers: 50, outfits: 60, validation: 20, new: 0 };
        let world = World::new(plan).unwrap();
        let [one, four] = [1, 4].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let report = pool.install(|| consult(&world, Effort { slots: 30, contexts: 60 }, &mut |_| {}));
            serde_json::to_string(&report).unwrap()
        });
        assert_eq!(one, four);
    }
}
