//! What a caller of `/complete` sends, and what it means.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::web::{
    api::features,
    http::{
        Finding, Problem,
        extract::{object, whole, whole_option},
        schema::free_object,
    },
};
use crate::{
    domain::{ArticleId, CustomerId, Features, MAX_SLOTS, Method},
    service::{
        asking::Question,
        completion::{Filters, MAX_SETS, Request},
        live_release::LiveRelease,
    },
};

/// Suggestions where the request does not say how many.
pub(crate) const DEFAULT_K: usize = 5;

/// An outfit to complete.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Complete, example = json!({
    "features": {"gender": "female", "age": 34}, "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 3,
    "filters": {"types": {"1": ["coat", "blazer"]}, "price": {"max": 300}},
}))]
pub(crate) struct CompleteBody {
    /// The customer's id; their profile must be stored.
    pub(crate) customer: Option<String>,
    /// What is known of the customer or the occasion, by name; it wins over the profile.
    #[serde(default)]
    #[schema(schema_with = free_object)]
    pub(crate) features: Map<String, Value>,
    /// Article ids, and null for each blank.
    #[schema(max_items = 8)]
    pub(crate) outfit: Vec<Option<String>>,
    /// The method that answers; the service's default, or an experiment's arm, if not given.
    #[schema(examples("gsu"))]
    pub(crate) method: Option<String>,
    /// Suggestions for each blank; 5 if not given.
    #[schema(minimum = 1, maximum = 250)]
    #[serde(default, deserialize_with = "whole_option")]
    pub(crate) k: Option<usize>,
    #[serde(default, deserialize_with = "object")]
    pub(crate) filters: FiltersBody,
    /// From 0, the most likely first, to 1, as different from each other as can be.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub(crate) diversity: f64,
    /// Say of each suggestion how many times as likely it is as without knowing the customer.
    #[serde(default)]
    pub(crate) lift: bool,
    /// Say of each suggestion what moved it most.
    #[serde(default)]
    pub(crate) explain: bool,
    /// How many of the most probable outfits are wanted with all blanks filled together; 0 is none.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 16)]
    pub(crate) sets: usize,
}

/// Who may be suggested. Filters come before the choice: k suggestions come whenever k exist.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Filters)]
pub(crate) struct FiltersBody {
    /// By a blank's place in the outfit, from 0: the types that may fill it.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    types: BTreeMap<usize, Vec<String>>,
    /// Article ids that are never suggested.
    exclude: Vec<String>,
    #[serde(deserialize_with = "object")]
    price: PriceBody,
    /// Only what is in stock; an article that does not say counts as in stock.
    in_stock: bool,
    /// What the customer never wears is never suggested.
    no_gos: bool,
}

/// An article without a price is within no limits.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Price)]
struct PriceBody {
    min: Option<f64>,
    max: Option<f64>,
}

impl Default for FiltersBody {
    fn default() -> Self {
        let Filters { in_stock, no_gos, .. } = Filters::default();
        Self { types: BTreeMap::new(), exclude: Vec::new(), price: PriceBody::default(), in_stock, no_gos }
    }
}

impl CompleteBody {
    /// How many suggestions it asks for, over all blanks and sets.
    pub(super) fn suggestions(&self) -> usize {
        let blanks = self.outfit.iter().filter(|slot| slot.is_none()).count().max(1);
        blanks.saturating_mul(self.k.unwrap_or(DEFAULT_K).saturating_add(self.sets))
    }

    /// The question that this asks.
    pub(crate) fn read(self, live: &LiveRelease) -> Result<Question, Problem> {
        let mut findings = Vec::new();
        let customer = self.customer.as_deref().and_then(|id| customer_id(id, "/customer", &mut findings));
        let method = self.method.as_deref().and_then(|name| method(name, "/method", &mut findings));
        let outfit = outfit(&self.outfit, &mut findings);
        let filters = self.filters.read(&mut findings);
        if self.sets > MAX_SETS {
            findings.push(Finding::at("/sets", format!("sets are 0 to {MAX_SETS}, found {}", self.sets)));
        }
        let given = given_features(self.features, live, &mut findings);
        if !findings.is_empty() {
            return Err(Problem::invalid(findings));
        }
        let request = Request {
            given,
            k: self.k.unwrap_or(DEFAULT_K),
            filters,
            diversity: self.diversity,
            lift: self.lift,
            explain: self.explain,
            sets: self.sets,
            ..Request::new(outfit, Method::None)
        };
        Ok(Question { customer, method, request })
    }
}

impl FiltersBody {
    pub(crate) fn read(self, findings: &mut Vec<Finding>) -> Filters {
        let exclude = self
            .exclude
            .iter()
            .enumerate()
            .filter_map(|(place, id)| article_id(id, || format!("/filters/exclude/{place}"), findings));
        Filters {
            exclude: exclude.collect(),
            types: self.types,
            least_price: self.price.min,
            most_price: self.price.max,
            in_stock: self.in_stock,
            no_gos: self.no_gos,
        }
    }
}

pub(crate) fn customer_id(id: &str, pointer: &str, findings: &mut Vec<Finding>) -> Option<CustomerId> {
    CustomerId::new(id).map_err(|error| findings.push(Finding::at(pointer, error.to_string()))).ok()
}

pub(crate) fn article_id(
    id: &str,
    pointer: impl FnOnce() -> String,
    findings: &mut Vec<Finding>,
) -> Option<ArticleId> {
    ArticleId::new(id).map_err(|error| findings.push(Finding::at(pointer(), error.to_string()))).ok()
}

pub(crate) fn method(name: &str, pointer: &str, findings: &mut Vec<Finding>) -> Option<Method> {
    let unknown =
        |error: crate::domain::UnknownMethod| findings.push(Finding::at(pointer, error.to_string()));
    name.parse().map_err(unknown).ok()
}

/// Ids alone are judged here; what they stand for is the completion's matter.
pub(crate) fn outfit(given: &[Option<String>], findings: &mut Vec<Finding>) -> Vec<Option<ArticleId>> {
    if given.len() > MAX_SLOTS {
        let detail = format!("an outfit has at most {MAX_SLOTS} slots, this one has {}", given.len());
        findings.push(Finding::at("/outfit", detail));
        return Vec::new();
    }
    let slot = |(place, id): (usize, &Option<String>)| {
        id.as_deref().and_then(|id| article_id(id, || format!("/outfit/{place}"), findings))
    };
    given.iter().enumerate().map(slot).collect()
}

/// Keeps what the schema does not know: the completion warns about it.
pub(crate) fn given_features(
    features: Map<String, Value>,
    live: &LiveRelease,
    findings: &mut Vec<Finding>,
) -> Features {
    match features::read(features, live.serving.release().schema(), "/features") {
        Ok(read) => read.features,
        Err(wrong) => {
            findings.extend(wrong);
            Features::default()
        }
    }
}
