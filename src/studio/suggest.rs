//! Suggestions for the blanks, with their reasons.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use atelier_core::{
    domain::{Article, ArticleId, CustomerId, Features, Schema},
    util::notation::Notation,
};
use atelier_engine::catalogue::Choice;
use serde::Deserialize;
use tokio::time::timeout;
use tracing::warn;

use super::{
    View,
    board::Board,
    notices,
    view::{Refusal, SETS},
};
use crate::{
    catalogue::page::article_view::{self, ArticleView},
    completion::{
        Blank, Cause, Completion, MAX_SETS, MovedBy, OutfitSet, Reason, Request, Sets, Stored, Suggestion,
        Variants,
        asking::{self, Suggestions},
        rules::Effect,
    },
    outcomes::feedback::{Seen, Viewing, record_shown},
    people::PersonId,
    platform::page::wording::{self, spaced},
    platform::{
        fault::ServiceError,
        http::AppState,
        page::{Address, figures::more_likely},
    },
    releases::{LiveRelease, routing::Route},
};

/// The length of the list before a change, in which earlier ranks are looked up.
const BEFORE: usize = 100;
/// A lift of at least so much is said without asking.
const NOTABLE: f64 = 1.5;
/// A factor below says next to nothing.
const LEAST: f64 = 1.1;
/// How long a page waits until its suggestions are counted as shown.
const PATIENCE: Duration = Duration::from_millis(500);
/// The diversity of varied suggestions.
const VARIED: f64 = 0.5;

/// Ideas for the whole outfit, or suggestions for one blank.
pub(super) struct Suggested {
    pub(super) release: String,
    pub(super) method: String,
    pub(super) arm: Option<String>,
    pub(super) device: &'static str,
    pub(super) took: String,
    pub(super) blank: Option<BlankView>,
    pub(super) sets: Vec<SetView>,
    /// By slot, the types of the best idea.
    pub(super) kinds: BTreeMap<usize, String>,
    /// The address with other sets, if there are more.
    pub(super) others: Option<String>,
    pub(super) notices: Vec<String>,
}

impl Suggested {
    /// Whether an article is suggested that the release was not trained with.
    pub(super) fn has_new(&self) -> bool {
        let suggested =
            self.blank.iter().flat_map(|blank| &blank.suggestions).map(|suggestion| &suggestion.article);
        suggested.chain(self.sets.iter().flat_map(|set| &set.articles)).any(|article| article.is_new)
    }
}

pub(super) struct BlankView {
    pub(super) slot: usize,
    /// The only type that the blank takes.
    pub(super) kind: Option<String>,
    pub(super) admissible: usize,
    pub(super) suggestions: Vec<SuggestionView>,
    /// The filters to relax if there are none.
    pub(super) instead: Vec<String>,
}

pub(super) struct SuggestionView {
    pub(super) rank: usize,
    pub(super) article: ArticleView,
    /// The variant for the basket, if the article has variants.
    pub(super) variant: Option<String>,
    pub(super) share: String,
    /// The length of the bar, in percent.
    pub(super) bar: String,
    /// How much more likely it is than for an unknown customer.
    pub(super) lift: Option<f64>,
    /// Each in words, such as `because their fit is slim`, with its factor.
    pub(super) reasons: Vec<(String, f64)>,
    /// The part of the lift that the reasons do not cover.
    pub(super) rest: Option<f64>,
    /// The rules that moved it: in words, and their names.
    pub(super) rules: Vec<(String, String)>,
    /// The change of rank against the stored profile, with its class: `good`, `bad` or `quiet`.
    pub(super) moved: Option<(String, &'static str)>,
    /// The outfit with this article.
    pub(super) href: String,
    /// The form's value to refuse it.
    pub(super) refused: Refusal,
}

/// A lift in words; none if it is about as likely.
pub(super) fn notable(lift: f64) -> Option<&'static str> {
    (!(1.0 / NOTABLE..NOTABLE).contains(&lift)).then(|| more_likely(lift))
}

pub(super) struct SetView {
    pub(super) articles: Vec<ArticleView>,
    /// The outfit's price with them, if each article has one.
    pub(super) total: Option<String>,
    pub(super) href: String,
}

