//! Checks that need more than one row: duplicate ids, repeated outfits, unknown articles and customers.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    hash::Hash,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{FileError, RowError, Rows, Table, error::Unit, json::Value, table::Wire};
use crate::domain::{
    Article, ArticleId, Customer, CustomerId, FeatureWarning, OpenOutfit, Outfit, Schema, Split,
};

/// How many bad rows, and how many different warnings, a report lists. It counts the others.
const LISTED: usize = 20;

/// Checks up to three tables in the order articles, customers, outfits. It does not know where the rows go; the
/// caller gives it the ids that exist there.
#[derive(Debug)]
pub struct Checker {
    seen: Seen,
    report: Report,
}

/// The findings so far.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Counts of usable and unusable rows.
    pub good: u64,
    pub bad: u64,
    /// The first bad rows.
    pub errors: Vec<BadRow>,
    /// The first different warnings, in order of appearance.
    pub warnings: Vec<CountedWarning>,
    /// How many rows had a warning that is not listed.
    pub more_warnings: u64,
}

/// A bad row, and its file.
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

/// Something unusual about a good row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    Feature(FeatureWarning),
    /// The outfit repeats the one in an earlier row.
    Repetition {
        unit: Unit,
        first: u64,
        /// The earlier row is in another split, so a model would be tested on an outfit that it has learned.
        other_split: bool,
    },
}

impl Warning {
    /// Whether both are counted as one. Repetitions are, whichever row they repeat.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Repetition { other_split, .. }, Self::Repetition { other_split: other, .. }) => {
                other_split == other
            }
            (Self::Feature(warning), Self::Feature(other)) => warning.is_like(other),
            _ => self == other,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feature(warning) => warning.fmt(f),
            Self::Repetition { unit, first, other_split } => {
                write!(f, "this outfit repeats {unit} {first}")?;
                if *other_split {
                    f.write_str(
                        ", which is in another split: models would be tested on an outfit they have learned",
                    )?;
                }
                Ok(())
            }
        }
    }
}

/// A warning, the first row that has it, and the number of rows that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedWarning {
    pub warning: Warning,
    pub path: PathBuf,
    pub unit: Unit,
    /// As in [`RowError`].
    pub line: u64,
    pub rows: u64,
}

impl fmt::Display for CountedWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}: {}", self.path.display(), self.unit, self.line, self.warning)
    }
}

impl Checker {
    /// Takes the ids that already exist where the rows are to go.
    pub fn new(
        articles: impl IntoIterator<Item = ArticleId>,
        customers: impl IntoIterator<Item = CustomerId>,
    ) -> Self {
        let seen = Seen {
            articles: articles.into_iter().map(|id| (id, 0)).collect(),
            customers: customers.into_iter().map(|id| (id, 0)).collect(),
            outfits: HashMap::new(),
        };
        Self { seen, report: Report::default() }
    }

    /// Checks a file as it is read. Check each table once, and outfits after the other tables.
    pub fn check<T: Table>(&mut self, rows: Rows<T>) -> Checked<'_, T> {
        Checked { rows, checker: self }
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    fn warn(&mut self, warning: Warning, path: &Path, unit: Unit, line: u64) {
        let Report { warnings, more_warnings, .. } = &mut self.report;
        if let Some(counted) = warnings.iter_mut().find(|counted| counted.warning.is_like(&warning)) {
            counted.rows += 1;
        } else if warnings.len() < LISTED {
            warnings.push(CountedWarning { warning, path: path.to_owned(), unit, line, rows: 1 });
        } else {
            *more_warnings += 1;
        }
    }
}

/// The good rows of a file; the checker reports the bad ones. An error means that the file cannot be read to its end.
#[derive(Debug)]
pub struct Checked<'c, T> {
    rows: Rows<T>,
    checker: &'c mut Checker,
}

impl<T> Checked<'_, T> {
    /// As in [`Rows::bytes`].
    pub fn bytes(&self) -> u64 {
        self.rows.bytes()
    }

    /// As in [`Rows::progress`].
    pub fn progress(&self) -> (u64, u64) {
        self.rows.progress()
    }
}

