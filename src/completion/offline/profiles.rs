//! The profiles of the customers in a part.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    sync::Arc,
};

use atelier_core::domain::{Customer, CustomerId, Features, Schema};
use atelier_files::Dialect;

use super::OfflineError;
use crate::{completion::Stored, platform::db::Store};

#[derive(Debug, Clone)]
pub enum Profiles {
    /// The database, which is read once for each chunk.
    Stored(Store),
    /// Read from a file before the first part; empty if the parts have all features.
    Held(HashMap<CustomerId, Features>),
}

impl Profiles {
    pub fn read(path: &Path, schema: &Schema, dialect: &Dialect) -> Result<Self, OfflineError> {
        let mut held = HashMap::new();
        for row in atelier_files::read_as::<Customer>(path, schema, dialect)? {
            let Customer { id, features } =
                row.map_err(|error| OfflineError::Row { path: path.to_owned(), error })?.value;
            held.insert(id, features);
        }
        Ok(Self::Held(held))
    }

    /// The profiles of these customers, with their purchases if they are in the database.
    pub(super) async fn get(
        &self,
        ids: BTreeSet<&CustomerId>,
    ) -> Result<HashMap<CustomerId, Arc<Stored>>, OfflineError> {
        match self {
            Self::Stored(store) => {
                let ids: Vec<CustomerId> = ids.into_iter().cloned().collect();
                let found = store.customers().get_many(&ids).await?;
                let mut bought = store.customers().purchases_of(&ids).await?;
                let profile = |Customer { id, features }: Customer| {
                    let bought = bought.remove(&id).unwrap_or_default();
                    (id, Arc::new(Stored::new(features, bought)))
                };
                Ok(found.into_iter().map(profile).collect())
            }
            Self::Held(held) => {
                let stored = |id| Some(Arc::new(Stored::new(held.get(id)?.clone(), Vec::new())));
                Ok(ids.into_iter().filter_map(|id| Some((id.clone(), stored(id)?))).collect())
            }
        }
    }
}
