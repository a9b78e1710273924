//! What the views of single cases are asked: which two methods, which cases, in which order.

use serde::Deserialize;

use super::choice::not_judged;
use crate::{
    domain::{CustomerId, Method},
    service::evaluation::{By, Lead, Ranks, Selection, Versus},
    store::{Store, StoreError},
    web::http::{Finding, Problem},
};

/// Their query.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersusQuery {
    /// The release's default method, and none, if not given.
    first: Option<Method>,
    second: Option<Method>,
    by: Option<By>,
    lead: Option<Lead>,
    /// The missing article's type.
    r#type: Option<String>,
    seen: Option<Answer>,
    customer: Option<String>,
    /// Whether only customers of the database are looked at: yes if not given.
    known: Option<Answer>,
    page: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Yes,
    No,
}

/// A query that makes sense for a release.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) versus: Versus,
    pub(super) kind: Option<String>,
    pub(super) seen: Option<bool>,
    pub(super) customer: Option<CustomerId>,
    pub(super) known: bool,
    /// From 1 up.
    pub(super) page: usize,
    /// What may be chosen.
    pub(super) methods: Vec<Method>,
    pub(super) types: Vec<String>,
}

impl Asked {
    pub(super) fn new(query: VersusQuery, ranks: &Ranks, default: Method) -> Result<Self, Problem> {
        let methods: Vec<Method> = ranks.methods().collect();
        let mut findings = Vec::new();
        for (name, method) in [("first", query.first), ("second", query.second)] {
            if let Some(method) = method.filter(|method| !methods.contains(method)) {
                findings.push(not_judged(name, method, &methods));
            }
        }
        let usual = |not: Option<Method>, wanted: Method| {
            let others = || methods.iter().copied().filter(move |method| Some(*method) != not);
            others().find(|method| *method == wanted).or_else(|| others().next()).unwrap_or(wanted)
        };
        let first = query.first.unwrap_or_else(|| usual(query.second.or(Some(Method::None)), default));
        let second = query.second.unwrap_or_else(|| usual(Some(first), Method::None));
        if first == second {
            let detail = format!("{first} cannot be held against itself; choose another method");
            findings.push(Finding::parameter("second", detail));
        }
        if let Some(kind) = query.r#type.as_ref().filter(|kind| !ranks.types().contains(kind)) {
            let detail = format!(
                "no case has a missing article of type {kind:?}; there are {}",
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
            findings.push(Finding::parameter("page", "pages are counted from 1, found 0"));
        }
        if !findings.is_empty() {
            return Err(Problem::invalid(findings));
        }
        Ok(Self {
            versus: Versus {
                first,
                second,
                by: query.by.unwrap_or_default(),
                lead: query.lead.unwrap_or_default(),
            },
            kind: query.r#type,
            seen: query.seen.map(|seen| seen == Answer::Yes),
            customer,
            known: query.known != Some(Answer::No),
            page: query.page.unwrap_or(1),
            methods,
            types: ranks.types().to_vec(),
        })
    }

    pub(super) fn selection<'a>(&'a self, among: &'a [bool]) -> Selection<'a> {
        Selection {
            kind: self.kind.as_deref(),
            seen: self.seen,
            customer: self.customer.as_ref(),
            among: self.known.then_some(among),
        }
    }

    pub(super) fn is_of_type(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// The same view at another path or page.
    pub(super) fn link(&self, path: &str, page: usize) -> String {
        self.link_to(path, self.customer.as_ref(), page)
    }

    /// The same view of one customer.
    pub(super) fn of_customer(&self, path: &str, customer: &CustomerId) -> String {
        self.link_to(path, Some(customer), 1)
    }

    fn link_to(&self, path: &str, customer: Option<&CustomerId>, page: usize) -> String {
        let word = |truth: bool| if truth { "yes" } else { "no" };
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("first", self.versus.first.as_str())
            .append_pair("second", self.versus.second.as_str());
        query.append_pair("by", self.versus.by.as_str()).append_pair("lead", self.versus.lead.as_str());
        if let Some(kind) = &self.kind {
            query.append_pair("type", kind);
        }
        if let Some(seen) = self.seen {
            query.append_pair("seen", word(seen));
        }
        if let Some(customer) = customer {
            query.append_pair("customer", customer.as_str());
        }
        query.append_pair("known", word(self.known));
        if page > 1 {
            query.append_pair("page", &page.to_string());
        }
        format!("{path}?{}", query.finish())
    }
}

/// Which of the customers that were asked about the database has, by their places.
pub(super) async fn known(store: &Store, ranks: &Ranks) -> Result<Vec<bool>, StoreError> {
    let known = store.customers().existing_ids(ranks.customers()).await?;
    Ok(ranks.customers().iter().map(|customer| known.contains(customer)).collect())
}

/// The pages of a list, and where this one stands.
#[derive(Debug)]
pub(super) struct Pager {
    /// How many there are in all.
    pub(super) total: String,
    pub(super) page: usize,
    pub(super) pages: usize,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Pager {
    pub(super) fn new(asked: &Asked, path: &str, total: usize, size: usize) -> Self {
        let pages = total.div_ceil(size).max(1);
        Self {
            total: super::written::count(total as u64),
            page: asked.page,
            pages,
            before: (asked.page > 1).then(|| asked.link(path, (asked.page - 1).min(pages))),
            after: (asked.page < pages).then(|| asked.link(path, asked.page + 1)),
        }
    }
}

/// The part of a list that stands on a page.
pub(super) fn page_of<T>(all: &[T], page: usize, size: usize) -> impl Iterator<Item = &T> {
    all.iter().skip(page.saturating_sub(1).saturating_mul(size)).take(size)
}

impl By {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::LogProbability => "how likely",
            Self::Rank => "rank",
        }
    }

    /// What a difference is counted in.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::LogProbability => "mean log ratio",
            Self::Rank => "mean places",
        }
    }
}

impl Lead {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::First => "where the first is better",
            Self::Second => "where the second is better",
        }
    }
}
