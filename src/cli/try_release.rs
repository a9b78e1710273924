//! `atelier try-release`: what the service runs to find out whether a release can be served, and in how much memory.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use atelier_engine::inference::Engine;
use clap::Args;

use super::Settings;
use crate::releases::trial::{REFUSED, REFUSED_FOR_GOOD, follow_parent};

#[derive(Debug, Args)]
pub(super) struct TryRelease {
    /// Folder of the release.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl TryRelease {
    pub(super) fn run(&self, settings: &Settings) -> Result<ExitCode> {
        follow_parent();
        let models = settings.load_models(|notice| eprintln!("{notice}"))?;
        let engine = Engine::new(models, settings.config.engine.settings()).fill_memory();
        let Err(error) = engine.load(&self.folder) else { return Ok(ExitCode::SUCCESS) };
        // The service reads it at the end: it must fit into a pipe.
        println!("{:.8000}", error.to_string());
        Ok(ExitCode::from(if engine.fails_again(&error) { REFUSED_FOR_GOOD } else { REFUSED }))
    }
}
