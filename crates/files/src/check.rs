//! Checks that need more than one row: duplicate ids, repeated outfits, unknown articles and customers.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, hash_map::Entry},
    fmt, iter,
    path::{Path, PathBuf},
};

use atelier_core::{
    domain::{
        Article, ArticleId, ArticlePatch, Customer, CustomerId, CustomerPatch, FeatureWarning, OpenOutfit,
        Outfit, Schema, Split,
    },
    util::notation::group_digits,
};
use sha2::{Digest, Sha256};

use super::{
    Deletion, FileError, RowError, Rows, Table,
    error::{Bad, Unit},
    table::features_to_fields,
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
    /// Each file with columns that are not read, and which.
    pub unread: Vec<String>,
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
        let mut lines: Vec<String> = self.unread.iter().map(|unread| format!("note: {unread}")).collect();
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

/// Something unusual about a good row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Warning {
    Feature(FeatureWarning),
    /// Two variants of an article in a feed disagree.
    Variants {
        attribute: &'static str,
        /// The line of the variant that is not the first.
        line: u64,
        kept: String,
        found: String,
    },
    /// A feed names a category of Google's by a number that has no name here, and no type.
    Category(u64),
    /// The inventory of a product in Shopify's export is tracked, but not in the file.
    NotCounted,
    /// The outfit repeats the one in an earlier row.
    Repetition {
        unit: Unit,
        first: u32,
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
            (Self::Variants { attribute, .. }, Self::Variants { attribute: other, .. }) => attribute == other,
            _ => self == other,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feature(warning) => warning.fmt(f),
            Self::Variants { attribute, line, kept, found } => write!(
                f,
                "the variant of this article in line {line} has another {attribute}, {found}; {kept} is kept"
            ),
            Self::Category(number) => write!(
                f,
                "the type is \"category {number}\": there is no \"product_type\", and google_product_category {number} has no \
                 name here"
            ),
            Self::NotCounted => f.write_str(
                "the inventory is tracked, but the file has no \"Variant Inventory Qty\" of it: it counts as in stock",
            ),
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
            articles: articles.into_iter().map(|id| (digest(id.as_str()), 0)).collect(),
            variants: HashMap::new(),
            redefined: HashSet::new(),
            mirrors: false,
            customers: customers.into_iter().map(|id| (digest(id.as_str()), 0)).collect(),
            bad: HashSet::new(),
            bad_variants: Vec::new(),
            has_bad_without_id: false,
            retired: HashSet::new(),
            outfits: HashMap::new(),
            rows: 0,
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
        self.report.unread.extend(rows.unread().map(|unread| format!("{}: {unread}", rows.path().display())));
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

/// The rows so far, each with its line, or 0 if it existed before. Of an id or an outfit it keeps a digest, because
/// millions of them as they are would take gigabytes.
#[derive(Debug)]
pub struct Seen {
    articles: HashMap<RowDigest, u32>,
    variants: HashMap<RowDigest, Claim>,
    /// The articles whose rows say which variants they have.
    redefined: HashSet<RowDigest>,
    /// Whether articles that are not read will be gone.
    mirrors: bool,
    /// The ids of bad rows of articles, and the articles whose variants they are.
    bad: HashSet<RowDigest>,
    /// The stored variants that bad rows are about, each with its article.
    bad_variants: Vec<(ArticleId, String)>,
    has_bad_without_id: bool,
    customers: HashMap<RowDigest, u32>,
    retired: HashSet<RowDigest>,
    outfits: HashMap<RowDigest, (u32, Option<Split>)>,
    /// The number of rows that are remembered, without those that existed before.
    rows: u32,
}

/// A variant's article.
#[derive(Debug)]
struct Claim {
    article: ArticleId,
    /// Of the article's row.
    line: u32,
    /// That of the row that changed the variant, or 0.
    changed: u32,
}

/// Half of a SHA-256: no two rows share one.
type RowDigest = [u8; 16];

fn digest(bytes: impl AsRef<[u8]>) -> RowDigest {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    *digest.first_chunk().expect("16 is less than 32; this is a bug")
}

/// Where a row is, and its schema.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    unit: Unit,
    line: u64,
    schema: &'a Schema,
}

impl Context<'_> {
    /// The line as it is remembered.
    fn short_line(self) -> u32 {
        u32::try_from(self.line).unwrap_or(u32::MAX)
    }
}

