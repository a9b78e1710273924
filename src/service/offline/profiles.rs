//! The profiles of the customers in a part.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    path::Path,
};

use atelier_core::domain::{Customer, CustomerId, Features, Schema};
use atelier_files::Dialect;

use crate::store::Store;

use super::OfflineError;

/// A source of profiles.
#[derive(Debug, Clone)]
pub enum Profiles {
    /// The database, which is read once for each chunk.
    Stored(Store),
    /// Read from a file before the first part; empty if the parts have all features.
    Held(HashMap<CustomerId, Features>),
}

impl Profiles {
    /// Reads all customers of a file.
    pub fn read(path: &Path, schema: &Schema, dialect: &Dialect) -> Result<Self, OfflineError> {
        let mut held = HashMap::new();
        for row in atelier_files::read_as::<Customer>(path, schema, dialect)? {
            let Customer { id, features } =
                row.map_err(|error| OfflineError::Row { path: path.to_owned(), error })?.value;
            held.insert(id, features);
        }
        Ok(Self::Held(held))
    }

    /// The profiles of these customers, and maybe of others.
    pub(super) async fn get(
        &self,
        ids: BTreeSet<&CustomerId>,
    ) -> Result<Cow<'_, HashMap<CustomerId, Features>>, OfflineError> {
        match self {
            Self::Stored(store) => {
                let ids: Vec<CustomerId> = ids.into_iter().cloned().collect();
                let found = store.customers().get_many(&ids).await?;
                Ok(Cow::Owned(found.into_iter().map(|customer| (customer.id, customer.features)).collect()))
            }
            Self::Held(held) => Ok(Cow::Borrowed(held)),
        }
    }
}
