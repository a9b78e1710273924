//! Opening a database in an `SQLite` file.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use atelier_core::domain::ROW_BYTES;
use sqlx::{
    Any, AnyConnection, AnyPool, Connection, Transaction,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep};

use super::{
    Author, OpenError, Store, StoreError,
    address::sqlite_url,
    connect::{DEADLINE, Dialect, IfMissing, connect, connect_options},
    migrate,
    probe::{File, Probe},
};
use crate::config::Limits;

/// Enough that a slow export does not block the pages.
const READERS: u32 = 8;

pub(crate) async fn open(path: &Path, if_missing: IfMissing) -> Result<Store, OpenError> {
    let shown = format!("sqlite:{}", path.display());
    let failed = |error| OpenError::from_file(shown.clone(), error);
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
    let read_only = connect_options(&format!("{url}?mode=ro&immutable=1"))?;
    let mut options = connect_options(&format!("{url}?mode=rw"))?;
    if is_write_protected(&path) {
        options = read_only.clone();
        prepare(&options).await.map_err(failed)?;
    } else if let Err(error) = prepare(&options).await {
        // SQLite may not be allowed to create its other files in the folder.
        let refused = matches!(error, StoreError::ReadOnly | StoreError::Unreachable { .. });
        if !refused || has_log(&path) || prepare(&read_only).await.is_err() {
            return Err(failed(error));
        }
        options = read_only.clone();
    }

    let pool = |connections, setting: &'static str| {
        AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(DEADLINE)
            // A file does not go away as a server may, so connections stay open and need no test.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    configure(connection).await?;
                    sqlx::raw_sql(setting).execute(connection).await?;
                    Ok(())
                })
            })
            .connect_lazy_with(options.clone())
    };
    let readers = pool(READERS, "");
    // Enough for the indexes that an import writes all over. Otherwise each of its slices would move most of them into the file.
    let writer = pool(1, "pragma cache_size = -16384; pragma wal_autocheckpoint = 8000");
    // It keeps writes out while it waits for readers.
    let cleaner = pool(1, "pragma busy_timeout = 100");
    let found = fs::metadata(&path).map_err(|error| unfit(&error))?;
    let probe = Arc::new(Probe::new(pool(1, ""), Some(File::new(&path, &found, read_only))));
    // Closing the database's own file would release the locks that SQLite holds on it.
    let mut import_lock = path.into_os_string();
    import_lock.push("-import");
    Ok(Store {
        readers,
        writer,
        cleaner,
        probe,
        dialect: Dialect::Sqlite,
        import_lock: import_lock.into(),
        author: Author::SERVICE,
        row_bytes: ROW_BYTES,
        catalogue_bytes: Limits::default().catalogue_bytes(),
        shown,
    })
}

/// A deferred transaction would take the lock at its first write, and fail if another transaction wrote since its first
/// read; an immediate one waits.
pub(crate) async fn begin(writer: &AnyPool) -> sqlx::Result<Transaction<'static, Any>> {
    const BEGIN: &str = "begin immediate";
    match writer.begin_with(BEGIN).await {
        // SQLite rolls back a transaction by itself when the disk is full or fails. sqlx still believes that the
        // connection is in a transaction, and no write would succeed again, so another connection replaces it.
        Err(sqlx::Error::InvalidSavePointStatement) => {
            writer.acquire().await?.close().await?;
            writer.begin_with(BEGIN).await
        }
        begun => begun,
    }
}

/// Creates an empty file, and its folder, that only the owner can read: it will contain profiles. `SQLite` gives its other
/// files the same permissions.
///
/// The file gets its name after it is closed: closing a file releases the locks of this process, which another [`Store`]
/// may already hold.
fn create(path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = NamedTempFile::new_in(folder)?.into_temp_path();
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// Whether the file is write-protected and has no log. `SQLite` would open it, but leave a log and an index behind that
/// are write-protected too, and block later writers.
fn is_write_protected(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.permissions().readonly()) && !has_log(path)
}

/// Whether part of the database may be in the log next to its file.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(PathBuf::from(log)).is_ok_and(|log| log.len() > 0)
}

/// Migrates the file. It does not wait for a writer if the file is current.
async fn prepare(options: &AnyConnectOptions) -> Result<(), StoreError> {
    let mut first = connect(options).await?;
    configure(&mut first).await?;
    set_write_ahead(&mut first).await?;
    migrate::run(&mut first, Dialect::Sqlite).await?;
    Ok(first.close().await?)
}

