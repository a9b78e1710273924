//! `atelier-training oracle`.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::{progress::Progress, tables};
use crate::{
    metrics::{Estimate, Summary},
    oracle::{self, Effort, Unknown},
    synthesise,
    world::VERSION,
};

#[derive(Debug, Args)]
pub(super) struct Oracle {
    /// A folder that `synthesise` made.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Validation slots to answer.
    #[arg(long, default_value_t = 1000)]
    slots: usize,
    /// Contexts to average over where the customer is unknown: the more, the closer to the truth.
    #[arg(long, default_value_t = 2000)]
    customers: usize,
    /// Write the figures here as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Oracle {
    pub(super) fn run(self) -> Result<()> {
        if self.slots == 0 || self.customers < 8 {
            bail!(
                "--slots {} --customers {}: the oracle needs at least one slot and eight customers",
                self.slots,
                self.customers
            );
        }
        let began = Progress::new("the world made again, its files checked", 1);
        let world = synthesise::rebuild(&self.data)?;
        began.finish();
        let effort = Effort { slots: self.slots, contexts: self.customers };
        let bar = Progress::new("the oracle's answers", oracle::steps(effort));
        let report = oracle::consult(&world, effort, &mut |done| bar.set(done));
        bar.finish();

        println!("oracle of world version {VERSION}, {} validation slots\n", report.known.slots);
        tables::head("what is known");
        tables::line("customer and occasion", &report.known);
        tables::line("  customers with training outfits", &report.known_seen);
        tables::line("  customers without", &report.known_unseen);
        mixed("occasion alone", &report.occasion);
        mixed("neither", &report.unknown);
        println!(
            "\nThe first line is exact. Where the customer is unknown, the answer is averaged over contexts \
             drawn from\nthe population; a finite draw misses some that matter, so it overstates the \
             cross-entropy, less with every\ndoubling. With the slot's own context added to the draw it is \
             understated. The truth lies between; the\nestimate assumes that what is left to gain shrinks \
             with the draw as it did over the last doubling."
        );
        println!(
            "\nworth of customer and occasion together: {}\nworth of the customer, the occasion known:   {}",
            worth(&report.unknown, &report.known),
            worth(&report.occasion, &report.known),
        );
        if let Some(path) = self.json {
            let figures = json!({ "world_version": VERSION, "plan": world.plan(), "report": report });
            let text = serde_json::to_string_pretty(&figures).context("the figures")? + "\n";
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

fn mixed(name: &str, unknown: &Unknown) {
    for size in &unknown.sizes {
        let contexts = format!("{name}, {} contexts ({:.0} count)", size.contexts, size.effective_contexts);
        tables::line(&contexts, &size.answers);
    }
    tables::line(&format!("{name}, with the slot's own"), &unknown.with_own);
    if let Some(limit) = unknown.limit {
        println!("{:<44} {:>7}  {limit:>7.4}", format!("{name}, estimated limit"), unknown.with_own.slots);
    }
}

fn worth(unknown: &Unknown, known: &Summary) -> String {
    let said = |estimate: Estimate| format!("{:.3} ± {:.3}", estimate.mean, estimate.standard_error);
    let about = unknown
        .limit
        .map_or(String::new(), |limit| format!(", about {:.2}", limit - known.cross_entropy.mean));
    format!("between {} and {} nats{about}", said(unknown.worth_at_least), said(unknown.worth_at_most))
}
