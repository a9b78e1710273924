//! Reads all articles, many at a time.

use atelier_core::domain::Article;
use futures_util::Stream;

use crate::platform::db::{
    Resource, Resources, StoreError,
    pages::{PART, PART_BYTES},
};

impl<'a> Resources<'a, Article> {
    /// Every article, part by part, for a reader that parses many at once.
    pub fn all_unparsed(self) -> impl Stream<Item = Result<UnparsedArticles, StoreError>> + Send + use<'a> {
        // The database joins a part to one text: a message for each row costs more than the row.
        const PART_OF_TEXT: &str = "with sizes as (
                select id, sum(octet_length(type) + octet_length(attributes)) over (order by id) as total
                from (select id, type, attributes from visible_articles where id > $1 order by id limit $2) as rows_of_part)
             select string_agg(id || $3 || type || $3 || attributes, $4), max(id) from visible_articles where id > $1
                and id <= (select coalesce(max(case when total <= $5 then id end), min(id)) from sizes)";
        futures_util::stream::try_unfold(String::new(), move |after| async move {
            let (text, last): (Option<String>, Option<String>) = sqlx::query_as(PART_OF_TEXT)
                .bind(after)
                .bind(i64::from(PART))
                .bind(BETWEEN_COLUMNS.to_string())
                .bind(BETWEEN_ROWS.to_string())
                .bind(i64::try_from(PART_BYTES).unwrap_or(i64::MAX))
                .fetch_one(self.store.readers()?)
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
        Article::parse((self.id.to_owned(), self.kind.to_owned(), self.attributes.to_owned()))
    }
}
