//! Completes the look of an article: the published looks with it that the customer can have, then whole outfits that a model makes.

use std::{collections::BTreeMap, sync::Arc};

use atelier_core::domain::ArticleId;
use atelier_engine::{catalogue::Choice, packed_article::PackedArticle};
use serde::Deserialize;

use super::{IfMissing, Published};
use crate::{
    completion::profiles::Profiles,
    completion::{
        self, Filters, MAX_SETS, Offered, OutfitSet, Reason, Request, Sets, Variants, Warning,
        asking::{Resolved, Times, resolve},
        bounded,
        tickets::{Suggested, SuggestedFor, Tickets},
    },
    platform::fault::ServiceError,
    releases::{LiveRelease, routing::Route},
};

/// The most looks of an answer.
pub const MOST: usize = MAX_SETS;
/// The articles of an outfit that a model makes, if the schema's outfits may have as many.
const PIECES: usize = 4;
/// How many looks may have articles replaced, for each that is wanted.
const MOST_REPLACED: usize = 2;
/// The method in tickets of published looks, so that no model gets the credit.
const PUBLISHED: &str = "look";

#[derive(Debug, Clone)]
pub struct Wanted {
    /// The position of the article, which the shop has.
    pub article: u32,
    pub n: usize,
    pub most_total: Option<f64>,
    pub store: Option<String>,
    pub explain: bool,
}

/// Looks with an article.
#[derive(Debug)]
pub struct Found {
    pub question: Resolved,
    pub looks: Vec<FoundLook>,
    pub variants: Variants,
    pub warnings: Vec<Warning>,
}

#[derive(Debug)]
pub struct FoundLook {
    /// None of an outfit that the model made.
    pub published: Option<Arc<Published>>,
    pub pieces: Vec<Piece>,
    /// The sum of the prices, if every article has one.
    pub total: Option<f64>,
}

#[derive(Debug, Clone)]
pub struct Piece {
    position: u32,
    pub article: Arc<PackedArticle>,
    /// The look's own article, which the customer cannot have.
    pub replaces: Option<ArticleId>,
    /// Of an article that the model chose, if the caller asks for them.
    pub reasons: Option<Vec<Reason>>,
    is_chosen: bool,
    /// Of the variant that the customer needs, if that is known; NaN without one.
    price: f64,
    variant: Option<Choice>,
}

/// The published looks first, then outfits of the model, each with other articles.
pub async fn complete(
    route: &Route,
    profiles: &Profiles,
    wanted: &Wanted,
    times: Times,
) -> Result<Found, ServiceError> {
    let live = &*route.live;
    let anchor = live.catalogue.any_article(wanted.article).expect("the caller found it");
    let request = Request {
        filters: Filters { store: wanted.store.clone(), ..Filters::default() },
        rules: Some(times.now),
        ..Request::routed(vec![Some(anchor.id.clone())], route)
    };
    let question = resolve(route, profiles, request, times.begun).await?;
    let offered = Offered::new(live.served(), &question.request)?;
    let search = Search { live, wanted, request: &question.request, offered: &offered, times };
    // Each takes as long as a whole outfit.
    let mut replacements = MOST_REPLACED * wanted.n;
    let mut warnings = offered.warnings.clone();
    warnings.extend(question.stale.clone());
    let mut looks: Vec<FoundLook> = Vec::new();
    for published in live.follower::<super::Looks>().with_article(wanted.article) {
        if looks.len() == wanted.n {
            break;
        }
        if published.audience.has(times.now, wanted.store.as_deref(), offered.features())
            && let Some(look) = search.offer(published, &mut replacements).await?
            && !looks.iter().any(|other| other.has_same(&look))
        {
            looks.push(look);
        }
    }
    search.add_outfits(&mut looks, &mut warnings).await?;
    if wanted.explain {
        for look in &mut looks {
            search.explain(look).await?;
        }
    }
    let pieces = looks.iter().flat_map(|look| &look.pieces);
    let variant = |piece: &Piece| Some((piece.article.id.clone(), piece.variant.clone()?));
    let variants = pieces.filter_map(variant).collect();
    Ok(Found { question, looks, variants, warnings: bounded(warnings, 0) })
}