/// Its answer is recorded as shown to this person, unless the outfit was opened to look at.
pub(super) async fn suggest(
    state: &AppState,
    route: &Route,
    view: &View,
    (person, customer, stored): (PersonId, Option<&CustomerId>, &Stored),
    board: &Board,
) -> Result<Suggested, ServiceError> {
    let live = &*route.live;
    let times = state.times();
    let schema = live.serving.release().schema();
    let shown = view.shown_blank();
    let request = Request {
        k: view.k(),
        filters: view.filters(),
        diversity: if view.varied { VARIED } else { 0.0 },
        // Ideas show neither.
        lift: customer.is_some() && shown.is_some(),
        explain: shown.is_some(),
        sets: Sets { most: if shown.is_some() { 0 } else { MAX_SETS }, distinct: true },
        rules: Some(times.now),
        ..Request::routed(view.slots.clone(), route)
    };
    let request = super::question(view, stored, schema, true, request);
    let Suggestions { completion, ticket, .. } =
        asking::suggest(route, state.profiles(), state.tickets(), request, times).await?;
    if let (None, [], Some(blank)) = (shown, &completion.sets[..], completion.blanks.first()) {
        let first = view.asking(blank.slot, &BTreeMap::new());
        return Box::pin(suggest(state, route, &first, (person, customer, stored), board)).await;
    }
    let Route { method, arm, .. } = route;
    // Varied lists are not comparable: they differ for other reasons than the change.
    let before = if view.changed.is_empty() || view.varied {
        None
    } else {
        let rules = Some(times.now);
        let plain = Request {
            k: BEFORE,
            filters: view.filters(),
            rules,
            ..Request::routed(view.slots.clone(), route)
        };
        let unchanged = super::question(view, stored, schema, false, plain);
        Some(asking::complete_outfit(route, state.profiles(), unchanged, times).await?)
    };
    let viewing = Viewing {
        person,
        customer,
        outfit: view.begun.or(view.edited.map(|edited| edited.seq)),
        completion_id: &ticket,
        live,
        method: method.as_str(),
        arm: arm.as_deref(),
        at: times.now,
    };
    let mut sets = completion.sets;
    let best = sets.first().into_iter().flat_map(|set| &set.articles);
    let kinds = best.map(|(slot, article)| (*slot, article.kind().to_owned())).collect();
    // Filters may have left fewer.
    let skipped = Some(view.skipped_sets).filter(|skipped| *skipped < sets.len()).unwrap_or(0);
    sets.drain(..skipped);
    let others = (sets.len() > SETS).then(|| view.with(|view| view.skipped_sets += SETS).href());
    sets.truncate(SETS);
    let mut blanks = completion.blanks;
    blanks.retain(|blank| Some(blank.slot) == shown);
    let completion = Completion { blanks, sets, ..completion };
    if !view.trial {
        record(state, &viewing, &completion).await;
    }
    let notation = &state.notation;
    let renderer = Renderer {
        live,
        view,
        viewing: &viewing,
        board,
        schema,
        notation,
        variants: &completion.variants,
        before: before.as_ref(),
    };
    Ok(Suggested {
        release: live.name().to_owned(),
        method: method.to_string(),
        arm: arm.clone(),
        device: live.serving.device().as_str(),
        took: format!("{:.0} ms", times.begun.elapsed().as_secs_f64() * 1000.0),
        blank: completion.blanks.first().map(|blank| renderer.blank(blank)),
        sets: completion.sets.iter().map(|set| renderer.set(set)).collect(),
        kinds,
        others,
        notices: notices::notices(&completion.warnings, board, schema),
    })
}

