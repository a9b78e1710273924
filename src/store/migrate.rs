//! Bringing a database up to this program's version, and refusing one that it does not understand.

use sqlx::{
    AnyConnection, Connection,
    migrate::{MigrateError, Migrator},
};

use super::StoreError;

static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");

/// All in one transaction that has the file to itself: sqlx takes no lock on `SQLite`, and two processes
/// opening a new file would both create its tables. Whoever opens during an import waits a little longer
/// than writers do, rather than not start.
pub(super) async fn sqlite(connection: &mut AnyConnection) -> Result<(), StoreError> {
    sqlx::raw_sql("pragma busy_timeout = 60000").execute(&mut *connection).await?;
    let mut transaction = connection.begin_with("begin immediate").await?;
    run(&SQLITE, &mut transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// sqlx holds an advisory lock meanwhile; this bounds how long others wait for it.
pub(super) async fn postgres(connection: &mut AnyConnection) -> Result<(), StoreError> {
    // And Postgres would tell the log at each start that the table of migrations exists.
    sqlx::raw_sql("set lock_timeout = '60s'; set client_min_messages = warning")
        .execute(&mut *connection)
        .await?;
    run(&POSTGRES, connection).await
}

async fn run(migrator: &Migrator, connection: &mut AnyConnection) -> Result<(), StoreError> {
    // `run` says the same through a trait whose lifetimes keep this future from being `Send`.
    match migrator.run_direct(None, &mut *connection, false).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(missing)) => {
            let known = migrator.iter().map(|migration| migration.version).max().unwrap_or_default();
            let found: i64 =
                sqlx::query_scalar("select max(version) from _sqlx_migrations").fetch_one(connection).await?;
            Err(if found > known {
                StoreError::Newer { found, known }
            } else {
                StoreError::Altered { version: missing }
            })
        }
        Err(MigrateError::VersionMismatch(version)) => Err(StoreError::Altered { version }),
        Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => Err(error.into()),
        Err(error) => Err(StoreError::Other(error.to_string())),
    }
}
