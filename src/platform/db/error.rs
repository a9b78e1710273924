//! Errors of the database, with advice. Callers decide by the variant whether the client is at fault or should try
//! again.

use sqlx::error::{DatabaseError, ErrorKind};

use super::growth;

/// Why an operation of the store failed.
///
/// It does not contain the driver's error, because Postgres puts the values of the row into it, which must not reach a
/// log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the database cannot be reached: {reason}")]
    Unreachable { reason: String },
    #[error("the database is busy: {reason}; try again")]
    Busy { reason: String },
    #[error(
        "the database has version {found}, and this Atelier supports up to {known}; start a newer Atelier, or restore a backup made by this one"
    )]
    Newer { found: i64, known: i64 },
    #[error(
        "migration {version} of the database differs from this Atelier's; start the Atelier that ran it, or export the data there and import it here"
    )]
    Altered { version: i64 },
    #[error("the file is not a SQLite database; name another file, or move this one")]
    NotSqlite,
    #[error("{0}")]
    Conflict(Conflict),
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("row {id} of table {table} is damaged: {reason}; correct or delete it")]
    Damaged { table: &'static str, id: String, reason: String },
    #[error("{what} cannot be stored: {reason}")]
    Unfit { what: &'static str, reason: String },
    #[error(
        "{what} would take {bytes} MB of each replica's memory; expected at most {most} MB ({share}): remove some, or give the \
         replicas more memory or the setting a higher value"
    )]
    TooLarge { what: &'static str, bytes: u64, most: u64, share: &'static str },
    #[error("the disk of the database is full; free some space and try again")]
    Full,
    #[error("the database is read-only; check the permissions of its file and folder, or of its role")]
    ReadOnly,
    #[error(
        "the demo takes at most 2,000 rows of a table besides its own; start a shop with `atelier --database sqlite:shop.db`"
    )]
    DemoFull,
    #[error("the database reported an error: {0}")]
    Other(String),
}

/// A write that conflicts with existing data, in words for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("another person already has that name")]
    NameTaken,
    #[error("there is no such customer; add the customer first")]
    UnknownCustomer,
    #[error("this is the only admin who can sign in; make another person an admin first")]
    LastAdmin,
    #[error("this person has signed in, so the audit log keeps naming them; disable them instead")]
    SignedIn,
    #[error("the customer already has this outfit; open that one")]
    SameOutfit,
    #[error("an imported outfit stays as it is; save it as a new outfit and change that")]
    ImportedOutfit,
    #[error("a colleague changed this outfit; open it again and repeat your change")]
    OutfitChanged,
    #[error("that feedback id was used for another event; use a new id for each event")]
    FeedbackDiffers,
    #[error("that id was used for another event; use a new id for each event")]
    EventDiffers,
}

impl StoreError {
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge { .. })
    }

    /// Turns a violated foreign key into `missing`, the error for the row that is referred to. `SQLite` does not say
    /// which key was violated, so the caller does.
    pub(crate) fn for_missing_reference(missing: StoreError) -> impl FnOnce(sqlx::Error) -> StoreError {
        move |error| match &error {
            sqlx::Error::Database(database) if database.kind() == ErrorKind::ForeignKeyViolation => missing,
            _ => error.into(),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(database) => from_database(database.as_ref()),
            sqlx::Error::PoolTimedOut => StoreError::Unreachable {
                reason: "no connection in time: the server is down, or all connections are busy".into(),
            },
            error @ (sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed) => StoreError::Unreachable { reason: error.to_string() },
            // A row that could not be read (`record.rs`).
            sqlx::Error::Decode(error) => match error.downcast() {
                Ok(damaged) => *damaged,
                Err(error) => StoreError::Other(error.to_string()),
            },
            error => StoreError::Other(error.to_string()),
        }
    }
}

fn from_database(error: &dyn DatabaseError) -> StoreError {
    if error.kind() == ErrorKind::UniqueViolation
        && let Some((.., conflict)) = UNIQUE.iter().find(|(name, columns, _)| {
            // SQLite names the columns rather than the constraint.
            error.constraint() == Some(name) || error.message() == *columns
        })
    {
        return StoreError::Conflict(*conflict);
    }
    let code = error.code().unwrap_or_default();
    let reason = error.message().to_owned();
    // SQLite's result codes have up to four digits; Postgres's have five characters.
    if code.len() < 5 {
        from_sqlite(code.parse().unwrap_or_default(), reason)
    } else {
        from_postgres(&code, reason)
    }
}

/// The unique constraints that a client can violate, as Postgres and as `SQLite` name them.
const UNIQUE: [(&str, &str, Conflict); 2] = [
    ("people_name_unique", "UNIQUE constraint failed: people.name_key", Conflict::NameTaken),
    ("outfits_digest_unique", "UNIQUE constraint failed: outfits.digest", Conflict::SameOutfit),
];

/// <https://www.sqlite.org/rescode.html>; the lowest byte is the primary code.
fn from_sqlite(code: u32, reason: String) -> StoreError {
    match code & 0xff {
        19 if reason == growth::FULL => StoreError::DemoFull,
        5 | 6 => StoreError::Busy { reason },
        8 => StoreError::ReadOnly,
        13 => StoreError::Full,
        14 => StoreError::Unreachable { reason },
        26 => StoreError::NotSqlite,
        _ => StoreError::Other(reason),
    }
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn from_postgres(code: &str, reason: String) -> StoreError {
    match code {
        "53100" => StoreError::Full,
        "25006" => StoreError::ReadOnly,
        // Lock not available, deadlock, serialisation.
        "55P03" | "40P01" | "40001" => StoreError::Busy { reason },
        // Too many connections; shutting down, crashed, starting up.
        "53300" | "57P01" | "57P02" | "57P03" => StoreError::Unreachable { reason },
        // Connection failures, refused logins, no such database.
        _ if ["08", "28", "3D"].iter().any(|class| code.starts_with(class)) => {
            StoreError::Unreachable { reason }
        }
        _ => StoreError::Other(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{AnyConnection, Connection};

    #[tokio::test]
    async fn a_full_disk_and_a_read_only_file_have_their_own_errors() {
        sqlx::any::install_default_drivers();
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/a.db?mode=rwc", folder.path().display());
        let mut connection = AnyConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("create table t (x blob); pragma max_page_count = 10")
            .execute(&mut connection)
            .await
            .unwrap();
        let full = sqlx::raw_sql("insert into t values (zeroblob(100000))").execute(&mut connection).await;
        assert_eq!(StoreError::from(full.unwrap_err()), StoreError::Full);
        sqlx::raw_sql("pragma query_only = on").execute(&mut connection).await.unwrap();
        let refused = sqlx::raw_sql("insert into t values (1)").execute(&mut connection).await;
        assert_eq!(StoreError::from(refused.unwrap_err()), StoreError::ReadOnly);
    }
}
