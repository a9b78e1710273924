//! The verbs of `atelier`. Puts the other modules together; the only place that knows a terminal.

mod export;
mod import;
mod progress;
mod serve;

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::{
    config::{Config, Overrides},
    store::Store,
};

/// Completes outfits for a known customer.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    /// The configuration file; without it `atelier.toml` is read where there is one.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The database: `sqlite:PATH` or `postgres://…`.
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve pages and JSON; what `atelier` does without a verb.
    Serve(serve::Serve),
    /// Bring articles, customers and outfits into the database, all of them or none.
    Import(import::Import),
    /// Write the database's articles, customers and outfits to files.
    Export(export::Export),
}

/// The whole program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("atelier: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    let mut overrides = Overrides::from_variables(env::vars())?;
    if let Some(url) = cli.database {
        overrides.set("database", "url", "--database", url.into());
    }
    let runtime = tokio::runtime::Runtime::new().context("the threads that serve could not be started")?;
    match cli.verb.unwrap_or_else(|| Verb::Serve(serve::Serve::default())) {
        Verb::Serve(serve) => {
            serve.set(&mut overrides);
            let config = Config::read(cli.config.as_deref(), overrides)?;
            runtime.block_on(serve::run(config))
        }
        Verb::Import(import) => {
            let config = Config::read(cli.config.as_deref(), overrides)?;
            runtime.block_on(async { import.run(&open(&config).await?).await })
        }
        Verb::Export(export) => {
            let config = Config::read(cli.config.as_deref(), overrides)?;
            runtime.block_on(async { export.run(&open(&config).await?).await })
        }
    }
}

async fn open(config: &Config) -> Result<Store> {
    Ok(Store::open(&config.database.url).await?)
}
