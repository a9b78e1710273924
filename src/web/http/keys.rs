//! API keys at the door of what is for programs: which operation takes a key of which scope, and on whose behalf
//! it acts.
//!
//! The scope follows from the operation's tag in the document, so a new route has one without a word here. Whether
//! a key is right is for `access` to say; a wrong one is told to nobody and reaches no log.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use axum::{
    extract::{FromRequestParts, MatchedPath, Request, State},
    http::{HeaderMap, Method, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::web::http::{Kind, Problem};
use crate::{
    service::access::{Access, Key, Scope},
    store::{Actor, ApiKey},
};

/// What the layer knows.
#[derive(Debug)]
pub(crate) struct Keys {
    access: Access,
    /// Requests a second.
    rate: u32,
    /// By path and method in lower case; what is not there is open to everybody.
    scopes: HashMap<(String, String), Scope>,
}

impl Keys {
    /// From a document that is whole.
    pub(crate) fn new(document: &Value, access: Access, rate: u32) -> Self {
        let paths = document["paths"].as_object().into_iter().flatten();
        let scopes = paths.flat_map(|(path, item)| {
            item.as_object().into_iter().flatten().filter_map(move |(method, operation)| {
                Some(((path.clone(), method.clone()), scope_of(path, method, operation)?))
            })
        });
        Self { access, rate, scopes: scopes.collect() }
    }

    fn scope(&self, request: &Request) -> Option<Scope> {
        let path = request.extensions().get::<MatchedPath>()?.as_str().to_owned();
        // A HEAD is answered by what answers a GET.
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        self.scopes.get(&(path, method.as_str().to_ascii_lowercase())).copied()
    }

    /// What is known of the key that a request came with, if it came with one, or why it goes no further.
    async fn admit(
        &self,
        scope: Scope,
        sent: Option<String>,
        from: From,
    ) -> Result<Option<ApiKey>, Response> {
        let Some(sent) = sent else {
            return match from {
                From::OwnMachine if !self.access.requires_key() => Ok(None),
                from => Err(missing(scope, from)),
            };
        };
        let now = SystemTime::now().into();
        let kept = match Key::parse(&sent) {
            Some(key) => {
                self.access.key(&key, now).await.map_err(|error| Problem::from(error).into_response())?
            }
            None => None,
        };
        let Some(kept) = kept else { return Err(wrong()) };
        if !kept.scopes.iter().any(|held| held == scope.as_str()) {
            return Err(beyond(&kept, scope));
        }
        match self.access.pace(kept.id, self.rate, Instant::now()) {
            Ok(()) => Ok(Some(kept)),
            Err(wait) => Err(too_fast(self.rate, wait)),
        }
    }
}

/// The layer before every operation. A key that is sent is looked at where none is needed, too: whoever sends a
/// wrong one learns of it before the service moves to where it matters.
pub(crate) async fn check(State(keys): State<Arc<Keys>>, mut request: Request, next: Next) -> Response {
    let key = match keys.scope(&request) {
        None => Ok(None),
        Some(scope) => {
            let sent = sent(request.headers()).map(ToOwned::to_owned);
            let from = From::of(&request);
            keys.admit(scope, sent, from).await
        }
    };
    match key {
        Ok(key) => {
            let actor = key.map_or(Actor::Service, |key| Actor::Key(key.id));
            request.extensions_mut().insert(Caller(actor));
            next.run(request).await
        }
        Err(refusal) => refusal,
    }
}

/// Where a request without a key comes from. Only the machine's own programs are let in without one; a browser that
/// some site sends here, and a proxy that lets others in, reach the same port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    OwnMachine,
    /// A proxy passed it on.
    Proxy,
    /// It was addressed to a name that anybody can point at this machine.
    OtherName,
    /// A page of another site sent it, and it would change something.
    OtherSite,
}

