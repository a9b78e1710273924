//! The catalogue.

use std::{collections::HashMap, future::ready};

use atelier_core::domain::{Article, ArticleError, ArticleId, ArticlePatch, CustomerId, PatchError, fold};
use atelier_engine::packed_article::PackedArticle;
use futures_util::{Stream, TryStreamExt};
use serde_json::{Map, Value};
use sqlx::{AnyConnection, AssertSqlSafe};

use crate::platform::db::{
    Change, ChangeError, Resource, Resources, Store, StoreError, json, pages::PARSED_TOGETHER, revisions,
    search, upsert, values,
};

pub type Articles<'a> = Resources<'a, Article>;

impl Store {
    pub fn articles(&self) -> Articles<'_> {
        self.resources()
    }
}

impl Articles<'_> {
    /// A number that grows with every change of the catalogue. A copy of the catalogue that was begun after reading
    /// this number is current until the number changes.
    pub async fn revision(self) -> Result<i64, StoreError> {
        revisions::read(self.store, revisions::ARTICLES).await
    }

    /// The articles that changed after one revision up to another, each as it is now and as the caller keeps it, or None if it is
    /// gone. None if more than `most` changed, or the changes are not known: then the whole catalogue is to be read.
    pub async fn changes<T>(
        self,
        before: i64,
        now: i64,
        most: usize,
        keep: impl Fn(Article) -> T,
    ) -> Result<Option<Vec<(ArticleId, Option<T>)>>, StoreError> {
        let found = revisions::articles_changed_since(self.store, before, now).await?;
        let Some(ids) = found.filter(|ids| ids.len() <= most) else { return Ok(None) };
        let ids: Vec<ArticleId> = ids.into_iter().map(article_id).collect::<Result<_, _>>()?;
        let mut found = HashMap::new();
        for ids in ids.chunks(PARSED_TOGETHER) {
            let read = self.get_many(ids).await?.into_iter();
            found.extend(read.map(|article| (article.id.clone(), keep(article))));
        }
        Ok(Some(ids.into_iter().map(|id| (id.clone(), found.remove(&id))).collect()))
    }

    /// The articles that these ids name, their own or their variants', each with the id of its article. Unknown ones are skipped.
    pub async fn named(self, ids: &[ArticleId]) -> Result<HashMap<ArticleId, ArticleId>, StoreError> {
        let mut connection = self.store.readers()?.acquire().await?;
        let mut found =
            Article::aliases(self.store, &mut connection, &ids.iter().collect::<Vec<_>>()).await?;
        drop(connection);
        let own = self.get_many(ids).await?.into_iter();
        found.extend(own.map(|article| (article.id.clone(), article.id)));
        Ok(found)
    }

    /// The articles after the id `after` that pass the filter, in the byte order of their ids, read in parts of up to `part`
    /// rows.
    ///
    /// The database leaves out most of the other articles: those of other types, and those that have a condition's value
    /// nowhere in their texts. The rest is compared here.
    pub fn find(
        self,
        filter: ArticleFilter,
        after: Option<&ArticleId>,
        part: u32,
    ) -> impl Stream<Item = Result<Article, StoreError>> + Send + use<> {
        let (mut condition, mut texts) = (String::new(), Vec::new());
        if let Some(kind) = &filter.kind {
            condition.push_str(" and type = $3");
            // Postgres refuses NUL, and no type has a control character.
            texts.push(kind.replace('\0', "\u{1}"));
        }
        let patterns = search::patterns(&filter.search);
        condition.push_str(&search::condition(3 + texts.len(), patterns.len()));
        texts.extend(patterns);
        for (_, value) in &filter.attributes {
            let folded = fold(value);
            let name_key = search::condition(3 + texts.len(), 1);
            texts.push(search::part_pattern(&folded));
            // Numbers and booleans are not searchable, but they are in the JSON of the attributes.
            let in_attributes = if value.parse::<f64>().is_ok() || matches!(&*folded, "true" | "false") {
                texts.push(search::pattern(&folded));
                format!(" or attributes like ${} escape '\\'", 2 + texts.len())
            } else {
                String::new()
            };
            condition.extend([" and (", name_key.trim_start_matches(" and "), &in_attributes, ")"]);
        }
        let found = self.with_condition(&condition, texts, after, part);
        found.try_filter(move |article| ready(filter.admits(article)))
    }
}

#[derive(Debug, Clone, Default)]
pub struct ArticleFilter {
    /// Words, each of which the id, the type or a text attribute must contain, in any case.
    pub search: String,
    /// The type, as it is stored.
    pub kind: Option<String>,
    /// Attributes, and a value that each must have in any case, at any depth: as a text, as a number, or as true or false.
    pub attributes: Vec<(String, String)>,
}

impl ArticleFilter {
    fn admits(&self, article: &Article) -> bool {
        self.attributes.iter().all(|(name, wanted)| {
            let folded = fold(wanted);
            (name == "type" && fold(article.kind()) == folded)
                || article.attribute(name).is_some_and(|value| says(value, &folded))
        })
    }
}

fn says(value: &Value, folded: &str) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => flag.to_string() == folded,
        Value::Number(number) => number.to_string() == folded,
        Value::String(text) => fold(text) == folded,
        Value::Array(values) => values.iter().any(|value| says(value, folded)),
        Value::Object(fields) => fields.values().any(|value| says(value, folded)),
    }
}

/// The variants of articles, also those that a running import adds or takes away.
const TAKEN: &str = "(select variants.id, article_id from variants join articles on articles.id = article_id
    where is_old = 0 or import = (select number from running_import)) as variants";

