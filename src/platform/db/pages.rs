//! Reading many rows: a whole table in parts, or the rows with some ids.

use atelier_core::domain::CustomerId;
use futures_util::{Stream, TryStreamExt, stream};
use sqlx::{
    Any, AnyConnection, AssertSqlSafe, Encode, Row, Type,
    any::{AnyArguments, AnyRow},
    query::{Query, QueryAs},
};

use super::{Store, StoreError, connect::Dialect, record::Readable, upsert, values};

/// Rows of a part, and the bytes of their texts after which it ends: enough that round trips do not matter, few enough for many
/// readers at once.
pub(crate) const PART: u32 = 1000;
pub(crate) const PART_BYTES: usize = 1 << 20;
/// Rows that are parsed at the same time: parsed, a list of numbers takes sixteen times the memory of its text.
pub(crate) const PARSED_TOGETHER: usize = 100;

/// All rows, part by part, without holding the table in memory or a connection between parts. Each part begins after the key of
/// the last row before it. `query` gives up to `part` rows, which are parsed one by one.
///
/// It is not a snapshot: a part has its rows as they are when it is read. A snapshot would hold a connection, and on
/// `SQLite` a growing log, for as long as the slowest reader takes.
pub(crate) fn stream<Key, Value, Select>(
    store: &Store,
    first: Key,
    part: u32,
    query: Select,
    key: fn(&AnyRow) -> sqlx::Result<Key>,
    parse: fn(&AnyRow) -> Result<Value, StoreError>,
) -> impl Stream<Item = Result<Value, StoreError>> + Send + use<Key, Value, Select>
where
    Key: Send,
    Value: Send,
    Select: Fn(Key) -> Query<'static, Any, AnyArguments> + Send,
{
    let store = store.clone();
    stream::try_unfold(Some(first), move |after| {
        let (query, store) = (after.map(&query), store.clone());
        async move {
            let Some(query) = query else { return Ok::<_, StoreError>(None) };
            let (mut rows, mut bytes) = (Vec::new(), 0);
            let mut found = query.fetch(store.readers()?);
            while bytes < PART_BYTES
                && let Some(row) = found.try_next().await?
            {
                bytes += text_bytes(&row);
                rows.push(row);
            }
            let has_more = bytes >= PART_BYTES || rows.len() == part as usize;
            let next = rows.last().filter(|_| has_more).map(key).transpose()?;
            Ok(Some((stream::iter(rows.into_iter().map(move |row| parse(&row))), next)))
        }
    })
    .try_flatten()
}

fn text_bytes(row: &AnyRow) -> usize {
    let text = |column| row.try_get::<Option<&str>, usize>(column).ok().flatten();
    (0..row.len()).filter_map(text).map(str::len).sum()
}

/// The rows about a customer in the order of their numbers. The statement takes the customer, the number that the part begins
/// after, and the most rows.
pub(crate) fn for_customer<Value: Readable + 'static>(
    store: &Store,
    customer: &CustomerId,
    sql: &'static str,
    number: fn(&AnyRow) -> sqlx::Result<i64>,
) -> impl Stream<Item = Result<Value, StoreError>> + Send + use<Value> {
    let customer = customer.clone();
    let query =
        move |after: i64| sqlx::query_with(sql, values![customer.to_string(), after, i64::from(PART)]);
    stream(store, 0, PART, query, number, |row| Ok(Value::from_row(row)?))
}

/// An id that a statement takes: a text or a digest.
pub(crate) trait Id<'q>: Encode<'q, Any> + Type<Any> + Copy + Send + Sync + 'q {}

impl<'q, T: Encode<'q, Any> + Type<Any> + Copy + Send + Sync + 'q> Id<'q> for T {}

/// The rows with these ids, in any order. `select` ends in `where id in`.
pub(crate) async fn by_ids<Row: Readable>(
    store: &Store,
    select: &str,
    ids: &[&str],
) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::with_capacity(ids.len());
    for ids in ids.chunks(upsert::ROWS) {
        let sql = format!("{select} {}", upsert::placeholders(store.dialect, 1, ids.len()));
        rows.extend(bind(&sql, ids).fetch_all(store.readers()?).await?);
    }
    Ok(rows)
}

/// Like [`by_ids`], for rows that no other transaction may change before this one ends.
pub(crate) async fn lock_by_ids<Row: Readable>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    select: &str,
    ids: &[&str],
) -> Result<Vec<Row>, StoreError> {
    in_transaction(connection, dialect, select, ids, dialect.for_update()).await
}

/// Like [`by_ids`], as a transaction sees the rows. `rest` follows the ids.
pub(crate) async fn in_transaction<'q, Row: Readable, I: Id<'q>>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    select: &str,
    ids: &[I],
    rest: &str,
) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::with_capacity(ids.len());
    for ids in ids.chunks(upsert::ROWS) {
        let sql = format!("{select} {}{rest}", upsert::placeholders(dialect, 1, ids.len()));
        rows.extend(bind(&sql, ids).fetch_all(&mut *connection).await?);
    }
    Ok(rows)
}

fn bind<'q, Row: Readable, I: Id<'q>>(sql: &str, ids: &[I]) -> QueryAs<'q, Any, Row, AnyArguments> {
    let mut query = sqlx::query_as(AssertSqlSafe(sql.to_owned()));
    for id in ids {
        query = query.bind(*id);
    }
    // Every other number of ids makes a statement that is rarely reused.
    query.persistent(ids.len() == upsert::ROWS)
}
