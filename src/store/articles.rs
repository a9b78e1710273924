//! The catalogue.

use std::collections::HashMap;

use futures_util::{Stream, TryStreamExt};
use serde_json::{Map, Value, json};
use sqlx::{AnyConnection, Arguments, AssertSqlSafe, any::AnyArguments};

use super::{
    Entry, Put, Store, StoreError, json,
    pages::{self, PAGE},
    revisions::{self, Changed},
    search, upsert,
};
use crate::domain::{Article, ArticleId, Timestamp};

/// The articles of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Articles<'a> {
    pub(super) store: &'a Store,
}

impl<'a> Articles<'a> {
    pub async fn get(self, id: &ArticleId) -> Result<Option<Article>, StoreError> {
        let row = sqlx::query_as("select id, type, attributes from articles where id = $1")
            .bind(id.as_str())
            .fetch_optional(&self.store.readers)
            .await?;
        row.map(parse).transpose()
    }

    /// The articles with these ids, in the order of the ids, without duplicates. Unknown ids are skipped.
    pub async fn get_many(self, ids: &[ArticleId]) -> Result<Vec<Article>, StoreError> {
        let ids: Vec<&str> = ids.iter().map(ArticleId::as_str).collect();
        let rows =
            pages::by_ids(self.store, "select id, type, attributes from articles where id in", &ids).await?;
        let mut found = HashMap::with_capacity(ids.len());
        for row in rows {
            let article = parse(row)?;
            found.insert(article.id.clone(), article);
        }
        Ok(ids.iter().filter_map(|id| found.remove(*id)).collect())
    }

    /// Adds the article, or replaces the one with its id.
    pub async fn put(self, article: &Article, now: Timestamp) -> Result<Put, StoreError> {
        let mut transaction = self.store.write().await?;
        let put = upsert::write_one(
            &mut transaction,
            self.store.dialect,
            ArticleRow { article, millis: now.millis() },
        )
        .await?;
        if put != Put::Unchanged {
            let entry = Entry::new("article.put", article.id.as_str(), json!({"new": put == Put::Added}));
            entry.write(&mut transaction, self.store.author, now).await?;
            self.count_change(&mut transaction, &article.id).await?;
        }
        transaction.commit().await?;
        Ok(put)
    }

