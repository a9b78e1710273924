//! What belongs in the blanks, and why.

use std::{collections::HashMap, time::SystemTime};

use super::{View, board::Board};
use crate::{
    completion::{self, Blank, Cause, Completion, Reason, Request, Suggestion},
    domain::{ArticleId, Features, Schema},
    offer::Offer,
    web::{
        AppState, Problem,
        complete::{Asked, completion_id},
        dashboard::{
            article_view::ArticleView,
            profile::{self, spaced},
        },
    },
};

/// Sets that are shown where several blanks are filled together.
const SETS: usize = 4;
/// How far down the list before a change is looked for.
const BEFORE: usize = 100;
/// As different from each other as still makes sense.
const VARIED: f64 = 0.5;

pub(super) struct Suggested {
    pub(super) completion_id: String,
    pub(super) release: String,
    pub(super) method: String,
    pub(super) arm: Option<String>,
    pub(super) device: &'static str,
    pub(super) took: String,
    pub(super) blanks: Vec<BlankView>,
    pub(super) sets: Vec<SetView>,
    pub(super) warnings: Vec<String>,
}

pub(super) struct BlankView {
    pub(super) slot: usize,
    /// Its only type in words.
    pub(super) kind: Option<String>,
    pub(super) admissible: usize,
    pub(super) suggestions: Vec<SuggestionView>,
}

pub(super) struct SuggestionView {
    pub(super) rank: usize,
    pub(super) article: ArticleView,
    /// In hundredths, for a person and for a bar.
    pub(super) probability: String,
    pub(super) share: String,
    pub(super) bar: String,
    pub(super) lift: Option<String>,
    pub(super) reasons: Vec<ReasonView>,
    /// Against the profile as it is stored.
    pub(super) moved: Option<Moved>,
    /// The outfit with it.
    pub(super) href: String,
}

pub(super) struct ReasonView {
    pub(super) words: String,
    pub(super) factor: String,
    pub(super) speaks_for: bool,
}

pub(super) struct Moved {
    pub(super) words: String,
    /// `good`, `bad` or nothing.
    pub(super) class: &'static str,
}

pub(super) struct SetView {
    pub(super) articles: Vec<ArticleView>,
    pub(super) probability: String,
    pub(super) href: String,
}

pub(super) async fn suggest(
    state: &AppState,
    offer: &Offer,
    view: &View,
    stored: Features,
    board: &Board,
) -> Result<Suggested, Problem> {
    let began = SystemTime::now();
    let choice = super::method(view, offer);
    let schema = offer.serving.release().schema();
    let request = |with_changes: bool| {
        let (stored, given) = super::context(view, stored.clone(), schema, with_changes);
        Request {
            stored,
            given,
            outfit: view.slots.clone(),
            method: choice.method,
            k: view.k(),
            filters: view.filters(),
            diversity: if view.varied { VARIED } else { 0.0 },
            lift: true,
            explain: true,
            sets: if view.blanks() > 1 { SETS } else { 0 },
            standing_of: Vec::new(),
        }
    };
    let asked = Asked { request: request(true), arm: choice.arm };
    let deadline = super::deadline(state);
    let completion = completion::complete(offer.ground(), &asked.request, deadline).await?;
    let before = if view.changed.is_empty() {
        None
    } else {
        let plain =
            Request { k: BEFORE, diversity: 0.0, lift: false, explain: false, sets: 0, ..request(false) };
        Some(completion::complete(offer.ground(), &plain, deadline).await?)
    };
    let completion_id = completion_id(state, offer, &asked, &completion, began.into());
    let ground = Shown { view, board, schema, before: before.as_ref() };
    let Completion { blanks, sets, warnings, .. } = completion;
    Ok(Suggested {
        completion_id,
        release: offer.name().to_owned(),
        method: asked.request.method.to_string(),
        arm: asked.arm,
        device: offer.serving.device().as_str(),
        took: format!("{:.0} ms", began.elapsed().unwrap_or_default().as_secs_f64() * 1000.0),
        blanks: blanks.into_iter().map(|blank| ground.blank(blank)).collect(),
        sets: sets.into_iter().map(|set| ground.set(&set)).collect(),
        warnings: warnings.into_iter().map(|warning| warning.detail).collect(),
    })
}

