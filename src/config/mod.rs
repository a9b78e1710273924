//! The settings of a running service: flag over variable over file over default.
//!
//! `atelier.toml` in the repository's root lists every setting with its default. A variable
//! `ATELIER__SECTION__KEY` overrides the file, and flags override both: `--set section.key=value` any
//! setting, and those that are changed most have a flag of their own, which wins over that.

mod limits;
mod overrides;
mod profiles;
mod telemetry;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use etcetera::{BaseStrategy, choose_base_strategy};
use serde::Deserialize;
use toml::{Table, Value};

use crate::{
    engine::{self, DeviceChoice},
    http_client::Origin,
    telemetry::AVAILABLE,
};

pub use self::{limits::Limits, overrides::Overrides, profiles::Profiles, telemetry::Telemetry};

use self::overrides::PREFIX;

/// Read when it is there and no file was named.
pub const DEFAULT_FILE: &str = "atelier.toml";

/// Every setting.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub server: Server,
    pub database: Database,
    pub models: Models,
    pub engine: Engine,
    pub cache: Cache,
    pub profiles: Profiles,
    pub limits: Limits,
    pub access: Access,
    pub telemetry: Telemetry,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// `host:port`.
    pub address: String,
    /// Milliseconds that requests in progress have once the service was told to stop.
    pub drain_ms: u32,
}

impl Server {
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms.into())
    }
}

#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// `postgres://…`, or `sqlite:path`.
    pub url: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Models {
    /// The folder of releases.
    pub folder: PathBuf,
    /// The release to serve.
    pub release: String,
}

/// How much models take on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Engine {
    pub device: DeviceChoice,
    /// Most threads a method; 0 is as many as there are cores, up to four.
    pub workers: usize,
    /// Most outfits that a model is given at once.
    pub batch: usize,
    /// Most outfits that wait for one method.
    pub queue: usize,
    /// `http://host:port` of a server of models that is asked instead of sessions of the service's own.
    pub remote: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// Where fetched files are kept.
    pub folder: PathBuf,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Whether programs need an API key on a loopback address, too. On any other they always do.
    pub require_key: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self { address: "127.0.0.1:8080".into(), drain_ms: 20_000 }
    }
}

impl Default for Database {
    fn default() -> Self {
        Self { url: format!("sqlite:{}", home().data.join("atelier.db").display()) }
    }
}

impl Default for Models {
    fn default() -> Self {
        Self { folder: "models".into(), release: "demo".into() }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self { device: DeviceChoice::Auto, workers: 0, batch: 64, queue: 1024, remote: None }
    }
}

impl Engine {
    /// In the engine's own terms.
    pub fn settings(&self) -> engine::Settings {
        /// Beyond that, copies of the models cost more memory than most machines want to give.
        const MOST_BY_DEFAULT: usize = 4;
        let cores = engine::cores_here();
        let workers = if self.workers == 0 { cores.min(MOST_BY_DEFAULT) } else { self.workers };
        engine::Settings { workers, batch: self.batch, queue: self.queue, device: self.device }
    }

    /// The server that is asked, if one is.
    pub fn remote(&self) -> Option<Origin> {
        self.remote
            .as_ref()
            .map(|url| Origin::parse(url).expect("it was checked when it was read; this is a bug"))
    }

    fn check(&self) -> Result<(), String> {
        if let Some(url) = &self.remote {
            Origin::parse(url).map_err(|error| format!("engine.remote: {error}"))?;
            if self.device != DeviceChoice::Auto {
                return Err(
                    "engine.device is about sessions of the service's own, and engine.remote asks a server \
                            instead: leave one of them out"
                        .into(),
                );
            }
        }
        if self.batch == 0 || self.queue < self.batch {
            return Err(format!(
                "engine.batch ({}) must be at least 1, and engine.queue ({}) not below it",
                self.batch, self.queue
            ));
        }
        if self.workers > 256 {
            return Err(format!("engine.workers is at most 256, found {}", self.workers));
        }
        Ok(())
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self { folder: home().cache }
    }
}

