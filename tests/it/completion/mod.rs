//! From a request to its answer.

pub mod comparing;
pub mod completing;
pub mod filtering;
pub mod fitting;
pub mod moment;
pub mod new_articles;
pub mod offering;
pub mod owned;
pub mod reasons;
pub mod remembered_outfits;
pub mod scoring;
pub mod similar;
pub mod tickets;
