//! Prints the oracle's answers.

use std::path::PathBuf;

use anyhow::{Result, bail};
use atelier_training::{
    cli::{
        progress::{Progress, timed},
        tables, write_json,
    },
    metrics::{Estimate, Summary},
    synthesise,
    table::Unknown,
    world::VERSION,
};
use clap::Args;
use serde_json::json;

use super::oracle::{self, Effort};

#[derive(Debug, Args)]
pub(crate) struct Oracle {
    /// A folder that `synthesise` made.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Number of validation slots.
    #[arg(long, default_value_t = 1000)]
    slots: usize,
    /// Number of contexts to average over if the customer is unknown; more are more accurate.
    #[arg(long, default_value_t = 2000)]
    customers: usize,
    /// Also write the figures here as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Oracle {
    pub(crate) fn run(self) -> Result<()> {
        if self.slots == 0 || self.customers < 8 {
            bail!(
                "--slots {} --customers {}: the oracle needs at least one slot and eight customers",
                self.slots,
                self.customers
            );
        }
        let world = timed("rebuilding the world and checking its files", || synthesise::rebuild(&self.data))?;
        let effort = Effort { slots: self.slots, contexts: self.customers };
        let bar = Progress::new("the oracle's answers", oracle::steps(effort));
        let report = oracle::consult(&world, effort, &mut |done| bar.set(done));
        bar.finish();

        println!("oracle of world version {VERSION}, {} validation slots\n", report.known.slots);
        tables::print_header("known");
        tables::print_row("customer and occasion", &report.known);
        tables::print_row("  and the type", &report.known_told_type);
        tables::print_row("  customers with training outfits", &report.known_seen);
        tables::print_row("  customers without", &report.known_unseen);
        print_mixture("occasion alone", &report.occasion);
        print_mixture("neither", &report.unknown);
        println!(
            "\nThe first line is exact. If the customer is unknown, the answer is an average over contexts drawn \
             from the\npopulation. A finite draw misses some that matter, so it overstates the cross-entropy, \
             less with every\ndoubling; with the slot's own context added to the draw, it understates it. The \
             truth lies between. The\nestimate assumes that further doublings gain less in the ratio of the last \
             one."
        );
        println!(
            "\ngain from customer and occasion together:   {}\ngain from the customer, the occasion known: {}",
            gain(&report.unknown, &report.known),
            gain(&report.occasion, &report.known),
        );
        if let Some(path) = self.json {
            let figures = json!({ "world_version": VERSION, "plan": world.plan(), "report": report });
            write_json(&path, &figures)?;
        }
        Ok(())
    }
}

fn print_mixture(name: &str, unknown: &Unknown) {
    for size in &unknown.sizes {
        let contexts = format!("{name}, {} contexts ({:.0} count)", size.contexts, size.effective_contexts);
        tables::print_row(&contexts, &size.answers);
    }
    tables::print_row(&format!("{name}, with the slot's own"), &unknown.with_own);
    if let Some(limit) = unknown.limit {
        println!("{:<44} {:>7}  {limit:>7.4}", format!("{name}, estimated limit"), unknown.with_own.slots);
    }
}

fn gain(unknown: &Unknown, known: &Summary) -> String {
    let text = |estimate: Estimate| format!("{:.3} ± {:.3}", estimate.mean, estimate.standard_error);
    let about = unknown
        .limit
        .map_or(String::new(), |limit| format!(", about {:.2}", limit - known.cross_entropy.mean));
    format!("between {} and {} nats{about}", text(unknown.worth_at_least), text(unknown.worth_at_most))
}
