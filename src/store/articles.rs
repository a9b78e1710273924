//! The catalogue.

use std::{collections::HashMap, fmt::Write};

use atelier_core::domain::{Article, ArticleId, ArticlePatch, Timestamp};
use futures_util::{Stream, StreamExt};
use serde_json::{Map, Value, json};
use sqlx::{AnyConnection, Arguments, AssertSqlSafe, any::AnyArguments};

use super::{
    ChangeError, Entry, Expected, Put, Store, StoreError, Stored, Version, json,
    pages::{self, PAGE},
    revisions::{self, Changed},
    search, upsert,
};

const SELECT_STORED: &str = "select id, type, attributes, revision, created_at from articles where id = $1";
type StoredColumns = (String, String, String, i64, i64);

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

    /// The article with its version.
    pub async fn get_stored(self, id: &ArticleId) -> Result<Option<Stored<Article>>, StoreError> {
        let row = sqlx::query_as(SELECT_STORED).bind(id.as_str()).fetch_optional(&self.store.readers).await?;
        row.map(parse_stored).transpose()
    }

    /// Adds the article, or replaces the one with its id.
    pub async fn put(self, article: &Article, now: Timestamp) -> Result<Put, StoreError> {
        match self.put_expected(article, &Expected::default(), now).await {
            Ok((put, _)) => Ok(put),
            Err(ChangeError::Store(error)) => Err(error),
            Err(error) => unreachable!("every row is expected, but {error}; this is a bug"),
        }
    }

    /// Adds the article, or replaces the one with its id if that is as expected. Also gives its version.
    pub async fn put_expected(
        self,
        article: &Article,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<(Put, Version), ChangeError> {
        let mut transaction = self.store.write().await?;
        let mut found = false;
        if !expected.is_anything() {
            let current = self.lock(&mut transaction, &article.id).await?;
            expected.check(current.as_ref().map(|stored| &stored.version))?;
            found = current.is_some();
        }
        let written = self.write(&mut transaction, article, now).await?;
        expected.check_put(written.0, found)?;
        transaction.commit().await?;
        Ok(written)
    }

    /// Changes the article with the patch's id, if it is as expected. No other change comes between reading and writing.
    pub async fn patch(
        self,
        patch: &ArticlePatch,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<Stored<Article>, ChangeError> {
        let mut transaction = self.store.write().await?;
        let stored = self.lock(&mut transaction, &patch.id).await?.ok_or(ChangeError::Missing)?;
        expected.check(Some(&stored.version))?;
        let value = patch.apply(Some(stored.value))?;
        let (_, version) = self.write(&mut transaction, &value, now).await?;
        transaction.commit().await?;
        Ok(Stored { value, version })
    }

    /// Removes the article from the catalogue, but not from outfits. False if there is no such article.
    pub async fn delete(self, id: &ArticleId, now: Timestamp) -> Result<bool, StoreError> {
        match self.delete_expected(id, &Expected::default(), now).await {
            Ok(()) => Ok(true),
            Err(ChangeError::Missing) => Ok(false),
            Err(ChangeError::Store(error)) => Err(error),
            Err(error) => unreachable!("every row is expected, but {error}; this is a bug"),
        }
    }

    /// Removes the article from the catalogue, but not from outfits, if it is as expected.
    pub async fn delete_expected(
        self,
        id: &ArticleId,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<(), ChangeError> {
        let mut transaction = self.store.write().await?;
        if !expected.is_anything() {
            let stored = self.lock(&mut transaction, id).await?.ok_or(ChangeError::Missing)?;
            expected.check(Some(&stored.version))?;
        }
        let deleted = sqlx::query("delete from articles where id = $1")
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(ChangeError::Missing);
        }
        let entry = Entry::new("article.delete", id.as_str(), json!({}));
        entry.write(&mut transaction, self.store.author, now).await?;
        self.count_change(&mut transaction, id).await?;
        Ok(transaction.commit().await?)
    }

    /// The article, which no other transaction changes before this one ends.
    async fn lock(
        self,
        connection: &mut AnyConnection,
        id: &ArticleId,
    ) -> Result<Option<Stored<Article>>, StoreError> {
        let sql = format!("{SELECT_STORED}{}", self.store.dialect.for_update());
        let row =
            sqlx::query_as(AssertSqlSafe(sql)).bind(id.as_str()).fetch_optional(&mut *connection).await?;
        row.map(parse_stored).transpose()
    }

    /// Writes the article at the end of a transaction.
    async fn write(
        self,
        connection: &mut AnyConnection,
        article: &Article,
        now: Timestamp,
    ) -> Result<(Put, Version), StoreError> {
        let row = ArticleRow { article, millis: now.millis() };
        let put = upsert::write_one(&mut *connection, self.store.dialect, row).await?;
        let written: StoredColumns =
            sqlx::query_as(SELECT_STORED).bind(article.id.as_str()).fetch_one(&mut *connection).await?;
        if put != Put::Unchanged {
            let entry = Entry::new("article.put", article.id.as_str(), json!({"new": put == Put::Added}));
            entry.write(&mut *connection, self.store.author, now).await?;
            self.count_change(&mut *connection, &article.id).await?;
        }
        Ok((put, version(&written)))
    }

    async fn count_change(self, connection: &mut AnyConnection, id: &ArticleId) -> Result<(), StoreError> {
        let changed = Changed::Articles([id.to_string()].into());
        revisions::change_articles(connection, self.store.dialect, changed).await
    }

    /// A number that grows with every change of the catalogue. A copy of the catalogue that was begun after reading
    /// this number is current until the number changes.
    pub async fn revision(self) -> Result<i64, StoreError> {
        revisions::read(self.store, revisions::ARTICLES).await
    }

    /// The articles that changed after one revision up to another, each as it is now, or None if it is gone. None if more
    /// than `most` changed, or the changes are not known: then the whole catalogue is to be read.
    pub async fn changes(
        self,
        before: i64,
        now: i64,
        most: usize,
    ) -> Result<Option<Vec<(ArticleId, Option<Article>)>>, StoreError> {
        let found = revisions::articles_changed_since(self.store, before, now).await?;
        let Some(ids) = found.filter(|ids| ids.len() <= most) else { return Ok(None) };
        let ids: Vec<ArticleId> = ids.into_iter().map(article_id).collect::<Result<_, _>>()?;
        let found = self.get_many(&ids).await?;
        let mut found: HashMap<ArticleId, Article> =
            found.into_iter().map(|article| (article.id.clone(), article)).collect();
        Ok(Some(ids.into_iter().map(|id| (id.clone(), found.remove(&id))).collect()))
    }

    /// Up to `n` articles after the id `after` that pass the filter, in the byte order of their ids.
    ///
    /// The database leaves out most of the other articles: those of other types, and those that have a condition's value
    /// nowhere in their texts. The rest is compared here.
    pub async fn find(
        self,
        filter: &ArticleFilter,
        after: Option<&ArticleId>,
        n: u32,
    ) -> Result<Vec<Article>, StoreError> {
        // Postgres refuses this character, and no type has it.
        if filter.kind.as_ref().is_some_and(|kind| kind.contains('\0')) {
            return Ok(Vec::new());
        }
        let mut patterns = search::patterns(&filter.search);
        let mut sql = "select id, type, attributes from articles where id > $1".to_owned();
        let mut next = 3;
        if filter.kind.is_some() {
            sql.push_str(" and type = $3");
            next += 1;
        }
        sql.push_str(&search::condition(next, patterns.len()));
        next += patterns.len();
        for (_, value) in &filter.attributes {
            let folded = search::fold(value);
            patterns.push(search::part_pattern(&folded));
            sql.push_str(" and (");
            sql.push_str(search::condition(next, 1).trim_start_matches(" and "));
            next += 1;
            // Numbers and booleans are not searchable, but they are in the JSON of the attributes.
            if value.parse::<f64>().is_ok() || matches!(folded.as_str(), "true" | "false") {
                patterns.push(search::part_pattern(&folded));
                write!(sql, " or attributes like ${next} escape '\\'")
                    .expect("writing to a String never fails; this is a bug");
                next += 1;
            }
            sql.push(')');
        }
        sql.push_str(" order by id limit $2");
        let (mut found, mut after) = (Vec::new(), after.cloned());
        let mut page = n;
        loop {
            let mut query = sqlx::query_as(AssertSqlSafe(sql.clone()))
                // Every id comes after the empty string.
                .bind(after.as_ref().map_or("", ArticleId::as_str))
                .bind(i64::from(page));
            if let Some(kind) = &filter.kind {
                query = query.bind(kind);
            }
            for pattern in &patterns {
                query = query.bind(pattern);
            }
            let rows = query.fetch_all(&self.store.readers).await?;
            let at_end = rows.len() < page as usize;
            for row in rows {
                let article = parse(row)?;
                after = Some(article.id.clone());
                if filter.admits(&article) {
                    found.push(article);
                }
            }
            if at_end || found.len() >= n as usize {
                found.truncate(n as usize);
                return Ok(found);
            }
            page = PAGE;
        }
    }

    /// The articles whose id, type or text attributes contain a text of each group, in the order of their ids. The texts
    /// are in lower case.
    pub fn with_words(
        self,
        groups: Vec<Vec<String>>,
    ) -> impl Stream<Item = Result<Article, StoreError>> + Send + use<'a> {
        pages::with_words(self.store, "select id, type, attributes from articles", groups, "", parse, |row| {
            row.id.as_str()
        })
    }

    pub async fn count(self) -> Result<u64, StoreError> {
        self.store.count("select count(*) from articles").await
    }

    /// Every article in the byte order of their ids, read page by page as needed.
    pub fn all(self) -> impl Stream<Item = Result<Article, StoreError>> + Send + use<'a> {
        self.all_unparsed().flat_map(|page| {
            let rows = page.map(|page| page.rows().map(UnparsedArticle::parse).collect::<Vec<_>>());
            futures_util::stream::iter(rows.unwrap_or_else(|error| vec![Err(error)]))
        })
    }

    /// Every article, page by page, for a reader that parses many at once.
    pub fn all_unparsed(self) -> impl Stream<Item = Result<UnparsedArticles, StoreError>> + Send + use<'a> {
        // The database joins a page to one text: a message for each row costs more than the row.
        const PAGE_OF_TEXT: &str = "select string_agg(id || $3 || type || $3 || attributes, $4), max(id) \
             from (select id, type, attributes from articles where id > $1 order by id limit $2) as page";
        futures_util::stream::try_unfold(String::new(), move |after| async move {
            let (text, last): (Option<String>, Option<String>) = sqlx::query_as(PAGE_OF_TEXT)
                .bind(after)
                .bind(i64::from(PAGE))
                .bind(BETWEEN_COLUMNS.to_string())
                .bind(BETWEEN_ROWS.to_string())
                .fetch_one(&self.store.readers)
                .await?;
            Ok(text.zip(last).map(|(text, last)| (UnparsedArticles(text), last)))
        })
    }
}

