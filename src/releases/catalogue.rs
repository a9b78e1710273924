//! Reads the shop's catalogue from the database: as a whole, or what changed since it was last read.

use std::{pin::pin, sync::Arc};

use atelier_core::{
    domain::{Article, Synonyms},
    util::memory::return_memory,
};
use atelier_engine::{
    catalogue::{Catalogue, CatalogueBuilder},
    inference::{Articles, Serving},
    packed_article::PackedArticle,
};
use futures_util::TryStreamExt;
use rayon::prelude::*;
use tokio::task;

use super::sql::{UnparsedArticle, UnparsedArticles};
use crate::platform::db::{Store, StoreError};

/// A catalogue, and the same as a release's models take it.
pub(super) type Both = (Arc<Catalogue>, Arc<Articles>);

/// Changed articles are read by name up to this share of the catalogue, or this number. They are read one after another, the
/// whole catalogue on all cores, so many of them may take longer.
const READ_BY_NAME: usize = 8;
const LEAST_READ_BY_NAME: usize = 1000;

/// The number of parts of articles that are prepared together.
const PARTS: usize = 8;

/// Reads all articles. `currency` and `synonyms` are the shop's.
pub(super) async fn read(
    store: &Store,
    (currency, synonyms): (Arc<str>, Arc<Synonyms>),
    serving: &Arc<Serving>,
) -> Result<Both, StoreError> {
    let mut pages = pin!(store.articles().all_unparsed().try_chunks(PARTS));
    let release = Arc::clone(serving.release());
    let builder = task::spawn_blocking(move || CatalogueBuilder::new(&release, Some(currency), synonyms));
    let (builder, first) = tokio::join!(builder, pages.try_next());
    let mut builder = builder.expect("preparing articles does not panic");
    let mut next = first.map_err(|error| error.1)?;
    while let Some(pages_read) = next {
        let release = Arc::clone(serving.release());
        let add = task::spawn_blocking(move || {
            let mut others: Vec<_> = pages_read.iter().flat_map(UnparsedArticles::rows).collect();
            others.retain(|row| !builder.add_known(row.id, row.kind, row.attributes, &release));
            let others = others.into_par_iter().map(UnparsedArticle::parse);
            builder.add(others, &release)?;
            Ok::<_, StoreError>(builder)
        });
        // The database reads the next ones at the same time.
        let (added, read) = tokio::join!(add, pages.try_next());
        builder = added.expect("preparing articles does not panic")?;
        next = read.map_err(|error| error.1)?;
    }
    let serving = Arc::clone(serving);
    // Making the rows of a large catalogue takes all cores for some time.
    let build = task::spawn_blocking(move || {
        let catalogue = builder.build(serving.release());
        let articles = serving.articles(catalogue.index().clone());
        return_memory();
        (Arc::new(catalogue), Arc::new(articles))
    });
    Ok(build.await.expect("building a catalogue does not panic"))
}

/// The catalogue after the changes from one revision to another, or None if it is to be read as a whole.
pub(super) async fn read_changes(
    store: &Store,
    serving: &Arc<Serving>,
    (catalogue, articles): Both,
    before: i64,
    now: i64,
) -> Result<Option<Both>, StoreError> {
    let most = (catalogue.index().len() / READ_BY_NAME).max(LEAST_READ_BY_NAME);
    let packed = |article: Article| PackedArticle::from(&article);
    let changes = store.articles().changes(before, now, most, packed).await?;
    let Some(changes) = changes else { return Ok(None) };
    let serving = Arc::clone(serving);
    let change = task::spawn_blocking(move || {
        let changes = changes.into_iter().map(|(id, article)| (id, article.map(|packed| packed.unpack())));
        let (catalogue, touched) = catalogue.with_changes(changes, serving.release())?;
        let articles = serving.changed_articles(&articles, catalogue.index().clone(), &touched);
        Some((Arc::new(catalogue), Arc::new(articles)))
    });
    Ok(change.await.expect("changing a catalogue does not panic"))
}
