//! `/compare`: suggestions for the same blank from several methods, or for several customers, side by side.

use std::{mem::take, time::Duration};

use atelier_core::{
    domain::{ArticleId, CustomerId, Method},
    util::json_fields::{read_object, read_optional_integer, read_present},
};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::complete::{
    DEFAULT_K, FiltersBody, LiveBody, Offer, Shown, SuggestionBody, read_features, read_live, read_outfit,
    suggestion_bodies,
};
use crate::{
    completion::{
        Completion, Placement, Request, Warning,
        api::timing::TimingBody,
        comparison::{self, Column, Comparison, Pair, Subjects},
    },
    people::Scope,
    platform::{
        fault::ServiceError,
        http::{
            AppState, Finding, Problem,
            extract::Json,
            fault,
            problem::value_or_finding,
            routes::Routes,
            schema::{
                ArticleIdSchema, CustomerIdSchema, FeaturesSchema, MethodNameSchema, field_names, slots,
            },
        },
    },
    releases::LiveRelease,
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Complete, routes!(compare))
}

/// A comparison of methods or customers. The outfit has at most one blank; without one, one more article is suggested.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[schema(as = Compare, example = json!({
    "features": {"gender": "female", "age": 34}, "outfit": ["a-00134", null, "a-00568", "a-00259"],
    "methods": ["none", "c", "np", "gs", "gsu"], "true_article": "a-01243",
}))]
pub(crate) struct CompareBody {
    /// The customer's id, to compare methods.
    #[schema(value_type = Option<CustomerIdSchema>)]
    customer: Option<String>,
    /// The customers' ids, to compare customers: one column for each.
    #[schema(value_type = Vec<CustomerIdSchema>)]
    #[serde(default)]
    customers: Vec<String>,
    /// Features of the customer or the occasion, by name. They override the profile in every column.
    #[serde(default, deserialize_with = "read_present")]
    #[schema(value_type = FeaturesSchema)]
    features: Option<Map<String, Value>>,
    #[schema(schema_with = slots)]
    outfit: Vec<Option<String>>,
    /// The methods to compare, each once: one column for each. If neither methods nor customers are given, all methods of the
    /// release. With customers, the one method that answers.
    #[schema(value_type = Vec<MethodNameSchema>)]
    #[serde(default)]
    methods: Vec<String>,
    /// Number of suggestions in each column; 5 by default.
    #[schema(minimum = 1, maximum = 250)]
    #[serde(default, deserialize_with = "read_optional_integer")]
    k: Option<usize>,
    #[serde(default, deserialize_with = "read_object")]
    filters: FiltersBody,
    /// Return the features and articles that changed each suggestion's share most.
    #[serde(default)]
    explain: bool,
    /// As in `/complete`; of the true article, too.
    #[serde(default)]
    probability: bool,
    /// The article that a stylist chose. Each column returns its rank.
    #[schema(value_type = Option<ArticleIdSchema>)]
    true_article: Option<String>,
    /// As in `/complete`.
    #[serde(default)]
    skip_unknown: bool,
    /// As in `/complete`.
    #[serde(default, deserialize_with = "read_object")]
    #[schema(value_type = BTreeMap<String, Offer>)]
    live: LiveBody,
    /// Whether the shop's rules apply. Unlike in `/complete` they do not by default: they would move the methods that are compared.
    #[serde(default)]
    rules: bool,
    #[serde(default, deserialize_with = "read_present")]
    #[schema(schema_with = field_names)]
    fields: Option<Vec<String>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Comparison)]
pub(crate) struct ComparisonBody {
    /// The release that answered.
    release: String,
    /// The device that the models run on.
    device: &'static str,
    /// The blank's place in the outfit.
    slot: usize,
    /// In the order of the request.
    columns: Vec<ColumnBody>,
    /// Every pair of columns, by their places.
    pairs: Vec<Pair>,
    timing: TimingBody,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Column)]
struct ColumnBody {
    #[schema(value_type = MethodNameSchema)]
    method: Method,
    /// The customer; null if none was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    customer: Option<String>,
    /// Number of articles that the filters admit.
    admissible: usize,
    suggestions: Vec<SuggestionBody>,
    /// The rank of the true article; without one a warning says why.
    #[serde(skip_serializing_if = "Option::is_none")]
    true_article: Option<Placement>,
    /// The outfit's mixture of latent personas, if the method has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    personas: Option<Vec<f32>>,
    /// Mean number of steps of a universal trunk, if the method has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<f32>,
    warnings: Vec<Warning>,
}

/// Compare methods or customers
///
/// Returns columns of suggestions for one blank: a column for each method and one customer, or for each customer and
/// one method. Also returns how similar each pair of columns is.
#[utoipa::path(post, path = "/compare", operation_id = "compareSuggestions",
    tag = "completion", request_body = CompareBody, responses(
    (status = 200, description = "A column for each method or customer", body = ComparisonBody,
        headers(("Server-Timing" = String, description = "`queue`, `inference` and `total` in milliseconds"))),
    (status = 429, description = "A method's queue is full, or an answer would be too late"),
    (status = 504, description = "No answer within the deadline"),
))]
async fn compare(
    State(state): State<AppState>,
    Json(body): Json<CompareBody>,
) -> Result<(TimingBody, Json<ComparisonBody>), Problem> {
    let comparison = answer(&state, body).await?;
    Ok((comparison.timing, Json(comparison)))
}