/// Control characters, which are neither in ids and types nor, unescaped, in JSON.
const BETWEEN_COLUMNS: char = '\u{1f}';
const BETWEEN_ROWS: char = '\u{1e}';

/// Articles as they are stored.
#[derive(Debug)]
pub struct UnparsedArticles(String);

impl UnparsedArticles {
    pub fn rows(&self) -> impl Iterator<Item = UnparsedArticle<'_>> {
        self.0.split(BETWEEN_ROWS).map(|row| {
            let mut columns = row.splitn(3, BETWEEN_COLUMNS);
            let mut next = || columns.next().unwrap_or_default();
            UnparsedArticle { id: next(), kind: next(), attributes: next() }
        })
    }
}

/// An article as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct UnparsedArticle<'p> {
    pub id: &'p str,
    pub kind: &'p str,
    /// As JSON.
    pub attributes: &'p str,
}

impl UnparsedArticle<'_> {
    pub fn parse(self) -> Result<Article, StoreError> {
        parse((self.id.to_owned(), self.kind.to_owned(), self.attributes.to_owned()))
    }
}

/// Which articles a list has.
#[derive(Debug, Clone, Default)]
pub struct ArticleFilter {
    /// Words, each of which the id, the type or a text attribute must contain, in any case.
    pub search: String,
    /// The type, as it is stored.
    pub kind: Option<String>,
    /// Attributes, and a value that each must have in any case: as its text, as a number, as true or false, or in its
    /// list.
    pub attributes: Vec<(String, String)>,
}

