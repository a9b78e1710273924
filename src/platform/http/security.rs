//! Security headers for browsers.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

/// Only the service's own files, no inline scripts or styles, no framing. Photos of articles may come from the shop.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
                      img-src 'self' https: data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // The Referer header must not reveal a customer's id to another site.
    (header::REFERRER_POLICY, "same-origin"),
    // No cache keeps an answer for longer than its session or key. Public files say otherwise.
    (header::CACHE_CONTROL, "no-store"),
];

/// For a year, browsers use https only, whatever a link says.
const STRICT_TRANSPORT: (HeaderName, &str) = (header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");

pub(crate) fn harden(mut response: Response, https: bool) -> Response {
    // With the others; a map that grows hashes its names again.
    response.headers_mut().reserve(12);
    for (name, value) in HEADERS.into_iter().chain(https.then_some(STRICT_TRANSPORT)) {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
