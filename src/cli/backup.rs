//! `atelier backup` and `atelier restore`: a `SQLite` database as one file.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;

use super::Settings;
use crate::platform::db::{back_up, restore};

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// File to write; it must not exist.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Backup {
    pub(super) async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let url = settings.database()?;
        back_up(url, &self.file).await?;
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
        restore(&self.file, url, self.force).await?;
        eprintln!("restored {url} from {}", self.file.display());
        Ok(ExitCode::SUCCESS)
    }
}
