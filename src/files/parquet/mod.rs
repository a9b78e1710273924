//! Parquet, through the `parquet` crate's columns and without arrow, which would cost the build over a
//! minute.

mod column;
mod guard;
mod plan;
mod read;
mod write;

pub(crate) use guard::guarded;
pub(super) use read::Reader;
pub(super) use write::Writer;
