//! `atelier key`: API keys of programs, without a browser.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::{
    service::access::{Access, Scope},
    store::{Name, Store},
};

#[derive(Debug, Args)]
pub(super) struct KeyCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create an API key and print it: the only time that it is shown.
    Create(Create),
}

#[derive(Debug, Args)]
struct Create {
    /// Name of the program that will use the key.
    #[arg(long, value_name = "NAME")]
    label: String,
    /// What the key allows: complete, catalogue, feedback, admin or metrics. Repeatable, or joined with commas.
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',')]
    scopes: Vec<Scope>,
    /// Days until the key expires [default: never].
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3650))]
    days: Option<u64>,
}

impl KeyCommand {
    /// Only the key goes to standard output, for scripts.
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let Verb::Create(Create { label, mut scopes, days }) = self.verb;
        scopes.sort_unstable();
        scopes.dedup();
        let label = Name::new(label.trim()).context("--label")?;
        let now = SystemTime::now().into();
        let lifetime = days.map(|days| Duration::from_hours(24 * days));
        let (key, record) = Access::new(store.clone()).issue_key(&label, &scopes, lifetime, now).await?;
        let until = days.map_or_else(String::new, |days| format!(", for {days} days"));
        eprintln!(
            "created the API key {label} with {}{until}; it is shown only now",
            record.scopes.join(", ")
        );
        println!("{}", key.as_str());
        store.close().await;
        Ok(ExitCode::SUCCESS)
    }
}
