//! Fills all blanks together: a beam search for the most probable sets of articles.
//!
//! The probability of a set is the product over its blanks: the first article given the outfit, the next one given the outfit
//! with the first blank filled, and so on. Without filters a model cannot tell blanks apart, so a set that is found in two
//! orders counts once.

use std::{collections::HashSet, sync::Arc};

use super::{Conversation, Prepared};
use crate::models::{
    catalogue::Catalogue,
    engine::{AskError, Question},
    packed_article::PackedArticle,
};

/// Most sets that are returned.
pub const MAX_SETS: usize = 16;
/// Partial sets that are followed at a time.
const BEAM: usize = 16;

/// Articles for all blanks.
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
}

/// How many questions [`fill`] asks at most.
pub(super) fn most_questions(prepared: &Prepared, sets: usize) -> usize {
    if sets == 0 { 0 } else { 1 + width(sets) * (prepared.blanks.len() - 1) }
}

fn width(sets: usize) -> usize {
    sets.max(BEAM)
}

pub(super) async fn fill(
    conversation: &mut Conversation<'_>,
    catalogue: &Catalogue,
    prepared: &Prepared,
    sets: usize,
) -> Result<Vec<OutfitSet>, AskError> {
    let width = width(sets);
    let mut beam = vec![Partial { filled: Vec::new(), log_probability: 0.0 }];
    for depth in 0..prepared.blanks.len() {
        let questions =
            beam.iter().map(|partial| question(catalogue, prepared, partial, depth, width)).collect();
        let answers = conversation.follow_up(questions).await?;
        let mut next: Vec<Partial> = Vec::new();
        for (partial, answer) in beam.iter().zip(answers) {
            next.extend(answer.top.into_iter().map(|candidate| {
                let mut filled = partial.filled.clone();
                filled.push(candidate.article);
                let log_probability = partial.log_probability + candidate.probability.ln();
                Partial { filled, log_probability }
            }));
        }
        next.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
        let mut seen = HashSet::new();
        next.retain(|partial| {
            let mut set = partial.filled.clone();
            set.sort_unstable();
            seen.insert(set)
        });
        next.truncate(width);
        beam = next;
    }
    beam.truncate(sets);
    let article = |index: u32| {
        let article = catalogue.article(index);
        Arc::clone(article.expect("only what the shop has is admissible; this is a bug"))
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

fn question(
    catalogue: &Catalogue,
    prepared: &Prepared,
    partial: &Partial,
    depth: usize,
    k: usize,
) -> Question {
    let blank = &prepared.blanks[depth];
    let mut slots = prepared.slots.clone();
    let mut admissible = blank.admissible.as_ref().clone();
    for (blank, &index) in prepared.blanks.iter().zip(&partial.filled) {
        slots[blank.place] = index;
        admissible.remove(index);
    }
    if let Some(budget) = &prepared.budget {
        budget.limit(&mut admissible, &partial.filled, catalogue);
    }
    Question { slots, admissible: Some(Arc::new(admissible)), k, ..prepared.question(blank) }
}
