//! `atelier complete`: completes outfits from files into files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use atelier_core::{
    domain::{Article, Method, RuleName, list_methods},
    util::{clock::Clock, text::describe_error},
};
use atelier_engine::{
    catalogue::{Catalogue, Coverage},
    inference::{self, Engine, Models, Serving},
};
use atelier_files::{Checker, Dialect};
use clap::Args;
use futures_util::TryStreamExt;
use indicatif::HumanCount;

use super::{
    ModelFlags, Settings,
    import::{DialectFlags, bad_rows, row_or_rows},
    name_setting,
    progress::Progress,
    serve::read_synonyms,
};
use crate::{
    completion::{
        Filters, MAX_K, MAX_VARIED,
        offline::{BATCH, CountedWarning, Done, Job, Profiles, Share, Wanted, complete_part, find_parts},
        rules::{Rule, Rules},
    },
    platform::db::Store,
    releases::routing::Holdout,
    steering::documents::read_all,
};

#[derive(Debug, Args)]
pub(super) struct Complete {
    /// Folder of parts: Parquet or JSON Lines with `customer`, `articles` (an empty entry is a blank) and features.
    #[arg(long, value_name = "DIR")]
    input: PathBuf,
    /// Folder for the completed parts; parts that exist are skipped.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Method [default: the release's].
    #[arg(long)]
    method: Option<Method>,
    /// Suggestions for each blank.
    #[arg(long, default_value_t = 10)]
    k: usize,
    /// Read customers from a file instead of the database; the parts have the features of others.
    #[arg(long, value_name = "FILE")]
    customers: Option<PathBuf>,
    /// Read the catalogue from a file instead of the database [default with --customers: the release's].
    #[arg(long, value_name = "FILE")]
    articles: Option<PathBuf>,
    /// Complete a share of the parts, for one of several processes: 0/4 takes the first, fifth, ninth and so on.
    #[arg(long, value_name = "INDEX/COUNT", default_value = "0/1")]
    share: Share,
    /// Leave out bad rows; otherwise a part with bad rows is not written.
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    dialect: DialectFlags,
    #[command(flatten)]
    filters: FilterFlags,
    /// From 0 (most likely articles) to 1 (most different articles).
    #[arg(long, default_value_t = 0.0)]
    diversity: f64,
    #[command(flatten)]
    pub(super) models: ModelFlags,
}

#[derive(Debug, Args)]
struct FilterFlags {
    /// Lowest price of suggested articles.
    #[arg(long, value_name = "PRICE")]
    min_price: Option<f64>,
    /// Highest price of suggested articles.
    #[arg(long, value_name = "PRICE")]
    max_price: Option<f64>,
    /// Also suggest articles that do not fit the customer, such as other sizes.
    #[arg(long)]
    allow_unfit: bool,
    /// Also suggest articles that are out of stock.
    #[arg(long)]
    allow_out_of_stock: bool,
    /// Suggest only articles in stock in this store.
    #[arg(long, value_name = "STORE", conflicts_with = "allow_out_of_stock")]
    store: Option<String>,
    /// Also suggest articles that the customer never wears, or owns.
    #[arg(long)]
    allow_no_gos: bool,
}

