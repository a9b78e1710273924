//! The settings of the service. Flags override variables, which override the file, which overrides the defaults.
//!
//! `docs/atelier.toml` says what every setting is, with its default. A variable is named
//! `ATELIER__SECTION__KEY`. The flag `--set section.key=value` sets any setting; common settings also have their own flags,
//! which override it.

/// A section, with the default of each setting.
macro_rules! settings {
    ($(#[$about:meta])* pub struct $section:ident {
        $($(#[$field_about:meta])* $field:ident: $type:ty = $default:expr,)+
    }) => {
        $(#[$about])*
        #[serde(deny_unknown_fields, default)]
        pub struct $section {
            $($(#[$field_about])* pub $field: $type,)+
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }
    };
}

mod engine;
mod events;
mod limits;
pub mod memory;
mod origins;
mod overrides;
mod profiles;
mod proxies;
mod shop;
mod telemetry;
#[cfg(test)]
mod tests;
mod tickets;

use std::{
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use atelier_core::util::{
    fetch::Reach,
    folders::{cache_folder, data_folder},
};
use atelier_engine::onnx_runtime::installation;
use serde::Deserialize;
use toml::{Table, Value};

use crate::{
    people::{Lifetimes, PageOrigin},
    telemetry::AVAILABLE,
};

pub use self::{
    engine::Engine,
    events::{EventTerms, Events},
    limits::{Limits, TRANSFER_BYTES},
    origins::Origins,
    overrides::{Overrides, PREFIX},
    profiles::{Keep, Profiles},
    proxies::Networks,
    shop::Shop,
    telemetry::Telemetry,
    tickets::{TicketTerms, Tickets},
};

pub const DEFAULT_FILE: &str = "atelier.toml";

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
    pub tickets: Tickets,
    pub events: Events,
    pub shop: Shop,
    pub feeds: Feeds,
}

settings! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub struct Feeds {
        private_addresses: bool = false,
        mirror_limit: u8 = 20,
    }
}

impl Feeds {
    pub fn reach(self) -> Reach {
        if self.private_addresses { Reach::Private } else { Reach::Public }
    }

    fn check(self) -> Result<(), String> {
        if self.mirror_limit <= 100 {
            return Ok(());
        }
        Err(format!("feeds.mirror_limit: expected 0 to 100 percent, found {}", self.mirror_limit))
    }
}

settings! {
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct Server {
        address: String = "127.0.0.1:8080".into(),
        certificate: Option<PathBuf> = None,
        key: Option<PathBuf> = None,
        trusted_proxies: String = String::new(),
        unready_ms: u32 = 0,
        drain_ms: u32 = 20_000,
    }
}

impl Server {
    pub fn unready(&self) -> Duration {
        Duration::from_millis(self.unready_ms.into())
    }

    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms.into())
    }

    pub fn trusted_proxies(&self) -> Networks {
        Networks::parse(&self.trusted_proxies).expect("checked when it was read")
    }

    pub fn tls(&self) -> Option<(&Path, &Path)> {
        self.certificate.as_deref().zip(self.key.as_deref())
    }

    pub fn scheme(&self) -> &'static str {
        if self.tls().is_some() { "https" } else { "http" }
    }

    fn check(&self) -> Result<(), String> {
        let parts = self.address.rsplit_once(':');
        let is_host = |host: &str| !host.is_empty() && (host.starts_with('[') || !host.contains(':'));
        if !parts.is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok()) {
            let address = &self.address;
            return Err(format!(
                "server.address: expected HOST:PORT, such as 127.0.0.1:8080, found {address:?}"
            ));
        }
        Networks::parse(&self.trusted_proxies)
            .map_err(|reason| format!("server.trusted_proxies: {reason}"))?;
        let lone = match (&self.certificate, &self.key) {
            (Some(_), None) => ["server.certificate", "server.key"],
            (None, Some(_)) => ["server.key", "server.certificate"],
            _ => return Ok(()),
        };
        Err(format!("{} is set without {}: TLS needs both", lone[0], lone[1]))
    }
}

#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    pub url: Option<String>,
}

impl Database {
    /// The database that is named, or else the demo's.
    pub fn url_or_demo(&self) -> String {
        let demo = || format!("sqlite:{}", data_folder().join("atelier-demo.db").display());
        self.url.clone().unwrap_or_else(demo)
    }

    fn check(&self) -> Result<(), String> {
        if self.url.as_ref().is_some_and(|url| url.trim().is_empty()) {
            return Err("database.url is empty: name a database, or leave it out for the demo".to_owned());
        }
        Ok(())
    }
}

settings! {
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct Models {
        folder: PathBuf = models_folder(),
        release: String = "demo".into(),
        least_known: f64 = 0.5,
    }
}

impl Models {
    fn check(&self) -> Result<(), String> {
        if (0.0..=1.0).contains(&self.least_known) {
            return Ok(());
        }
        Err(format!("models.least_known is a share from 0 to 1, found {}", self.least_known))
    }
}

settings! {
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct Cache {
        folder: PathBuf = cache_folder(),
    }
}

settings! {
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct Access {
        require_key: bool = true,
        cross_origins: String = String::new(),
        session_idle_s: u32 = 12 * 3600,
        session_s: u32 = 7 * 24 * 3600,
    }
}

impl Access {
    pub fn lifetimes(&self) -> Lifetimes {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        Lifetimes { idle: seconds(self.session_idle_s), session: seconds(self.session_s) }
    }

    pub fn cross_origins(&self) -> impl Iterator<Item = String> {
        self.cross_origins.split_whitespace().map(ToOwned::to_owned)
    }

