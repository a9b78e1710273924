//! `atelier complete`: outfits in files completed into files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures_util::TryStreamExt;
use indicatif::HumanCount;

use super::{import::row_or_rows, models, progress::Progress};
use crate::{
    config::{Config, Overrides},
    domain::{Article, Method},
    files,
    models::{
        catalogue::Catalogue,
        engine::{self, Engine, Models, Serving, Settings},
    },
    service::{
        completion::{Filters, MAX_K, MAX_VARIED},
        offline::{BATCH, Done, Job, Profiles, Share, Wanted, complete_part, parts},
    },
    store::Store,
};

#[derive(Debug, Args)]
pub(super) struct Complete {
    /// The folder of parts: Parquet or JSON Lines with `customer`, `articles` (an empty entry is a blank) and, as far
    /// as known, features.
    #[arg(long, value_name = "DIR")]
    input: PathBuf,
    /// Where a part of the same name is written for each; made if it is not there. A part that is there is left as it is.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// The method that answers; the release's default if not given.
    #[arg(long)]
    method: Option<Method>,
    /// Suggestions for each blank.
    #[arg(long, default_value_t = 10)]
    k: usize,
    /// Customers from a file instead of the database; of those it lacks, the parts say all that is known.
    #[arg(long, value_name = "FILE")]
    customers: Option<PathBuf>,
    /// The catalogue from a file instead of the database; with --customers alone it is the release's own.
    #[arg(long, value_name = "FILE")]
    articles: Option<PathBuf>,
    /// Only some of the parts, for one of several processes: 0/4 takes the first, the fifth, the ninth and so on.
    #[arg(long, value_name = "INDEX/COUNT", default_value = "0/1")]
    share: Share,
    /// Write parts without the rows that cannot be used, instead of not at all.
    #[arg(long)]
    skip_bad: bool,
    /// Suggest only what costs so much at least.
    #[arg(long, value_name = "PRICE")]
    min_price: Option<f64>,
    /// Suggest only what costs so much at most.
    #[arg(long, value_name = "PRICE")]
    max_price: Option<f64>,
    /// Suggest only what is in stock.
    #[arg(long)]
    in_stock: bool,
    /// Suggest also what the customer never wears.
    #[arg(long)]
    allow_no_gos: bool,
    /// From 0, the most likely first, to 1, as different from each other as can be.
    #[arg(long, default_value_t = 0.0)]
    diversity: f64,
    /// The folder of releases.
    #[arg(long, value_name = "DIR")]
    models: Option<String>,
    /// The release that answers.
    #[arg(long, value_name = "NAME")]
    release: Option<String>,
    /// What models compute on: auto, cpu or cuda.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

impl Complete {
    pub(super) fn set(&self, overrides: &mut Overrides) {
        let flags = [
            ("models", "folder", "--models", &self.models),
            ("models", "release", "--release", &self.release),
            ("engine", "device", "--device", &self.device),
        ];
        for (section, key, flag, value) in flags {
            if let Some(value) = value {
                overrides.set(section, key, flag, value);
            }
        }
    }

