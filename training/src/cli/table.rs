//! `atelier-training table`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Deserialize;

use super::{
    baselines::BaselineFigures,
    evaluate::{read_json, write_json},
};
use crate::{
    evaluate::Evaluation,
    fit::RunFolder,
    table::{Report, Table as Figures},
};

#[derive(Debug, Args)]
pub(super) struct Table {
    /// Folders of evaluated runs: methods and seeds in any order.
    #[arg(long, value_name = "DIR", num_args = 1.., required = true)]
    runs: Vec<PathBuf>,
    /// A file written by `evaluate --out`.
    #[arg(long, value_name = "FILE")]
    baselines: Option<PathBuf>,
    /// A file that the example `research oracle --json` wrote for the same data.
    #[arg(long, value_name = "FILE")]
    oracle: Option<PathBuf>,
    /// Also write the table here as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The part of the oracle's file that the table needs.
#[derive(Deserialize)]
struct OracleFile {
    report: Report,
}

impl Table {
    pub(super) fn run(self) -> Result<()> {
        let mut evaluations = Vec::new();
        for run in &self.runs {
            let path = RunFolder::new(run).evaluation();
            let evaluation: Evaluation = read_json(&path)
                .with_context(|| format!("{} has not been evaluated; run `evaluate` first", run.display()))?;
            evaluations.push(evaluation);
        }
        let (baselines, of_new) = match (&self.baselines, evaluations.first()) {
            (Some(path), Some(first)) => {
                let found = BaselineFigures::read(path, &first.fingerprint)?;
                (found.baselines, found.new_article_baselines)
            }
            _ => (Vec::new(), Vec::new()),
        };
        let oracle: Option<OracleFile> = self.oracle.as_deref().map(read_json).transpose()?;
        let table = Figures::new(&evaluations, baselines, of_new, oracle.as_ref().map(|file| &file.report))?;
        if let Some(path) = &self.json {
            write_json(path, &table)?;
        }
        print!("{}", table.markdown());
        super::tables::print_lines(&table.losses());
        Ok(())
    }
}
