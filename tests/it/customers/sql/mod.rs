//! Its statements, on both databases.

pub mod customers;
pub mod erasing;
