//! The shop's rules as documents, and as they follow the live release.

use std::sync::Arc;

use atelier_core::domain::{RuleName, Timestamp};
use atelier_engine::catalogue::Catalogue;
use futures_util::FutureExt;
use tokio::task;

use super::documents::{Document, Wish, read_all};
use crate::{
    completion::{
        Warning,
        rules::{Rule, Rules, State, Window, review},
    },
    platform::{db::Consequence, fault::Fault},
    releases::{
        LiveRelease, Releases,
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

    fn follow(wish: Wish<'_, Self>, _ready: &(), _releases: &Releases) -> Result<NewRule, Vec<Fault>> {
        if let Some((moment, count)) = find_crowd(&wish) {
            let detail = format!(
                "with this one {count} rules are active {moment}, and at most {MOST_ACTIVE} can be at the same time; turn one off, \
                 or give this one another time"
            );
            return Err(vec![Fault::new("state", detail)]);
        }
        Ok((wish.wanted, Vec::new()))
    }

    fn review(&self, name: &RuleName, live: &LiveRelease) -> (usize, Vec<Warning>) {
        review(name, self, live.rules(), &live.catalogue, live.serving.release().schema())
    }
}

type NewRule = (Rule, Vec<Consequence>);

/// The most rules that are active at the same time: each is looked at with every request.
const MOST_ACTIVE: usize = 100;

/// When, from now on, too many rules are active because of a change, and how many. What is active at the same times as before
/// changes nothing.
fn find_crowd(Wish { before, wanted, others, now, .. }: &Wish<'_, Rule>) -> Option<(String, usize)> {
    let window = |rule: &Rule| (rule.state == State::Active).then(|| rule.window());
    let (own, now) = (window(wanted)?, now.millis());
    if before.as_ref().and_then(window).as_ref() == Some(&own) {
        return None;
    }
    let others: Vec<Window> = others.iter().filter_map(|(_, rule)| window(rule)).collect();
    let starts = others.iter().chain([&own]).map(|window| window.start.max(now));
    let mut moments: Vec<i64> = starts.filter(|moment| own.contains(moment)).collect();
    moments.sort_unstable();
    let count = |moment: &i64| 1 + others.iter().filter(|window| window.contains(moment)).count();
    let mut found = moments.into_iter().map(|moment| (moment, count(&moment)));
    let (moment, count) = found.find(|(_, count)| *count > MOST_ACTIVE)?;
    Some((
        if moment == now { "now".to_owned() } else { format!("at {}", Timestamp::from_millis(moment)) },
        count,
    ))
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
            let compiled = compiled.await.expect("compiling rules does not panic");
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
