//! `/compare`: the same question to several methods, or about several customers, side by side.

use std::time::{Duration, Instant};

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::service::access::Scope;
use crate::web::http::routes::Routes;
use crate::{
    domain::{ArticleId, CustomerId, Method},
    service::{
        comparison::{self, Column, Comparison, Pair, Subjects},
        completion::Request,
        fault::{Field, ServiceError},
        live_release::LiveRelease,
    },
    web::{
        api::complete::{
            DEFAULT_K, FiltersBody, PlacementBody, SuggestionBody, WarningBody, article_id, customer_id,
            given_features, method, outfit, suggestions,
        },
        http::{
            AppState, Finding, Problem,
            extract::{Json, object, whole_option},
            schema::{free_object, method_name},
            timing::TimingBody,
        },
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Complete, routes!(compare))
}

/// A question for several columns.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Compare, example = json!({
    "features": {"gender": "female", "age": 34}, "outfit": ["a-00134", null, "a-00568", "a-00259"],
    "methods": ["none", "c", "np", "gs", "gsu"], "true_article": "a-01243",
}))]
struct CompareBody {
    /// The customer's id, where methods are compared.
    customer: Option<String>,
    /// The customers' ids, where customers are compared: a column each.
    #[serde(default)]
    customers: Vec<String>,
    /// What is known of the customer or the occasion, by name; it wins over the profile, in every column.
    #[serde(default)]
    #[schema(schema_with = free_object)]
    features: Map<String, Value>,
    /// Article ids, and null for the one blank; without a blank one more article is asked for.
    #[schema(max_items = 8)]
    outfit: Vec<Option<String>>,
    /// A column each; all of the release if neither these nor customers are given. With customers, the one that
    /// answers.
    #[serde(default)]
    methods: Vec<String>,
    /// Suggestions in each column; 5 if not given.
    #[schema(minimum = 1, maximum = 250)]
    #[serde(default, deserialize_with = "whole_option")]
    k: Option<usize>,
    #[serde(default, deserialize_with = "object")]
    filters: FiltersBody,
    /// Say of each suggestion what moved it most.
    #[serde(default)]
    explain: bool,
    /// The article that a stylist put there: its rank is told in each column.
    true_article: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Comparison)]
struct ComparisonBody {
    release: String,
    device: &'static str,
    /// The blank's place in the outfit.
    slot: usize,
    columns: Vec<ColumnBody>,
    /// Each two columns, by their places.
    pairs: Vec<PairBody>,
    timing: TimingBody,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Column)]
struct ColumnBody {
    #[schema(schema_with = method_name)]
    method: Method,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer: Option<String>,
    /// How many articles the filters let through.
    admissible: usize,
    suggestions: Vec<SuggestionBody>,
    /// Where the true article stands, if the release knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    true_article: Option<PlacementBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    personas: Option<Vec<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<f32>,
    warnings: Vec<WarningBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pair)]
struct PairBody {
    columns: [usize; 2],
    /// The share of the k suggestions that both have.
    overlap: f64,
    /// Rank-biased overlap (p = 0.9): 1 for the same order, 0 for nothing in common.
    rank_biased_overlap: f64,
}

/// Compare methods or customers
///
/// Columns of suggestions for one blank: one a method for one customer, or one a customer for one method, with
/// how alike each two columns are.
#[utoipa::path(post, path = "/compare", tag = "completion", request_body = CompareBody, responses(
    (status = 200, description = "A column a method or customer", body = ComparisonBody,
        headers(("Server-Timing" = String, description = "`queue`, `inference` and `total` in milliseconds"))),
    (status = 429, description = "A method's queue is full, or an answer would come too late"),
    (status = 504, description = "No answer within the deadline"),
))]
async fn compare(
    State(state): State<AppState>,
    Json(body): Json<CompareBody>,
) -> Result<(TimingBody, Json<ComparisonBody>), Problem> {
    let begun = Instant::now();
    let live = state.live_release()?;
    let names_one_customer = body.customer.is_some();
    let (subjects, request) = body.read(&live, state.limits.columns as usize)?;
    let times = (begun, begun + state.limits.deadline());
    let comparison = comparison::compare(&live, &state.profiles, &subjects, &request, times);
    let comparison = comparison.await.map_err(|error| match error {
        ServiceError::Faults(mut faults) if names_one_customer => {
            let customers = faults.iter_mut().filter(|fault| fault.field == Field::CustomerAt(0));
            customers.for_each(|fault| fault.field = Field::Customer);
            Problem::from(faults)
        }
        error => error.into(),
    })?;
    let comparison = ComparisonBody::new(&live, &request, comparison, begun.elapsed());
    Ok((comparison.timing, Json(comparison)))
}

