//! The release that is served, for those who need its schema or vocabulary and no model.

use std::{
    ops::Deref,
    sync::{Arc, LazyLock},
};

use super::AppState;
use crate::{domain::Schema, release::Release};

/// The schema that features are read by: what is served is what they will mean.
pub(super) enum ServedSchema {
    Release(Arc<Release>),
    /// There is no release.
    Default,
}

impl AppState {
    pub(super) fn schema(&self) -> ServedSchema {
        self.release.clone().map_or(ServedSchema::Default, ServedSchema::Release)
    }

    /// The release of that name, while it is the one that is served.
    pub(super) fn served(&self, name: &str) -> Option<Arc<Release>> {
        self.release.clone().filter(|release| release.manifest().name == name)
    }
}

impl Deref for ServedSchema {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        static DEFAULT: LazyLock<Schema> = LazyLock::new(Schema::default_schema);
        match self {
            Self::Release(release) => release.schema(),
            Self::Default => &DEFAULT,
        }
    }
}