impl ArticleFilter {
    fn admits(&self, article: &Article) -> bool {
        self.attributes.iter().all(|(name, wanted)| {
            let folded = search::fold(wanted);
            let values = match article.attribute(name) {
                Some(Value::Array(values)) => values,
                Some(value) => std::slice::from_ref(value),
                None => &[],
            };
            article.words(name).any(|word| search::fold(word) == folded)
                || values.iter().any(|value| match value {
                    Value::Number(number) => number.to_string() == folded,
                    Value::Bool(truth) => truth.to_string() == folded,
                    _ => false,
                })
        })
    }
}

pub(super) struct ArticleRow<'a> {
    pub(super) article: &'a Article,
    pub(super) millis: i64,
}

impl upsert::Row for ArticleRow<'_> {
    const INSERT: &'static str = "insert into articles (id, type, attributes, name_key, created_at) values";
    const COLUMNS: usize = 5;
    const ON_CONFLICT: &'static str = "
        on conflict (id) do update set
            type = excluded.type,
            attributes = excluded.attributes,
            name_key = excluded.name_key,
            revision = articles.revision + 1
        where (articles.type, articles.attributes, articles.name_key)
            <> (excluded.type, excluded.attributes, excluded.name_key)";
    const NAME: &'static str = "id";
    type Key = ArticleId;

    fn key(&self) -> ArticleId {
        self.article.id.clone()
    }

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> {
        values.add(self.article.id.as_str())?;
        values.add(self.article.kind())?;
        values.add(json::text(&self.article.kept_attributes()))?;
        values.add(name_key(self.article))?;
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

fn version((_, kind, attributes, revision, created_at): &StoredColumns) -> Version {
    Version::new(*created_at, *revision, &[kind, attributes])
}

fn parse_stored(columns: StoredColumns) -> Result<Stored<Article>, StoreError> {
    let version = version(&columns);
    let (id, kind, attributes, ..) = columns;
    Ok(Stored { value: parse((id, kind, attributes))?, version })
}

pub(super) fn article_id(id: String) -> Result<ArticleId, StoreError> {
    ArticleId::new(&id).map_err(|error| StoreError::Damaged {
        table: "articles",
        id,
        reason: error.to_string(),
    })
}
