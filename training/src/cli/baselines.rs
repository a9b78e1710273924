//! `atelier-training baselines`.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::{progress::timed, tables};
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
    /// Also write the figures here as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Baselines {
    pub(super) fn run(self) -> Result<()> {
        let data = timed("reading", || Data::load(&self.data))?;
        let popularity = Popularity::fit(&data);
        let by_type = TypePopularity::fit(&data);
        let pairs = Pairs::count(&data);
        let cooccurrence = timed("weight of co-occurrence", || Cooccurrence::fit(&data, &popularity, &pairs));
        let cells = Cells::count(&data);
        let profile =
            timed("strength of popularity by profile", || ProfilePopularity::fit(&data, &by_type, &cells));

        let mut methods: Vec<(String, &dyn Answers)> = vec![
            (format!("popularity (+{})", popularity.added), &popularity),
            (format!("co-occurrence (weight {})", cooccurrence.weight), &cooccurrence),
            (format!("popularity, told the type (+{})", by_type.added), &by_type),
        ];
        if cells.tell() {
            methods.push((format!("the same, gender and price band ({})", profile.strength), &profile));
        }
        let mut figures: Vec<(String, Summary)> = Vec::with_capacity(methods.len());
        tables::print_header("validation split, every slot masked in turn");
        for (name, method) in methods {
            let summary = evaluate(&data, data.validation(), method).summary();
            tables::print_row(&name, &summary);
            figures.push((name, summary));
        }
        println!(
            "\nRanks are over the whole catalogue, including articles already in the outfit; ties share their mean \
             rank.\nThe values in brackets were chosen on the development split."
        );
        if let [_, _, (_, by_type), (_, profile)] = &figures[..] {
            let gain = by_type.cross_entropy.mean - profile.cross_entropy.mean;
            println!("gender and price band gain {gain:.3} nats over the type alone");
        }
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
