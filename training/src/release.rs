//! Makes a release: the models of chosen runs, measured as they are stored, in one folder.
//!
//! Runs and their data come in; a folder that [`atelier_engine::release::Release`] opens goes out. Its figures are
//! measured on the files in it.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, bail};
use atelier_core::{
    domain::{Article, Customer, FeatureValue, Method, Outfit, Schema, Split, list_methods},
    util::{calendar::rfc3339, digest},
};
use atelier_engine::{
    evaluation::{FIGURES, LEAST_SLOTS, RANKS, pack_segments},
    onnx_runtime::OnnxRuntime,
    release::{DataSource, FORMAT, FileEntry, MANIFEST, Manifest, MethodEntry, Release, check_name},
};
use atelier_files::{Format, SCHEMA, Table, TableColumns, Writer};
use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use crate::{
    baselines::{Asked, beside_methods},
    data::{Data, Folder},
    evaluate::{
        Answers, Cases, Comparison, Evaluation, NewArticles, PairCases, Rival, Subject, compare, measure,
        write_ranks,
    },
    export::{Metadata, ServedBaseline, Storage, export, export_baseline, export_pair},
    files::{self, NewFolder},
    fit::{FitConfig, Overrides, RunConfig, RunFolder},
    random::{Table as Randomness, choose},
    synthesise::is_world,
    world::invented,
};

/// The file of the article encoder.
const ENCODER: &str = "encoder.json";

/// The contents of a release.
#[derive(Debug)]
pub struct Plan<'a> {
    pub name: &'a str,
    pub data: &'a Data,
    /// The data's folder, for the rows that go into the release.
    pub folder: &'a Path,
    /// Of several runs of one method, the best on the development split is released.
    pub runs: &'a [RunFolder],
    /// Baselines to release as methods of their names.
    pub served: &'a [ServedBaseline],
    /// On the validation split.
    pub baselines: Vec<Asked>,
    pub storage: Storage,
    /// The method that answers if a request names none; by default the best on the development split.
    pub default_method: Option<Method>,
    /// The number of customers of the validation split to include, as examples for an empty database. With none the release
    /// names no customer.
    pub customers: usize,
    /// The command that makes the release, for the manifest.
    pub command: String,
    /// Further files, by name.
    pub beside: Vec<(&'static str, String)>,
    pub created: SystemTime,
}

/// A method, and its cross-entropy on the development split.
struct Chosen<'a> {
    made: Made<'a>,
    development: f64,
}

enum Made<'a> {
    /// The best run of a method.
    Run {
        run: &'a RunFolder,
        config: Box<RunConfig>,
        epoch: u32,
    },
    Baseline(ServedBaseline),
}

impl Chosen<'_> {
    fn method(&self) -> Method {
        match &self.made {
            Made::Run { config, .. } => config.model.method,
            Made::Baseline(baseline) => baseline.method(),
        }
    }

    fn config(&self) -> Option<&RunConfig> {
        match &self.made {
            Made::Run { config, .. } => Some(config),
            Made::Baseline(_) => None,
        }
    }
}

