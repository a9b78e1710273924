//! Reading a whole table without holding it in memory, nor a connection while the reader thinks.

use std::future::Future;

use futures_util::{Stream, TryStreamExt, stream};

use super::StoreError;

/// Rows a page: large enough that the round trip does not count.
pub(super) const PAGE: u32 = 1000;

/// All rows, a page at a time, each page beginning after the key of the last row before it.
///
/// It is no snapshot: what changes meanwhile is seen as it is when its page is read. A snapshot would
/// keep a connection, and on `SQLite` the growing log, for as long as the slowest reader takes.
pub(super) fn all<Key, Row, Page>(
    first: Key,
    page: impl Fn(Key) -> Page + Send,
) -> impl Stream<Item = Result<Row, StoreError>> + Send
where
    Key: Clone + Send,
    Row: Send,
    Page: Future<Output = Result<Vec<(Key, Row)>, StoreError>> + Send,
{
    stream::try_unfold(Some(first), move |after| {
        let page = after.map(&page);
        async move {
            let Some(page) = page else { return Ok::<_, StoreError>(None) };
            let rows = page.await?;
            let more = rows.len() == PAGE as usize;
            let next = rows.last().filter(|_| more).map(|(key, _)| key.clone());
            Ok(Some((stream::iter(rows.into_iter().map(|(_, row)| Ok(row))), next)))
        }
    })
    .try_flatten()
}
