//! `atelier import`: imports files into the database, all rows or none.
//!
//! It prints a line for each file as it is read, and the result at the end: until then the database is unchanged.

mod load;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::HumanCount;

use self::load::load_files;
pub(super) use self::load::{End, Outcome, load_files_if_empty};
use crate::{
    domain::{Article, Customer, Outfit, Schema},
    files::{Files, Report, SCHEMA, Table, read_folder_schema, read_schema},
    store::{Counts, Store},
};

/// The extensions of a table's file, for messages.
const EXTENSIONS: &str = ".jsonl, .ndjson, .csv or .parquet";

#[derive(Debug, Args)]
pub(super) struct Import {
    /// Folder with files named articles, customers and outfits (.jsonl, .csv or .parquet), as written by
    /// `atelier export` and `atelier-training synthesise`.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Catalogue: `id`, `type` and other attributes.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    articles: Option<PathBuf>,
    /// Customers: `id` and features.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    customers: Option<PathBuf>,
    /// Whole outfits: `customer`, `articles` and features such as the occasion.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    outfits: Option<PathBuf>,
    /// Feature schema [default: the folder's schema.toml, or the built-in one].
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Skip bad rows; otherwise a bad row stops the import.
    #[arg(long)]
    skip_bad: bool,
}

impl Import {
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let schema = match (&self.schema, &self.folder) {
            (Some(path), _) => read_schema(path)?,
            (None, Some(folder)) => read_folder_schema(folder)?,
            (None, None) => Schema::default_schema(),
        };
        let files = match &self.folder {
            Some(folder) => find_files(folder)?,
            None => Files { articles: self.articles, customers: self.customers, outfits: self.outfits },
        };
        if files.is_empty() {
            bail!("nothing to import: name a folder, or files with --articles, --customers or --outfits");
        }
        let Outcome { report, end } =
            load_files(store, &files, &schema, self.skip_bad, |line| eprintln!("{line}")).await?;
        print_findings(&report);
        match end {
            End::Imported(counts) => {
                eprintln!("imported into {store}:");
                for (table, Counts { added, changed, unchanged }) in counts {
                    let [added, changed, unchanged] = [added, changed, unchanged].map(HumanCount);
                    eprintln!("  {table}: {added} new, {changed} changed, {unchanged} unchanged");
                }
                if report.bad > 0 {
                    eprintln!("skipped: {} bad {}", HumanCount(report.bad), row_or_rows(report.bad));
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
    if files.is_empty() {
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

/// Lists other files in the folder, for messages.
fn list_others(folder: &Path, files: &Files) -> Result<String> {
    const LISTED: usize = 8;
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
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let listed = names.join(", ");
    Ok(if more > 0 { format!("{listed} and {more} more") } else { listed })
}

/// Prints the warnings and the first bad rows.
fn print_findings(report: &Report) {
    for warning in &report.warnings {
        let rows =
            if warning.rows > 1 { format!(" ({} in all)", count_rows(warning.rows)) } else { String::new() };
        eprintln!("note: {warning}{rows}");
    }
    if report.more_warnings > 0 {
        eprintln!("note: … and {} more notes", HumanCount(report.more_warnings));
    }
    for bad in &report.errors {
        eprintln!("{bad}");
    }
    let more = report.bad - report.errors.len() as u64;
    if more > 0 {
        eprintln!("… and {} more bad {}", HumanCount(more), row_or_rows(more));
    }
}

fn refusal(report: &Report) -> String {
    let bad = match report.bad {
        1 => "the bad row".into(),
        bad => format!("the {} bad rows", HumanCount(bad)),
    };
    match report.good {
        0 => format!("nothing was imported. Fix {bad}; there are no good ones"),
        1 => format!("nothing was imported. Fix {bad}, or import the one good row with --skip-bad"),
        good => {
            let good = HumanCount(good);
            format!("nothing was imported. Fix {bad}, or import the {good} good rows with --skip-bad")
        }
    }
}

fn count_rows(count: u64) -> String {
    format!("{} {}", HumanCount(count), row_or_rows(count))
}

pub(super) fn row_or_rows(count: u64) -> &'static str {
    if count == 1 { "row" } else { "rows" }
}
