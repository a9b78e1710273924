//! Pages of other sites that may call the service from a browser (CORS). None may unless a setting names its origin. Their
//! requests carry no cookie, so no answer depends on a session, and each needs an API key.
//!
//! Browsers ask without a key whether a page may call. Every page may call what publishable keys open, and read the answer; the
//! key's origins decide whether that is a refusal (`keys`).

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, header},
    response::Response,
};

use super::{Kind, Problem};

/// Of all routes; a path that does not take one says so when it is asked.
pub(crate) const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// Headers that scripts may send and read besides those of every page.
const SENT: &str = "authorization, content-type, content-encoding, if-match, if-none-match, mcp-method, mcp-name, \
                    mcp-protocol-version, traceparent, x-api-key, x-request-id";
const READ: &str = "etag, location, retry-after, server-timing, x-request-id";
/// Seconds for which a browser may remember the answer to its question.
const REMEMBERED: &str = "3600";

/// Origins such as `https://shop.example`.
#[derive(Debug, Clone, Default)]
pub struct CrossOrigins(Vec<String>);

impl CrossOrigins {
    pub fn new(origins: impl IntoIterator<Item = String>) -> Self {
        Self(origins.into_iter().collect())
    }

    fn names(&self, origin: &HeaderValue) -> bool {
        self.0.iter().any(|named| named.as_bytes() == origin.as_bytes())
    }

    /// Refuses requests of other pages, for what must not even be sent from there.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let foreign = headers.get_all(header::ORIGIN).iter().find(|origin| !self.names(origin));
        let refuse = |origin| {
            let detail = format!(
                "the request was sent by a page with the Origin {origin:?}; only programs and pages of the origins in \
                 access.cross_origins may send it"
            );
            Err(Problem::new(Kind::Forbidden, detail))
        };
        foreign.map_or(Ok(()), refuse)
    }

    /// The answer's headers for pages of other sites; none if none may call.
    /// `has_key`: whether a page's key is sent.
    pub(crate) fn answer(
        &self,
        request: &Request,
        is_for_pages: bool,
        has_key: impl FnOnce(&HeaderMap) -> bool,
    ) -> Option<CrossOrigin> {
        if self.0.is_empty() && !is_for_pages {
            return None;
        }
        let origin = request.headers().get(header::ORIGIN);
        let asks_first = request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        let by_key = is_for_pages && (asks_first || has_key(request.headers()));
        let is_admitted = |origin: &&HeaderValue| by_key || self.names(origin);
        Some(CrossOrigin { admitted: origin.filter(is_admitted).cloned(), asks_first })
    }
}

#[derive(Debug)]
pub(crate) struct CrossOrigin {
    /// The origin of the page, if it may read the answer.
    admitted: Option<HeaderValue>,
    /// The browser asks whether the page may send a request.
    asks_first: bool,
}

impl CrossOrigin {
    pub(crate) fn put_on(self, response: &mut Response) {
        let headers = response.headers_mut();
        // On the answers to others, too: a cache must not give them to an admitted page.
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        let Some(origin) = self.admitted else { return };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if !self.asks_first {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
            return;
        }
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT));
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED));
    }
}
