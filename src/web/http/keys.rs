//! The layer in front of every API operation: it checks the API key, identifies the caller and applies the deadline.
//!
//! Each route declares its scope and its pace (`routes`); `access` decides whether a key is valid. An invalid key
//! appears in no answer and in no log.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{FromRequestParts, MatchedPath, Request, State},
    http::{HeaderMap, Method, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    Kind, Problem,
    deadline::limit,
    peer::Peer,
    routes::{Deadline, Guard, Guards},
    streams::Streams,
};
use crate::{
    config::Limits,
    service::access::{Access, Key, Scope},
    store::{Actor, ApiKey, Author},
    util::clock::Clock,
};

/// The state of the layer.
#[derive(Debug)]
pub(crate) struct Gate {
    access: Access,
    clock: Clock,
    limits: Limits,
    guards: Guards,
    streams: Streams,
}

impl Gate {
    pub(crate) fn new(access: Access, clock: Clock, limits: Limits, guards: Guards) -> Self {
        Self { access, clock, limits, guards, streams: Streams::new(limits) }
    }

    fn guard(&self, request: &Request) -> Guard {
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
        // The route for GET also answers HEAD.
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let guard = self.guards.get(&(path.to_owned(), method.as_str().to_ascii_lowercase()));
        // A method that the path does not take is answered with 405, whatever the key.
        guard.copied().unwrap_or(Guard { scope: None, deadline: Deadline::Limited })
    }

    /// The request's key, if it has one, or the answer that refuses the request.
    async fn admit(
        &self,
        scope: Scope,
        key: Option<String>,
        source: Source,
    ) -> Result<Option<ApiKey>, Response> {
        let Some(key) = key else {
            return match source {
                Source::OwnMachine if !self.access.requires_key() => Ok(None),
                source => Err(refuse_missing_key(scope, source)),
            };
        };
        let now = self.clock.now().into();
        let found = match Key::parse(&key) {
            Some(key) => {
                self.access.key(&key, now).await.map_err(|error| Problem::from(error).into_response())?
            }
            None => None,
        };
        let Some(key) = found else { return Err(refuse_invalid_key()) };
        if !key.scopes.iter().any(|held| held == scope.as_str()) {
            return Err(refuse_scope(&key, scope));
        }
        match self.access.check_rate(key.id, self.limits.key_rate, Instant::now()) {
            Ok(()) => Ok(Some(key)),
            Err(wait) => Err(refuse_rate(self.limits.key_rate, wait)),
        }
    }

    async fn pass(&self, guard: Guard, mut request: Request, next: Next) -> Response {
        let key = match guard.scope {
            None => Ok(None),
            Some(scope) => {
                let key = find_key(request.headers()).map(ToOwned::to_owned);
                let source = Source::from_request(&request);
                self.admit(scope, key, source).await
            }
        };
        match key {
            Ok(key) => {
                let actor = key.map_or(Actor::Service, |key| Actor::Key(key.id));
                let peer = Peer::ip(request.extensions());
                request.extensions_mut().insert(Caller(Author { actor, peer }));
                let answer = next.run(request);
                if guard.deadline == Deadline::Stream { self.streams.run(answer).await } else { answer.await }
            }
            Err(refusal) => refusal,
        }
    }
}

/// The layer. A key that is sent is checked even where none is required, so that a caller learns about an invalid key
/// before the service moves to an address where keys are required.
pub(crate) async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let guard = gate.guard(&request);
    let answer = gate.pass(guard, request, next);
    match guard.deadline {
        Deadline::Limited => limit(gate.limits, answer).await,
        Deadline::Stream | Deadline::Unlimited => answer.await,
    }
}

/// Where a request without a key comes from. Only programs on this machine need no key, but browsers that follow
/// another site's links and proxies that serve other machines reach the same port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    OwnMachine,
    /// It has a proxy's header.
    Proxy,
    /// Its host is a name that anyone's DNS could point at this machine.
    OtherName,
    /// A page of another site sent it, and its method makes changes.
    OtherSite,
}

