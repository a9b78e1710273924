//! `atelier-training baselines`.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::{progress::Progress, tables};
use crate::{
    baselines::{
        Answers, Cells, Cooccurrence, Pairs, Popularity, ProfilePopularity, TypePopularity, evaluate,
    },
    data::Data,
    metrics::Summary,
};

#[derive(Debug, Args)]
pub(super) struct Baselines {
    /// A data folder: a synthetic world or your own tables.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Write the figures here as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Baselines {
    pub(super) fn run(self) -> Result<()> {
        let bar = Progress::new("reading", 1);
        let data = Data::load(&self.data)?;
        bar.finish();
        let popularity = Popularity::fit(&data);
        let told = TypePopularity::fit(&data);
        let pairs = Pairs::count(&data);
        let bar = Progress::new("co-occurrence, its weight", 1);
        let cooccurrence = Cooccurrence::fit(&data, &popularity, &pairs);
        bar.finish();
        let bar = Progress::new("popularity by profile, its strength", 1);
        let cells = Cells::count(&data);
        let profile = ProfilePopularity::fit(&data, &told, &cells);
        bar.finish();

        let methods: [(String, &dyn Answers); 4] = [
            (format!("popularity (+{})", popularity.added), &popularity),
            (format!("co-occurrence (weight {})", cooccurrence.weight), &cooccurrence),
            (format!("popularity, told the type (+{})", told.added), &told),
            (format!("the same, gender and price band ({})", profile.strength), &profile),
        ];
        let mut figures: Vec<(String, Summary)> = Vec::with_capacity(methods.len());
        tables::head("validation split, every slot masked in turn");
        for (name, method) in methods {
            let summary = evaluate(&data, data.validation(), method).summary();
            tables::line(&name, &summary);
            figures.push((name, summary));
        }
        println!(
            "\nRanks are over the whole catalogue, ties share their mean rank, and articles already in the \
             outfit are not\nleft out. In brackets, what was chosen on the development split."
        );
        println!(
            "gender and price band are worth {:.3} nats beside the type alone",
            figures[2].1.cross_entropy.mean - figures[3].1.cross_entropy.mean
        );
        if let Some(path) = self.json {
            let rows: Vec<_> = figures
                .iter()
                .map(|(name, summary)| json!({ "baseline": name, "answers": summary }))
                .collect();
            let text = serde_json::to_string_pretty(&rows).context("the figures")? + "\n";
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
