//! What handlers take out of a request: the body as JSON, a parameter of the path, the query.
//!
//! They stand in for axum's extractors of the same names because every rejection must be a [`Problem`] that
//! says where in the request something is the matter. They know no resource.

mod body;
mod json;
mod object;
mod path;
mod query;
mod whole;

pub(crate) use self::{
    body::{Incoming, media_type},
    json::{Json, JsonText, from_value, parse, parse_list},
    object::{object, object_option, objects},
    path::{Path, PathParameter, ReleaseName},
    query::Query,
    whole::{whole, whole_option},
};
use crate::web::http::{Finding, Kind, Problem};
