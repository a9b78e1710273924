//! What no single row can show: ids that stand twice, references to nothing, and how many rows of an
//! import are bad.

use std::{collections::HashMap, fmt, path::PathBuf};

use super::{ExchangeError, Row, RowError, Rows, Table, error::Unit};
use crate::domain::{Article, ArticleId, Customer, CustomerId, FeatureWarning, Outfit};

/// How many bad rows, and how many different warnings, are kept to be shown. The rest is counted.
const SHOWN: usize = 20;

/// Reads up to three tables, in the order articles, customers, outfits, and keeps what they hold
/// together. It knows neither where the rows go nor what was there before, but for the ids that it is
/// given.
#[derive(Debug)]
pub struct Checker {
    known: Known,
    report: Report,
}

/// The ids of an import, with the line of the file that they stand on; 0 for those known before.
#[derive(Debug, Default)]
pub struct Known {
    articles: HashMap<ArticleId, u64>,
    customers: HashMap<CustomerId, u64>,
}

/// What was found so far.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Rows that can be used, and rows that cannot.
    pub good: u64,
    pub bad: u64,
    /// The first bad rows.
    pub errors: Vec<BadRow>,
    /// The first different warnings, in the order in which they came up.
    pub warnings: Vec<Noted>,
    /// How often a warning came up that is not among them.
    pub more_warnings: u64,
}

/// A bad row and the file it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    pub path: PathBuf,
    pub error: RowError,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.path.display(), self.error)
    }
}

/// A warning, where it came up first, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    pub warning: FeatureWarning,
    pub path: PathBuf,
    /// As in [`Row`].
    pub line: u64,
    pub count: u64,
}

/// The good rows of a file; the bad ones go into the report. Only what ends the reading before the
/// file's end comes out as an error.
#[derive(Debug)]
pub struct Checked<'c, T> {
    rows: Rows<T>,
    checker: &'c mut Checker,
}

impl Checker {
    /// With the ids that exist already where the rows are to go.
    pub fn new(
        articles: impl IntoIterator<Item = ArticleId>,
        customers: impl IntoIterator<Item = CustomerId>,
    ) -> Self {
        let known = Known {
            articles: articles.into_iter().map(|id| (id, 0)).collect(),
            customers: customers.into_iter().map(|id| (id, 0)).collect(),
        };
        Self { known, report: Report::default() }
    }

    /// Checks a file while it is read: each table once, outfits after what they refer to.
    pub fn check<T: Table>(&mut self, rows: Rows<T>) -> Checked<'_, T> {
        Checked { rows, checker: self }
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    fn note(&mut self, row: &Row<impl Table>, path: &std::path::Path) {
        let Report { warnings, more_warnings, .. } = &mut self.report;
        for warning in &row.warnings {
            if let Some(noted) = warnings.iter_mut().find(|noted| noted.warning == *warning) {
                noted.count += 1;
            } else if warnings.len() < SHOWN {
                let (warning, path) = (warning.clone(), path.to_owned());
                warnings.push(Noted { warning, path, line: row.line, count: 1 });
            } else {
                *more_warnings += 1;
            }
        }
    }
}

impl<T> Checked<'_, T> {
    /// As [`Rows::progress`].
    pub fn progress(&self) -> (u64, u64) {
        self.rows.progress()
    }
}

impl<T: Table> Iterator for Checked<'_, T> {
    type Item = Result<T, ExchangeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let unit = self.rows.unit();
            let checked = self.rows.next()?.and_then(|row| {
                match row.value.check(unit, row.line, &mut self.checker.known) {
                    Ok(()) => Ok(row),
                    Err(reason) => Err(RowError::new(unit, row.line, reason)),
                }
            });
            let path = self.rows.path();
            match checked {
                Ok(row) => {
                    self.checker.note(&row, path);
                    self.checker.report.good += 1;
                    return Some(Ok(row.value));
                }
                Err(error) if error.is_fatal() => {
                    return Some(Err(ExchangeError::Interrupted { path: path.to_owned(), error }));
                }
                Err(error) => {
                    let report = &mut self.checker.report;
                    report.bad += 1;
                    if report.errors.len() < SHOWN {
                        report.errors.push(BadRow { path: path.to_owned(), error });
                    }
                }
            }
        }
    }
}

/// How a row is held against the rows before it.
pub trait Check {
    /// # Errors
    /// The reason why it does not go with them.
    fn check(&self, unit: Unit, line: u64, known: &mut Known) -> Result<(), String>;
}

impl Check for Article {
    fn check(&self, unit: Unit, line: u64, known: &mut Known) -> Result<(), String> {
        enter(&mut known.articles, &self.id, line)
            .map_err(|first| format!("article {:?} stands in {unit} {first} already", self.id))
    }
}

impl Check for Customer {
    fn check(&self, unit: Unit, line: u64, known: &mut Known) -> Result<(), String> {
        enter(&mut known.customers, &self.id, line)
            .map_err(|first| format!("customer {:?} stands in {unit} {first} already", self.id))
    }
}

impl Check for Outfit {
    fn check(&self, _unit: Unit, _line: u64, known: &mut Known) -> Result<(), String> {
        let unknown = self.articles().iter().filter(|id| !known.articles.contains_key(*id));
        let mut reasons: Vec<String> =
            unknown.map(|id| format!("article {id:?} is not in the catalogue")).collect();
        if !known.customers.contains_key(&self.customer) {
            reasons.insert(0, format!("customer {:?} is not known", self.customer));
        }
        if reasons.is_empty() { Ok(()) } else { Err(reasons.join("; ")) }
    }
}

/// Enters an id that this file may hold once, or says on which line it has it already.
fn enter<Id: Clone + Eq + std::hash::Hash>(
    known: &mut HashMap<Id, u64>,
    id: &Id,
    line: u64,
) -> Result<(), u64> {
    match known.get_mut(id) {
        Some(0) | None => {
            known.insert(id.clone(), line);
            Ok(())
        }
        Some(first) => Err(*first),
    }
}
