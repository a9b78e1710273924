//! Changing the catalogue: the database and the live release's copy, which the caller's next completion must see.

use atelier_core::domain::{Article, ArticleId, ArticlePatch, Timestamp};

use super::live_release::Releases;
use crate::store::{Author, ChangeError, Expected, Put, Store, Stored, Version};

/// Adds the article, or replaces the one with its id if that is as expected. Also gives its version.
pub async fn put(
    store: &Store,
    releases: &Releases,
    author: Author,
    article: &Article,
    expected: &Expected,
    now: Timestamp,
) -> Result<(Put, Version), ChangeError> {
    let put = store.by(author).articles().put_expected(article, expected, now).await?;
    releases.refresh().await?;
    Ok(put)
}

/// Changes the article with the patch's id, if it is as expected.
pub async fn patch(
    store: &Store,
    releases: &Releases,
    author: Author,
    patch: &ArticlePatch,
    expected: &Expected,
    now: Timestamp,
) -> Result<Stored<Article>, ChangeError> {
    let stored = store.by(author).articles().patch(patch, expected, now).await?;
    releases.refresh().await?;
    Ok(stored)
}

/// Removes the article from the catalogue, if it is as expected.
pub async fn delete(
    store: &Store,
    releases: &Releases,
    author: Author,
    id: &ArticleId,
    expected: &Expected,
    now: Timestamp,
) -> Result<(), ChangeError> {
    store.by(author).articles().delete_expected(id, expected, now).await?;
    releases.refresh().await?;
    Ok(())
}