impl Resource for Article {
    type Id = ArticleId;
    type Patch = ArticlePatch;
    type Columns = (String, String, String);

    const TABLE: &'static str = "articles";
    const VISIBLE: &'static str = "visible_articles";
    const COLUMNS: &'static str = "id, type, attributes";
    const INSERT: &'static str =
        "insert into articles (id, type, attributes, name_key, memory, created_at, import) values";
    const VALUES: usize = 7;
    const ON_CONFLICT: &'static str = upsert::on_conflict!(
        "articles",
        "(articles.type, articles.attributes, articles.name_key)
            <> (excluded.type, excluded.attributes, excluded.name_key)",
        "type", "attributes", "name_key", "memory"; "old_type"
    );
    const PUT: &'static str = "article.put";
    const DELETE: &'static str = "article.delete";
    const IS_FOLLOWED: bool = true;

    fn id(&self) -> &ArticleId {
        &self.id
    }

    fn parse((id, kind, attributes): Self::Columns) -> Result<Self, StoreError> {
        let damaged = |reason| StoreError::Damaged { table: "articles", id: id.clone(), reason };
        let attributes: Map<String, Value> = json::parse(&attributes).map_err(damaged)?;
        Self::new(article_id(id.clone())?, kind, attributes).map_err(|error| damaged(error.to_string()))
    }

    fn texts(&self, row_bytes: u32) -> Result<Vec<String>, StoreError> {
        let attributes = json::text(self.attributes());
        json::check_row("the article", self.kind().len() + attributes.len(), row_bytes)?;
        let kept = if self.embedding().is_some() { json::text(&self.kept_attributes()) } else { attributes };
        Ok(vec![self.kind().to_owned(), kept, name_key(self)])
    }

    fn memory(&self) -> Option<i64> {
        Some(i64::try_from(PackedArticle::from(self).memory()).unwrap_or(i64::MAX))
    }

    fn target(patch: &ArticlePatch) -> &ArticleId {
        &patch.id
    }

    fn apply(patch: &ArticlePatch, stored: Option<Self>) -> Result<Self, PatchError> {
        patch.apply(stored)
    }

    fn owner(_: &ArticleId) -> Option<&CustomerId> {
        None
    }

    /// The table also has the variants that a running import adds or takes away, so each is looked for in the attributes of the
    /// article that readers see.
    async fn aliases(
        store: &Store,
        connection: &mut AnyConnection,
        ids: &[&ArticleId],
    ) -> Result<HashMap<ArticleId, ArticleId>, StoreError> {
        let mut found = HashMap::new();
        for ids in ids.chunks(upsert::ROWS) {
            let sql = format!(
                "select variants.id, articles.id, articles.attributes
                 from variants join visible_articles as articles on articles.id = article_id
                 where variants.id in {} and variants.id not in (select id from visible_articles)
                 order by variants.id, articles.id",
                upsert::placeholders(store.dialect, 1, ids.len())
            );
            let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(ids.len() == 1);
            let query = ids.iter().fold(query, |query, id| query.bind(id.as_str()));
            let rows: Vec<(String, String, String)> = query.fetch_all(&mut *connection).await?;
            for (id, article, attributes) in rows {
                let article = Self::parse((article, "-".to_owned(), attributes))?;
                if article.variant_ids().any(|variant| variant == id) {
                    found.entry(article_id(id)?).or_insert(article.id);
                }
            }
        }
        Ok(found)
    }

    fn takes_aliases(change: Change<'_, Self>) -> bool {
        match change {
            Change::Value(article) => article.variant_ids().next().is_some(),
            Change::Patch(patch) => patch.variant_ids().is_some(),
        }
    }

    async fn check_aliases(&self, store: &Store, connection: &mut AnyConnection) -> Result<(), ChangeError> {
        let refuse = |name, reason| PatchError::Article(ArticleError::Attribute { name, reason });
        let sql = format!("select id, article_id from {TAKEN} where id = $1 and article_id <> $1 limit 1");
        let own: Option<(String, String)> =
            sqlx::query_as_with(AssertSqlSafe(sql), values![self.id.as_str()])
                .fetch_optional(&mut *connection)
                .await?;
        if let Some((id, article)) = own {
            return Err(refuse("id", format!("{id:?} is the id of a variant of article {article:?}")).into());
        }
        let variants: Vec<_> = self.variant_ids().filter(|id| *id != self.id.as_str()).collect();
        for ids in variants.chunks(upsert::ROWS) {
            let places = upsert::placeholders(store.dialect, 1, ids.len());
            for (table, columns) in [(TAKEN, "id, article_id"), ("visible_articles", "id, ''")] {
                let sql = format!("select {columns} from {table} where id in {places}");
                let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
                let query = ids.iter().fold(query, |query, id| query.bind(id.to_string()));
                let found: Vec<(String, String)> = query.fetch_all(&mut *connection).await?;
                if let Some((id, article)) =
                    found.into_iter().find(|(_, article)| *article != self.id.as_str())
                {
                    let reason = match &*article {
                        "" => format!("{id:?} is the id of another article"),
                        article => format!("{id:?} is a variant of article {article:?}"),
                    };
                    return Err(refuse("variants", reason).into());
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn name_key(article: &Article) -> String {
    let fields = [article.id.as_str(), article.kind()].into_iter();
    search::name_key(fields.chain(article.attributes().keys().flat_map(|name| article.words(name))))
}

pub(crate) fn article_id(id: String) -> Result<ArticleId, StoreError> {
    ArticleId::new(&id).map_err(|error| StoreError::Damaged {
        table: "articles",
        id,
        reason: error.to_string(),
    })
}
