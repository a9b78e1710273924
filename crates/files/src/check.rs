//! Checks of whole files, row by row, and the report of what they find.

use std::{
    collections::HashSet,
    fmt, iter,
    path::{Path, PathBuf},
};

use atelier_core::{
    domain::{Article, ArticleId, CustomerId},
    util::notation::group_digits,
};

use super::{
    FileError, RowError, Rows, Table, Unit, Warning,
    row::Bad,
    seen::{Claim, Context, Repeat, Seen, digest},
};

/// How many kinds of bad rows of a file, rows of a kind, and different warnings a report lists. It counts the others.
const LISTED: usize = 20;
/// The most rows that a check remembers unless the caller sets another limit: about a gigabyte of digests.
const MOST_ROWS: u32 = 20_000_000;

/// Checks up to three tables in the order articles, customers, outfits. It does not know where the rows go; the
/// caller gives it the ids that exist there.
#[derive(Debug)]
pub struct Checker {
    seen: Seen,
    most_rows: u32,
    report: Report,
}

/// The findings so far.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Counts of usable and unusable rows.
    pub good: u64,
    pub bad: u64,
    /// The bad rows by kind, in order of appearance.
    pub errors: Vec<BadRows>,
    /// The first different warnings, in order of appearance.
    pub warnings: Vec<CountedWarning>,
    /// How many rows had a warning that is not listed.
    pub more_warnings: u64,
    /// How many entries of a feed are not for sale, or parents of others.
    pub left_out: u64,
    /// Each file with columns that are not read, and which; and what else is about a whole file.
    pub notes: Vec<String>,
    /// Probable columns, by their names, that are not read as such.
    pub proposed: Vec<&'static str>,
}

/// The bad rows of a file that have the same kind of error (`RowError::kind`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRows {
    pub path: PathBuf,
    pub rows: u64,
    pub first: RowError,
    /// Further ones.
    others: Vec<RowError>,
    kind: String,
}

impl BadRows {
    /// The first rows, at most twenty.
    pub fn first_rows(&self) -> impl Iterator<Item = &RowError> {
        iter::once(&self.first).chain(&self.others)
    }
}

/// The first row, and where others are.
impl fmt::Display for BadRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.path.display(), self.first)?;
        if self.rows > 1 {
            let others: Vec<String> = self.others.iter().map(|other| other.line.to_string()).collect();
            let more = if self.rows > 1 + others.len() as u64 { ", …" } else { "" };
            write!(f, " ({} in all; also {}{more})", rows(self.rows), others.join(", "))?;
        }
        Ok(())
    }
}

impl Report {
    /// The first bad rows, at most twenty, with the first of each kind among them.
    pub fn bad_rows(&self) -> Vec<&RowError> {
        let mut others: Vec<&RowError> = self.errors.iter().flat_map(|bad| &bad.others).collect();
        others.sort_by_key(|error| error.line);
        let mut rows: Vec<&RowError> =
            self.errors.iter().map(|bad| &bad.first).chain(others).take(LISTED).collect();
        rows.sort_by_key(|error| error.line);
        rows
    }

    /// All that was found, for people: a line for each warning and for each kind of bad row.
    pub fn findings(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.notes.iter().map(|note| format!("note: {note}")).collect();
        lines.extend(self.warnings.iter().map(|warning| match warning.rows {
            1 => format!("note: {warning}"),
            number => format!("note: {warning} ({} in all)", rows(number)),
        }));
        if self.more_warnings > 0 {
            lines.push(format!("note: … and {} with other notes", rows(self.more_warnings)));
        }
        lines.extend(self.errors.iter().map(ToString::to_string));
        let more = self.bad - self.errors.iter().map(|bad| bad.rows).sum::<u64>();
        if more > 0 {
            lines.push(format!("… and {} with other errors", rows(more)));
        }
        lines
    }
}

