//! Migrating a database to this program's version, and refusing a newer one.

use sqlx::{
    AnyConnection, Connection, SqlSafeStr,
    migrate::{MigrateError, Migration, MigrationType, Migrator},
};

use super::StoreError;

/// One migration, in the SQL of each database.
struct Step {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! step {
    ($version:literal, $number:literal, $name:literal) => {
        Step {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("../../migrations/sqlite/", $number, "_", $name, ".sql")),
            postgres: include_str!(concat!("../../migrations/postgres/", $number, "_", $name, ".sql")),
        }
    };
}

/// Not listed by `sqlx::migrate!`, because its macros would compile most of sqlx a second time.
const STEPS: [Step; 13] = [
    step!(1, "0001", "access"),
    step!(2, "0002", "catalogue"),
    step!(3, "0003", "feedback"),
    step!(4, "0004", "settings"),
    step!(5, "0005", "sign_in_links"),
    step!(7, "0007", "audit_peer"),
    step!(8, "0008", "feedback_counts"),
    step!(9, "0009", "ids"),
    step!(10, "0010", "erasures"),
    step!(11, "0011", "article_changes"),
    step!(12, "0012", "saved_outfits"),
    step!(13, "0013", "acceptance"),
    step!(14, "0014", "queue"),
];

fn migrator(text: impl Fn(&Step) -> &'static str) -> Migrator {
    let migration = |step: &Step| {
        let text = text(step).into_sql_str();
        Migration::new(step.version, step.name.into(), MigrationType::Simple, text, false)
    };
    Migrator::with_migrations(STEPS.iter().map(migration).collect())
}

/// Runs all migrations in one exclusive transaction: sqlx takes no lock on `SQLite`, so two processes that open a new
/// file would both create its tables. It waits longer than writers do, so that a program can start during an import.
pub(super) async fn sqlite(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let migrator = migrator(|step| step.sqlite);
    let count_table = "select count(*) from sqlite_schema where name = '_sqlx_migrations'";
    if is_current(&migrator, count_table, connection).await? {
        return Ok(());
    }
    sqlx::raw_sql("pragma busy_timeout = 60000").execute(&mut *connection).await?;
    let mut transaction = connection.begin_with("begin immediate").await?;
    run(&migrator, &mut transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Bounds the wait for the advisory lock that sqlx takes.
pub(super) async fn postgres(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let migrator = migrator(|step| step.postgres);
    if is_current(&migrator, "select count(to_regclass('_sqlx_migrations'))", connection).await? {
        return Ok(());
    }
    // Without the second setting Postgres would log that the table of migrations exists.
    sqlx::raw_sql("set lock_timeout = '60s'; set client_min_messages = warning")
        .execute(&mut *connection)
        .await?;
    run(&migrator, connection).await
}

/// Whether exactly these migrations have been applied. It only reads, so it needs no lock and no right to write.
async fn is_current(
    migrator: &Migrator,
    count_table: &'static str,
    connection: &mut AnyConnection,
) -> Result<bool, StoreError> {
    let tables: i64 = sqlx::query_scalar(count_table).fetch_one(&mut *connection).await?;
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

async fn run(migrator: &Migrator, connection: &mut AnyConnection) -> Result<(), StoreError> {
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
        for folder in ["sqlite", "postgres"] {
            let path = format!("{}/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
            let entries = std::fs::read_dir(path).unwrap();
            let mut files: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            files.sort();
            let listed = STEPS.map(|step| format!("{:04}_{}.sql", step.version, step.name));
            assert_eq!(files, listed, "{folder}");
        }
    }
}