impl From {
    fn of(request: &Request) -> Self {
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

    fn words(self) -> &'static str {
        match self {
            Self::OwnMachine => "",
            Self::Proxy => {
                " Only the machine's own programs need none, and this request came through a proxy."
            }
            Self::OtherName => {
                " Only the machine's own programs need none, and this request was sent to another name than localhost \
                 or an address."
            }
            Self::OtherSite => {
                " Only the machine's own programs need none, and a page of another site sent this."
            }
        }
    }
}

/// `localhost:8080`, `127.0.0.1`, `[::1]:8080`: no name that a stranger's name server could answer for.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// On whose behalf a program's request acts, for the audit log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller(pub(crate) Actor);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(*parts.extensions.get().expect("the layer is before every operation; this is a bug"))
    }
}

/// The scope that an operation takes; None where it is open to everybody.
fn scope_of(path: &str, method: &str, operation: &Value) -> Option<Scope> {
    let tag = operation["tags"][0].as_str().expect("every operation has a tag; this is a bug");
    match (tag, method) {
        ("completion", _) | ("releases", "get") => Some(Scope::Complete),
        ("releases", _) => Some(Scope::Admin),
        ("articles" | "customers" | "outfits", _) => Some(Scope::Catalogue),
        ("feedback", _) => Some(Scope::Feedback),
        ("service", _) if path == "/metrics" => Some(Scope::Metrics),
        ("service" | "documents", _) => None,
        (other, _) => unreachable!("the tag {other} has a scope, or is open to everybody; this is a bug"),
    }
}

/// Says in the document what each operation takes. Where keys are not needed, nothing is one way in.
pub(crate) fn describe(document: &mut Value, required: bool) {
    document["components"]["securitySchemes"] = json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, `Authorization: Bearer atl_…`"},
        "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key by itself"},
    });
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let Some(scope) = scope_of(path, method, operation) else { continue };
            let open = (!required).then(|| json!({}));
            let ways = [json!({"bearer": [scope.as_str()]}), json!({"header": [scope.as_str()]})];
            operation["security"] = open.into_iter().chain(ways).collect();
        }
    }
}

fn sent(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let text = value.to_str().ok()?;
        let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    // What is no text is a wrong key.
    bearer.or_else(|| headers.get("x-api-key").map(|value| value.to_str().unwrap_or_default()))
}

fn missing(scope: Scope, from: From) -> Response {
    let detail = format!(
        "this takes an API key of the scope {scope}: send it as `Authorization: Bearer atl_…` or as `X-API-Key`; an \
         admin makes one at /access/keys.{}",
        from.words()
    );
    refuse(Kind::Key, detail, "Bearer realm=\"atelier\"".to_owned())
}

fn wrong() -> Response {
    let detail = "the API key that was sent is none of this service's, has expired or was revoked; ask an admin for \
                  another";
    refuse(Kind::Key, detail.to_owned(), "Bearer realm=\"atelier\", error=\"invalid_token\"".to_owned())
}

fn beyond(key: &ApiKey, scope: Scope) -> Response {
    let held = if key.scopes.is_empty() { "none".to_owned() } else { key.scopes.join(", ") };
    let detail = format!(
        "this takes a key of the scope {scope}, the one that was sent has {held}; ask an admin for another"
    );
    let challenge = format!("Bearer realm=\"atelier\", error=\"insufficient_scope\", scope=\"{scope}\"");
    refuse(Kind::Scope, detail, challenge)
}

fn too_fast(rate: u32, wait: Duration) -> Response {
    let detail = format!("a key may ask {rate} times a second, and this one asked faster");
    Problem::new(Kind::TooFast, detail).retry_after(wait).into_response()
}

fn refuse(kind: Kind, detail: String, challenge: String) -> Response {
    ([(header::WWW_AUTHENTICATE, challenge)], Problem::new(kind, detail)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_nobody_else_answers_for_are_the_machines_own() {
        for own in ["localhost", "LocalHost:8080", "127.0.0.1:8080", "[::1]:8080", "10.0.0.7", "[::1]"] {
            assert!(is_own_name(own), "{own}");
        }
        for other in ["evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "", "[evil]"] {
            assert!(!is_own_name(other), "{other}");
        }
    }
}
