//! What the service and the training tool share and nothing outside changes: the domain with its one encoder, helpers, and
//! drawings. Knows no files, databases, HTTP servers or models.

pub mod domain;
pub mod drawing;
pub mod util;
