//! Users, sign-in, keys, roles and the audit log.

pub mod access;
pub mod attempts;
pub mod audit;
pub mod keyless;
pub mod keys;
pub mod publishable;
pub mod sign_in;
pub mod sql;
pub mod uses;
