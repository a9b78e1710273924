//! Reading many rows: a whole table page by page, or the rows with some ids.

use std::future::Future;

use atelier_core::domain::CustomerId;
use futures_util::{Stream, TryStreamExt};
use sqlx::{
    Any, AnyConnection, AssertSqlSafe, FromRow,
    any::{AnyArguments, AnyRow},
    query::QueryAs,
};

use super::{Store, StoreError, connect::Dialect, search, upsert};

/// Rows of a page: enough that round trips do not matter.
pub(super) const PAGE: u32 = 1000;

/// All rows, page by page, without holding the table in memory or a connection between pages. Each page begins after the key of the last row before it.
///
/// It is not a snapshot: a page shows its rows as they are when it is read. A snapshot would hold a connection, and on
/// `SQLite` a growing log, for as long as the slowest reader takes.
pub(super) fn stream<Key, Row, Page>(
    first: Key,
    page: impl Fn(Key) -> Page + Send,
) -> impl Stream<Item = Result<Row, StoreError>> + Send
where
    Key: Clone + Send,
    Row: Send,
    Page: Future<Output = Result<Vec<(Key, Row)>, StoreError>> + Send,
{
    futures_util::stream::try_unfold(Some(first), move |after| {
        let page = after.map(&page);
        async move {
            let Some(page) = page else { return Ok::<_, StoreError>(None) };
            let rows = page.await?;
            let more = rows.len() == PAGE as usize;
            let next = rows.last().filter(|_| more).map(|(key, _)| key.clone());
            Ok(Some((futures_util::stream::iter(rows.into_iter().map(|(_, row)| Ok(row))), next)))
        }
    })
    .try_flatten()
}

/// The rows about a customer in the order of their numbers. The statement takes the customer, the number that the page begins
/// after, and the most rows.
pub(super) fn for_customer<Row>(
    store: &Store,
    customer: &CustomerId,
    sql: &'static str,
    number: fn(&Row) -> i64,
) -> impl Stream<Item = Result<Row, StoreError>> + Send + use<Row>
where
    Row: for<'r> FromRow<'r, AnyRow> + Send + Unpin + 'static,
{
    let (store, customer) = (store.clone(), customer.clone());
    stream(0, move |after| {
        let (store, customer) = (store.clone(), customer.clone());
        async move {
            let rows: Vec<Row> = sqlx::query_as(sql)
                .bind(customer.as_str())
                .bind(after)
                .bind(i64::from(PAGE))
                .fetch_all(&store.readers)
                .await?;
            Ok(rows.into_iter().map(|row| (number(&row), row)).collect())
        }
    })
}

/// The rows after the id `after` whose `name_key` contains a text of each group, in the order of their ids. `select` names the
/// table. Every id comes after the empty text.
pub(super) fn with_words<'a, Columns, Row>(
    store: &'a Store,
    select: &str,
    groups: Vec<Vec<String>>,
    after: &str,
    parse: fn(Columns) -> Result<Row, StoreError>,
    id: fn(&Row) -> &str,
) -> impl Stream<Item = Result<Row, StoreError>> + Send + use<'a, Columns, Row>
where
    Columns: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
    Row: Send,
{
    let sql = format!("{select} where id > $1{} order by id limit $2", search::any_of(3, &groups));
    stream(after.to_owned(), move |after| {
        let (sql, groups) = (sql.clone(), groups.clone());
        async move {
            let mut query = sqlx::query_as(AssertSqlSafe(sql)).bind(after).bind(i64::from(PAGE));
            for text in groups.iter().flatten() {
                query = query.bind(search::part_pattern(text));
            }
            let rows: Vec<Columns> = query.fetch_all(&store.readers).await?;
            let with_id = |columns| parse(columns).map(|row| (id(&row).to_owned(), row));
            rows.into_iter().map(with_id).collect()
        }
    })
}

/// The rows with these ids, in any order. `select` ends in `where id in`.
pub(super) async fn by_ids<Row>(store: &Store, select: &str, ids: &[&str]) -> Result<Vec<Row>, StoreError>
where
    Row: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
{
    let mut rows = Vec::with_capacity(ids.len());
    for ids in ids.chunks(upsert::ROWS) {
        let sql = format!("{select} {}", upsert::placeholders(store.dialect, 1, ids.len()));
        rows.extend(bind(&sql, ids).fetch_all(&store.readers).await?);
    }
    Ok(rows)
}

/// Like [`by_ids`], for rows that no other transaction may change before this one ends.
pub(super) async fn lock_by_ids<Row>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    select: &str,
    ids: &[&str],
) -> Result<Vec<Row>, StoreError>
where
    Row: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
{
    let mut rows = Vec::with_capacity(ids.len());
    for ids in ids.chunks(upsert::ROWS) {
        let values = upsert::placeholders(dialect, 1, ids.len());
        let sql = format!("{select} {values}{}", dialect.for_update());
        rows.extend(bind(&sql, ids).fetch_all(&mut *connection).await?);
    }
    Ok(rows)
}

fn bind<'q, Row>(sql: &str, ids: &[&'q str]) -> QueryAs<'q, Any, Row, AnyArguments>
where
    Row: for<'r> FromRow<'r, AnyRow>,
{
    let mut query = sqlx::query_as(AssertSqlSafe(sql.to_owned()));
    for id in ids {
        query = query.bind(*id);
    }
    // Every other number of ids makes a statement that is rarely reused.
    query.persistent(ids.len() == upsert::ROWS)
}