impl<T: Table> Iterator for Checked<'_, T> {
    type Item = Result<T, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let unit = self.rows.unit();
            let next = self.rows.next()?;
            let checked = next.and_then(|mut row| {
                let context = Context { unit, line: row.line, schema: self.rows.schema() };
                match row.value.check(context, &mut self.checker.seen) {
                    Ok(repeat) => Ok((row, repeat)),
                    Err(reason) => Err(RowError::new(unit, row.line, reason)),
                }
            });
            let path = self.rows.path();
            match checked {
                Ok((row, repeat)) => {
                    for (place, warning) in row.warnings.iter().enumerate() {
                        // A row may list the same unknown value twice.
                        if !row.warnings[..place].contains(warning) {
                            self.checker.warn(Warning::Feature(warning.clone()), path, unit, row.line);
                        }
                    }
                    if let Some(Repeat { first, other_split }) = repeat {
                        let warning = Warning::Repetition { unit, first, other_split };
                        self.checker.warn(warning, path, unit, row.line);
                    }
                    self.checker.report.good += 1;
                    return Some(Ok(row.value));
                }
                Err(error) if error.is_fatal() => {
                    return Some(Err(FileError::Interrupted { path: path.to_owned(), error }));
                }
                Err(error) => {
                    let report = &mut self.checker.report;
                    report.bad += 1;
                    if report.errors.len() < LISTED {
                        report.errors.push(BadRow { path: path.to_owned(), error });
                    }
                }
            }
        }
    }
}

/// The ids so far, each with its line, or 0 if it existed before; and a digest of each outfit, because half a million
/// whole outfits would take much memory.
#[derive(Debug)]
pub struct Seen {
    articles: HashMap<ArticleId, u64>,
    customers: HashMap<CustomerId, u64>,
    outfits: HashMap<OutfitDigest, (u64, Option<Split>)>,
}

/// Half of a SHA-256: no two outfits share one.
type OutfitDigest = [u8; 16];

/// The place of a row, and its schema.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    unit: Unit,
    line: u64,
    schema: &'a Schema,
}

/// A row repeats the one at `first`.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    first: u64,
    other_split: bool,
}

/// Checks a row against the rows before it, and what a row may hold only once it is stored.
pub trait Check {
    /// # Errors
    /// If the row refers to unknown rows, its id appeared before, or an article's price or stock cannot be read.
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String>;
}

impl Check for Article {
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        self.normalise().map_err(|error| error.to_string())?;
        enter("article", &mut seen.articles, &self.id, context)
    }
}

impl Check for Customer {
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        enter("customer", &mut seen.customers, &self.id, context)
    }
}

/// A file may contain an id once; one that existed before is replaced.
fn enter<Id: Clone + Eq + Hash + fmt::Debug>(
    what: &str,
    seen: &mut HashMap<Id, u64>,
    id: &Id,
    context: Context<'_>,
) -> Result<Option<Repeat>, String> {
    match seen.get(id) {
        Some(0) | None => {
            seen.insert(id.clone(), context.line);
            Ok(None)
        }
        Some(first) => Err(format!("{what} {id:?} is already in {} {first}", context.unit)),
    }
}

impl Check for Outfit {
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        let unknown = self.articles().iter().filter(|id| !seen.articles.contains_key(*id));
        let mut reasons: Vec<String> =
            unknown.map(|id| format!("article {id:?} is not in the catalogue")).collect();
        if !seen.customers.contains_key(&self.customer) {
            reasons.insert(0, format!("customer {:?} is unknown", self.customer));
        }
        if !reasons.is_empty() {
            return Err(reasons.join("; "));
        }
        match seen.outfits.entry(digest(self, context.schema)) {
            Entry::Vacant(entry) => {
                entry.insert((context.line, self.split));
                Ok(None)
            }
            Entry::Occupied(entry) => {
                let (first, split) = *entry.get();
                Ok(Some(Repeat { first, other_split: split != self.split }))
            }
        }
    }
}

/// Outfits are the same if their customer, set of articles and features are, as in the database. The split is not part
/// of an outfit: it says how the outfit is used.
fn digest(outfit: &Outfit, schema: &Schema) -> OutfitDigest {
    let mut fields = outfit.to_fields(schema);
    fields.retain(|(name, _)| name != "split");
    for (name, value) in &mut fields {
        if let ("articles", Value::List(ids)) = (name.as_ref(), value) {
            ids.sort_unstable_by(|a, b| a.as_text().cmp(&b.as_text()));
        }
    }
    let text = serde_json::to_vec(&Value::Object(fields)).expect("texts are JSON; this is a bug");
    let digest: [u8; 32] = Sha256::digest(text).into();
    *digest.first_chunk().expect("16 is less than 32; this is a bug")
}

impl Check for OpenOutfit {
    /// The same outfit may be completed twice.
    fn check(&mut self, _: Context<'_>, _: &mut Seen) -> Result<Option<Repeat>, String> {
        Ok(None)
    }
}
