//! What no single row can show: ids that stand twice, outfits that are repeated, references to nothing,
//! and how many rows of an import are bad.

use std::{fmt, path::PathBuf};

use super::{
    ExchangeError, RowError, Rows, Table,
    error::Unit,
    known::{Context, Known, Standing},
};
use crate::domain::{ArticleId, CustomerId, FeatureWarning};

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

/// What is odd about a row that is no reason to refuse it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    Feature(FeatureWarning),
    /// The outfit stands in an earlier row, its first one, already.
    Repetition {
        unit: Unit,
        first: u64,
        /// A model that learns the one is judged by the other.
        other_split: bool,
    },
}

impl Warning {
    /// Repetitions of a kind are counted together whatever they repeat.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Repetition { other_split, .. }, Self::Repetition { other_split: other, .. }) => {
                other_split == other
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feature(warning) => warning.fmt(f),
            Self::Repetition { unit, first, other_split: false } => {
                write!(f, "the same outfit stands in {unit} {first} already")
            }
            Self::Repetition { unit, first, other_split: true } => {
                write!(
                    f,
                    "the same outfit stands in {unit} {first} already, in another split: what a model learns \
                     there, it is judged by here"
                )
            }
        }
    }
}

/// A warning, the row where it came up first, and in how many it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    pub warning: Warning,
    pub path: PathBuf,
    pub unit: Unit,
    /// As in [`RowError`].
    pub line: u64,
    pub rows: u64,
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}: {}", self.path.display(), self.unit, self.line, self.warning)
    }
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
        Self { known: Known::new(articles, customers), report: Report::default() }
    }

    /// Checks a file while it is read: each table once, outfits after what they refer to.
    pub fn check<T: Table>(&mut self, rows: Rows<T>) -> Checked<'_, T> {
        Checked { rows, checker: self }
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    fn note(&mut self, warning: Warning, path: &std::path::Path, unit: Unit, line: u64) {
        let Report { warnings, more_warnings, .. } = &mut self.report;
        if let Some(noted) = warnings.iter_mut().find(|noted| noted.warning.is_like(&warning)) {
            noted.rows += 1;
        } else if warnings.len() < SHOWN {
            warnings.push(Noted { warning, path: path.to_owned(), unit, line, rows: 1 });
        } else {
            *more_warnings += 1;
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
            let next = self.rows.next()?;
            let checked = next.and_then(|row| {
                let context = Context { unit, line: row.line, schema: self.rows.schema() };
                match row.value.check(context, &mut self.checker.known) {
                    Ok(standing) => Ok((row, standing)),
                    Err(reason) => Err(RowError::new(unit, row.line, reason)),
                }
            });
            let path = self.rows.path();
            match checked {
                Ok((row, standing)) => {
                    for (place, warning) in row.warnings.iter().enumerate() {
                        // A row may list the same unknown value twice.
                        if !row.warnings[..place].contains(warning) {
                            self.checker.note(Warning::Feature(warning.clone()), path, unit, row.line);
                        }
                    }
                    if let Standing::Repeats { first, other_split } = standing {
                        let warning = Warning::Repetition { unit, first, other_split };
                        self.checker.note(warning, path, unit, row.line);
                    }
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
