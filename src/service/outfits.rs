//! Saving an outfit for a customer.

use serde_json::json;

use super::audit::note;
use super::fault::{Fault, Field, ServiceError};
use crate::{
    domain::{ArticleId, Outfit, Timestamp},
    store::{Actor, Conflict, Origin, PersonId, Put, Store, StoreError},
};

/// Saves an outfit of articles from the catalogue. The same outfit is saved once, however often it is sent.
pub async fn save(
    store: &Store,
    actor: Actor,
    outfit: &Outfit,
    now: Timestamp,
) -> Result<(i64, Put), ServiceError> {
    check_articles(store, outfit).await?;
    let by: Option<PersonId> = match actor {
        Actor::Person(person) => Some(person),
        Actor::Key(_) | Actor::Service => None,
    };
    let saved = store.outfits().save(outfit, Origin::Saved, by, now).await;
    let (seq, put) = saved.map_err(|error| match error {
        StoreError::Conflict(Conflict::UnknownCustomer) => {
            Fault::new(Field::Customer, error.to_string()).into()
        }
        error => ServiceError::from(error),
    })?;
    if put == Put::Added {
        let details = json!({"articles": outfit.articles().len()});
        let customer = Some(&outfit.customer);
        note(store, actor, "outfit.save", &seq.to_string(), customer, details, now).await?;
    }
    Ok((seq, put))
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
