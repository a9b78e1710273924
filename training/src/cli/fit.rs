//! `atelier-training fit`.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process,
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

use anyhow::{Context, Result};
use atelier_core::domain::{Method, list_methods};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::TERM_SIGNALS;

use super::evaluate::describe_rivals;
use crate::{
    baselines::beside_methods,
    data::Data,
    evaluate::{Cases, Rival, name},
    fit::{EpochRecord, Event, FitConfig, Outcome, Overrides, RunConfig, RunFolder, Watch, fit, hand_over},
    import::why_unseen,
};

#[derive(Debug, Args)]
pub(super) struct Fit {
    /// none, c, np, gs, gsu, latent, universal, latent-universal or match.
    #[arg(long, default_value_t = Method::Match, value_parser = trained)]
    method: Method,
    /// A data folder: a synthetic world, or what `import` made of your own tables.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The run's folder [default: runs/DATA/METHOD-SEED, or runs/DATA/METHOD-attributes-SEED].
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Resume the run in the folder, if there is one.
    #[arg(long)]
    resume: bool,
    /// Write the run's folder for training/pytorch instead of training: settings, initial weights, encoded outfits.
    #[arg(long, conflicts_with = "resume")]
    prepare: bool,
    /// A file of settings that differ from the defaults, including task weights and the weight of pairs; another
    /// run's config.toml works. Flags override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting, as in model.initial.features=1.0; may be repeated. Overrides the file; the flags below override
    /// it.
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    set: Vec<String>,
    /// Random seed of initial weights, order of outfits, and masks.
    #[arg(long)]
    seed: Option<u64>,
    /// Maximum number of epochs; the learning rate decays over all of them. `fit.shorten` is
    /// off then.
    #[arg(long)]
    epochs: Option<u32>,
    /// Outfits per step.
    #[arg(long)]
    batch: Option<usize>,
    /// Peak learning rate.
    #[arg(long)]
    learning_rate: Option<f32>,
    /// Epochs over which the learning rate rises.
    #[arg(long)]
    warm_up: Option<f32>,
    /// Epochs without a better cross-entropy on the development split after which the run stops.
    #[arg(long)]
    patience: Option<u32>,
    /// Let articles with common attributes (type, colour, brand, price range …) share what they learn.
    #[arg(long)]
    attributes: bool,
}

/// Says which baselines are ahead of the run's best weights on the development split.
fn say_who_is_better(data: &Data, folder: &RunFolder, config: &RunConfig) -> Result<()> {
    let beside = beside_methods(data, data.development());
    let verdicts = folder.judge_development(data)?;
    let cases = Cases::of_outfits(data, data.development());
    let method = name(config.model.method, config.fit.attributes);
    let rivals = Rival::find(&cases, &[(method.clone(), vec![&verdicts])], &beside);
    let slots = cases.as_slice().len();
    let all = data.count_slots(data.development());
    let asked = format!("on the {slots} slots of learned articles, of {all} slots of the development split");
    if rivals.is_empty() {
        eprintln!("no baseline is ahead of {method} {asked}");
    } else {
        eprintln!("{asked}:");
    }
    for line in describe_rivals(&rivals) {
        eprintln!("{line}");
    }
    Ok(())
}

fn trained(name: &str) -> Result<Method, String> {
    let found = Method::ALL.into_iter().find(|method| method.as_str() == name);
    found.ok_or_else(|| format!("there is no method {name:?}; the methods are {}", list_methods(Method::ALL)))
}

impl Fit {
    pub(super) fn run(self) -> Result<()> {
        let start = Instant::now();
        let data = Data::load(&self.data)?;
        eprintln!(
            "{}: {} articles, {} customers, {} training outfits and {} for development, read in {:.1} s",
            data.name(),
            data.vocabulary().len(),
            data.customers().len(),
            data.training().len(),
            data.development().len(),
            start.elapsed().as_secs_f64(),
        );
        if let Some(why) = why_unseen(&data) {
            eprintln!("{why}");
        }
        let overrides = Overrides { file: self.config.as_deref(), set: &self.set };
        let config = RunConfig::new(self.method, &data, &self.data, overrides, |fit| self.apply_flags(fit))?;
        // A match always learns from attributes.
        let of_attributes = config.fit.attributes && self.method != Method::Match;
        let attributes = if of_attributes { "-attributes" } else { "" };
        let default =
            || format!("runs/{}/{}{attributes}-{}", data.name(), self.method, config.fit.seed).into();
        let folder = RunFolder::new(self.run.clone().unwrap_or_else(default));
        if self.prepare {
            hand_over(&data, &config, &folder)?;
            println!("{}", folder.path().display());
            return Ok(());
        }
        if !config.model.of_articles.is_empty() {
            eprintln!(
                "{method} reads the values of {} as articles",
                config.model.of_articles.join(", "),
                method = self.method
            );
        }
        let stop = stop_on_signal()?;
        let mut screen = Screen::new();
        let outcome = fit(
            &data,
            &config,
            &folder,
            self.resume,
            &mut Watch {
                clock: &|| start.elapsed().as_secs_f64(),
                stop: &stop,
                on_event: &mut |event| screen.show(&event),
            },
        );
        screen.close();
        let path = folder.path().display();
        match outcome? {
            Outcome::Finished => eprintln!("all epochs are done"),
            Outcome::Shortened => eprintln!(
                "ended after a third of the epochs: the model knows the training outfits better than others, so more \
                 seldom helps (fit.shorten)"
            ),
            Outcome::StoppedEarly { epochs } => {
                eprintln!("stopped early: the last {epochs} epochs did not improve");
            }
            Outcome::Interrupted => {
                eprintln!(
                    "interrupted, with a checkpoint in {path}; resume with the same command and --resume"
                );
                // As a shell reports Ctrl-C, so that a script stops, too.
                process::exit(130);
            }
        }
        let epochs = folder.epochs()?;
        match epochs.iter().rfind(|epoch| epoch.best) {
            Some(best) => eprintln!("best: {}", epoch_line(best)),
            None => eprintln!("best: the start, at the conditional logit; no epoch improved it"),
        }
        say_who_is_better(&data, &folder, &config)?;
        println!("{path}");
        Ok(())
    }

