//! The query of a request.

use axum::{
    extract::FromRequestParts,
    http::{Uri, request::Parts},
};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use crate::platform::http::{Finding, Kind, Problem};

#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// A query that also has conditions, each a parameter `where=attribute:value`.
#[derive(Debug)]
pub(crate) struct ConditionalQuery<T> {
    pub(crate) query: T,
    /// Attributes and values.
    pub(crate) conditions: Vec<(String, String)>,
}

/// The most conditions: each is looked for in every row.
const MOST_CONDITIONS: usize = 16;

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for ConditionalQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let (conditions, others) = split(&parts.uri, "where")?;
        let conditions = read_conditions(conditions)?;
        Ok(Self { query: parse(&others, ", or `where`")?, conditions })
    }
}

/// Attributes and values, each from a text `attribute:value`.
pub(crate) fn read_conditions(texts: Vec<String>) -> Result<Vec<(String, String)>, Problem> {
    let refuse = |detail| Problem::invalid(vec![Finding::parameter("where", detail)]);
    if texts.len() > MOST_CONDITIONS {
        let found = texts.len();
        return Err(refuse(format!("at most {MOST_CONDITIONS} conditions can be given, found {found}")));
    }
    let condition = |text: String| match text.split_once(':') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(refuse(format!("expected attribute:value, as in colour:navy, found {text:?}"))),
    };
    texts.into_iter().map(condition).collect()
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parse(read(&parts.uri)?, "").map(Self)
    }
}

/// The values of a parameter that may be repeated, and the query of the others.
pub(crate) fn split(uri: &Uri, repeated: &str) -> Result<(Vec<String>, String), Problem> {
    let pairs = form_urlencoded::parse(read(uri)?.as_bytes());
    let (found, others): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| name == repeated);
    let others = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    Ok((found.into_iter().map(|(_, value)| value.into_owned()).collect(), others))
}

/// The query of an address, with its percent-encoding.
fn read(uri: &Uri) -> Result<&str, Problem> {
    let query = uri.query().unwrap_or_default();
    let refuse = |_| Problem::new(Kind::Malformed, "the query is not valid UTF-8 after percent-decoding");
    percent_decode_str(query).decode_utf8().map(|_| query).map_err(refuse)
}

/// `others` is appended to the expected parameters: those that the extractor reads itself.
pub(crate) fn parse<T: DeserializeOwned>(query: &str, others: &str) -> Result<T, Problem> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs)).map_err(|error| {
        let (path, mut detail) = (error.path().to_string(), error.inner().to_string());
        if detail.starts_with("unknown field") {
            detail += others;
        }
        let name = if path == "." { name_in(&detail).to_owned() } else { path };
        Problem::invalid(vec![Finding::parameter(name, detail)])
    })
}

/// The parameter that an error of serde about the whole query names, if it does.
fn name_in(detail: &str) -> &str {
    let rest = detail.strip_prefix("duplicate field `").or_else(|| detail.strip_prefix("missing field `"));
    rest.and_then(|rest| rest.strip_suffix('`')).unwrap_or_default()
}