impl CompareBody {
    fn read(self, live: &LiveRelease, limit: usize) -> Result<(Subjects, Request), Problem> {
        let mut findings = Vec::new();
        let request = self.request(live, &mut findings);
        let methods = self.methods(&mut findings);
        let customers = self.customers(&mut findings);
        // Places of methods mean those of the request only while each name was understood.
        if methods.len() < self.methods.len() {
            return Err(Problem::invalid(findings));
        }
        let several = !self.customers.is_empty();
        match Subjects::new(live, methods, customers, several, limit) {
            Ok(subjects) if findings.is_empty() => return Ok((subjects, request)),
            Ok(_) => {}
            Err(faults) => findings.extend(faults.into_iter().map(Finding::from)),
        }
        Err(Problem::invalid(findings))
    }

    /// What all columns share.
    fn request(&self, live: &LiveRelease, findings: &mut Vec<Finding>) -> Request {
        let outfit = outfit(&self.outfit, findings);
        if self.outfit.iter().filter(|slot| slot.is_none()).count() > 1 {
            findings.push(Finding::at("/outfit", "one blank is compared at a time; this outfit has several"));
        }
        let true_article =
            self.true_article.as_deref().and_then(|id| article_id(id, || "/true_article".into(), findings));
        Request {
            given: given_features(self.features.clone(), live, findings),
            k: self.k.unwrap_or(DEFAULT_K),
            filters: self.filters.clone().read(findings),
            explain: self.explain,
            placements_of: true_article.into_iter().collect(),
            ..Request::new(outfit, Method::None)
        }
    }

    fn methods(&self, findings: &mut Vec<Finding>) -> Vec<Method> {
        let named = self.methods.iter().enumerate();
        named.filter_map(|(place, name)| method(name, &format!("/methods/{place}"), findings)).collect()
    }

    fn customers(&self, findings: &mut Vec<Finding>) -> Vec<CustomerId> {
        if self.customer.is_some() && !self.customers.is_empty() {
            findings.push(Finding::at("/customers", "give either `customer` or `customers`"));
        }
        let one = self.customer.as_deref().and_then(|id| customer_id(id, "/customer", findings));
        let mut customers: Vec<CustomerId> = one.into_iter().collect();
        for (place, id) in self.customers.iter().enumerate() {
            customers.extend(customer_id(id, &format!("/customers/{place}"), findings));
        }
        customers
    }
}

impl ComparisonBody {
    fn new(live: &LiveRelease, request: &Request, comparison: Comparison, took: Duration) -> Self {
        let Comparison { columns, pairs, cost } = comparison;
        Self {
            release: live.name().to_owned(),
            device: live.serving.device().as_str(),
            slot: columns.first().map_or(0, |column| column.blank.slot),
            columns: columns.into_iter().map(|column| ColumnBody::new(column, &request.outfit)).collect(),
            pairs: pairs.into_iter().map(PairBody::from).collect(),
            timing: TimingBody::new(cost, took),
        }
    }
}

impl ColumnBody {
    fn new(column: Column, outfit: &[Option<ArticleId>]) -> Self {
        Self {
            method: column.method,
            customer: column.customer.as_ref().map(ToString::to_string),
            admissible: column.blank.admissible,
            true_article: column.blank.placements.first().copied().flatten().map(PlacementBody::from),
            suggestions: suggestions(column.blank.suggestions, outfit),
            personas: column.personas,
            steps: column.steps,
            warnings: column.warnings.into_iter().map(WarningBody::from).collect(),
        }
    }
}

impl From<Pair> for PairBody {
    fn from(Pair { columns, overlap, rank_biased_overlap }: Pair) -> Self {
        Self { columns, overlap, rank_biased_overlap }
    }
}