    fn apply_flags(&self, fit: &mut FitConfig) {
        fit.seed = self.seed.unwrap_or(fit.seed);
        if let Some(epochs) = self.epochs {
            (fit.epochs, fit.shorten) = (epochs, false);
        }
        fit.batch = self.batch.unwrap_or(fit.batch);
        fit.learning_rate = self.learning_rate.unwrap_or(fit.learning_rate);
        fit.warm_up = self.warm_up.unwrap_or(fit.warm_up);
        fit.patience = self.patience.unwrap_or(fit.patience);
        fit.attributes |= self.attributes;
    }
}

/// The first Ctrl-C or SIGTERM stops the run with a checkpoint, the second ends the process at once.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in TERM_SIGNALS {
        // In this order, so that the first signal finds the flag unset.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("cannot handle signals")?;
    }
    Ok(stop)
}

/// Shows a bar over the whole run on a terminal, and a line per epoch everywhere.
struct Screen {
    bar: Option<ProgressBar>,
    steps_per_epoch: u32,
    last: Option<EpochRecord>,
    start: Instant,
    outfits: usize,
}

impl Screen {
    fn new() -> Self {
        Self { bar: None, steps_per_epoch: 1, last: None, start: Instant::now(), outfits: 0 }
    }

    fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { epochs, steps_per_epoch, resumed_at } => {
                self.steps_per_epoch = *steps_per_epoch;
                self.start = Instant::now();
                if *resumed_at > 0 {
                    eprintln!("resumed after step {resumed_at}");
                }
                if io::stderr().is_terminal() {
                    let style = ProgressStyle::with_template("{bar:30} {msg}, at most {eta} left")
                        .expect("the template is constant");
                    let total = u64::from(*epochs) * u64::from(*steps_per_epoch);
                    let bar = ProgressBar::new(total).with_style(style).with_position(u64::from(*resumed_at));
                    bar.reset_eta();
                    self.bar = Some(bar);
                }
            }
            Event::Step { epoch, step, cross_entropy, outfits } => {
                self.outfits += outfits;
                let Some(bar) = &self.bar else { return };
                let speed = crate::number::real(self.outfits) / self.start.elapsed().as_secs_f64();
                let recall = self.last.as_ref().map_or_else(String::new, |last| {
                    format!(", recall@5 {:.2} %", 100.0 * last.development.recall_at_5)
                });
                bar.set_position(u64::from(epoch - 1) * u64::from(self.steps_per_epoch) + u64::from(*step));
                bar.set_message(format!(
                    "epoch {epoch}, loss {cross_entropy:.4}{recall}, {speed:.0} outfits/s"
                ));
            }
            Event::Evaluating { epoch } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("epoch {epoch}, development split"));
                }
            }
            Event::Epoch(record) => {
                let line = epoch_line(record);
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

fn epoch_line(record: &EpochRecord) -> String {
    let EpochRecord { epoch, training, development, .. } = record;
    let steps = training.steps.map_or_else(String::new, |steps| format!(", {steps:.2} steps"));
    let pair = record.pair.map_or_else(String::new, |pair| {
        format!(", pairs {:.2} % right (AUC {:.4})", 100.0 * pair.accuracy, pair.auc)
    });
    format!(
        "epoch {epoch}: training {:.4}, development {:.4}{steps}, recall@5 {:.2} %{pair}, {:.0} outfits/s, {:.0} s{}",
        training.cross_entropy,
        development.cross_entropy,
        100.0 * development.recall_at_5,
        record.outfits_per_second,
        record.seconds,
        if record.best { "" } else { ", no improvement" },
    )
}
