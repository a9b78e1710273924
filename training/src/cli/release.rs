//! `atelier-training release`.

use std::{env, path::PathBuf, sync::Mutex, time::SystemTime};

use anyhow::Result;
use atelier_core::domain::Method;
use clap::Args;

use super::{
    evaluate,
    progress::{Stages, timed},
};
use crate::{
    baselines::beside_methods,
    data::Data,
    evaluate::FEW,
    export::{ServedBaseline, Storage},
    fit::RunFolder,
    release::Plan,
};

#[derive(Debug, Args)]
pub(super) struct Release {
    /// The name of the release and of its folder.
    #[arg(long)]
    name: String,
    /// The data folder of the runs.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folders of runs; of several runs of one method, the best on the development split is used.
    #[arg(long, value_name = "DIR", num_args = 1.., required_unless_present = "baseline")]
    runs: Vec<PathBuf>,
    /// Also release this baseline, as a method of its name; may be repeated, also without any run.
    #[arg(long, value_enum)]
    baseline: Vec<ServedBaseline>,
    /// The folder of releases.
    #[arg(long, value_name = "DIR", default_value = "models")]
    out: PathBuf,
    /// Precision of stored matrices; models compute in float32 with all.
    #[arg(long, value_enum, default_value_t = Storage::Float32)]
    storage: Storage,
    /// The method for requests that name none [default: the best on the development split].
    #[arg(long)]
    default_method: Option<Method>,
    /// Number of validation customers that the release includes with their outfits, as sample data for an empty
    /// database.
    #[arg(long, default_value_t = 300)]
    customers: usize,
}

impl Release {
    pub(super) fn run(self) -> Result<()> {
        let runs: Vec<RunFolder> = self.runs.iter().map(RunFolder::new).collect();
        evaluate::note_unfinished(&runs)?;
        let data = timed("reading", || Data::load(&self.data))?;
        let cases = evaluate::cases(&data)?.as_slice().len();
        if cases < FEW {
            eprintln!(
                "only {cases} slots: the release's figures, of fewer than {FEW}, say little; `evaluate --runs` cross-validates"
            );
        }
        let baselines = timed("baselines", || beside_methods(&data, data.validation()));
        let plan = Plan {
            name: &self.name,
            data: &data,
            folder: &self.data,
            runs: &runs,
            served: &self.baseline,
            baselines,
            storage: self.storage,
            default_method: self.default_method,
            customers: self.customers,
            command: command(),
            beside: Vec::new(),
            created: SystemTime::now(),
        };
        let stages = Mutex::new(Stages::default());
        let show = |method: Method, done: usize| {
            let mut stages = stages.lock().expect("drawing a bar does not panic");
            stages.set(method.as_str(), done, cases);
        };
        let (folder, rivals) = plan.make(&evaluate::runtime()?, &self.out, &show)?;
        stages.into_inner().expect("drawing a bar does not panic").finish();
        for line in evaluate::describe_rivals(&rivals) {
            eprintln!("{line}");
        }
        println!("{}", folder.display());
        Ok(())
    }
}

/// This command, quoted for a shell.
pub(super) fn command() -> String {
    let words = env::args().skip(1).map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,".contains(c);
        if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    std::iter::once("atelier-training".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
