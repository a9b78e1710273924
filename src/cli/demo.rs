//! `atelier demo`: fills an empty database with the demo world, as `serve` does where no database is named.

use std::{path::Path, process::ExitCode, time::SystemTime};

use anyhow::{Result, bail};
use atelier_files::{Files, read_folder_schema};

use super::{Settings, import::show_steps};
use crate::{
    service::import::load::{End, Outcome, load_files_if_empty},
    store::Store,
};

pub(super) async fn run(settings: &Settings) -> Result<ExitCode> {
    let models = &settings.config.models;
    let folder = models.folder.join(&models.release);
    let store = settings.open(settings.database()?).await?;
    if !fill_if_empty(&store, &folder, |line| eprintln!("{line}")).await? {
        bail!("{store} was not filled: it has articles or customers, or {} has none", folder.display());
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Fills an empty database with a release's data files. A release need not have any. Bad rows are left out. False if there
/// was nothing to do.
pub(super) async fn fill_if_empty(store: &Store, folder: &Path, tell: impl Fn(&str)) -> Result<bool> {
    if !folder.is_dir() {
        return Ok(false);
    }
    let files = Files::in_folder(folder)?;
    if files.is_empty() {
        return Ok(false);
    }
    let (schema, now) = (read_folder_schema(folder)?, SystemTime::now().into());
    let loaded = load_files_if_empty(store, &files, &schema, now, show_steps(&tell)).await?;
    let Some(Outcome { report, end }) = loaded else { return Ok(false) };
    match end {
        End::Imported(_) => {
            for bad in &report.errors {
                tell(&format!("left out: {bad}"));
            }
            Ok(true)
        }
        End::Stopped(error) => Err(error.into()),
        End::TooManyMissing { .. } | End::Cancelled => {
            unreachable!(
                "nothing is retired from an empty database, and only jobs are cancelled; this is a bug"
            )
        }
        End::Refused => {
            let first = report.errors.first().expect("a refused import has a bad row; this is a bug");
            bail!("all {} rows in {} are bad; the first is {first}", report.bad, folder.display())
        }
    }
}
