//! Answers of every resource with versions.

use std::fmt;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{
    Finding, Problem,
    conditions::{Conditions, etag},
    extract::{Json, PathParameter},
};
use crate::platform::db::{Put, Stored, Version};

/// GET's answer: the value's body and version, or that the caller has it.
pub(crate) fn read_answer<T, B: Serialize>(
    conditions: &Conditions,
    Stored { value, version }: Stored<T>,
    body: impl FnOnce(T) -> Result<B, Problem>,
) -> Result<Response, Problem> {
    let tag = etag(&version);
    if conditions.has(&version)? {
        return Ok((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    Ok((tag, Json(body(value)?)).into_response())
}

pub(crate) fn put_answer(put: Put, version: &Version, body: impl Serialize) -> Response {
    let status = if put == Put::Added { StatusCode::CREATED } else { StatusCode::OK };
    (status, etag(version), Json(body)).into_response()
}

/// Checks that an id in the body, at this pointer, is the one in the path.
pub(crate) fn check_id<Id: PathParameter + PartialEq + fmt::Debug>(
    pointer: &str,
    in_body: Option<&str>,
    in_path: &Id,
) -> Result<(), Problem> {
    match in_body {
        Some(id) if !Id::parse(id).is_ok_and(|id| id == *in_path) => {
            let detail = format!(
                "the body's {} is {id:?}, the path's {in_path:?}: leave it out or make them equal",
                &pointer[1..]
            );
            Err(Problem::invalid(vec![Finding::at(pointer, detail)]))
        }
        _ => Ok(()),
    }
}
