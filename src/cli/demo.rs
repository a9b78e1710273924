//! The demo world, for `atelier demo`, and for `atelier serve` where no database is named.

use std::{future::pending, path::Path, time::SystemTime};

use anyhow::{Result, bail};
use atelier_files::{Files, read_folder_schema};

use super::import::show_steps;
use crate::{
    imports::load::{End, Opened, Options, Outcome},
    people::{Access, Key, Opens, Scope},
    platform::db::{Name, Store},
};

/// Fills a shop's empty database, and returns an API key with every scope but `admin`; none if the database was filled before.
pub(super) async fn fill_and_issue_key(
    store: &Store,
    folder: &Path,
    tell: impl Fn(&str) + Send + Sync,
) -> Result<Option<Key>> {
    if fill_if_empty(store, folder, &tell).await? {
        let label = Name::new("demo").expect("it is a name");
        let opens = Opens::Scopes(Scope::ALL.into_iter().filter(|scope| *scope != Scope::Admin).collect());
        let now = SystemTime::now().into();
        return Ok(Some(Access::new(store.clone()).issue_key(&label, &opens, None, now).await?.0));
    }
    if store.articles().count().await? == 0 {
        bail!("{store} was not filled: it has customers, or {} has no demo world", folder.display());
    }
    tell(
        "the database has articles: they are served, and no API key is made; `atelier key create` makes one",
    );
    Ok(None)
}

/// Fills an empty database with a release's data files. A release need not have any. Bad rows are left out. False if there
/// was nothing to do.
pub(super) async fn fill_if_empty(
    store: &Store,
    folder: &Path,
    tell: impl Fn(&str) + Send + Sync,
) -> Result<bool> {
    if !folder.is_dir() {
        return Ok(false);
    }
    let files = Files::in_folder(folder)?;
    if files.is_empty() {
        return Ok(false);
    }
    let (schema, now) = (read_folder_schema(folder)?, SystemTime::now().into());
    let options = Options { skip_bad: true, ..Options::default() };
    let opened = Opened::files(&files, &schema, &options, now)?;
    let mut import = store.import(now).await?;
    // Within the import, so only one of two services that start together fills the database.
    if !import.is_empty().await? {
        import.abandon().await?;
        return Ok(false);
    }
    let steps = show_steps(&tell);
    let Outcome { report, end } =
        opened.import(import, &options, None, &steps, pending(), |_, _, _| {}).await?;
    match end {
        End::Imported(_) => {
            for bad in &report.errors {
                tell(&format!("left out: {bad}"));
            }
            Ok(true)
        }
        End::Stopped(error) => Err(error.into()),
        End::Cancelled => unreachable!("only jobs are cancelled"),
        End::Refused(_) => {
            let first = report.errors.first().expect("a refused import has a bad row");
            bail!("all {} rows in {} are bad; the first is {first}", report.bad, folder.display())
        }
    }
}
