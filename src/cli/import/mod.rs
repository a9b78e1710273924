//! `atelier import`: a shop's files into the database, all of them or nothing.
//!
//! What is read is said file by file. What became of it is said at the end: until then nothing is in the
//! database.

mod bring_in;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::HumanCount;

use self::bring_in::bring_in;
pub(super) use self::bring_in::{End, Outcome, bring_in_if_empty};
use crate::{
    domain::{Article, Customer, Outfit, Schema},
    files::{Files, Report, SCHEMA, Table, read_schema, schema_of},
    store::{Counts, Store},
};

/// What a table's file may end in, for people.
const ENDINGS: &str = ".jsonl, .ndjson, .csv or .parquet";

#[derive(Debug, Args)]
pub(super) struct Import {
    /// A folder with files called articles, customers and outfits (.jsonl, .csv or .parquet), as `atelier
    /// export` and `atelier-training synthesise` write it.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The catalogue: `id`, `type`, and whatever else is known.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    articles: Option<PathBuf>,
    /// The customers: `id` and their features.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    customers: Option<PathBuf>,
    /// Whole outfits: `customer`, `articles`, and features such as the occasion.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    outfits: Option<PathBuf>,
    /// The feature schema; without it the folder's schema.toml, or else the built-in one.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Import the good rows though others are bad.
    #[arg(long)]
    skip_bad: bool,
}

impl Import {
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let schema = match (&self.schema, &self.folder) {
            (Some(path), _) => read_schema(path)?,
            (None, Some(folder)) => schema_of(folder)?,
            (None, None) => Schema::default_schema(),
        };
        let files = match &self.folder {
            Some(folder) => in_folder(folder)?,
            None => Files { articles: self.articles, customers: self.customers, outfits: self.outfits },
        };
        if files.is_empty() {
            bail!(
                "there is nothing to import: name a folder, or files with --articles, --customers, --outfits"
            );
        }
        let Outcome { report, end } =
            bring_in(store, &files, &schema, self.skip_bad, |line| eprintln!("{line}")).await?;
        show(&report);
        match end {
            End::Imported(counts) => {
                eprintln!("imported into {store}:");
                for (table, Counts { added, changed, unchanged }) in counts {
                    let [added, changed, unchanged] = [added, changed, unchanged].map(HumanCount);
                    eprintln!("  {table}: {added} new, {changed} changed, {unchanged} as they were");
                }
                if report.bad > 0 {
                    eprintln!("left out: {} bad {}", HumanCount(report.bad), row_or_rows(report.bad));
                }
                Ok(ExitCode::SUCCESS)
            }
            End::Refused => {
                eprintln!("{}", refusal(&report));
                Ok(ExitCode::FAILURE)
            }
            End::Stopped(error) => Err(error.context("nothing was imported")),
        }
    }
}

/// The folder's tables, and a note of those that it lacks: a file with a slip in its name would otherwise
/// stay behind unseen.
fn in_folder(folder: &Path) -> Result<Files> {
    if folder.is_file() {
        bail!(
            "{} is a file, not a folder; say what is in it with --articles, --customers or --outfits",
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
    let others = others(folder, &files)?;
    if files.is_empty() {
        let holds = if others.is_empty() { "it is empty".into() } else { format!("it holds {others}") };
        bail!(
            "there is nothing to import in {}: files called articles, customers and outfits are looked for, \
             each ending in {ENDINGS}; {holds}",
            folder.display()
        );
    }
    let missing = missing.join(" and no ");
    let others = if others.is_empty() { others } else { format!("; not read: {others}") };
    eprintln!("note: {} holds no {missing}, ending in {ENDINGS}{others}", folder.display());
    Ok(files)
}

/// What else is in the folder, for people.
fn others(folder: &Path, files: &Files) -> Result<String> {
    const SHOWN: usize = 8;
    let read = [&files.articles, &files.customers, &files.outfits];
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !read.contains(&&Some(path)) && name != SCHEMA && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let shown = names.join(", ");
    Ok(if more > 0 { format!("{shown} and {more} more") } else { shown })
}

/// The first bad rows and the warnings, for a person.
fn show(report: &Report) {
    for noted in &report.warnings {
        let rows = if noted.rows > 1 { format!(" ({} in all)", rows(noted.rows)) } else { String::new() };
        eprintln!("note: {noted}{rows}");
    }
    if report.more_warnings > 0 {
        eprintln!("note: … and {} more such notes", HumanCount(report.more_warnings));
    }
    for bad in &report.errors {
        eprintln!("{bad}");
    }
    let shown = u64::try_from(report.errors.len()).expect("at most twenty are kept; this is a bug");
    if report.bad > shown {
        let more = report.bad - shown;
        eprintln!("… and {} more bad {}", HumanCount(more), row_or_rows(more));
    }
}

fn refusal(report: &Report) -> String {
    let bad = match report.bad {
        1 => "the bad row".into(),
        bad => format!("the {} bad rows", HumanCount(bad)),
    };
    match report.good {
        0 => format!("nothing was imported. Mend {bad}: there is no good one"),
        1 => format!("nothing was imported. Mend {bad}, or import the one good row with --skip-bad"),
        good => {
            let good = HumanCount(good);
            format!("nothing was imported. Mend {bad}, or import the {good} good rows with --skip-bad")
        }
    }
}

fn rows(count: u64) -> String {
    format!("{} {}", HumanCount(count), row_or_rows(count))
}

pub(super) fn row_or_rows(count: u64) -> &'static str {
    if count == 1 { "row" } else { "rows" }
}
