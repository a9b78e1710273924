//! Fills all blanks together: a beam search for the most probable sets of articles.
//!
//! The probability of a set is the product over its blanks: the first article given the outfit, the next one given the outfit
//! with the first blank filled, and so on. Without filters a model cannot tell blanks apart, so a set that is found in two
//! orders counts once.

use std::{collections::HashSet, sync::Arc};

use atelier_engine::{
    catalogue::Catalogue,
    inference::{AskError, Question, Steering},
    packed_article::PackedArticle,
};

use super::{Sets, admissible::remove_type, conversation::Conversation, prepare::Prepared, steer::Concern};

pub const MAX_SETS: usize = 16;
/// Partial sets that are followed at a time.
const BEAM: usize = 16;
/// How many times as many articles are considered for each partial set if sets have to differ.
const WIDER: usize = 4;

#[derive(Debug, Clone)]
pub struct OutfitSet {
    /// Slot of the request's outfit, and the article for it.
    pub articles: Vec<(usize, Arc<PackedArticle>)>,
    /// Natural logarithm of the probability of all of them together.
    pub log_probability: f64,
}

/// A partial set: the articles of the first blanks.
#[derive(Debug, Clone)]
struct Partial {
    filled: Vec<u32>,
    log_probability: f64,
    /// The rules' offset in the order of sets.
    offset: f64,
}

impl Partial {
    fn weight(&self) -> f64 {
        self.log_probability + self.offset
    }
}

/// How many questions [`fill`] asks at most.
pub(super) fn most_questions(prepared: &Prepared, sets: Sets) -> usize {
    if sets.most == 0 { 0 } else { 1 + width(sets) * (prepared.blanks.len() - 1) }
}

fn width(sets: Sets) -> usize {
    sets.most.max(BEAM)
}

pub(super) async fn fill(
    conversation: &mut Conversation<'_>,
    catalogue: &Catalogue,
    prepared: &Prepared,
    sets: Sets,
) -> Result<Vec<OutfitSet>, AskError> {
    let width = width(sets);
    // Sets that differ are chosen from more articles for each partial set, which cost no question.
    let k = if sets.distinct { width * WIDER } else { width };
    let mut beam = vec![Partial { filled: Vec::new(), log_probability: 0.0, offset: 0.0 }];
    for depth in 0..prepared.blanks.len() {
        let concern =
            |partial: &Partial| prepared.asked.as_ref().map(|asked| asked.filled_with(&partial.filled));
        let concerns: Vec<Option<Concern>> = beam.iter().map(concern).collect();
        let question = |(partial, concern): (&Partial, &Option<Concern>)| {
            question(catalogue, prepared, partial, concern.as_ref(), depth, k)
        };
        let questions = beam.iter().zip(&concerns).map(question).collect();
        let answers = conversation.follow_up(questions).await?;
        let mut next: Vec<Partial> = Vec::new();
        for ((partial, concern), answer) in beam.iter().zip(&concerns).zip(answers) {
            next.extend(answer.top.into_iter().map(|candidate| {
                let mut filled = partial.filled.clone();
                filled.push(candidate.article);
                let log_probability = partial.log_probability + candidate.probability.ln();
                let more = concern.as_ref().map_or(0.0, |concern| concern.offsets.of(candidate.article));
                Partial { filled, log_probability, offset: partial.offset + f64::from(more) }
            }));
        }
        if next.is_empty() && prepared.one_per_type {
            // There are no more types.
            break;
        }
        next.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        let mut seen = HashSet::new();
        next.retain(|partial| {
            let mut set = partial.filled.clone();
            set.sort_unstable();
            seen.insert(set)
        });
        if sets.distinct {
            next = distinct(next, width);
        }
        next.truncate(width);
        beam = next;
    }
    beam.truncate(sets.most);
    let article = |index: u32| {
        let article = catalogue.article(index);
        Arc::clone(article.expect("only what the shop has is admissible"))
    };
    let set = |partial: Partial| OutfitSet {
        articles: prepared
            .blanks
            .iter()
            .zip(partial.filled)
            .map(|(b, index)| (b.slot, article(index)))
            .collect(),
        log_probability: partial.log_probability,
    };
    Ok(beam.into_iter().map(set).collect())
}

/// The first of them, and those that differ from all chosen before in half of their articles at least, up to `most`.
fn distinct(partials: Vec<Partial>, most: usize) -> Vec<Partial> {
    let mut chosen: Vec<Partial> = Vec::new();
    for partial in partials {
        let is_like = |other: &Partial| {
            let same = partial.filled.iter().filter(|article| other.filled.contains(article));
            2 * same.count() > partial.filled.len()
        };
        if chosen.len() < most && !chosen.iter().any(is_like) {
            chosen.push(partial);
        }
    }
    chosen
}

fn question(
    catalogue: &Catalogue,
    prepared: &Prepared,
    partial: &Partial,
    concern: Option<&Concern>,
    depth: usize,
    k: usize,
) -> Question {
    let blank = &prepared.blanks[depth];
    let mut slots = prepared.slots.clone();
    let mut admissible = blank.admissible.as_ref().clone();
    for (blank, &index) in prepared.blanks.iter().zip(&partial.filled) {
        slots[blank.position] = index;
        admissible.remove(index);
        if prepared.one_per_type {
            remove_type(catalogue, index, &mut admissible);
        }
    }
    if let Some(excluded) = concern.and_then(|concern| concern.excluded.as_ref()) {
        admissible.subtract(excluded);
    }
    if let Some(budget) = &prepared.budget {
        budget.limit(&mut admissible, &partial.filled, catalogue);
    }
    // Sets have no ranks of articles, so no pins and quotas.
    let offsets = concern.map(|concern| &concern.offsets).filter(|offsets| !offsets.is_empty());
    let steering = offsets
        .map(|offsets| Arc::new(Steering { offsets: Arc::clone(offsets), wanted: Vec::new(), shown: None }));
    let admissible = Some(Arc::new(admissible));
    Question { admissible, k, steering, ..prepared.question(slots, blank.position) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_sets_differ_in_half_of_their_articles() {
        let partial = |filled: &[u32]| Partial { filled: filled.to_vec(), log_probability: 0.0, offset: 0.0 };
        let chosen = |sets: &[&[u32]], most| -> Vec<Vec<u32>> {
            let partials = sets.iter().map(|filled| partial(filled)).collect();
            distinct(partials, most).into_iter().map(|partial| partial.filled).collect()
        };
        let three: [&[u32]; 4] = [&[1, 2, 3], &[1, 2, 4], &[1, 5, 6], &[7, 3, 2]];
        assert_eq!(chosen(&three, 9), [vec![1, 2, 3], vec![1, 5, 6]]);
        let two: [&[u32]; 3] = [&[1, 2], &[1, 3], &[4, 3]];
        assert_eq!(chosen(&two, 9).len(), 3);
        assert_eq!(chosen(&two, 2).len(), 2);
        let one: [&[u32]; 2] = [&[1], &[2]];
        assert_eq!(chosen(&one, 9).len(), 2);
    }
}
