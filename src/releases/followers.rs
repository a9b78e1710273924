//! Features' data on a live release: each is compiled for it, and follows its changes. `app` lists them.

use std::{
    any::{Any, type_name},
    fmt,
    future::ready,
    sync::Arc,
};

use atelier_core::domain::{ExperimentName, Timestamp};
use atelier_engine::catalogue::Catalogue;
use futures_util::{FutureExt, future::BoxFuture};

use super::{LiveRelease, arms::Arms};
use crate::platform::db::{Named, Store, StoreError};

/// The followers of a live release, by feature.
#[derive(Debug, Clone)]
pub struct Following {
    /// Shared by all releases.
    pub shared: Vec<Arc<dyn Follower>>,
    /// Compiled for each, as before there is a release.
    pub compiled: Vec<Arc<dyn Follower>>,
    /// The arms of the stored experiments that run.
    pub arms: fn(&[Named<ExperimentName>]) -> Arms,
    /// The first stored experiment that compares releases while it runs.
    pub compares_releases: fn(&[Named<ExperimentName>]) -> Option<ExperimentName>,
}

/// Something that a feature compiles for a live release.
pub trait Follower: Any + fmt::Debug + Send + Sync {
    /// Its next value after a change; None if it stays.
    fn follow(self: Arc<Self>, _change: Change<'_>) -> Followed<'_> {
        ready(Ok(None)).boxed()
    }

    /// Its next value if only the articles at these positions changed; None if it stays.
    fn with_articles(
        self: Arc<Self>,
        _before: &Catalogue,
        _next: &Catalogue,
        _positions: &[u32],
    ) -> Option<Arc<dyn Follower>> {
        None
    }

    /// When it begins or ends to say something next, in milliseconds.
    fn next_change(&self, _now: Timestamp) -> Option<i64> {
        None
    }
}

pub type Followed<'a> = BoxFuture<'a, Result<Option<Arc<dyn Follower>>, StoreError>>;

/// A live release as it is now and as it will be.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub store: &'a Store,
    /// None if it was loaded just now.
    pub before: Option<&'a LiveRelease>,
    pub next: &'a LiveRelease,
    /// The stored experiments, if rules, experiments or settings may have changed.
    pub experiments: Option<&'a [Named<ExperimentName>]>,
}

impl Change<'_> {
    /// Whether articles may have changed.
    pub fn has_articles(self) -> bool {
        self.before.is_none_or(|before| before.articles != self.next.articles)
    }

    /// Whether rules, experiments or settings may have changed.
    pub fn has_settings(self) -> bool {
        self.experiments.is_some()
    }

    /// Whether looks may have changed.
    pub fn has_looks(self) -> bool {
        self.before.is_none_or(|before| before.looks != self.next.looks)
    }
}

/// The one of a type.
pub(super) fn find<T: Follower>(followers: &[Arc<dyn Follower>]) -> &T {
    let found = followers.iter().find_map(|one| (&**one as &dyn Any).downcast_ref());
    found.unwrap_or_else(|| panic!("nothing follows as {}", type_name::<T>()))
}