impl Complete {
    pub(super) async fn run(self, settings: Settings) -> Result<ExitCode> {
        self.check()?;
        let parts = find_parts(&self.input, self.share)?;
        fs::create_dir_all(&self.output).with_context(|| self.output.display().to_string())?;
        let mut missing = Vec::new();
        for input in parts {
            let output = self.output.join(input.file_name().expect("a file of a folder has a name"));
            if output.exists() {
                eprintln!("{}: already exists", output.display());
            } else {
                missing.push((input, output));
            }
        }
        // Avoids loading models for nothing.
        if missing.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let job = Arc::new(self.job(&settings).await?);
        let mut code = ExitCode::SUCCESS;
        for (input, output) in missing {
            match complete(&job, &input, &output).await {
                Ok(true) => {}
                Ok(false) => code = ExitCode::FAILURE,
                // The other parts may be readable.
                Err(error) => {
                    eprintln!("{}: not written: {}", output.display(), describe_error(error.as_ref()));
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    }

    /// Checks the flags that apply to every outfit.
    fn check(&self) -> Result<()> {
        let max = if self.diversity > 0.0 { MAX_VARIED } else { MAX_K };
        if !(1..=max).contains(&self.k) {
            bail!("--k must be from 1 to {max}, found {}", self.k);
        }
        if !(0.0..=1.0).contains(&self.diversity) {
            bail!("--diversity must be from 0 to 1, found {}", self.diversity);
        }
        if [self.filters.min_price, self.filters.max_price]
            .into_iter()
            .flatten()
            .any(|price| !price.is_finite() || price < 0.0)
        {
            bail!("--min-price and --max-price must be numbers from 0");
        }
        if let (Some(least), Some(most)) = (self.filters.min_price, self.filters.max_price)
            && least > most
        {
            bail!("--min-price {least} is above --max-price {most}");
        }
        Ok(())
    }

    async fn job(&self, all: &Settings) -> Result<Job> {
        let models = all.load_models(|notice| eprintln!("{notice}"))?;
        let config = &all.config;
        let engine = all.engine();
        let workers = engine.workers;
        let batch = match models {
            Models::Local(_) => config.engine.batch.max(BATCH),
            // The model server may not accept larger batches.
            Models::Remote(_) => config.engine.batch,
        };
        let settings = inference::Settings { batch, queue: Job::queue(workers), ..engine };
        let store = match (&self.customers, &self.articles) {
            (None, None) => Some(all.open_existing(all.database()?).await?),
            _ => None,
        };
        let release = self.models.choose_release(all, store.as_ref()).await?;
        let folder = config.models.folder.join(&release);
        let loaded = Engine::new(models, settings).load(&folder);
        let serving =
            loaded.map_err(|error| name_setting(error, config.engine.remote.is_some(), &all.origins))?;
        let method = self.method.unwrap_or(serving.release().manifest().default_method);
        if !serving.has(method) {
            let has = list_methods(serving.methods());
            bail!("release {release} has no method {method}; its methods are {has}");
        }
        let dialect = self.dialect.clone().into();
        let (articles, (rules, holdout), profiles) = self.sources(store, &serving, &dialect).await?;
        let release = serving.release();
        let catalogue = Catalogue::build_with(&articles, release, read_synonyms(all)?.into());
        let articles = Arc::new(serving.articles(catalogue.index().clone()));
        let rules = Arc::new(Rules::compile(rules, &catalogue, None));
        let Coverage { both, only_catalogue, .. } = catalogue.coverage();
        if only_catalogue > both {
            let others = if serving.is_open(method) { "new to it" } else { "never suggested" };
            eprintln!(
                "note: release {} was trained with {both} of the catalogue's {} articles; the others are {others}",
                release.manifest().name,
                both + only_catalogue
            );
        }
        let flags = &self.filters;
        let filters = Filters {
            least_price: flags.min_price,
            most_price: flags.max_price,
            store: flags.store.clone(),
            unfit: flags.allow_unfit,
            sold_out: flags.allow_out_of_stock,
            no_gos: flags.allow_no_gos,
            ..Filters::default()
        };
        let wanted =
            Wanted { method, k: self.k, filters, diversity: self.diversity, skip_bad: self.skip_bad };
        eprintln!("{method} of {} on {}, {workers} threads", release.manifest().name, serving.device());
        Ok(Job {
            serving: Arc::new(serving),
            catalogue: Arc::new(catalogue),
            articles,
            rules,
            holdout,
            bought_again: config.shop.bought_again.clone(),
            begun: Clock::default().now().into(),
            profiles,
            dialect,
            wanted,
            workers,
        })
    }

    /// Reads the database, unless a flag names a file.
    async fn sources(
        &self,
        store: Option<Store>,
        serving: &Serving,
        dialect: &Dialect,
    ) -> Result<(Vec<Article>, (Vec<(RuleName, Rule)>, Holdout), Profiles)> {
        let schema = serving.release().schema();
        if let Some(store) = store {
            let articles = store.articles().all().try_collect().await?;
            let rules = (read_all(&store).await?, Holdout::read(&store).await?);
            return Ok((articles, rules, Profiles::Stored(store)));
        }
        eprintln!("note: with files, the shop's rules are not read");
        let articles = match &self.articles {
            Some(path) => {
                let mut checker = Checker::new([], []);
                let articles = checker
                    .check(atelier_files::read_as::<Article>(path, schema, dialect)?)
                    .collect::<Result<_, _>>()?;
                for note in &checker.report().notes {
                    eprintln!("note: {note}");
                }
                if let Some(bad) = checker.report().errors.first() {
                    bail!("{bad}; bad rows: {}", checker.report().bad);
                }
                articles
            }
            None => serving.release().articles().iter().map(|article| article.unpack()).collect(),
        };
        let profiles = match &self.customers {
            Some(path) => Profiles::read(path, schema, dialect)?,
            None => Profiles::Held(std::collections::HashMap::new()),
        };
        Ok((articles, (Vec::new(), Holdout::default()), profiles))
    }
}

/// Completes a part. False if it was not written.
async fn complete(job: &Arc<Job>, input: &Path, output: &Path) -> Result<bool> {
    let began = Instant::now();
    let progress = Progress::new(input, 0);
    let Done { outfits, suggestions, bad, errors, warnings, more_warnings, unread, written } =
        complete_part(job, input, output, |at, total| progress.set_with_total(at, total)).await?;
    progress.finish();
    for (line, reason) in &errors {
        eprintln!("{}, row {line}: {reason}", input.display());
    }
    if bad > errors.len() as u64 {
        let more = bad - errors.len() as u64;
        eprintln!("… and {} more bad {}", HumanCount(more), row_or_rows(more));
    }
    if let Some(unread) = unread {
        eprintln!("note: {}: {unread}", input.display());
    }
    for CountedWarning { detail, row, answers } in warnings {
        let all =
            if answers > 1 { format!(" ({} answers in all)", HumanCount(answers)) } else { String::new() };
        eprintln!("note: {}, row {row}: {detail}{all}", input.display());
    }
    if more_warnings > 0 {
        let notes = if more_warnings == 1 { "note" } else { "notes" };
        eprintln!("note: … and {} more {notes}", HumanCount(more_warnings));
    }
    if !written {
        eprintln!("{}: not written. Fix the {}, or use --skip-bad", output.display(), bad_rows(bad));
        return Ok(false);
    }
    let but = if bad > 0 { format!(", {} skipped", bad_rows(bad)) } else { String::new() };
    eprintln!(
        "{}: {} outfits, {} suggestions{but}, in {:.1} s",
        output.display(),
        HumanCount(outfits),
        HumanCount(suggestions),
        began.elapsed().as_secs_f64()
    );
    Ok(true)
}
