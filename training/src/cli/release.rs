//! `atelier-training release`.

use std::{env, path::PathBuf, sync::Mutex, time::SystemTime};

use anyhow::Result;
use atelier::domain::Method;
use clap::Args;

use super::{evaluate, export::Floats, progress::Progress};
use crate::{baselines::beside_methods, data::Data, fit::RunFolder, release::Plan};

#[derive(Debug, Args)]
pub(super) struct Release {
    /// The release's name, and its folder's.
    #[arg(long)]
    name: String,
    /// The data that the runs were fitted to.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folders of runs; of several runs of one method the one that did best on the development split is
    /// taken.
    #[arg(long, value_name = "DIR", num_args = 1.., required = true)]
    runs: Vec<PathBuf>,
    /// The folder of releases.
    #[arg(long, value_name = "DIR", default_value = "models")]
    out: PathBuf,
    /// How the models' matrices are stored; computing is float32 either way.
    #[arg(long, value_enum, default_value_t = Floats::Float32)]
    storage: Floats,
    /// The method that answers where none is named; the best on the development split if not given.
    #[arg(long)]
    default_method: Option<Method>,
    /// Customers of the validation split, with their outfits, that are put beside the models: an empty
    /// database gets them, so that there is something to see.
    #[arg(long, default_value_t = 300)]
    customers: usize,
}

impl Release {
    pub(super) fn run(self) -> Result<()> {
        let bar = Progress::new("reading", 1);
        let data = Data::load(&self.data)?;
        bar.finish();
        let cases = evaluate::cases(&data)?.as_slice().len();
        let bar = Progress::new("baselines", 1);
        let baselines = beside_methods(&data);
        bar.finish();
        let runs: Vec<RunFolder> = self.runs.iter().map(RunFolder::new).collect();
        let plan = Plan {
            name: &self.name,
            data: &data,
            folder: &self.data,
            runs: &runs,
            baselines,
            storage: self.storage.into(),
            default_method: self.default_method,
            customers: self.customers,
            command: command(),
            created: SystemTime::now(),
        };
        let shown = Mutex::new(None::<(Method, Progress)>);
        let tell = |method: Method, done: usize| {
            let mut shown = shown.lock().expect("drawing a bar does not panic; this is a bug");
            if shown.as_ref().is_none_or(|(of, _)| *of != method)
                && let Some((_, bar)) = shown.replace((method, Progress::new(method.as_str(), cases)))
            {
                bar.finish();
            }
            if let Some((_, bar)) = shown.as_ref() {
                bar.set(done);
            }
        };
        let place = plan.make(&evaluate::runtime()?, &self.out, &tell)?;
        println!("{}", place.display());
        Ok(())
    }
}

/// This very command, as it was given.
fn command() -> String {
    let words = env::args().skip(1).map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,".contains(c);
        if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    std::iter::once("atelier-training".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
