//! Makes figures of our own tables: the best answers on a synthetic world, and a shop over weeks. A shop needs none of it.

mod ask_oracle;
mod oracle;
mod weeks;

use std::{
    fs,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use atelier_core::util::text::describe_error;
use atelier_training::{
    cli::{runtime, stop_on_signal, write_json},
    fit::Overrides,
};
use clap::{Args, Parser};

use ask_oracle::Oracle;
use weeks::{Shop, Simulation, Size};

/// Makes figures of training/research.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
enum Verb {
    /// Compute the best possible scores on a synthetic world, with and without knowing the customer.
    Oracle(Oracle),
    /// Simulate weeks in which tastes and the catalogue move, with a refresh after each and without.
    Weeks(Simulate),
    /// Write the tables, questions and events of a shop in which tastes and the catalogue move (loop.py).
    Shop(WriteShop),
}

fn main() -> ExitCode {
    let done = match Verb::parse() {
        Verb::Oracle(verb) => verb.run(),
        Verb::Weeks(verb) => verb.run(),
        Verb::Shop(verb) => verb.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("research: {}", describe_error(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, Args)]
struct Simulate {
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
struct WriteShop {
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
    fn run(self) -> Result<()> {
        if self.out.exists() {
            bail!("{} exists already: name another folder", self.out.display());
        }
        Shop::new(self.size.size())?.write_weeks(&self.out, self.now, SystemTime::now().into())
    }
}

impl Simulate {
    fn run(self) -> Result<()> {
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
