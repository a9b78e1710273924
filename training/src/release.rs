//! Making a release: what is served together, measured as it is stored, in a folder that appears whole.
//!
//! Runs and their data come in; a folder goes out that [`atelier::models::release::Release`] opens. The figures
//! in it are those of the very files in it.

mod commands;
mod figures;

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, bail};
use atelier::{
    domain::{Article, Customer, Method, Outfit, Schema, Split},
    files::{Columns, Format, SCHEMA, Table, Writer},
    models::{
        onnx_runtime::OnnxRuntime,
        release::{DataSource, FORMAT, FileEntry, MANIFEST, Manifest, MethodEntry, Release},
    },
    service::evaluation::{FIGURES, RANKS},
    util::{calendar::rfc3339, digest},
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::commands::{fit_command, world_command};
use self::figures::Figures;
use crate::{
    baselines::Baseline,
    data::{Data, Folder},
    evaluate::{Answers, Cases, Evaluation, PairCases, ask, ask_pairs, compare, write_ranks},
    export::{Metadata, Storage, export, export_pair},
    files::{self, NewFolder},
    fit::{RunConfig, RunFolder},
    random::{Table as Randomness, choose},
};

/// What a release is made of.
#[derive(Debug)]
pub struct Plan<'a> {
    pub name: &'a str,
    pub data: &'a Data,
    /// Where the data was read, for the rows that go into the release.
    pub folder: &'a Path,
    /// Of several runs of one method, the one that did best on the development split is taken.
    pub runs: &'a [RunFolder],
    pub baselines: Vec<Baseline>,
    pub storage: Storage,
    /// The method that answers where none is named; the best on the development split if not given.
    pub default_method: Option<Method>,
    /// Customers of the validation split that are put beside the models, so that a service that knows
    /// nobody yet has somebody to show.
    pub customers: usize,
    /// The command that makes it.
    pub command: String,
    pub created: SystemTime,
}

/// A run that was chosen.
struct Chosen<'a> {
    run: &'a RunFolder,
    config: RunConfig,
    epoch: u32,
    development: f64,
}

impl Plan<'_> {
    /// Makes the release in a folder of its name under `out`. `tell` hears the method that is measured
    /// and how many cases are done.
    ///
    /// # Errors
    /// If the name is taken, a run is of other data, or the made folder cannot be opened as a release.
    pub fn make(
        &self,
        runtime: &OnnxRuntime,
        out: &Path,
        tell: &(dyn Fn(Method, usize) + Sync),
    ) -> Result<PathBuf> {
        let chosen = self.choose()?;
        let place = out.join(self.name);
        let folder = NewFolder::begin(&place)?;
        let cases = Cases::of_validation(self.data);
        // Counted only where a run learned from pairs.
        let mut pairs: Option<Option<PairCases>> = None;
        let mut results: Vec<(Evaluation, Answers)> = Vec::new();
        for Chosen { run, config, .. } in &chosen {
            let method = config.model.method;
            let path = folder.path().join(file_of(method));
            let metadata = Metadata { release: self.name.to_owned(), storage: self.storage };
            let model = run.best()?;
            export(&model, &metadata, &path)?;
            let answers = ask(runtime, &path, self.data, &cases, &|done| tell(method, done))?;
            let mut evaluation = Evaluation::new(self.data, &cases, &answers, Some(config.fit.seed));
            evaluation.attributes = config.fit.attributes;
            let path = folder.path().join(pair_file_of(method));
            if export_pair(&model, &metadata, &path)?.is_some()
                && let Some(cases) = pairs.get_or_insert_with(|| PairCases::of_validation(self.data))
            {
                evaluation.pair = Some(ask_pairs(runtime, &path, self.data, cases)?);
            }
            results.push((evaluation, answers));
        }
        let mut comparison = compare(self.data, &cases, &results, self.baselines.clone());
        // A release has one run a method, and who reads it knows methods alone.
        comparison.name_methods_alone();
        let evaluations = results.iter().map(|(evaluation, _)| evaluation).collect();
        let configurations = chosen.iter().map(|chosen| &chosen.config).collect();
        let figures = Figures { comparison: &comparison, evaluations, configurations }.brief()?;
        files::put(&folder.path().join(FIGURES), figures.as_bytes())?;
        let named: Vec<(String, &Answers)> =
            results.iter().map(|(of, answers)| (of.about.method.to_string(), answers)).collect();
        write_ranks(&folder.path().join(RANKS), self.data, &cases, &named)?;
        self.write_tables(folder.path())?;
        let manifest = self.manifest(folder.path(), &chosen, &results)?;
        put_json(&folder.path().join(MANIFEST), &manifest)?;
        Release::open(folder.path()).context("the release that was made does not open; this is a bug")?;
        folder.finish()?;
        Ok(place)
    }

    /// One run a method, in the methods' own order.
    fn choose(&self) -> Result<Vec<Chosen<'_>>> {
        let mut best: BTreeMap<Method, Chosen<'_>> = BTreeMap::new();
        for run in self.runs {
            let config = run.config()?;
            if config.data.fingerprint != self.data.fingerprint() {
                bail!(
                    "{} was fitted to data with fingerprint {}, {} has {}: a release is of one data",
                    run.path().display(),
                    config.data.fingerprint,
                    self.data.name(),
                    self.data.fingerprint()
                );
            }
            let epochs = run.epochs()?;
            let Some(record) = epochs.iter().rfind(|epoch| epoch.best) else {
                bail!("{} has not finished an epoch; go on with `fit --resume`", run.path().display());
            };
            let chosen =
                Chosen { run, epoch: record.epoch, development: record.development.cross_entropy, config };
            let method = chosen.config.model.method;
            if best.get(&method).is_none_or(|other| chosen.development < other.development) {
                best.insert(method, chosen);
            }
        }
        if best.is_empty() {
            bail!("a release needs at least one run");
        }
        Ok(best.into_values().collect())
    }

    /// The schema, the articles in the vocabulary's order, and some customers with their outfits.
    fn write_tables(&self, target: &Path) -> Result<()> {
        fs::write(target.join(SCHEMA), self.data.schema().source()).context("cannot write the schema")?;
        let data = self.data;
        let theirs: HashSet<u32> = data.validation().iter().map(|&o| data.outfits().customer(o)).collect();
        let theirs: Vec<u32> = theirs.into_iter().collect();
        let shown = choose(1, Randomness::Shown, &theirs, self.customers);
        let ids: HashSet<&str> = shown.iter().map(|&c| data.customers()[c as usize].as_str()).collect();
        let mut folder = Folder::open(self.folder)?;
        let schema = self.data.schema();
        let mut articles = new_table::<Article>(target, schema)?;
        let mut customers = new_table::<Customer>(target, schema)?;
        let mut outfits = new_table::<Outfit>(target, schema)?;
        folder.articles(|row| Ok(articles.write(&row)?))?;
        folder.customers(|row| {
            if ids.contains(row.id.as_str()) {
                customers.write(&row)?;
            }
            Ok(())
        })?;
        folder.outfits(|row| {
            if row.split == Some(Split::Validation) && ids.contains(row.customer.as_str()) {
                outfits.write(&row)?;
            }
            Ok(())
        })?;
        articles.finish()?;
        customers.finish()?;
        Ok(outfits.finish()?)
    }

    fn manifest(
        &self,
        target: &Path,
        chosen: &[Chosen<'_>],
        results: &[(Evaluation, Answers)],
    ) -> Result<Manifest> {
        let best = chosen
            .iter()
            .min_by(|a, b| a.development.total_cmp(&b.development))
            .map(|chosen| chosen.config.model.method)
            .expect("there is a run; this is a bug");
        let methods = chosen.iter().zip(results).map(|(chosen, (evaluation, _))| MethodEntry {
            method: evaluation.about.method,
            file: file_of(evaluation.about.method),
            pair: chosen.config.model.pair.then(|| pair_file_of(evaluation.about.method)),
            parameters: evaluation.about.parameters,
            metrics: metrics(chosen, evaluation),
        });
        let mut commands: Vec<String> = world_command(self.folder).into_iter().collect();
        for Chosen { config, run, .. } in chosen {
            commands.push(fit_command(config, run.path(), self.data)?);
        }
        commands.push(self.command.clone());
        Ok(Manifest {
            format: FORMAT,
            name: self.name.to_owned(),
            created: rfc3339(self.created),
            commands,
            data: DataSource {
                name: self.data.name().to_owned(),
                fingerprint: self.data.fingerprint().to_owned(),
            },
            schema: SCHEMA.to_owned(),
            articles: table_file::<Article>(),
            default_method: self.default_method.unwrap_or(best),
            methods: methods.collect(),
            files: entries(target)?,
        })
    }
}

