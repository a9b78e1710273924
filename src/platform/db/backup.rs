//! Copies a `SQLite` database into one file while services use it, and back. Postgres has its own tools.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, chown},
    path::{Path, PathBuf, absolute},
};

use sqlx::{AnyConnection, Connection};
use tempfile::{NamedTempFile, TempPath};

use super::{
    OpenError, Store, StoreError,
    address::{self, Address, sqlite_url},
    connect::{connect, connect_options},
};

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{0} is not SQLite; for Postgres use pg_dump and pg_restore, as docs/operations.md shows")]
    Postgres(String),
    #[error("{path} already exists{advice}", path = .path.display())]
    Exists { path: PathBuf, advice: &'static str },
    #[error("{path} is not a database of Atelier's", path = .0.display())]
    Foreign(PathBuf),
    #[error("{path} is in use; stop the service first", path = .0.display())]
    InUse(PathBuf),
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {source}", path = .path.display())]
    Database { path: PathBuf, source: StoreError },
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Writes the database at `url` as it is now into a new file, without what `remove_secrets` removes from the copy. Does not migrate
/// it: a backup comes before an upgrade.
pub async fn back_up(
    url: &str,
    to: &Path,
    remove_secrets: impl AsyncFnOnce(&mut AnyConnection) -> Result<(), StoreError>,
) -> Result<(), BackupError> {
    let from = sqlite_file(url)?;
    if !from.exists() {
        return Err(OpenError::Missing { database: url.to_owned() }.into());
    }
    let to = absolute(to).map_err(file_error(to))?;
    let exists = || BackupError::Exists { path: to.clone(), advice: "; name another file" };
    if to.exists() {
        return Err(exists());
    }
    let copied = copy(&from, folder_of(&to)).await?;
    let failed = |source| BackupError::Database { path: copied.to_path_buf(), source };
    let mut database = open(&copied).await?;
    // Neither the file's free space nor a journal next to it keeps what is removed.
    let leave_nothing = "pragma journal_mode = memory; pragma secure_delete = on";
    sqlx::raw_sql(leave_nothing).execute(&mut database).await.map_err(|error| failed(error.into()))?;
    remove_secrets(&mut database).await.map_err(failed)?;
    database.close().await.map_err(|error| failed(error.into()))?;
    sync(&copied)?;
    copied.persist_noclobber(&to).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => file_error(&to)(error.error),
    })?;
    sync(folder_of(&to))
}

/// Puts a backup into the place of the database at `url`, migrated to this version. `replace` says whether there may be one.
/// Returns what `look` finds in it.
pub async fn restore<T>(
    from: &Path,
    url: &str,
    replace: bool,
    look: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
) -> Result<T, BackupError> {
    let to = sqlite_file(url)?;
    let exists = to.exists();
    if exists && !replace {
        return Err(BackupError::Exists { path: to, advice: "; replace it with --force" });
    }
    let folder = folder_of(&to);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(file_error(folder))?;
    let copied = copy(&absolute(from).map_err(file_error(from))?, folder).await?;
    let store = Store::open_existing(&format!("sqlite:{}", copied.display())).await?;
    let found = look(&store).await;
    store.close().await;
    let found = found.map_err(|source| BackupError::Database { path: from.to_owned(), source })?;
    sync(&copied)?;
    if exists {
        free(&to).await?;
    }
    // An admin restores, and the service's user goes on reading it.
    let owner = fs::metadata(if exists { &to } else { folder }).map_err(file_error(&to))?;
    if owner.uid() != fs::metadata(&copied).map_err(file_error(&copied))?.uid() {
        chown(&copied, Some(owner.uid()), Some(owner.gid())).map_err(file_error(&copied))?;
    }
    copied.persist(&to).map_err(|error| file_error(&to)(error.error))?;
    sync(folder)?;
    Ok(found)
}

/// A compact copy in a file of its own, which only the owner can read.
async fn copy(from: &Path, folder: &Path) -> Result<TempPath, BackupError> {
    let failed = |source| BackupError::Database { path: from.to_owned(), source };
    fs::metadata(from).map_err(file_error(from))?;
    let mut database = open(from).await?;
    let migrations = "select 1 from sqlite_master where name = '_sqlx_migrations'";
    let ours = sqlx::query(migrations).fetch_optional(&mut database).await;
    if ours.map_err(|error| failed(error.into()))?.is_none() {
        return Err(BackupError::Foreign(from.to_owned()));
    }
    let copied = NamedTempFile::with_prefix_in(".atelier-backup-", folder).map_err(file_error(folder))?;
    let copied = copied.into_temp_path();
    let name = copied.to_str().ok_or_else(|| file_error(folder)(io::ErrorKind::InvalidFilename.into()))?;
    let vacuumed = sqlx::query("vacuum into $1").bind(name).execute(&mut database).await;
    vacuumed.map_err(|error| failed(error.into()))?;
    database.close().await.map_err(|error| failed(error.into()))?;
    sync(&copied)?;
    Ok(copied)
}

/// Prepares a database's file to be replaced. Leaving write-ahead mode fails while another connection is open, and removes the
/// log, which would otherwise be applied to the file that takes its place. A damaged file may be replaced.
async fn free(path: &Path) -> Result<(), BackupError> {
    let left = match open(path).await {
        Ok(mut database) => {
            let left = sqlx::raw_sql("pragma journal_mode = delete").execute(&mut database).await;
            left.map(drop).map_err(StoreError::from)
        }
        Err(BackupError::Database { source, .. }) => Err(source),
        Err(other) => return Err(other),
    };
    if let Err(StoreError::Busy { .. }) = left {
        return Err(BackupError::InUse(path.to_owned()));
    }
    for end in ["-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(end);
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file_error(Path::new(&beside))(error));
            }
            _ => {}
        }
    }
    Ok(())
}

async fn open(path: &Path) -> Result<AnyConnection, BackupError> {
    let url = sqlite_url(path).ok_or_else(|| file_error(path)(io::ErrorKind::InvalidFilename.into()))?;
    sqlx::any::install_default_drivers();
    let opened = connect(&connect_options(&format!("{url}?mode=rw"))?).await;
    opened.map_err(|error| BackupError::Database { path: path.to_owned(), source: error.into() })
}

fn sqlite_file(url: &str) -> Result<PathBuf, BackupError> {
    match Address::parse(url) {
        Ok(Address::Sqlite(path)) => absolute(&path).map_err(file_error(&path)),
        Ok(Address::Postgres(url)) => Err(BackupError::Postgres(address::redact(&url))),
        Err(reason) => Err(OpenError::Url { database: address::redact(url), reason }.into()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().expect("a file's absolute path has a folder")
}

/// Ensures that a power cut does not take the file, or the names in the folder, back.
fn sync(path: &Path) -> Result<(), BackupError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(file_error(path))
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::File { path: path.clone(), source }
}
