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
const STEPS: [Step; 3] = [
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
];

fn migrator(text: impl Fn(&Step) -> &'static str) -> Migrator {
    let migration = |step: &Step| {
        let text = text(step).into_sql_str();
        Migration::new(step.version, step.name.into(), MigrationType::Simple, text, false)
    };
    Migrator::with_migrations(STEPS.iter().map(migration).collect())
}

/// All in one transaction that has the file to itself: sqlx takes no lock on `SQLite`, and two processes
/// opening a new file would both create its tables. Whoever opens during an import waits a little longer
/// than writers do, rather than not start.
pub(super) async fn sqlite(connection: &mut AnyConnection) -> Result<(), StoreError> {
    sqlx::raw_sql("pragma busy_timeout = 60000").execute(&mut *connection).await?;
    let mut transaction = connection.begin_with("begin immediate").await?;
    run(&migrator(|step| step.sqlite), &mut transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// sqlx holds an advisory lock meanwhile; this bounds how long others wait for it.
pub(super) async fn postgres(connection: &mut AnyConnection) -> Result<(), StoreError> {
    // And Postgres would tell the log at each start that the table of migrations exists.
    sqlx::raw_sql("set lock_timeout = '60s'; set client_min_messages = warning")
        .execute(&mut *connection)
        .await?;
    run(&migrator(|step| step.postgres), connection).await
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
