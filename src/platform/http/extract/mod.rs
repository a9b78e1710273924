//! Extractors: the body as JSON, a parameter of the path, the query.
//!
//! They replace axum's extractors of the same names, because every rejection must be a [`Problem`](super::Problem) that locates
//! the error in the request. They know no resource.

mod body;
mod json;
mod path;
mod query;

pub(crate) use self::{
    body::{Incoming, check_media_type},
    json::{Json, JsonText, MOST_BYTES, MergePatch, from_value, parse, parse_list, parse_stored, too_long},
    path::{Path, PathParameter, ReleaseName},
    query::{ConditionalQuery, Query, parse as parse_query, read_conditions, split},
};
