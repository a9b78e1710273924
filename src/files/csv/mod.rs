//! CSV: a header, then a record a row.

mod cell;
mod read;
mod write;

pub(super) use read::Reader;
pub(super) use write::Writer;
