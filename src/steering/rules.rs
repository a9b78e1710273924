//! The shop's rules as documents, and as they follow the live release.

use std::sync::Arc;

use atelier_core::domain::{RuleName, Timestamp};
use atelier_engine::catalogue::Catalogue;
use futures_util::FutureExt;
use tokio::task;

use super::documents::{Document, read_all};
use crate::{
    completion::{
        Warning,
        rules::{Rule, Rules, review},
    },
    platform::fault::Fault,
    releases::{
        LiveRelease,
        followers::{Change, Followed, Follower},
    },
};

impl Document for Rule {
    type Name = RuleName;
    type Ready = ();

    fn name_mut(&mut self) -> &mut Option<String> {
        &mut self.name
    }

    fn checked(self) -> Result<Self, Vec<Fault>> {
        self.checked()
    }

    fn review(&self, name: &RuleName, live: &LiveRelease) -> (usize, Vec<Warning>) {
        review(name, self, live.rules(), &live.catalogue, live.serving.release().schema())
    }
}

impl Follower for Arc<Rules> {
    fn follow(self: Arc<Self>, change: Change<'_>) -> Followed<'_> {
        async move {
            let next = Arc::clone(&change.next.catalogue);
            let before = change.before.map(|before| Arc::clone(&before.catalogue));
            let stored = if change.has_settings() { Some(read_all(change.store).await?) } else { None };
            // Compiling many rules for a large catalogue takes all cores for some time.
            let compiled = task::spawn_blocking(move || match (stored, &before) {
                (Some(stored), before) => {
                    let before = before.as_ref().map(|before| (&**self, &**before));
                    Some(Arc::new(Rules::compile(stored, &next, before)))
                }
                (None, Some(before)) if !self.is_empty() => Some(self.with_catalogue(before, &next, None)),
                (None, _) => None,
            });
            let compiled = compiled.await.expect("compiling rules does not panic; this is a bug");
            Ok(compiled.map(|compiled| Arc::new(compiled) as _))
        }
        .boxed()
    }

    fn with_articles(
        self: Arc<Self>,
        before: &Catalogue,
        next: &Catalogue,
        positions: &[u32],
    ) -> Option<Arc<dyn Follower>> {
        Some(Arc::new(self.with_catalogue(before, next, Some(positions))))
    }

    fn next_change(&self, now: Timestamp) -> Option<i64> {
        Rules::next_change(self, now)
    }
}
