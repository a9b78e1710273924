//! A customer of the shop.

use super::{CustomerId, Features};

/// A customer and their features. The schema judges the features when they are encoded: profiles outlive schemas.
#[derive(Debug, Clone, PartialEq)]
pub struct Customer {
    pub id: CustomerId,
    pub features: Features,
}
