//! `atelier-training evaluate`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use atelier::{
    config::Config,
    models::{onnx_runtime::OnnxRuntime, release::Release},
};
use clap::Args;
use serde::{Serialize, de::DeserializeOwned};

use super::progress::Progress;
use crate::{
    baselines::beside_methods,
    data::Data,
    evaluate::{
        Answers, Cases, Evaluation, PairCases, ask, ask_pairs, compare, name, pair_table, write_ranks,
    },
    export::{Metadata, Storage, export, export_pair},
    files,
    fit::{RunConfig, RunFolder},
    table::Table,
};

#[derive(Debug, Args)]
pub(super) struct Evaluate {
    /// The data folder whose validation split is asked about.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folders of runs; their best weights are exported and measured, and each folder gets its
    /// evaluation.json.
    #[arg(long, value_name = "DIR", num_args = 1.., required_unless_present = "release")]
    runs: Vec<PathBuf>,
    /// A release whose models are measured instead.
    #[arg(long, value_name = "DIR", conflicts_with = "runs")]
    release: Option<PathBuf>,
    /// Write all figures here as JSON: methods, baselines, and between which methods there is a difference.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write every single answer here as Parquet.
    #[arg(long, value_name = "FILE")]
    ranks: Option<PathBuf>,
}

/// A file to be measured.
struct Measured {
    /// What its columns and lines are called.
    name: String,
    file: PathBuf,
    /// What says of two halves if they were one outfit, where there is such a file.
    pair: Option<PathBuf>,
    seed: Option<u64>,
    attributes: bool,
    run: Option<RunFolder>,
}

impl Evaluate {
    pub(super) fn run(self) -> Result<()> {
        let bar = Progress::new("reading", 1);
        let data = Data::load(&self.data)?;
        bar.finish();
        let cases = cases(&data)?;
        let files = match &self.release {
            Some(folder) => of_release(folder, &data)?,
            None => of_runs(&self.runs, &data)?,
        };
        let pairs =
            files.iter().any(|file| file.pair.is_some()).then(|| PairCases::of_validation(&data)).flatten();
        let runtime = runtime()?;
        let mut results: Vec<(Evaluation, Answers)> = Vec::new();
        for measured in &files {
            let answers = answers(&runtime, &measured.file, &measured.name, &data, &cases)?;
            let mut evaluation = Evaluation::new(&data, &cases, &answers, measured.seed);
            evaluation.attributes = measured.attributes;
            if let (Some(path), Some(cases)) = (&measured.pair, &pairs) {
                evaluation.pair = Some(ask_pairs(&runtime, path, &data, cases)?);
            }
            if let Some(run) = &measured.run {
                write_json(&run.evaluation(), &evaluation)?;
            }
            results.push((evaluation, answers));
        }
        let bar = Progress::new("baselines", 1);
        let baselines = beside_methods(&data);
        bar.finish();
        let bar = Progress::new("differences", 1);
        let comparison = compare(&data, &cases, &results, baselines.clone());
        bar.finish();
        if let Some(path) = &self.out {
            write_json(path, &comparison)?;
        }
        if let Some(path) = &self.ranks {
            let named: Vec<(String, &Answers)> =
                files.iter().zip(&results).map(|(file, (_, answers))| (file.name.clone(), answers)).collect();
            write_ranks(path, &data, &cases, &named)?;
        }
        let evaluations: Vec<Evaluation> = results.into_iter().map(|(evaluation, _)| evaluation).collect();
        let pairs = pair_table(&evaluations);
        print!("{}", Table::new(&evaluations, baselines, None)?.markdown());
        if let Some(pairs) = pairs {
            print!("\n{pairs}");
        }
        Ok(())
    }
}

/// The questions, of which there must be some.
pub(super) fn cases(data: &Data) -> Result<Cases> {
    let cases = Cases::of_validation(data);
    if cases.is_empty() {
        bail!(
            "{} has no outfit of the split \"validation\", so nothing can be measured; `atelier-training \
             import` draws one where a shop's own files name none",
            data.name()
        );
    }
    Ok(cases)
}

pub(super) fn runtime() -> Result<OnnxRuntime> {
    Ok(OnnxRuntime::load(&Config::default().cache.folder, |notice| eprintln!("{notice}"))?)
}

/// Asks a file about all cases, with a bar.
pub(super) fn answers(
    runtime: &OnnxRuntime,
    file: &Path,
    name: &str,
    data: &Data,
    cases: &Cases,
) -> Result<Answers> {
    let bar = Progress::new(name, cases.as_slice().len());
    let answers = ask(runtime, file, data, cases, &|done| bar.set(done))?;
    bar.finish();
    Ok(answers)
}

/// Exports each run's best weights beside them.
fn of_runs(folders: &[PathBuf], data: &Data) -> Result<Vec<Measured>> {
    let runs: Vec<RunFolder> = folders.iter().map(RunFolder::new).collect();
    let configs = runs.iter().map(RunFolder::config).collect::<Result<Vec<_>>>()?;
    let mut files = Vec::new();
    for (run, config) in runs.into_iter().zip(&configs) {
        if config.data.fingerprint != data.fingerprint() {
            bail!(
                "{} was fitted to data with fingerprint {}, {} has {}: a run is measured on the validation \
                 split of its own data",
                run.path().display(),
                config.data.fingerprint,
                data.name(),
                data.fingerprint()
            );
        }
        let file = run.onnx(config);
        let metadata = Metadata { release: String::new(), storage: Storage::Float32 };
        let model = run.best()?;
        export(&model, &metadata, &file)?;
        let pair = run.pair_onnx(config);
        let pair = export_pair(&model, &metadata, &pair)?.map(|_| pair);
        let called = |config: &RunConfig| name(config.model.method, config.fit.attributes);
        let (its, seed, attributes) = (called(config), config.fit.seed, config.fit.attributes);
        let alone = configs.iter().filter(|config| called(config) == its).count() == 1;
        let name = if alone { its } else { format!("{its}-{seed}") };
        files.push(Measured { name, file, pair, seed: Some(seed), attributes, run: Some(run) });
    }
    Ok(files)
}

fn of_release(folder: &Path, data: &Data) -> Result<Vec<Measured>> {
    let release = Release::open(folder)?;
    if !release.vocabulary().iter().eq(data.vocabulary().iter()) {
        bail!(
            "{} was made for other articles, or for the same in another order, than {} has",
            folder.display(),
            data.name()
        );
    }
    if release.schema().features() != data.schema().features() {
        bail!("{} was made for another schema than that of {}", folder.display(), data.name());
    }
    let methods = release.manifest().methods.iter();
    Ok(methods
        .map(|entry| Measured {
            name: entry.method.to_string(),
            file: release.model_path(entry),
            pair: release.pair_path(entry),
            seed: None,
            attributes: false,
            run: None,
        })
        .collect())
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("the figures")? + "\n";
    files::put(path, text.as_bytes())
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}
