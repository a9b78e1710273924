//! Security headers for browsers.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

/// Only the service's own files, no inline scripts or styles, no framing. Photos of articles may come from the shop.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
                      img-src 'self' https: data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // The Referer header must not reveal a sign-in link to another site.
    (header::REFERRER_POLICY, "same-origin"),
];

pub(crate) fn harden(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
