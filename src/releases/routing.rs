//! Chooses the method for requests that name none: the release's default, another default set by an admin, or that of an arm of an
//! experiment, by customer.
//!
//! The store keeps the setting; the live release chooses the [`Route`] of each request.

use std::{fmt, sync::Arc};

use atelier_core::domain::{CustomerId, Method, RuleName};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::{HOLDOUT, LiveRelease};
use crate::platform::{
    db::{Store, StoreError},
    fault::Fault,
    http::schema::MethodNameSchema,
};

/// Which method answers a request that names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"default_method": "gsu"}))]
pub struct Routing {
    /// Overrides the release's default method; null keeps it.
    #[serde(default)]
    #[schema(value_type = Option<MethodNameSchema>)]
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
    /// The fault in it, for the release that is being served.
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

/// The largest share.
const MOST_HELD_OUT: f64 = 0.5;

/// The share of the customers who are answered without rules.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Holdout(f64);

impl Holdout {
    pub fn new(share: f64) -> Result<Self, Fault> {
        let is_share = (0.0..=MOST_HELD_OUT).contains(&share);
        is_share
            .then_some(Self(share))
            .ok_or_else(|| Fault::new("share", format!("from 0 to {MOST_HELD_OUT}, found {share}")))
    }

    pub fn share(self) -> f64 {
        self.0
    }

    pub fn is_active(self) -> bool {
        self.0 > 0.0
    }

    /// By a digest of the customer's id: the same on every replica, and still so if the share grows.
    pub fn has(self, customer: &CustomerId) -> bool {
        let digest = Sha256::new().chain_update("holdout\0").chain_update(customer.as_str()).finalize();
        let point = u32::from_be_bytes(*digest.first_chunk().expect("a digest is longer"));
        f64::from(point) < self.0 * 2.0_f64.powi(32)
    }

    /// As it is stored.
    pub async fn read(store: &Store) -> Result<Self, StoreError> {
        let text = store.settings().get(HOLDOUT).await?;
        Ok(text.and_then(|text| Self::new(text.parse().ok()?).ok()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holdout_has_its_share_of_customers_and_keeps_them_as_it_grows() {
        let [tenth, half] = [0.1, 0.5].map(|share| Holdout::new(share).unwrap());
        let customers: Vec<CustomerId> =
            (0..10_000).map(|number| CustomerId::new(format!("c-{number}")).unwrap()).collect();
        let held_out: Vec<&CustomerId> = customers.iter().filter(|customer| tenth.has(customer)).collect();
        // 1,000 with a standard deviation of 30.
        assert!((880..1120).contains(&held_out.len()), "{}", held_out.len());
        assert!(held_out.iter().all(|customer| half.has(customer)));
        assert!(!customers.iter().any(|customer| Holdout::default().has(customer)));
        for wrong in [-0.1, 0.51, f64::NAN] {
            assert!(Holdout::new(wrong).is_err());
        }
    }
}
