//! Migrating a database to this program's version, and refusing a newer one.

use sqlx::{
    AnyConnection, Connection, SqlSafeStr,
    migrate::{MigrateError, Migration, MigrationType, Migrator},
};

use super::{StoreError, connect::Dialect};

/// The name and the SQL of a database's migrations, of which the first has the version 1.
///
/// Not listed by `sqlx::migrate!`, because its macros would compile most of sqlx a second time.
type Migrations = [(&'static str, &'static str); 1];

const SQLITE: Migrations = [("atelier", include_str!("../../../migrations/sqlite/0001_atelier.sql"))];
const POSTGRES: Migrations = [("atelier", include_str!("../../../migrations/postgres/0001_atelier.sql"))];

fn migrator(migrations: Migrations) -> Migrator {
    let migration = |(version, (name, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    Migrator::with_migrations((1..).zip(migrations).map(migration).collect())
}

pub(crate) async fn run(connection: &mut AnyConnection, dialect: Dialect) -> Result<(), StoreError> {
    let migrator = migrator(match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
    });
    if is_current(&migrator, connection, dialect).await? {
        return Ok(());
    }
    match dialect {
        // One exclusive transaction: sqlx takes no lock on SQLite, so two processes that open a new file would both create
        // its tables. It waits longer than writers do, so that a program can start during an import.
        Dialect::Sqlite => {
            sqlx::raw_sql("pragma busy_timeout = 60000").execute(&mut *connection).await?;
            let mut transaction = connection.begin_with("begin immediate").await?;
            apply(&migrator, &mut transaction).await?;
            Ok(transaction.commit().await?)
        }
        // The first setting bounds the wait for the advisory lock that sqlx takes. Without the second one Postgres would
        // log that the table of migrations exists.
        Dialect::Postgres => {
            let settings = "set lock_timeout = '60s'; set client_min_messages = warning";
            sqlx::raw_sql(settings).execute(&mut *connection).await?;
            apply(&migrator, connection).await
        }
    }
}

/// Whether exactly these migrations have been applied. It only reads, so it needs no lock and no right to write.
async fn is_current(
    migrator: &Migrator,
    connection: &mut AnyConnection,
    dialect: Dialect,
) -> Result<bool, StoreError> {
    let tables: i64 = sqlx::query_scalar(match dialect {
        Dialect::Sqlite => "select count(*) from sqlite_schema where name = '_sqlx_migrations'",
        Dialect::Postgres => "select count(to_regclass('_sqlx_migrations'))",
    })
    .fetch_one(&mut *connection)
    .await?;
    if tables == 0 {
        return Ok(false);
    }
    let applied: Vec<(i64, Vec<u8>)> =
        sqlx::query_as("select version, checksum from _sqlx_migrations where success order by version")
            .fetch_all(connection)
            .await?;
    let expected = migrator.iter().map(|migration| (migration.version, &migration.checksum[..]));
    Ok(applied.iter().map(|(version, checksum)| (*version, &checksum[..])).eq(expected))
}

async fn apply(migrator: &Migrator, connection: &mut AnyConnection) -> Result<(), StoreError> {
    // The lifetimes of `Migrator::run` keep its future from being `Send`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_is_listed() {
        for (folder, migrations) in [("sqlite", SQLITE), ("postgres", POSTGRES)] {
            let path = format!("{}/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
            let entries = std::fs::read_dir(path).unwrap();
            let mut files: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            files.sort();
            let listed = (1..).zip(migrations).map(|(version, (name, _))| format!("{version:04}_{name}.sql"));
            assert_eq!(files, listed.collect::<Vec<_>>(), "{folder}");
        }
    }
}
