//! The verbs of `atelier`. Only this room knows the terminal.

mod check_health;
mod complete;
mod export;
mod import;
mod open_files;
mod progress;
mod serve;
mod sign_in_link;
mod tls;

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

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
    /// Configuration file [default: atelier.toml, if it exists].
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Database: `sqlite:PATH` or `postgres://…`.
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// Override a setting of atelier.toml; repeatable.
    #[arg(long = "set", global = true, value_name = "SECTION.KEY=VALUE")]
    settings: Vec<String>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve the pages and the JSON API (the default).
    Serve(serve::Serve),
    /// Complete outfits from files, without a service.
    Complete(complete::Complete),
    /// Import articles, customers and outfits from files.
    Import(import::Import),
    /// Export articles, customers and outfits to files.
    Export(export::Export),
    /// Print a link that signs a person in once.
    SignInLink(sign_in_link::SignInLink),
    /// Check whether the service at the configured address is ready.
    CheckHealth,
}

/// The flags of verbs that use models.
#[derive(Debug, Default, Args)]
struct ModelFlags {
    /// Folder of releases.
    #[arg(long, value_name = "DIR")]
    models: Option<String>,
    /// Release to use; `serve` prefers the one that an admin activated.
    #[arg(long, value_name = "NAME")]
    release: Option<String>,
    /// Device for models: auto, cpu or cuda.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

impl ModelFlags {
    fn set(&self, overrides: &mut Overrides) {
        let flags = [
            ("models", "folder", "--models", &self.models),
            ("models", "release", "--release", &self.release),
            ("engine", "device", "--device", &self.device),
        ];
        for (section, key, flag, value) in flags {
            if let Some(value) = value {
                overrides.set(section, key, flag, value);
            }
        }
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("atelier: {}", describe(&error));
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
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime's threads")?;
    let verb = cli.verb.unwrap_or_else(|| Verb::Serve(serve::Serve::default()));
    match &verb {
        Verb::Serve(serve) => serve.set(&mut overrides),
        Verb::Complete(complete) => complete.set(&mut overrides),
        Verb::Import(_) | Verb::Export(_) | Verb::SignInLink(_) | Verb::CheckHealth => {}
    }
    let config = Config::read(cli.config.as_deref(), overrides)?;
    match verb {
        Verb::Serve(_) => runtime.block_on(serve::run(config)),
        Verb::Complete(complete) => runtime.block_on(complete.run(config)),
        Verb::Import(import) => {
            runtime.block_on(async { import.run(&Store::open(&config.database.url).await?).await })
        }
        Verb::Export(export) => {
            runtime.block_on(async { export.run(&Store::open_existing(&config.database.url).await?).await })
        }
        Verb::SignInLink(link) => runtime.block_on(link.run(&config)),
        Verb::CheckHealth => check_health::run(&config.server),
    }
}

/// Where the settings run models. ONNX Runtime is found, or downloaded, only if it is needed.
fn load_models(config: &Config, notice: impl FnOnce(&str)) -> Result<Models, LibraryError> {
    match config.engine.remote() {
        Some(server) => Ok(server.into()),
        None => OnnxRuntime::load(&config.cache.folder, notice).map(Models::from),
    }
}

/// The error and its causes. Some errors repeat their causes, which are then left out.
fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;

    #[test]
    fn causes_are_not_repeated() {
        let gone = || std::io::Error::other("the disk is gone");
        let error = anyhow::Error::new(gone()).context("cannot read x");
        assert_eq!(describe(&error), "cannot read x: the disk is gone");
        let error = ConfigError::File { path: "x".into(), source: gone() };
        assert_eq!(describe(&error.into()), "the configuration file x: the disk is gone");
    }
}
