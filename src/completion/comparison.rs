//! The same blank side by side: filled by several methods for one customer, or by one method for several customers.

use std::sync::Arc;

use atelier_core::domain::{CustomerId, Method, list_methods};
use futures_util::future::try_join_all;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Blank, Completion, Cost, Request, Stored, Warning,
    asking::{Times, stored_features},
    complete, overlap, rank_biased_overlap,
};
use crate::{
    completion::profiles::Profiles,
    platform::fault::{Fault, Field, ServiceError},
    releases::LiveRelease,
};

/// At most one of the two lists has more than one entry.
#[derive(Debug, Clone)]
pub struct Subjects {
    pub methods: Vec<Method>,
    pub customers: Vec<CustomerId>,
}

#[derive(Debug, Clone)]
pub struct Comparison {
    pub columns: Vec<Column>,
    pub pairs: Vec<Pair>,
    /// Columns wait and run at the same time: the longest wait, the longest run.
    pub cost: Cost,
}

#[derive(Debug, Clone)]
pub struct Column {
    pub method: Method,
    pub customer: Option<CustomerId>,
    /// Of one blank.
    pub completion: Completion,
}

impl Column {
    pub fn blank(&self) -> &Blank {
        &self.completion.blanks[0]
    }
}

/// How alike two columns are.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Pair {
    /// The columns, by their indices.
    pub columns: [usize; 2],
    /// Share of the k suggestions that both columns have.
    pub overlap: f64,
    /// Rank-biased overlap (p = 0.9): 1 for the same order, 0 for no common suggestion.
    pub rank_biased_overlap: f64,
}

impl Subjects {
    /// `named` are methods with their indices in the request. Without a named method, all methods of the release are compared,
    /// or the default method answers if there is a list of customers.
    pub fn new(
        live: &LiveRelease,
        named: Vec<(usize, Method)>,
        customers: Vec<CustomerId>,
        several_customers: bool,
        limit: usize,
    ) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut methods = Vec::new();
        for (index, method) in named {
            if methods.contains(&method) {
                let detail = format!("the method {method} is listed twice");
                faults.push(Fault::new(Field::from("methods").item(&index), detail));
            } else if live.serving.has(method) {
                methods.push(method);
            } else {
                let has = list_methods(live.serving.methods());
                let detail = format!("this release has no method {method}; it has {has}");
                faults.push(Fault::new(Field::from("methods").item(&index), detail));
            }
        }
        if methods.is_empty() && faults.is_empty() {
            methods = if several_customers {
                vec![live.default_method()]
            } else {
                live.serving.methods().collect()
            };
        }
        for (field, length) in [("methods", methods.len()), ("customers", customers.len())] {
            if length > limit {
                let detail = format!("at most {limit} columns are compared at once, found {length}");
                faults.push(Fault::new(field, detail));
            }
        }
        if customers.len() > 1 && methods.len() > 1 {
            let detail = "customers are compared with one method; name only one";
            faults.push(Fault::new("methods", detail));
        }
        if faults.is_empty() { Ok(Self { methods, customers }) } else { Err(faults) }
    }
}

/// Asks for all columns at once. `request` has what they share; its `stored` and `method` are each column's own.
pub async fn compare(
    live: &LiveRelease,
    profiles: &Profiles,
    subjects: &Subjects,
    request: &Request,
    times: Times,
) -> Result<Comparison, ServiceError> {
    let people = subjects.customers.iter().enumerate().map(async |(index, id)| {
        let (features, stale) = stored_features(profiles, id, Some(index), request, times.begun).await?;
        Ok::<_, ServiceError>((Some(id.clone()), features, stale))
    });
    let mut people = try_join_all(people).await?;
    if people.is_empty() {
        people.push((None, None, None));
    }
    let each = people.iter().flat_map(|person| subjects.methods.iter().map(move |method| (*method, person)));
    let ask = async |(method, (customer, stored, stale)): (
        Method,
        &(Option<CustomerId>, Option<Arc<Stored>>, _),
    )| {
        let request = Request { stored: stored.clone(), method, ..request.clone() };
        let mut completion = complete(live.served(), &request, times.deadline).await?;
        completion.warnings.extend(Option::<Warning>::clone(stale));
        Ok::<_, ServiceError>(Column { method, customer: customer.clone(), completion })
    };
    let columns = try_join_all(each.map(ask)).await?;
    let mut cost = Cost::default();
    for column in columns.iter().map(|column| column.completion.cost) {
        cost.queued = cost.queued.max(column.queued);
        cost.inferred = cost.inferred.max(column.inferred);
        cost.questions += column.questions;
        cost.batch = cost.batch.max(column.batch);
    }
    Ok(Comparison { pairs: pairs(&columns), columns, cost })
}

fn pairs(columns: &[Column]) -> Vec<Pair> {
    let rankings: Vec<Vec<u32>> = columns
        .iter()
        .map(|column| column.blank().suggestions.iter().map(|suggestion| suggestion.index).collect())
        .collect();
    let pair = |[one, other]: [usize; 2]| Pair {
        columns: [one, other],
        overlap: overlap(&rankings[one], &rankings[other]),
        rank_biased_overlap: rank_biased_overlap(&rankings[one], &rankings[other]),
    };
    let indices = 0..columns.len();
    indices.clone().flat_map(|one| (one + 1..indices.end).map(move |other| pair([one, other]))).collect()
}
