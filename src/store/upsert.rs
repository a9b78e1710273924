//! Writing rows that may be there already, many to a statement.
//!
//! A row that is there exactly so is not written again, and the counts say so. One statement of 500 rows
//! costs far less than 500 statements: each is a message to `SQLite`'s thread or to Postgres's process.

use std::{collections::HashSet, fmt::Write, hash::Hash};

use sqlx::{AnyConnection, Arguments, AssertSqlSafe, any::AnyArguments};

use super::{StoreError, connect::Dialect};

/// Rows a statement: 4,000 values at eight columns, under both databases' limits (32,766 and 65,535).
pub(super) const ROWS: usize = 500;

/// A row as its table takes it.
pub(super) trait Row: Send {
    /// `insert into … (…) values`
    const INSERT: &'static str;
    /// How many values `bind` adds.
    const COLUMNS: usize;
    /// `on conflict … do update … returning revision`: 1 for a new row, more for a changed one, and
    /// nothing for one left alone.
    const ON_CONFLICT: &'static str;
    type Key: Eq + Hash + Send;

    /// What makes two rows the same one.
    fn key(&self) -> Self::Key;

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError>;

    /// What it means when the row names something that is not there.
    fn absent() -> StoreError {
        StoreError::Other("the row names something that is not there".into())
    }
}

/// What became of the rows of an upsert.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub added: u64,
    pub changed: u64,
    /// They were there already, exactly so; nothing was written.
    pub unchanged: u64,
}

/// What an upsert of one row did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Added,
    Changed,
    /// It was there already, exactly so; nothing was written.
    Unchanged,
}

pub(super) async fn one<R: Row>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    row: R,
) -> Result<Put, StoreError> {
    let counts = many(connection, dialect, std::iter::once(Ok(row))).await?;
    Ok(match counts {
        Counts { added: 1, .. } => Put::Added,
        Counts { changed: 1, .. } => Put::Changed,
        _ => Put::Unchanged,
    })
}

/// The rows in order: where two are the same one, the later one stays.
pub(super) async fn many<R: Row>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    rows: impl Iterator<Item = Result<R, StoreError>> + Send,
) -> Result<Counts, StoreError> {
    let mut counts = Counts::default();
    let mut chunk = Vec::with_capacity(rows.size_hint().0.min(ROWS));
    let mut keys = HashSet::new();
    for row in rows {
        let row = row?;
        // Postgres refuses to touch a row twice in one statement.
        if chunk.len() == ROWS || keys.contains(&row.key()) {
            counts += write(connection, dialect, &mut chunk).await?;
            keys.clear();
        }
        keys.insert(row.key());
        chunk.push(row);
    }
    if !chunk.is_empty() {
        counts += write(connection, dialect, &mut chunk).await?;
    }
    Ok(counts)
}

async fn write<R: Row>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    chunk: &mut Vec<R>,
) -> Result<Counts, StoreError> {
    let rows = chunk.len();
    let sql = format!("{} {} {}", R::INSERT, values(dialect, rows, R::COLUMNS), R::ON_CONFLICT);
    let mut arguments = AnyArguments::default();
    arguments.reserve(rows * R::COLUMNS, 0);
    for row in chunk.drain(..) {
        row.bind(&mut arguments).map_err(|error| StoreError::Other(error.to_string()))?;
    }
    let revisions: Vec<i64> = sqlx::query_scalar_with(AssertSqlSafe(sql), arguments)
        // Other sizes hardly come again, and would crowd the connection's prepared statements out.
        .persistent(rows == 1 || rows == ROWS)
        .fetch_all(connection)
        .await
        .map_err(StoreError::naming(R::absent()))?;
    let added = revisions.iter().filter(|revision| **revision == 1).count();
    Ok(Counts {
        added: added as u64,
        changed: (revisions.len() - added) as u64,
        unchanged: (rows - revisions.len()) as u64,
    })
}

/// `($1, $2), ($3, $4)`
///
/// `SQLite` gets `?` instead: it looks a numbered placeholder up by its name, among all of them, each time
/// that one is bound.
pub(super) fn values(dialect: Dialect, rows: usize, columns: usize) -> String {
    let mut values = String::with_capacity(rows * columns * 7);
    for place in 0..rows * columns {
        values.push_str(match place {
            0 => "(",
            _ if place % columns == 0 => "), (",
            _ => ", ",
        });
        match dialect {
            Dialect::Sqlite => values.push('?'),
            Dialect::Postgres => {
                write!(values, "${}", place + 1).expect("writing to a String never fails; this is a bug");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_in_rows() {
        assert_eq!(values(Dialect::Postgres, 2, 3), "($1, $2, $3), ($4, $5, $6)");
        assert_eq!(values(Dialect::Sqlite, 2, 1), "(?), (?)");
    }
}