    /// Removes the article from the catalogue, but not from outfits. False if there is no such article.
    pub async fn delete(self, id: &ArticleId, now: Timestamp) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let deleted = sqlx::query("delete from articles where id = $1")
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await?;
        let deleted = deleted.rows_affected() > 0;
        if deleted {
            let entry = Entry::new("article.delete", id.as_str(), json!({}));
            entry.write(&mut transaction, self.store.author, now).await?;
            self.count_change(&mut transaction, id).await?;
        }
        transaction.commit().await?;
        Ok(deleted)
    }

    async fn count_change(self, connection: &mut AnyConnection, id: &ArticleId) -> Result<(), StoreError> {
        let changed = Changed::Articles(vec![id.to_string()]);
        revisions::change_articles(connection, self.store.dialect, changed).await
    }

    /// A number that grows with every change of the catalogue. A copy of the catalogue that was begun after reading
    /// this number is current until the number changes.
    pub async fn revision(self) -> Result<i64, StoreError> {
        revisions::read(self.store, revisions::ARTICLES).await
    }

    /// The articles that changed after one revision up to another, each as it is now, or None if it is gone. None if too
    /// much changed, or too long ago: then the whole catalogue is to be read.
    pub async fn changes(
        self,
        before: i64,
        now: i64,
    ) -> Result<Option<Vec<(ArticleId, Option<Article>)>>, StoreError> {
        let Some(ids) = revisions::articles_changed_since(self.store, before, now).await? else {
            return Ok(None);
        };
        let ids: Vec<ArticleId> = ids.into_iter().map(article_id).collect::<Result<_, _>>()?;
        let found = self.get_many(&ids).await?;
        let mut found: HashMap<ArticleId, Article> =
            found.into_iter().map(|article| (article.id.clone(), article)).collect();
        Ok(Some(ids.into_iter().map(|id| (id.clone(), found.remove(&id))).collect()))
    }

    /// Up to `n` articles after the id `after`, in the byte order of their ids. Only articles whose id, type or text
    /// attributes contain every word of `search`, in any case.
    pub async fn list(
        self,
        search: &str,
        after: Option<&ArticleId>,
        n: u32,
    ) -> Result<Vec<Article>, StoreError> {
        let patterns = search::patterns(search);
        let sql = format!(
            "select id, type, attributes from articles where id > $1{} order by id limit $2",
            search::condition(3, patterns.len())
        );
        let mut query = sqlx::query_as(AssertSqlSafe(sql))
            // Every id comes after the empty string.
            .bind(after.map_or("", ArticleId::as_str))
            .bind(i64::from(n));
        for pattern in patterns {
            query = query.bind(pattern);
        }
        query.fetch_all(&self.store.readers).await?.into_iter().map(parse).collect()
    }

    pub async fn count(self) -> Result<u64, StoreError> {
        self.store.count("select count(*) from articles").await
    }

    /// Every article in the byte order of their ids, read page by page as needed.
    pub fn all(self) -> impl Stream<Item = Result<Article, StoreError>> + Send + use<'a> {
        self.all_unparsed().and_then(async |article| article.parse())
    }

    /// Every article, for a reader that parses many at once.
    pub fn all_unparsed(self) -> impl Stream<Item = Result<UnparsedArticle, StoreError>> + Send + use<'a> {
        pages::stream(String::new(), move |after| async move {
            let rows: Vec<(String, String, String)> = sqlx::query_as(
                "select id, type, attributes from articles where id > $1 order by id limit $2",
            )
            .bind(after)
            .bind(i64::from(PAGE))
            .fetch_all(&self.store.readers)
            .await?;
            Ok(rows.into_iter().map(|row| (row.0.clone(), UnparsedArticle(row))).collect())
        })
    }

    /// Every article's id, in order.
    pub fn ids(self) -> impl Stream<Item = Result<ArticleId, StoreError>> + Send + use<'a> {
        pages::stream(String::new(), move |after| async move {
            let rows: Vec<(String,)> =
                sqlx::query_as("select id from articles where id > $1 order by id limit $2")
                    .bind(after)
                    .bind(i64::from(PAGE))
                    .fetch_all(&self.store.readers)
                    .await?;
            rows.into_iter().map(|(id,)| Ok((id.clone(), article_id(id)?))).collect()
        })
    }
}

/// An article as it is stored.
#[derive(Debug)]
pub struct UnparsedArticle((String, String, String));

impl UnparsedArticle {
    pub fn parse(self) -> Result<Article, StoreError> {
        parse(self.0)
    }
}

pub(super) struct ArticleRow<'a> {
    pub(super) article: &'a Article,
    pub(super) millis: i64,
}

impl upsert::Row for ArticleRow<'_> {
    const INSERT: &'static str =
        "insert into articles (id, type, attributes, name_key, created_at, updated_at) values";
    const COLUMNS: usize = 6;
    const ON_CONFLICT: &'static str = "
        on conflict (id) do update set
            type = excluded.type,
            attributes = excluded.attributes,
            name_key = excluded.name_key,
            revision = articles.revision + 1,
            updated_at = excluded.updated_at
        where (articles.type, articles.attributes, articles.name_key)
            <> (excluded.type, excluded.attributes, excluded.name_key)
        returning revision";
    type Key = ArticleId;

    fn key(&self) -> ArticleId {
        self.article.id.clone()
    }

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> {
        values.add(self.article.id.as_str())?;
        values.add(self.article.kind())?;
        values.add(json::text(&self.article.kept_attributes()))?;
        values.add(name_key(self.article))?;
        values.add(self.millis)?;
        values.add(self.millis)
    }
}

pub(super) fn name_key(article: &Article) -> String {
    let fields = [article.id.as_str(), article.kind()].into_iter();
    search::name_key(fields.chain(article.attributes().keys().flat_map(|name| article.words(name))))
}

pub(super) fn parse((id, kind, attributes): (String, String, String)) -> Result<Article, StoreError> {
    let damaged = |reason| StoreError::Damaged { table: "articles", id: id.clone(), reason };
    let attributes: Map<String, Value> = json::parse(&attributes).map_err(damaged)?;
    Article::new(article_id(id.clone())?, kind, attributes).map_err(|error| damaged(error.to_string()))
}

pub(super) fn article_id(id: String) -> Result<ArticleId, StoreError> {
    ArticleId::new(&id).map_err(|error| StoreError::Damaged {
        table: "articles",
        id,
        reason: error.to_string(),
    })
}
