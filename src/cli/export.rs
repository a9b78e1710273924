//! `atelier export`: the database's three tables as files.

use std::{fs, path::PathBuf, pin::pin, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures_util::{Stream, TryStreamExt};
use indicatif::HumanCount;

use super::progress::Progress;
use crate::{
    domain::{Article, Customer, Outfit, Schema},
    files::{Files, Format, SCHEMA, Shape, Table, Writer, read_schema, schema_of},
    store::{Store, StoreError},
};

#[derive(Debug, Args)]
pub(super) struct Export {
    /// Where to write; made if it is not there.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The feature schema, which says how features are written and is written beside them; without it the
    /// folder's schema.toml, or else the built-in one.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// jsonl, csv or parquet.
    #[arg(long, default_value_t = Format::JsonLines)]
    format: Format,
    /// Write over files of an earlier export.
    #[arg(long)]
    force: bool,
}

impl Export {
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let schema = match &self.schema {
            Some(path) => read_schema(path)?,
            None => schema_of(&self.folder)?,
        };
        self.make_room()?;
        let beside = self.folder.join(SCHEMA);
        fs::write(&beside, schema.source()).with_context(|| beside.display().to_string())?;
        let (articles, customers, outfits) = (store.articles(), store.customers(), store.outfits());
        self.table::<Article, _>(&schema, articles.count().await?, || articles.all()).await?;
        self.table::<Customer, _>(&schema, customers.count().await?, || customers.all()).await?;
        let whole = || outfits.all().map_ok(|record| record.outfit);
        self.table::<Outfit, _>(&schema, outfits.count().await?, whole).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// Before anything is written: a folder with a table in two formats could not be imported again, and
    /// a file of an earlier export is written over only when told.
    fn make_room(&self) -> Result<()> {
        fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        let Files { articles, customers, outfits } = Files::in_folder(&self.folder)?;
        for path in [articles, customers, outfits].into_iter().flatten() {
            if !self.force {
                bail!(
                    "{} is there already; name another folder, or write over it with --force",
                    path.display()
                );
            }
            if Format::of(&path)? != self.format {
                bail!("{} is there in another format; name another folder, or delete it", path.display());
            }
        }
        Ok(())
    }

    /// Reads the rows twice where the format has columns, which must be known before the first row.
    async fn table<T: Table, S: Stream<Item = Result<T, StoreError>>>(
        &self,
        schema: &Schema,
        count: u64,
        rows: impl Fn() -> S,
    ) -> Result<()> {
        let path = self.folder.join(format!("{}.{}", T::NAME, self.format.extension()));
        let mut shape = Shape::new(schema);
        if self.format != Format::JsonLines {
            let mut rows = pin!(rows());
            while let Some(row) = rows.try_next().await? {
                shape.see(&row);
            }
        }
        let progress = Progress::new(&path, count);
        let mut writer = Writer::create(&path, self.format, &shape)?;
        let mut written = 0;
        let mut rows = pin!(rows());
        while let Some(row) = rows.try_next().await? {
            writer.write(&row)?;
            written += 1;
            progress.set(written);
        }
        writer.finish()?;
        progress.finish();
        eprintln!("{}: {} rows", path.display(), HumanCount(written));
        Ok(())
    }
}
