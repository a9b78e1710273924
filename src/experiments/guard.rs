//! Stops experiments: how the arms of running experiments answer, in this process, next to the limits that each experiment has.

use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use atelier_core::domain::{ExperimentName, Timestamp};
use futures_util::FutureExt;
use serde_json::Value;

use super::{Experiment, Limits, State};
use crate::{
    completion::{Completion, asking::Observer},
    outcomes::{ArmCounts, acceptance::share},
    platform::db::{ChangeError, Expected, Store, StoreError},
    releases::{
        Releases,
        followers::{Change, Followed, Follower},
        routing::Route,
    },
    steering::documents::{EditError, change, read_all, read_each},
};

/// The least answers of an arm, or purchases, that are judged.
const LEAST: u64 = 200;
/// How many standard deviations above its limit an arm must be. Every 200 answers are judged, for weeks, so 2 would stop sound arms.
const CLEARLY: f64 = 5.0;

/// How arms answer.
#[derive(Debug, Default)]
pub struct Guard(Mutex<HashMap<String, Answers>>);

/// The answers of an arm since they were judged last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    pub all: u64,
    /// Those that came later than the experiment allows.
    pub slow: u64,
    pub failed: u64,
    pub blanks: u64,
    /// Blanks without a suggestion.
    pub empty: u64,
}

impl Follower for Guard {}

impl Observer for Guard {
    fn answered(&self, route: &Route, took: Duration, answer: Option<&Completion>) {
        let Some(arm) = &route.arm else { return };
        let Some(limits) = route.live.follower::<Watched>().0.get(arm) else { return };
        let mut arms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = arms.entry(arm.clone()).or_default();
        answers.all += 1;
        let is_slow = |millis: u32| took > Duration::from_millis(millis.into());
        answers.slow += u64::from(limits.latency_ms.is_some_and(is_slow));
        answers.failed += u64::from(answer.is_none());
        for blank in answer.iter().flat_map(|answer| &answer.blanks) {
            answers.blanks += 1;
            answers.empty += u64::from(blank.suggestions.is_empty());
        }
    }
}

#[derive(Debug, Default)]
pub struct Watched(HashMap<String, Limits>);

impl Follower for Watched {
    fn follow(self: Arc<Self>, change: Change<'_>) -> Followed<'_> {
        let Some(experiments) = change.experiments else { return ready(Ok(None)).boxed() };
        let mut watched = HashMap::new();
        for (name, experiment) in read_each::<Experiment>(experiments) {
            if experiment.state == State::Running {
                let labels = experiment.arms.iter().map(|arm| Experiment::label(&name, arm));
                watched.extend(labels.map(|label| (label, experiment.stop_if)));
            }
        }
        let watched: Arc<dyn Follower> = Arc::new(Self(watched));
        ready(Ok(Some(watched))).boxed()
    }
}

impl Guard {
    /// Takes the answers out, once there are enough of them.
    fn take(&self, arm: &str) -> Option<Answers> {
        let mut arms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        arms.get(arm).is_some_and(|answers| answers.all >= LEAST).then(|| arms.remove(arm))?
    }
}

impl Limits {
    /// Which limit an arm is clearly beyond: not only by chance.
    fn exceeded(&self, arm: &str, answers: Option<Answers>, bought: u64, returned: u64) -> Option<String> {
        let Answers { all, slow, failed, blanks, empty } = answers.unwrap_or_default();
        let limits = [
            (self.latency_ms.map(|_| 0.05), slow, all, "answers were too slow"),
            (self.errors, failed, all, "questions had no answer"),
            (self.empty, empty, blanks, "blanks had no suggestion"),
            (self.returned, returned.min(bought), bought, "purchases came back"),
        ];
        limits.into_iter().find_map(|(limit, hits, of, what)| {
            let (limit, found) = (limit?, share(hits, of).filter(|_| of >= LEAST)?);
            let [found_percent, percent] = [found.value, limit].map(|share| share * 100.0);
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
            let all = of as f64;
            let deviation = (limit * (1.0 - limit) / all).sqrt().max(1.0 / all);
            (found.value > limit + CLEARLY * deviation).then(|| {
                format!(
                    "{found_percent:.1} % of the last {of} {what} in arm {arm}; the limit is {percent:.1} %"
                )
            })
        })
    }
}

pub async fn stop_beyond_limits(
    store: &Store,
    releases: &Releases,
    now: Timestamp,
) -> Result<(), StoreError> {
    for (name, experiment) in read_all::<Experiment>(store).await? {
        if experiment.state == State::Running
            && let Some(reason) = find_excess(store, releases, &name, &experiment).await?
        {
            tracing::warn!(experiment = %name, reason, "an experiment is stopped");
            stop(store, releases, &name, reason, now).await?;
        }
    }
    Ok(())
}

async fn find_excess(
    store: &Store,
    releases: &Releases,
    name: &ExperimentName,
    experiment: &Experiment,
) -> Result<Option<String>, StoreError> {
    for arm in &experiment.arms {
        let label = Experiment::label(name, arm);
        let answers = releases.follower::<Guard>().take(&label);
        let counts = match experiment.stop_if.returned {
            Some(_) => store.experiment_counts().sums(&label).await?.counts,
            None => ArmCounts::default(),
        };
        let [bought, returned] = [counts.bought, counts.returned].map(i64::unsigned_abs);
        let excess = experiment.stop_if.exceeded(&arm.name, answers, bought, returned);
        if excess.is_some() {
            return Ok(excess);
        }
    }
    Ok(None)
}

async fn stop(
    store: &Store,
    releases: &Releases,
    name: &ExperimentName,
    reason: String,
    now: Timestamp,
) -> Result<(), StoreError> {
    let make = |stored: Option<Value>| {
        let stored = stored.and_then(|body| serde_json::from_value::<Experiment>(body).ok());
        let running = stored.filter(|stored| stored.state == State::Running).ok_or(ChangeError::Missing)?;
        Ok(Experiment { state: State::Stopped, ended_because: Some(reason.clone()), ..running })
    };
    match change((store, releases), name, &Expected::default(), false, now, make).await {
        Err(EditError::Change(ChangeError::Store(error))) => Err(error),
        // Somebody was faster.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_exceeded_if_that_is_no_chance() {
        let limits =
            Limits { latency_ms: Some(300), errors: Some(0.02), empty: Some(0.1), returned: Some(0.5) };
        let fine = Answers { all: 200, slow: 10, failed: 4, blanks: 400, empty: 45 };
        assert_eq!(limits.exceeded("b", Some(fine), 200, 110), None);
        assert_eq!(limits.exceeded("b", None, 10, 10), None, "too few purchases");
        let (slow, failed, empty) =
            (Answers { slow: 40, ..fine }, Answers { failed: 20, ..fine }, Answers { empty: 80, ..fine });
        for (answers, said) in [
            (slow, "20.0 % of the last 200 answers were too slow in arm b; the limit is 5.0 %"),
            (failed, "10.0 % of the last 200 questions had no answer in arm b; the limit is 2.0 %"),
            (empty, "20.0 % of the last 400 blanks had no suggestion in arm b; the limit is 10.0 %"),
        ] {
            assert_eq!(limits.exceeded("b", Some(answers), 0, 0).as_deref(), Some(said));
        }
        assert!(limits.exceeded("b", None, 200, 140).unwrap().contains("purchases came back"));
        assert_eq!(Limits::default().exceeded("b", Some(Answers { failed: 200, ..fine }), 0, 0), None);
    }
}