pub(crate) async fn answer(state: &AppState, mut body: CompareBody) -> Result<ComparisonBody, Problem> {
    let times = state.times();
    let rules = body.rules.then_some(times.now);
    let (live, said) = read_live(take(&mut body.live), state.live_release()?)?;
    let shown = Shown::new(body.fields.take())?;
    let one_customer = body.customer.is_some();
    let (subjects, mut request) = body.read(&live, state.limits.columns as usize)?;
    request.live = said;
    request.rules = rules;
    let comparison = comparison::compare(&live, state.profiles(), &subjects, &request, times)
        .await
        .map_err(|error| locate_customer(error, one_customer))?;
    Ok(ComparisonBody::new(&live, &request, comparison, &shown, times.begun.elapsed()))
}

/// A body with one `customer` has no list, so the fault belongs to `/customer`.
fn locate_customer(error: ServiceError, one_customer: bool) -> Problem {
    match error {
        ServiceError::Faults(mut faults) if one_customer => {
            let customers = faults.iter_mut().filter(|fault| fault.field.index_in("customers").is_some());
            customers.for_each(|fault| fault.field = "customer".into());
            fault::problem(ServiceError::Faults(faults))
        }
        error => fault::problem(error),
    }
}

impl CompareBody {
    fn read(mut self, live: &LiveRelease, limit: usize) -> Result<(Subjects, Request), Problem> {
        let mut findings = Vec::new();
        let outfit = read_outfit(&self.outfit, &mut findings);
        if self.outfit.iter().filter(|slot| slot.is_none()).count() > 1 {
            findings.push(Finding::at("/outfit", "expected one blank, found several"));
        }
        let true_article = self.true_article.as_deref().map(ArticleId::new).transpose();
        let true_article = value_or_finding(true_article, || "/true_article".into(), &mut findings).flatten();
        let given = read_features(self.features.take(), live, &mut findings);
        let filters = take(&mut self.filters).read(&mut findings);
        let methods = self.read_methods(&mut findings);
        let customers = self.read_customers(&mut findings);
        let subjects = Subjects::new(live, methods, customers, !self.customers.is_empty(), limit);
        let subjects = subjects.map_err(|faults| findings.extend(faults.into_iter().map(fault::finding)));
        let (Ok(subjects), []) = (subjects, &findings[..]) else { return Err(Problem::invalid(findings)) };
        let request = Request {
            given,
            k: self.k.unwrap_or(DEFAULT_K),
            filters,
            explain: self.explain,
            skip_unknown: self.skip_unknown,
            probability: self.probability,
            placements_of: true_article.into_iter().collect(),
            ..Request::new(outfit, live.default_method())
        };
        Ok((subjects, request))
    }

    /// The methods with their indices in the list.
    fn read_methods(&self, findings: &mut Vec<Finding>) -> Vec<(usize, Method)> {
        let method = |(index, name): (usize, &String)| {
            let method = value_or_finding(name.parse(), || format!("/methods/{index}"), findings)?;
            Some((index, method))
        };
        self.methods.iter().enumerate().filter_map(method).collect()
    }

    fn read_customers(&self, findings: &mut Vec<Finding>) -> Vec<CustomerId> {
        if self.customer.is_some() && !self.customers.is_empty() {
            findings.push(Finding::at("/customers", "give either `customer` or `customers`"));
        }
        let mut customers = Vec::new();
        if let Some(id) = &self.customer {
            customers.extend(value_or_finding(CustomerId::new(id), || "/customer".into(), findings));
        }
        for (index, id) in self.customers.iter().enumerate() {
            let pointer = || format!("/customers/{index}");
            customers.extend(value_or_finding(CustomerId::new(id), pointer, findings));
        }
        customers
    }
}

impl ComparisonBody {
    fn new(
        live: &LiveRelease,
        request: &Request,
        comparison: Comparison,
        shown: &Shown,
        took: Duration,
    ) -> Self {
        let Comparison { columns, pairs, cost } = comparison;
        let release = live.name().to_owned();
        let column = |mut column: Column| {
            if let (Some(id), [None, ..]) = (request.placements_of.first(), &column.blank().placements[..]) {
                column.completion.warnings.push(no_rank(live, id, column.method));
            }
            ColumnBody::new(column, &request.outfit, shown)
        };
        Self {
            release,
            device: live.serving.device().as_str(),
            slot: columns.first().map_or(0, |column| column.blank().slot),
            columns: columns.into_iter().map(column).collect(),
            pairs,
            timing: TimingBody::new(cost, took),
        }
    }
}

/// Why the true article has no rank.
fn no_rank(live: &LiveRelease, id: &ArticleId, method: Method) -> Warning {
    if live.catalogue.position_of(id.as_str()).is_none() {
        let detail = format!("there is no article {id}, so it has no rank");
        return Warning::new("unknown-article", detail);
    }
    let release = live.name();
    let detail = format!("release {release} was trained without {id}: {method} gives it no rank");
    Warning::new("article-not-in-release", detail)
}

impl ColumnBody {
    fn new(column: Column, outfit: &[Option<ArticleId>], shown: &Shown) -> Self {
        let Column { method, customer, completion } = column;
        let Completion { mut blanks, variants, personas, steps, warnings, .. } = completion;
        let blank = blanks.swap_remove(0);
        Self {
            method,
            customer: customer.as_ref().map(ToString::to_string),
            admissible: blank.admissible,
            true_article: blank.placements.first().copied().flatten(),
            suggestions: suggestion_bodies(blank.suggestions, outfit, &variants, shown),
            personas,
            steps,
            warnings,
        }
    }
}