async fn configure(connection: &mut AnyConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(
        // Commits survive a power cut, which the default of WAL does not ensure.
        "pragma synchronous = full;
         pragma foreign_keys = on;
         pragma busy_timeout = 10000;
         -- What is erased is overwritten in the file, not merely unlinked; `erasures.rs` does what this leaves.
         pragma secure_delete = on;
         -- A large import lets the log grow to its own size; this gives the disk back afterwards.
         pragma journal_size_limit = 67108864;",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Turns on write-ahead logging, which the file records. This waits, because `SQLite` does not while another process does
/// the same.
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

    use tempfile::{TempDir, tempdir};

    use super::*;
    use atelier_core::domain::{Article, ArticleId, Timestamp};

    use crate::platform::db::Expected;

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn coat() -> Article {
        Article::new(ArticleId::new("a").unwrap(), "coat", serde_json::Map::default()).unwrap()
    }

    fn url(path: &Path) -> String {
        format!("sqlite:{}", path.display())
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A closed database with a coat in it.
    async fn written(folder: &TempDir) -> PathBuf {
        let path = folder.path().join("a.db");
        let store = Store::open(&url(&path)).await.unwrap();
        store.articles().put(&coat(), &Expected::default(), NOW).await.unwrap();
        store.close().await;
        path
    }

    #[tokio::test]
    async fn new_files_are_private_and_may_have_any_characters() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("new/newer folder/Ä#%41&😀'.db");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let store = Store::open(&url(&path)).await.unwrap();
        store.articles().put(&coat(), &Expected::default(), NOW).await.unwrap();
        for (name, expected) in [("", 0o700), ("newer folder", 0o700)] {
            assert_eq!(mode(&folder.path().join("new").join(name)), expected, "{name}");
        }
        assert_eq!([mode(&path), mode(&path.with_extension("db-wal"))], [0o600; 2]);
        // An existing file keeps its permissions.
        store.close().await;
        set_mode(&path, 0o640);
        Store::open(&url(&path)).await.unwrap();
        assert_eq!(mode(&path), 0o640);
    }

    /// As on a full disk, `SQLite` has rolled back the transaction before sqlx does.
    #[tokio::test]
    async fn writes_wait_for_the_disk_and_succeed_after_one_was_rolled_back() {
        let folder = tempdir().unwrap();
        let store = Store::open(&url(&folder.path().join("a.db"))).await.unwrap();
        let mut transaction = store.write().await.unwrap();
        let level: i64 = sqlx::query_scalar("pragma synchronous").fetch_one(&mut *transaction).await.unwrap();
        assert_eq!(level, 2, "full");
        sqlx::raw_sql("rollback").execute(&mut *transaction).await.unwrap();
        drop(transaction);
        store.articles().put(&coat(), &Expected::default(), NOW).await.unwrap();
        assert_eq!(store.articles().get(&coat().id).await, Ok(Some(coat())));
    }

    #[tokio::test]
    async fn a_write_protected_file_can_be_read_and_leaves_no_trace() {
        let folder = tempdir().unwrap();
        let path = written(&folder).await;
        set_mode(&path, 0o444);
        let store = Store::open_existing(&url(&path)).await.unwrap();
        assert_eq!(store.articles().get(&coat().id).await, Ok(Some(coat())));
        assert_eq!(
            store.articles().delete(&coat().id, &Expected::default(), NOW).await,
            Err(StoreError::ReadOnly.into())
        );
        store.close().await;
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // For root the folder is open.
        set_mode(&path, 0o600);
        set_mode(folder.path(), 0o555);
        let store = Store::open_existing(&url(&path)).await.unwrap();
        assert_eq!(store.articles().get(&coat().id).await, Ok(Some(coat())));
        store.close().await;
        set_mode(folder.path(), 0o700);
        let store = Store::open(&url(&path)).await.unwrap();
        assert_eq!(store.articles().delete(&coat().id, &Expected::default(), NOW).await, Ok(true));
    }

    #[tokio::test]
    async fn other_files_are_refused_and_stay_as_they_are() {
        let folder = tempdir().unwrap();
        let [text, empty] = ["notes.txt", "empty.db"].map(|name| folder.path().join(name));
        fs::write(&text, "Coats, boots and scarves.\n".repeat(100)).unwrap();
        fs::write(&empty, "").unwrap();
        set_mode(&empty, 0o444);
        for (path, advice) in [
            (folder.path(), "is a folder; name a file in it"),
            (&text, "not a SQLite database; name another file, or move this one"),
            (&text.join("a.db"), "cannot be opened: Not a directory"),
            (Path::new("/proc/nowhere/a.db"), "check the path, and the permissions"),
            (&empty, "empty.db cannot be opened: it must be migrated to this"),
        ] {
            let message = Store::open(&url(path)).await.unwrap_err().to_string();
            assert!(message.contains(&url(path)) && message.contains(advice), "{message}");
            assert!(!message.contains("login"), "{message}");
        }
        assert_eq!(fs::read_to_string(&text).unwrap().len(), 2600, "the file is unchanged");
        let path = folder.path().join("data/a.db");
        let refused = Store::open_existing(&url(&path)).await.unwrap_err().to_string();
        let expected = format!("there is no database at {}; name another with --database", url(&path));
        assert_eq!(refused, expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is created");
    }
}
