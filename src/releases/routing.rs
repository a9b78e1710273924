//! Chooses the method for requests that name none: the release's default, another default set by an admin, or that of an arm of an
//! experiment, by customer.
//!
//! Pure: a setting comes in, a choice goes out. The store keeps the setting.

use std::{fmt, sync::Arc};

use atelier_core::domain::{Method, RuleName};
use serde::{Deserialize, Serialize};

/// The routing as an admin set it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// Replaces the release's own default.
    pub default_method: Option<Method>,
}

/// The chosen method, and the experiment's arm if the experiment decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub method: Method,
    pub arm: Option<String>,
    /// The rules that do not apply in the arm.
    pub without_rules: Arc<[RuleName]>,
}

impl From<Method> for Choice {
    fn from(method: Method) -> Self {
        Self { method, arm: None, without_rules: Arc::default() }
    }
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
    /// Falls back to `release_default`. `has` tells which methods the release has; a method that was set for another
    /// release and is missing from this one is skipped.
    pub fn default_method(self, release_default: Method, has: impl Fn(Method) -> bool) -> Method {
        self.default_method.filter(|method| has(*method)).unwrap_or(release_default)
    }
}
