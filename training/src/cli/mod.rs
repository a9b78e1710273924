//! The verbs of `atelier-training`. Connects the other modules; no other module knows a terminal.

mod baselines;
mod embed;
mod evaluate;
mod export;
mod fit;
mod import;
pub mod progress;
mod refresh;
mod release;
mod synthesise;
mod table;
pub mod tables;

use std::process::ExitCode;

use anyhow::Result;
use atelier_core::util::text::describe_error;
use clap::{Parser, Subcommand};

pub use evaluate::{runtime, write_json};
pub use fit::stop_on_signal;

/// Makes Atelier's data, releases and figures.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// In the order in which a shop needs them.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Check your own tables and make a data folder from them.
    Import(import::Import),
    /// Add what an encoder of pictures or texts makes of the articles to a data folder.
    Embed(embed::Embed),
    /// Train a method on a data folder; the result goes into a run's folder.
    Fit(fit::Fit),
    /// Evaluate exported models on the validation split, with ONNX Runtime, and baselines.
    ///
    /// With fewer than 200 slots also by five folds.
    Evaluate(evaluate::Evaluate),
    /// Export a run's best weights as an ONNX file.
    Export(export::Export),
    /// Make a release from runs, for the service.
    Release(release::Release),
    /// Propose a release that has learned from what happened since the live one.
    ///
    /// Exits with 0 if there is a candidate, with 3 if there is none, and with 1 if something is wrong. Prints the model card in
    /// the first two cases.
    Refresh(refresh::Refresh),
    /// Combine evaluations of many runs in one table.
    Table(table::Table),
    /// Make a synthetic fashion world of articles, customers and outfits (docs/world.md).
    Synthesise(synthesise::Synthesise),
}

/// Runs the program.
pub fn main() -> ExitCode {
    match run(Cli::parse().verb) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("atelier-training: {}", describe_error(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<ExitCode> {
    let done = match verb {
        Verb::Refresh(verb) => return verb.run(),
        Verb::Synthesise(verb) => verb.run(),
        Verb::Fit(verb) => verb.run(),
        Verb::Export(verb) => verb.run(),
        Verb::Evaluate(verb) => verb.run(),
        Verb::Table(verb) => verb.run(),
        Verb::Release(verb) => verb.run(),
        Verb::Import(verb) => verb.run(),
        Verb::Embed(verb) => verb.run(),
    };
    done.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    /// Finds the verbs and flags that `--help` does not describe.
    fn undescribed(command: &clap::Command) -> Vec<String> {
        let name = command.get_name();
        let flags = command.get_arguments().filter(|flag| flag.get_help().is_none());
        let mut found: Vec<String> = flags.map(|flag| format!("{name} {}", flag.get_id())).collect();
        found.extend(command.get_about().is_none().then(|| name.to_owned()));
        found.extend(command.get_subcommands().flat_map(undescribed));
        found
    }

    #[test]
    fn every_verb_and_every_flag_is_described() {
        let command = Cli::command();
        assert!(command.get_subcommands().count() > 5);
        assert_eq!(undescribed(&command), Vec::<String>::new());
    }
}
