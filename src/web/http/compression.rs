//! Compressed answers, as gzip or Brotli, for callers that accept them.
//!
//! Forms have tokens under a new mask in each answer, so that the length of a page tells nothing about them.

use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version, header};
use tower_http::{
    CompressionLevel,
    compression::{
        CompressionLayer,
        predicate::{And, Predicate, SizeAbove},
    },
};

/// Shorter answers fit into a packet as they are.
const LEAST: u64 = 1024;

/// What the layer asks of an answer.
type IsWorthIt = And<SizeAbove, fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool>;

pub(crate) fn layer() -> CompressionLayer<IsWorthIt> {
    let is_worth_it =
        SizeAbove::new(LEAST).and(is_text as fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(is_worth_it)
}

/// Not answers with a strong `ETag`, which stands for these very bytes and comes back in `If-Match`, and not JSON Lines,
/// whose callers read each line as it comes.
fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_strong = text(header::ETAG).is_some_and(|tag| !tag.starts_with("W/"));
    let media_type = text(header::CONTENT_TYPE).and_then(|value| value.split(';').next()).unwrap_or_default();
    let is_text = match media_type.trim().split_once('/') {
        Some(("text", _)) => true,
        Some(("application", kind)) => kind == "json" || kind.ends_with("+json") || kind == "javascript",
        Some(("image", kind)) => kind == "svg+xml",
        _ => false,
    };
    is_text && !is_strong
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
}