fn file_of(method: Method) -> String {
    format!("{method}.onnx")
}

fn pair_file_of(method: Method) -> String {
    format!("{method}.pair.onnx")
}

fn new_table<T: Table>(target: &Path, schema: &Schema) -> Result<Writer<T>> {
    Ok(Writer::create(&target.join(table_file::<T>()), Format::JsonLines, &Columns::new(schema))?)
}

fn table_file<T: Table>() -> String {
    format!("{}.{}", T::NAME, Format::JsonLines)
}

/// What a list of methods shows of each; `evaluation.json` has everything.
fn metrics(chosen: &Chosen<'_>, evaluation: &Evaluation) -> Map<String, Value> {
    let summary = &evaluation.summary;
    let mut metrics = json!({
        "outfits": evaluation.outfits,
        "slots": summary.slots,
        "cross_entropy": summary.cross_entropy,
        "recall_at_1": summary.recall_at_1,
        "recall_at_5": summary.recall_at_5,
        "recall_at_250": summary.recall_at_250,
        "mrr": summary.mrr,
        "ndcg_at_10": summary.ndcg_at_10,
        "coverage_at_5": evaluation.coverage_at_5,
        "calibration_error": evaluation.calibration.expected_error,
        "seed": chosen.config.fit.seed,
        "epoch": chosen.epoch,
        "development_cross_entropy": chosen.development,
    });
    if let Some(steps) = evaluation.steps {
        metrics["steps"] = steps.into();
    }
    if let Some(pair) = &evaluation.pair {
        metrics["pair"] = json!({
            "pairs": pair.figures.pairs,
            "accuracy": pair.figures.accuracy,
            "auc": pair.figures.auc,
            "parameters": pair.about.parameters,
        });
    }
    let Value::Object(metrics) = metrics else { unreachable!("an object was made; this is a bug") };
    metrics
}

fn entries(folder: &Path) -> Result<BTreeMap<String, FileEntry>> {
    let mut entries = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        let about = || Ok::<_, std::io::Error>((fs::metadata(&path)?.len(), digest::sha256_of_file(&path)?));
        let (bytes, sha256) = about().with_context(|| path.display().to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        entries.insert(name, FileEntry { bytes, sha256 });
    }
    Ok(entries)
}

fn put_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("the figures")? + "\n";
    files::put(path, text.as_bytes())
}
