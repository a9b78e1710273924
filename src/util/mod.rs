//! Helpers that do not know the product: dates, CSV, digests, lists and maps whose clones share parts, JSON pointers,
//! memory, the notation of prices and dates, open files, HTTP, TLS, traces.

pub mod calendar;
pub mod chunked;
pub mod clock;
pub mod csv;
pub mod digest;
pub mod histogram;
pub mod http_client;
pub(crate) mod json_pointer;
pub(crate) mod memory;
pub mod notation;
pub(crate) mod open_files;
pub mod sharded;
pub mod telemetry;
pub(crate) mod text;
pub mod tls;
