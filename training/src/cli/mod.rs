//! The verbs of `atelier-training`. Puts the other modules together; the only place that knows a
//! terminal.

mod baselines;
mod evaluate;
mod export;
mod fit;
mod import;
mod oracle;
mod progress;
mod release;
mod survey;
mod synthesise;
mod table;
mod tables;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Makes the data, the releases and the figures of Atelier.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a synthetic fashion world: articles, customers, outfits (docs/world.md).
    Synthesise(synthesise::Synthesise),
    /// Say how well the best possible answer does on a synthetic world, with and without the customer.
    Oracle(oracle::Oracle),
    /// Say how well counting does on a data folder.
    Baselines(baselines::Baselines),
    /// Fit a method to a data folder, and keep what it learned in a run's folder.
    Fit(fit::Fit),
    /// Write a run's best weights as an ONNX file.
    Export(export::Export),
    /// Measure exported models on the validation split, through ONNX Runtime.
    Evaluate(evaluate::Evaluate),
    /// Put the evaluations of many runs into one table.
    Table(table::Table),
    /// Make a release out of runs: what the service serves.
    Release(release::Release),
    /// Check your own tables and make a data folder of them.
    Import(import::Import),
    /// Show a data folder to a person: its marginals, and outfits in words.
    Survey(survey::Survey),
}

/// The whole program.
pub fn main() -> ExitCode {
    match run(Cli::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("atelier-training: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Synthesise(verb) => verb.run(),
        Verb::Oracle(verb) => verb.run(),
        Verb::Baselines(verb) => verb.run(),
        Verb::Fit(verb) => verb.run(),
        Verb::Export(verb) => verb.run(),
        Verb::Evaluate(verb) => verb.run(),
        Verb::Table(verb) => verb.run(),
        Verb::Release(verb) => verb.run(),
        Verb::Import(verb) => verb.run(),
        Verb::Survey(verb) => verb.run(),
    }
}
