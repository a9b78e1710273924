//! `atelier-training fit`.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

use anyhow::{Context, Result};
use atelier::domain::Method;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::TERM_SIGNALS;

use crate::{
    data::Data,
    fit::{EpochRecord, Event, FitConfig, Given, Outcome, RunConfig, RunFolder, Watch, fit},
};

#[derive(Debug, Args)]
pub(super) struct Fit {
    /// none, c, np, gs, gsu, latent, universal, latent-universal, gsx or gsx-latent.
    #[arg(long)]
    method: Method,
    /// A data folder: a synthetic world, or what `import` made of your own tables.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The run's folder; runs/DATA/METHOD-SEED or runs/DATA/METHOD-attributes-SEED if not given.
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Go on with the run that the folder holds, if it holds one.
    #[arg(long)]
    resume: bool,
    /// Settings that differ from the built-in ones, task weights and the weight of pairs among them;
    /// another run's config.toml will do. Flags win over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting that differs, as in model.initial.features=1.0; may be given again. Wins over a file, and
    /// the flags below win over it.
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    set: Vec<String>,
    /// Draws the first weights, the order of the outfits, and what is masked.
    #[arg(long)]
    seed: Option<u64>,
    /// At most so many; the learning rate falls over all of them.
    #[arg(long)]
    epochs: Option<u32>,
    /// Outfits a step.
    #[arg(long)]
    batch: Option<usize>,
    /// At its highest.
    #[arg(long)]
    learning_rate: Option<f32>,
    /// Epochs over which the learning rate rises.
    #[arg(long)]
    warm_up: Option<f32>,
    /// Epochs without a better cross-entropy on the development split before the run ends.
    #[arg(long)]
    patience: Option<u32>,
    /// Let articles that have something in common (type, colour, brand, price range …) learn it together.
    #[arg(long)]
    attributes: bool,
}

impl Fit {
    pub(super) fn run(self) -> Result<()> {
        let began = Instant::now();
        let data = Data::load(&self.data)?;
        eprintln!(
            "{}: {} articles, {} customers, {} outfits to learn from and {} for development, read in {:.1} s",
            data.name(),
            data.vocabulary().len(),
            data.customers().len(),
            data.training().len(),
            data.development().len(),
            began.elapsed().as_secs_f64(),
        );
        let change = |fit: &mut FitConfig| self.change(fit);
        let given = Given { file: self.config.as_deref(), set: &self.set };
        let config = RunConfig::new(self.method, &data, &self.data, given, change)?;
        let attributes = if config.fit.attributes { "-attributes" } else { "" };
        let default =
            || format!("runs/{}/{}{attributes}-{}", data.name(), self.method, config.fit.seed).into();
        let folder = RunFolder::new(self.run.clone().unwrap_or_else(default));
        let stop = stop_when_told()?;
        let mut screen = Screen::new();
        let outcome = fit(
            &data,
            &config,
            &folder,
            self.resume,
            &mut Watch {
                clock: &|| began.elapsed().as_secs_f64(),
                stop: &stop,
                hear: &mut |event| screen.show(&event),
            },
        );
        screen.close();
        let path = folder.path().display();
        match outcome? {
            Outcome::Finished => eprintln!("all epochs are done"),
            Outcome::Settled => {
                eprintln!("no epoch of the last {} did better; the run ends", config.fit.patience);
            }
            Outcome::Stopped => {
                eprintln!(
                    "stopped, with a checkpoint in {path}; the same command and --resume go on from it"
                );
                return Ok(());
            }
        }
        let epochs = folder.epochs()?;
        if let Some(best) = epochs.iter().rfind(|epoch| epoch.best) {
            eprintln!("the best was {}", line(best));
        }
        println!("{path}");
        Ok(())
    }

    fn change(&self, fit: &mut FitConfig) {
        fit.seed = self.seed.unwrap_or(fit.seed);
        fit.epochs = self.epochs.unwrap_or(fit.epochs);
        fit.batch = self.batch.unwrap_or(fit.batch);
        fit.learning_rate = self.learning_rate.unwrap_or(fit.learning_rate);
        fit.warm_up = self.warm_up.unwrap_or(fit.warm_up);
        fit.patience = self.patience.unwrap_or(fit.patience);
        fit.attributes |= self.attributes;
    }
}

/// The first Ctrl-C or SIGTERM asks for a checkpoint, the second ends the process at once.
fn stop_when_told() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in TERM_SIGNALS {
        // In this order: the first signal finds the flag still unset.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("signals cannot be listened to")?;
    }
    Ok(stop)
}

/// A bar over the whole run where there is a terminal, and a line an epoch everywhere.
struct Screen {
    bar: Option<ProgressBar>,
    steps_an_epoch: u32,
    last: Option<EpochRecord>,
    began: Instant,
    outfits: usize,
}

impl Screen {
    fn new() -> Self {
        Self { bar: None, steps_an_epoch: 1, last: None, began: Instant::now(), outfits: 0 }
    }

    fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Began { epochs, steps_an_epoch, resumed_at } => {
                self.steps_an_epoch = *steps_an_epoch;
                self.began = Instant::now();
                if *resumed_at > 0 {
                    eprintln!("going on after step {resumed_at}");
                }
                if io::stderr().is_terminal() {
                    let style = ProgressStyle::with_template("{bar:30} {msg}, at most {eta} left")
                        .expect("the template is constant; this is a bug");
                    let total = u64::from(*epochs) * u64::from(*steps_an_epoch);
                    let bar = ProgressBar::new(total).with_style(style).with_position(u64::from(*resumed_at));
                    bar.reset_eta();
                    self.bar = Some(bar);
                }
            }
            Event::Step { epoch, step, cross_entropy, outfits } => {
                self.outfits += outfits;
                let Some(bar) = &self.bar else { return };
                let speed = crate::number::real(self.outfits) / self.began.elapsed().as_secs_f64();
                let recall = self.last.as_ref().map_or_else(String::new, |last| {
                    format!(", recall@5 {:.2} %", 100.0 * last.development.recall_at_5)
                });
                bar.set_position(u64::from(epoch - 1) * u64::from(self.steps_an_epoch) + u64::from(*step));
                bar.set_message(format!(
                    "epoch {epoch}, loss {cross_entropy:.4}{recall}, {speed:.0} outfits/s"
                ));
            }
            Event::Asking { epoch } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("epoch {epoch}, on the development split"));
                }
            }
            Event::Epoch(record) => {
                let line = line(record);
                match &self.bar {
                    Some(bar) => bar.println(line),
                    None => eprintln!("{line}"),
                }
                self.last = Some((*record).clone());
            }
        }
    }

    fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(record: &EpochRecord) -> String {
    let EpochRecord { epoch, training, development, .. } = record;
    let steps = training.steps.map_or_else(String::new, |steps| format!(", {steps:.2} steps"));
    let pair = record.pair.map_or_else(String::new, |pair| {
        format!(", pairs told {:.2} % (AUC {:.4})", 100.0 * pair.accuracy, pair.auc)
    });
    format!(
        "epoch {epoch}: training {:.4}, development {:.4}{steps}, recall@5 {:.2} %{pair}, {:.0} outfits/s, {:.0} s{}",
        training.cross_entropy,
        development.cross_entropy,
        100.0 * development.recall_at_5,
        record.outfits_per_second,
        record.seconds,
        if record.best { "" } else { ", not better" },
    )
}
