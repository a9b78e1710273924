//! Chooses the method for requests that name none: the release's default, another default set by an admin, or that of an arm of an
//! experiment, by customer.
//!
//! The store keeps the setting; the live release chooses the [`Route`] of each request.

use std::{fmt, sync::Arc};

use atelier_core::domain::{CustomerId, Method, RuleName};
use serde::{Deserialize, Serialize};

use super::LiveRelease;
use crate::platform::fault::Fault;

/// The routing as an admin set it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// Replaces the release's own default.
    pub default_method: Option<Method>,
}

/// Who asks, and what answers.
#[derive(Debug, Clone)]
pub struct Route {
    pub live: Arc<LiveRelease>,
    pub customer: Option<CustomerId>,
    /// The method that the caller names.
    pub named: Option<Method>,
    /// The method that answers.
    pub method: Method,
    /// The experiment's arm, if an experiment decided.
    pub arm: Option<String>,
    /// The rules that do not apply in the arm.
    pub without_rules: Arc<[RuleName]>,
}

/// For pages and the audit log.
impl fmt::Display for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.default_method {
            Some(method) => write!(f, "{method}"),
            None => f.write_str("the release's default"),
        }
    }
}

impl Routing {
    /// What is wrong with it, for the release that is being served.
    pub fn check(self, live: &LiveRelease) -> Option<Fault> {
        let method = self.default_method.filter(|method| !live.serving.has(*method))?;
        Some(Fault::new("default_method", format!("the release {} has no method {method}", live.name())))
    }

    /// Falls back to `release_default`. `has` tells which methods the release has; a method that was set for another
    /// release and is missing from this one is skipped.
    pub fn default_method(self, release_default: Method, has: impl Fn(Method) -> bool) -> Method {
        self.default_method.filter(|method| has(*method)).unwrap_or(release_default)
    }
}
