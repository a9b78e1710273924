//! The gate in front of every API operation: it checks the API key, identifies the caller and applies the deadline.
//!
//! Each route declares its scope and its pace (`routes`); `access` decides whether a key is valid. An invalid key
//! appears in no answer and in no log.

use std::{
    convert::Infallible,
    net::IpAddr,
    time::{Duration, Instant},
};

use atelier_core::util::clock::Clock;
use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderMap, HeaderValue, Method, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    Access, Key, RequireKey, Scope, Sender,
    sql::keys::{ApiKey, Publishable, SigningSecret},
};
use crate::{
    config::Limits,
    platform::{
        db::{Actor, Author},
        http::{
            Kind, Problem,
            peer::Peer,
            routes::{Deadline, Guard, Guards, matched},
            serve::{Amount, Work},
            source::check_program,
            streams::Streams,
        },
    },
};

#[derive(Debug)]
pub(crate) struct Gate {
    access: Access,
    clock: Clock,
    limits: Limits,
    guards: Guards,
    streams: Streams,
    work: Work,
}

impl Gate {
    pub(crate) fn new(access: Access, clock: Clock, limits: Limits, guards: Guards, work: Work) -> Self {
        Self { access, clock, limits, guards, streams: Streams::new(limits), work }
    }

    /// Passes a request on within its deadline, an API operation's with the caller that it admits.
    pub(crate) async fn admit(&self, request: Request, next: Next) -> Response {
        let path = matched(request.extensions()).unwrap_or_default();
        // The route for GET also answers HEAD.
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        // Pages have none, and a method that the path does not take is answered with 405, whatever the key.
        let guard = self.guards.get(path).and_then(|guards| guards.get(method.as_str())).copied();
        let guard = guard.unwrap_or(Guard::OPEN);
        let answer = self.pass(guard, request, next);
        match guard.deadline {
            Deadline::Limited => {
                let deadline = self.limits.request();
                timeout(deadline, answer).await.unwrap_or_else(|_| {
                    let within = deadline.as_millis();
                    let detail = format!("the request did not finish within {within} ms; try again");
                    Problem::new(Kind::Deadline, detail).into_response()
                })
            }
            Deadline::Stream | Deadline::Unlimited => answer.await,
        }
    }

    pub(crate) fn is_for_pages(&self, request: &Request) -> bool {
        let guards = matched(request.extensions()).and_then(|path| self.guards.get(path));
        guards.is_some_and(|guards| guards.values().any(|guard| guard.for_pages))
    }

    /// The request's key, or the answer that refuses the request.
    async fn check(
        &self,
        guard: Guard,
        key: &str,
        address: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Result<ApiKey, Response> {
        let now = self.clock.now().into();
        let Some(key) = Key::parse(key) else { return Err(refuse_invalid_key()) };
        // Limited before the key is looked up, so that nobody can guess keys.
        if key.is_publishable()
            && let Some(address) = address
        {
            let rate = self.limits.address_rate;
            let counted = self.access.check_rate(Sender::at(address), 1, rate, Instant::now());
            counted.map_err(|wait| refuse_rate("this address", rate, "requests", wait).into_response())?;
        }
        let found = self.access.key(&key, now).await.map_err(|error| Problem::from(error).into_response())?;
        let Some(key) = found else { return Err(refuse_invalid_key()) };
        match &key.publishable {
            Some(publishable) if guard.for_pages => {
                check_origin(publishable, headers)
                    .map_err(|detail| Problem::new(Kind::Scope, detail).into_response())?;
            }
            Some(_) => return Err(refuse_page(guard)),
            None => {
                if !guard.scopes().any(|scope| key.scopes.iter().any(|held| held == scope.as_str())) {
                    return Err(refuse_scope(&key, guard));
                }
            }
        }
        let rate = self.limits.key_rate;
        match self.access.check_rate(Sender::Key(key.id), 1, rate, Instant::now()) {
            Ok(()) => Ok(key),
            Err(wait) => Err(refuse_rate("this API key", rate, "requests", wait).into_response()),
        }
    }

    /// A key that is sent is checked even where none is required, so that a caller learns about an invalid key before the
    /// service has a database where keys are required.
    async fn pass(&self, guard: Guard, mut request: Request, next: Next) -> Response {
        let (headers, peer) = (request.headers(), Peer::ip(request.extensions()));
        let key = match guard.scope {
            None => Ok(None),
            Some(_) => match find_key(headers) {
                Some(key) => self.check(guard, key, peer, headers).await.map(Some),
                None if self.access.rule() == RequireKey::Always => Err(refuse_missing_key(guard, "")),
                None => check_program(&request).map(|()| None).map_err(|found| {
                    let reason = format!(" Only programs may do without, and this request {found}.");
                    refuse_missing_key(guard, &reason)
                }),
            },
        };
        match key {
            Ok(key) => {
                let actor = key.as_ref().map_or(Actor::Service, |key| Actor::Key(key.id));
                if let Some(key) = key {
                    request.extensions_mut().insert(Scopes(Some(key.scopes)));
                    if let Some(publishable) = key.publishable {
                        request.extensions_mut().insert(Reader::Visitors(publishable.secret));
                    }
                }
                request.extensions_mut().insert(Caller(Author { actor, peer }));
                let answer = self.work.run(Amount::of(&request), next.run(request));
                if guard.deadline == Deadline::Stream { self.streams.run(answer).await } else { answer.await }
            }
            Err(refusal) => refusal,
        }
    }
}

/// Who reads the answer to an API operation.
#[derive(Debug, Clone)]
pub(crate) enum Reader {
    /// One of the shop's programs.
    Program,
    /// The visitors of a shop's page, with the secret that signs who they are.
    Visitors(SigningSecret),
}

impl<S: Send + Sync> FromRequestParts<S> for Reader {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.remove().unwrap_or(Self::Program))
    }
}

