//! JSON bodies of requests and answers.

use std::io;

use atelier_core::util::json_pointer::step;
use atelier_files::{describe_type, explain_json_error, explain_utf8_error, find_repeated_name};
use axum::{
    extract::{FromRequest, Request},
    http::{Method, header},
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::{Incoming, check_media_type};
use crate::platform::http::{AppState, Finding, Kind, Problem};

/// A JSON object as a request's body; any JSON as an answer's.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// The JSON text of a request's body, for a handler that accepts more than one shape. See [`parse`].
#[derive(Debug)]
pub(crate) struct JsonText(pub(crate) Vec<u8>);

impl<T: DeserializeOwned> FromRequest<AppState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let is_stored = request.method() == Method::PUT;
        let JsonText(text) = JsonText::from_request(request, state).await?;
        if is_stored { parse_stored(&text) } else { parse(&text) }.map(Self)
    }
}

impl FromRequest<AppState> for JsonText {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        read(request, state, "application/json", is_json).await.map(Self)
    }
}

async fn read(
    request: Request,
    state: &AppState,
    expected: &'static str,
    accepts: impl Fn(&str) -> bool,
) -> Result<Vec<u8>, Problem> {
    check_media_type(request.headers(), expected, accepts)?;
    let limits = state.limits;
    Incoming::new(request, limits.body_bytes, limits).read_all(limits.body()).await
}

/// A JSON object that changes a stored one (RFC 7396).
#[derive(Debug)]
pub(crate) struct MergePatch<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for MergePatch<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        const EXPECTED: &str = "application/merge-patch+json or application/json";
        let accepts = |found: &str| matches!(found, "application/merge-patch+json" | "application/json");
        parse_stored(&read(request, state, EXPECTED, accepts).await?).map(Self)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        /// About the size of a completion. Growing a vector to it would copy it several times.
        const TYPICAL_BYTES: usize = 8 * 1024;
        let mut json = Bounded(Vec::with_capacity(TYPICAL_BYTES));
        match serde_json::to_writer(&mut json, &self.0) {
            Ok(()) => ([(header::CONTENT_TYPE, "application/json")], json.0).into_response(),
            Err(error) if error.is_io() => too_long("the answer would be").into_response(),
            Err(error) => Problem::inside(Kind::Internal, error).into_response(),
        }
    }
}

/// The longest answer: far above what full pages and batches of usual articles need.
pub(crate) const MOST_BYTES: usize = 32 << 20;

/// Refuses a question whose answer is longer. `what` begins the sentence.
pub(crate) fn too_long(what: &str) -> Problem {
    let most = MOST_BYTES >> 20;
    Problem::new(
        Kind::Invalid,
        format!("{what} longer than {most} MiB; ask for fewer items, suggestions, columns or attributes"),
    )
}

/// Takes no more than the longest answer.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_json(media_type: &str) -> bool {
    media_type == "application/json"
        || media_type.starts_with("application/") && media_type.ends_with("+json")
}

/// Parses an object: 400 if the text is not JSON, 422 if it is not such an object.
pub(crate) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    match text.trim_ascii_start().first() {
        None => return Err(Problem::new(Kind::Malformed, "the body is empty; expected a JSON object")),
        Some(b'{') => {}
        // serde would read an array as the object's fields in order.
        Some(_) => return from_value(parse_value(text)?),
    }
    // Tracking the path of an error costs time, so valid bodies are parsed without it.
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).or_else(|error| {
        // A wrong type may end parsing before a syntax error, and serde_json reports some wrong types as syntax
        // errors. So the status depends on the text alone: 400 if it is not JSON.
        parse_value(text)?;
        let reason = error.inner();
        let detail =
            if reason.is_data() { explain_json_error(reason) } else { "this has the wrong type".into() };
        Err(Problem::invalid(vec![Finding::at(pointer(error.path()), detail)]))
    })?;
    deserializer.end().map_err(|error| malformed(text, &error))?;
    Ok(value)
}

/// Parses an object that is kept, so that no part of it may be lost.
pub(crate) fn parse_stored<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    let value = parse(text)?;
    match find_repeated_name(text) {
        Some(reason) => Err(Problem::invalid(vec![Finding::at("", reason)])),
        None => Ok(value),
    }
}

fn parse_value(text: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice(text).map_err(|error| malformed(text, &error))
}

/// Parses a list, whose items can be read one by one with [`from_value`].
pub(crate) fn parse_list(text: &[u8]) -> Result<Vec<Value>, Problem> {
    serde_json::from_slice(text).map_err(|error| malformed(text, &error))
}

pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    if !value.is_object() {
        let detail = format!("expected an object, found {}", describe_type(&value));
        return Err(Problem::invalid(vec![Finding::at("", detail)]));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        Problem::invalid(vec![Finding::at(pointer(error.path()), error.inner().to_string())])
    })
}

fn malformed(text: &[u8], error: &serde_json::Error) -> Problem {
    // serde_json calls such a text a malformed \u.
    if let Err(error) = std::str::from_utf8(text) {
        let detail = format!("the body cannot be read: {}", explain_utf8_error(error));
        return Problem::new(Kind::Malformed, detail);
    }
    let (line, column) = (error.line(), error.column());
    let detail =
        format!("the body cannot be read at line {line}, column {column}: {}", explain_json_error(error));
    Problem::new(Kind::Malformed, detail)
}

fn pointer(path: &Path) -> String {
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(format!("/{index}")),
            Segment::Map { key } => Some(step(key)),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}
