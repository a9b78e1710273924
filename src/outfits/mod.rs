//! Saving an outfit or a draft for a customer, and links with which customers see theirs.

pub(crate) mod api;
mod sql;

pub(crate) use self::sql::{outfits::OutfitRow, saved_outfits::select};
pub use self::sql::{
    outfits::{Origin, OutfitRecord, Outfits},
    saved_outfits::{KEPT, Reply, ReplyKind, SavedFilter, SavedOutfit, SavedOutfits},
};

use std::time::Duration;

use atelier_core::domain::{
    Article, ArticleId, CustomerId, OpenOutfit, OutfitSize, Slot, Timestamp, Use, is_used,
};

use crate::{
    people::{PersonId, Token},
    platform::{
        db::{Actor, Author, Conflict, Name, Note, Put, Store, StoreError},
        fault::{Fault, Field, ServiceError},
    },
};

const HOUR: Duration = Duration::from_hours(1);

/// Saves an outfit of articles from the catalogue, or a draft of one if it has blanks or too few articles. The same outfit
/// is saved once, however often it is sent.
pub async fn save(
    store: &Store,
    author: Author,
    size: OutfitSize,
    outfit: &OpenOutfit,
    now: Timestamp,
) -> Result<(i64, Put), ServiceError> {
    let outfit = &check(store, size, outfit).await?;
    let by: Option<PersonId> = match author.actor {
        Actor::Person(person) => Some(person),
        Actor::Key(_) | Actor::Service | Actor::Visitor => None,
    };
    let store = store.by(author);
    let saved = store.saved_outfits().save(outfit, size.is_draft(outfit), by, now).await;
    let (seq, put) = saved.map_err(name_customer)?;
    keep_pieces(&store, seq, outfit).await?;
    Ok((seq, put))
}

/// Keeps what pages show of the outfit's articles, which may leave the catalogue.
async fn keep_pieces(store: &Store, seq: i64, outfit: &OpenOutfit) -> Result<(), StoreError> {
    let ids: Vec<ArticleId> = outfit.slots.articles().cloned().collect();
    let shown = |article: Article| {
        let attributes = article.attributes().iter().filter(|(name, _)| is_used(name, Use::Kept));
        let attributes = attributes.map(|(name, value)| (name.clone(), value.clone())).collect();
        Article::new(article.id.clone(), article.kind(), attributes).ok()
    };
    let articles = store.articles().get_many(&ids).await?;
    store.saved_outfits().keep_pieces(seq, &articles.into_iter().filter_map(shown).collect::<Vec<_>>()).await
}

/// A caller's changes of an outfit besides its articles and features; `None` keeps a value.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Of an outfit without a customer.
    pub customer: Option<CustomerId>,
    pub name: Option<Name>,
    pub note: Option<Note>,
}

/// Changes a saved outfit in place.
pub async fn change(
    store: &Store,
    saved: &SavedOutfit,
    change: Change,
    size: OutfitSize,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let Change { customer, name, note } = change;
    if let (Some(given), Some(own)) = (&customer, &saved.outfit.customer)
        && given != own
    {
        let detail = format!("the outfit belongs to {own}; save a copy for {given}");
        return Err(Fault::new("customer", detail).into());
    }
    let edit = |saved: &mut SavedOutfit| {
        if customer.is_some() {
            saved.outfit.customer = customer;
            saved.is_draft = size.is_draft(&saved.outfit);
        }
        saved.name = name.or(saved.name.take());
        saved.note = note.unwrap_or_else(|| saved.note.clone());
    };
    store.saved_outfits().change(saved.seq, saved.revision, edit, now).await.map_err(name_customer)
}

fn name_customer(error: StoreError) -> ServiceError {
    match error {
        StoreError::Conflict(Conflict::UnknownCustomer) => Fault::new("customer", error.to_string()).into(),
        error => error.into(),
    }
}

/// Changes the articles and features of a saved outfit in place, if it has this revision. One without a customer takes that of
/// `outfit`.
pub async fn replace(
    store: &Store,
    (seq, revision): (i64, i64),
    size: OutfitSize,
    outfit: OpenOutfit,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let outfit = check(store, size, &outfit).await?;
    let kept = outfit.clone();
    let edit = |saved: &mut SavedOutfit| {
        let customer = saved.outfit.customer.clone().or(outfit.customer);
        saved.outfit = OpenOutfit { customer, ..outfit };
        saved.is_draft = size.is_draft(&saved.outfit);
    };
    store.saved_outfits().change(seq, revision, edit, now).await?;
    Ok(keep_pieces(store, seq, &kept).await?)
}

/// Why a reply was not kept.
#[derive(Debug, thiserror::Error)]
pub enum ReplyError {
    #[error("the link does not work, or has expired")]
    NoLink,
    #[error("the outfit has no article {0}")]
    NoPiece(String),
    #[error("this outfit got {REPLIES_AN_HOUR} replies in the last hour; try again later")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The most replies to an outfit in an hour. Anyone with the link may reply, and the audit log keeps each reply.
const REPLIES_AN_HOUR: usize = 12;

/// Keeps what the customer says of the outfit that their link shows: that they like it, or a disliked piece, with words.
pub async fn reply(store: &Store, link: &str, reply: Reply, now: Timestamp) -> Result<(), ReplyError> {
    let found = shared(store, link).await?;
    let outfit = found.filter(|outfit| outfit.link_until.is_some_and(|until| until > now));
    let outfit = outfit.ok_or(ReplyError::NoLink)?;
    if let Some(article) = &reply.article
        && !outfit.outfit.slots.articles().any(|own| own.as_str() == article)
    {
        return Err(ReplyError::NoPiece(article.clone()));
    }
    let since = now - HOUR;
    let recent = outfit.replies.iter().filter(|reply| reply.at > since.millis());
    if recent.count() >= REPLIES_AN_HOUR {
        return Err(ReplyError::TooMany);
    }
    Ok(store.saved_outfits().reply(outfit.seq, reply, now).await?)
}

/// The outfit that a link shows. The link may have run out.
pub async fn shared(store: &Store, link: &str) -> Result<Option<SavedOutfit>, StoreError> {
    match Token::parse(link) {
        Some(token) => store.saved_outfits().by_link(&token.hash()).await,
        None => Ok(None),
    }
}

/// The outfit with the articles of the variants that it names, if its size and articles are valid.
async fn check(store: &Store, size: OutfitSize, outfit: &OpenOutfit) -> Result<OpenOutfit, ServiceError> {
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
    Ok(OpenOutfit { slots, ..outfit.clone() })
}
