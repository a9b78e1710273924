//! Helpers that do not know the product: dates, CSV, digests, lists and maps whose clones share parts, JSON pointers and fields,
//! memory, the notation of prices and dates, open files, HTTP, TLS, traces.

pub mod calendar;
pub mod chunked;
pub mod clock;
pub mod csv;
pub mod digest;
pub mod fetch;
pub mod folders;
pub mod histogram;
pub mod http_client;
pub mod json_fields;
pub mod json_pointer;
pub mod memory;
pub mod notation;
pub mod sharded;
pub mod text;
pub mod zone;
