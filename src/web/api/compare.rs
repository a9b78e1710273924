//! `/compare`: the same question to several methods, or about several customers, side by side.

use std::time::Instant;

use axum::extract::State;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::complete::{
    Asked, DEFAULT_K, FiltersBody, PlacementBody, SuggestionBody, WarningBody, article_id, customer_id,
    given, known, method, outfit, suggestions,
};
use crate::web::http::schema::{free_object, method_name};
use crate::web::http::{
    AppState, Finding, Problem,
    extract::{Json, object, whole_option},
    timing::TimingBody,
};
use crate::{
    domain::{ArticleId, CustomerId, Features, Method},
    service::{
        completion::{self, Blank, Completion, Cost, Request, Warning, overlap, rank_biased_overlap},
        live_release::LiveRelease,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(compare))
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
    let began = Instant::now();
    let live = state.live_release()?;
    let columns = body.read(&state, &live).await?;
    let deadline = began + state.limits.deadline();
    let completions = try_join_all(
        columns.iter().map(|column| completion::complete(live.served(), &column.asked.request, deadline)),
    );
    let completions = completions.await?;
    let comparison = ComparisonBody::new(&live, &columns, completions, began);
    Ok((comparison.timing, Json(comparison)))
}

/// What is asked for one column.
#[derive(Debug)]
struct Column {
    asked: Asked,
    customer: Option<CustomerId>,
    /// Where the profile is a stale one.
    aged: Option<Warning>,
}

/// A customer with their profile.
type Person<'a> = (&'a CustomerId, &'a (Features, Option<Warning>));

impl CompareBody {
    async fn read(self, state: &AppState, live: &LiveRelease) -> Result<Vec<Column>, Problem> {
        let mut wrong = Vec::new();
        let request = self.request(live, &mut wrong);
        let methods = self.methods(live, &mut wrong);
        let customers = self.customers(&mut wrong);
        let most = state.limits.columns as usize;
        for (field, length) in [("/methods", methods.len()), ("/customers", customers.len())] {
            if length > most {
                let detail = format!("at most {most} columns are compared at once, found {length}");
                wrong.push(Finding::at(field, detail));
            }
        }
        if customers.len() > 1 && methods.len() > 1 {
            let detail = "several customers are compared under one method: name one";
            wrong.push(Finding::at("/methods", detail));
        }
        if !wrong.is_empty() {
            return Err(Problem::invalid(wrong));
        }
        let profiles = try_join_all(customers.iter().enumerate().map(async |(place, (pointer, id))| {
            let pointer = pointer.map_or_else(|| format!("/customers/{place}"), ToOwned::to_owned);
            known(state, id, &pointer).await
        }));
        let profiles = profiles.await?;
        let column = |method: Method, person: Option<Person<'_>>| {
            let (stored, aged) = person.map(|(_, known)| known.clone()).unwrap_or_default();
            let request = Request { stored, method, ..request.clone() };
            let customer = person.map(|(id, _)| id.clone());
            Column { asked: Asked { request, arm: None }, customer, aged }
        };
        let people: Vec<Person<'_>> = customers.iter().map(|(_, id)| id).zip(&profiles).collect();
        Ok(if people.len() > 1 {
            people.iter().map(|person| column(methods[0], Some(*person))).collect()
        } else {
            methods.iter().map(|method| column(*method, people.first().copied())).collect()
        })
    }

    /// What all columns share.
    fn request(&self, live: &LiveRelease, wrong: &mut Vec<Finding>) -> Request {
        let outfit = outfit(&self.outfit, wrong);
        if self.outfit.iter().filter(|slot| slot.is_none()).count() > 1 {
            wrong.push(Finding::at("/outfit", "one blank is compared at a time; this outfit has several"));
        }
        let true_article =
            self.true_article.as_deref().and_then(|id| article_id(id, || "/true_article".into(), wrong));
        Request {
            stored: Features::default(),
            given: given(self.features.clone(), live, wrong),
            outfit,
            method: live.serving.release().manifest().default_method,
            k: self.k.unwrap_or(DEFAULT_K),
            filters: self.filters.clone().read(wrong),
            diversity: 0.0,
            lift: false,
            explain: self.explain,
            sets: 0,
            placements_of: true_article.into_iter().collect::<Vec<ArticleId>>(),
        }
    }

    fn methods(&self, live: &LiveRelease, wrong: &mut Vec<Finding>) -> Vec<Method> {
        if self.methods.is_empty() {
            return if self.customers.is_empty() {
                live.serving.methods().collect()
            } else {
                vec![live.choose(None).method]
            };
        }
        let mut methods = Vec::new();
        for (place, name) in self.methods.iter().enumerate() {
            let pointer = format!("/methods/{place}");
            let Some(found) = method(name, &pointer, wrong) else { continue };
            if methods.contains(&found) {
                wrong.push(Finding::at(pointer, format!("the method {found} stands in the list twice")));
            } else if live.serving.has(found) {
                methods.push(found);
            } else {
                let has: Vec<&str> = live.serving.methods().map(Method::as_str).collect();
                let detail = format!("this release has no method {found}; it has {}", has.join(", "));
                wrong.push(Finding::at(pointer, detail));
            }
        }
        methods
    }

    /// With the pointer of each, where it is not its place in `customers`.
    fn customers(&self, wrong: &mut Vec<Finding>) -> Vec<(Option<&'static str>, CustomerId)> {
        if self.customer.is_some() && !self.customers.is_empty() {
            wrong.push(Finding::at("/customers", "give either `customer` or `customers`"));
        }
        let one = self.customer.as_deref().and_then(|id| customer_id(id, "/customer", wrong));
        let mut all: Vec<_> = one.map(|id| (Some("/customer"), id)).into_iter().collect();
        for (place, id) in self.customers.iter().enumerate() {
            all.extend(customer_id(id, &format!("/customers/{place}"), wrong).map(|id| (None, id)));
        }
        all
    }
}

