//! Applies the shop's rules to a request.
//!
//! Excluded articles leave the admissible set, as filters have it. Boosts and buries are offsets of the engine's order, and the
//! articles for pins and quotas come with its answer. [`arrange`] puts a blank's suggestions in their places.

use std::{collections::HashSet, sync::Arc};

use atelier_core::{
    domain::{Mask, Method, RuleDigest, RuleName, Timestamp},
    util::json_fields::write_text,
};
use atelier_engine::inference::{Candidate, Offsets, Shown, Steering};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Request, Suggestion, Warning,
    prepare::{Draft, Slots},
    reading::Reading,
};
use crate::completion::rules::{Compiled, Effect, Rules, Situation, meets};

/// The rules that concern a request.
#[derive(Debug)]
pub(super) struct Steer {
    plan: Arc<Plan>,
    /// The engine's task, if it has any.
    pub(super) steering: Option<Arc<Steering>>,
    /// The articles that none of its blanks gets.
    pub(super) excluded: Option<Arc<Mask>>,
}

/// A rule that moved a suggestion.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MovedBy {
    /// The name of the rule.
    #[serde(serialize_with = "write_text")]
    #[schema(value_type = String, examples("new-season"))]
    pub name: RuleName,
    pub effect: Effect,
    /// Its rank by the model alone, among the articles that the filters admit, if the request asks to `explain` and it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank_before: Option<usize>,
}

/// A request to which the shop's rules apply.
#[derive(Debug)]
pub(super) struct Asked {
    rules: Arc<Rules>,
    now: Timestamp,
    method: Method,
    without: Arc<[RuleName]>,
    store: Option<String>,
    reading: Arc<Reading>,
    /// The positions of its outfit's articles.
    outfit: Vec<u32>,
    /// The catalogue's length.
    positions: usize,
}

/// The effects of a request's rules on the next article.
#[derive(Debug)]
pub(super) struct Concern {
    /// Their numbers, the most important first.
    matching: Vec<usize>,
    pub(super) excluded: Option<Arc<Mask>>,
    pub(super) offsets: Arc<Offsets>,
}

impl Asked {
    /// None if no rule can concern the request.
    pub(super) fn new(draft: &Draft<'_>, reading: &Arc<Reading>, slots: &Slots) -> Option<Self> {
        Self::at(draft.request.rules, draft, reading, slots)
    }

    fn at(now: Option<Timestamp>, draft: &Draft<'_>, reading: &Arc<Reading>, slots: &Slots) -> Option<Self> {
        let (rules, request) = (draft.served.rules, draft.request);
        let now = now.filter(|_| !rules.is_empty())?;
        Some(Self {
            rules: Arc::clone(rules),
            now,
            method: request.method,
            without: Arc::clone(&request.without_rules),
            store: request.filters.store.clone(),
            reading: Arc::clone(reading),
            outfit: slots.articles.clone(),
            positions: draft.served.catalogue.sets().present().length(),
        })
    }

    fn matching(&self, outfit: &[u32]) -> Vec<usize> {
        let mut matching = self.rules.matching(&Situation {
            now: self.now,
            method: self.method,
            store: self.store.as_deref(),
            features: &self.reading.features,
            outfit,
        });
        matching.retain(|number| !self.without.contains(&self.rules.get(*number).name));
        matching
    }

    /// Where these articles fill some of the outfit's blanks.
    pub(super) fn filled_with(&self, filled: &[u32]) -> Concern {
        let rules = &self.rules;
        let outfit = [&self.outfit, filled].concat();
        let matching = self.matching(&outfit);
        let moving = matching.iter().copied().filter(|number| rules.get(*number).offset().is_some());
        let offsets = rules.offsets(moving.collect());
        let mut excluded = Mask::none(if matching.is_empty() { 0 } else { self.positions });
        for Compiled { rule, articles, others, .. } in matching.iter().map(|number| rules.get(*number)) {
            match rule.effect {
                Effect::Exclude => excluded.unite(articles),
                Effect::NeverTogether => {
                    for (one, other) in [(articles, others), (others, articles)] {
                        if meets(one, &outfit) {
                            excluded.unite(other);
                        }
                    }
                }
                _ => {}
            }
        }
        let excluded = (!excluded.is_empty()).then(|| Arc::new(excluded));
        Concern { matching, excluded, offsets }
    }
}

/// The rules that concern a request, whether they apply or not, if feedback counts for them.
#[derive(Debug)]
pub(super) struct Counted {
    asked: Asked,
    matching: Vec<usize>,
}

impl Counted {
    pub(super) fn new(draft: &Draft<'_>, reading: &Arc<Reading>, slots: &Slots) -> Option<Self> {
        let asked = Asked::at(draft.request.counted, draft, reading, slots)?;
        let matching = asked.matching(&asked.outfit);
        (!matching.is_empty()).then_some(Self { asked, matching })
    }

