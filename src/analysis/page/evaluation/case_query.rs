//! The query of the views of single cases: the two methods, the filters, the order and the page.

use std::sync::Arc;

use atelier_core::domain::{CustomerId, Method};
use atelier_engine::evaluation::{By, Lead, Ranks, Selection, Versus};
use serde::{Deserialize, Serialize};

use super::{Shortfall, not_evaluated};
use crate::{
    platform::{
        db::{Store, StoreError},
        http::{AppState, Finding, Kind, Problem},
        page::form,
    },
    releases::LiveRelease,
};

/// The query's parameters as the address has them.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub(super) struct CaseParameters {
    /// Defaults to the release's default method, and the second one to the method none.
    first: Option<Method>,
    second: Option<Method>,
    /// Further methods, which the cases show too.
    #[serde(default)]
    also: Vec<Method>,
    by: Option<By>,
    lead: Option<Lead>,
    /// The missing article's type.
    r#type: Option<String>,
    seen: Option<YesNo>,
    customer: Option<String>,
    /// Whether to show customers of the database only. Defaults to yes.
    known: Option<YesNo>,
    page: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum YesNo {
    Yes,
    No,
}

/// A query that is valid for a release.
#[derive(Debug)]
pub(super) struct CaseQuery {
    /// With each default that links spell out.
    asked: CaseParameters,
    pub(super) versus: Versus,
    /// The first method, the second one, and the others to show.
    pub(super) shown: Vec<Method>,
    pub(super) customer: Option<CustomerId>,
    /// The methods and types to choose from.
    pub(super) methods: Vec<Method>,
    pub(super) types: Vec<String>,
}

impl CaseQuery {
    pub(super) fn new(query: CaseParameters, ranks: &Ranks, default: Method) -> Result<Self, Problem> {
        let methods: Vec<Method> = ranks.methods().collect();
        let mut findings = Vec::new();
        let also = query.also.iter().map(|method| ("also", Some(*method)));
        for (name, method) in [("first", query.first), ("second", query.second)].into_iter().chain(also) {
            if let Some(method) = method.filter(|method| !methods.contains(method)) {
                findings.push(not_evaluated(name, method, &methods));
            }
        }
        let default_other_than = |other: Option<Method>, preferred: Method| {
            let others = || methods.iter().copied().filter(move |method| Some(*method) != other);
            others().find(|method| *method == preferred).or_else(|| others().next()).unwrap_or(preferred)
        };
        let first =
            query.first.unwrap_or_else(|| default_other_than(query.second.or(Some(Method::None)), default));
        let second = query.second.unwrap_or_else(|| default_other_than(Some(first), Method::None));
        if first == second {
            let detail = format!("{first} cannot be compared with itself; choose another method");
            findings.push(Finding::parameter("second", detail));
        }
        if let Some(kind) = query.r#type.as_ref().filter(|kind| !ranks.types().contains(kind)) {
            let detail = format!(
                "no case has a missing article of type {kind:?}; choose one of {}",
                ranks.types().join(", ")
            );
            findings.push(Finding::parameter("type", detail));
        }
        let customer = query.customer.as_deref().map(str::trim).filter(|id| !id.is_empty());
        let customer = customer.map(CustomerId::new).transpose().unwrap_or_else(|error| {
            findings.push(Finding::parameter("customer", error.to_string()));
            None
        });
        if query.page == Some(0) {
            findings.push(Finding::parameter("page", "page numbers start at 1, found 0"));
        }
        if !findings.is_empty() {
            return Err(Problem::invalid(findings));
        }
        let is_further = |method: &Method| query.also.contains(method) && ![first, second].contains(method);
        let also: Vec<Method> = methods.iter().copied().filter(is_further).collect();
        let (by, lead) = (query.by.unwrap_or_default(), query.lead.unwrap_or_default());
        Ok(Self {
            shown: [first, second].into_iter().chain(also.iter().copied()).collect(),
            versus: Versus { first, second, by, lead },
            asked: CaseParameters {
                first: Some(first),
                second: Some(second),
                also,
                by: Some(by),
                lead: Some(lead),
                customer: customer.as_ref().map(ToString::to_string),
                known: query.known.or(Some(YesNo::Yes)),
                ..query
            },
            customer,
            methods,
            types: ranks.types().to_vec(),
        })
    }

    /// `known` says which customers of the ranks are in the database.
    pub(super) fn selection<'a>(&'a self, known: &'a [bool]) -> Selection<'a> {
        Selection {
            kind: self.asked.r#type.as_deref(),
            seen: self.seen(),
            customer: self.customer.as_ref(),
            among: self.known().then_some(known),
        }
    }

    /// Whether the method is shown next to the first and the second one.
    pub(super) fn is_also(&self, method: &Method) -> bool {
        self.asked.also.contains(method)
    }

    pub(super) fn is_of_type(&self, kind: &str) -> bool {
        self.asked.r#type.as_deref() == Some(kind)
    }

    pub(super) fn seen(&self) -> Option<bool> {
        self.asked.seen.map(|seen| seen == YesNo::Yes)
    }

    /// Whether to show customers of the database only.
    pub(super) fn known(&self) -> bool {
        self.asked.known == Some(YesNo::Yes)
    }

    /// Starts at 1.
    pub(super) fn page(&self) -> Option<usize> {
        self.asked.page
    }

    /// The same query at another path or page.
    pub(super) fn link(&self, path: &str, page: usize) -> String {
        let page = (page > 1).then_some(page);
        form::address(path, &CaseParameters { page, ..self.asked.clone() })
    }

    /// The same query for one customer.
    pub(super) fn customer_link(&self, path: &str, customer: &CustomerId) -> String {
        let customer = Some(customer.to_string());
        form::address(path, &CaseParameters { page: None, customer, ..self.asked.clone() })
    }
}

/// The source of the views of cases and customers.
pub(super) struct CaseView {
    pub(super) live: Arc<LiveRelease>,
    pub(super) ranks: Arc<Ranks>,
    pub(super) query: CaseQuery,
    /// For each customer of the ranks, whether the database has them.
    pub(super) known: Vec<bool>,
}

impl CaseView {
    pub(super) async fn read(
        state: &AppState,
        parameters: CaseParameters,
    ) -> Result<Result<Self, Shortfall>, Problem> {
        let Some(live) = state.releases().current() else { return Ok(Err(Shortfall::of_release())) };
        let ranks = match live.evaluation.ranks().await {
            Ok(ranks) => ranks,
            Err(error) => return Ok(Err(error.into())),
        };
        let query = CaseQuery::new(parameters, &ranks, live.default_method())?;
        let known = known_customers(&state.store, &ranks).await?;
        Ok(Ok(Self { live, ranks, query, known }))
    }

    pub(super) async fn for_file(state: &AppState, parameters: CaseParameters) -> Result<Self, Problem> {
        state.live_release()?;
        Self::read(state, parameters).await?.map_err(|lack| Problem::new(Kind::NotFound, lack.detail))
    }
}

/// For each customer of the ranks, whether the database has them.
async fn known_customers(store: &Store, ranks: &Ranks) -> Result<Vec<bool>, StoreError> {
    let known = store.customers().existing_ids(ranks.customers()).await?;
    Ok(ranks.customers().iter().map(|customer| known.contains(customer)).collect())
}