/// A row repeats the one at `first`.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    first: u32,
    other_split: bool,
}

/// Checks a row against the rows before it, and what a row may hold only once it is stored.
pub trait Check {
    /// # Errors
    /// If the row refers to unknown rows, its id appeared before, or an article's price or stock cannot be read.
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String>;

    /// That of an article, or of a variant that changes.
    fn article_id(&self) -> Option<&ArticleId> {
        None
    }
}

impl Seen {
    fn note_bad(&mut self, ids: &[String]) {
        // An id that no article can have is not the one that the row should have.
        self.has_bad_without_id |= !ids.iter().any(|id| ArticleId::new(id).is_ok());
        for id in ids {
            let digest = digest(id);
            self.bad.insert(digest);
            if let Some(Claim { article, .. }) = self.variants.get(&digest) {
                self.bad.insert(self::digest(article.as_str()));
                self.bad_variants.push((article.clone(), id.clone()));
            }
        }
    }

    /// The article that has this variant.
    fn article_of(&self, variant: &str) -> Option<&ArticleId> {
        let claim = self.variants.get(&digest(variant))?;
        let article = digest(claim.article.as_str());
        let line = *self.articles.get(&article)?;
        let is_current = claim.line > 0 || !self.redefined.contains(&article) && (line > 0 || !self.mirrors);
        is_current.then_some(&claim.article)
    }

    /// Notes an article's variants. Articles and variants share their ids.
    fn claim(&mut self, id: &ArticleId, variants: &[ArticleId], line: u32) -> Result<(), String> {
        let own = digest(id.as_str());
        self.redefined.insert(own);
        for variant in variants {
            let digest = digest(variant.as_str());
            let is_article = |line: &u32| *line > 0 || !self.mirrors || self.bad.contains(&digest);
            if digest != own && self.articles.get(&digest).is_some_and(is_article) {
                return Err(format!("the variant {variant:?} of article {id:?} has the id of an article"));
            }
            if let Some(other) = self.article_of(variant.as_str()).filter(|other| *other != id) {
                return Err(format!(
                    "the variant {variant:?} of article {id:?} is one of article {other:?} already"
                ));
            }
            self.variants.insert(digest, Claim { article: id.clone(), line, changed: 0 });
        }
        Ok(())
    }

    fn enter_article(
        &mut self,
        id: &ArticleId,
        variants: Option<&[ArticleId]>,
        context: Context<'_>,
    ) -> Result<Option<Repeat>, String> {
        if let Some(other) = self.article_of(id.as_str()).filter(|other| *other != id) {
            return Err(format!("article {id:?} has the id of a variant of article {other:?}"));
        }
        if let Some(variants) = variants {
            self.claim(id, variants, context.short_line())?;
        }
        enter("article", id.as_str(), &mut self.articles, &mut self.rows, context)
    }
}

/// Ids that are none are refused where the variants are read.
fn ids<'a>(ids: impl Iterator<Item = Cow<'a, str>>) -> Vec<ArticleId> {
    ids.filter_map(|id| ArticleId::new(id).ok()).collect()
}

impl Check for Article {
    fn article_id(&self) -> Option<&ArticleId> {
        Some(&self.id)
    }

    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        self.normalise().map_err(|error| format!("{error} (article {:?})", self.id))?;
        let variants = ids(self.variant_ids());
        seen.enter_article(&self.id, Some(&variants), context)
    }
}

