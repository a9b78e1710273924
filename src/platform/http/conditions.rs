//! Conditional requests (RFC 9110, section 13): `ETag`, `If-Match` and `If-None-Match`.

use axum::{
    body::Bytes,
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use utoipa::IntoParams;

use super::{Finding, Kind, Problem, compression};
use crate::platform::db::{ChangeError, Expected, Version, Versions};

/// The versions that a request expects of what it reads or changes.
#[derive(Debug, Clone)]
pub(crate) struct Conditions(pub(crate) Expected);

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only the description of the headers")]
pub(crate) struct ReadHeaders {
    /// Versions that the caller has: if it is one of them, the answer is 304 without a body.
    #[param(rename = "If-None-Match", nullable = false, pattern = r#"^(\*|[ ,]*((W/)?"[ !#-~]*"( *,[ ,]*(W/)?"[ !#-~]*")*[ ,]*)?)$"#, example = json!("\"3f2a9c41d07e5b6812ab34cd\""))]
    if_none_match: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only the description of the headers")]
pub(crate) struct ChangeHeaders {
    /// The `ETag` that must be current, or `*` for any.
    #[param(rename = "If-Match", nullable = false, pattern = r#"^(\*|[ ,]*((W/)?"[ !#-~]*"( *,[ ,]*(W/)?"[ !#-~]*")*[ ,]*)?)$"#, example = json!("*"))]
    if_match: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only the description of the headers")]
pub(crate) struct PutHeaders {
    /// The `ETag` that must be current, or `*` for any: nothing is added.
    #[param(rename = "If-Match", nullable = false, pattern = r#"^(\*|[ ,]*((W/)?"[ !#-~]*"( *,[ ,]*(W/)?"[ !#-~]*")*[ ,]*)?)$"#, example = json!("*"))]
    if_match: Option<String>,
    /// `*` only adds, and replaces nothing; a version replaces only others.
    #[param(rename = "If-None-Match", nullable = false, pattern = r#"^(\*|[ ,]*((W/)?"[ !#-~]*"( *,[ ,]*(W/)?"[ !#-~]*")*[ ,]*)?)$"#, example = json!("\"3f2a9c41d07e5b6812ab34cd\""))]
    if_none_match: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Conditions {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let read = |name| versions(&parts.headers, &name);
        Ok(Self(Expected { one_of: read(header::IF_MATCH)?, none_of: read(header::IF_NONE_MATCH)? }))
    }
}

impl Conditions {
    /// Whether the caller of a GET already has this version.
    ///
    /// # Errors
    /// If the caller wants another version (`If-Match`).
    pub(crate) fn has(&self, current: &Version) -> Result<bool, Problem> {
        if self.0.one_of.as_ref().is_some_and(|versions| !versions.contain(Some(current))) {
            return Err(differs(Some(current)));
        }
        Ok(self.0.none_of.as_ref().is_some_and(|versions| versions.contain(Some(current))))
    }
}

/// A document or a picture, which callers may keep.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    media_type: &'static str,
    text: Bytes,
    version: Version,
}

impl Document {
    pub(crate) fn new(media_type: &'static str, text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let version = Version::of_text(&text);
        Self::of_version(media_type, text, version)
    }

    /// One whose text may differ where its version is the same.
    pub(crate) fn of_version(media_type: &'static str, text: impl Into<Bytes>, version: Version) -> Self {
        Self { media_type, text: text.into(), version }
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn version(&self) -> &Version {
        &self.version
    }

    /// The document, or 304 if the caller has it. `caching` is its `Cache-Control`.
    pub(crate) fn answer(
        &self,
        caching: impl Into<String>,
        conditions: &Conditions,
    ) -> Result<Response, Problem> {
        // Weak, since the same document may be compressed.
        let tag = format!("W/\"{}\"", self.version);
        let headers = [(header::CACHE_CONTROL, caching.into()), (header::ETAG, tag)];
        if conditions.has(&self.version)? {
            let varies = compression::is_compressible(self.media_type, self.text.len());
            let vary = varies.then_some([(header::VARY, "accept-encoding")]);
            return Ok((StatusCode::NOT_MODIFIED, vary, headers).into_response());
        }
        Ok((headers, [(header::CONTENT_TYPE, self.media_type)], self.text.clone()).into_response())
    }
}

/// Callers ask each time whether it has changed.
pub(crate) const ASK_AGAIN: &str = "no-cache";

pub(crate) fn etag(version: &Version) -> [(HeaderName, HeaderValue); 1] {
    let value = HeaderValue::try_from(format!("\"{version}\""));
    [(header::ETAG, value.expect("a version has only hexadecimal digits"))]
}

pub(crate) fn differs(current: Option<&Version>) -> Problem {
    let found = match current {
        Some(current) => format!("the current ETag is \"{current}\""),
        None => "it does not exist, or another caller has just added it".to_owned(),
    };
    let detail =
        format!("If-Match or If-None-Match expects another version: {found}; GET it and decide again");
    Problem::new(Kind::PreconditionFailed, detail)
}

/// The problem of a change that was not made; `unknown` is that of a row that is missing.
pub(crate) fn unchanged(error: ChangeError, unknown: impl FnOnce() -> Problem) -> Problem {
    match error {
        ChangeError::Differs(current) => differs(current.as_ref()),
        ChangeError::Store(error) => error.into(),
        ChangeError::Missing | ChangeError::Invalid(_) => unknown(),
    }
}

/// The entity tags of a header, or `*`.
fn versions(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Versions>, Problem> {
    let refuse = || {
        let detail = "expected * or entity tags in double quotes, as an ETag header has them".to_owned();
        Problem::invalid(vec![Finding::parameter(name.as_str(), detail)])
    };
    let mut found = Vec::new();
    for value in headers.get_all(name) {
        let text = value.to_str().map_err(|_| refuse())?;
        if text.trim() == "*" {
            return Ok(Some(Versions::Any));
        }
        for (weak, tag) in entity_tags(text).ok_or_else(refuse)? {
            // If-Match compares strongly: a weak tag never matches.
            let matches = !weak || *name == header::IF_NONE_MATCH;
            found.push(if matches { tag.to_owned() } else { format!("W/\"{tag}\"") });
        }
    }
    // An empty list names no version: If-Match is then never met, If-None-Match always.
    Ok(headers.contains_key(name).then_some(Versions::OneOf(found)))
}

/// The tags of a list without their quotes, each with whether it is weak.
fn entity_tags(list: &str) -> Option<Vec<(bool, &str)>> {
    let mut found = Vec::new();
    let mut rest = list.trim_start_matches([',', ' ', '\t']);
    while !rest.is_empty() {
        let strong = rest.strip_prefix("W/").unwrap_or(rest);
        let (tag, after) = strong.strip_prefix('"')?.split_once('"')?;
        found.push((strong != rest, tag));
        let after = after.trim_start();
        if !after.is_empty() && !after.starts_with(',') {
            return None;
        }
        rest = after.trim_start_matches([',', ' ', '\t']);
    }
    Some(found)
}
