//! Lists a page at a time.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::config::Limits;
use crate::web::http::{Finding, Problem, schema::id_text};

/// Which page is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// `next_cursor` of the page before; without it, the first page.
    #[param(pattern = "^[0-9]{1,18}$")]
    pub(crate) cursor: Option<String>,
    /// How many items at most.
    pub(crate) n: Option<u32>,
}

/// Which page of what is found.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// Words that must all stand in an item's id or texts, in whatever case; without it, every item.
    #[serde(default)]
    pub(crate) search: String,
    /// `next_cursor` of the page before; without it, the first page.
    #[param(schema_with = id_text)]
    pub(crate) cursor: Option<String>,
    /// How many items at most.
    pub(crate) n: Option<u32>,
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The cursor of the page after this one; null on the last.
    #[schema(examples("c-17"))]
    next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// From one item more than the page holds, if there is one: that is how the last page is known.
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

/// How many items the page has at most.
pub(crate) fn size(n: Option<u32>, limits: Limits) -> Result<u32, Problem> {
    let n = n.unwrap_or(limits.page_default);
    if (1..=limits.page).contains(&n) {
        return Ok(n);
    }
    let detail = format!("a page has 1 to {} items, found {n}", limits.page);
    Err(Problem::invalid(vec![Finding::parameter("n", detail)]))
}

/// A cursor as what it stands for.
pub(crate) fn cursor<T>(
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let detail = "this is no cursor; take next_cursor of the page before as it is";
    parse(text).map(Some).ok_or_else(|| Problem::invalid(vec![Finding::parameter("cursor", detail)]))
}
