//! `atelier-training embed`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use indicatif::HumanCount;

use super::{evaluate::runtime, progress::Stages};
use crate::embed::embed;

/// The most articles without a vector that are named.
const NAMED: usize = 3;

#[derive(Debug, Args)]
pub(super) struct Embed {
    /// A data folder, or a folder with articles alone.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A folder with an ONNX file, its preprocessing (`preprocessor_config.json` or `tokenizer.json`), and its licence.
    #[arg(long, value_name = "DIR")]
    encoder: PathBuf,
}

impl Embed {
    pub(super) fn run(self) -> Result<()> {
        let mut stages = Stages::default();
        let results = embed(&self.data, &self.encoder, &runtime()?, &mut |name, done, total| {
            stages.set(name, done, total);
        })?;
        stages.finish();
        let count = |count: usize| HumanCount(count as u64);
        let mut is_any = false;
        for result in &results {
            let what = if result.name == "image" { "picture" } else { "name or description" };
            println!(
                "{}: {} of {} articles have a vector of {} numbers, {} of them new; {} have no {what}, {} failed",
                result.name,
                count(result.with),
                count(result.articles),
                result.length,
                count(result.encoded),
                count(result.without),
                count(result.failed.len())
            );
            for (id, reason) in result.failed.iter().take(NAMED) {
                eprintln!("article {id}: {reason}");
            }
            is_any |= result.with > 0;
        }
        if !is_any {
            bail!("no article got a vector; correct what is said above, and run it again");
        }
        Ok(())
    }
}
