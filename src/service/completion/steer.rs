//! Applies the shop's rules to a request.
//!
//! What rules exclude leaves the admissible set, as filters have it. Boosts and buries are offsets of the engine's order, and the
//! articles for pins and quotas come with its answer. [`arrange`] puts a blank's suggestions in their places.

use std::{collections::HashSet, sync::Arc};

use atelier_core::domain::{Mask, RuleName};
use atelier_engine::inference::{Candidate, Steering};

use super::{
    Suggestion, Warning,
    prepare::{Draft, Slots},
    reading::Reading,
};
use crate::service::rules::{Compiled, Effect, Rules, Situation, meets};

/// The rules that concern a request.
#[derive(Debug)]
pub(super) struct Steer {
    rules: Arc<Rules>,
    /// Their numbers, the most important first.
    matching: Vec<usize>,
    /// What the engine has to do, if anything.
    pub(super) steering: Option<Arc<Steering>>,
    /// The articles that none of its blanks gets.
    pub(super) excluded: Option<Arc<Mask>>,
}

/// A rule that moved a suggestion.
#[derive(Debug, Clone, PartialEq)]
pub struct MovedBy {
    pub name: RuleName,
    pub effect: Effect,
    /// Its rank by the model alone, among the articles that pass the filters.
    pub rank_before: usize,
}

impl Steer {
    /// None if no rule concerns the request.
    pub(super) fn new(draft: &Draft<'_>, reading: &Reading, slots: &Slots) -> Option<Self> {
        let (rules, request) = (draft.served.rules, draft.request);
        let situation = Situation {
            now: request.rules.filter(|_| !rules.is_empty())?,
            method: request.method,
            store: request.filters.store.as_deref(),
            features: &reading.features,
            outfit: &slots.articles,
        };
        let matching = rules.matching(&situation);
        if matching.is_empty() {
            return None;
        }
        let mut steer = Self { rules: Arc::clone(rules), matching, steering: None, excluded: None };
        let moving: Vec<usize> =
            steer.matching.iter().copied().filter(|at| rules.get(*at).offset().is_some()).collect();
        let wanted: Vec<(Arc<Mask>, usize)> = steer.wanted(request.k).collect();
        if !(moving.is_empty() && wanted.is_empty()) {
            steer.steering = Some(Arc::new(Steering { offsets: rules.offsets(moving), wanted }));
        }
        let mut excluded = Mask::none(draft.served.catalogue.sets().present().length());
        for rule in steer.all().filter(|rule| rule.rule.effect == Effect::Exclude) {
            excluded.unite(&rule.articles);
        }
        steer.unite_apart(&mut excluded, &slots.articles);
        steer.excluded = (!excluded.is_empty()).then(|| Arc::new(excluded));
        Some(steer)
    }

    fn all(&self) -> impl Iterator<Item = &Compiled> {
        self.matching.iter().map(|number| self.rules.get(*number))
    }

    fn pins(&self) -> impl Iterator<Item = (usize, &Compiled)> {
        self.all().filter_map(|rule| {
            Some((if rule.rule.effect == Effect::Pair { 1 } else { rule.rule.rank? }, rule))
        })
    }

    fn quotas(&self) -> impl Iterator<Item = (usize, &Compiled)> {
        self.all().filter_map(|rule| Some((rule.rule.least?, rule)))
    }

    /// The articles that pins and then quotas may need. A pin's first ones may be at other ranks already.
    fn wanted(&self, k: usize) -> impl Iterator<Item = (Arc<Mask>, usize)> {
        let pins = self.pins().count();
        let of_pins = self.pins().map(move |(_, rule)| (Arc::clone(&rule.articles), pins));
        of_pins.chain(self.quotas().map(move |(least, rule)| (Arc::clone(&rule.articles), least.min(k))))
    }

    /// Adds the articles that rules keep apart from some of an outfit.
    pub(super) fn unite_apart(&self, apart: &mut Mask, outfit: &[u32]) {
        for rule in self.all().filter(|rule| rule.rule.effect == Effect::NeverTogether) {
            for (one, other) in [(&rule.articles, &rule.others), (&rule.others, &rule.articles)] {
                if meets(one, outfit) {
                    apart.unite(other);
                }
            }
        }
    }

    /// By how much an article is boosted or buried, as a logarithm.
    pub(super) fn offset(&self, article: u32) -> f64 {
        self.steering.as_ref().map_or(0.0, |steering| steering.offsets.of(article).into())
    }

