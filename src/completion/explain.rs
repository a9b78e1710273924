//! Reasons for a suggestion: how its share among what could be suggested changes when one thing is taken away.
//!
//! Removes each feature, each other article, and all remembered outfits, one at a time, and asks about all removals in one batch.
//! Gives a reason only if the share changes noticeably, and a feature only if the schema says that it concerns articles of this
//! type: a model also learns what customers with other sizes tend to like.

use std::{slice, time::Instant};

use atelier_core::{
    domain::{FeatureValue, Method, Schema},
    util::text::abbreviate,
};
use atelier_engine::inference::{Admission, AskError, BLANK, Context, Question, Serving};

use super::{Blank, Request, Served, Suggestion, conversation::Conversation, prepare::Prepared};
use crate::platform::fault::ServiceError;

/// A reason needs at least this factor, up or down.
const NOTICEABLE: f64 = 1.1;
/// Most reasons for one suggestion.
const MOST: usize = 5;

/// A cause of a suggestion, and its effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    pub cause: Cause,
    /// The share, over what it is without the cause: above 1 it speaks for the article.
    pub factor: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// A feature of the customer or the outfit.
    Feature { name: String, value: FeatureValue },
    /// Another article, by its slot in the request's outfit.
    Article { slot: usize },
    /// Outfits of stylists with the suggestion and these slots' articles.
    Outfits { slots: Vec<usize>, count: usize },
}

/// The reasons for an article in the request's only blank.
pub async fn reasons(
    served: Served<'_>,
    request: &Request,
    article: u32,
    deadline: Instant,
) -> Result<Vec<Reason>, ServiceError> {
    let prepared = Prepared::new(served, request)?;
    let without = alternatives(served.serving, request.method, &prepared);
    let mut suggestion = Suggestion::new(served.catalogue, article);
    let blank = &prepared.blanks[0];
    let question = prepared.question_about(blank, slice::from_ref(&suggestion));
    let admission = Admission::New { follow_ups: without.len() };
    let opened = Conversation::open(served.serving, request.method, deadline, admission, vec![question]);
    let (mut conversation, answers) = opened.await?;
    suggestion.share = answers[0].placements[0].log_probability.exp();
    let mut blanks = [Blank {
        slot: blank.slot,
        suggestions: vec![suggestion],
        admissible: blank.admissible.count(),
        alternatives: Vec::new(),
        placements: Vec::new(),
        counted: Vec::new(),
    }];
    let schema = served.serving.release().schema();
    explain(&mut conversation, schema, &prepared, &without, &mut blanks).await?;
    let [blank] = blanks;
    Ok(blank.suggestions.into_iter().flat_map(|suggestion| suggestion.reasons.unwrap_or_default()).collect())
}

pub(super) async fn explain(
    conversation: &mut Conversation<'_>,
    schema: &Schema,
    prepared: &Prepared,
    without: &[Without],
    blanks: &mut [Blank],
) -> Result<(), AskError> {
    let questions = prepared.blanks.iter().zip(blanks.iter()).flat_map(|(blank, found)| {
        let asked = prepared.question_about(blank, &found.suggestions);
        without.iter().map(move |without| without.change(asked.clone()))
    });
    let questions: Vec<Question> = questions.collect();
    let mut answers =
        if questions.is_empty() { Vec::new() } else { conversation.follow_up(questions).await? }.into_iter();
    let concerns = |name: &str, value: &FeatureValue, suggestion: &Suggestion| {
        let kinds = suggestion.article.unpack().folded_words("type");
        schema.feature(name).is_none_or(|feature| feature.concerns(value, &kinds))
    };
    for blank in blanks {
        for suggestion in &mut blank.suggestions {
            suggestion.reasons = Some(Vec::new());
        }
        for (without, answer) in without.iter().zip(answers.by_ref()) {
            for (suggestion, placement) in blank.suggestions.iter_mut().zip(answer.placements) {
                let factor = suggestion.change_from(&placement);
                if (1.0 / NOTICEABLE..NOTICEABLE).contains(&factor) {
                    continue;
                }
                let cause = match &without.away {
                    Away::Cause(Cause::Feature { name, value }) if !concerns(name, value, suggestion) => None,
                    Away::Cause(cause) => Some(cause.clone()),
                    Away::Outfits if factor > 1.0 => outfits_with(conversation, prepared, suggestion.index),
                    Away::Outfits => None,
                };
                let reason = cause.map(|cause| Reason { cause, factor });
                suggestion.reasons.get_or_insert_default().extend(reason);
            }
        }
        for reasons in blank.suggestions.iter_mut().filter_map(|suggestion| suggestion.reasons.as_mut()) {
            reasons.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
            reasons.truncate(MOST);
        }
    }
    Ok(())
}