/// Not derived: a password in the URL must reach no log.
impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

struct Home {
    data: PathBuf,
    cache: PathBuf,
}

/// The user's folders as the XDG rules name them; without a home, the working folder.
fn home() -> Home {
    match choose_base_strategy() {
        Ok(strategy) => {
            Home { data: strategy.data_dir().join("atelier"), cache: strategy.cache_dir().join("atelier") }
        }
        Err(_) => Home { data: "data".into(), cache: "data/cache".into() },
    }
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the configuration file {path}{place} is not TOML: {reason}", path = .path.display())]
    Toml { path: PathBuf, place: String, reason: String },
    #[error(
        "the variable {0} names no setting; variables are {PREFIX}SECTION__KEY, as in {PREFIX}SERVER__ADDRESS"
    )]
    Variable(String),
    #[error("{origin}: {reason}")]
    Setting { origin: String, reason: String },
    /// Not what was given: it may hold a password.
    #[error("--set takes SECTION.KEY=VALUE, as in --set limits.page=100")]
    Pair,
    #[error("the variable {0} is not valid UTF-8")]
    Encoding(String),
    /// Each may be sound by itself.
    #[error("the settings do not go together: {0}")]
    Together(String),
}

impl Config {
    /// `named` must exist; without one, `atelier.toml` is read if it is there.
    pub fn read(named: Option<&Path>, overrides: Overrides) -> Result<Self, ConfigError> {
        let path = named.unwrap_or(Path::new(DEFAULT_FILE));
        let mut table = match fs::read_to_string(path) {
            Ok(text) => parse(path, &text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Table::new(),
            Err(source) => return Err(ConfigError::File { path: path.to_owned(), source }),
        };
        // Checked by itself first, so that a mistake in the file is not blamed on a variable.
        let mut config = check(&table, &format!("the configuration file {}", path.display()))?;
        for ((section, key), (origin, text)) in overrides.into_settings() {
            (table, config) = with(&table, &section, &key, &origin, &text)?;
        }
        config.engine.check().map_err(ConfigError::Together)?;
        config.profiles.check().map_err(ConfigError::Together)?;
        config.limits.check().map_err(ConfigError::Together)?;
        config.telemetry.check(AVAILABLE).map_err(ConfigError::Together)?;
        config.go_together().map_err(ConfigError::Together)?;
        Ok(config)
    }

    /// What a section cannot see by itself.
    fn go_together(&self) -> Result<(), String> {
        let Self { server, engine, limits, .. } = self;
        if limits.batch_items as usize > engine.queue {
            return Err(format!(
                "engine.queue ({}) must not be below limits.batch_items ({}): a batch would be refused for its own \
                 length",
                engine.queue, limits.batch_items
            ));
        }
        if limits.deadline_ms > server.drain_ms {
            return Err(format!(
                "server.drain_ms ({}) must not be below limits.deadline_ms ({}): a stop would cut requests that may \
                 still be answered",
                server.drain_ms, limits.deadline_ms
            ));
        }
        Ok(())
    }
}

/// toml's own message quotes the line, and the line may hold a password.
fn parse(path: &Path, text: &str) -> Result<Table, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map(|line| format!(", line {line},")).unwrap_or_default();
        ConfigError::Toml { path: path.to_owned(), place, reason: error.message().to_owned() }
    })
}

/// The table with one setting more. Variables and flags are texts; where the setting is not, the text is
/// read as TOML (`true`, `12`).
fn with(
    table: &Table,
    section: &str,
    key: &str,
    origin: &str,
    text: &str,
) -> Result<(Table, Config), ConfigError> {
    let attempt = |value: Value| {
        let mut table = table.clone();
        let entry = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(settings) = entry {
            settings.insert(key.to_owned(), value);
        }
        check(&table, origin).map(|config| (table, config))
    };
    attempt(Value::String(text.to_owned())).or_else(|error| {
        let literal = toml::from_str::<Table>(&format!("value = {text}")).ok();
        literal.and_then(|mut table| table.remove("value")).and_then(|value| attempt(value).ok()).ok_or(error)
    })
}

