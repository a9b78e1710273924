//! The cases and customers on which two methods differ most.

use atelier_core::{
    domain::{CustomerId, Method},
    named,
};
use serde::{Deserialize, Serialize};

use super::Ranks;

/// Two methods and how to compare them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versus {
    pub first: Method,
    pub second: Method,
    pub by: By,
    /// The method whose best cases come first.
    pub lead: Lead,
}

named! {
    "a difference is by log_probability or rank"
    /// The figure of the true article to compare. A difference above 0 always favours the first method.
    #[derive(Default, Deserialize, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum By {
        /// The logarithm of its probability: the first method's minus the second's.
        #[default]
        LogProbability = "log_probability",
        /// Its rank: the second method's minus the first's.
        Rank = "rank",
    }
}

named! {
    "the method whose cases come first is first, second or apart"
    /// The method whose best cases come first.
    #[derive(Default, Deserialize, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Lead {
        #[default]
        First = "first",
        Second = "second",
        /// Neither: the cases in which the methods are furthest apart come first.
        Apart = "apart",
    }
}

/// A filter of cases. A case must match every field that is set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// The true article's type.
    pub kind: Option<&'a str>,
    /// Whether the customer was seen in training.
    pub seen: Option<bool>,
    pub customer: Option<&'a CustomerId>,
    /// For each of [`Ranks::customers`], whether their cases are included.
    pub among: Option<&'a [bool]>,
}

/// The difference between two methods in one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseDifference {
    pub row: usize,
    pub difference: f32,
}

/// The difference between two methods over a customer's cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CustomerDifference<'a> {
    pub customer: &'a CustomerId,
    pub cases: u32,
    /// The mean over the cases.
    pub difference: f64,
}

impl Ranks {
    /// The rank and the log-probability of the true article, as a method answered.
    pub fn answer(&self, method: Method, row: usize) -> Option<(f32, f32)> {
        let answers = self.answers_of(method)?;
        Some((answers.ranks[row], answers.log_probabilities[row]))
    }

    /// The cases in order of difference, those that most favour the leading method first. Empty if one of the
    /// methods was not evaluated.
    pub fn cases_by_difference(&self, versus: Versus, selection: Selection<'_>) -> Vec<CaseDifference> {
        sort(self.differences(versus, selection), versus.lead)
    }

    /// The cases in order of the distance between the best and the worst of these methods, the furthest apart first.
    pub fn cases_by_distance(
        &self,
        methods: &[Method],
        by: By,
        selection: Selection<'_>,
    ) -> Vec<CaseDifference> {
        let answers: Vec<_> = methods.iter().filter_map(|method| self.answers_of(*method)).collect();
        let distance = |row: usize| {
            let figures = answers.iter().map(|answers| match by {
                By::LogProbability => answers.log_probabilities[row],
                By::Rank => answers.ranks[row],
            });
            let ends = (f32::INFINITY, f32::NEG_INFINITY);
            let (low, high) = figures.fold(ends, |(low, high), one| (low.min(one), high.max(one)));
            high - low
        };
        let rows = (0..self.len()).filter(|&row| self.matches(row, selection));
        sort(rows.map(|row| CaseDifference { row, difference: distance(row) }), Lead::First)
    }

    /// The customers in order of their mean difference.
    pub fn customers_by_difference(
        &self,
        versus: Versus,
        selection: Selection<'_>,
    ) -> Vec<CustomerDifference<'_>> {
        let mut sums = vec![(0_u32, 0.0_f64); self.customers().len()];
        for CaseDifference { row, difference } in self.differences(versus, selection) {
            let (cases, sum) = &mut sums[self.customer_place(row)];
            *cases += 1;
            *sum += f64::from(difference);
        }
        let mut customers: Vec<CustomerDifference<'_>> = self
            .customers()
            .iter()
            .zip(sums)
            .filter(|(_, (cases, _))| *cases > 0)
            .map(|(customer, (cases, sum))| CustomerDifference {
                customer,
                cases,
                difference: sum / f64::from(cases),
            })
            .collect();
        let key = |customer: &CustomerDifference<'_>| versus.lead.sort_key(customer.difference);
        customers.sort_by(|one, other| {
            key(one).total_cmp(&key(other)).then_with(|| one.customer.cmp(other.customer))
        });
        customers
    }

    fn differences<'a>(
        &'a self,
        versus: Versus,
        selection: Selection<'a>,
    ) -> impl Iterator<Item = CaseDifference> + use<'a> {
        let both = self.answers_of(versus.first).zip(self.answers_of(versus.second));
        let rows = if both.is_some() { self.len() } else { 0 };
        (0..rows).filter(move |&row| self.matches(row, selection)).filter_map(move |row| {
            let (first, second) = both?;
            let difference = match versus.by {
                By::LogProbability => first.log_probabilities[row] - second.log_probabilities[row],
                By::Rank => second.ranks[row] - first.ranks[row],
            };
            Some(CaseDifference { row, difference })
        })
    }

    fn matches(&self, row: usize, selection: Selection<'_>) -> bool {
        let case = self.case(row);
        selection.among.is_none_or(|among| among[self.customer_place(row)])
            && selection.seen.is_none_or(|seen| seen == case.seen)
            && selection.kind.is_none_or(|kind| kind == case.kind)
            && selection.customer.is_none_or(|customer| customer == case.customer)
    }
}

/// Those that favour the leading method most first.
pub(super) fn sort(cases: impl Iterator<Item = CaseDifference>, lead: Lead) -> Vec<CaseDifference> {
    let mut cases: Vec<_> = cases.collect();
    let key = |case: &CaseDifference| lead.sort_key(f64::from(case.difference));
    cases.sort_by(|one, other| key(one).total_cmp(&key(other)).then(one.row.cmp(&other.row)));
    cases
}

impl Lead {
    /// In ascending order, the differences that favour this method most come first.
    fn sort_key(self, difference: f64) -> f64 {
        match self {
            Self::First => -difference,
            Self::Second => difference,
            Self::Apart => -difference.abs(),
        }
    }
}

impl By {
    pub fn label(self) -> &'static str {
        match self {
            Self::LogProbability => "probability",
            Self::Rank => "rank",
        }
    }

    /// The heading of the differences' column.
    pub fn unit(self) -> &'static str {
        match self {
            Self::LogProbability => "mean log ratio",
            Self::Rank => "mean rank difference",
        }
    }
}

impl Lead {
    pub fn label(self) -> &'static str {
        match self {
            Self::First => "where the first method is better",
            Self::Second => "where the second method is better",
            Self::Apart => "where the methods shown are furthest apart",
        }
    }
}
