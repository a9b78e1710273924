//! What browsers are told not to do with anything that comes from here.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

/// Nothing but our own files, no inline script or style, no frame around it. Articles' photos may be a shop's.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
                      img-src 'self' https: data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // A sign-in link must not travel on in the address of the page that somebody came from.
    (header::REFERRER_POLICY, "same-origin"),
];

pub(crate) fn harden(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
