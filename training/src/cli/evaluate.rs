//! `atelier-training evaluate`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use atelier_core::util::folders::cache_folder;
use atelier_engine::{
    onnx_runtime::OnnxRuntime,
    release::{MethodEntry, Release},
};
use clap::{Args, ValueEnum};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    baselines::{BaselineFigures, print_baselines},
    fit::stop_on_signal,
    progress::{Progress, timed},
    tables::print_lines,
};
use crate::{
    baselines::beside_methods,
    data::{Data, FOLDS, repeats::REPEATED},
    evaluate::{
        Answers, Cases, Evaluation, FEW, NewArticles, PairCases, Rival, Runs, Subject, compare,
        interval_table, measure, name, pair_table, table_of_answers, write_ranks,
    },
    export::{Metadata, ServedBaseline, Storage},
    files,
    fit::{RunConfig, RunFolder, Watch},
    folds::Folds,
    judge::Verdict,
    metrics::Summary,
    release::{assemble, export_run},
    synthesise::is_world,
    table::Table,
};

#[derive(Debug, Args)]
pub(super) struct Evaluate {
    /// The data folder with the validation split.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folders of runs. Exports and evaluates their best weights, and writes evaluation.json to each folder. Without these and
    /// --release, all baselines are evaluated alone.
    #[arg(long, value_name = "DIR", num_args = 1.., group = "models")]
    runs: Vec<PathBuf>,
    /// Evaluate the models of this release instead.
    #[arg(long, value_name = "DIR", group = "models")]
    release: Option<PathBuf>,
    /// Write all figures here as JSON: methods, baselines, and differences between methods.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compare with these baselines, a file that `evaluate --out` wrote without runs, instead of those that every method is compared with.
    #[arg(long, value_name = "FILE", requires = "models")]
    baselines: Option<PathBuf>,
    /// Write every answer here as Parquet.
    #[arg(long, value_name = "FILE", requires = "models")]
    ranks: Option<PathBuf>,
    /// Count those articles as new that no training outfit of this data folder has, made by `training/research/vary.py --withhold` from --data:
    /// how well a run suggests them that was trained with them.
    #[arg(long, value_name = "DIR", requires = "models")]
    new_in: Option<PathBuf>,
    /// Leave all features of customers and outfits empty. Writes without-profiles.json instead of evaluation.json.
    #[arg(long, requires = "models")]
    without_profiles: bool,
}

/// A method to evaluate.
struct Candidate {
    /// Its name in columns and lines.
    name: String,
    /// The name of its method: several seeds are one.
    kind: String,
    release: Arc<Release>,
    method: MethodEntry,
    seed: Option<u64>,
    attributes: bool,
    run: Option<RunFolder>,
}

