//! `atelier export`: writes the three tables of the database, its looks, and what customers accepted and bought to files.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
    pin::pin,
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use atelier_core::{
    domain::{Article, ArticleId, Customer, CustomerId, Outfit, OutfitSize, Schema},
    util::calendar::date,
};
use atelier_engine::release::Release;
use atelier_files::{
    AcceptedOutfit, Files, Format, OrderLine, RETIRED, SCHEMA, Table, TableColumns, Writer, find_table,
    read_schema, write_lines, write_retired, write_times,
};
use clap::Args;
use futures_util::{Stream, TryStreamExt, future, stream};
use indicatif::HumanCount;

use super::{Settings, import::open_served_release, progress::Progress};
use crate::{
    outcomes::{Bought, day_of, feedback::accepted_outfits},
    platform::db::StoreError,
    steering::looks::files::look_rows,
};

/// The file with the name of the served release, next to which `atelier-training refresh` makes another.
const LIVE: &str = "release.txt";

#[derive(Debug, Args)]
pub(super) struct Export {
    /// Folder to write to.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Feature schema, which is also copied into the folder [default: the folder's schema.toml, the served release's, or the
    /// built-in one].
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Format: jsonl, csv or parquet.
    #[arg(long, default_value_t = Format::JsonLines)]
    format: Format,
    /// Overwrite an earlier export.
    #[arg(long)]
    force: bool,
}

