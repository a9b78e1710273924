//! Changing the catalogue: the database and the live release's copy, which the caller's next completion must see.

use super::live_release::Releases;
use crate::{
    domain::{Article, ArticleId, Timestamp},
    store::{Author, Put, Store, StoreError},
};

/// Adds the article, or replaces the one with its id.
pub async fn put(
    store: &Store,
    releases: &Releases,
    author: Author,
    article: &Article,
    now: Timestamp,
) -> Result<Put, StoreError> {
    let put = store.by(author).articles().put(article, now).await?;
    releases.refresh().await?;
    Ok(put)
}

/// Removes the article from the catalogue. False if there is no such article.
pub async fn delete(
    store: &Store,
    releases: &Releases,
    author: Author,
    id: &ArticleId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let deleted = store.by(author).articles().delete(id, now).await?;
    releases.refresh().await?;
    Ok(deleted)
}
