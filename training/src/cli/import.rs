//! `atelier-training import`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use atelier_core::domain::{OutfitSize, Schema};
use atelier_files::{Delimiter, Dialect, Encoding, Files, Mapping, read_folder_schema, read_schema};
use clap::Args;
use indicatif::HumanCount;

use super::progress::bar;
use crate::{
    data::repeats::REPEATED,
    import::{Import as Plan, Imported, Received, Repeats, Unknown, WINDOW},
    survey,
};

#[derive(Debug, Args)]
pub(super) struct Import {
    /// A folder with articles, customers and outfits (.jsonl, .csv or .parquet), and a schema.toml if the schema is
    /// not the default one.
    #[arg(value_name = "DIR", required_unless_present_any = ["outfits", "orders"])]
    folder: Option<PathBuf>,
    /// The file of articles, instead of a folder.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    articles: Option<PathBuf>,
    /// The file of customers, instead of a folder.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    customers: Option<PathBuf>,
    /// The file of outfits, instead of a folder.
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    outfits: Option<PathBuf>,
    /// Make outfits from this file of order lines: order, customer, article or variant, time and, if known, returned. They take
    /// the place of the folder's outfits. The latest are for validation.
    #[arg(long, value_name = "FILE", conflicts_with = "outfits")]
    orders: Option<PathBuf>,
    /// The feature schema [default: the folder's schema.toml, or the built-in one].
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The data folder to create.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Delimiter of CSV files: `,`, `;`, `|` or `tab` [default: the one that gives the needed columns].
    #[arg(long, value_name = "DELIMITER")]
    delimiter: Option<Delimiter>,
    /// Encoding of CSV files without a byte order mark, such as windows-1252 [default: utf-8].
    #[arg(long, value_name = "NAME")]
    encoding: Option<Encoding>,
    /// Read the column FROM of CSV and Parquet files as TO, or leave it out if TO is empty; repeat this for other columns.
    /// `articles.FROM=TO` applies to that table only.
    #[arg(long, value_name = "FROM=TO")]
    map: Vec<Mapping>,
    /// Import the good rows even if others are bad.
    #[arg(long)]
    skip_bad: bool,
    /// The share of outfits for validation if no row names a split: drawn by chance, of orders the latest.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    validation: f64,
    /// Do not add the feature "had", the articles of a customer's training outfits. It is added if the customers of
    /// validation outfits have at least eight training outfits on average, and no set of the schema has mostly
    /// articles as values.
    #[arg(long)]
    no_history: bool,
    /// Also print what was understood: the shares of all values, and this many outfits in words.
    #[arg(long, value_name = "OUTFITS")]
    show: Option<usize>,
}

impl Import {
    fn read_schema(&self) -> Result<Schema> {
        Ok(match (&self.schema, &self.folder) {
            (Some(path), _) => read_schema(path)?,
            (None, Some(folder)) => read_folder_schema(folder)?,
            (None, None) => Schema::default_schema(),
        })
    }