impl Source {
    fn from_request(request: &Request) -> Self {
        let headers = request.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if ["forwarded", "x-forwarded-for", "x-forwarded-host"].iter().any(|name| headers.contains_key(*name))
        {
            return Self::Proxy;
        }
        let host = text("host").or_else(|| request.uri().host()).unwrap_or("localhost");
        if !is_own_name(host) {
            return Self::OtherName;
        }
        let site = text("sec-fetch-site").unwrap_or("none");
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
        if changes && site != "none" && site != "same-origin" { Self::OtherSite } else { Self::OwnMachine }
    }

    /// Why the request needs a key, to follow the detail of the problem.
    fn explanation(self) -> &'static str {
        match self {
            Self::OwnMachine => "",
            Self::Proxy => {
                " Only programs on this machine need no key, and this request came through a proxy."
            }
            Self::OtherName => {
                " Only programs on this machine need no key, and this request's host is neither localhost nor an IP \
                 address."
            }
            Self::OtherSite => {
                " Only programs on this machine need no key, and a page of another site sent this request."
            }
        }
    }
}

/// Whether a host such as `localhost:8080`, `127.0.0.1` or `[::1]:8080` cannot be redirected by DNS.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// The caller of an API operation, for the audit log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller(pub(crate) Author);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(*parts.extensions.get().expect("the layer runs before every operation; this is a bug"))
    }
}

/// Adds each operation's security requirements to the document. If keys are not required, no key is one of them.
pub(crate) fn describe(document: &mut Value, guards: &Guards, required: bool) {
    document["components"]["securitySchemes"] = json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, `Authorization: Bearer atl_…`"},
        "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key by itself"},
    });
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let guard = guards.get(&(path.clone(), method.clone()));
            let Some(scope) = guard.and_then(|guard| guard.scope) else { continue };
            let no_key = (!required).then(|| json!({}));
            let key = [json!({"bearer": [scope.as_str()]}), json!({"header": [scope.as_str()]})];
            operation["security"] = no_key.into_iter().chain(key).collect();
        }
    }
}

fn find_key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let text = value.to_str().ok()?;
        let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    // A header that is not text is an invalid key.
    bearer.or_else(|| headers.get("x-api-key").map(|value| value.to_str().unwrap_or_default()))
}

fn refuse_missing_key(scope: Scope, source: Source) -> Response {
    let detail = format!(
        "an API key with the scope {scope} is required: send it as `Authorization: Bearer atl_…` or as `X-API-Key`; \
         an admin creates keys at /access/keys.{}",
        source.explanation()
    );
    refuse(Kind::Key, detail, "Bearer realm=\"atelier\"".to_owned())
}

fn refuse_invalid_key() -> Response {
    let detail = "the API key is unknown, has expired or was revoked; ask an admin for another";
    refuse(Kind::Key, detail.to_owned(), "Bearer realm=\"atelier\", error=\"invalid_token\"".to_owned())
}

fn refuse_scope(key: &ApiKey, scope: Scope) -> Response {
    let held = if key.scopes.is_empty() { "none".to_owned() } else { key.scopes.join(", ") };
    let detail = format!(
        "an API key with the scope {scope} is required, this one has {held}; ask an admin for another"
    );
    let challenge = format!("Bearer realm=\"atelier\", error=\"insufficient_scope\", scope=\"{scope}\"");
    refuse(Kind::Scope, detail, challenge)
}

fn refuse_rate(rate: u32, wait: Duration) -> Response {
    let detail = format!("this API key sent more than {rate} requests in a second");
    Problem::new(Kind::TooFast, detail).retry_after(wait).into_response()
}

fn refuse(kind: Kind, detail: String, challenge: String) -> Response {
    ([(header::WWW_AUTHENTICATE, challenge)], Problem::new(kind, detail)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_localhost_and_addresses_are_the_machines_own_names() {
        for own in ["localhost", "LocalHost:8080", "127.0.0.1:8080", "[::1]:8080", "10.0.0.7", "[::1]"] {
            assert!(is_own_name(own), "{own}");
        }
        for other in ["evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "", "[evil]"] {
            assert!(!is_own_name(other), "{other}");
        }
    }
}
