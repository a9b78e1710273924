//! Lists in pages.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    config::Limits,
    web::http::{Finding, Problem, schema::id_text},
};

/// The query for a page of search results.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// Words: each must be a whole word of the customer's features, except no-gos, or a part of the id. `gender:male` names
    /// a feature. Without it, every customer.
    #[serde(default)]
    pub(crate) search: String,
    /// `next_cursor` of the previous page; without it, the first page.
    #[param(schema_with = id_text)]
    pub(crate) cursor: Option<String>,
    /// Maximum number of items.
    pub(crate) n: Option<u32>,
}

/// The query for a page of articles.
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
    #[param(schema_with = id_text)]
    pub(crate) cursor: Option<String>,
    /// Maximum number of items.
    pub(crate) n: Option<u32>,
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The cursor of the next page; null on the last page.
    #[schema(examples("c-000010"))]
    next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Takes up to `n + 1` rows: one more than the page holds means that there is another page.
    pub(crate) fn new<Row>(
        mut rows: Vec<Row>,
        n: u32,
        cursor: impl Fn(&Row) -> String,
        item: impl Fn(Row) -> T,
    ) -> Self {
        let n = n as usize;
        let next_cursor = (rows.len() > n).then(|| cursor(&rows[n - 1]));
        rows.truncate(n);
        Self { items: rows.into_iter().map(item).collect(), next_cursor }
    }
}

/// Checks the page size, or takes the default.
pub(crate) fn size(n: Option<u32>, limits: Limits) -> Result<u32, Problem> {
    let n = n.unwrap_or(limits.page_default);
    if (1..=limits.page).contains(&n) {
        return Ok(n);
    }
    let detail = format!("a page has 1 to {} items, found {n}", limits.page);
    Err(Problem::invalid(vec![Finding::parameter("n", detail)]))
}

/// Parses the cursor, if there is one.
pub(crate) fn cursor<T>(
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let detail = "this is not a cursor; send the previous page's next_cursor unchanged";
    parse(text).map(Some).ok_or_else(|| Problem::invalid(vec![Finding::parameter("cursor", detail)]))
}
