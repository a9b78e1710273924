//! `atelier-training refresh`.

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Result, bail};
use clap::Args;

use super::{evaluate::runtime, fit::stop_on_signal, release::command};
use crate::{export::Storage, refresh::Refresh as Plan};

/// There is nothing to activate, and nothing went wrong.
const NO_CANDIDATE: u8 = 3;

#[derive(Debug, Args)]
pub(super) struct Refresh {
    /// A folder that `atelier export` wrote.
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The folder of the live release, which is only read.
    #[arg(long, value_name = "DIR")]
    release: PathBuf,
    /// The candidate's folder, as in models/2026-11-27.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Training time, without the time to read and compare.
    #[arg(long, value_name = "MINUTES", default_value_t = 30.0)]
    minutes: f64,
    /// Maximum number of epochs within `--minutes`.
    #[arg(long, default_value_t = 20)]
    epochs: u32,
    /// Weeks at the end that are kept from training, to compare both releases on them [default: 2, or as many as the data needs].
    #[arg(long, value_name = "WEEKS")]
    weeks: Option<u32>,
    /// Least share of the catalogue that the candidate must cover: the service's `models.least_known`.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    least_known: f64,
    /// Random seed of the order of outfits and of masks.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Precision of stored matrices, as for `release`.
    #[arg(long, value_enum, default_value_t = Storage::Float32)]
    storage: Storage,
}

impl Refresh {
    pub(super) fn run(self) -> Result<ExitCode> {
        let Self { minutes, epochs, weeks, .. } = self;
        if !(minutes > 0.0 && minutes < 1e6) || epochs == 0 || weeks == Some(0) {
            bail!(
                "--minutes, --epochs and --weeks must be above 0, found {minutes}, {epochs} and {}",
                weeks.unwrap_or(2)
            );
        }
        let plan = Plan {
            from: &self.from,
            live: &self.release,
            out: &self.out,
            last: weeks.map(|weeks| Duration::from_hours(u64::from(weeks) * 7 * 24)),
            least_known: self.least_known,
            limit: Duration::from_secs_f64(60.0 * minutes),
            epochs,
            seed: self.seed,
            storage: self.storage,
            command: command(),
            created: SystemTime::now(),
        };
        let stop = stop_on_signal()?;
        let card = plan.make(&runtime()?, &stop, &mut |step| eprintln!("{step}"))?;
        print!("{}", card.to_markdown());
        if let Some(reason) = &card.refused {
            eprintln!("no candidate: {reason}");
            return Ok(ExitCode::from(NO_CANDIDATE));
        }
        Ok(ExitCode::SUCCESS)
    }
}
