//! `atelier looks`: writes the looks of every article to files, for shops that push them to a CDN or a mailer.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use atelier_core::util::clock::Clock;
use atelier_engine::{
    catalogue::Choice,
    inference::{self, Engine},
};
use atelier_files::{Format, LookPiece, RowWriter};
use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::HumanCount;

use super::{ModelFlags, Settings, progress::Progress, serve::read_synonyms};
use crate::{
    app,
    completion::{asking::Times, offline::Share, profiles::Profiles},
    platform::fault::ServiceError,
    releases::{LiveRelease, Releases},
    steering::looks::{Found, MOST, Wanted, complete},
};

/// A model that takes longer will not answer.
const PATIENCE: Duration = Duration::from_mins(10);
/// Articles that are answered at a time, for each thread of the model: their questions fill its runs.
const AT_A_TIME: usize = 8;
/// More questions than an answer has.
const QUESTIONS: usize = 512;

#[derive(Debug, Args)]
pub(super) struct Looks {
    /// Folder for the parts; parts that exist are skipped.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Format: jsonl or parquet.
    #[arg(long, default_value_t = Format::JsonLines)]
    format: Format,
    /// Looks of each article.
    #[arg(long, default_value_t = 3)]
    n: usize,
    /// Highest total price of a look.
    #[arg(long, value_name = "PRICE")]
    total_max: Option<f64>,
    /// Suggest only articles in stock in this store.
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Articles of a part.
    #[arg(long, value_name = "ARTICLES", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    part: u32,
    /// Write a share of the parts, for one of several processes: 0/4 takes the first, fifth, ninth and so on.
    #[arg(long, value_name = "INDEX/COUNT", default_value = "0/1")]
    share: Share,
    #[command(flatten)]
    pub(super) models: ModelFlags,
}

impl Looks {
    pub(super) async fn run(self, settings: Settings) -> Result<ExitCode> {
        if !(1..=MOST).contains(&self.n) {
            bail!("--n must be from 1 to {MOST}, found {}", self.n);
        }
        if let Some(total) = self.total_max.filter(|total| !(total.is_finite() && *total >= 0.0)) {
            bail!("--total-max must be a number from 0, found {total}");
        }
        if self.format == Format::Csv {
            bail!("--format must be jsonl or parquet, found csv");
        }
        fs::create_dir_all(&self.output).with_context(|| self.output.display().to_string())?;
        let (live, profiles, threads) = self.load(&settings).await?;
        let catalogue = &live.catalogue;
        // By their ids, so that every process has the same parts.
        let mut articles: Vec<u32> = catalogue.sets().present().iter().collect();
        articles.sort_by_cached_key(|at| catalogue.article(*at).map(|article| article.id.clone()));
        let parts = articles.chunks(self.part as usize).enumerate();
        for (number, part) in self.share.of(parts) {
            let path = self.output.join(format!("part-{number:05}.{}", self.format.as_str()));
            if path.exists() {
                eprintln!("{}: already exists", path.display());
            } else {
                self.write(&live, &profiles, threads, part, &path).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn load(&self, all: &Settings) -> Result<(Arc<LiveRelease>, Profiles, usize)> {
        let store = all.open_existing(all.database()?).await?;
        let release = self.models.choose_release(all, Some(&store)).await?;
        let config = &all.config;
        let engine = all.engine();
        let workers = engine.workers;
        let settings = inference::Settings { queue: workers * AT_A_TIME * QUESTIONS, ..engine };
        let engine = Engine::new(all.load_models(|notice| eprintln!("{notice}"))?, settings);
        let profiles = Profiles::new(store.clone(), config.profiles.keep());
        let releases = Releases::new(
            engine,
            store,
            config.models.folder.clone(),
            &config.shop.currency,
            app::following(),
        );
        let releases = releases.with_synonyms(read_synonyms(all)?);
        let live = releases.serve_alone(&release).await?;
        let (method, name) = (live.default_method(), live.name());
        eprintln!("{method} of {name} on {}, {workers} threads", live.serving.device());
        Ok((live, profiles, workers))
    }

    async fn write(
        &self,
        live: &Arc<LiveRelease>,
        profiles: &Profiles,
        threads: usize,
        articles: &[u32],
        path: &Path,
    ) -> Result<()> {
        let (began, now) = (Instant::now(), Clock::default().now().into());
        let progress = Progress::new(path, articles.len() as u64);
        let mut writer = RowWriter::create::<LookPiece<'_>>(path)?;
        let find = |article: u32| {
            let wanted = Wanted {
                article,
                n: self.n,
                most_total: self.total_max,
                store: self.store.clone(),
                explain: false,
            };
            let (route, profiles) = (Arc::clone(live).route(None, None), profiles.clone());
            async move {
                let asked = Instant::now();
                let times = Times { now, begun: asked, deadline: asked + PATIENCE };
                // On another thread, because preparing questions takes as long as the answers.
                let found = tokio::spawn(async move { complete(&route, &profiles, &wanted, times).await });
                let found = found.await.expect("completing does not panic");
                let found = found.map_err(|error| match error {
                    ServiceError::Faults(faults) => anyhow!("{}", faults[0].detail),
                    error => anyhow!(error),
                });
                found.map(|found| (article, found))
            }
        };
        let mut answers = stream::iter(articles.iter().copied()).map(find).buffered(threads * AT_A_TIME);
        let (mut done, mut looks) = (0, 0);
        while let Some((article, found)) = answers.try_next().await? {
            let article = live.catalogue.article(article).expect("it was listed");
            write_looks(&mut writer, article.id.as_str(), &found)?;
            (done, looks) = (done + 1, looks + found.looks.len() as u64);
            progress.set(done);
        }
        writer.finish()?;
        progress.finish();
        let seconds = began.elapsed().as_secs_f64();
        eprintln!(
            "{}: {} looks of {} articles, in {seconds:.1} s",
            path.display(),
            HumanCount(looks),
            HumanCount(done)
        );
        Ok(())
    }
}

fn write_looks(writer: &mut RowWriter, article: &str, found: &Found) -> Result<()> {
    for (rank, look) in (1..).zip(&found.looks) {
        for (position, piece) in (1..).zip(&look.pieces) {
            writer.write(&LookPiece {
                article,
                rank,
                look: look.published.as_ref().map_or("", |published| published.name.as_str()),
                position,
                piece: piece.article.id.as_str(),
                variant: match found.variants.get(&piece.article.id) {
                    Some(Choice::Variant { id, .. }) => id,
                    _ => "",
                },
                replaces: piece.replaces.as_ref().map_or("", |id| id.as_str()),
                total: look.total.unwrap_or(f64::NAN),
            })?;
        }
    }
    Ok(())
}
