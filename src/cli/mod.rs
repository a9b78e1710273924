//! The verbs of `atelier`. Only this folder knows the terminal.

mod backup;
mod check_health;
mod complete;
mod demo;
mod export;
mod import;
mod key;
mod looks;
mod open_files;
mod progress;
mod serve;
mod sign_in_link;
mod tls;
mod try_release;

use std::{env, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, anyhow};
use atelier_core::util::text::describe_error;
use atelier_engine::{
    inference::{self, Device, LoadError, ModelError, Models},
    onnx_runtime::{self, FetchError, LibraryError, OnnxRuntime},
};
use clap::{Args, CommandFactory, Parser, Subcommand, error::ErrorKind};

use self::serve::Content;
use crate::{
    config::{Config, Origins, Overrides},
    platform::db::{OpenError, Store},
    releases,
};

/// The command that starts a shop.
const SHOP: &str = "atelier --database sqlite:shop.db";

/// How long to wait at the end for threads that have models.
const RELEASE_WAIT: Duration = Duration::from_secs(2);

/// Completes outfits for a known customer.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    /// Configuration file [default: atelier.toml, if it exists].
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Database: `sqlite:PATH` or `postgres://…`. Without one, `serve` serves the demo.
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// Override a setting of atelier.toml; repeatable.
    #[arg(long = "set", global = true, value_name = "SECTION.KEY=VALUE")]
    settings: Vec<String>,
    /// `serve` is the default verb, so its flags work without it.
    #[command(flatten, next_help_heading = "Options of serve")]
    serve: serve::Serve,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve the pages and the JSON API (the default).
    Serve(serve::Serve),
    /// Complete outfits from files, without a service.
    Complete(complete::Complete),
    /// Write the looks of every article to files, without a service.
    Looks(looks::Looks),
    /// Import articles, customers, outfits and looks from files.
    Import(import::Import),
    /// Export articles, customers, outfits, looks and purchases to files.
    Export(export::Export),
    /// Fill an empty database with the demo world, print an API key for it, and serve it.
    Demo(serve::Serve),
    /// Print a link that signs a person in once.
    SignInLink(sign_in_link::SignInLink),
    /// Create, list and revoke API keys of programs.
    Key(key::KeyCommand),
    /// Create the database, or migrate it to this version, and exit. `serve` migrates it by itself.
    Migrate,
    /// Copy the database into a file while services use it. Not for Postgres.
    Backup(backup::Backup),
    /// Replace the database with a backup. Stop all services first. Not for Postgres.
    Restore(backup::Restore),
    /// Check whether the service at the configured address is ready.
    CheckHealth,
    /// Try a release, for a running service.
    #[command(hide = true)]
    TryRelease(try_release::TryRelease),
}

impl Verb {
    fn models(&self) -> Option<&ModelFlags> {
        match self {
            Self::Serve(serve) | Self::Demo(serve) => Some(&serve.models),
            Self::Complete(complete) => Some(&complete.models),
            Self::Looks(looks) => Some(&looks.models),
            _ => None,
        }
    }
}

/// The flags of verbs that use models.
#[derive(Debug, Default, Args)]
struct ModelFlags {
    /// Folder of releases.
    #[arg(long, value_name = "DIR")]
    models: Option<String>,
    /// Release to use [default: the activated one]. `serve` prefers the activated one.
    #[arg(long, value_name = "NAME")]
    release: Option<String>,
    /// Device for models: auto, cpu or cuda.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

impl ModelFlags {
    fn set(&self, overrides: &mut Overrides) {
        for (section, key, flag, value) in self.given() {
            overrides.set(section, key, flag, value);
        }
    }

    /// The release that the flag names, or else the one that a service of this database serves.
    async fn choose_release(&self, settings: &Settings, store: Option<&Store>) -> Result<String> {
        match (&self.release, store) {
            (None, Some(store)) => served_release(settings, store).await,
            _ => Ok(settings.config.models.release.clone()),
        }
    }

