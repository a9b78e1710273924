//! Bringing a database up to this program's version, and refusing one that it does not understand.

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

/// Listed here rather than by `sqlx::migrate!`, whose crate of macros compiles most of sqlx a second time
/// for the compiler's own use.
const STEPS: [Step; 5] = [
    Step {
        version: 1,
        name: "access",
        sqlite: include_str!("../../migrations/sqlite/0001_access.sql"),
        postgres: include_str!("../../migrations/postgres/0001_access.sql"),
    },
    Step {
        version: 2,
        name: "catalogue",
        sqlite: include_str!("../../migrations/sqlite/0002_catalogue.sql"),
        postgres: include_str!("../../migrations/postgres/0002_catalogue.sql"),
    },
    Step {
        version: 3,
        name: "feedback",
        sqlite: include_str!("../../migrations/sqlite/0003_feedback.sql"),
        postgres: include_str!("../../migrations/postgres/0003_feedback.sql"),
    },
    Step {
        version: 4,
        name: "settings",
        sqlite: include_str!("../../migrations/sqlite/0004_settings.sql"),
        postgres: include_str!("../../migrations/postgres/0004_settings.sql"),
    },
    Step {
        version: 5,
        name: "sign_in_links",
        sqlite: include_str!("../../migrations/sqlite/0005_sign_in_links.sql"),
        postgres: include_str!("../../migrations/postgres/0005_sign_in_links.sql"),
    },
];

fn migrator(text: impl Fn(&Step) -> &'static str) -> Migrator {
    let migration = |step: &Step| {
        let text = text(step).into_sql_str();
        Migration::new(step.version, step.name.into(), MigrationType::Simple, text, false)
    };
    Migrator::with_migrations(STEPS.iter().map(migration).collect())
}

/// All in one transaction that has the file to itself: sqlx takes no lock on `SQLite`, and two processes
/// opening a new file would both create its tables. Whoever must migrate during an import waits a little
/// longer than writers do, rather than not start.
pub(super) async fn sqlite(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let migrator = migrator(|step| step.sqlite);
    let there = "select count(*) from sqlite_schema where name = '_sqlx_migrations'";
    if is_current(&migrator, there, connection).await? {
        return Ok(());
    }
    sqlx::raw_sql("pragma busy_timeout = 60000").execute(&mut *connection).await?;
    let mut transaction = connection.begin_with("begin immediate").await?;
    run(&migrator, &mut transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// sqlx holds an advisory lock meanwhile; this bounds how long others wait for it.
pub(super) async fn postgres(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let migrator = migrator(|step| step.postgres);
    if is_current(&migrator, "select count(to_regclass('_sqlx_migrations'))", connection).await? {
        return Ok(());
    }
    // And Postgres would tell the log that the table of migrations exists.
    sqlx::raw_sql("set lock_timeout = '60s'; set client_min_messages = warning")
        .execute(&mut *connection)
        .await?;
    run(&migrator, connection).await
}

/// Whether exactly these migrations were applied. It only reads, so it waits for nobody, and needs no right
/// to write. Anything else is `run`'s to judge, with the lock.
async fn is_current(
    migrator: &Migrator,
    there: &'static str,
    connection: &mut AnyConnection,
) -> Result<bool, StoreError> {
    let tables: i64 = sqlx::query_scalar(there).fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(false);
    }
    let applied: Vec<(i64, Vec<u8>)> =
        sqlx::query_as("select version, checksum from _sqlx_migrations where success order by version")
            .fetch_all(connection)
            .await?;
    let known = migrator.iter().map(|migration| (migration.version, &migration.checksum[..]));
    Ok(applied.iter().map(|(version, checksum)| (*version, &checksum[..])).eq(known))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_step() {
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
