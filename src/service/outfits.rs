//! Saving an outfit for a customer.

use super::fault::{Fault, Field, ServiceError};
use crate::{
    domain::{ArticleId, Outfit, Timestamp},
    store::{Actor, Author, Conflict, Origin, PersonId, Put, Store, StoreError},
};

/// Saves an outfit of articles from the catalogue. The same outfit is saved once, however often it is sent.
pub async fn save(
    store: &Store,
    author: Author,
    outfit: &Outfit,
    now: Timestamp,
) -> Result<(i64, Put), ServiceError> {
    check_articles(store, outfit).await?;
    let by: Option<PersonId> = match author.actor {
        Actor::Person(person) => Some(person),
        Actor::Key(_) | Actor::Service | Actor::Visitor => None,
    };
    let saved = store.by(author).outfits().save(outfit, Origin::Saved, by, now).await;
    saved.map_err(|error| match error {
        StoreError::Conflict(Conflict::UnknownCustomer) => {
            Fault::new(Field::Customer, error.to_string()).into()
        }
        error => ServiceError::from(error),
    })
}

async fn check_articles(store: &Store, outfit: &Outfit) -> Result<(), ServiceError> {
    let found = store.articles().get_many(outfit.articles()).await?;
    let missing = |(place, id): (usize, &ArticleId)| {
        let detail = format!("article {id:?} is not in the catalogue; put it there first");
        (!found.iter().any(|article| article.id == *id)).then(|| Fault::new(Field::ArticleAt(place), detail))
    };
    let faults: Vec<Fault> = outfit.articles().iter().enumerate().filter_map(missing).collect();
    if faults.is_empty() { Ok(()) } else { Err(ServiceError::Faults(faults)) }
}
