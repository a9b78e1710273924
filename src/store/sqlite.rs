//! Opening a database in an `SQLite` file.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    Any, AnyConnection, AnyPool, Connection, Transaction,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep};

use super::{
    OpenError, Store, StoreError,
    address::sqlite_url,
    connect::{DEADLINE, Dialect, IfMissing, connect, quiet},
    migrate,
};

/// Enough that one slow export does not hold up the pages.
const READERS: u32 = 8;

pub(super) async fn open(path: &Path, if_missing: IfMissing) -> Result<Store, OpenError> {
    let shown = format!("sqlite:{}", path.display());
    let failed = |error| OpenError::of_file(shown.clone(), error);
    let unfit =
        |reason: &dyn ToString| OpenError::File { database: shown.clone(), reason: reason.to_string() };
    let path = std::path::absolute(path).map_err(|error| unfit(&error))?;
    let url = sqlite_url(&path).ok_or_else(|| unfit(&"the path is not valid UTF-8"))?;
    match (fs::metadata(&path), if_missing) {
        (Ok(found), _) if found.is_dir() => return Err(OpenError::Folder { database: shown }),
        (Ok(_), _) => {}
        (Err(error), IfMissing::Refuse) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Missing { database: shown });
        }
        (Err(error), IfMissing::Create) if error.kind() == io::ErrorKind::NotFound => {
            create(&path).map_err(|error| unfit(&error))?;
        }
        (Err(error), _) => return Err(unfit(&error)),
    }
    let read_only = quiet(&format!("{url}?mode=ro&immutable=1"))?;
    let mut options = quiet(&format!("{url}?mode=rw"))?;
    if is_write_protected(&path) {
        options = read_only;
        prepare(&options).await.map_err(failed)?;
    } else if let Err(error) = prepare(&options).await {
        // The folder may be somebody else's, where SQLite cannot make the files that it needs beside.
        let refused = matches!(error, StoreError::ReadOnly | StoreError::Unreachable { .. });
        if !refused || has_log(&path) || prepare(&read_only).await.is_err() {
            return Err(failed(error));
        }
        options = read_only;
    }

    let pool = |connections| {
        AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(DEADLINE)
            // A file does not go away as a server does: connections stay, and need no test.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect(|connection, _| Box::pin(async { settings(connection).await }))
            .connect_lazy_with(options.clone())
    };
    Ok(Store { readers: pool(READERS), writer: pool(1), dialect: Dialect::Sqlite, shown })
}

/// A deferred transaction takes the lock at its first write, and fails at once if somebody else wrote since its
/// first read; an immediate one waits in line.
pub(super) async fn begin(writer: &AnyPool) -> sqlx::Result<Transaction<'static, Any>> {
    const BEGIN: &str = "begin immediate";
    match writer.begin_with(BEGIN).await {
        // SQLite itself undoes a transaction that a full disk or a failing one breaks, and sqlx, which then finds
        // nothing to undo, believes its connection to be within one for ever: nobody could write until the next
        // start. Another connection takes its place.
        Err(sqlx::Error::InvalidSavePointStatement) => {
            writer.acquire().await?.close().await?;
            writer.begin_with(BEGIN).await
        }
        begun => begun,
    }
}

/// An empty file that is its owner's alone, as is a folder that is not there yet: it will hold people's
/// profiles. What `SQLite` puts beside the file has the same permissions.
///
/// It gets its name when it is closed: closing a file gives up the locks that this process has on it, and
/// another [`Store`] may have taken some as soon as the name is there.
fn create(path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = NamedTempFile::new_in(folder)?.into_temp_path();
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// Nobody may write it, and nobody is about to. `SQLite` would open it, but leave a log and an index of the
/// log behind, as unwritable as the file, which keep out whoever may write it later.
fn is_write_protected(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.permissions().readonly()) && !has_log(path)
}

/// Whether part of the database may lie in the log beside its file.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(PathBuf::from(log)).is_ok_and(|log| log.len() > 0)
}

/// Brings the file up to date; if it is, without waiting for a writer.
async fn prepare(options: &AnyConnectOptions) -> Result<(), StoreError> {
    let mut first = connect(options).await?;
    settings(&mut first).await?;
    set_write_ahead(&mut first).await?;
    migrate::sqlite(&mut first).await?;
    Ok(first.close().await?)
}

