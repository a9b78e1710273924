//! Where what is known of customers comes from.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use crate::{
    domain::{Customer, CustomerId, Features, Schema},
    exchange,
    store::Store,
};

use super::OfflineError;

/// Customers' features by their ids.
#[derive(Debug, Clone)]
pub enum Profiles {
    /// In the database, asked for as many at once as are answered together.
    Stored(Store),
    /// Read from a file before the first part; none, where the parts say all themselves.
    Held(HashMap<CustomerId, Features>),
}

impl Profiles {
    /// All customers of a file.
    pub fn read(path: &Path, schema: &Schema) -> Result<Self, OfflineError> {
        let mut held = HashMap::new();
        for row in exchange::read::<Customer>(path, schema)? {
            let Customer { id, features } =
                row.map_err(|error| OfflineError::Row { path: path.to_owned(), error })?.value;
            held.insert(id, features);
        }
        Ok(Self::Held(held))
    }

    /// Those of these customers that are known.
    pub(super) async fn of(
        &self,
        ids: BTreeSet<&CustomerId>,
    ) -> Result<HashMap<CustomerId, Features>, OfflineError> {
        match self {
            Self::Stored(store) => {
                let ids: Vec<CustomerId> = ids.into_iter().cloned().collect();
                let found = store.customers().named(&ids).await?;
                Ok(found.into_iter().map(|customer| (customer.id, customer.features)).collect())
            }
            Self::Held(held) => {
                let found = |id: &CustomerId| held.get(id).map(|features| (id.clone(), features.clone()));
                Ok(ids.into_iter().filter_map(found).collect())
            }
        }
    }
}