impl Found {
    /// Signs the id of a look, for feedback on its pieces.
    pub fn issue_ticket(&self, look: &FoundLook, tickets: &Tickets, route: &Route, times: Times) -> String {
        let Resolved { request, held_out, .. } = &self.question;
        let anchor = request.outfit.first().and_then(Option::as_ref);
        let is_anchor = |piece: &Piece| anchor == Some(&piece.article.id);
        let pieces = || look.pieces.iter();
        let blanks =
            pieces().enumerate().filter(|(_, piece)| !is_anchor(piece)).map(|(slot, piece)| SuggestedFor {
                slot,
                articles: vec![piece.article.id.clone()],
                in_sets: Vec::new(),
                rules: Vec::new(),
            });
        let method = if look.published.is_some() { PUBLISHED } else { request.method.as_str() };
        tickets.issue(Suggested {
            release: route.live.name().to_owned(),
            method: method.to_owned(),
            arm: route.arm.clone().filter(|_| look.published.is_none()),
            at: times.now,
            customer: route.customer.clone().filter(|_| request.stored.is_some()),
            is_shared: request.stored.is_none(),
            held_out: *held_out,
            outfit: pieces().map(|piece| is_anchor(piece).then(|| piece.article.id.clone())).collect(),
            blanks: blanks.collect(),
        })
    }
}

impl FoundLook {
    fn has_same(&self, other: &Self) -> bool {
        self.pieces.len() == other.pieces.len()
            && self.pieces.iter().all(|piece| other.pieces.iter().any(|one| one.position == piece.position))
    }
}

struct Search<'a> {
    live: &'a LiveRelease,
    wanted: &'a Wanted,
    request: &'a Request,
    offered: &'a Offered<'a>,
    times: Times,
}

