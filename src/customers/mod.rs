//! Profiles, notes and erasure.

pub(crate) mod api;
pub(crate) mod features;
pub(crate) mod page;
pub mod profiles;
mod sql;
pub mod wording;

pub(crate) use self::sql::customers::check_known;

pub(crate) use self::sql::customers::customer_id;
pub use self::sql::{
    customers::Customers,
    notes::{CustomerNote, Notes},
};
