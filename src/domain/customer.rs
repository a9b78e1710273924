//! A customer as the shop knows them.

use super::{CustomerId, Features};

/// A customer and what is known about them. Whether the features mean anything is the schema's to
/// say, when they are encoded: profiles outlive schemas.
#[derive(Debug, Clone, PartialEq)]
pub struct Customer {
    pub id: CustomerId,
    pub features: Features,
}
