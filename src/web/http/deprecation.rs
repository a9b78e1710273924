//! Operations that will be removed. docs/api.md promises how long they stay.

use axum::http::{HeaderMap, HeaderValue, header};

use super::routes::Guards;

/// An operation that callers should stop using.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deprecated {
    /// In lower case.
    pub(crate) method: &'static str,
    /// Its path without the version.
    pub(crate) path: &'static str,
    /// Since when, in seconds since 1970.
    pub(crate) since: u32,
    /// When it may be removed, as HTTP writes dates: `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub(crate) sunset: &'static str,
}

/// The table of all of them.
pub(crate) const DEPRECATED: &[Deprecated] = &[];

/// Marks the operations of a table.
pub(crate) fn mark(guards: &mut Guards, table: &[Deprecated]) {
    for deprecated in table {
        let guard = guards.get_mut(&(deprecated.path.to_owned(), deprecated.method.to_owned()));
        guard.expect("a deprecated operation exists; this is a bug").deprecated = Some(*deprecated);
    }
}

impl Deprecated {
    /// Tells the caller, by RFC 9745 and RFC 8594.
    pub(crate) fn announce(&self, headers: &mut HeaderMap) {
        let since = HeaderValue::try_from(format!("@{}", self.since));
        headers.insert("deprecation", since.expect("a number is a header value; this is a bug"));
        headers.insert("sunset", HeaderValue::from_static(self.sunset));
        let policy = "</docs/api.md>; rel=\"deprecation\"; type=\"text/markdown\"";
        headers.append(header::LINK, HeaderValue::from_static(policy));
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, http::Request, middleware, response::Response, routing::get};
    use tower_service::Service;

    use super::*;
    use crate::web::http::routes::{Deadline, Guard};

    #[tokio::test]
    async fn callers_are_told_when_an_operation_ends() {
        let old = Deprecated {
            method: "get",
            path: "/old",
            since: 1_767_225_600,
            sunset: "Fri, 01 Jan 2027 00:00:00 GMT",
        };
        let guard = Guard { scope: None, deadline: Deadline::Limited, deprecated: None };
        let at = |path: &str| (path.to_owned(), "get".to_owned());
        let mut guards = Guards::from([(at("/old"), guard), (at("/new"), guard)]);
        mark(&mut guards, &[old]);
        assert!(guards[&at("/new")].deprecated.is_none());
        let marked = guards[&at("/old")].deprecated.expect("it is in the table");
        let announce = middleware::map_response(move |mut answer: Response| async move {
            marked.announce(answer.headers_mut());
            answer
        });
        let mut router: Router = Router::new().route("/old", get(async || "still here")).layer(announce);
        let answer = router.call(Request::get("/old").body(Body::empty()).unwrap()).await.unwrap();
        let header = |name| answer.headers()[name].to_str().unwrap();
        assert_eq!(header("deprecation"), "@1767225600");
        assert_eq!(header("sunset"), "Fri, 01 Jan 2027 00:00:00 GMT");
        assert_eq!(header("link"), "</docs/api.md>; rel=\"deprecation\"; type=\"text/markdown\"");
    }
}