fn rows(number: u64) -> String {
    let noun = if number == 1 { "row" } else { "rows" };
    format!("{} {noun}", group_digits(&number.to_string(), ","))
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
            articles: articles.into_iter().map(|id| (digest(id.as_str()), 0)).collect(),
            customers: customers.into_iter().map(|id| (digest(id.as_str()), 0)).collect(),
            ..Seen::default()
        };
        Self { seen, most_rows: MOST_ROWS, report: Report::default() }
    }

    /// Takes the ids of articles that outfits may have although the catalogue no longer has them.
    pub fn with_retired<'a>(mut self, ids: impl IntoIterator<Item = &'a ArticleId>) -> Self {
        self.seen.retired = ids.into_iter().map(|id| digest(id.as_str())).collect();
        self
    }

    /// Takes the variants that exist where the rows are to go, each with its article.
    pub fn with_variants(mut self, variants: impl IntoIterator<Item = (ArticleId, ArticleId)>) -> Self {
        let claim = |(variant, article): (ArticleId, ArticleId)| {
            (digest(variant.as_str()), Claim { article, line: 0, changed: 0 })
        };
        self.seen.variants = variants.into_iter().map(claim).collect();
        self
    }

    /// The articles that the file does not have will be retired, so their ids are free.
    pub fn mirroring(mut self) -> Self {
        self.seen.mirrors = true;
        self
    }

    /// Stops at a row after this many different ones, over all tables: the memory of a check grows with them.
    pub fn at_most(self, most_rows: u32) -> Self {
        Self { most_rows, ..self }
    }

    /// Checks a file as it is read. Check each table once, and outfits after the other tables.
    pub fn check<T: Table>(&mut self, rows: Rows<T>) -> Checked<'_, T> {
        self.report.notes.extend(rows.unread().map(|unread| format!("{}: {unread}", rows.path().display())));
        self.report.proposed.extend(rows.proposed());
        Checked { rows, checker: self, line: 0, left_out: 0 }
    }

    /// Whether a row with this id was read.
    pub fn has_read(&self, id: &ArticleId) -> bool {
        self.seen.articles.get(&digest(id.as_str())).is_some_and(|line| *line > 0)
    }

    /// Whether a bad row is about the article or one of its variants.
    pub fn has_bad(&self, id: &ArticleId) -> bool {
        self.seen.bad.contains(&digest(id.as_str()))
    }

    /// The articles that were read without a stored variant, whose row is bad.
    pub fn bad_variants(&self) -> impl Iterator<Item = (&ArticleId, &str)> {
        let is_lost = |(article, id): &&(ArticleId, String)| {
            self.has_read(article) && self.seen.variants.get(&digest(id)).is_some_and(|claim| claim.line == 0)
        };
        self.seen.bad_variants.iter().filter(is_lost).map(|(article, id)| (article, id.as_str()))
    }

    /// Whether the id of a bad row of articles could not be read: any article may be the row's.
    pub fn has_bad_without_id(&self) -> bool {
        self.seen.has_bad_without_id
    }

    /// Forgets an article that no longer exists where the rows go.
    pub fn forget(&mut self, id: &ArticleId) {
        self.seen.articles.remove(&digest(id.as_str()));
    }

    /// Adds to the report what is about a whole file.
    pub fn note(&mut self, note: impl Into<String>) {
        self.report.notes.push(note.into());
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    fn refuse(&mut self, path: &Path, error: RowError) {
        self.report.bad += 1;
        let kind = error.kind();
        let mut kinds = 0;
        for bad in self.report.errors.iter_mut().filter(|bad| bad.path == path) {
            if bad.kind == kind {
                bad.rows += 1;
                if bad.others.len() + 1 < LISTED {
                    bad.others.push(error);
                }
                return;
            }
            kinds += 1;
        }
        if kinds < LISTED {
            let bad = BadRows { path: path.to_owned(), rows: 1, first: error, others: Vec::new(), kind };
            self.report.errors.push(bad);
        }
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
    line: u64,
    left_out: u64,
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

    /// The line of the last good row, as in [`RowError`].
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reports a good row as bad: it does not fit what is stored.
    pub fn refuse(&mut self, line: u64, reason: String) {
        self.checker.report.good -= 1;
        self.checker.refuse(self.rows.path(), RowError::new(self.rows.unit(), line, reason));
    }
}

impl<T: Table> Iterator for Checked<'_, T> {
    type Item = Result<T, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let unit = self.rows.unit();
            let next = self.rows.next();
            if next.is_none() {
                // The end may be asked for again.
                self.checker.report.left_out += self.rows.left_out() - self.left_out;
                self.left_out = self.rows.left_out();
            }
            let next = next?;
            let checked = next.and_then(|mut row| {
                let context = Context { unit, line: row.line, schema: self.rows.schema() };
                match row.value.check(context, &mut self.checker.seen) {
                    Ok(repeat) => Ok((row, repeat)),
                    Err(reason) => {
                        let ids = row.value.article_id().map(ToString::to_string).into_iter().collect();
                        Err(RowError::new(unit, row.line, Bad { reason, ids }))
                    }
                }
            });
            let path = self.rows.path();
            let most = self.checker.most_rows;
            if let Ok((row, _)) = &checked
                && self.checker.seen.rows > most
            {
                let reason = format!("an import takes at most {most} rows; split it");
                let error = RowError::fatal(unit, row.line, reason);
                return Some(Err(FileError::TooManyRows { path: path.to_owned(), error }));
            }
            match checked {
                Ok((row, repeat)) => {
                    let mut before = HashSet::new();
                    for warning in &row.warnings {
                        // A row may list the same unknown value twice.
                        if before.insert(warning) {
                            self.checker.warn(warning.clone(), path, unit, row.line);
                        }
                    }
                    if let Some(Repeat { first, other_split }) = repeat {
                        let warning = Warning::Repetition { unit, first, other_split };
                        self.checker.warn(warning, path, unit, row.line);
                    }
                    self.checker.report.good += 1;
                    self.line = row.line;
                    return Some(Ok(row.value));
                }
                Err(error) if error.is_fatal() => {
                    return Some(Err(FileError::Interrupted { path: path.to_owned(), error }));
                }
                Err(error) => {
                    if T::NAME == Article::NAME {
                        self.checker.seen.note_bad(&error.ids);
                    }
                    self.checker.refuse(path, error);
                }
            }
        }
    }
}