impl Plan<'_> {
    /// Makes the release in a folder of its name under `out`. Calls `tell` with the method being measured
    /// and the number of cases done. Returns the folder, and the baselines that are ahead.
    pub fn make(
        &self,
        runtime: &OnnxRuntime,
        out: &Path,
        tell: &(dyn Fn(Method, usize) + Sync),
    ) -> Result<(PathBuf, Vec<Rival>)> {
        check_name(self.name).map_err(anyhow::Error::msg)?;
        let chosen = self.choose_runs()?;
        let methods: Vec<Method> = chosen.iter().map(Chosen::method).collect();
        if let Some(method) = self.default_method.filter(|method| !methods.contains(method)) {
            bail!("no run is of the default method {method}; the runs are of {}", list_methods(methods));
        }
        let place = out.join(self.name);
        let folder = NewFolder::new(&place)?;
        let cases = Cases::of_validation(self.data);
        let configs = || chosen.iter().filter_map(Chosen::config);
        let has_pairs = configs().any(|config| config.model.pair);
        let pairs = has_pairs.then(|| PairCases::of_validation(self.data)).flatten();
        let mut results: Vec<(Evaluation, Answers)> = Vec::new();
        let mut methods = Vec::new();
        for chosen in &chosen {
            let method = chosen.method();
            let entry = match &chosen.made {
                Made::Run { run, config, .. } => {
                    let metadata = Metadata { release: self.name.to_owned(), storage: self.storage };
                    export_run(run, config, self.data, &metadata, folder.path())?
                }
                Made::Baseline(baseline) => {
                    let file = format!("{method}.onnx");
                    let parameters =
                        export_baseline(*baseline, self.data, self.name, &folder.path().join(&file))?;
                    MethodEntry { method, file, tables: None, pair: None, parameters, metrics: Map::new() }
                }
            };
            let release = assemble(folder.path(), self.name, self.data, entry.clone())?;
            let subject = Subject::new(self.data, &release, &entry);
            let tell = |done| tell(method, done);
            let (mut evaluation, answers) =
                measure(runtime, &subject, self.data, &cases, pairs.as_ref(), &tell)?;
            evaluation.seed = chosen.config().map(|config| config.fit.seed);
            evaluation.attributes = chosen.config().is_some_and(|config| config.fit.attributes);
            results.push((evaluation, answers));
            methods.push(entry);
        }
        let baselines = self.baselines.iter().map(|asked| asked.baseline.clone()).collect();
        let mut comparison = compare(self.data, &cases, &results, baselines);
        let runs = results.iter().map(|(evaluation, answers)| {
            (evaluation.about.method.to_string(), vec![answers.verdicts.as_slice()])
        });
        let rivals = Rival::find(&cases, &runs.collect::<Vec<_>>(), &self.baselines);
        if let Some(new) = NewArticles::find(self.data) {
            comparison.new_article_baselines = new.baselines(self.data);
        }
        // A release has one run per method, so its figures name methods only.
        comparison.name_methods_alone();
        let evaluations = results.iter().map(|(evaluation, _)| evaluation).collect();
        let configurations = configs().collect();
        let figures = Figures { comparison: &comparison, evaluations, configurations }.to_rounded_json()?;
        files::write(&folder.path().join(FIGURES), figures.as_bytes())?;
        let named: Vec<(String, &Answers)> = results
            .iter()
            .map(|(evaluation, answers)| (evaluation.about.method.to_string(), answers))
            .collect();
        // They name customers.
        if self.customers > 0 {
            write_ranks(&folder.path().join(RANKS), self.data, &cases, &named)?;
        }
        self.write_tables(folder.path())?;
        if configs().any(|config| config.fit.attributes) {
            let encoder = self.data.attributes().encoder().to_json();
            files::write(&folder.path().join(ENCODER), encoder.as_bytes())?;
        }
        for (name, text) in &self.beside {
            files::write(&folder.path().join(name), text.as_bytes())?;
        }
        let manifest = self.manifest(folder.path(), &chosen, &results, methods)?;
        put_json(&folder.path().join(MANIFEST), &manifest)?;
        Release::open(folder.path()).context("the new release cannot be opened")?;
        folder.finish()?;
        Ok((place, rivals))
    }

    /// The best run of each method, in the methods' order, then baselines.
    fn choose_runs(&self) -> Result<Vec<Chosen<'_>>> {
        let mut best: BTreeMap<Method, Chosen<'_>> = BTreeMap::new();
        for run in self.runs {
            let config = run.config()?;
            if config.data.fingerprint != self.data.fingerprint() {
                bail!(
                    "{} was fitted to data with fingerprint {}, but {} has {}: all runs of a release need the same data",
                    run.path().display(),
                    config.data.fingerprint,
                    self.data.name(),
                    self.data.fingerprint()
                );
            }
            let Some((epoch, development)) = run.best_epoch()? else {
                bail!("{} has not finished an epoch; continue it with `fit --resume`", run.path().display());
            };
            let method = config.model.method;
            let chosen = Chosen { made: Made::Run { run, config: Box::new(config), epoch }, development };
            if best.get(&method).is_none_or(|other| chosen.development < other.development) {
                best.insert(method, chosen);
            }
        }
        let data = self.data;
        let asked = if self.served.is_empty() { vec![] } else { beside_methods(data, data.development()) };
        for &baseline in self.served {
            let asked = asked.iter().find(|asked| asked.baseline.name == baseline.name());
            let asked = asked.expect("every baseline that is served is asked");
            let development = asked.baseline.summary.cross_entropy.mean;
            best.insert(baseline.method(), Chosen { made: Made::Baseline(baseline), development });
        }
        if best.is_empty() {
            bail!("a release needs at least one run or baseline");
        }
        Ok(best.into_values().collect())
    }

    /// Writes the schema, the articles in the vocabulary's order, and some customers with their outfits.
    fn write_tables(&self, target: &Path) -> Result<()> {
        fs::write(target.join(SCHEMA), self.data.schema().source()).context("cannot write the schema")?;
        let data = self.data;
        let customers: HashSet<u32> = data.validation().iter().map(|&o| data.outfits().customer(o)).collect();
        let customers: Vec<u32> = customers.into_iter().collect();
        let shown = choose(1, Randomness::Shown, &customers, self.customers);
        let ids: HashSet<&str> = shown.iter().map(|&c| data.customers()[c as usize].as_str()).collect();
        let mut folder = Folder::open(self.folder)?;
        let schema = self.data.schema();
        let mut articles = new_table::<Article>(target, schema)?;
        let mut customers = new_table::<Customer>(target, schema)?;
        let mut outfits = new_table::<Outfit>(target, schema)?;
        for (number, article) in (0..).zip(data.articles()) {
            // Own vectors include the embeddings of known articles.
            if data.is_known(number) {
                articles.write(&article.clone().with_embedding(None))?;
            } else {
                articles.write(article)?;
            }
        }
        // Customers and outfits are read after them.
        folder.articles(|_| Ok(()))?;
        let (of_world, mut place) = (is_world(self.folder), 0);
        folder.customers(|mut row| {
            if ids.contains(row.id.as_str()) {
                if of_world {
                    let gender = row.features.get("gender").and_then(|gender| gender.words().first());
                    let name = invented(place, gender.map(String::as_str));
                    row.features.insert("name", FeatureValue::Text(name));
                    place += 1;
                }
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
        methods: Vec<MethodEntry>,
    ) -> Result<Manifest> {
        let best = chosen
            .iter()
            .min_by(|a, b| a.development.total_cmp(&b.development))
            .map(Chosen::method)
            .expect("there is a method");
        let methods = chosen.iter().zip(results).zip(methods).map(|((chosen, (evaluation, _)), entry)| {
            MethodEntry { metrics: metrics(chosen, evaluation), ..entry }
        });
        let mut commands: Vec<String> = world_command(self.folder).into_iter().collect();
        for chosen in chosen {
            if let Made::Run { run, config, .. } = &chosen.made
                && !run.is_continued()
            {
                commands.push(fit_command(config, run.path(), self.data)?);
            }
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
            known: count_known(self.data),
            encoder: target.join(ENCODER).is_file().then(|| ENCODER.to_owned()),
            default_method: self.default_method.unwrap_or(best),
            methods: methods.collect(),
            files: entries(target)?,
        })
    }
}

/// Exports a run's best weights, under the method's name.
pub(crate) fn export_run(
    run: &RunFolder,
    config: &RunConfig,
    data: &Data,
    metadata: &Metadata,
    folder: &Path,
) -> Result<MethodEntry> {
    let method = config.model.method;
    let file = |extension: &str| format!("{method}.{extension}");
    let [trunk, tables, pair] = ["onnx", "safetensors", "pair.onnx"].map(file);
    let model = run.best_for(data)?;
    let parameters = export(&model, metadata, &folder.join(&trunk))?;
    let pair = export_pair(&model, metadata, &folder.join(&pair))?.map(|_| pair);
    Ok(MethodEntry { method, file: trunk, tables: Some(tables), pair, parameters, metrics: Map::new() })
}

/// A release of one method whose files were just written, to measure it.
///
/// # Errors
/// If the data has an article twice.
pub fn assemble(folder: &Path, name: &str, data: &Data, method: MethodEntry) -> Result<Release> {
    let manifest = Manifest {
        format: FORMAT,
        name: name.to_owned(),
        created: String::new(),
        commands: Vec::new(),
        data: DataSource { name: data.name().to_owned(), fingerprint: data.fingerprint().to_owned() },
        schema: SCHEMA.to_owned(),
        articles: table_file::<Article>(),
        known: count_known(data),
        encoder: None,
        default_method: method.method,
        methods: vec![method],
        files: BTreeMap::new(),
    };
    let encoder = data.attributes().encoder().clone();
    Ok(Release::assemble(folder, manifest, data.schema().clone(), data.articles(), Some(encoder))?)
}

/// The number of articles that models know, if there are others.
fn count_known(data: &Data) -> Option<usize> {
    Some(data.count_known()).filter(|known| *known < data.articles().len())
}

fn new_table<T: Table>(target: &Path, schema: &Schema) -> Result<Writer<T>> {
    Ok(Writer::create(&target.join(table_file::<T>()), Format::JsonLines, &TableColumns::new(schema))?)
}

fn table_file<T: Table>() -> String {
    format!("{}.{}", T::NAME, Format::JsonLines)
}

/// A method's figures for the manifest; `evaluation.json` has all of them.
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
        "development_cross_entropy": chosen.development,
    });
    if let Made::Run { config, epoch, .. } = &chosen.made {
        metrics["seed"] = config.fit.seed.into();
        metrics["epoch"] = (*epoch).into();
    }
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
    let Value::Object(metrics) = metrics else { unreachable!("an object was made") };
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
    files::write(path, text.as_bytes())
}