impl Evaluate {
    pub(super) fn run(self) -> Result<()> {
        if self.runs.is_empty() && self.release.is_none() {
            return print_baselines(&self.data, self.out.as_deref());
        }
        let data = timed("reading", || Data::load(&self.data))?;
        let cases = cases(&data)?;
        let candidates = match &self.release {
            Some(folder) => models_of_release(folder, &data)?,
            None => export_runs(&self.runs, &data)?,
        };
        let has_pairs = candidates.iter().any(|candidate| candidate.method.pair.is_some());
        let pairs = has_pairs.then(|| PairCases::of_validation(&data)).flatten();
        let new = match &self.new_in {
            Some(folder) => NewArticles::of_other(&data, &timed("reading", || Data::load(folder))?),
            None => NewArticles::find(&data),
        };
        let runtime = runtime()?;
        let mut results: Vec<(Evaluation, Answers)> = Vec::new();
        for candidate in &candidates {
            let mut subject =
                Subject::new(&data, &candidate.release, &candidate.method).counting_as_new(new.clone());
            if self.without_profiles {
                subject = subject.without_features();
            }
            let bar = Progress::new(&candidate.name, cases.as_slice().len());
            let (mut evaluation, answers) =
                measure(&runtime, &subject, &data, &cases, pairs.as_ref(), &|done| bar.set(done))?;
            bar.finish();
            evaluation.seed = candidate.seed;
            evaluation.attributes = candidate.attributes;
            evaluation.synthetic = is_world(&self.data);
            if let Some(run) = &candidate.run {
                let path = if self.without_profiles { run.without_profiles() } else { run.evaluation() };
                write_json(&path, &evaluation)?;
            }
            results.push((evaluation, answers));
        }
        let beside = timed("baselines", || beside_methods(&data, data.validation()));
        let baselines = match &self.baselines {
            Some(path) => BaselineFigures::read(path, data.fingerprint())?.baselines,
            None => beside.iter().map(|asked| asked.baseline.clone()).collect(),
        };
        let of_new = timed("baselines of new articles", || {
            new.as_ref().map(|new| new.baselines(&data)).unwrap_or_default()
        });
        let mut comparison = timed("differences", || compare(&data, &cases, &results, baselines.clone()));
        comparison.new_article_baselines.clone_from(&of_new);
        if let Some(path) = &self.out {
            write_json(path, &comparison)?;
        }
        if let Some(path) = &self.ranks {
            let columns = candidates.iter().zip(&results);
            let columns: Vec<(String, &Answers)> =
                columns.map(|(candidate, (_, answers))| (candidate.name.clone(), answers)).collect();
            write_ranks(path, &data, &cases, &columns)?;
        }
        let rivals = timed("differences from baselines", || {
            let mut runs: Vec<Runs<'_>> = Vec::new();
            for (candidate, (_, answers)) in candidates.iter().zip(&results) {
                if let Some((_, seeds)) = runs.iter_mut().find(|(kind, _)| *kind == candidate.kind) {
                    seeds.push(&answers.verdicts);
                } else {
                    runs.push((candidate.kind.clone(), vec![&answers.verdicts]));
                }
            }
            Rival::find(&cases, &runs, &beside)
        });
        let rated: Vec<(String, &[Verdict])> = candidates
            .iter()
            .zip(&results)
            .map(|(candidate, (_, answers))| (candidate.name.clone(), &answers.verdicts[..]))
            .chain(beside.iter().map(|asked| (format!("*{}*", asked.baseline.name), &asked.verdicts[..])))
            .collect();
        let without_repeats = describe_without_repeats(&data, &cases, &rated);
        let evaluations: Vec<Evaluation> = results.into_iter().map(|(evaluation, _)| evaluation).collect();
        let pairs = pair_table(&evaluations);
        let table = Table::new(&evaluations, baselines, of_new, None)?;
        print!("{}", table.markdown());
        if let Some(pairs) = pairs {
            print!("\n{pairs}");
        }
        if let Some(text) = without_repeats {
            print!("\n{text}");
        }
        if self.baselines.is_some() {
            print_lines(&table.losses());
        }
        if cases.as_slice().len() < FEW {
            let named = candidates.iter().map(|candidate| candidate.name.clone());
            let methods = named.zip(evaluations.iter().map(|evaluation| &evaluation.summary));
            let others =
                beside.iter().map(|asked| (format!("*{}*", asked.baseline.name), &asked.baseline.summary));
            print_few(&cases, &methods.chain(others).collect::<Vec<_>>());
            let runs = candidates.into_iter().filter_map(|candidate| Some((candidate.name, candidate.run?)));
            let runs: Vec<(String, RunFolder)> = runs.collect();
            if !runs.is_empty() && !self.without_profiles && self.new_in.is_none() {
                return cross_validate(&runtime, &self.data, &runs);
            }
        }
        print_rivals(&rivals);
        Ok(())
    }
}

/// The figures without the outfits that repeat one to learn from, if there are some.
fn describe_without_repeats(data: &Data, cases: &Cases, answers: &[(String, &[Verdict])]) -> Option<String> {
    let repeated = data.repeated();
    if repeated.is_empty() {
        return None;
    }
    let (rest, places) = cases.select(|case| !repeated.contains(&case.outfit));
    let of_rest: Vec<(String, Vec<Verdict>)> = answers
        .iter()
        .map(|(name, verdicts)| (name.clone(), places.iter().map(|&place| verdicts[place]).collect()))
        .collect();
    let of_rest: Vec<(String, &[Verdict])> =
        of_rest.iter().map(|(name, verdicts)| (name.clone(), &verdicts[..])).collect();
    Some(format!(
        "{} of {} outfits repeat one to learn from ({REPEATED}). Without them:\n\n{}",
        repeated.len(),
        data.validation().len(),
        table_of_answers(&rest, &of_rest)
    ))
}

/// Warns of a split with few slots, and shows the intervals of its figures.
fn print_few(cases: &Cases, lines: &[(String, &Summary)]) {
    println!(
        "\n**Only {} slots**: figures of fewer than {FEW} say little. With 95 % intervals:\n\n{}",
        cases.as_slice().len(),
        interval_table(lines, cases.by_outfit().count())
    );
}

/// Trains and asks the runs again, so that every outfit is asked once.
fn cross_validate(runtime: &OnnxRuntime, data: &Path, runs: &[(String, RunFolder)]) -> Result<()> {
    let start = Instant::now();
    let stop = stop_on_signal()?;
    let mut watch = Watch { clock: &|| start.elapsed().as_secs_f64(), stop: &stop, on_event: &mut |_| {} };
    let tell = |fold: usize, name: &str| eprintln!("fold {fold} of {FOLDS}: {name}");
    let Some(folds) = Folds::make(runtime, data, runs, &mut watch, &tell)? else {
        eprintln!("interrupted; the same command goes on with it");
        process::exit(130);
    };
    let (text, rivals) = folds.describe();
    print!("{text}");
    print_rivals(&rivals);
    Ok(())
}

