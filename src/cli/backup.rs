//! `atelier backup` and `atelier restore`: a `SQLite` database as one file.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use sqlx::AnyConnection;

use super::Settings;
use crate::{
    completion::tickets,
    imports, people,
    platform::db::{Store, StoreError, back_up, restore},
};

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// File to write; it must not exist.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Backup {
    pub(super) async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let url = settings.database()?;
        let remove_secrets = async |copy: &mut AnyConnection| {
            imports::hide_credentials(copy).await?;
            people::remove_secrets(copy).await?;
            tickets::remove_keys(copy).await
        };
        back_up(url, &self.file, remove_secrets).await?;
        eprintln!("backed up {url} into {}", self.file.display());
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Debug, Args)]
pub(super) struct Restore {
    /// File that `atelier backup` wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the database that is there.
    #[arg(long)]
    force: bool,
}

impl Restore {
    pub(super) async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let url = settings.database()?;
        let [feeds, keys] = restore(&self.file, url, self.force, find_missing).await?;
        eprintln!(
            "restored {url} from {}; a backup has no secrets that could be used elsewhere:",
            self.file.display()
        );
        eprintln!("- completion ids from before the restore are unknown");
        if !feeds.is_empty() {
            eprintln!("- store these feeds again with their credentials: {}", feeds.join(", "));
        }
        if !keys.is_empty() {
            eprintln!(
                "- the secrets of these publishable keys are gone, so create others: {}",
                keys.join(", ")
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The feeds and the publishable keys whose secrets are to be given again.
async fn find_missing(store: &Store) -> Result<[Vec<String>; 2], StoreError> {
    let (feeds, keys) = (store.feeds().list().await?, store.api_keys().list().await?);
    let feeds = feeds.into_iter().filter(|feed| feed.source.lacks_credentials());
    let keys = keys.into_iter().filter(people::ApiKey::lacks_secret);
    Ok([feeds.map(|feed| feed.name.to_string()).collect(), keys.map(|key| key.label.to_string()).collect()])
}