impl Export {
    pub(super) async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let store = &settings.open_existing(settings.database()?).await?;
        let beside = self.folder.join(SCHEMA);
        let served = open_served_release(settings, store).await?;
        let schema = self.choose_schema(&beside, served.as_deref())?;
        self.prepare_folder()?;
        let name = served.iter().map(|release| release.manifest().name.clone());
        write_lines(&self.folder.join(LIVE), name)?;
        fs::write(&beside, schema.source()).with_context(|| beside.display().to_string())?;
        let (articles, customers, outfits) = (store.articles(), store.customers(), store.outfits());
        let mut catalogue: HashSet<ArticleId> = HashSet::new();
        let keep = |article: &Article| {
            catalogue.insert(article.id.clone());
        };
        self.export_table(&schema, articles.count().await?, || articles.all(), keep).await?;
        let mut known: HashSet<CustomerId> = HashSet::new();
        let keep = |customer: &Customer| {
            known.insert(customer.id.clone());
        };
        self.export_table(&schema, customers.count().await?, || customers.all(), keep).await?;
        // A customer who came since waits for the next export.
        let is_known = |outfit: &Outfit| future::ready(known.contains(&outfit.customer));
        let mut retired = BTreeSet::new();
        let note_retired = |retired: &mut BTreeSet<ArticleId>, outfit: &Outfit| {
            let missing = outfit.articles().iter().filter(|id| !catalogue.contains(*id));
            retired.extend(missing.cloned());
        };
        let mut size = schema.outfit_size();
        let look_at = |outfit: &Outfit| {
            let articles = outfit.articles().len();
            size = OutfitSize { least: size.least.min(articles), most: size.most.max(articles) };
            note_retired(&mut retired, outfit);
        };
        let times = RefCell::new(Vec::new());
        let rows = || {
            times.borrow_mut().clear();
            outfits.all().try_filter(|record| is_known(&record.outfit)).map_ok(|record| {
                times.borrow_mut().push(record.saved_at);
                record.outfit
            })
        };
        self.export_table(&schema, outfits.count().await?, rows, look_at).await?;
        // Outfits outlive releases. The folder can be imported again, whichever is live.
        if size != schema.outfit_size() {
            fs::write(&beside, schema.source_with(size)).with_context(|| beside.display().to_string())?;
            eprintln!(
                "schema: outfit = {{least = {}, most = {}}}, because some outfits are as large",
                size.least, size.most
            );
        }
        let looks = look_rows(store).await?;
        if !looks.is_empty() {
            let all = || stream::iter(looks.iter().cloned().map(Ok));
            self.export_table(&schema, looks.len() as u64, all, |_| {}).await?;
        }
        write_times(&self.folder, &times.into_inner())?;
        let pages = || accepted_outfits(store).map_ok(|page| stream::iter(page.into_iter().map(Ok)));
        let note = |accepted: &AcceptedOutfit| note_retired(&mut retired, &accepted.outfit);
        let rows = || pages().try_flatten().try_filter(|accepted| is_known(&accepted.outfit));
        self.export_table(&schema, 0, rows, note).await?;
        let events = store.events();
        let lines = || events.bought().map_ok(order_line);
        self.export_table(&schema, events.count_bought().await?, lines, |_| {}).await?;
        write_retired(&self.folder, &retired)?;
        if !retired.is_empty() {
            let (file, count) = (self.folder.join(RETIRED), HumanCount(retired.len() as u64));
            eprintln!(
                "{}: {count} articles that outfits have and the catalogue no longer has",
                file.display()
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Chooses the schema, and says which. `beside` is where the folder has one.
    fn choose_schema(&self, beside: &Path, served: Option<&Release>) -> Result<Schema> {
        let file = self.schema.as_deref().or(Some(beside).filter(|path| path.is_file()));
        let (schema, source) = if let Some(path) = file {
            (read_schema(path)?, path.display().to_string())
        } else if let Some(release) = served {
            (release.schema().clone(), format!("that of release {}", release.manifest().name))
        } else {
            (Schema::default_schema(), "the built-in one".into())
        };
        eprintln!("schema: {source}");
        Ok(schema)
    }

    /// Refuses to overwrite files without --force, and to write a table in a second format: such a folder could not be
    /// imported.
    fn prepare_folder(&self) -> Result<()> {
        fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        let Files { articles, customers, outfits, looks, .. } = Files::in_folder(&self.folder)?;
        let orders = find_table::<OrderLine>(&self.folder)?;
        let accepted = find_table::<AcceptedOutfit>(&self.folder)?;
        for path in [articles, customers, outfits, looks, orders, accepted].into_iter().flatten() {
            if !self.force {
                bail!("{} already exists; name another folder, or overwrite it with --force", path.display());
            }
            if Format::from_path(&path)? != self.format {
                bail!("{} has another format; name another folder, or delete it", path.display());
            }
        }
        Ok(())
    }

    /// Reads the rows twice if the format has columns, because a file begins with them.
    async fn export_table<T: Table, S: Stream<Item = Result<T, StoreError>>>(
        &self,
        schema: &Schema,
        count: u64,
        rows: impl Fn() -> S,
        mut visit: impl FnMut(&T),
    ) -> Result<()> {
        let path = self.folder.join(format!("{}.{}", T::NAME, self.format.as_str()));
        let mut columns = TableColumns::new(schema);
        if self.format != Format::JsonLines {
            let mut rows = pin!(rows());
            while let Some(row) = rows.try_next().await? {
                columns.include(&row);
            }
        }
        let progress = Progress::new(&path, count);
        let mut writer = Writer::create(&path, self.format, &columns)?;
        let mut written = 0;
        let mut rows = pin!(rows());
        while let Some(row) = rows.try_next().await? {
            writer.write(&row)?;
            visit(&row);
            written += 1;
            progress.set(written);
        }
        writer.finish()?;
        progress.finish();
        eprintln!("{}: {} rows", path.display(), HumanCount(written));
        Ok(())
    }
}

/// A customer's purchases of a day are an order, unless the events name one.
fn order_line(bought: Bought) -> OrderLine {
    let Bought { customer, article, order, at, returned } = bought;
    let order = order.unwrap_or_else(|| format!("{customer}/{}", date(day_of(at))));
    let article = Some(article.as_str().to_owned());
    OrderLine { order, customer: Some(customer), article, variant: None, time: at, returned }
}