    fn check(&self) -> Result<(), String> {
        /// The last use of a session is stored once a minute.
        const LEAST_IDLE: u32 = 300;
        let Self { session_idle_s, session_s, .. } = self;
        if let Some(reason) = self.cross_origins().find_map(|text| text.parse::<PageOrigin>().err()) {
            return Err(format!("access.cross_origins: {reason}"));
        }
        if *session_idle_s < LEAST_IDLE {
            return Err(format!(
                "access.session_idle_s must be at least {LEAST_IDLE}, found {session_idle_s}: the last use of a session \
                 is stored only once a minute"
            ));
        }
        at_least("access.session_s", session_s, "access.session_idle_s", session_idle_s, "")
    }
}

/// `models` or, where there is no such folder, what a package installed next to the program.
fn models_folder() -> PathBuf {
    let here = PathBuf::from("models");
    let installed = || Some(installation()?.join("share/atelier/models")).filter(|folder| folder.is_dir());
    if here.is_dir() { here } else { installed().unwrap_or(here) }
}

/// Not derived, because a password in the URL must reach no log.
impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the configuration file {path}{place} is not TOML: {reason}", path = .path.display())]
    Toml { path: PathBuf, place: String, reason: String },
    #[error("the variable {0} names no setting; write {PREFIX}SECTION__KEY, as in {PREFIX}SERVER__ADDRESS")]
    Variable(String),
    #[error("{name} ({origin}): {reason}")]
    Setting { name: String, origin: String, reason: String },
    /// Does not show the text, which may contain a password.
    #[error("--set takes SECTION.KEY=VALUE, as in --set limits.page=100")]
    Pair,
    #[error("the variable {0} is not valid UTF-8")]
    Encoding(String),
    #[error("invalid settings: {0}")]
    Invalid(String),
}

impl Config {
    /// Reads the file `named`, or else `atelier.toml` if it exists.
    pub fn read(named: Option<&Path>, overrides: Overrides) -> Result<(Self, Origins), ConfigError> {
        let path = named.unwrap_or(Path::new(DEFAULT_FILE));
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => String::new(),
            Err(source) => return Err(ConfigError::File { path: path.to_owned(), source }),
        };
        let mut table = parse(path, &text)?;
        // The file is checked first, so that its mistakes are not blamed on a variable.
        let mut config = parse_table(&table).map_err(|(name, reason)| {
            let origin = origins::file(path, &text, &name);
            ConfigError::Setting { name, origin, reason }
        })?;
        let mut origins = Origins::of_file(path, &text, &table);
        for ((section, key), (origin, text)) in overrides.into_settings() {
            (table, config) = set(&table, &section, &key, &origin, &text)?;
            origins.insert(format!("{section}.{key}"), origin);
        }
        config.check().map_err(|reason| ConfigError::Invalid(origins.annotate(&reason)))?;
        Ok((config, origins))
    }

    fn check(&self) -> Result<(), String> {
        self.server.check()?;
        self.database.check()?;
        self.models.check()?;
        self.engine.check()?;
        self.profiles.check()?;
        self.limits.check()?;
        self.tickets.check()?;
        self.events.check()?;
        self.access.check()?;
        self.shop.check()?;
        self.feeds.check()?;
        self.telemetry.check(AVAILABLE)?;
        self.check_across_sections()
    }

    fn check_across_sections(&self) -> Result<(), String> {
        let Self { server, engine, limits, .. } = self;
        let full = ": the queue would refuse a full batch";
        at_least("engine.queue", engine.queue, "limits.batch_items", limits.batch_items as usize, full)?;
        let stop = ": a stop would cancel requests before their deadline";
        at_least("server.drain_ms", server.drain_ms, "limits.deadline_ms", limits.deadline_ms, stop)
    }
}

const DAY: Duration = Duration::from_hours(24);
/// Ten years.
const MAX_DAYS: u32 = 3650;

fn check_days(section: &str, settings: &[(&str, u32)]) -> Result<(), String> {
    match settings.iter().find(|(_, days)| !(1..=MAX_DAYS).contains(days)) {
        Some((name, days)) => Err(format!("{section}.{name} must be from 1 to {MAX_DAYS}, found {days}")),
        None => Ok(()),
    }
}

/// Refuses a setting that is below another one. `why` follows.
fn at_least<T: PartialOrd + Display + Copy>(
    setting: &str,
    value: T,
    other: &str,
    least: T,
    why: &str,
) -> Result<(), String> {
    if value >= least {
        return Ok(());
    }
    Err(format!("{setting} ({value}) must be at least {other} ({least}){why}"))
}

/// Does not use toml's full message: it quotes the line, which may contain a password.
fn parse(path: &Path, text: &str) -> Result<Table, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map(|line| format!(", line {line},")).unwrap_or_default();
        ConfigError::Toml { path: path.to_owned(), place, reason: error.message().to_owned() }
    })
}

/// Adds a setting to the table. If the setting is not a string, its text is read as TOML (`true`, `12`).
fn set(
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
        let failed = |(_, reason)| ConfigError::Setting {
            name: format!("{section}.{key}"),
            origin: origin.to_owned(),
            reason,
        };
        parse_table(&table).map(|config| (table, config)).map_err(failed)
    };
    attempt(Value::String(text.to_owned())).or_else(|error| {
        let literal = toml::from_str::<Table>(&format!("value = {text}")).ok();
        literal.and_then(|mut table| table.remove("value")).and_then(|value| attempt(value).ok()).ok_or(error)
    })
}

/// The error has the setting that is wrong, and why.
fn parse_table(table: &Table) -> Result<Config, (String, String)> {
    serde_path_to_error::deserialize(table.clone())
        .map_err(|error| (error.path().to_string(), error.inner().message().to_owned()))
}
