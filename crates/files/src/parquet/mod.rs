//! Parquet files, through the column API of the `parquet` crate: its arrow support would add over a minute to the build.

mod bound;
mod column;
mod plain;
mod plan;
mod read;
mod write;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ::parquet::{
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::types::{Type, TypePtr},
};

pub use plain::{PlainColumn, write_columns};
pub(super) use read::ParquetReader;
pub(super) use write::ParquetWriter;

/// Calls into the `parquet` crate, which panics on some damaged files, and turns a panic into an error. The caller must
/// not use the reader again.
///
/// `work` must only call the crate, so that a bug of ours is not reported as damage.
pub fn catch_panic<V>(work: impl FnOnce() -> Result<V, ParquetError>) -> Result<V, ParquetError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ParquetError::General("invalid bytes".into())))
}

/// Starts a file with these columns.
pub(super) fn create<W: io::Write + Send>(
    name: &str,
    columns: Vec<TypePtr>,
    file: W,
) -> io::Result<SerializedFileWriter<W>> {
    let root = Type::group_type_builder(name).with_fields(columns).build()?;
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    Ok(SerializedFileWriter::new(file, Arc::new(root), Arc::new(properties))?)
}
