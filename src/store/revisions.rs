//! Counts of the changes of a table. A copy in memory is current while the count stays the same.

use sqlx::{AnyConnection, AssertSqlSafe};

use super::{Store, StoreError, connect::Dialect, upsert};

pub(super) const ARTICLES: &str = "articles";
pub(super) const SETTINGS: &str = "settings";
pub(super) const ERASURES: &str = "erasures";

pub(super) async fn read(store: &Store, name: &'static str) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar("select value from revisions where name = $1")
        .bind(name)
        .fetch_one(&store.readers)
        .await?)
}

/// What changed in the catalogue.
#[derive(Debug, Default)]
pub(super) enum Changed {
    /// Nothing yet, or these articles.
    Articles(Vec<String>),
    /// Too many articles to name them.
    #[default]
    Everything,
}

/// The most articles that one change names: reading a large catalogue as a whole is faster than many single rows.
const MOST_NAMED: usize = 1000;
/// How many changes are kept for the replicas. One that is behind by more reads the whole catalogue.
const KEPT: i64 = 256;
/// Stands for everything in the table of changes; no id is empty.
const EVERYTHING: &str = "";

impl Changed {
    pub(super) fn add<'i>(&mut self, ids: impl ExactSizeIterator<Item = &'i str>) {
        let Self::Articles(named) = self else { return };
        if named.len() + ids.len() > MOST_NAMED {
            *self = Self::Everything;
        } else {
            named.extend(ids.map(str::to_owned));
        }
    }
}

/// Counts a change of the catalogue, and notes which articles it is about. Like [`increment`], it must be the last
/// statement of its transaction.
pub(super) async fn change_articles(
    connection: &mut AnyConnection,
    dialect: Dialect,
    changed: Changed,
) -> Result<(), StoreError> {
    let revision: i64 =
        sqlx::query_scalar("update revisions set value = value + 1 where name = $1 returning value")
            .bind(ARTICLES)
            .fetch_one(&mut *connection)
            .await?;
    let mut articles = match changed {
        Changed::Articles(articles) => articles,
        Changed::Everything => vec![EVERYTHING.to_owned()],
    };
    articles.sort_unstable();
    articles.dedup();
    for articles in articles.chunks(upsert::ROWS) {
        let sql = format!(
            "insert into article_changes (revision, article_id) values {}",
            upsert::placeholders(dialect, articles.len(), 2)
        );
        let mut insert = sqlx::query(AssertSqlSafe(sql));
        for article in articles {
            insert = insert.bind(revision).bind(article);
        }
        insert.persistent(articles.len() == 1).execute(&mut *connection).await?;
    }
    sqlx::query("delete from article_changes where revision <= $1")
        .bind(revision - KEPT)
        .execute(connection)
        .await?;
    Ok(())
}

/// The articles that changed after a revision, up to `now` or later. None if they are not known.
pub(super) async fn articles_changed_since(
    store: &Store,
    before: i64,
    now: i64,
) -> Result<Option<Vec<String>>, StoreError> {
    let rows: Vec<(i64, String)> = sqlx::query_as(
        "select revision, article_id from article_changes where revision > $1 order by revision, article_id",
    )
    .bind(before)
    .fetch_all(&store.readers)
    .await?;
    let mut revisions: Vec<i64> =
        rows.iter().map(|(revision, _)| *revision).filter(|at| *at <= now).collect();
    revisions.dedup();
    let is_whole = i64::try_from(revisions.len()) == Ok(now - before);
    let mut articles: Vec<String> = rows.into_iter().map(|(_, article)| article).collect();
    articles.sort_unstable();
    articles.dedup();
    let is_named = articles.first().is_none_or(|first| first != EVERYTHING) && articles.len() <= MOST_NAMED;
    Ok((is_whole && is_named).then_some(articles))
}

/// Counts a change. It must be the last statement of its transaction: it takes a lock that all such transactions need, and
/// the holder must not wait for another lock.
pub(super) async fn increment(connection: &mut AnyConnection, name: &'static str) -> Result<(), StoreError> {
    sqlx::query("update revisions set value = value + 1 where name = $1")
        .bind(name)
        .execute(connection)
        .await?;
    Ok(())
}
