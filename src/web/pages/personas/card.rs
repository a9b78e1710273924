//! One persona as a card: what is typical of it.

use super::percent;
use crate::{
    domain::ArticleId,
    service::{
        live_release::LiveRelease,
        personas::{Persona, Portrait},
    },
    store::{OutfitRecord, Store, StoreError},
    web::pages::article_view::ArticleView,
};

/// A persona as a person sees it.
pub(super) struct PersonaCard {
    /// From 1 up.
    pub(super) number: usize,
    pub(super) share: String,
    pub(super) leads: usize,
    pub(super) articles: Vec<(ArticleView, String)>,
    pub(super) outfits: Vec<OutfitView>,
}

/// A stored outfit.
pub(super) struct OutfitView {
    pub(super) number: i64,
    pub(super) customer: String,
    pub(super) articles: Vec<ArticleView>,
    /// Its share of the persona that it is shown for, in words.
    pub(super) share: String,
}

/// Typical outfits of a card.
const OUTFITS: usize = 2;

pub(super) async fn cards(
    store: &Store,
    live: &LiveRelease,
    portrait: &Portrait,
) -> Result<Vec<PersonaCard>, StoreError> {
    let mut cards = Vec::with_capacity(portrait.personas.len());
    for (persona, number) in portrait.personas.iter().zip(1..) {
        cards.push(PersonaCard {
            number,
            share: percent(persona.share),
            leads: persona.leads,
            articles: articles(live, persona),
            outfits: outfits(store, live, persona).await?,
        });
    }
    Ok(cards)
}

fn articles(live: &LiveRelease, persona: &Persona) -> Vec<(ArticleView, String)> {
    let vocabulary = live.serving.release().vocabulary();
    let known =
        persona.articles.iter().filter_map(|(index, share)| Some((vocabulary.article(*index)?, share)));
    known.map(|(id, share)| (article(live, id), percent(*share))).collect()
}

/// Those of the typical outfits that are still there.
async fn outfits(
    store: &Store,
    live: &LiveRelease,
    persona: &Persona,
) -> Result<Vec<OutfitView>, StoreError> {
    let mut found = Vec::with_capacity(OUTFITS);
    for &(number, share) in &persona.outfits {
        if found.len() == OUTFITS {
            break;
        }
        if let Some(record) = store.outfits().get(number).await? {
            found.push(outfit(live, &record, percent(share)));
        }
    }
    Ok(found)
}

pub(super) fn outfit(live: &LiveRelease, record: &OutfitRecord, share: String) -> OutfitView {
    OutfitView {
        number: record.seq,
        customer: record.outfit.customer.to_string(),
        articles: record.outfit.articles().iter().map(|id| article(live, id)).collect(),
        share,
    }
}

pub(super) fn article(live: &LiveRelease, id: &ArticleId) -> ArticleView {
    ArticleView::offered(live, id)
}