fn check(table: &Table, origin: &str) -> Result<Config, ConfigError> {
    Config::deserialize(table.clone()).map_err(|error| ConfigError::Setting {
        origin: origin.to_owned(),
        reason: error.message().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(given: &[(&str, &str)]) -> Result<Overrides, ConfigError> {
        Overrides::from_variables(given.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn flag_over_variable_over_file_over_default() {
        let named = file("[server]\naddress = \"127.0.0.1:1\"\n[models]\nrelease = \"spring\"\n");
        let read = |overrides| Config::read(Some(named.path()), overrides).unwrap();
        let from_file = read(Overrides::default());
        assert_eq!(from_file.server.address, "127.0.0.1:1");
        assert_eq!(from_file.models.release, "spring");
        assert_eq!(from_file.models.folder, Path::new("models"), "the default");

        let mut overrides =
            variables(&[("ATELIER__SERVER__ADDRESS", "127.0.0.1:2"), ("HOME", "/x")]).unwrap();
        overrides.set("models", "release", "--release", "2026");
        let from_all = read(overrides);
        assert_eq!(from_all.server.address, "127.0.0.1:2");
        assert_eq!(from_all.models.release, "2026", "a text, whatever it looks like");
    }

    #[test]
    fn the_prefixed_variable_wins_over_the_hosts() {
        let given = [("ATELIER__DATABASE__URL", "sqlite:a"), ("DATABASE_URL", "postgres://b")];
        let config = Config::read(None, variables(&given).unwrap()).unwrap();
        assert_eq!(config.database.url, "sqlite:a");
        let config = Config::read(None, variables(&given[1..]).unwrap()).unwrap();
        assert_eq!(config.database.url, "postgres://b");
        let unset = Config::read(None, variables(&[("DATABASE_URL", "")]).unwrap()).unwrap();
        assert_eq!(unset, Config::default(), "an empty variable is none");
        assert!(!format!("{config:?}").contains("postgres"), "a URL may hold a password");
    }

    #[test]
    fn a_mistake_is_told_with_where_it_was_made() {
        let said = |named: &str, given: &[(&str, &str)]| {
            let named = file(named);
            let overrides = variables(given)?;
            Config::read(Some(named.path()), overrides)
        };
        let error = said("[server]\nadress = \"x\"", &[]).unwrap_err().to_string();
        assert!(error.starts_with("the configuration file /") && error.contains("adress"), "{error}");
        let error = said("", &[("ATELIER__SERVER__ADRESS", "x")]).unwrap_err().to_string();
        assert!(error.starts_with("ATELIER__SERVER__ADRESS: unknown field `adress`"), "{error}");
        let error = said("[database]\nurl = \"postgres://u:secret@h/d", &[]).unwrap_err().to_string();
        assert!(error.contains(", line 2, is not TOML: "), "{error}");
        assert!(!error.contains("secret"), "{error}");
        let error = said("", &[("ATELIER__SERVER", "x")]).unwrap_err().to_string();
        assert!(error.starts_with("the variable ATELIER__SERVER names no setting"), "{error}");
        let error = Config::read(Some(Path::new("/nowhere.toml")), Overrides::default()).unwrap_err();
        assert!(error.to_string().starts_with("the configuration file /nowhere.toml: No such file"));
    }

    #[test]
    fn limits_that_contradict_each_other_are_refused() {
        let said = |text: &str| Config::read(Some(file(text).path()), Overrides::default());
        assert!(said("[limits]\nbody_bytes = 2048\nbulk_bytes = 2048").is_ok());
        for (text, reason) in [
            ("[limits]\nbody_bytes = 10\n", "limits.body_bytes must be at least 1024, found 10"),
            (
                "[limits]\nbulk_bytes = 2000",
                "limits.bulk_bytes (2000) must not be below limits.body_bytes (1048576)",
            ),
            (
                "[profiles]\nmost_age_s = 0",
                "profiles.most_age_s (0) must not be below profiles.fresh_ms (1000)",
            ),
            ("[limits]\npage = 20", "limits.page_default (50) must not be above limits.page (20)"),
            ("[limits]\nfeedback_events = 0", "limits.feedback_events must be at least 1, found 0"),
            (
                "[limits]\nbatch_suggestions = 100",
                "limits.batch_suggestions (100) must not be below limits.batch_items (256): each item asks for one \
                 at least",
            ),
            (
                "[limits]\ncolumns = 1",
                "limits.columns must be at least 2, found 1: one column compares nothing",
            ),
            ("[limits]\ndeadline_ms = 0", "limits.deadline_ms must be at least 1, found 0"),
            (
                "[limits]\ndeadline_ms = 25000",
                "server.drain_ms (20000) must not be below limits.deadline_ms (25000): a stop would cut requests \
                 that may still be answered",
            ),
            (
                "[engine]\nqueue = 100",
                "engine.queue (100) must not be below limits.batch_items (256): a batch would be refused for its \
                 own length",
            ),
            (
                "[engine]\nremote = \"triton:8000\"",
                "engine.remote: expected http://HOST:PORT, found \"triton:8000\"",
            ),
            (
                "[engine]\nremote = \"http://triton:8000\"\ndevice = \"cuda\"",
                "engine.device is about sessions of the service's own, and engine.remote asks a server instead: leave \
                 one of them out",
            ),
            (
                "[engine]\nbatch = 2000",
                "engine.batch (2000) must be at least 1, and engine.queue (1024) not below it",
            ),
        ] {
            let error = said(text).unwrap_err().to_string();
            assert_eq!(error, format!("the settings do not go together: {reason}"));
        }
        // Sound together, wherever each comes from.
        let overrides = variables(&[("ATELIER__SERVER__DRAIN_MS", "30000")]).unwrap();
        let named = file("[limits]\ndeadline_ms = 25000\n[engine]\nqueue = 256");
        assert_eq!(
            Config::read(Some(named.path()), overrides).unwrap().server.drain(),
            Duration::from_secs(30)
        );
        let error = said("[limits]\npage = -1").unwrap_err().to_string();
        assert!(error.contains("invalid value: integer `-1`"), "{error}");
    }

    #[test]
    fn any_setting_can_be_set_by_a_flag() {
        let mut overrides = variables(&[("ATELIER__LIMITS__PAGE", "70")]).unwrap();
        overrides.set_pair("limits.page=80").unwrap();
        overrides.set_pair("database.url=postgres://h/d?application_name=a=b").unwrap();
        overrides.set("models", "release", "--release", "spring");
        let config = Config::read(Some(file("").path()), overrides).unwrap();
        assert_eq!((config.limits.page, config.models.release.as_str()), (80, "spring"));
        assert_eq!(config.database.url, "postgres://h/d?application_name=a=b");

        let mut overrides = Overrides::default();
        let error = overrides.set_pair("limits.page").unwrap_err().to_string();
        assert_eq!(error, "--set takes SECTION.KEY=VALUE, as in --set limits.page=100");
        overrides.set_pair("limits.pages=80").unwrap();
        let error = Config::read(Some(file("").path()), overrides).unwrap_err().to_string();
        assert!(error.starts_with("--set limits.pages: unknown field `pages`"), "{error}");
    }

    #[test]
    fn the_commented_file_says_the_defaults() {
        let mut expected = Config::default();
        let text = include_str!("../../atelier.toml");
        let config: Config = toml::from_str(text).unwrap();
        // Two defaults depend on the user's home, so the file shows them in comments only.
        expected.database = config.database.clone();
        expected.cache = config.cache.clone();
        assert_eq!(config, expected);
        assert!(text.contains("# url = ") && text.contains("# folder = "));
    }
}