/// The content of `evaluation.json`.
#[derive(Debug, Serialize)]
struct Figures<'a> {
    comparison: &'a Comparison,
    evaluations: Vec<&'a Evaluation>,
    /// All settings of the chosen runs.
    configurations: Vec<&'a RunConfig>,
}

impl Figures<'_> {
    /// JSON on one line, with numbers of four digits: pages show fewer, and a release should be small.
    fn to_rounded_json(&self) -> Result<String> {
        fn round(value: &mut Value) {
            match value {
                Value::Number(number) if number.is_f64() => {
                    let rounded = number.as_f64().and_then(|number| format!("{number:.3e}").parse().ok());
                    *value = rounded.and_then(Number::from_f64).map_or(Value::Null, Value::Number);
                }
                Value::Array(values) => values.iter_mut().for_each(round),
                Value::Object(fields) => fields.values_mut().for_each(round),
                _ => {}
            }
        }
        let mut value = serde_json::to_value(self).context("the figures")?;
        // Segments of fewer slots say too little to choose a method by.
        let evaluations = value["evaluations"].as_array_mut().into_iter().flatten();
        for segments in evaluations.filter_map(|evaluation| evaluation["segments"].as_array_mut()) {
            segments.retain(|segment| segment["summary"]["slots"].as_u64() >= Some(LEAST_SLOTS));
        }
        pack_segments(&mut value);
        round(&mut value);
        Ok(format!("{value}\n"))
    }
}