    /// The suggestions for a blank in their places, and warnings of what rules wanted in vain. `wanted` are in the order of
    /// [`Steer::wanted`].
    pub(super) fn place(
        &self,
        slot: usize,
        found: Vec<Suggestion>,
        k: usize,
        wanted: &[Vec<Candidate>],
        read: impl Fn(Candidate) -> Suggestion,
    ) -> (Vec<Suggestion>, Vec<Warning>) {
        let positions = |set: &Vec<Candidate>| set.iter().map(|candidate| candidate.article).collect();
        let mut sets = wanted.iter();
        let pins: Vec<Pin> = self
            .pins()
            .zip(sets.by_ref())
            .map(|((rank, _), set)| Pin { rank, candidates: positions(set) })
            .collect();
        let quotas: Vec<Quota<'_>> = self
            .quotas()
            .zip(sets)
            .map(|((least, rule), set)| Quota { least, articles: &rule.articles, candidates: positions(set) })
            .collect();
        let order: Vec<u32> = found.iter().map(|suggestion| suggestion.index).collect();
        let Arranged { order, unmet_pins, unmet_quotas } = arrange(&order, k, &pins, &quotas);
        let mut places: Vec<Suggestion> = Vec::with_capacity(order.len());
        let mut found: Vec<Option<Suggestion>> = found.into_iter().map(Some).collect();
        for (article, cause) in order {
            let at = found
                .iter()
                .position(|suggestion| suggestion.as_ref().is_some_and(|own| own.index == article));
            let in_wanted = wanted.iter().flatten().find(|candidate| candidate.article == article);
            let mut suggestion = at
                .and_then(|at| found[at].take())
                .or_else(|| in_wanted.map(|candidate| read(*candidate)))
                .expect("what is placed was found or wanted; this is a bug");
            let own_rank = suggestion.own_rank.or(in_wanted.and_then(|candidate| candidate.own_rank));
            let boosts = self.all().filter(|rule| rule.offset().is_some() && rule.articles.contains(article));
            let cause = cause.map(|cause| match cause {
                Cause::Pin(at) => self.pins().nth(at).expect("it is one of them; this is a bug").1,
                Cause::Quota(at) => self.quotas().nth(at).expect("it is one of them; this is a bug").1,
            });
            suggestion.rules = own_rank.map_or_else(Vec::new, |rank_before| {
                let moved = |rule: &Compiled| MovedBy {
                    name: rule.name.clone(),
                    effect: rule.rule.effect,
                    rank_before,
                };
                cause.into_iter().chain(boosts).map(moved).collect()
            });
            places.push(suggestion);
        }
        let warn = |rule: &Compiled, reason: &str| {
            let (name, effect) = (&rule.name, rule.rule.effect);
            Warning::new("rule-not-met", format!("slot {slot}: {effect} {name:?} is not met: {reason}"))
        };
        let pins = self.pins().enumerate().filter(|(at, _)| unmet_pins.contains(at));
        let quotas = self.quotas().enumerate().filter(|(at, _)| unmet_quotas.contains(at));
        let warnings = pins
            .map(|(_, (rank, rule))| warn(rule, &format!("another rule has rank {rank}")))
            .chain(quotas.map(|(_, (_, rule))| {
                warn(rule, "too few of its articles pass the filters, or other rules take their places")
            }))
            .collect();
        (places, warnings)
    }
}

/// A rank, and the articles that may have it, the best first.
#[derive(Debug, Clone)]
struct Pin {
    rank: usize,
    candidates: Vec<u32>,
}

/// At least so many of the articles; the best of them are candidates.
#[derive(Debug, Clone)]
struct Quota<'a> {
    least: usize,
    articles: &'a Mask,
    candidates: Vec<u32>,
}

/// Why an article is at its place, by the number of the pin or quota.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cause {
    Pin(usize),
    Quota(usize),
}

#[derive(Debug)]
struct Arranged {
    order: Vec<(u32, Option<Cause>)>,
    unmet_pins: Vec<usize>,
    unmet_quotas: Vec<usize>,
}

