//! Lists in pages.

use std::{marker::PhantomData, pin::pin};

use futures_util::{Stream, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::{IntoParams, ToSchema};

use super::{Finding, Kind, Problem, schema::CursorSchema};
use crate::{config::Limits, platform::db::StoreError};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// Words: each must be a whole word of the customer's features, except no-gos, or a part of the id. `gender:male` names
    /// a feature. Without it, every customer.
    #[serde(default)]
    pub(crate) search: String,
    /// `next_cursor` of the previous page; without it, the first page.
    #[param(value_type = Option<CursorSchema>, inline)]
    pub(crate) cursor: Option<String>,
    /// Maximum number of items.
    pub(crate) n: Option<u32>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ArticleQuery {
    /// Words that an article's id, type or texts must all contain, ignoring case; without it, every article.
    #[serde(default)]
    pub(crate) search: String,
    /// Only articles of this type, written as in the catalogue.
    #[param(example = "coat")]
    pub(crate) r#type: Option<String>,
    /// `next_cursor` of the previous page; without it, the first page.
    #[param(value_type = Option<CursorSchema>, inline)]
    pub(crate) cursor: Option<String>,
    /// Maximum number of items.
    pub(crate) n: Option<u32>,
}

/// The beginning of a cursor, before the last item of the page: an id alone, or a page's number, is none.
pub(super) const AFTER: &str = "after:";

/// Bytes of items after which a page ends early, so that callers who do not read their pages take little memory.
const PAGE_BYTES: usize = 1 << 20;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    #[schema(value_type = Vec<T>)]
    pub(crate) items: Vec<Box<RawValue>>,
    /// The cursor of the next page; null on the last page.
    #[schema(examples("after:c-000010"))]
    next_cursor: Option<String>,
    #[serde(skip)]
    #[schema(ignore)]
    item: PhantomData<T>,
}

impl<T: Serialize> Page<T> {
    /// Takes up to `n` rows. One more means that there is another page.
    pub(crate) async fn collect<Row>(
        rows: impl Stream<Item = Result<Row, StoreError>>,
        n: u32,
        cursor: impl Fn(&Row) -> String,
        item: impl Fn(Row) -> T,
    ) -> Result<Self, Problem> {
        let mut rows = pin!(rows);
        let mut page = Self { items: Vec::new(), next_cursor: None, item: PhantomData };
        let (mut last, mut bytes) = (String::new(), 0);
        while let Some(row) = rows.try_next().await? {
            if page.items.len() == n as usize || bytes >= PAGE_BYTES {
                page.next_cursor = Some(format!("{AFTER}{last}"));
                break;
            }
            last = cursor(&row);
            let json = to_raw_value(&item(row)).map_err(|error| Problem::inside(Kind::Internal, error))?;
            bytes += json.get().len();
            page.items.push(json);
        }
        Ok(page)
    }
}

pub(crate) fn size(n: Option<u32>, limits: Limits) -> Result<u32, Problem> {
    let n = n.unwrap_or(limits.page_default);
    if (1..=limits.page).contains(&n) {
        return Ok(n);
    }
    let detail = format!("a page has 1 to {} items, found {n}", limits.page);
    Err(Problem::invalid(vec![Finding::parameter("n", detail)]))
}

pub(crate) fn cursor<T>(
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let detail = "this is not a cursor; send the previous page's next_cursor unchanged";
    let item = text.strip_prefix(AFTER).and_then(parse);
    item.map(Some).ok_or_else(|| Problem::invalid(vec![Finding::parameter("cursor", detail)]))
}