/// The caller of an API operation, for the audit log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller(pub(crate) Author);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(*parts.extensions.get().expect("the gate is before every operation"))
    }
}

/// The scopes of the request's key. A request without a key may do everything, where it needs none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scopes(Option<Vec<String>>);

impl Scopes {
    pub(crate) fn have(&self, scope: Scope) -> bool {
        self.0.as_ref().is_none_or(|held| held.iter().any(|held| held == scope.as_str()))
    }

    /// Checks a scope that a part of the request needs besides the operation's own.
    pub(crate) fn require(&self, scope: Scope, part: &str) -> Result<(), Problem> {
        match &self.0 {
            Some(held) if !self.have(scope) => {
                let detail = format!(
                    "{part} needs an API key with the scope {scope}, this one has {}; ask an admin for another",
                    held.join(", ")
                );
                Err(Problem::new(Kind::Scope, detail))
            }
            _ => Ok(()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Scopes {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.remove().unwrap_or_default())
    }
}

/// Adds each operation's security requirements to the document. It is the same where no key is needed.
pub(crate) fn describe(document: &mut Value, guards: &Guards) {
    let needed = "You need a key: an admin creates one at /access/keys or with `atelier key create`. The demo needs none, and \
                  neither does a service with the setting `access.require_key = false`.";
    let about = document["info"]["description"].as_str().unwrap_or_default();
    document["info"]["description"] = format!("{about} {needed}").into();
    document["components"]["securitySchemes"] = json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, `Authorization: Bearer atl_…`"},
        "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key by itself"},
        "publishable": {"type": "http", "scheme": "bearer", "description": "A publishable key, `Authorization: Bearer atlp_…`, from a \
                        page of its origins"},
    });
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let guard = guards[path][&method.to_ascii_uppercase()];
            let by_scope = |scope: Scope| ["bearer", "header"].map(|way| json!({way: [scope.as_str()]}));
            let mut keys: Vec<Value> = guard.scopes().flat_map(by_scope).collect();
            if keys.is_empty() {
                continue;
            }
            keys.extend(guard.for_pages.then(|| json!({"publishable": []})));
            operation["security"] = keys.into();
        }
    }
}

/// Whether a page's key is sent, valid or not.
pub(crate) fn has_publishable_key(headers: &HeaderMap) -> bool {
    find_key(headers).and_then(Key::parse).is_some_and(|key| key.is_publishable())
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

/// Browsers name the origin of the page that calls. Other programs can claim one, so this keeps out pages, not programs.
fn check_origin(publishable: &Publishable, headers: &HeaderMap) -> Result<(), String> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins.next().map(HeaderValue::as_bytes).filter(|_| origins.next().is_none());
    if publishable.origins.iter().any(|named| Some(named.as_bytes()) == origin) {
        return Ok(());
    }
    let found = origin.map_or("not one Origin".into(), |origin| {
        format!("the Origin {:?}", String::from_utf8_lossy(origin))
    });
    Err(format!(
        "this publishable key is for pages of other origins, and the request has {found}; an admin sees a key's origins at /access/keys"
    ))
}

fn refuse_page(guard: Guard) -> Response {
    let scope = needed(guard, " or ");
    let detail = format!(
        "an API key with the scope {scope} is required, this one is publishable: it opens only /articles/{{id}}/looks, \
         /articles/{{id}}/similar and POST /feedback"
    );
    Problem::new(Kind::Scope, detail).into_response()
}

fn refuse_missing_key(guard: Guard, reason: &str) -> Response {
    let scope = needed(guard, " or ");
    let detail = format!(
        "an API key with the scope {scope} is required: send it as `Authorization: Bearer atl_…` or as `X-API-Key`; \
         an admin creates keys at /access/keys or with `atelier key create`.{reason}"
    );
    refuse(Kind::Key, detail, "Bearer realm=\"atelier\"".to_owned())
}

fn refuse_invalid_key() -> Response {
    let detail = "the API key is unknown, has expired or was revoked; ask an admin for another";
    refuse(Kind::Key, detail.to_owned(), "Bearer realm=\"atelier\", error=\"invalid_token\"".to_owned())
}

fn needed(guard: Guard, between: &str) -> String {
    guard.scopes().map(Scope::as_str).collect::<Vec<_>>().join(between)
}

fn refuse_scope(key: &ApiKey, guard: Guard) -> Response {
    let held = if key.scopes.is_empty() { "none".to_owned() } else { key.scopes.join(", ") };
    let (scope, scopes) = (needed(guard, " or "), needed(guard, " "));
    let detail = format!(
        "an API key with the scope {scope} is required, this one has {held}; ask an admin for another"
    );
    let challenge = format!("Bearer realm=\"atelier\", error=\"insufficient_scope\", scope=\"{scopes}\"");
    refuse(Kind::Scope, detail, challenge)
}

pub(crate) fn refuse_rate(sender: &str, rate: u32, of_what: &str, wait: Duration) -> Problem {
    let detail = format!("{sender} sent more than {rate} {of_what} in a second");
    Problem::new(Kind::TooFast, detail).retry_after(wait)
}

fn refuse(kind: Kind, detail: String, challenge: String) -> Response {
    ([(header::WWW_AUTHENTICATE, challenge)], Problem::new(kind, detail)).into_response()
}
