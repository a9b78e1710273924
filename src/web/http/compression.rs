//! Compressed answers, as gzip or Brotli, for callers that accept them.
//!
//! Forms have tokens under a new mask in each answer, so that the length of a page tells nothing about them.

use std::future::{Ready, ready};

use axum::{
    body::{Body, HttpBody, to_bytes},
    extract::Request,
    http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version, header},
    middleware::{self, MapRequestLayer},
    response::Response,
};
use tower_http::{
    CompressionLevel,
    compression::{
        CompressionLayer,
        predicate::{And, Predicate, SizeAbove},
    },
};

/// Shorter answers fit into a packet as they are.
const LEAST: u64 = 1024;

/// Answers up to this length are compressed at once.
const SHORT: usize = 256 << 10;

/// What the layer asks of an answer.
type IsWorthIt = And<SizeAbove, fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool>;

/// Allows plain answers in the request.
type AllowPlain = MapRequestLayer<fn(Request) -> Ready<Request>, (), (Request,)>;

pub(crate) fn layer() -> (AllowPlain, CompressionLayer<IsWorthIt>) {
    let allow: fn(Request) -> Ready<Request> = |mut request| {
        allow_plain(request.headers_mut());
        ready(request)
    };
    let is_worth_it =
        SizeAbove::new(LEAST).and(is_text as fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool);
    let compress = CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(is_worth_it);
    (middleware::map_request(allow), compress)
}

/// The length of an answer before it is compressed, in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainLength(usize);

impl PlainLength {
    pub(crate) fn note(response: &mut Response) {
        let length = response.body().size_hint().exact().filter(|length| *length >= LEAST);
        if let Some(length) = length.and_then(|length| usize::try_from(length).ok()) {
            response.extensions_mut().insert(Self(length));
        }
    }

    pub(crate) fn of(response: &Response) -> Option<usize> {
        response.extensions().get().map(|Self(length)| *length)
    }
}

/// Compresses a short answer whole. The layer compresses as the caller takes the answer, with a state of a quarter of a
/// megabyte meanwhile.
pub(crate) async fn compress_short(response: Response) -> Response {
    let is_short = PlainLength::of(&response).is_some_and(|length| length <= SHORT);
    if !is_short || !response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let (head, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.expect("bytes can be compressed; this is a bug");
    Response::from_parts(head, Body::from(bytes))
}

/// Makes a refusal of plain answers the lowest preference for them, as RFC 9110, section 12.5.3, allows. The layer would
/// answer 406 after the handler has changed something.
fn allow_plain(headers: &mut HeaderMap) {
    for (name, value) in headers {
        if *name == header::ACCEPT_ENCODING
            && let Ok(text) = value.to_str()
            && text.split(',').any(refuses_plain)
        {
            let allow = |item| if refuses_plain(item) { "identity;q=0.001" } else { item };
            let allowed: Vec<&str> = text.split(',').map(allow).collect();
            *value = HeaderValue::try_from(allowed.join(","))
                .expect("a part of a header's text is one; this is a bug");
        }
    }
}

/// Whether an item of `Accept-Encoding` is `identity;q=0` or `*;q=0`.
fn refuses_plain(item: &str) -> bool {
    let Some((coding, weight)) = item.split_once(';') else { return false };
    let coding = coding.trim();
    (coding == "*" || coding.eq_ignore_ascii_case("identity"))
        && weight.trim().strip_prefix(['q', 'Q']).is_some_and(|rest| rest.trim_matches(['0', '.']) == "=")
}

/// Whether an answer without a strong `ETag` is compressed for callers that accept it.
pub(crate) fn is_compressible(media_type: &str, length: usize) -> bool {
    length as u64 >= LEAST && is_text_type(media_type)
}

/// Not answers with a strong `ETag`, which stands for these very bytes and comes back in `If-Match`, and not JSON Lines,
/// whose callers read each line as it comes.
fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_strong = text(header::ETAG).is_some_and(|tag| !tag.starts_with("W/"));
    !is_strong && text(header::CONTENT_TYPE).is_some_and(is_text_type)
}

fn is_text_type(media_type: &str) -> bool {
    let media_type = media_type.split(';').next().unwrap_or_default();
    match media_type.trim().split_once('/') {
        Some(("text", _)) => true,
        Some(("application", kind)) => kind == "json" || kind.ends_with("+json") || kind == "javascript",
        Some(("image", kind)) => kind == "svg+xml",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_a_strong_tag_are_compressed() {
        let compressed = |media_type: &'static str, tag: Option<&'static str>| {
            let tag = tag.map(|tag| (header::ETAG, HeaderValue::from_static(tag)));
            let headers =
                tag.into_iter().chain([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))]);
            is_text(StatusCode::OK, Version::HTTP_11, &headers.collect(), &Extensions::new())
        };
        for text in [
            "text/html; charset=utf-8",
            "text/csv",
            "application/json",
            "application/problem+json",
            "image/svg+xml",
        ] {
            assert!(compressed(text, None) && compressed(text, Some("W/\"1\"")), "{text}");
            assert!(!compressed(text, Some("\"1\"")), "{text}");
        }
        for other in ["application/x-ndjson", "image/webp", "application/octet-stream", ""] {
            assert!(!compressed(other, None), "{other}");
        }
    }

    #[test]
    fn plain_answers_are_never_refused() {
        for (asked, allowed) in [
            ("gzip, br;q=0.5", "gzip, br;q=0.5"),
            ("identity", "identity"),
            ("identity;q=0.001", "identity;q=0.001"),
            ("gzip;q=0", "gzip;q=0"),
            ("identity;q=0", "identity;q=0.001"),
            ("*;q=0", "identity;q=0.001"),
            ("gzip, Identity ; Q=0.000,*;q=0.", "gzip,identity;q=0.001,identity;q=0.001"),
        ] {
            let mut headers =
                HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(asked))]);
            allow_plain(&mut headers);
            assert_eq!(headers[header::ACCEPT_ENCODING], allowed, "{asked}");
        }
    }
}
