//! Its statements, on both databases.

pub mod people;
