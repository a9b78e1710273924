//! `atelier import`: imports files into the database, all rows or none.
//!
//! It prints a line for each file as it is read, and the result at the end: until then the database is unchanged.

use std::{
    fs,
    future::pending,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use atelier_core::domain::{Article, Customer, LookName, Outfit, Schema, Timestamp};
use atelier_engine::release::Release;
use atelier_files::{
    Delimiter, Dialect, Encoding, EventRow, Files, InputFormat, Mapping, OrderLine, RETIRED, Report, Rows,
    SCHEMA, Table, read_folder_schema, read_schema,
};
use clap::Args;
use indicatif::HumanCount;

use super::{Settings, progress::Progress, serve::draw_key, served_release};
use crate::{
    completion::tickets::Tickets,
    config::{Config, EventTerms},
    imports::{
        self as database, Undo, Undone,
        load::{Change, End, FeedTable, Imported, Opened, Options, Outcome, Step},
    },
    outcomes::events::{Recorder, Summary},
    platform::db::{Counts, Store},
    releases::coverage::Census,
    steering::looks::{
        Look,
        files::{Read, read, store_all},
    },
};

/// The extensions of a table's file, for messages.
const EXTENSIONS: &str = ".jsonl, .ndjson, .csv or .parquet";

/// How the shop's files differ from those that `atelier export` writes.
#[derive(Debug, Clone, Args)]
pub(super) struct DialectFlags {
    /// Delimiter of CSV files: `,`, `;`, `|` or `tab` [default: the one that gives the needed columns].
    #[arg(long, value_name = "DELIMITER")]
    delimiter: Option<Delimiter>,
    /// Encoding of CSV files and tab-separated feeds without a byte order mark, such as windows-1252 [default: utf-8].
    #[arg(long, value_name = "NAME")]
    encoding: Option<Encoding>,
    /// Read the column FROM of CSV and Parquet files as TO, or leave it out if TO is empty; repeat this for other columns.
    /// `articles.FROM=TO` applies to that table only.
    #[arg(long, value_name = "FROM=TO")]
    map: Vec<Mapping>,
}

impl From<DialectFlags> for Dialect {
    fn from(flags: DialectFlags) -> Self {
        let DialectFlags { delimiter, encoding, map } = flags;
        Self { delimiter, encoding, map, ..Self::default() }
    }
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Import {
    /// Folder with files named articles, customers and outfits (.jsonl, .csv or .parquet), as written by
    /// `atelier export` and `atelier-training synthesise`.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Catalogue: `id`, `type` and other attributes; or a product feed of Google Merchant Center or Shopify.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    articles: Option<PathBuf>,
    /// Customers: `id` and features.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    customers: Option<PathBuf>,
    /// Whole outfits: `customer`, `articles` and features such as the occasion.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    outfits: Option<PathBuf>,
    /// Looks: `look` and `articles`; or `look`, `article` or `variant`, and `position`.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    looks: Option<PathBuf>,
    /// Events: `id`, `kind`, `article` or `variant`, and perhaps `customer`, `order`, `value`, `time`. Each is recorded once, so import
    /// the file again after an interruption.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    events: Option<PathBuf>,
    /// Past orders: the lines from which `atelier-training import` makes outfits. Each becomes a purchase, and is recorded once.
    #[arg(long, value_name = "FILE")]
    orders: Option<PathBuf>,
    /// Feature schema [default: the folder's schema.toml, or the built-in one].
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Format of the catalogue: jsonl, csv, parquet, google-xml, google-tsv or shopify-csv [default: from its name
    /// and first line].
    #[arg(long, value_name = "FORMAT", requires = "articles")]
    format: Option<InputFormat>,
    #[command(flatten)]
    dialect: DialectFlags,
    /// Skip bad rows; otherwise a bad row stops the import.
    #[arg(long)]
    skip_bad: bool,
    /// Keep stored values that a row does not name. Otherwise a row replaces the article or customer.
    #[arg(long)]
    merge: bool,
    /// Delete the articles and erase the customers whose `id` the files have. It needs no memory for the catalogue, so it helps when
    /// that has become too large for the service to start.
    #[arg(long, conflicts_with_all = ["folder", "outfits", "looks", "events", "orders", "merge", "mirror"])]
    delete: bool,
    /// Retire articles that the file of articles lacks.
    #[arg(long)]
    mirror: bool,
    /// Import nothing if more than this percentage of the catalogue would be retired, or of the articles with an attribute would lose
    /// it [default: `feeds.mirror_limit`].
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["merge", "delete"])]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    mirror_limit: Option<u8>,
    /// Retire all missing articles, and remove all attributes that the file does not have.
    #[arg(long, conflicts_with_all = ["merge", "delete", "mirror_limit"])]
    force: bool,
    /// Make the rows of an import of the last week what they were before it. An import says its number at its end.
    #[arg(long, value_name = "NUMBER")]
    #[arg(conflicts_with_all = ["folder", "articles", "customers", "outfits", "looks", "events", "orders"])]
    undo: Option<i64>,
}

impl Import {
    pub(super) async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let store = &settings.open(settings.database()?).await?;
        if let Some(number) = self.undo {
            return undo(store, number).await;
        }
        let schema = match (&self.schema, &self.folder) {
            (Some(path), _) => read_schema(path)?,
            (None, Some(folder)) => read_folder_schema(folder)?,
            (None, None) => Schema::default_schema(),
        };
        let Self { articles, customers, outfits, looks, .. } = self;
        let files = match &self.folder {
            Some(folder) => find_files(folder)?,
            None => Files { articles, customers, outfits, looks, retired: None },
        };
        let is_without_events = self.events.is_none() && self.orders.is_none();
        if files.is_empty() && files.looks.is_none() && is_without_events {
            bail!(
                "nothing to import: name a folder, or files with --articles, --customers, --outfits, --looks, --events or --orders"
            );
        }
        if self.mirror && files.articles.is_none() {
            bail!("--mirror retires articles, and there is no file of articles; name one with --articles");
        }
        let options = Options {
            skip_bad: self.skip_bad,
            change: match (self.merge, self.delete) {
                (true, _) => Change::Merge,
                (_, true) => Change::Delete,
                _ => Change::Replace,
            },
            format: self.format,
            dialect: Dialect { not_worn: settings.config.shop.not_worn(), ..self.dialect.into() },
            mirror: self.mirror,
            limit: (!self.force).then(|| self.mirror_limit.unwrap_or(settings.config.feeds.mirror_limit)),
            ..Options::default()
        };
        let now = SystemTime::now().into();
        let read = |path| read_looks(path, &schema, &options.dialect, self.skip_bad);
        let looks = files.looks.as_ref().map(read).transpose()?;
        // Before other tables, so that nothing is half imported.
        if let Some((_, looks)) = &looks {
            store_all(store, looks, "", true, now).await.context("nothing was imported")?;
        }
        let imported = if files.is_empty() {
            Some((Report::default(), Imported::default()))
        } else {
            import_files(settings, store, &files, &schema, &options, now).await?
        };
        let Some((report, imported)) = imported else { return Ok(ExitCode::FAILURE) };
        match imported.number {
            Some(number) => {
                eprintln!("imported into {store}; to undo it within a week: atelier import --undo {number}");
            }
            None => eprintln!("imported into {store}:"),
        }
        print_tables(&imported, self.delete);
        store_looks(store, looks, now).await?;
        print_left_out(&report);
        if is_without_events {
            return Ok(ExitCode::SUCCESS);
        }
        let Config { tickets, events, .. } = &settings.config;
        let (tickets, terms) = (Tickets::start(store, tickets.terms(), draw_key, now).await?, events.terms());
        let recorder = Recorder { store, tickets: &tickets, terms, serving: None };
        let mut refused = 0;
        if let Some(path) = &self.orders {
            let rows = atelier_files::read_as(path, &schema, &options.dialect)?;
            // They are as old as what is kept.
            let recorder = Recorder { terms: EventTerms { late: terms.kept, ..terms }, ..recorder };
            refused += record_orders(recorder, path, rows, now).await?;
        }
        if let Some(path) = &self.events {
            let rows = atelier_files::read_as(path, &schema, &options.dialect)?;
            refused += record("events", recorder, path, rows, |row| Ok(vec![row]), now).await?;
        }
        Ok(if refused == 0 || self.skip_bad { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

async fn undo(store: &Store, number: i64) -> Result<ExitCode> {
    let now = SystemTime::now().into();
    let Some(Undone { restored, removed }) =
        store.undo_import(Undo::Number(number), now, Duration::from_mins(1)).await?
    else {
        bail!(
            "import {number} cannot be undone: it changed nothing, ended more than a week ago, erased customers or was undone"
        );
    };
    let [restored, removed] = [restored, removed].map(HumanCount);
    eprintln!("undone in {store}: {restored} rows restored, {removed} removed");
    Ok(ExitCode::SUCCESS)
}

/// Imports the tables and prints what is wrong with them. None if they were refused.
async fn import_files(
    settings: &Settings,
    store: &Store,
    files: &Files,
    schema: &Schema,
    options: &Options,
    now: Timestamp,
) -> Result<Option<(Report, Imported)>> {
    let mut census = match files.articles {
        Some(_) if options.change != Change::Delete => {
            open_served_release(settings, store).await?.map(Census::new)
        }
        _ => None,
    };
    let tell = show_steps(|line| eprintln!("{line}"));
    let opened = Opened::files(files, schema, options, now)?;
    let import = store.import(now).await?;
    let mut number = None;
    let note = |import: &mut database::Import, _: &Report, _: &Imported| number = import.keep();
    let Outcome { report, end } =
        opened.import(import, options, census.as_mut(), &tell, pending(), note).await?;
    for line in report.findings() {
        eprintln!("{line}");
    }
    for warning in census.map(Census::into_warnings).unwrap_or_default() {
        eprintln!("note: {warning}");
    }
    match end {
        End::Imported(imported) => return Ok(Some((report, Imported { number, ..imported }))),
        End::Refused(reason) => eprintln!("nothing was imported: {reason}"),
        End::Stopped(error) => return Err(error).context("nothing was imported"),
        End::Cancelled => unreachable!("only jobs are cancelled"),
    }
    Ok(None)
}

fn print_tables(Imported { tables, retired, .. }: &Imported, is_deletion: bool) {
    for (table, counts) in tables {
        let retired = retired.filter(|_| *table == FeedTable::Articles);
        let retired =
            retired.map_or_else(String::new, |retired| format!(", {} retired", HumanCount(retired)));
        let [deleted, absent] = [counts.changed, counts.unchanged].map(HumanCount);
        if is_deletion {
            eprintln!("  {table}: {deleted} deleted, {absent} absent");
        } else {
            eprintln!("  {table}: {}{retired}", describe_counts(*counts));
        }
    }
}

fn describe_counts(Counts { added, changed, unchanged }: Counts) -> String {
    let [added, changed, unchanged] = [added, changed, unchanged].map(HumanCount);
    format!("{added} new, {changed} changed, {unchanged} unchanged")
}

fn print_left_out(report: &Report) {
    if report.left_out > 0 {
        eprintln!(
            "left out, because they are not for sale, not wearable or the parents of variants: {}",
            HumanCount(report.left_out)
        );
    }
    if report.bad > 0 {
        eprintln!("skipped: {}", bad_rows(report.bad));
    }
}

fn read_looks<'p>(
    path: &'p PathBuf,
    schema: &Schema,
    dialect: &Dialect,
    skip_bad: bool,
) -> Result<(&'p PathBuf, Vec<(LookName, Look)>)> {
    /// The bad rows that are named.
    const LISTED: usize = 20;
    let Read { looks, errors } = read(path, schema, dialect)?;
    for (line, reason) in errors.iter().take(LISTED) {
        eprintln!("{}, row {line}: {reason}", path.display());
    }
    if !(errors.is_empty() || skip_bad) {
        let bad = bad_rows(errors.len() as u64);
        bail!("nothing was imported. Fix the {bad} of looks, or use --skip-bad");
    }
    Ok((path, looks))
}

async fn store_looks(
    store: &Store,
    looks: Option<(&PathBuf, Vec<(LookName, Look)>)>,
    now: Timestamp,
) -> Result<()> {
    let Some((path, looks)) = looks else { return Ok(()) };
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    eprintln!("  looks: {}", describe_counts(store_all(store, &looks, &file, false, now).await?));
    Ok(())
}

/// Records lines of orders as purchases and returns. Those of guests, and those that are no longer kept, are left out.
async fn record_orders(
    recorder: Recorder<'_>,
    path: &Path,
    lines: Rows<OrderLine>,
    now: Timestamp,
) -> Result<u64> {
    let (mut of_guests, mut old, kept) = (0_u64, 0_u64, recorder.terms.kept);
    let events = |line: OrderLine| {
        if line.customer.is_none() {
            of_guests += 1;
        } else if line.time + kept < now {
            old += 1;
        } else {
            return EventRow::from_order(line);
        }
        Ok(Vec::new())
    };
    let refused = record("orders", recorder, path, lines, events, now).await?;
    if of_guests + old > 0 {
        let ([of_guests, old], days) = ([of_guests, old].map(HumanCount), kept.as_secs() / 86_400);
        eprintln!(
            "  orders: left out {of_guests} lines without a customer and {old} older than events.keep_days ({days})"
        );
    }
    Ok(refused)
}

/// Records the events of a file, and returns how many were refused. Each part of it is stored for good.
async fn record<T: Table + Send>(
    table: &str,
    recorder: Recorder<'_>,
    path: &Path,
    mut rows: Rows<T>,
    events: impl FnMut(T) -> Result<Vec<EventRow>, String>,
    now: Timestamp,
) -> Result<u64> {
    let bar = Progress::new(path, rows.progress().1);
    let summary = recorder.record_rows(&mut rows, events, u64::MAX, now, |read| bar.set(read)).await?;
    bar.finish();
    let Summary { recorded, known, refused, errors, unknown_articles, warnings, .. } = summary;
    for (line, reason) in errors.into_iter().chain(warnings) {
        eprintln!("{}, row {line}: {reason}", path.display());
    }
    let [new, known, bad, unknown] = [recorded, known, refused, unknown_articles].map(HumanCount);
    eprintln!("  {table}: {new} new, {known} known, {bad} refused; {unknown} of unknown articles");
    Ok(refused)
}

/// Shows a bar for each file while it is read, and tells a line at its end.
pub(super) fn show_steps(tell: impl Fn(&str) + Send + Sync) -> impl Fn(Step<'_>) + Send + Sync {
    let running = Mutex::new(None);
    move |step| {
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        match step {
            Step::Begins { path, total } => *running = Some((Progress::new(path, total), Instant::now())),
            Step::Read(read) => {
                if let Some((bar, _)) = &*running {
                    bar.set(read);
                }
            }
            Step::Ended { path, good, bad } => {
                let (bar, began) = running.take().expect("it began");
                bar.finish();
                let but = if bad > 0 { format!(", {} bad", HumanCount(bad)) } else { String::new() };
                let (all, seconds) = (good + bad, began.elapsed().as_secs_f64());
                let (count, rows) = (HumanCount(all), row_or_rows(all));
                tell(&format!("{}: {count} {rows} read{but}, in {seconds:.1} s", path.display()));
            }
        }
    }
}

/// The release that a service with these settings serves; None if it has none that can be read.
pub(super) async fn open_served_release(settings: &Settings, store: &Store) -> Result<Option<Arc<Release>>> {
    let folder = settings.config.models.folder.join(served_release(settings, store).await?);
    Ok(Release::open(&folder).ok().map(Arc::new))
}

/// Finds the tables of a folder, and prints a note about missing ones: a file may have a typo in its name.
fn find_files(folder: &Path) -> Result<Files> {
    if folder.is_file() {
        bail!(
            "{} is a file, not a folder; name its table with --articles, --customers or --outfits",
            folder.display()
        );
    }
    let files = Files::in_folder(folder)?;
    let tables = [
        (Article::NAME, &files.articles),
        (Customer::NAME, &files.customers),
        (Outfit::NAME, &files.outfits),
    ];
    let missing: Vec<&str> =
        tables.into_iter().filter(|(_, path)| path.is_none()).map(|(name, _)| name).collect();
    if missing.is_empty() {
        return Ok(files);
    }
    let others = list_others(folder, &files)?;
    if files.is_empty() && files.looks.is_none() {
        let contents = if others.is_empty() { "is empty".into() } else { format!("contains {others}") };
        bail!(
            "nothing to import: expected files named articles, customers and outfits that end in {EXTENSIONS}, \
             but {} {contents}",
            folder.display()
        );
    }
    let missing = missing.join(" or ");
    let others = if others.is_empty() { others } else { format!("; ignored files: {others}") };
    eprintln!("note: {} has no file named {missing} that ends in {EXTENSIONS}{others}", folder.display());
    Ok(files)
}

fn list_others(folder: &Path, files: &Files) -> Result<String> {
    const LISTED: usize = 8;
    let read = [&files.articles, &files.customers, &files.outfits, &files.looks];
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !read.contains(&&Some(path)) && name != SCHEMA && name != RETIRED && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let listed = names.join(", ");
    Ok(if more > 0 { format!("{listed} and {more} more") } else { listed })
}

pub(super) fn bad_rows(count: u64) -> String {
    format!("{} bad {}", HumanCount(count), row_or_rows(count))
}

pub(super) fn row_or_rows(count: u64) -> &'static str {
    if count == 1 { "row" } else { "rows" }
}
