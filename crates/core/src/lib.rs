//! Shared by the service and the training tool, and changed by nothing outside: the domain with its one encoder, helpers, and
//! drawings. Knows no files, databases, HTTP servers or models.

pub mod domain;
pub mod drawing;
pub mod util;
