//! Counts of the changes of a table. A copy in memory is current while the count stays the same.

use std::collections::BTreeSet;

use sqlx::{AnyConnection, AssertSqlSafe};

use super::{Store, StoreError, connect::Dialect, upsert, values};

pub(crate) const ARTICLES: &str = "articles";
pub(crate) const SETTINGS: &str = "settings";
pub(crate) const LOOKS: &str = "looks";
pub(crate) const ERASURES: &str = "erasures";

pub(crate) async fn read(store: &Store, name: &'static str) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar_with("select value from revisions where name = $1", values![name])
        .fetch_one(store.readers()?)
        .await?)
}

#[derive(Debug)]
pub(crate) enum Changed {
    Articles(BTreeSet<String>),
    /// Too many articles to name them.
    Everything,
}

/// The most articles that one change names. More than these take a replica about as long as a large catalogue.
const MOST_NAMED: usize = 20_000;
/// How many of the latest revisions are kept for the replicas, at least. One that is behind by more reads the whole
/// catalogue. A client that stores 400 articles a second needs two minutes for them.
const KEPT_REVISIONS: i64 = 50_000;
/// Older revisions are removed when the count passes a multiple of this: most changes need no such statement.
const REMOVED_TOGETHER: i64 = 500;
/// Stands for everything in the table of changes; no id is empty.
const EVERYTHING: &str = "";

impl Default for Changed {
    fn default() -> Self {
        Self::Articles(BTreeSet::new())
    }
}

impl Changed {
    pub(crate) fn add(&mut self, ids: impl IntoIterator<Item = String>) {
        let Self::Articles(named) = self else { return };
        named.extend(ids);
        if named.len() > MOST_NAMED {
            *self = Self::Everything;
        }
    }
}

/// Counts a change of the catalogue, and notes which articles it is about: each has a revision of its own, so the number of
/// revisions that are kept is that of rows. Like [`increment`], it must be the last statement of its transaction.
pub(crate) async fn change_articles(
    connection: &mut AnyConnection,
    dialect: Dialect,
    changed: Changed,
) -> Result<(), StoreError> {
    let named = match changed {
        Changed::Articles(named) => named,
        Changed::Everything => [EVERYTHING.to_owned()].into(),
    };
    let count = i64::try_from(named.len()).expect("a change names few articles");
    let sql = "update revisions set value = value + $2 where name = $1 returning value";
    let last: i64 =
        sqlx::query_scalar_with(sql, values![ARTICLES, count]).fetch_one(&mut *connection).await?;
    let before = last - count;
    let rows: Vec<(i64, String)> = (before + 1..).zip(named).collect();
    for rows in rows.chunks(upsert::ROWS) {
        let sql = format!(
            "insert into article_changes (revision, article_id) values {}",
            upsert::placeholders(dialect, rows.len(), 2)
        );
        let mut insert = sqlx::query(AssertSqlSafe(sql));
        for (revision, article) in rows {
            insert = insert.bind(revision).bind(article);
        }
        let persistent = [1, upsert::ROWS].contains(&rows.len());
        insert.persistent(persistent).execute(&mut *connection).await?;
    }
    if before / REMOVED_TOGETHER < last / REMOVED_TOGETHER {
        sqlx::query_with("delete from article_changes where revision <= $1", values![last - KEPT_REVISIONS])
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// The articles that changed after a revision, up to `now`, each once. None if they are not known.
pub(crate) async fn articles_changed_since(
    store: &Store,
    before: i64,
    now: i64,
) -> Result<Option<BTreeSet<String>>, StoreError> {
    if now - before > KEPT_REVISIONS {
        return Ok(None);
    }
    let sql = "select article_id from article_changes where revision > $1 and revision <= $2";
    let rows: Vec<String> =
        sqlx::query_scalar_with(sql, values![before, now]).fetch_all(store.readers()?).await?;
    let is_complete = i64::try_from(rows.len()) == Ok(now - before);
    let articles: BTreeSet<String> = rows.into_iter().collect();
    Ok((is_complete && !articles.contains(EVERYTHING)).then_some(articles))
}

/// A replica compares them with its own copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisions {
    pub articles: i64,
    pub settings: i64,
    pub looks: i64,
    /// The value of the setting that was asked for.
    pub setting: Option<String>,
}

impl Store {
    /// Counts of the changes of articles, settings and looks, and a setting. It is one statement, because every replica asks it
    /// several times a second.
    pub async fn revisions(&self, setting: &'static str) -> Result<Revisions, StoreError> {
        let sql = "select (select value from revisions where name = $1), (select value from revisions where name = $2),
                (select value from revisions where name = $3), (select value from settings where name = $4)";
        let (articles, settings, looks, setting) =
            sqlx::query_as_with(sql, values![ARTICLES, SETTINGS, LOOKS, setting])
                .fetch_one(self.readers()?)
                .await?;
        Ok(Revisions { articles, settings, looks, setting })
    }
}

/// Counts a change. It must be the last statement of its transaction: it takes a lock that all such transactions need, and
/// the holder must not wait for another lock.
pub(crate) async fn increment(connection: &mut AnyConnection, name: &'static str) -> Result<(), StoreError> {
    sqlx::query_with("update revisions set value = value + 1 where name = $1", values![name])
        .execute(connection)
        .await?;
    Ok(())
}