/// The command that made the data, if it is a synthetic world.
fn world_command(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("world.json")).ok()?;
    let world: Value = serde_json::from_str(&text).ok()?;
    Some(format!("{} --out {}", world["command"].as_str()?, folder.display()))
}

/// The command that makes a run.
fn fit_command(config: &RunConfig, run: &Path, data: &Data) -> Result<String> {
    let RunConfig { fit, model, .. } = config;
    let folder = &config.data.folder;
    let by_flags = |settings: &mut FitConfig| {
        (settings.seed, settings.epochs, settings.shorten) = (fit.seed, fit.epochs, fit.shorten);
        (settings.batch, settings.learning_rate) = (fit.batch, fit.learning_rate);
        (settings.warm_up, settings.patience) = (fit.warm_up, fit.patience);
        settings.attributes = fit.attributes;
    };
    let plain = RunConfig::new(model.method, data, folder, Overrides::default(), by_flags)?;
    let settings = config.differences(&plain).into_iter().filter_map(|difference| {
        let value = difference.ours?;
        Some(format!(" --set {}", quote(&format!("{}={value}", difference.key))))
    });
    Ok(format!(
        "atelier-training fit --method {} --seed {} --data {} {} --batch {} --learning-rate {} \
         --warm-up {} --patience {}{} --run {}{}",
        model.method,
        fit.seed,
        folder.display(),
        // The flag turns `shorten` off.
        if fit.shorten {
            format!("--set fit.epochs={} --set fit.shorten=true", fit.epochs)
        } else {
            format!("--epochs {}", fit.epochs)
        },
        fit.batch,
        fit.learning_rate,
        fit.warm_up,
        fit.patience,
        if fit.attributes { " --attributes" } else { "" },
        run.display(),
        settings.collect::<String>(),
    ))
}

/// Quotes an argument for a shell.
fn quote(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "._=-".contains(c)) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