    pub(super) async fn run(self, config: Config) -> Result<ExitCode> {
        self.check()?;
        let parts = parts(&self.input, self.share)?;
        fs::create_dir_all(&self.output).with_context(|| self.output.display().to_string())?;
        let mut left = Vec::new();
        for input in parts {
            let output =
                self.output.join(input.file_name().expect("a file of a folder has a name; this is a bug"));
            if output.exists() {
                eprintln!("{}: is there already", output.display());
            } else {
                left.push((input, output));
            }
        }
        // With nothing to do nothing need be loaded.
        if left.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let job = Arc::new(self.job(&config).await?);
        let mut code = ExitCode::SUCCESS;
        for (input, output) in left {
            if !part(&job, &input, &output).await? {
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    }

    /// What would be wrong with every outfit is said once.
    fn check(&self) -> Result<()> {
        let most = if self.diversity > 0.0 { MAX_VARIED } else { MAX_K };
        if !(1..=most).contains(&self.k) {
            bail!("--k is from 1 to {most}, found {}", self.k);
        }
        if !(0.0..=1.0).contains(&self.diversity) {
            bail!("--diversity is from 0 to 1, found {}", self.diversity);
        }
        if [self.min_price, self.max_price]
            .into_iter()
            .flatten()
            .any(|price| !price.is_finite() || price < 0.0)
        {
            bail!("--min-price and --max-price are numbers from 0 up");
        }
        Ok(())
    }

    async fn job(&self, config: &Config) -> Result<Job> {
        let models = models(config, |notice| eprintln!("{notice}"))?;
        let cores = engine::available_cores();
        let workers = if config.engine.workers == 0 { cores } else { config.engine.workers };
        let batch = match models {
            Models::Local(_) => config.engine.batch.max(BATCH),
            // It may take no more than it was set up for.
            Models::Remote(_) => config.engine.batch,
        };
        let settings = Settings { workers, batch, queue: Job::queue(workers), ..config.engine.settings() };
        let folder = config.models.folder.join(&config.models.release);
        let serving = Engine::new(models, settings).load(&folder)?;
        let method = self.method.unwrap_or(serving.release().manifest().default_method);
        if !serving.has(method) {
            let has: Vec<&str> = serving.methods().map(Method::as_str).collect();
            bail!("release {} has no method {method}; it has {}", config.models.release, has.join(", "));
        }
        let (articles, profiles) = self.sources(config, &serving).await?;
        let release = serving.release();
        let catalogue = Catalogue::new(articles.into_iter(), release.vocabulary(), release.schema());
        let filters = Filters {
            least_price: self.min_price,
            most_price: self.max_price,
            in_stock: self.in_stock,
            no_gos: !self.allow_no_gos,
            ..Filters::default()
        };
        let wanted =
            Wanted { method, k: self.k, filters, diversity: self.diversity, skip_bad: self.skip_bad };
        eprintln!("{method} of {} on {}, {workers} threads", release.manifest().name, serving.device());
        Ok(Job { serving: Arc::new(serving), catalogue, profiles, wanted, workers })
    }

    /// The database, unless a file was named: then no database is opened.
    async fn sources(&self, config: &Config, serving: &Serving) -> Result<(Vec<Article>, Profiles)> {
        let schema = serving.release().schema();
        if self.customers.is_none() && self.articles.is_none() {
            let store = Store::open_existing(&config.database.url).await?;
            return Ok((store.articles().all().try_collect().await?, Profiles::Stored(store)));
        }
        let articles = match &self.articles {
            Some(path) => {
                let rows = files::read::<Article>(path, schema)?;
                let rows = rows.map(|row| row.map(|row| row.value)).collect::<Result<_, _>>();
                rows.with_context(|| path.display().to_string())?
            }
            None => serving.release().articles().to_vec(),
        };
        let profiles = match &self.customers {
            Some(path) => Profiles::read(path, schema)?,
            None => Profiles::Held(std::collections::HashMap::new()),
        };
        Ok((articles, profiles))
    }
}

/// Whether the part is there now.
async fn part(job: &Arc<Job>, input: &Path, output: &Path) -> Result<bool> {
    let began = Instant::now();
    let progress = Progress::new(input, 0);
    let Done { outfits, suggestions, bad, errors, warnings, written } =
        complete_part(job, input, output, |at, total| progress.set_of(at, total)).await?;
    progress.finish();
    for (line, reason) in &errors {
        eprintln!("{}, row {line}: {reason}", input.display());
    }
    if bad > errors.len() as u64 {
        let more = bad - errors.len() as u64;
        eprintln!("… and {} more bad {}", HumanCount(more), row_or_rows(more));
    }
    for (code, count) in warnings {
        eprintln!("note: {}: {code} in {} of its answers", input.display(), HumanCount(count));
    }
    if !written {
        eprintln!(
            "{}: not written. Mend the {} bad {}, or leave them out with --skip-bad",
            output.display(),
            HumanCount(bad),
            row_or_rows(bad)
        );
        return Ok(false);
    }
    let but = if bad > 0 {
        format!(", {} bad {} left out", HumanCount(bad), row_or_rows(bad))
    } else {
        String::new()
    };
    eprintln!(
        "{}: {} outfits, {} suggestions{but}, in {:.1} s",
        output.display(),
        HumanCount(outfits),
        HumanCount(suggestions),
        began.elapsed().as_secs_f64()
    );
    Ok(true)
}