impl Search<'_> {
    /// A published look as the customer can have it; None if they cannot.
    /// `replacements` counts down how many looks may still have articles replaced.
    async fn offer(
        &self,
        published: &Arc<Published>,
        replacements: &mut usize,
    ) -> Result<Option<FoundLook>, ServiceError> {
        let mut pieces: Vec<Option<Piece>> = Vec::new();
        let mut missing = BTreeMap::new();
        for (slot, position) in published.articles.iter().enumerate() {
            // An article that is not in the catalogue has no type, so nothing can replace it.
            let Some(position) = *position else { return Ok(None) };
            if position == self.wanted.article || self.offered.admits(position) {
                pieces.push(self.piece(position, None, false));
            } else {
                pieces.push(None);
                missing.insert(slot, position);
            }
        }
        // One article besides that of the page is still the editor's.
        let kept: Vec<&Piece> = pieces.iter().flatten().collect();
        if kept.len() < 2 || !self.is_allowed(&kept) {
            return Ok(None);
        }
        if !missing.is_empty() {
            if published.look.if_missing == IfMissing::Withhold || *replacements == 0 {
                return Ok(None);
            }
            *replacements -= 1;
            self.replace(&mut pieces, &missing).await?;
        }
        let pieces: Option<Vec<Piece>> = pieces.into_iter().collect();
        Ok(pieces.and_then(|pieces| self.look(Some(Arc::clone(published)), pieces)))
    }

    /// Fills the slots of missing articles with the best of their types together.
    async fn replace(
        &self,
        pieces: &mut [Option<Piece>],
        missing: &BTreeMap<usize, u32>,
    ) -> Result<(), ServiceError> {
        let article = |position: u32| self.live.catalogue.any_article(position);
        // A look may be longer than the outfits of the live schema; the model then sees its first articles.
        let most = self.live.serving.release().schema().outfit_size().most;
        let mut room = most.saturating_sub(missing.len());
        let mut slots = Vec::new();
        for (slot, piece) in pieces.iter().enumerate() {
            if piece.is_none() || room > 0 {
                slots.push(slot);
                room -= usize::from(piece.is_some());
            }
        }
        let kind = |at: u32| article(at).map(|article| article.kind().to_owned()).into_iter().collect();
        let places = slots.iter().enumerate();
        let types = places.filter_map(|(place, slot)| Some((place, kind(*missing.get(slot)?))));
        let outfit = slots.iter().map(|slot| pieces[*slot].as_ref().map(|piece| piece.article.id.clone()));
        let filters = Filters {
            types: types.collect(),
            most_total: self.wanted.most_total,
            ..self.request.filters.clone()
        };
        let sets = Sets { most: 1, distinct: false };
        let request = Request { filters, sets, ..self.with_outfit(outfit.collect()) };
        let filled = match completion::complete(self.live.served(), &request, self.times.deadline).await {
            Ok(completion) => completion.sets.into_iter().next(),
            // The method suggests nothing of a type.
            Err(ServiceError::Faults(_)) => None,
            Err(error) => return Err(error),
        };
        for (place, filling) in filled.into_iter().flat_map(|set| set.articles) {
            let slot = slots[place];
            let position = self.live.catalogue.position_of(filling.id.as_str());
            let replaces = article(missing[&slot]).map(|article| article.id.clone());
            pieces[slot] = position.and_then(|position| self.piece(position, replaces, true));
        }
        Ok(())
    }

    /// Adds outfits of the model until there are `n`.
    async fn add_outfits(
        &self,
        looks: &mut Vec<FoundLook>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), ServiceError> {
        if looks.len() >= self.wanted.n {
            return Ok(());
        }
        let size = self.live.serving.release().schema().outfit_size();
        let mut outfit = self.request.outfit.clone();
        outfit.resize(PIECES.clamp(size.least, size.most).max(2), None);
        let filters = Filters { most_total: self.wanted.most_total, ..self.request.filters.clone() };
        // Some may be published.
        let sets = Sets { most: self.wanted.n, distinct: true };
        let request = Request { filters, sets, ..self.with_outfit(outfit) };
        let completed = completion::complete(self.live.served(), &request, self.times.deadline).await?;
        for warning in completed.warnings {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        for OutfitSet { articles, .. } in completed.sets {
            let chosen = articles.into_iter().map(|(_, article)| {
                let position = self.live.catalogue.position_of(article.id.as_str())?;
                self.piece(position, None, true)
            });
            let pieces = [self.piece(self.wanted.article, None, false)].into_iter().chain(chosen);
            let Some(pieces) = pieces.collect() else { continue };
            let Some(look) = self.look(None, pieces) else { continue };
            if looks.len() < self.wanted.n && !looks.iter().any(|other| other.has_same(&look)) {
                looks.push(look);
            }
        }
        Ok(())
    }

    /// Says of each piece that the model chose why it is with the others.
    async fn explain(&self, look: &mut FoundLook) -> Result<(), ServiceError> {
        for slot in 0..look.pieces.len() {
            if !look.pieces[slot].is_chosen {
                continue;
            }
            let others = look.pieces.iter().enumerate();
            let outfit = others.map(|(other, piece)| (other != slot).then(|| piece.article.id.clone()));
            let request = self.with_outfit(outfit.collect());
            let position = look.pieces[slot].position;
            let found =
                completion::reasons(self.live.served(), &request, position, self.times.deadline).await?;
            look.pieces[slot].reasons = Some(found);
        }
        Ok(())
    }

    fn with_outfit(&self, outfit: Vec<Option<ArticleId>>) -> Request {
        Request { outfit, ..self.request.clone() }
    }

    fn piece(&self, position: u32, replaces: Option<ArticleId>, is_chosen: bool) -> Option<Piece> {
        /// Of a variant.
        #[derive(Deserialize)]
        struct Fields {
            price: Option<f64>,
        }
        let article = Arc::clone(self.live.catalogue.article(position)?);
        let variant = self.offered.choose_variants(std::iter::once(&article)).remove(&article.id);
        let own = match &variant {
            Some(Choice::Variant { fields, .. }) => serde_json::from_str::<Fields>(fields.get()).ok(),
            _ => None,
        };
        let price = own.and_then(|own| own.price);
        let price = price.unwrap_or_else(|| self.live.catalogue.sets().price(position));
        Some(Piece { position, article, replaces, reasons: None, is_chosen, price, variant })
    }

    /// A look of these pieces, if it is allowed.
    fn look(&self, published: Option<Arc<Published>>, pieces: Vec<Piece>) -> Option<FoundLook> {
        let total = total(&pieces.iter().collect::<Vec<_>>());
        self.is_allowed(&pieces.iter().collect::<Vec<_>>()).then_some(FoundLook { published, pieces, total })
    }

    /// Whether the pieces cost no more than the caller wants, and no rule keeps one of them from the others.
    fn is_allowed(&self, pieces: &[&Piece]) -> bool {
        let is_within =
            self.wanted.most_total.is_none_or(|most| total(pieces).is_some_and(|total| total <= cents(most)));
        let others = pieces.iter().map(|piece| piece.position).filter(|at| *at != self.wanted.article);
        is_within && !self.offered.forbids(&others.collect::<Vec<u32>>())
    }
}

/// None if a piece has no price.
fn total(pieces: &[&Piece]) -> Option<f64> {
    let total: f64 = pieces.iter().map(|piece| piece.price).sum();
    (!total.is_nan()).then(|| cents(total))
}

/// Sums of prices differ in their last bits.
fn cents(price: f64) -> f64 {
    (price * 100.0).round() / 100.0
}