/// Puts articles in their places: `found` are the best that are admissible, up to `k`. Earlier pins and quotas come before later
/// ones. A pin without an admissible article, or past the last place, asks for nothing.
fn arrange(found: &[u32], k: usize, pins: &[Pin], quotas: &[Quota<'_>]) -> Arranged {
    let mut pinned: Vec<(usize, u32, usize)> = Vec::new();
    let mut unmet_pins = Vec::new();
    for (number, Pin { rank, candidates }) in pins.iter().enumerate().filter(|(_, pin)| pin.rank <= k) {
        let free = candidates.iter().find(|article| !pinned.iter().any(|(_, other, _)| other == *article));
        let Some(&article) = free else {
            // An earlier pin has all.
            unmet_pins.extend((!candidates.is_empty()).then_some(number));
            continue;
        };
        if pinned.iter().any(|(taken, ..)| taken == rank) {
            unmet_pins.push(number);
        } else {
            pinned.push((*rank, article, number));
        }
    }
    pinned.sort_unstable();
    let is_pinned = |article: &u32| pinned.iter().any(|(_, other, _)| other == article);
    let others = found.iter().copied().filter(|article| !is_pinned(article));
    let mut chosen: Vec<(u32, Option<Cause>)> =
        others.take(found.len().saturating_sub(pinned.len())).map(|article| (article, None)).collect();
    let places = chosen.len() + pinned.len();
    let count = |quota: &Quota<'_>, chosen: &[(u32, Option<Cause>)]| {
        let pinned = pinned.iter().map(|(_, article, _)| article);
        let all = chosen.iter().map(|(article, _)| article).chain(pinned);
        all.filter(|article| quota.articles.contains(**article)).count()
    };
    let is_met =
        |quota: &Quota<'_>, chosen: &[(u32, Option<Cause>)]| count(quota, chosen) >= quota.least.min(places);
    for (number, quota) in quotas.iter().enumerate() {
        let taken: HashSet<u32> = chosen.iter().map(|(article, _)| *article).collect();
        let mut fresh =
            quota.candidates.iter().filter(|article| !taken.contains(article) && !is_pinned(article));
        while !is_met(quota, &chosen) {
            // The last one that neither this quota nor an earlier one needs.
            let is_needed = |article: u32| {
                let needs = |other: &Quota<'_>| {
                    other.articles.contains(article) && count(other, &chosen) <= other.least.min(places)
                };
                quota.articles.contains(article) || quotas[..number].iter().any(needs)
            };
            let leaves = chosen.iter().rposition(|(article, _)| !is_needed(*article));
            let (Some(leaves), Some(&comes)) = (leaves, fresh.next()) else { break };
            chosen.remove(leaves);
            chosen.push((comes, Some(Cause::Quota(number))));
        }
    }
    let unmet_quotas =
        (0..).zip(quotas).filter(|(_, quota)| !is_met(quota, &chosen)).map(|(number, _)| number).collect();
    let (mut order, mut rest) = (Vec::with_capacity(places), chosen.into_iter());
    for &(rank, article, number) in &pinned {
        order.extend(rest.by_ref().take(rank - 1 - order.len().min(rank - 1)));
        order.push((article, Some(Cause::Pin(number))));
    }
    order.extend(rest);
    Arranged { order, unmet_pins, unmet_quotas }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const ARTICLES: u32 = 40;

    fn set(articles: &[u32]) -> Mask {
        let mut set = Mask::none(ARTICLES as usize);
        for article in articles {
            set.insert(*article);
        }
        set
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Articles are better the lower they are.
        #[test]
        fn pins_have_their_ranks_and_quotas_are_met_or_named(
            admissible in vec(any::<bool>(), ARTICLES as usize), k in 1_usize..12,
            pins in vec((1_usize..14, vec(0..ARTICLES, 1..4)), 0..5),
            quotas in vec((1_usize..14, vec(0..ARTICLES, 0..20)), 0..4),
        ) {
            let admissible: Vec<u32> = (0..ARTICLES).filter(|article| admissible[*article as usize]).collect();
            let best_of = |articles: &[u32], most: usize| -> Vec<u32> {
                admissible.iter().copied().filter(|article| articles.contains(article)).take(most).collect()
            };
            let found: Vec<u32> = admissible.iter().copied().take(k).collect();
            let sets: Vec<Mask> = quotas.iter().map(|(_, articles)| set(articles)).collect();
            let count = pins.len();
            let pins: Vec<Pin> =
                pins.iter().map(|(rank, articles)| Pin { rank: *rank, candidates: best_of(articles, count) }).collect();
            let quotas: Vec<Quota<'_>> = quotas.iter().zip(&sets).map(|((least, articles), set)| {
                Quota { least: *least, articles: set, candidates: best_of(articles, (*least).min(k)) }
            }).collect();
            let arranged = arrange(&found, k, &pins, &quotas);
            let order: Vec<u32> = arranged.order.iter().map(|(article, _)| *article).collect();
            prop_assert_eq!(order.len(), found.len(), "as many as without rules");
            prop_assert!(order.iter().all(|article| admissible.contains(article)));
            prop_assert_eq!(order.iter().collect::<HashSet<_>>().len(), order.len(), "each once");
            for (number, pin) in pins.iter().enumerate() {
                let at = arranged.order.iter().position(|(_, cause)| *cause == Some(Cause::Pin(number)));
                match at {
                    // A pin past the last place is last, after other pins perhaps.
                    Some(at) if pin.rank <= order.len() => prop_assert_eq!(at + 1, pin.rank),
                    Some(at) => prop_assert!(arranged.order[at..].iter().all(|(_, cause)| matches!(cause, Some(Cause::Pin(_))))),
                    None => {
                        let is_idle = pin.rank > k || pin.candidates.is_empty();
                        prop_assert!(is_idle || arranged.unmet_pins.contains(&number));
                    }
                }
            }
            for (number, quota) in quotas.iter().enumerate() {
                let count = order.iter().filter(|article| quota.articles.contains(**article)).count();
                let is_met = count >= quota.least.min(order.len());
                prop_assert_eq!(is_met, !arranged.unmet_quotas.contains(&number));
                if quotas.len() == 1 && pins.is_empty() {
                    prop_assert!(count >= quota.least.min(quota.candidates.len()), "if it can be met, it is");
                }
            }
            let free: Vec<u32> = arranged.order.iter().filter(|(_, cause)| cause.is_none()).map(|(article, _)| *article).collect();
            prop_assert!(free.is_sorted(), "the others stay in their order");
        }
    }
}
