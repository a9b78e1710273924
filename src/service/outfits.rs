//! Saving an outfit or a draft for a customer, and links with which customers see theirs.

use std::time::Duration;

use atelier_core::domain::{ArticleId, OpenOutfit, OutfitSize, Slot, Timestamp};

use super::{
    access::Token,
    fault::{Fault, Field, ServiceError},
};
use crate::store::{Actor, Author, Conflict, PersonId, Put, SavedOutfit, Store, StoreError};

const DAY: Duration = Duration::from_hours(24);

/// Saves an outfit of articles from the catalogue, or a draft of one if it has blanks or too few articles. The same outfit
/// is saved once, however often it is sent.
pub async fn save(
    store: &Store,
    author: Author,
    size: OutfitSize,
    outfit: &OpenOutfit,
    now: Timestamp,
) -> Result<(i64, Put), ServiceError> {
    let (outfit, is_draft) = &check(store, size, outfit).await?;
    let by: Option<PersonId> = match author.actor {
        Actor::Person(person) => Some(person),
        Actor::Key(_) | Actor::Service | Actor::Visitor => None,
    };
    let store = store.by(author);
    store.saved_outfits().save(outfit, *is_draft, by, now).await.map_err(|error| match error {
        StoreError::Conflict(Conflict::UnknownCustomer) => Fault::new("customer", error.to_string()).into(),
        error => ServiceError::from(error),
    })
}

/// Changes the articles and features of a saved outfit in place, if it has this revision.
pub async fn replace(
    store: &Store,
    (seq, revision): (i64, i64),
    size: OutfitSize,
    outfit: OpenOutfit,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let (outfit, is_draft) = check(store, size, &outfit).await?;
    let edit = |saved: &mut SavedOutfit| {
        let customer = saved.outfit.customer.clone();
        saved.is_draft = is_draft;
        saved.outfit = OpenOutfit { customer, ..outfit };
    };
    Ok(store.saved_outfits().change(seq, revision, edit, now).await?)
}

/// Makes the customer's link to an outfit, which replaces an earlier one. Only the link's digest is stored.
pub async fn share(store: &Store, seq: i64, days: u32, now: Timestamp) -> Result<Token, StoreError> {
    let token = Token::draw();
    store.saved_outfits().set_link(seq, Some((&token.hash(), now + DAY * days)), now).await?;
    Ok(token)
}

/// The outfit that a link shows. The link may have run out.
pub async fn shared(store: &Store, link: &str) -> Result<Option<SavedOutfit>, StoreError> {
    match Token::parse(link) {
        Some(token) => store.saved_outfits().by_link(&token.hash()).await,
        None => Ok(None),
    }
}

/// The outfit with the articles of the variants that it names, if its size and articles are valid, and whether it is a draft.
async fn check(
    store: &Store,
    size: OutfitSize,
    outfit: &OpenOutfit,
) -> Result<(OpenOutfit, bool), ServiceError> {
    let refuse = |reason: String| ServiceError::Faults(vec![Fault::new("articles", reason)]);
    let slots = outfit.slots.as_slice().len();
    size.check_slots(slots).map_err(|error| refuse(error.to_string()))?;
    let ids: Vec<ArticleId> = outfit.slots.articles().cloned().collect();
    let found = store.articles().named(&ids).await?;
    let missing = |(index, slot): (usize, &Slot)| {
        let id = slot.article()?;
        let detail = format!("article {id:?} is not in the catalogue; put it there first");
        (!found.contains_key(id)).then(|| Fault::new(Field::from("articles").item(&index), detail))
    };
    let faults: Vec<Fault> = outfit.slots.as_slice().iter().enumerate().filter_map(missing).collect();
    if !faults.is_empty() {
        return Err(ServiceError::Faults(faults));
    }
    let slots =
        outfit.slots.with_articles(|id| found[id].clone()).map_err(|error| refuse(error.to_string()))?;
    Ok((OpenOutfit { slots, ..outfit.clone() }, size.is_draft(&outfit.slots)))
}
