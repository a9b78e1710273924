//! Reading a row's columns by their names into a domain type.

use std::fmt::Display;

use atelier_core::domain::Timestamp;
use sqlx::{Any, Decode, FromRow, Row, Type, any::AnyRow};

use super::StoreError;

/// Rows are read into it.
pub(crate) trait Readable: for<'r> FromRow<'r, AnyRow> + Send + Unpin {}

impl<T: for<'r> FromRow<'r, AnyRow> + Send + Unpin> Readable for T {}

/// A row, and what identifies it in errors.
pub(crate) struct Record<'r> {
    row: &'r AnyRow,
    table: &'static str,
    id: &'r dyn Display,
}

impl<'r> Record<'r> {
    pub(crate) fn new(row: &'r AnyRow, table: &'static str, id: &'r dyn Display) -> Self {
        Self { row, table, id }
    }

    pub(crate) fn get<T: Decode<'r, Any> + Type<Any>>(&self, column: &str) -> sqlx::Result<T> {
        self.row.try_get(column)
    }

    pub(crate) fn time(&self, column: &str) -> sqlx::Result<Timestamp> {
        self.get(column).map(Timestamp::from_millis)
    }

    pub(crate) fn optional_time(&self, column: &str) -> sqlx::Result<Option<Timestamp>> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_millis))
    }

    pub(crate) fn parse<V, T, E: Display>(
        &self,
        column: &str,
        parse: impl FnOnce(V) -> Result<T, E>,
    ) -> sqlx::Result<T>
    where
        V: Decode<'r, Any> + Type<Any>,
    {
        parse(self.get(column)?).map_err(|error| self.damaged(&error))
    }

    /// Like [`Record::parse`], for a column that may be null.
    pub(crate) fn parse_optional<V, T, E: Display>(
        &self,
        column: &str,
        parse: impl FnOnce(V) -> Result<T, E>,
    ) -> sqlx::Result<Option<T>>
    where
        V: Decode<'r, Any> + Type<Any>,
    {
        self.parse(column, |value: Option<V>| value.map(parse).transpose())
    }

    /// The error of a damaged row, which [`StoreError`] takes out of sqlx's again.
    pub(crate) fn damaged(&self, reason: &dyn Display) -> sqlx::Error {
        let (table, id, reason) = (self.table, self.id.to_string(), reason.to_string());
        sqlx::Error::Decode(Box::new(StoreError::Damaged { table, id, reason }))
    }
}
