//! The query of the views of single cases: the two methods, the filters, the order and the page.

use std::sync::Arc;

use atelier_core::domain::{CustomerId, Method};
use atelier_engine::evaluation::{By, Lead, Ranks, Selection, Versus};
use serde::Deserialize;

use super::{format, not_evaluated};
use crate::{
    service::live_release::LiveRelease,
    store::{Store, StoreError},
    web::http::{AppState, Finding, Kind, Problem},
};

/// The query's parameters as the address has them.
#[derive(Debug, Default, Deserialize)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum YesNo {
    Yes,
    No,
}

/// A query that is valid for a release.
#[derive(Debug)]
pub(super) struct CaseQuery {
    pub(super) versus: Versus,
    /// The first method, the second one, and the others to show.
    pub(super) shown: Vec<Method>,
    pub(super) kind: Option<String>,
    pub(super) seen: Option<bool>,
    pub(super) customer: Option<CustomerId>,
    pub(super) known: bool,
    /// Starts at 1.
    pub(super) page: usize,
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
        let also = methods.iter().filter(|method| query.also.contains(method));
        let others = also.copied().filter(|method| *method != first && *method != second);
        Ok(Self {
            shown: [first, second].into_iter().chain(others).collect(),
            versus: Versus {
                first,
                second,
                by: query.by.unwrap_or_default(),
                lead: query.lead.unwrap_or_default(),
            },
            kind: query.r#type,
            seen: query.seen.map(|seen| seen == YesNo::Yes),
            customer,
            known: query.known != Some(YesNo::No),
            page: query.page.unwrap_or(1),
            methods,
            types: ranks.types().to_vec(),
        })
    }

    /// `known` says which customers of the ranks are in the database.
    pub(super) fn selection<'a>(&'a self, known: &'a [bool]) -> Selection<'a> {
        Selection {
            kind: self.kind.as_deref(),
            seen: self.seen,
            customer: self.customer.as_ref(),
            among: self.known.then_some(known),
        }
    }

    /// Whether the method is shown beside the first and the second one.
    pub(super) fn is_also(&self, method: &Method) -> bool {
        self.shown[2..].contains(method)
    }

    pub(super) fn is_of_type(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// The same query at another path or page.
    pub(super) fn link(&self, path: &str, page: usize) -> String {
        self.link_to(path, self.customer.as_ref(), page)
    }

    /// The same query for one customer.
    pub(super) fn customer_link(&self, path: &str, customer: &CustomerId) -> String {
        self.link_to(path, Some(customer), 1)
    }

    fn link_to(&self, path: &str, customer: Option<&CustomerId>, page: usize) -> String {
        let yes_no = |yes: bool| if yes { "yes" } else { "no" };
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("first", self.versus.first.as_str())
            .append_pair("second", self.versus.second.as_str());
        for method in &self.shown[2..] {
            query.append_pair("also", method.as_str());
        }
        query.append_pair("by", self.versus.by.as_str()).append_pair("lead", self.versus.lead.as_str());
        if let Some(kind) = &self.kind {
            query.append_pair("type", kind);
        }
        if let Some(seen) = self.seen {
            query.append_pair("seen", yes_no(seen));
        }
        if let Some(customer) = customer {
            query.append_pair("customer", customer.as_str());
        }
        query.append_pair("known", yes_no(self.known));
        if page > 1 {
            query.append_pair("page", &page.to_string());
        }
        format!("{path}?{}", query.finish())
    }
}

/// What a file of cases or customers is made from.
pub(super) struct View {
    pub(super) live: Arc<LiveRelease>,
    pub(super) ranks: Arc<Ranks>,
    pub(super) query: CaseQuery,
    /// For each customer of the ranks, whether the database has them.
    pub(super) known: Vec<bool>,
}

impl View {
    pub(super) async fn for_file(state: &AppState, parameters: CaseParameters) -> Result<Self, Problem> {
        let live = state.live_release()?;
        let ranks = live.evaluation.ranks().await;
        let ranks = ranks.map_err(|error| Problem::new(Kind::NotFound, error.to_string()))?;
        let query = CaseQuery::new(parameters, &ranks, live.default_method())?;
        let known = known_customers(&state.store, &ranks).await?;
        Ok(Self { live, ranks, query, known })
    }
}

/// For each customer of the ranks, whether the database has them.
pub(super) async fn known_customers(store: &Store, ranks: &Ranks) -> Result<Vec<bool>, StoreError> {
    let known = store.customers().existing_ids(ranks.customers()).await?;
    Ok(ranks.customers().iter().map(|customer| known.contains(customer)).collect())
}

/// A list's pages.
#[derive(Debug)]
pub(super) struct Pager {
    /// The number of items on all pages.
    pub(super) total: String,
    pub(super) page: usize,
    pub(super) pages: usize,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Pager {
    pub(super) fn new(query: &CaseQuery, path: &str, total: usize, size: usize) -> Self {
        let pages = total.div_ceil(size).max(1);
        // A page past the end is the last.
        let page = query.page.min(pages);
        Self {
            total: format::count(total as u64),
            page,
            pages,
            before: (page > 1).then(|| query.link(path, page - 1)),
            after: (page < pages).then(|| query.link(path, page + 1)),
        }
    }
}

/// A page's part of a list.
pub(super) fn page_of<T>(all: &[T], page: usize, size: usize) -> impl Iterator<Item = &T> {
    all.iter().skip((page - 1) * size).take(size)
}
