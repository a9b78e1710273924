//! `atelier-training research weeks`, and `shop`, which writes the same weeks as files.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{
    evaluate::{runtime, write_json},
    fit::stop_on_signal,
};
use crate::{
    fit::Overrides,
    weeks::{Shop, Simulation, Size},
};

#[derive(Debug, Args)]
pub(super) struct Simulate {
    /// The folder to create: weeks.json, weeks.svg, and the releases.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    size: SizeFlags,
    /// Time for each refresh to learn in.
    #[arg(long, value_name = "MINUTES", default_value_t = 2.0)]
    minutes: f64,
    /// Settings of the first release, as for `fit`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct WriteShop {
    /// The folder to create: `first`, and a folder for each week.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    size: SizeFlags,
    /// The week that begins now. Only earlier ones have events.
    #[arg(long, value_name = "WEEK", default_value_t = 5)]
    now: usize,
}

#[derive(Debug, Args)]
struct SizeFlags {
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
    /// How much fashions move in a week: a standard deviation of logarithmic weights.
    #[arg(long, default_value_t = 0.2)]
    movement: f64,
}

impl SizeFlags {
    fn size(self) -> Size {
        let Self { seed, weeks, articles, customers, outfits, orders, asked, movement } = self;
        Size { seed, articles, customers, outfits, orders, asked, weeks, movement }
    }
}

impl WriteShop {
    pub(super) fn run(self) -> Result<()> {
        if self.out.exists() {
            bail!("{} exists already: name another folder", self.out.display());
        }
        Shop::new(self.size.size())?.write_weeks(&self.out, self.now, SystemTime::now().into())
    }
}

impl Simulate {
    pub(super) fn run(self) -> Result<()> {
        let size = self.size.size();
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
