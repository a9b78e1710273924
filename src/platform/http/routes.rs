//! API routes. Each is declared with the scope that it requires and its deadline.

use std::collections::HashMap;

use axum::{Router, extract::MatchedPath, http::Extensions, routing::MethodRouter};
use serde_json::Value;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::AppState;
use crate::platform::scope::Scope;

/// Every API route is at its path, and at its path after this.
pub(crate) const VERSION: &str = "/v1";

/// The path of the request's route, with the names of its parameters and without the version.
pub(crate) fn matched(extensions: &Extensions) -> Option<&str> {
    let path = extensions.get::<MatchedPath>()?.as_str();
    Some(path.strip_prefix(VERSION).unwrap_or(path))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    /// The scope that the key must have; `None` if no key is required.
    pub(crate) scope: Option<Scope>,
    /// A scope that will do instead.
    pub(crate) or: Option<Scope>,
    /// Whether a publishable key opens it, too.
    pub(crate) for_pages: bool,
    pub(crate) deadline: Deadline,
}

impl Guard {
    /// Of what is no API operation.
    pub(crate) const OPEN: Self =
        Self { scope: None, or: None, for_pages: false, deadline: Deadline::Limited };

    pub(crate) fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.scope.into_iter().chain(self.or)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// `limits.request_ms`.
    Limited,
    /// `limits.stream_ms`, for work on a complete table. At most `limits.streams` run at once.
    Stream,
    /// None, for work on a complete release. The steps that it waits for have their own limits.
    Unlimited,
}

/// The guard of each operation, by path and method.
pub(crate) type Guards = HashMap<String, HashMap<String, Guard>>;

/// A router whose routes all have a description and a guard.
pub(crate) struct Routes {
    router: OpenApiRouter<AppState>,
    guards: Guards,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self::with_document(OpenApi::default())
    }

    /// No routes yet; `document` has the title and the tags.
    pub(crate) fn with_document(document: OpenApi) -> Self {
        Self { router: OpenApiRouter::with_openapi(document), guards: Guards::new() }
    }

    pub(crate) fn open(self, route: UtoipaMethodRouter<AppState>) -> Self {
        self.guarded(Guard::OPEN, route)
    }

    pub(crate) fn scoped(self, scope: Scope, route: UtoipaMethodRouter<AppState>) -> Self {
        self.guarded(Guard { scope: Some(scope), ..Guard::OPEN }, route)
    }

    /// Adds a route that requires a key with this scope, or a publishable key.
    pub(crate) fn for_pages(self, scope: Scope, route: UtoipaMethodRouter<AppState>) -> Self {
        self.guarded(Guard { scope: Some(scope), for_pages: true, ..Guard::OPEN }, route)
    }

    pub(crate) fn scoped_by_either(self, scopes: [Scope; 2], route: UtoipaMethodRouter<AppState>) -> Self {
        let [scope, or] = scopes.map(Some);
        self.guarded(Guard { scope, or, ..Guard::OPEN }, route)
    }

    /// Adds a route that requires a key with this scope and works on a complete table.
    pub(crate) fn streaming(self, scope: Scope, route: UtoipaMethodRouter<AppState>) -> Self {
        self.guarded(Guard { scope: Some(scope), deadline: Deadline::Stream, ..Guard::OPEN }, route)
    }

    /// Adds a route that requires a key with this scope and works on a complete release.
    pub(crate) fn unlimited(self, scope: Scope, route: UtoipaMethodRouter<AppState>) -> Self {
        self.guarded(Guard { scope: Some(scope), deadline: Deadline::Unlimited, ..Guard::OPEN }, route)
    }

    /// Answers `path`, which has operations of its own, with those of `template`, too: the path is also that of an item
    /// whose id is the last segment.
    pub(crate) fn also_at(mut self, template: &str, path: &str, route: MethodRouter<AppState>) -> Self {
        let guards = self.guards[template].clone();
        self.guards.entry(path.to_owned()).or_default().extend(guards);
        self.router = self.router.route(path, route);
        self
    }

    fn guarded(mut self, guard: Guard, route: UtoipaMethodRouter<AppState>) -> Self {
        let paths = serde_json::to_value(&route.1).expect("paths are plain JSON");
        for (path, item) in paths.as_object().into_iter().flatten() {
            for method in item.as_object().into_iter().flat_map(serde_json::Map::<String, Value>::keys) {
                self.guards.entry(path.clone()).or_default().insert(method.to_ascii_uppercase(), guard);
            }
        }
        self.router = self.router.routes(route);
        self
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        for (path, guards) in other.guards {
            self.guards.entry(path).or_default().extend(guards);
        }
        self
    }

    pub(crate) fn into_parts(self) -> (Router<AppState>, OpenApi, Guards) {
        let (router, document) = self.router.split_for_parts();
        (router, document, self.guards)
    }
}
