//! Where what is known of customers comes from.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    path::Path,
};

use crate::{
    domain::{Customer, CustomerId, Features, Schema},
    files,
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
        for row in files::read::<Customer>(path, schema)? {
            let Customer { id, features } =
                row.map_err(|error| OfflineError::Row { path: path.to_owned(), error })?.value;
            held.insert(id, features);
        }
        Ok(Self::Held(held))
    }

    /// What is known of these customers.
    pub(super) async fn of(&self, ids: BTreeSet<&CustomerId>) -> Result<Known<'_>, OfflineError> {
        match self {
            Self::Stored(store) => {
                let ids: Vec<CustomerId> = ids.into_iter().cloned().collect();
                let found = store.customers().named(&ids).await?;
                let found = found.into_iter().map(|customer| (customer.id, customer.features)).collect();
                Ok(Known(Cow::Owned(found)))
            }
            Self::Held(held) => Ok(Known(Cow::Borrowed(held))),
        }
    }
}

/// Features at hand.
#[derive(Debug)]
pub(super) struct Known<'a>(Cow<'a, HashMap<CustomerId, Features>>);

impl Known<'_> {
    pub(super) fn get(&self, id: &CustomerId) -> Option<&Features> {
        self.0.get(id)
    }
}
