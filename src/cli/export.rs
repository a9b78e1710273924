//! `atelier export`: writes the three tables of the database to files.

use std::{fs, path::PathBuf, pin::pin, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures_util::{Stream, TryStreamExt};
use indicatif::HumanCount;

use super::progress::Progress;
use crate::{
    domain::{Article, Customer, Outfit, Schema},
    files::{Columns, Files, Format, SCHEMA, Table, Writer, read_folder_schema, read_schema},
    store::{Store, StoreError},
};

#[derive(Debug, Args)]
pub(super) struct Export {
    /// Folder to write to.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Feature schema, which is also copied into the folder [default: the folder's schema.toml, or the built-in one].
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
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let schema = match &self.schema {
            Some(path) => read_schema(path)?,
            None => read_folder_schema(&self.folder)?,
        };
        self.prepare_folder()?;
        let beside = self.folder.join(SCHEMA);
        fs::write(&beside, schema.source()).with_context(|| beside.display().to_string())?;
        let (articles, customers, outfits) = (store.articles(), store.customers(), store.outfits());
        self.export_table::<Article, _>(&schema, articles.count().await?, || articles.all()).await?;
        self.export_table::<Customer, _>(&schema, customers.count().await?, || customers.all()).await?;
        let rows = || outfits.all().map_ok(|record| record.outfit);
        self.export_table::<Outfit, _>(&schema, outfits.count().await?, rows).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses to overwrite files without --force, and to write a table in a second format: such a folder could not be
    /// imported.
    fn prepare_folder(&self) -> Result<()> {
        fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        let Files { articles, customers, outfits } = Files::in_folder(&self.folder)?;
        for path in [articles, customers, outfits].into_iter().flatten() {
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
    ) -> Result<()> {
        let path = self.folder.join(format!("{}.{}", T::NAME, self.format.extension()));
        let mut columns = Columns::new(schema);
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
            written += 1;
            progress.set(written);
        }
        writer.finish()?;
        progress.finish();
        eprintln!("{}: {} rows", path.display(), HumanCount(written));
        Ok(())
    }
}