/// The stylists' outfits with the suggestion. More with other articles are no reason to name.
fn outfits_with(conversation: &Conversation<'_>, prepared: &Prepared, article: u32) -> Option<Cause> {
    let found = conversation.outfits_with(prepared, article)?;
    let slot = |article: &u32| {
        let position = prepared.slots.iter().position(|other| other == article)?;
        Some(prepared.positions[position])
    };
    Some(Cause::Outfits { slots: found.articles.iter().filter_map(slot).collect(), count: found.outfits })
}

/// The request with one thing taken away.
pub(super) struct Without {
    away: Away,
    slots: Vec<u32>,
    context: Context,
    /// The position that is gone, where it is an article's: blanks behind it move up.
    gone: Option<usize>,
}

enum Away {
    Cause(Cause),
    /// The memory of whole outfits; each suggestion has its own.
    Outfits,
}

impl Without {
    fn change(&self, question: Question) -> Question {
        let moved = usize::from(self.gone.is_some_and(|gone| gone < question.blank));
        let (slots, context) = (self.slots.clone(), self.context.clone());
        let without_outfits = matches!(self.away, Away::Outfits);
        Question { slots, context, blank: question.blank - moved, without_outfits, ..question }
    }
}

/// A value for a reason, which every suggestion repeats, so that a long one is cut.
fn beginning(value: &FeatureValue) -> FeatureValue {
    /// The most words of a set, and characters of a word.
    const WORDS: usize = 20;
    const LENGTH: usize = 100;
    let cut = |word: &String| {
        let mut word = word.clone();
        abbreviate(&mut word, LENGTH);
        word
    };
    match value {
        FeatureValue::Text(word) => FeatureValue::Text(cut(word)),
        FeatureValue::Number(number) => FeatureValue::Number(*number),
        FeatureValue::Many(words) => FeatureValue::Many(words.iter().take(WORDS).map(cut).collect()),
    }
}

/// Everything that can be taken away.
pub(super) fn alternatives(serving: &Serving, method: Method, prepared: &Prepared) -> Vec<Without> {
    let mut all = Vec::new();
    let schema = serving.release().schema();
    if serving.takes_features(method) {
        for (position, feature) in schema.features().iter().enumerate() {
            let Some(value) = prepared.reading.features.get(&feature.name) else { continue };
            if prepared.reading.context[position].is_empty() {
                continue;
            }
            let mut context = prepared.reading.context.to_vec();
            context[position].clear();
            let cause = Cause::Feature { name: feature.name.clone(), value: beginning(value) };
            let slots = prepared.slots.clone();
            all.push(Without { away: Away::Cause(cause), slots, context: context.into(), gone: None });
        }
    }
    for (position, index) in prepared.slots.iter().enumerate() {
        if *index == BLANK {
            continue;
        }
        let mut slots = prepared.slots.clone();
        slots.remove(position);
        let away = Away::Cause(Cause::Article { slot: prepared.positions[position] });
        all.push(Without { away, slots, context: prepared.reading.context.clone(), gone: Some(position) });
    }
    if serving.remembers_outfits(method) {
        let (slots, context) = (prepared.slots.clone(), prepared.reading.context.clone());
        all.push(Without { away: Away::Outfits, slots, context, gone: None });
    }
    all
}
