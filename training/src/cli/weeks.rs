//! `atelier-training research weeks`.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use clap::Args;

use super::{
    evaluate::{runtime, write_json},
    fit::stop_on_signal,
};
use crate::{
    fit::Overrides,
    weeks::{Simulation, Size},
};

#[derive(Debug, Args)]
pub(super) struct Simulate {
    /// The folder to create: weeks.json, weeks.svg, and the releases.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The same seed makes the same weeks.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of weeks.
    #[arg(long, default_value_t = 12)]
    weeks: usize,
    /// Number of articles of all weeks.
    #[arg(long, default_value_t = 1000)]
    articles: usize,
    /// Number of customers.
    #[arg(long, default_value_t = 2000)]
    customers: usize,
    /// Stylists' outfits before the first week.
    #[arg(long, default_value_t = 3000)]
    outfits: usize,
    /// Orders in each week.
    #[arg(long, default_value_t = 500)]
    orders: usize,
    /// Outfits in each week whose pieces are asked about.
    #[arg(long, default_value_t = 400)]
    asked: usize,
    /// Time for each refresh to learn in.
    #[arg(long, value_name = "MINUTES", default_value_t = 2.0)]
    minutes: f64,
    /// Settings of the first release, as for `fit`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Simulate {
    pub(super) fn run(self) -> Result<()> {
        let size = Size {
            seed: self.seed,
            articles: self.articles,
            customers: self.customers,
            outfits: self.outfits,
            orders: self.orders,
            asked: self.asked,
            weeks: self.weeks,
        };
        fs::create_dir_all(&self.out).with_context(|| self.out.display().to_string())?;
        let simulation = Simulation {
            size,
            folder: &self.out,
            limit: Duration::from_secs_f64(60.0 * self.minutes),
            settings: Overrides { file: self.config.as_deref(), set: &[] },
        };
        let stop = stop_on_signal()?;
        let weeks = simulation.run(&runtime()?, &stop, &mut |line| println!("{line}"))?;
        write_json(&self.out.join("weeks.json"), &weeks)?;
        let picture = self.out.join("weeks.svg");
        fs::write(&picture, weeks.draw()).with_context(|| picture.display().to_string())
    }
}
