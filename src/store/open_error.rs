//! Why a database could not be opened: always with its name, and with advice that fits its kind.

use super::StoreError;

/// What went wrong on opening. `database` is its URL as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{database:?} is no database's URL: {reason}; it is sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    Url { database: String, reason: String },
    #[error("there is no database at {database}; name the one you mean with --database")]
    Missing { database: String },
    #[error("the database {database} is a folder; name a file in it")]
    Folder { database: String },
    #[error(
        "the database {database} cannot be opened: {reason}; check the path, and the permissions of the file and its folder"
    )]
    File { database: String, reason: String },
    #[error(
        "the database {database} cannot be reached: {reason}; check that it runs, and the address and login"
    )]
    Server { database: String, reason: String },
    #[error("{database}: {error}")]
    Other { database: String, error: StoreError },
}

impl OpenError {
    pub(super) fn of_file(database: String, error: StoreError) -> Self {
        match error {
            StoreError::Unreachable { reason } => Self::File { database, reason },
            StoreError::ReadOnly => Self::File {
                database,
                reason: "it must be brought to this Atelier's version, and can only be read".into(),
            },
            error => Self::Other { database, error },
        }
    }
}
