//! Compressed answers, as gzip, for callers that accept it.
//!
//! Forms have tokens under a new mask in each answer, so that the length of a page tells nothing about them.

use std::future::ready;

use axum::{
    body::{Body, HttpBody, to_bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use tower::{Service, service_fn};
use tower_http::{
    CompressionLevel,
    compression::{Compression, predicate::SizeAbove},
};

use super::serve::{Amount, Work};

/// Shorter answers fit into a packet as they are.
const LEAST: u64 = 1024;

/// Longer answers take milliseconds.
const LITTLE: u64 = 64 << 10;

/// Answers up to this length are compressed whole. Longer ones are compressed as the caller takes them, with a state of a
/// quarter of a megabyte.
const SHORT: usize = 256 << 10;

/// The length of an answer before it is compressed as it is sent, in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainLength(pub(crate) usize);

/// The accepted encodings. A refusal of plain answers becomes the lowest preference for them, as RFC 9110, section 12.5.3,
/// allows: 406 would come after the handler has changed something.
pub(crate) fn accepted(headers: &HeaderMap) -> Option<HeaderValue> {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let allow = |item| if refuses_plain(item) { "identity;q=0.001" } else { item };
    let items: Vec<&str> = values.flat_map(|text| text.split(',')).map(allow).collect();
    let accepted = || HeaderValue::try_from(items.join(",")).expect("parts of headers are one");
    (!items.is_empty()).then(accepted)
}

pub(crate) async fn compress(accepted: Option<HeaderValue>, mut response: Response, work: &Work) -> Response {
    let length = response.body().size_hint().exact();
    if length.is_some_and(|length| length < LEAST) || !is_text(response.headers()) {
        return response;
    }
    let Some(accepted) = accepted else {
        response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
        return response;
    };
    let amount = if length.is_some_and(|length| length <= LITTLE) { Amount::Little } else { Amount::Much };
    work.run(amount, compress_for(accepted, response, length)).await
}

async fn compress_for(accepted: HeaderValue, response: Response, length: Option<u64>) -> Response {
    let mut request = Request::new(Body::empty());
    request.headers_mut().insert(header::ACCEPT_ENCODING, accepted);
    let mut plain = Some(response);
    let plain = service_fn(|_| ready(plain.take().ok_or("asked twice")));
    let compression = Compression::new(plain).quality(CompressionLevel::Fastest);
    let compressed = compression.compress_when(SizeAbove::new(0)).call(request).await;
    let (mut head, body) = compressed.expect("it is asked once").into_parts();
    let length = length.and_then(|length| usize::try_from(length).ok());
    if !head.headers.contains_key(header::CONTENT_ENCODING) || length.is_none_or(|length| length > SHORT) {
        if let Some(length) = length {
            head.extensions.insert(PlainLength(length));
        }
        return Response::from_parts(head, Body::new(body));
    }
    let bytes = to_bytes(Body::new(body), usize::MAX).await.expect("bytes can be compressed");
    Response::from_parts(head, Body::from(bytes))
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
fn is_text(headers: &HeaderMap) -> bool {
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
            is_text(&headers.collect())
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
