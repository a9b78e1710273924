//! A database for one test: a file in a temporary folder, or a copy of a migrated Postgres database.

use std::{
    error::Error,
    fmt, fs,
    path::Path,
    process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use atelier::platform::db::Store;
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::postgres;

type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// Where a test's database comes from.
#[derive(Debug, Clone)]
pub enum Server {
    Sqlite,
    /// The URL of a database in which others can be created.
    Postgres(String),
}

/// An empty, migrated database for one test.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    pub kind: Kind,
    pub url: String,
    server: Server,
    folder: Option<Arc<TempDir>>,
}

impl TestDatabase {
    pub async fn open(&self) -> Store {
        Store::open(&self.url).await.expect("a fresh database opens")
    }

    /// A connection past the store, to see what is really stored.
    pub async fn raw(&self) -> sqlx::AnyConnection {
        sqlx::any::install_default_drivers();
        sqlx::AnyConnection::connect(&self.url).await.expect("a fresh database can be connected to")
    }

    /// The folder of the database's file; Postgres has its own.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref().map(TempDir::path)
    }

    /// Another one on the same server.
    pub async fn another(&self) -> Result<Self, BoxError> {
        self.server.clone().fresh().await
    }

    /// Replaces it by a copy of another one of its kind. Nothing may have either open.
    pub async fn copy_from(&self, other: &Self) -> Result<(), BoxError> {
        match &self.server {
            Server::Postgres(server) => {
                execute(server, format!("drop database {}", self.name())).await?;
                execute(server, format!("create database {} template {}", self.name(), other.name())).await
            }
            Server::Sqlite => {
                fs::copy(other.url.trim_start_matches("sqlite:"), self.url.trim_start_matches("sqlite:"))?;
                Ok(())
            }
        }
    }

    pub async fn remove(self) -> Result<(), BoxError> {
        match &self.server {
            // By force: a failed test may have left connections.
            Server::Postgres(server) => {
                execute(server, format!("drop database {} with (force)", self.name())).await
            }
            Server::Sqlite => Ok(()),
        }
    }

    /// On the server.
    fn name(&self) -> &str {
        let address = self.url.split('?').next().unwrap_or_default();
        address.rsplit('/').next().unwrap_or_default()
    }
}

impl Kind {
    /// The server to run tests on, or why there is none.
    pub fn server(self) -> Result<Server, String> {
        match self {
            Kind::Sqlite => Ok(Server::Sqlite),
            Kind::Postgres => postgres::url().map(Server::Postgres),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Sqlite => "sqlite",
            Kind::Postgres => "postgres",
        })
    }
}

impl Server {
    pub async fn fresh(self) -> Result<TestDatabase, BoxError> {
        let (kind, url, folder) = match &self {
            Server::Sqlite => {
                let folder = TempDir::new()?;
                let url = format!("sqlite:{}", folder.path().join("atelier.db").display());
                (Kind::Sqlite, url, Some(Arc::new(folder)))
            }
            Server::Postgres(server) => {
                static COUNT: AtomicU32 = AtomicU32::new(0);
                let name =
                    format!("atelier_test_{}_{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
                let template = template(server).await?;
                execute(server, format!("create database {name} template {template}")).await?;
                (Kind::Postgres, with_database(server, &name), None)
            }
        };
        Ok(TestDatabase { kind, url, server: self, folder })
    }
}

async fn execute(server: &str, statement: String) -> Result<(), BoxError> {
    let mut connection = PgConnection::connect(server).await?;
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
    Ok(connection.close().await?)
}

/// Returns the name of a database with these migrations applied, made once for each server: copying it takes a
/// fraction of the time of migrating. The name is a digest, so a changed migration makes a new one.
async fn template(server: &str) -> Result<&'static str, BoxError> {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let name = TEMPLATE
        .get_or_try_init(async || {
            let name = format!("atelier_test_template_{}", digest_of_migrations()?);
            let mut connection = PgConnection::connect(server).await?;
            // Other test processes want it, too; the lock ends with the connection.
            sqlx::raw_sql("select pg_advisory_lock(4207)").execute(&mut connection).await?;
            let there: bool =
                sqlx::query_scalar("select exists (select 1 from pg_database where datname = $1)")
                    .bind(&name)
                    .fetch_one(&mut connection)
                    .await?;
            if !there {
                sqlx::raw_sql(AssertSqlSafe(format!("create database {name}")))
                    .execute(&mut connection)
                    .await?;
                Store::open(&with_database(server, &name)).await?.close().await;
            }
            connection.close().await?;
            Ok::<_, BoxError>(name)
        })
        .await?;
    Ok(name)
}

fn digest_of_migrations() -> std::io::Result<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/postgres");
    let mut files: Vec<_> =
        fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<std::io::Result<_>>()?;
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(fs::read(file)?);
    }
    let digest: [u8; 32] = digest.finalize().into();
    Ok(format!("{:016x}", u64::from_be_bytes(*digest.first_chunk().expect("32 bytes begin with 8"))))
}

/// The server's URL with another database.
fn with_database(server: &str, name: &str) -> String {
    let (scheme, rest) = server.split_once("://").unwrap_or(("postgres", server));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let parameters = rest.find('?').map_or("", |start| &rest[start..]);
    format!("{scheme}://{}/{name}{parameters}", &rest[..end])
}