    /// Those that could change the suggestions for a blank that these articles may fill but for rules; the most important first.
    pub(super) fn could_change(&self, admissible: &Mask) -> Vec<RuleDigest> {
        let Self { asked: Asked { rules, outfit, .. }, matching } = self;
        let rules = matching.iter().map(|number| rules.get(*number));
        rules.filter(|rule| rule.could_change(outfit, admissible)).map(|rule| rule.digest).collect()
    }
}

impl Steer {
    /// None if no rule concerns the request.
    pub(super) fn new(asked: &Asked, request: &Request) -> Option<Self> {
        let Concern { matching, excluded, offsets } = asked.filled_with(&[]);
        if matching.is_empty() {
            return None;
        }
        let plan = Arc::new(Plan::new(&asked.rules, matching, Arc::clone(&offsets), request));
        let wanted = plan.wanted();
        let steering = (!offsets.is_empty() || !wanted.is_empty()).then(|| {
            let shown = request.explain.then(|| Arc::clone(&plan) as Arc<dyn Shown>);
            Arc::new(Steering { offsets, wanted, shown })
        });
        Some(Self { plan, steering, excluded })
    }

    /// By how much an article is boosted or buried, as a logarithm.
    pub(super) fn offset(&self, article: u32) -> f64 {
        self.plan.offsets.of(article).into()
    }

    /// The suggestions for a blank in their places, and what rules wanted in vain. `wanted` are in the order of
    /// [`Plan::wanted`].
    pub(super) fn place(
        &self,
        found: Vec<Suggestion>,
        wanted: &[Vec<Candidate>],
        read: impl Fn(Candidate) -> Suggestion,
    ) -> (Vec<Suggestion>, Vec<String>) {
        let plan = &*self.plan;
        let positions = |set: &Vec<Candidate>| set.iter().map(|candidate| candidate.article).collect();
        let in_sets: Vec<Vec<u32>> = wanted.iter().map(positions).collect();
        let order: Vec<u32> = found.iter().map(|suggestion| suggestion.index).collect();
        let Arranged { order, unmet_pins, unmet_quotas } = plan.arrange(&order, &in_sets);
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
                .expect("what is placed was found or wanted");
            let own_rank = suggestion.own_rank.or(in_wanted.and_then(|candidate| candidate.own_rank));
            let boosts = plan.all().filter(|rule| rule.offset().is_some() && rule.articles.contains(article));
            let is_offset = plan.offsets.of(article).abs() > 0.0;
            let cause = cause.map(|cause| plan.rules.get(plan.number(cause)));
            let rank_before = own_rank.filter(|rank| *rank != places.len() + 1);
            let moved =
                |rule: &Compiled| MovedBy { name: rule.name.clone(), effect: rule.rule.effect, rank_before };
            suggestion.rules = cause.into_iter().chain(boosts.filter(|_| is_offset)).map(moved).collect();
            places.push(suggestion);
        }
        let warn = |cause: Cause, reason: &str| {
            let Compiled { name, rule, .. } = plan.rules.get(plan.number(cause));
            let effect = rule.effect;
            format!("{effect} {name:?} is not met: {reason}")
        };
        let pins = unmet_pins
            .into_iter()
            .map(|at| warn(Cause::Pin(at), &format!("another rule has rank {}", plan.pins[at].0)));
        let quotas = unmet_quotas.into_iter().map(|at| {
            let reason = "too few of its articles pass the filters, or other rules take their places";
            warn(Cause::Quota(at), reason)
        });
        (places, pins.chain(quotas).collect())
    }
}

/// Warns of what rules wanted in vain, once of each, whatever the slots.
pub(super) fn warn_unmet(unmet: Vec<(usize, String)>) -> Vec<Warning> {
    let mut slots: Vec<(String, Vec<String>)> = Vec::new();
    for (slot, detail) in unmet {
        match slots.iter_mut().find(|(other, _)| *other == detail) {
            Some((_, slots)) => slots.push(slot.to_string()),
            None => slots.push((detail, vec![slot.to_string()])),
        }
    }
    let warning = |(detail, slots): (String, Vec<String>)| {
        let name = if slots.len() > 1 { "slots" } else { "slot" };
        Warning::new("rule-not-met", format!("{name} {}: {detail}", slots.join(", ")))
    };
    slots.into_iter().map(warning).collect()
}

/// The wishes of a request's rules for the suggestions of each blank.
#[derive(Debug)]
struct Plan {
    rules: Arc<Rules>,
    /// The numbers of the rules that concern the request, the most important first.
    matching: Vec<usize>,
    offsets: Arc<Offsets>,
    /// The ranks of pins among the first `k`, and the numbers of their rules.
    pins: Vec<(usize, usize)>,
    /// How many of their articles quotas want at least, and the numbers of their rules.
    quotas: Vec<(usize, usize)>,
    k: usize,
    /// Whether what is likely is not all that counts.
    is_diverse: bool,
}