/// Records each suggestion as shown. The page does not wait long for a database that is busy, or fail with it.
async fn record(state: &AppState, viewing: &Viewing<'_>, completion: &Completion) {
    let mut seen: Vec<Seen> = Vec::new();
    let sets = completion.sets.iter().zip(1..);
    let in_sets =
        sets.flat_map(|(set, rank)| set.articles.iter().map(move |(slot, article)| (*slot, article, rank)));
    let alone = completion.blanks.iter().flat_map(|blank| {
        blank.suggestions.iter().zip(1..).map(|(suggestion, rank)| (blank.slot, &suggestion.article, rank))
    });
    for (slot, article, rank) in alone.chain(in_sets) {
        if !seen.iter().any(|other| other.slot == slot && other.article == article.id) {
            seen.push(Seen { slot, article: article.id.clone(), rank });
        }
    }
    match timeout(PATIENCE, record_shown(&state.store, viewing, &seen)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(%error, "suggestions that a stylist saw are not counted"),
        Err(_) => warn!("suggestions that a stylist saw are not counted: the database is busy"),
    }
}

/// The words for an article of which no variant fits the customer.
pub(super) const NOT_THEIR_SIZE: &str = "not in this customer's size";

/// The variant in the customer's size, if the article has some.
pub(super) fn variant(live: &LiveRelease, features: &Features, id: &str) -> Option<String> {
    let (catalogue, supply) = (&live.catalogue, live.catalogue.sets().supply());
    let (needs, position) = (supply.needs(features), catalogue.position_of(id)?);
    describe_variant(&supply.wanted(&needs).choose(position, catalogue.article(position)?, None)?)
}

/// `M (TSH-1-M), sold out`
fn describe_variant(choice: &Choice) -> Option<String> {
    #[derive(Deserialize)]
    struct Fields {
        size: Option<String>,
        in_stock: bool,
    }
    match choice {
        Choice::Unknown => None,
        Choice::NoneFits => Some(NOT_THEIR_SIZE.to_owned()),
        Choice::Variant { id, fields } => {
            let fields: Fields = serde_json::from_str(fields.get()).ok()?;
            let name = fields.size.map_or_else(|| id.clone(), |size| format!("{size} ({id})"));
            Some(if fields.in_stock { name } else { format!("{name}, sold out") })
        }
    }
}

/// Turns a completion into views.
struct Renderer<'a> {
    live: &'a LiveRelease,
    view: &'a View,
    viewing: &'a Viewing<'a>,
    board: &'a Board,
    schema: &'a Schema,
    notation: &'a Notation,
    variants: &'a Variants,
    /// The completion without the changes, if there are any.
    before: Option<&'a Completion>,
}

