//! The verbs of `atelier-training`. Puts the other modules together; the only place that knows a
//! terminal.

mod baselines;
mod fit;
mod oracle;
mod progress;
mod survey;
mod synthesise;
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
        Verb::Survey(verb) => verb.run(),
    }
}
