//! `atelier key`: API keys, without a browser.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use atelier_core::{
    domain::{Timestamp, fold},
    util::calendar,
};
use clap::{Args, Subcommand};

use crate::{
    people::{Access, ApiKey, Opens, PageOrigin, Publishable, Scope},
    platform::db::{Name, Store},
};

#[derive(Debug, Args)]
pub(super) struct KeyCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create an API key and print it, this once. With --origin, the key is publishable, for product pages, and the next line has the
    /// secret that signs customers for them.
    Create(Create),
    /// List the API keys, never the keys themselves. `LAST USED` lags by up to a minute.
    List,
    /// Revoke an API key: requests with it get 401 from now on.
    Revoke {
        /// Name or id of the key.
        #[arg(value_name = "NAME|ID")]
        key: String,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// Name of the program that will use the key.
    #[arg(long, value_name = "NAME")]
    label: String,
    /// The key's scopes: complete, catalogue, feedback, events, rules, admin or metrics. Repeatable, or joined with commas.
    #[arg(long = "scope", value_name = "SCOPE", required_unless_present = "origins", value_delimiter = ',')]
    scopes: Vec<Scope>,
    /// Makes the key publishable: pages of this origin may use it, such as `https://shop.example`. Repeatable, or joined with commas.
    #[arg(long = "origin", value_name = "ORIGIN", value_delimiter = ',', conflicts_with = "scopes")]
    origins: Vec<PageOrigin>,
    /// Days until the key expires [default: never].
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3650))]
    days: Option<u64>,
}

impl KeyCommand {
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let now = SystemTime::now().into();
        match self.verb {
            Verb::Create(create) => create.run(store, now).await?,
            Verb::List => print!("{}", table(&store.api_keys().list().await?, now)),
            Verb::Revoke { key } => {
                let keys = store.api_keys().list().await?;
                let ApiKey { id, label, .. } = find(&keys, &key)?;
                store.api_keys().revoke(*id, now).await?;
                eprintln!("revoked the API key {label} (id {})", id.0);
            }
        }
        store.close().await;
        Ok(ExitCode::SUCCESS)
    }
}

impl Create {
    /// Only the key, and the secret of a publishable one, go to standard output, for scripts.
    async fn run(self, store: &Store, now: Timestamp) -> Result<()> {
        let Self { label, mut scopes, origins, days } = self;
        scopes.sort_unstable();
        scopes.dedup();
        let opens = if origins.is_empty() { Opens::Scopes(scopes) } else { Opens::Pages(origins) };
        let label = Name::new(label.trim()).context("--label")?;
        let lifetime = days.map(|days| Duration::from_hours(24 * days));
        let (key, record) = Access::new(store.clone()).issue_key(&label, &opens, lifetime, now).await?;
        let until = days.map_or_else(String::new, |days| format!(", for {days} days"));
        match &record.publishable {
            None => {
                let scopes = record.scopes.join(", ");
                eprintln!("created the API key {label} with {scopes}{until}; it is shown only now");
                println!("{}", key.as_str());
            }
            Some(Publishable { origins, secret }) => {
                let origins = origins.join(", ");
                eprintln!(
                    "created the publishable key {label} for pages of {origins}{until}; it is shown only now"
                );
                eprintln!(
                    "the second line is the secret with which your backend signs customers: keep it there"
                );
                println!("{}\n{}", key.as_str(), secret.0);
            }
        }
        Ok(())
    }
}

/// The key with this id, or else the one in force with this name.
fn find<'k>(keys: &'k [ApiKey], wanted: &str) -> Result<&'k ApiKey> {
    let id = keys.iter().find(|key| key.id.0.to_string() == wanted);
    let named: Vec<&ApiKey> = match id {
        Some(key) => vec![key],
        None => keys.iter().filter(|key| fold(key.label.as_str()) == fold(wanted)).collect(),
    };
    let in_force: Vec<&ApiKey> = named.iter().copied().filter(|key| key.revoked_at.is_none()).collect();
    match (&in_force[..], named.is_empty()) {
        ([key], _) => Ok(key),
        ([], true) => bail!("there is no API key {wanted:?}; `atelier key list` lists them"),
        ([], false) => bail!("the API key {wanted:?} is revoked already"),
        (several, _) => {
            let ids: Vec<String> = several.iter().map(|key| key.id.0.to_string()).collect();
            bail!("several API keys are named {wanted:?}; revoke one by its id: {}", ids.join(", "))
        }
    }
}

fn table(keys: &[ApiKey], now: Timestamp) -> String {
    let time = |at: Timestamp| calendar::moment(at.millis().div_euclid(1000), 1, true);
    let row = |key: &ApiKey| {
        let state = match key.revoked_at {
            Some(at) => format!("revoked {}", time(at)),
            None if key.is_expired(now) => "expired".into(),
            None => "valid".into(),
        };
        let [used, expires] = [key.last_used_at, key.expires_at].map(|at| at.map_or("never".into(), time));
        let (id, label) = (key.id.0.to_string(), key.label.to_string());
        let opens =
            key.publishable.as_ref().map_or(&key.scopes, |publishable| &publishable.origins).join(",");
        [id, label, opens, time(key.created_at), used, expires, state]
    };
    let head = ["ID", "NAME", "OPENS", "CREATED", "LAST USED", "EXPIRES", "STATE"].map(String::from);
    let rows: Vec<_> = [head].into_iter().chain(keys.iter().map(row)).collect();
    let line = |row: &[String; 7]| {
        let cell = |(column, cell): (usize, &String)| {
            let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
            format!("{cell:width$}")
        };
        row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
