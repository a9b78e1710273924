//! Where two methods differ most: cases and customers, sorted by how far the methods are apart.

use serde::Deserialize;

use super::Ranks;
use crate::domain::{CustomerId, Method};

/// Two methods, and what they are held against each other by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versus {
    pub first: Method,
    pub second: Method,
    pub by: By,
    /// Whose best cases come first.
    pub lead: Lead,
}

/// What of the true article is looked at. Either way a difference above 0 speaks for the first method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The logarithm of its probability: the first method's less the second's.
    #[default]
    LogProbability,
    /// Its rank: the second method's less the first's.
    Rank,
}

/// The method whose best cases come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lead {
    #[default]
    First,
    Second,
}

/// Which cases are looked at: those that fit all that is given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// The true article's type.
    pub kind: Option<&'a str>,
    /// Whether the customer was met in training.
    pub seen: Option<bool>,
    pub customer: Option<&'a CustomerId>,
    /// By the customer's place among [`Ranks::customers`], whether their cases are looked at.
    pub among: Option<&'a [bool]>,
}

/// A case, and how far two methods are apart in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apart {
    pub row: usize,
    pub difference: f32,
}

/// A customer, and how far two methods are apart over their cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CustomerApart<'a> {
    pub customer: &'a CustomerId,
    pub cases: u32,
    /// The mean over the cases.
    pub difference: f64,
}

impl Ranks {
    /// What a method says of the true article: its rank and the logarithm of its probability.
    pub fn answer(&self, method: Method, row: usize) -> Option<(f32, f32)> {
        let answers = self.of(method)?;
        Some((answers.ranks[row], answers.log_probabilities[row]))
    }

    /// The cases by how far the methods are apart, those that speak most for the leading method first; none
    /// if one of the methods was not asked.
    pub fn apart(&self, versus: Versus, selection: Selection<'_>) -> Vec<Apart> {
        let mut found: Vec<Apart> = self.differences(versus, selection).collect();
        let key =
            |apart: &Apart| if versus.lead == Lead::First { -apart.difference } else { apart.difference };
        found.sort_by(|one, other| key(one).total_cmp(&key(other)).then(one.row.cmp(&other.row)));
        found
    }

    /// The same of customers.
    pub fn customers_apart(&self, versus: Versus, selection: Selection<'_>) -> Vec<CustomerApart<'_>> {
        let mut sums = vec![(0_u32, 0.0_f64); self.customers().len()];
        for Apart { row, difference } in self.differences(versus, selection) {
            let (cases, sum) = &mut sums[self.customer_place(row)];
            *cases += 1;
            *sum += f64::from(difference);
        }
        let told = self.customers().iter().zip(sums).filter(|(_, (cases, _))| *cases > 0);
        let mut found: Vec<CustomerApart<'_>> = told
            .map(|(customer, (cases, sum))| CustomerApart {
                customer,
                cases,
                difference: sum / f64::from(cases),
            })
            .collect();
        let key = |apart: &CustomerApart<'_>| {
            if versus.lead == Lead::First { -apart.difference } else { apart.difference }
        };
        found.sort_by(|one, other| {
            key(one).total_cmp(&key(other)).then_with(|| one.customer.cmp(other.customer))
        });
        found
    }

    fn differences<'a>(
        &'a self,
        versus: Versus,
        selection: Selection<'a>,
    ) -> impl Iterator<Item = Apart> + use<'a> {
        let both = self.of(versus.first).zip(self.of(versus.second));
        let rows = if both.is_some() { self.len() } else { 0 };
        (0..rows).filter(move |&row| self.fits(row, selection)).filter_map(move |row| {
            let (first, second) = both?;
            let difference = match versus.by {
                By::LogProbability => first.log_probabilities[row] - second.log_probabilities[row],
                By::Rank => second.ranks[row] - first.ranks[row],
            };
            Some(Apart { row, difference })
        })
    }

    fn fits(&self, row: usize, selection: Selection<'_>) -> bool {
        let case = self.case(row);
        selection.among.is_none_or(|among| among[self.customer_place(row)])
            && selection.seen.is_none_or(|seen| seen == case.seen)
            && selection.kind.is_none_or(|kind| kind == case.kind)
            && selection.customer.is_none_or(|customer| customer == case.customer)
    }
}

impl By {
    pub const ALL: [By; 2] = [By::LogProbability, By::Rank];

    /// As addresses write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LogProbability => "log_probability",
            Self::Rank => "rank",
        }
    }
}

impl Lead {
    pub const ALL: [Lead; 2] = [Lead::First, Lead::Second];

    /// As addresses write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }
}