    /// Each flag that was given: its setting, its name and its value.
    fn given(&self) -> impl Iterator<Item = (&str, &str, &'static str, &str)> {
        let flags = [
            ("models", "folder", "--models", &self.models),
            ("models", "release", "--release", &self.release),
            ("engine", "device", "--device", &self.device),
        ];
        flags.into_iter().filter_map(|(section, key, flag, value)| {
            value.as_deref().map(|value| (section, key, flag, value))
        })
    }
}

pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("atelier: {}", describe_error(error.as_ref()));
            if error.is::<NoDatabase>() { ExitCode::from(2) } else { ExitCode::FAILURE }
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
    cli.serve.set(&mut overrides);
    let verb = cli.verb.unwrap_or_else(|| Verb::Serve(serve::Serve::default()));
    if let Some(ignored) = cli.serve.ignored_by(&verb) {
        Cli::command().error(ErrorKind::ArgumentConflict, ignored).exit();
    }
    if let Verb::Serve(serve) | Verb::Demo(serve) = &verb {
        serve.set(&mut overrides);
    } else if let Some(models) = verb.models() {
        models.set(&mut overrides);
    }
    let (config, origins) = Config::read(cli.config.as_deref(), overrides)?;
    let settings = Settings { config, origins };
    let ended = runtime.block_on(async {
        match verb {
            Verb::Serve(_) => Box::pin(serve::run(settings, Content::OfDatabase)).await,
            Verb::Demo(_) => Box::pin(serve::run(settings, Content::DemoWorld)).await,
            Verb::Complete(complete) => complete.run(settings).await,
            Verb::Looks(looks) => looks.run(settings).await,
            Verb::Import(import) => import.run(&settings).await,
            Verb::Export(export) => export.run(&settings).await,
            Verb::SignInLink(link) => link.run(&settings).await,
            Verb::Key(key) => key.run(&settings.open_existing(settings.database()?).await?).await,
            Verb::Migrate => {
                let store = settings.open(settings.database()?).await?;
                store.close().await;
                eprintln!("{store} has this version's tables");
                Ok(ExitCode::SUCCESS)
            }
            Verb::Backup(backup) => backup.run(&settings).await,
            Verb::Restore(restore) => restore.run(&settings).await,
            Verb::TryRelease(release) => tokio::task::block_in_place(|| release.run(&settings)),
            Verb::CheckHealth => tokio::task::block_in_place(|| check_health::run(&settings.config.server)),
        }
    });
    // Its tasks hold models.
    drop(runtime);
    onnx_runtime::wait_until_released(RELEASE_WAIT);
    ended
}

/// The release that a service of this database serves.
async fn served_release(settings: &Settings, store: &Store) -> Result<String> {
    let activated = releases::activated(store).await?;
    Ok(activated.unwrap_or_else(|| settings.config.models.release.clone()))
}

/// A verb for a shop's database, and none is named: the demo's is not touched by mistake.
#[derive(Debug, thiserror::Error)]
#[error("no database is named; run `{SHOP} {0}`")]
struct NoDatabase(String);

struct Settings {
    config: Config,
    origins: Origins,
}

impl Settings {
    fn database(&self) -> Result<&str, NoDatabase> {
        self.config.database.url.as_deref().ok_or_else(|| {
            let arguments: Vec<_> =
                env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
            NoDatabase(arguments.join(" "))
        })
    }

    async fn open(&self, url: &str) -> Result<Store> {
        self.limited(Store::open(url).await)
    }

    async fn open_existing(&self, url: &str) -> Result<Store> {
        self.limited(Store::open_existing(url).await)
    }

    fn limited(&self, opened: Result<Store, OpenError>) -> Result<Store> {
        let store = opened.with_context(|| self.origins.name("database.url"))?;
        Ok(store.with_limits(self.config.limits))
    }

    /// How models answer for a verb that has the machine to itself.
    fn engine(&self) -> inference::Settings {
        let engine = &self.config.engine;
        let workers = if engine.workers == 0 { inference::available_cores() } else { engine.workers };
        inference::Settings { workers, ..engine.settings() }
    }

    /// Where models run. ONNX Runtime is found, or downloaded, only if it is needed.
    fn load_models(&self, notice: impl FnOnce(&str)) -> Result<Models> {
        let Some(server) = self.config.engine.remote.clone() else {
            let loaded = OnnxRuntime::load(&self.config.cache.folder, notice);
            return loaded.map(Models::from).map_err(|error| match error {
                LibraryError::Fetch { source: FetchError::File { path, source }, .. } => anyhow!(
                    "{}: cannot write {}: {source}; ONNX Runtime's library is stored there",
                    self.origins.name("cache.folder"),
                    path.display()
                ),
                error => error.into(),
            });
        };
        Ok(server.into())
    }
}

/// Names the setting that chose where models run, if they failed there.
fn name_setting(error: LoadError, remote: bool, origins: &Origins) -> anyhow::Error {
    let setting = match &error {
        LoadError::Model(_) if remote => "engine.remote",
        LoadError::Model(ModelError::Runtime { device: Device::Cuda, .. }) => "engine.device",
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(origins.name(setting))
}

#[cfg(test)]
mod tests {
    use super::*;

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