fn print_rivals(rivals: &[Rival]) {
    let mut lines: Vec<String> = describe_rivals(rivals).iter().map(|line| format!("- {line}")).collect();
    if lines.is_empty() {
        lines.push("No baseline is ahead of a method.".to_owned());
    }
    print_lines(&lines);
}

/// Says which baselines are better, or may be, and how to release one that is.
pub(super) fn describe_rivals(rivals: &[Rival]) -> Vec<String> {
    let mut lines: Vec<String> = rivals.iter().map(Rival::describe).collect();
    let better = rivals.iter().filter(|rival| rival.is_better());
    let served = better.filter_map(|rival| ServedBaseline::from_str(&rival.baseline, false).ok());
    lines.extend(served.map(ServedBaseline::name).collect::<BTreeSet<&str>>().into_iter().map(|name| {
        let without = if name == "logit" { ", without whole outfits" } else { "" };
        format!("`atelier-training release --baseline {name}` releases {name} as a method{without}")
    }));
    lines
}

/// The questions of the validation split.
///
/// # Errors
/// If there are none.
pub(super) fn cases(data: &Data) -> Result<Cases> {
    let cases = Cases::of_validation(data);
    if cases.is_empty() {
        bail!(
            "{} has no outfit in the split \"validation\", so nothing can be evaluated; `atelier-training import` \
             draws a split if the files name none",
            data.name()
        );
    }
    Ok(cases)
}

pub fn runtime() -> Result<OnnxRuntime> {
    Ok(OnnxRuntime::load(&cache_folder(), |notice| eprintln!("{notice}"))?)
}

/// Exports each run's best weights to its folder.
fn export_runs(folders: &[PathBuf], data: &Data) -> Result<Vec<Candidate>> {
    if let Some((_, folder)) =
        folders.iter().enumerate().find(|(place, folder)| folders[..*place].contains(folder))
    {
        bail!("--runs lists {} twice", folder.display());
    }
    let runs: Vec<RunFolder> = folders.iter().map(RunFolder::new).collect();
    note_unfinished(&runs)?;
    let configs = runs.iter().map(RunFolder::config).collect::<Result<Vec<_>>>()?;
    let mut candidates = Vec::new();
    for (run, config) in runs.into_iter().zip(&configs) {
        let metadata = Metadata { release: String::new(), storage: Storage::Float32 };
        let method = export_run(&run, config, data, &metadata, run.path())?;
        let release = Arc::new(assemble(run.path(), "", data, method.clone())?);
        let name_of = |config: &RunConfig| name(config.model.method, config.fit.attributes);
        let (mut name, seed, attributes) = (name_of(config), config.fit.seed, config.fit.attributes);
        let named_alike = || configs.iter().filter(|config| name_of(config) == name);
        if named_alike().filter(|config| config.fit.seed == seed).count() > 1 {
            name = format!("{name}-{}", run.path().display());
        } else if named_alike().count() > 1 {
            name = format!("{name}-{seed}");
        }
        candidates.push(Candidate {
            name,
            kind: name_of(config),
            release,
            method,
            seed: Some(seed),
            attributes,
            run: Some(run),
        });
    }
    Ok(candidates)
}

/// Says which runs could go on.
pub(super) fn note_unfinished(runs: &[RunFolder]) -> Result<()> {
    for run in runs {
        if let Some(reason) = run.unfinished()? {
            eprintln!("note: {reason}");
        }
    }
    Ok(())
}

fn models_of_release(folder: &Path, data: &Data) -> Result<Vec<Candidate>> {
    let release = Arc::new(Release::open(folder)?);
    if !release.vocabulary().iter().eq(data.vocabulary().iter().take(data.count_known())) {
        bail!("{} has other articles than {}, or has them in another order", folder.display(), data.name());
    }
    if release.schema().features() != data.schema().features() {
        bail!("{} has another schema than {}", folder.display(), data.name());
    }
    let methods = release.manifest().methods.iter();
    Ok(methods
        .map(|entry| Candidate {
            name: entry.method.to_string(),
            kind: entry.method.to_string(),
            release: Arc::clone(&release),
            method: entry.clone(),
            seed: None,
            attributes: false,
            run: None,
        })
        .collect())
}

pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("the figures")? + "\n";
    files::write(path, text.as_bytes())
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}
