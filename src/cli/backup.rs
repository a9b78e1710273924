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
        let (is_raw, feeds, keys) = restore(&self.file, url, self.force, find).await?;
        let file = self.file.display();
        if is_raw {
            eprintln!(
                "restored {url} from {file}, a copy that `atelier backup` did not make:\n\
                 - it has the secrets of feeds, publishable keys and completion ids: delete it, or protect it as the database\n\
                 - if a service ran while it was copied, its last changes are here only if {file}-wal was copied with it"
            );
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!("restored {url} from {file}; a backup has no secrets that could be used elsewhere:");
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

/// Whether there are secrets that a backup leaves out, and the feeds and publishable keys whose secrets are to be given again.
async fn find(store: &Store) -> Result<(bool, Vec<String>, Vec<String>), StoreError> {
    let is_raw = store.settings().get(tickets::SETTING).await?.is_some();
    let (feeds, keys) = (store.feeds().list().await?, store.api_keys().list().await?);
    let feeds = feeds.into_iter().filter(|feed| feed.source.lacks_credentials());
    let keys = keys.into_iter().filter(people::ApiKey::lacks_secret);
    let feeds = feeds.map(|feed| feed.name.to_string()).collect();
    Ok((is_raw, feeds, keys.map(|key| key.label.to_string()).collect()))
}
