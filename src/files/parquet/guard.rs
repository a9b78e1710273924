//! The `parquet` crate panics on some damaged files, and a file that somebody gave us must not.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::parquet::errors::ParquetError;

/// Calls into the crate and turns a panic of its into an error. (Its message still goes where panics
/// go.) Whatever it was working on must not be used again: the callers end the reading there.
///
/// Only the crate's own work belongs inside, so that a bug of ours is not taken for damage.
pub(crate) fn guarded<V>(work: impl FnOnce() -> Result<V, ParquetError>) -> Result<V, ParquetError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ParquetError::General("its bytes make no sense".into())))
}
