//! Profiles, notes and erasure.

pub(crate) mod api;
pub(crate) mod features;
pub(crate) mod page;
mod sql;

use std::sync::Arc;

use atelier_core::domain::CustomerId;

pub(crate) use self::sql::customers::{check_known, customer_id};
pub use self::sql::{
    customers::Customers,
    notes::{CustomerNote, Notes},
};

use crate::platform::http::AppState;

/// The copies of customers in memory, which forget one whose profile changes or goes. `app` lists them.
#[derive(Clone)]
pub(crate) struct Copies(pub(crate) Arc<[Forget]>);

pub(crate) type Forget = Box<dyn Fn(&CustomerId) + Send + Sync>;

impl AppState {
    pub(crate) fn forget_customer(&self, id: &CustomerId) {
        self.part::<Copies>().0.iter().for_each(|forget| forget(id));
    }
}
