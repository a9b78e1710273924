//! Routes for programs, each declared with the key that it takes and how long it may run.

use std::collections::HashMap;

use axum::Router;
use serde_json::Value;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::AppState;
use crate::service::access::Scope;

/// What a request must bring, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    /// The scope of the key that the operation takes; none if it is open to everyone.
    pub(crate) scope: Option<Scope>,
    pub(crate) pace: Pace,
}

/// The deadline of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// `limits.request_ms`.
    Limited,
    /// None: a whole table or release takes as long as it takes. What it waits for has limits of its own.
    Unlimited,
}

/// The guard of each operation, by its path and its method in lower case.
pub(crate) type Guards = HashMap<(String, String), Guard>;

/// A router whose routes all have a description and a guard.
pub(crate) struct Routes {
    router: OpenApiRouter<AppState>,
    guards: Guards,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self::described(OpenApi::default())
    }

    /// Without routes yet; `document` has the title, the tags and the like.
    pub(crate) fn described(document: OpenApi) -> Self {
        Self { router: OpenApiRouter::with_openapi(document), guards: Guards::new() }
    }

    /// A route that takes no key.
    pub(crate) fn open(self, route: UtoipaMethodRouter<AppState>) -> Self {
        self.guarded(Guard { scope: None, pace: Pace::Limited }, route)
    }

    /// A route that takes a key of this scope.
    pub(crate) fn scoped(self, scope: Scope, route: UtoipaMethodRouter<AppState>) -> Self {
        self.guarded(Guard { scope: Some(scope), pace: Pace::Limited }, route)
    }

    /// A route that takes a key of this scope and works on a whole table or release.
    pub(crate) fn unlimited(self, scope: Scope, route: UtoipaMethodRouter<AppState>) -> Self {
        self.guarded(Guard { scope: Some(scope), pace: Pace::Unlimited }, route)
    }

    fn guarded(mut self, guard: Guard, route: UtoipaMethodRouter<AppState>) -> Self {
        let paths = serde_json::to_value(&route.1).expect("paths are plain JSON; this is a bug");
        for (path, item) in paths.as_object().into_iter().flatten() {
            for method in item.as_object().into_iter().flat_map(serde_json::Map::<String, Value>::keys) {
                self.guards.insert((path.clone(), method.clone()), guard);
            }
        }
        self.router = self.router.routes(route);
        self
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.guards.extend(other.guards);
        self
    }

    pub(crate) fn into_parts(self) -> (Router<AppState>, OpenApi, Guards) {
        let (router, document) = self.router.split_for_parts();
        (router, document, self.guards)
    }
}