impl ComparisonBody {
    fn new(live: &LiveRelease, columns: &[Column], completions: Vec<Completion>, began: Instant) -> Self {
        let k = columns.first().map_or(0, |column| column.asked.request.k);
        let mut cost = Cost::default();
        let mut rankings: Vec<Vec<u32>> = Vec::new();
        let mut bodies = Vec::new();
        let mut slot = 0;
        for (column, completion) in columns.iter().zip(completions) {
            // Columns wait and run beside each other.
            cost.queued = cost.queued.max(completion.cost.queued);
            cost.inferred = cost.inferred.max(completion.cost.inferred);
            cost.questions += completion.cost.questions;
            cost.batch = cost.batch.max(completion.cost.batch);
            let (warnings, personas, steps) = (completion.warnings, completion.personas, completion.steps);
            let blank = completion.blanks.into_iter().next().expect("there is a blank; this is a bug");
            slot = blank.slot;
            rankings.push(blank.suggestions.iter().map(|suggestion| suggestion.index).collect());
            let warnings = warnings.into_iter().chain(column.aged.clone());
            let warnings = warnings.map(WarningBody::from).collect();
            bodies.push(ColumnBody { personas, steps, warnings, ..ColumnBody::new(column, blank) });
        }
        Self {
            release: live.name().to_owned(),
            device: live.serving.device().as_str(),
            slot,
            columns: bodies,
            pairs: pairs(&rankings, k),
            timing: TimingBody::new(cost, began.elapsed()),
        }
    }
}

impl ColumnBody {
    fn new(column: &Column, blank: Blank) -> Self {
        Self {
            method: column.asked.request.method,
            customer: column.customer.as_ref().map(ToString::to_string),
            admissible: blank.admissible,
            true_article: blank.placements.first().copied().flatten().map(PlacementBody::from),
            suggestions: suggestions(blank.suggestions, &column.asked),
            personas: None,
            steps: None,
            warnings: Vec::new(),
        }
    }
}

fn pairs(rankings: &[Vec<u32>], k: usize) -> Vec<PairBody> {
    let places = 0..rankings.len();
    let two = places.clone().flat_map(|one| (one + 1..places.end).map(move |other| [one, other]));
    let pair = |columns: [usize; 2]| {
        let [one, other] = columns.map(|place| &rankings[place][..rankings[place].len().min(k)]);
        let (overlap, rank_biased_overlap) = (overlap(one, other), rank_biased_overlap(one, other));
        PairBody { columns, overlap, rank_biased_overlap }
    };
    two.map(pair).collect()
}
