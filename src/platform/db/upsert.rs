//! Inserting or updating many rows with one statement.
//!
//! An unchanged row is not written, and counted as such. One statement of 500 rows costs far less than 500 statements, each
//! of which is a message to `SQLite`'s thread or Postgres's process.

use std::{collections::HashSet, fmt::Write, hash::Hash};

use sqlx::{AnyConnection, Arguments, AssertSqlSafe, any::AnyArguments};

use super::{StoreError, connect::Dialect};

/// Rows of a statement: with eleven columns 5,500 values, below the limits of both databases (32,766 and 65,535).
pub(crate) const ROWS: usize = 500;

/// `on conflict … do update …` for a row of articles or customers. `$old` is the first column's earlier value, which is null if the running
/// import added the row.
///
/// An import keeps what the row was. Every other write takes the row from the running import, also if it changes nothing.
macro_rules! on_conflict {
    ($table:literal, $compared:literal, $($column:literal),+; $old:literal) => {
        concat!(
            "on conflict (id) do update set ",
            $($column, " = excluded.", $column, ", old_", $column, " = case when excluded.import = 0 then null
                when ", $table, ".import = excluded.import then ", $table, ".old_", $column, "
                else ", $table, ".", $column, " end, ",)+
            "import = excluded.import, revision = case
                when excluded.import = 0 and ", $table, ".import = (select number from running_import)
                    and ", $table, ".", $old, " is null then 1
                when excluded.import <> 0 and ", $table, ".import = excluded.import and ", $table, ".", $old, " is not null
                    then ", $table, ".revision
                else ", $table, ".revision + 1 end
             where ", $compared, "
                or excluded.import = 0 and ", $table, ".import = (select number from running_import)"
        )
    };
}
pub(crate) use on_conflict;

pub(crate) trait Row: Send {
    /// `insert into … (…) values`
    const INSERT: &'static str;
    /// The number of values that `bind` adds.
    const COLUMNS: usize;
    /// `on conflict … do update …`, which counts up `revision` and leaves an unchanged row alone.
    const ON_CONFLICT: &'static str;
    /// The column that names a written row; `''` if no caller needs it.
    const NAME: &'static str;
    type Key: Eq + Hash + Send;

    /// Rows with the same key are the same row.
    fn key(&self) -> Self::Key;

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError>;

    fn missing_reference() -> StoreError {
        StoreError::Other("the row refers to a missing one".into())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub added: u64,
    pub changed: u64,
    pub unchanged: u64,
}

/// An upsert's result. The names are those of the rows that it added or changed.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) counts: Counts,
    pub(crate) names: Vec<String>,
}

/// The result of an upsert of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Added,
    Changed,
    Unchanged,
}

pub(crate) async fn write_one<R: Row>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    row: R,
) -> Result<Put, StoreError> {
    let written = write_all(connection, dialect, std::iter::once(Ok(row))).await?;
    Ok(match written.counts {
        Counts { added: 1, .. } => Put::Added,
        Counts { changed: 1, .. } => Put::Changed,
        _ => Put::Unchanged,
    })
}

/// Writes the rows in order; a later row replaces an earlier one with its key.
pub(crate) async fn write_all<R: Row>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    rows: impl Iterator<Item = Result<R, StoreError>> + Send,
) -> Result<Written, StoreError> {
    let mut written = Written::default();
    let mut chunk = Vec::with_capacity(rows.size_hint().0.min(ROWS));
    let mut keys = HashSet::new();
    for row in rows {
        let row = row?;
        // Postgres refuses to write a row twice in one statement.
        if chunk.len() == ROWS || keys.contains(&row.key()) {
            write_chunk(connection, dialect, &mut chunk, &mut written).await?;
            keys.clear();
        }
        keys.insert(row.key());
        chunk.push(row);
    }
    if !chunk.is_empty() {
        write_chunk(connection, dialect, &mut chunk, &mut written).await?;
    }
    Ok(written)
}

async fn write_chunk<R: Row>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    chunk: &mut Vec<R>,
    written: &mut Written,
) -> Result<(), StoreError> {
    let rows = chunk.len();
    let values = placeholders(dialect, rows, R::COLUMNS);
    // Gives nothing for an unchanged row.
    let sql = format!("{} {values} {} returning revision, {}", R::INSERT, R::ON_CONFLICT, R::NAME);
    let mut arguments = AnyArguments::default();
    arguments.reserve(rows * R::COLUMNS, 0);
    for row in chunk.drain(..) {
        row.bind(&mut arguments).map_err(|error| StoreError::Other(error.to_string()))?;
    }
    let found: Vec<(i64, String)> = sqlx::query_as_with(AssertSqlSafe(sql), arguments)
        // Other sizes are rare, and would displace the connection's prepared statements.
        .persistent(rows == 1 || rows == ROWS)
        .fetch_all(connection)
        .await
        .map_err(StoreError::for_missing_reference(R::missing_reference()))?;
    let added = found.iter().filter(|(revision, _)| *revision == 1).count();
    written.counts += Counts {
        added: added as u64,
        changed: (found.len() - added) as u64,
        unchanged: (rows - found.len()) as u64,
    };
    written.names.extend(found.into_iter().map(|(_, name)| name));
    Ok(())
}

/// `($1, $2), ($3, $4)`
///
/// For `SQLite` it uses `?`, because binding a numbered placeholder searches all of them by name.
pub(crate) fn placeholders(dialect: Dialect, rows: usize, columns: usize) -> String {
    let mut values = String::with_capacity(rows * columns * 7);
    for index in 0..rows * columns {
        values.push_str(match index {
            0 => "(",
            _ if index % columns == 0 => "), (",
            _ => ", ",
        });
        match dialect {
            Dialect::Sqlite => values.push('?'),
            Dialect::Postgres => {
                write!(values, "${}", index + 1).expect("writing to a String never fails");
            }
        }
    }
    values.push(')');
    values
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.added += more.added;
        self.changed += more.changed;
        self.unchanged += more.unchanged;
    }
}
