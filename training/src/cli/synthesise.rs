//! `atelier-training synthesise`.

use std::path::PathBuf;

use anyhow::Result;
use atelier_files::Format;
use clap::Args;

use super::progress::Stages;
use crate::{synthesise, world::Plan};

#[derive(Debug, Args)]
pub(super) struct Synthesise {
    /// The folder to create.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The same seed makes the same world.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of articles.
    #[arg(long, default_value_t = 30_000)]
    articles: usize,
    /// Number of customers.
    #[arg(long, default_value_t = 120_000)]
    customers: usize,
    /// Number of training outfits.
    #[arg(long, default_value_t = 380_000)]
    outfits: usize,
    /// Number of validation outfits.
    #[arg(long, default_value_t = 17_000)]
    validation: usize,
    /// Number of articles that no training outfit has, as next season's: they are in the catalogue and in validation
    /// outfits.
    #[arg(long, default_value_t = 0)]
    new: usize,
    /// jsonl, csv or parquet.
    #[arg(long, default_value_t = Format::JsonLines)]
    format: Format,
}

impl Synthesise {
    pub(super) fn run(self) -> Result<()> {
        let plan = Plan {
            seed: self.seed,
            articles: self.articles,
            customers: self.customers,
            outfits: self.outfits,
            validation: self.validation,
            new: self.new,
        };
        let mut stages = Stages::default();
        let file = synthesise::synthesise(plan, self.format, &self.out, &mut |table, done, total| {
            stages.set(&format!("{table} ({total})"), done, total);
        })?;
        stages.finish();
        println!("world version {} in {}", file.version, self.out.display());
        for (name, digest) in &file.files {
            println!("{digest}  {name}");
        }
        Ok(())
    }
}