impl Plan {
    fn new(rules: &Arc<Rules>, matching: Vec<usize>, offsets: Arc<Offsets>, request: &Request) -> Self {
        let numbers = || matching.iter().map(|number| (*number, &rules.get(*number).rule));
        let pins = numbers().filter_map(|(number, rule)| Some((rule.place()?, number)));
        let quotas = numbers().filter_map(|(number, rule)| Some((rule.least?, number)));
        Self {
            pins: pins.filter(|(rank, _)| *rank <= request.k).collect(),
            quotas: quotas.collect(),
            rules: Arc::clone(rules),
            offsets,
            k: request.k,
            is_diverse: request.diversity > 0.0,
            matching,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Compiled> {
        self.matching.iter().map(|number| self.rules.get(*number))
    }

    fn number(&self, cause: Cause) -> usize {
        match cause {
            Cause::Pin(at) => self.pins[at].1,
            Cause::Quota(at) => self.quotas[at].1,
        }
    }

    fn articles(&self, number: usize) -> &Arc<Mask> {
        &self.rules.get(number).articles
    }

    /// The articles that pins and then quotas may need.
    fn wanted(&self) -> Vec<(Arc<Mask>, usize)> {
        let ranks: Vec<usize> = self.pins.iter().map(|(rank, _)| *rank).collect();
        let pins = self.pins.iter().zip(candidates(&ranks)).map(|((_, number), count)| (*number, count));
        let quotas = self.quotas.iter().map(|(least, number)| (*number, (*least).min(self.k)));
        pins.chain(quotas).map(|(number, count)| (Arc::clone(self.articles(number)), count)).collect()
    }

    fn arrange(&self, found: &[u32], wanted: &[Vec<u32>]) -> Arranged {
        let mut sets = wanted.iter();
        let pins: Vec<Pin<'_>> = self
            .pins
            .iter()
            .zip(sets.by_ref())
            .map(|((rank, _), candidates)| Pin { rank: *rank, candidates })
            .collect();
        let quota = |((least, number), candidates): (&(usize, usize), _)| Quota {
            least: *least,
            articles: self.articles(*number),
            candidates,
        };
        let quotas: Vec<Quota<'_>> = self.quotas.iter().zip(sets.map(|set| &**set)).map(quota).collect();
        arrange(found, self.k, &pins, &quotas)
    }
}

impl Shown for Plan {
    fn choose(&self, top: &[u32], wanted: &[Vec<u32>]) -> Vec<u32> {
        if self.is_diverse {
            return top.iter().chain(wanted.iter().flatten()).copied().collect();
        }
        let order = self.arrange(top, wanted).order.into_iter();
        let is_moved = |(article, cause): &(u32, Option<Cause>)| {
            cause.is_some() || self.offsets.of(*article).abs() > 0.0
        };
        order.filter(is_moved).map(|(article, _)| article).collect()
    }
}

/// How many candidates each pin needs: its first ones may have the ranks of earlier pins.
fn candidates(ranks: &[usize]) -> impl Iterator<Item = usize> {
    (0..ranks.len()).map(|pin| 1 + ranks[..pin].iter().collect::<HashSet<_>>().len())
}

/// A rank, and the articles that may have it, the best first.
#[derive(Debug, Clone)]
struct Pin<'a> {
    rank: usize,
    candidates: &'a [u32],
}

/// At least so many of the articles; the best of them are candidates.
#[derive(Debug, Clone)]
struct Quota<'a> {
    least: usize,
    articles: &'a Mask,
    candidates: &'a [u32],
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
fn arrange(found: &[u32], k: usize, pins: &[Pin<'_>], quotas: &[Quota<'_>]) -> Arranged {
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
            let ranks: Vec<usize> = pins.iter().map(|(rank, _)| *rank).collect();
            let of_pins: Vec<Vec<u32>> =
                pins.iter().zip(candidates(&ranks)).map(|((_, articles), count)| best_of(articles, count)).collect();
            let of_quotas: Vec<Vec<u32>> =
                quotas.iter().map(|(least, articles)| best_of(articles, (*least).min(k))).collect();
            let pins: Vec<Pin<'_>> =
                ranks.iter().zip(&of_pins).map(|(rank, candidates)| Pin { rank: *rank, candidates }).collect();
            let quotas: Vec<Quota<'_>> = quotas.iter().zip(&sets).zip(&of_quotas).map(|(((least, _), articles), candidates)| {
                Quota { least: *least, articles, candidates }
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