/// What holds for one connection, rather than for the file.
async fn settings(connection: &mut AnyConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(
        // Committed is on disk, also after a power cut: WAL's default would lose the last moments.
        "pragma synchronous = full;
         pragma foreign_keys = on;
         pragma busy_timeout = 10000;
         -- What is erased is overwritten in the file, not merely unlinked.
         pragma secure_delete = on;
         -- A large import lets the log grow to its own size; this gives the disk back afterwards.
         pragma journal_size_limit = 67108864;",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Turns write-ahead logging on. It stays on: the mode is written in the file.
///
/// While another process does the same, `SQLite` may answer "locked" without waiting, so this waits.
async fn set_write_ahead(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let started = Instant::now();
    loop {
        let set = sqlx::raw_sql("pragma journal_mode = wal").execute(&mut *connection).await;
        match set.map_err(StoreError::from) {
            Err(StoreError::Busy { .. }) if started.elapsed() < DEADLINE => {
                sleep(Duration::from_millis(20)).await;
            }
            done => return done.map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    use tempfile::TempDir;

    use super::*;
    use crate::domain::{Article, ArticleId, Timestamp};

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn coat() -> Article {
        Article::new(ArticleId::new("a").unwrap(), "coat", serde_json::Map::default()).unwrap()
    }

    fn url(path: &Path) -> String {
        format!("sqlite:{}", path.display())
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A closed database with a coat in it.
    async fn written(folder: &TempDir) -> PathBuf {
        let path = folder.path().join("a.db");
        let store = Store::open(&url(&path)).await.unwrap();
        store.articles().put(&coat(), NOW).await.unwrap();
        store.close().await;
        path
    }

    #[tokio::test]
    async fn a_path_with_odd_characters_is_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new folder/Ä#%41&😀'.db");
        let store = Store::open(&url(&path)).await.unwrap();
        assert_eq!(store.articles().count().await, Ok(0));
        assert!(path.is_file());
    }

    #[tokio::test]
    async fn what_is_created_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/newer/a.db");
        let store = Store::open(&url(&path)).await.unwrap();
        store.articles().put(&coat(), NOW).await.unwrap();
        for (name, expected) in
            [("", 0o700), ("newer", 0o700), ("newer/a.db", 0o600), ("newer/a.db-wal", 0o600)]
        {
            assert_eq!(mode(&folder.path().join("new").join(name)), expected, "{name}");
        }
        // And what is there already keeps what its owner gave it.
        store.close().await;
        set_mode(&path, 0o640);
        Store::open(&url(&path)).await.unwrap();
        assert_eq!(mode(&path), 0o640);
    }

    /// As a full disk does it: `SQLite` has undone the transaction before sqlx wants to.
    #[tokio::test]
    async fn when_sqlite_undid_a_write_the_next_one_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&url(&folder.path().join("a.db"))).await.unwrap();
        let mut transaction = store.write().await.unwrap();
        sqlx::raw_sql("rollback").execute(&mut *transaction).await.unwrap();
        drop(transaction);
        store.articles().put(&coat(), NOW).await.unwrap();
        assert_eq!(store.articles().get(&coat().id).await, Ok(Some(coat())));
    }

    #[tokio::test]
    async fn a_write_protected_file_can_be_read_and_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder).await;
        set_mode(&path, 0o444);
        let store = Store::open_existing(&url(&path)).await.unwrap();
        assert_eq!(store.articles().get(&coat().id).await, Ok(Some(coat())));
        assert_eq!(store.articles().delete(&coat().id).await, Err(StoreError::ReadOnly));
        store.close().await;
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        set_mode(&path, 0o600);
        let store = Store::open(&url(&path)).await.unwrap();
        assert_eq!(store.articles().delete(&coat().id).await, Ok(true));
    }

    /// For root this folder is not closed at all.
    #[tokio::test]
    async fn a_file_in_a_closed_folder_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder).await;
        set_mode(folder.path(), 0o555);
        let store = Store::open_existing(&url(&path)).await.unwrap();
        assert_eq!(store.articles().get(&coat().id).await, Ok(Some(coat())));
        set_mode(folder.path(), 0o700);
    }

    #[tokio::test]
    async fn a_write_protected_file_of_another_version_is_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.db");
        fs::write(&path, "").unwrap();
        set_mode(&path, 0o444);
        let said = Store::open(&url(&path)).await.unwrap_err().to_string();
        assert!(said.contains("empty.db cannot be opened: it must be brought to this"), "{said}");
    }

    #[tokio::test]
    async fn an_existing_database_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/a.db");
        let refused = Store::open_existing(&url(&path)).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("there is no database at {}; name the one you mean with --database", url(&path))
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let path = written(&folder).await;
        assert_eq!(Store::open_existing(&url(&path)).await.unwrap().articles().count().await, Ok(1));
    }

    #[tokio::test]
    async fn what_is_no_database_is_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("notes.txt");
        fs::write(&text, "Coats, boots and scarves.\n".repeat(100)).unwrap();
        for (path, advice) in [
            (folder.path(), "is a folder; name a file in it"),
            (&text, "not a database of SQLite's; name another, or move this one away"),
            (&text.join("a.db"), "cannot be opened: Not a directory"),
            (Path::new("/proc/nowhere/a.db"), "check the path, and the permissions"),
        ] {
            let said = Store::open(&url(path)).await.unwrap_err().to_string();
            assert!(said.contains(&url(path)) && said.contains(advice), "{said}");
            assert!(!said.contains("login"), "{said}");
        }
        assert_eq!(fs::read_to_string(&text).unwrap().len(), 2600, "it is left as it was");
    }
}