impl Renderer<'_> {
    fn blank(&self, blank: &Blank) -> BlankView {
        let before =
            self.before.and_then(|before| before.blanks.iter().find(|other| other.slot == blank.slot));
        let before: Option<HashMap<ArticleId, usize>> = before.map(|before| {
            let ranked = before.suggestions.iter().zip(1..);
            ranked.map(|(suggestion, rank)| (suggestion.article.id.clone(), rank)).collect()
        });
        let suggestion = |(suggestion, rank): (&Suggestion, usize)| SuggestionView {
            rank,
            article: ArticleView::new(&suggestion.article.unpack(), self.notation).marked(self.live),
            variant: self.variants.get(&suggestion.article.id).and_then(describe_variant),
            share: self.notation.percent(suggestion.share),
            bar: format!("{:.1}", 100.0 * suggestion.share),
            lift: suggestion.lift,
            reasons: suggestion.reasons.iter().flatten().map(|reason| self.reason(reason)).collect(),
            rest: self.rest(suggestion),
            rules: suggestion.rules.iter().map(|rule| (describe_rule(rule), rule.name.to_string())).collect(),
            moved: before.as_ref().map(|before| moved(before, &suggestion.article.id, rank)),
            href: self.view.undoable(self.filled(self.view, blank.slot, &suggestion.article.id)),
            refused: Refusal {
                slot: blank.slot,
                name: self.viewing.name(blank.slot, &suggestion.article.id),
                article: suggestion.article.id.clone(),
            },
        };
        BlankView {
            slot: blank.slot,
            kind: self.view.types.get(&blank.slot).map(|kind| spaced(kind)),
            admissible: blank.admissible,
            suggestions: blank.suggestions.iter().zip(1..).map(suggestion).collect(),
            instead: notices::instead(&blank.alternatives, self.view.filter.most_total, self.notation),
        }
    }

    fn filled(&self, view: &View, slot: usize, article: &ArticleId) -> View {
        view.filled_from(slot, article, self.viewing.name(slot, article))
    }

    fn set(&self, set: &OutfitSet) -> SetView {
        let mut filled = self.view.clone();
        for (slot, article) in &set.articles {
            filled = self.filled(&filled, *slot, &article.id);
            filled.loose.push(*slot);
        }
        filled.skipped_sets = self.view.skipped_sets + SETS;
        let articles: Vec<Article> = set.articles.iter().map(|(_, article)| article.unpack()).collect();
        let view = |article| ArticleView::new(article, self.notation).marked(self.live);
        SetView {
            articles: articles.iter().map(view).collect(),
            total: article_view::total(self.board.articles.iter().chain(&articles), self.notation)
                .filter(|_| self.board.articles.len() == self.view.slots.iter().flatten().count()),
            href: self.view.undoable(filled),
        }
    }

    /// The part of the lift that no reason of the customer's own covers; none if it is next to nothing.
    fn rest(&self, suggestion: &Suggestion) -> Option<f64> {
        let is_own = |reason: &&Reason| match &reason.cause {
            Cause::Feature { name, .. } => {
                !self.schema.feature(name).is_some_and(|feature| feature.of_outfit)
            }
            Cause::Article { .. } | Cause::Outfits { .. } => false,
        };
        let covered: f64 =
            suggestion.reasons.iter().flatten().filter(is_own).map(|reason| reason.factor).product();
        let rest = suggestion.lift? / covered;
        (!(1.0 / LEAST..LEAST).contains(&rest)).then_some(rest)
    }

    fn reason(&self, reason: &Reason) -> (String, f64) {
        let words = match &reason.cause {
            Cause::Feature { name, value } => {
                let words = self.schema.feature(name).map_or_else(
                    || format!("of {}", spaced(name)),
                    |feature| {
                        let whose = if self.view.own.contains_key(name) { "the" } else { "their" };
                        wording::clause(feature, value, whose)
                    },
                );
                format!("because {words}")
            }
            Cause::Article { slot } => {
                let article = self.board.slots.get(*slot).and_then(|slot| slot.article.as_ref());
                article.map_or_else(|| "another article".into(), |article| format!("with {}", article.name))
            }
            Cause::Outfits { slots, count } => {
                let articles = slots.iter().filter_map(|slot| self.board.slots.get(*slot)?.article.as_ref());
                let names: Vec<String> = articles.map(|article| article.name.clone()).collect();
                let names = wording::list(&names, "and");
                let outfits = if *count == 1 { "outfit" } else { "outfits" };
                let count = self.notation.count(*count as u64);
                format!("because stylists put it with {names}, in {count} {outfits}")
            }
        };
        (words, reason.factor)
    }
}

/// `Boosted, from 5`
fn describe_rule(rule: &MovedBy) -> String {
    let done = match rule.effect {
        Effect::Boost => "Boosted",
        Effect::Bury => "Lowered",
        Effect::Pin => "Pinned",
        Effect::Quota | Effect::Pair | Effect::Exclude | Effect::NeverTogether => "Moved",
    };
    rule.rank_before.map_or_else(|| done.to_owned(), |rank| format!("{done}, from {rank}"))
}

fn moved(before: &HashMap<ArticleId, usize>, article: &ArticleId, rank: usize) -> (String, &'static str) {
    match before.get(article) {
        None if before.len() < BEFORE => ("was excluded".into(), "good"),
        None => (format!("new, was below {BEFORE}"), "good"),
        Some(&before) if before > rank => (format!("▲ from {before}"), "good"),
        Some(&before) if before < rank => (format!("▼ from {before}"), "bad"),
        Some(_) => ("unchanged".into(), "quiet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_suggestions_show_the_rank_before() {
        let id = |name: &str| ArticleId::new(name).unwrap();
        let before = HashMap::from([(id("a"), 1), (id("b"), 2), (id("c"), 3)]);
        let words = |name: &str, rank| moved(&before, &id(name), rank).0;
        assert_eq!([words("b", 1), words("a", 2), words("c", 3)], ["▲ from 2", "▼ from 1", "unchanged"]);
        assert_eq!(words("d", 1), "was excluded");
    }
}
