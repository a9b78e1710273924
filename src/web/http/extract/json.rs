//! Bodies in JSON, in and out.

use axum::{
    extract::{FromRef, FromRequest, Request},
    http::header,
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::{Finding, Incoming, Kind, Problem, media_type};
use crate::{config::Limits, files::explain_json_error, util::json_pointer::step};

/// A JSON object as a request's body; anything as an answer's.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// A JSON text as a request's body, for a handler that takes more than one shape: see [`parse`].
#[derive(Debug)]
pub(crate) struct JsonText(pub(crate) Vec<u8>);

impl<S, T> FromRequest<S> for Json<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
    Limits: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let JsonText(text) = JsonText::from_request(request, state).await?;
        parse(&text).map(Self)
    }
}

impl<S> FromRequest<S> for JsonText
where
    S: Send + Sync,
    Limits: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let media_type = media_type(request.headers());
        if !media_type.as_deref().is_some_and(is_json) {
            let found = media_type.map_or("none".into(), |found| format!("{found:?}"));
            let detail = format!("the Content-Type must be application/json, found {found}");
            return Err(Problem::new(Kind::UnsupportedMediaType, detail));
        }
        let limits = Limits::from_ref(state);
        Incoming::new(request, limits.body_bytes).whole(limits.body()).await.map(Self)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        /// About what a completion takes: growing to it bit by bit copies it several times.
        const USUAL: usize = 8 * 1024;
        let mut json = Vec::with_capacity(USUAL);
        match serde_json::to_writer(&mut json, &self.0) {
            Ok(()) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
            Err(error) => Problem::inside(Kind::Internal, error).into_response(),
        }
    }
}

fn is_json(media_type: &str) -> bool {
    media_type == "application/json"
        || media_type.starts_with("application/") && media_type.ends_with("+json")
}

/// An object from its JSON text: 400 where the text is no JSON, 422 where it is not that object.
pub(crate) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    match text.trim_ascii_start().first() {
        None => return Err(Problem::new(Kind::Malformed, "the body is empty; expected a JSON object")),
        Some(b'{') => {}
        // serde would take a list for an object whose fields come in order.
        Some(_) => return from_value(whole(text)?),
    }
    // Where it is wrong costs a path to keep, which what is right need not pay for.
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).or_else(|error| {
        // A wrong type may end the reading before what is no JSON, and serde_json calls some wrong types
        // wrong syntax: the text alone decides which of the two it is.
        whole(text)?;
        let reason = error.inner();
        let detail =
            if reason.is_data() { explain_json_error(reason) } else { "this has the wrong type".into() };
        Err(Problem::invalid(vec![Finding::at(pointer(error.path()), detail)]))
    })?;
    deserializer.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

fn whole(text: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice(text).map_err(|error| malformed(&error))
}

/// A list from its JSON text, each of its items to be read apart by [`from_value`].
pub(crate) fn parse_list(text: &[u8]) -> Result<Vec<Value>, Problem> {
    serde_json::from_slice(text).map_err(|error| malformed(&error))
}

/// An object that was read as JSON before.
pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    if !value.is_object() {
        let detail = format!("expected an object, found {}", kind(&value));
        return Err(Problem::invalid(vec![Finding::at("", detail)]));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        Problem::invalid(vec![Finding::at(pointer(error.path()), error.inner().to_string())])
    })
}

fn malformed(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    let detail =
        format!("the body cannot be read at line {line}, column {column}: {}", explain_json_error(error));
    Problem::new(Kind::Malformed, detail)
}

/// What a value is, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(rename = "inner")]
        _inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object with a number \"n\"")]
    struct Inner {
        #[serde(rename = "n")]
        _n: u32,
    }

    fn said(text: &str) -> (u16, Option<String>, String) {
        let problem = parse::<Outer>(text.as_bytes()).unwrap_err();
        let told = problem.told();
        (told.0.status(), told.2.first().and_then(|finding| finding.pointer.clone()), told.1.to_owned())
    }

    #[test]
    fn a_wrong_body_says_where() {
        let at = |pointer: &str| Some(pointer.to_owned());
        let (status, place, detail) = said(r#"{"inner": [{"n": 1}, {"n": "x"}]}"#);
        assert_eq!((status, place), (422, at("/inner/1/n")));
        assert_eq!(detail, "invalid type: string \"x\", expected u32");
        let (status, place, detail) = said(r#"{"inner": [], "more": 1}"#);
        assert_eq!((status, place), (422, at("/more")), "{detail}");
        assert_eq!(detail, "unknown field `more`, expected `inner`");
        assert_eq!(said("{}"), (422, at(""), "missing field `inner`".into()));
        let (status, place, detail) = said(r#"{"inner": [7]}"#);
        assert_eq!((status, place), (422, at("/inner/0")));
        assert_eq!(detail, "invalid type: integer `7`, expected an object with a number \"n\"");
        assert_eq!(said(" [[]]"), (422, at(""), "expected an object, found a list".into()));
        assert_eq!(said("null").2, "expected an object, found null");
    }

    #[test]
    fn what_is_no_json_says_so() {
        for (text, detail) in [
            ("", "the body is empty; expected a JSON object"),
            (
                "{\"inner\":\n [,]}",
                "the body cannot be read at line 2, column 3: not JSON: expected a value: a string in double \
                 quotes, a number, true, false, null, a list or an object",
            ),
            (
                "{\"inner\": []} {}",
                "the body cannot be read at line 1, column 15: not JSON: unexpected text after the end",
            ),
            (
                "{\"inner\\ud800\": []}",
                "the body cannot be read at line 1, column 14: not JSON: a \\u in a string is not a whole character",
            ),
            ("[1", "the body cannot be read at line 1, column 2: not JSON: it ends too early"),
        ] {
            assert_eq!(said(text), (400, None, detail.into()), "{text}");
        }
        assert_eq!(said(&"[".repeat(100_000)).0, 400);
        assert_eq!(said(&format!("{{\"inner\":{}", "[".repeat(100_000))).0, 400);
        assert_eq!(said("{\"inner\": [NaN]}").0, 400);
        assert_eq!(said("{\"inner\": 7, \"more\": \"\\ud800\"}").0, 400, "whatever was wrong before it");
    }
}