/// What suggestions are shown against.
struct Shown<'a> {
    view: &'a View,
    board: &'a Board,
    schema: &'a Schema,
    /// Without the changes, where there are any.
    before: Option<&'a Completion>,
}

impl Shown<'_> {
    fn blank(&self, blank: Blank) -> BlankView {
        let before =
            self.before.and_then(|before| before.blanks.iter().find(|other| other.slot == blank.slot));
        let before: Option<HashMap<ArticleId, usize>> = before.map(|before| {
            let ranked = before.suggestions.iter().zip(1..);
            ranked.map(|(suggestion, rank)| (suggestion.article.id.clone(), rank)).collect()
        });
        let most = blank.suggestions.iter().map(|suggestion| suggestion.share).fold(0.0, f64::max);
        let suggestion = |(suggestion, rank): (&Suggestion, usize)| SuggestionView {
            rank,
            article: ArticleView::new(&suggestion.article),
            probability: percent(suggestion.probability),
            share: percent(suggestion.share),
            bar: format!("{:.1}", if most > 0.0 { 100.0 * suggestion.share / most } else { 0.0 }),
            lift: suggestion.lift.map(times),
            reasons: suggestion.reasons.iter().flatten().map(|reason| self.reason(reason)).collect(),
            moved: before.as_ref().map(|before| moved(before.get(&suggestion.article.id).copied(), rank)),
            href: self.view.filled(blank.slot, &suggestion.article.id).href(),
        };
        BlankView {
            slot: blank.slot,
            kind: self.view.types.get(&blank.slot).map(|kind| spaced(kind)),
            admissible: blank.admissible,
            suggestions: blank.suggestions.iter().zip(1..).map(suggestion).collect(),
        }
    }

    fn set(&self, set: &completion::OutfitSet) -> SetView {
        let mut filled = self.view.clone();
        for (slot, article) in &set.articles {
            filled = filled.filled(*slot, &article.id);
        }
        SetView {
            articles: set.articles.iter().map(|(_, article)| ArticleView::new(article)).collect(),
            probability: percent(set.log_probability.exp()),
            href: filled.href(),
        }
    }

    fn reason(&self, reason: &Reason) -> ReasonView {
        let words = match &reason.cause {
            Cause::Feature { name, value } => match self.schema.feature(name) {
                Some(feature) => {
                    let words = profile::words(feature, value, self.schema);
                    if words.contains(&feature.label) || feature.excludes.is_some() {
                        words
                    } else {
                        format!("{} {words}", feature.label)
                    }
                }
                None => spaced(name),
            },
            Cause::Article { slot } => {
                let there = self.board.slots.get(*slot).and_then(|slot| slot.article.as_ref());
                there.map_or_else(|| "another article".into(), |article| format!("with {}", article.name))
            }
        };
        ReasonView { words, factor: times(reason.factor), speaks_for: reason.factor > 1.0 }
    }
}

fn moved(before: Option<usize>, rank: usize) -> Moved {
    match before {
        None => Moved { words: format!("new, was below {BEFORE}"), class: "good" },
        Some(before) if before > rank => Moved { words: format!("▲ from {before}"), class: "good" },
        Some(before) if before < rank => Moved { words: format!("▼ from {before}"), class: "bad" },
        Some(_) => Moved { words: "as before".into(), class: "quiet" },
    }
}

/// `0.4 %`: small ones with as many digits as say something.
fn percent(share: f64) -> String {
    let hundredths = 100.0 * share;
    let digits = match hundredths {
        large if large >= 10.0 => 0,
        small if small >= 1.0 => 1,
        smaller if smaller >= 0.1 => 2,
        _ => 3,
    };
    format!("{hundredths:.digits$} %")
}

fn times(factor: f64) -> String {
    if factor >= 10.0 { format!("×{factor:.0}") } else { format!("×{factor:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_say_something() {
        assert_eq!([0.43, 0.043, 0.0043, 0.00043].map(percent), ["43 %", "4.3 %", "0.43 %", "0.043 %"]);
        assert_eq!([12.3, 1.234, 0.5].map(times), ["×12", "×1.23", "×0.50"]);
        assert_eq!(moved(Some(9), 2).words, "▲ from 9");
        assert_eq!(
            (moved(Some(2), 2).class, moved(Some(1), 2).class, moved(None, 2).class),
            ("quiet", "bad", "good")
        );
    }
}