    pub(super) fn run(self) -> Result<()> {
        if !(self.validation > 0.0 && self.validation < 1.0) {
            bail!("--validation must be between 0 and 1, found {}", self.validation);
        }
        let schema = self.read_schema()?;
        let files = match &self.folder {
            Some(folder) => Files::in_folder(folder)?,
            None => Files {
                articles: self.articles,
                customers: self.customers,
                outfits: self.outfits,
                looks: None,
                retired: None,
            },
        };
        let size = schema.outfit_size();
        let bar = bar(1);
        let mut show_progress = |table: &'static str, done: u64, total: u64| {
            bar.set_message(table);
            bar.set_length(total);
            bar.set_position(done);
        };
        let plan = Plan {
            files: &files,
            dialect: &Dialect {
                delimiter: self.delimiter,
                encoding: self.encoding,
                map: self.map,
                ..Dialect::default()
            },
            orders: self.orders.as_deref(),
            by_time: None,
            schema: &schema,
            skip_bad: self.skip_bad,
            validation: self.validation,
            history: !self.no_history,
        };
        let Imported {
            report,
            drawn,
            repeats,
            shortened,
            too_short,
            sampled,
            outfits_per_customer,
            taken,
            ..
        } = plan.write(&self.out, &mut show_progress)?;
        bar.finish_and_clear();
        for line in report.findings() {
            eprintln!("{line}");
        }
        if report.bad > 0 && !self.skip_bad {
            bail!(
                "nothing was imported. Fix the {} bad rows, or import the other {} with --skip-bad",
                HumanCount(report.bad),
                HumanCount(report.good)
            );
        }
        if let Some(taken) = &taken {
            print_taken(taken, size)?;
        }
        if shortened > 0 {
            eprintln!(
                "{} outfits have articles that left the catalogue (retired.txt); the others of their articles were imported, \
                 but {} outfits have fewer than {} others and were left out",
                HumanCount(shortened),
                HumanCount(too_short),
                size.least
            );
        }
        if sampled > 0 {
            eprintln!(
                "{} outfits have more than {most} articles (`outfit` in the schema), of which a sample of {most} was imported",
                HumanCount(sampled),
                most = size.most
            );
        }
        if drawn > 0 {
            let drawn = HumanCount(drawn as u64);
            eprintln!("no row names a split, so {drawn} outfits were drawn for validation");
        }
        for line in describe(&repeats, drawn > 0) {
            eprintln!("{line}");
        }
        if let Some(average) = outfits_per_customer {
            eprintln!(
                "the customers of validation outfits have {average:.0} training outfits on average, so the articles of these \
                 became the feature \"had\" in {out}/schema.toml; import customers from {out}, too (--no-history leaves \
                 the feature out)",
                out = self.out.display()
            );
        }
        let (good, bad) = (HumanCount(report.good - too_short), HumanCount(report.bad));
        println!("{}: {good} rows, {bad} bad rows skipped", self.out.display());
        if let Some(outfits) = self.show {
            print!("\n{}", survey::describe(&self.out, outfits)?);
        }
        Ok(())
    }
}

/// Says which outfits repeat others, and what it means for figures.
fn describe(Repeats { all, crossing, asked }: &Repeats, is_drawn: bool) -> Vec<String> {
    let count = |count: usize| HumanCount(count as u64);
    let mut lines = Vec::new();
    if is_drawn && all.outfits > 0 {
        lines.push(format!(
            "{} outfits repeat another one ({REPEATED}); each was drawn together with those that it repeats where they are few, the most are {}",
            count(all.outfits),
            count(all.largest)
        ));
    }
    if *crossing > 0 {
        lines.push(format!(
            "{} of {} validation outfits repeat one to learn from ({REPEATED}), so figures are too good: `evaluate` also gives those without them",
            count(*crossing),
            count(*asked)
        ));
    }
    lines
}

/// Says how orders became outfits.
///
/// # Errors
/// If there is no outfit.
fn print_taken(taken: &Received, OutfitSize { least, most }: OutfitSize) -> Result<()> {
    let count = |count: usize| HumanCount(count as u64);
    let days = WINDOW.as_secs() / 86_400;
    eprintln!(
        "{} lines of {} orders became {} outfits, {} of them from several orders of a customer within {days} days; the latest {} are \
         for validation",
        HumanCount(taken.lines),
        count(taken.orders),
        count(taken.outfits),
        count(taken.joined),
        count(taken.validation)
    );
    let first = |unknown: &Unknown| {
        if unknown.lines > 0 { format!(" (the first is {:?})", unknown.first) } else { String::new() }
    };
    let left_out = [
        (taken.returned, "lines were returned".to_owned()),
        (taken.of_guests, "lines have no customer".to_owned()),
        (
            taken.unknown_customers.lines,
            format!("lines have an unknown customer{}", first(&taken.unknown_customers)),
        ),
        (
            taken.unknown_articles.lines,
            format!("lines have an unknown article{}", first(&taken.unknown_articles)),
        ),
        (
            taken.too_few as u64,
            format!("orders have fewer than {least} articles, also with others within {days} days"),
        ),
        (taken.repeated as u64, "outfits repeat one that the customer bought before".to_owned()),
    ];
    for (count, reason) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        eprintln!("left out: {} {reason}", HumanCount(count));
    }
    if taken.sampled > 0 {
        eprintln!(
            "{} outfits have more than {most} articles, of which {most} were drawn",
            count(taken.sampled)
        );
    }
    if taken.outfits == 0 {
        bail!("nothing was imported: the orders make no outfit");
    }
    if 2 * taken.refills > taken.outfits {
        eprintln!(
            "warning: more than half of the articles are of one type in {} of {} outfits, most often {:?}. Such orders are refills, and a \
             model learns to refill from them, not what goes together (docs/orders.md)",
            count(taken.refills),
            count(taken.outfits),
            taken.refilled
        );
    }
    Ok(())
}
