//! `ranks.parquet`: how every method answered every single validation slot.
//!
//! Kept as columns of numbers: at full scale there are 84,000 rows and ten methods.

mod read;

use std::{fmt, ops::Range};

use crate::domain::{ArticleId, CustomerId, Method};

/// The largest rank that recall is told of.
pub const MOST: usize = 250;

/// Every answer. A case is one masked slot of one validation outfit, known by its row.
pub struct Ranks {
    customers: Vec<CustomerId>,
    articles: Vec<ArticleId>,
    types: Vec<String>,
    outfits: Vec<Asked>,
    /// The outfits' articles, one after the other.
    worn: Vec<u32>,
    cases: Vec<CaseRow>,
    methods: Vec<Answers>,
}

/// An outfit that was asked about.
#[derive(Debug)]
struct Asked {
    /// Its row in the file of outfits.
    number: u32,
    customer: u32,
    seen: bool,
    worn: Range<u32>,
}

#[derive(Debug, Clone, Copy)]
struct CaseRow {
    outfit: u32,
    kind: u16,
    slot: u8,
}

/// One method's answers, a row a case.
pub(super) struct Answers {
    method: Method,
    /// Of the true article, from 1 up; articles that are equally likely share their mean rank.
    pub(super) ranks: Vec<f32>,
    /// Of the true article's probability, the natural logarithm.
    pub(super) log_probabilities: Vec<f32>,
    /// In how many cases the true article was among the first k, for k from 1 up.
    hits: Vec<u32>,
}

/// A case as people see it.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The outfit's row in the file of outfits, and the masked slot of it.
    pub outfit: u32,
    pub slot: usize,
    pub customer: &'a CustomerId,
    /// Whether the customer was met in training.
    pub seen: bool,
    /// The true article's type.
    pub kind: &'a str,
    ranks: &'a Ranks,
    worn: &'a [u32],
}

impl<'a> Case<'a> {
    /// The whole outfit, the true article in its slot.
    pub fn articles(&self) -> impl ExactSizeIterator<Item = &'a ArticleId> + use<'a> {
        let ranks = self.ranks;
        self.worn.iter().map(|&article| &ranks.articles[article as usize])
    }

    pub fn truth(&self) -> &'a ArticleId {
        &self.ranks.articles[self.worn[self.slot] as usize]
    }
}

impl Ranks {
    /// How many cases there are.
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// In the methods' own order.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        self.methods.iter().map(|answers| answers.method)
    }

    /// The true articles' types, sorted.
    pub fn types(&self) -> &[String] {
        &self.types
    }

    pub fn customers(&self) -> &[CustomerId] {
        &self.customers
    }

    /// How often a method has the true article among its first `k`, 1 to [`MOST`], of all cases.
    pub fn recall(&self, method: Method, k: usize) -> Option<f64> {
        let hits = *self.of(method)?.hits.get(k.checked_sub(1)?)?;
        #[expect(clippy::cast_precision_loss, reason = "rows are fewer than 2^52")]
        let cases = self.len() as f64;
        Some(f64::from(hits) / cases)
    }

    pub fn case(&self, row: usize) -> Case<'_> {
        let CaseRow { outfit, kind, slot } = self.cases[row];
        let Asked { number, customer, seen, worn } = &self.outfits[outfit as usize];
        Case {
            outfit: *number,
            slot: usize::from(slot),
            customer: &self.customers[*customer as usize],
            seen: *seen,
            kind: &self.types[usize::from(kind)],
            ranks: self,
            worn: &self.worn[worn.start as usize..worn.end as usize],
        }
    }

    pub(super) fn of(&self, method: Method) -> Option<&Answers> {
        self.methods.iter().find(|answers| answers.method == method)
    }

    /// By the case's row: the customer's place among [`Ranks::customers`].
    pub fn customer_place(&self, row: usize) -> usize {
        self.outfits[self.cases[row].outfit as usize].customer as usize
    }
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranks").field("cases", &self.cases.len()).finish_non_exhaustive()
    }
}
