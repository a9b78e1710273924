//! The verbs of `atelier`. Puts the other modules together; the only place that knows a terminal.

mod check_health;
mod complete;
mod export;
mod import;
mod progress;
mod serve;
mod sign_in_link;

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::{
    config::{Config, Overrides},
    models::{
        engine::Models,
        onnx_runtime::{LibraryError, OnnxRuntime},
    },
    store::Store,
};

/// Completes outfits for a known customer.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    /// The configuration file; without it `atelier.toml` is read where there is one.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The database: `sqlite:PATH` or `postgres://…`.
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// Any setting, as atelier.toml names it; may be given again and again.
    #[arg(long = "set", global = true, value_name = "SECTION.KEY=VALUE")]
    settings: Vec<String>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve pages and JSON; what `atelier` does without a verb.
    Serve(serve::Serve),
    /// Complete outfits that lie in files, part by part, without a service.
    Complete(complete::Complete),
    /// Bring articles, customers and outfits into the database, all of them or none.
    Import(import::Import),
    /// Write the database's articles, customers and outfits to files.
    Export(export::Export),
    /// Print a link that signs a person in once, for the first admin or whoever lost the password.
    SignInLink(sign_in_link::SignInLink),
    /// Ask the service at the configured address whether it is ready: for a container's health check.
    CheckHealth,
}

/// The whole program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("atelier: {}", tell(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    let mut overrides = Overrides::from_variables(env::vars_os())?;
    for pair in &cli.settings {
        overrides.set_pair(pair)?;
    }
    if let Some(url) = cli.database {
        overrides.set("database", "url", "--database", url);
    }
    let runtime = tokio::runtime::Runtime::new().context("the threads that serve could not be started")?;
    match cli.verb.unwrap_or_else(|| Verb::Serve(serve::Serve::default())) {
        Verb::Serve(serve) => {
            serve.set(&mut overrides);
            let config = Config::read(cli.config.as_deref(), overrides)?;
            runtime.block_on(serve::run(config))
        }
        Verb::Complete(complete) => {
            complete.set(&mut overrides);
            let config = Config::read(cli.config.as_deref(), overrides)?;
            runtime.block_on(complete.run(config))
        }
        Verb::Import(import) => {
            let config = Config::read(cli.config.as_deref(), overrides)?;
            runtime.block_on(async { import.run(&Store::open(&config.database.url).await?).await })
        }
        Verb::Export(export) => {
            let config = Config::read(cli.config.as_deref(), overrides)?;
            runtime.block_on(async { export.run(&Store::open_existing(&config.database.url).await?).await })
        }
        Verb::SignInLink(link) => {
            let config = Config::read(cli.config.as_deref(), overrides)?;
            runtime.block_on(link.run(&config))
        }
        Verb::CheckHealth => {
            let config = Config::read(cli.config.as_deref(), overrides)?;
            check_health::run(&config.server.address)
        }
    }
}

/// Where models run as the settings have it. The library is found, or fetched, only where it is needed.
fn models(config: &Config, notice: impl FnOnce(&str)) -> Result<Models, LibraryError> {
    match config.engine.remote() {
        Some(server) => Ok(server.into()),
        None => OnnxRuntime::load(&config.cache.folder, notice).map(Models::from),
    }
}

/// The error and what is behind it, each once: some causes say themselves in the error's own words.
fn tell(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !said.contains(&cause) {
            said.push_str(if said.is_empty() { "" } else { ": " });
            said.push_str(&cause);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;

    #[test]
    fn no_cause_is_told_twice() {
        let gone = || std::io::Error::other("the disk is gone");
        let error = anyhow::Error::new(gone()).context("cannot read x");
        assert_eq!(tell(&error), "cannot read x: the disk is gone");
        let error = ConfigError::File { path: "x".into(), source: gone() };
        assert_eq!(tell(&error.into()), "the configuration file x: the disk is gone");
    }
}
