//! The best possible answers: what the world itself, asked about a blank, would say.
//!
//! With the context known the answer is exact. With the customer unknown it is the average over
//! contexts drawn as outfits draw them, each weighted by how likely it makes the other articles. A
//! finite draw of contexts misses some of those that matter and overstates that cross-entropy, so it
//! is reported at several sizes of draw. This module sees the world only; no method, no file.

mod mixture;

use std::collections::HashSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    metrics::{Estimate, Summary},
    random::{Stream, Table},
    world::{OCCASIONS, World},
};

use mixture::{Answer, Mixed, Question, exact, mix, tally};

/// How much to ask.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Validation slots, drawn without replacement, each equally likely.
    pub slots: usize,
    /// Contexts to average over where nothing is known. Where the occasion is, a quarter as many do as
    /// well, because every one of them has that occasion.
    pub contexts: usize,
}

/// What the oracle knows of the customer and the occasion.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Customer and occasion known: exact.
    pub known: Summary,
    /// The same, for customers who have training outfits and for those who have none.
    pub known_seen: Summary,
    pub known_unseen: Summary,
    /// Neither known.
    pub unknown: Unknown,
    /// Occasion known, customer not.
    pub occasion: Unknown,
}

/// Answers without the customer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// By the number of contexts averaged over: each overstates the cross-entropy, the last one least.
    pub sizes: Vec<AtSize>,
    /// With the slot's own context added to the largest draw: understates the cross-entropy.
    pub with_own: Summary,
    /// Where the cross-entropy goes as the draw grows: what was gained over the last doubling, as a share of
    /// the one before, is taken to go on. Held above `with_own`; none with fewer than three sizes.
    pub limit: Option<f64>,
    /// What knowing all is worth in nats, slot by slot: over the largest draw, and over `with_own`.
    pub worth_at_most: Estimate,
    pub worth_at_least: Estimate,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtSize {
    pub contexts: usize,
    /// Contexts that carry the average: the mean over slots of (Σw)²/Σw².
    pub effective_contexts: f64,
    pub answers: Summary,
}

/// Questions worked on at once, so that their tables fit in memory.
const BATCH: usize = 1024;

/// How many steps [`consult`] tells of, if there are as many slots as asked for.
pub fn steps(effort: Effort) -> usize {
    effort.slots.div_ceil(BATCH) * (2 + OCCASIONS.len())
}

/// Asks the oracle. `tell` hears how many steps are done.
pub fn consult(world: &World, effort: Effort, tell: &mut dyn FnMut(usize)) -> Report {
    let questions = questions(world, effort.slots);
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
    // In the order in which the mixtures by occasion come.
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
    let where_seen = |wanted: bool| {
        tally(questions.iter().zip(&known).filter(|(question, _)| question.seen == wanted).map(|(_, a)| a))
    };
    Report {
        known: tally(&known),
        known_seen: where_seen(true),
        known_unseen: where_seen(false),
        unknown: unknown.against(&known, &sizes),
        occasion: by_occasion.against(&known_by_occasion, &sizes_of_occasion),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Plan;

    #[test]
    fn knowing_the_customer_helps_and_more_contexts_come_closer() {
        let plan = Plan { seed: 2, articles: 400, customers: 300, outfits: 600, validation: 120 };
        let world = World::new(plan).unwrap();
        let report = consult(&world, Effort { slots: 80, contexts: 200 }, &mut |_| {});
        let unknown: Vec<f64> =
            report.unknown.sizes.iter().map(|size| size.answers.cross_entropy.mean).collect();
        let (known, with_own) = (report.known.cross_entropy.mean, report.unknown.with_own.cross_entropy.mean);
        assert_eq!(report.known.slots, 80);
        assert_eq!(report.known_seen.slots + report.known_unseen.slots, 80);
        assert_eq!(
            report.unknown.sizes.iter().map(|size| size.contexts).collect::<Vec<_>>(),
            [25, 50, 100, 200]
        );
        assert_eq!(
            report.occasion.sizes.iter().map(|size| size.contexts).collect::<Vec<_>>(),
            [6, 12, 25, 50]
        );
        assert!(known + 0.3 < unknown[3], "{known} {unknown:?}");
        assert!(unknown[3] < unknown[0], "{unknown:?}");
        assert!(known < with_own && with_own < unknown[3], "{known} {with_own} {unknown:?}");
        let limit = report.unknown.limit.unwrap();
        assert!((report.unknown.worth_at_most.mean - (unknown[3] - known)).abs() < 1e-9);
        let (occasion, most) =
            (report.occasion.sizes[3].answers.cross_entropy.mean, report.occasion.worth_at_most);
        assert!((most.mean - (occasion - known)).abs() < 1e-9 && most.standard_error > 0.0);
        assert!((with_own..=unknown[3]).contains(&limit), "{limit}");
        assert!(report.known.recall_at_250.mean > 0.95, "400 articles, {:?}", report.known.recall_at_250);
    }

    #[test]
    fn the_oracle_says_the_same_on_any_number_of_threads() {
        let plan = Plan { seed: 3, articles: 100, customers: 50, outfits: 60, validation: 20 };
        let world = World::new(plan).unwrap();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let report = pool.install(|| consult(&world, Effort { slots: 30, contexts: 60 }, &mut |_| {}));
            serde_json::to_string(&report).unwrap()
        };
        assert_eq!(on(1), on(4));
    }
}