impl Check for ArticlePatch {
    fn article_id(&self) -> Option<&ArticleId> {
        Some(&self.id)
    }

    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        let Some(article) = seen.article_of(self.id.as_str()).filter(|article| **article != self.id) else {
            let variants = self.variant_ids().map(ids);
            return seen.enter_article(&self.id, variants.as_deref(), context);
        };
        // The row changes a variant, and so its article.
        let (of, line) = (digest(article.as_str()), context.short_line());
        if let Some(read) = seen.articles.get_mut(&of).filter(|read| **read == 0) {
            *read = line;
        }
        match seen.variants.get_mut(&digest(self.id.as_str())) {
            Some(Claim { changed, .. }) if *changed > 0 => {
                Err(format!("variant {:?} is already in {} {changed}", self.id, context.unit))
            }
            claim => {
                if let Some(claim) = claim {
                    claim.changed = line;
                }
                seen.rows += 1;
                Ok(None)
            }
        }
    }
}

impl Check for Deletion<ArticleId> {
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        enter("article", self.0.as_str(), &mut seen.articles, &mut seen.rows, context)
    }
}

impl Check for Deletion<CustomerId> {
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        enter("customer", self.0.as_str(), &mut seen.customers, &mut seen.rows, context)
    }
}

impl Check for CustomerPatch {
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        enter("customer", self.id.as_str(), &mut seen.customers, &mut seen.rows, context)
    }
}

impl Check for Customer {
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        enter("customer", self.id.as_str(), &mut seen.customers, &mut seen.rows, context)
    }
}

/// A file may contain an id once; one that existed before is replaced.
fn enter(
    what: &str,
    id: &str,
    seen: &mut HashMap<RowDigest, u32>,
    rows: &mut u32,
    context: Context<'_>,
) -> Result<Option<Repeat>, String> {
    match seen.entry(digest(id)) {
        Entry::Occupied(entry) if *entry.get() > 0 => {
            Err(format!("{what} {id:?} is already in {} {}", context.unit, entry.get()))
        }
        entry => {
            entry.insert_entry(context.short_line());
            *rows += 1;
            Ok(None)
        }
    }
}

impl Check for Outfit {
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        let article_of = |id: &ArticleId| {
            let digest = digest(id.as_str());
            let is_article = seen.articles.contains_key(&digest);
            let article = if is_article { Some(id) } else { seen.article_of(id.as_str()) };
            // A retired id may be a variant's by now.
            article.or_else(|| seen.retired.contains(&digest).then_some(id)).cloned()
        };
        let articles: Vec<_> = self.articles().iter().map(|id| (id, article_of(id))).collect();
        let unknown = articles.iter().filter(|(_, article)| article.is_none());
        let mut reasons: Vec<String> =
            unknown.map(|(id, _)| format!("article {id:?} is not in the catalogue")).collect();
        if !seen.customers.contains_key(&digest(self.customer.as_str())) {
            reasons.insert(0, format!("customer {:?} is unknown", self.customer));
        }
        if !reasons.is_empty() {
            return Err(reasons.join("; "));
        }
        let articles = articles.into_iter().filter_map(|(_, article)| article).collect();
        self.set_articles(articles).map_err(|error| error.to_string())?;
        match seen.outfits.entry(outfit_digest(self, context.schema)) {
            Entry::Vacant(entry) => {
                entry.insert((context.short_line(), self.split));
                seen.rows += 1;
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
fn outfit_digest(outfit: &Outfit, schema: &Schema) -> RowDigest {
    let mut articles: Vec<&str> = outfit.articles().iter().map(ArticleId::as_str).collect();
    articles.sort_unstable();
    let same = (outfit.customer.as_str(), articles, features_to_fields(&outfit.features, schema));
    digest(serde_json::to_vec(&same).expect("texts are JSON; this is a bug"))
}

impl Check for OpenOutfit {
    /// The same outfit may be completed twice.
    fn check(&mut self, _: Context<'_>, _: &mut Seen) -> Result<Option<Repeat>, String> {
        Ok(None)
    }
}
