//! Errors on opening a database, each with its URL and with advice.

use super::StoreError;

/// Why a database cannot be opened. `database` is its URL without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{database:?} is not a database URL: {reason}; write sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    Url { database: String, reason: String },
    #[error("there is no database at {database}; name another with --database")]
    Missing { database: String },
    #[error("the database {database} is a folder; name a file in it")]
    Folder { database: String },
    #[error(
        "the database {database} cannot be opened: {reason}; check the path, and the permissions of the file and its folder"
    )]
    File { database: String, reason: String },
    #[error(
        "the database {database} cannot be reached: {reason}; check that it is running, and the address and login"
    )]
    Server { database: String, reason: String },
    #[error("{database}: {error}")]
    Other { database: String, error: StoreError },
}

impl OpenError {
    pub(crate) fn from_file(database: String, error: StoreError) -> Self {
        match error {
            StoreError::Unreachable { reason } => Self::File { database, reason },
            StoreError::ReadOnly => Self::File {
                database,
                reason: "it must be migrated to this Atelier's version, but is read-only".into(),
            },
            error => Self::Other { database, error },
        }
    }
}
