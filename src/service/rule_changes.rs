//! Changes of the shop's rules: each is checked, stored with its entry in the audit log, and counts from the next request on.

use atelier_core::domain::{RuleName, Timestamp};
use serde_json::Value;
use tokio::task;

use super::{
    completion::Warning,
    fault::Fault,
    live_release::Releases,
    rules::{Rule, review},
};
use crate::store::{ChangeError, Expected, Put, Store, StoreError, Version};

/// A rule that was stored, or would be, and what is to be said of it.
#[derive(Debug)]
pub struct Changed {
    pub put: Put,
    pub version: Version,
    pub rule: Rule,
    /// How many of the shop's articles it is about at present.
    pub article_count: usize,
    /// What may be wrong with it.
    pub warnings: Vec<Warning>,
}

/// Why a rule was not changed; `Refused` is the caller's own reason.
#[derive(Debug)]
pub enum RuleError<E> {
    Refused(E),
    Faults(Vec<Fault>),
    Change(ChangeError),
}

impl<E> From<StoreError> for RuleError<E> {
    fn from(error: StoreError) -> Self {
        Self::Change(error.into())
    }
}

/// Stores what `make` makes of the rule as it is, or only checks it.
pub async fn change_rule<E: Send>(
    (store, releases): (&Store, &Releases),
    name: &RuleName,
    expected: &Expected,
    is_trial: bool,
    now: Timestamp,
    make: impl FnOnce(Option<Value>) -> Result<Rule, E> + Send,
) -> Result<Changed, RuleError<E>> {
    let live = releases.current();
    let mut next = None;
    let make = |stored| -> Result<Value, RuleError<E>> {
        let rule = Rule { name: None, ..make(stored).map_err(RuleError::Refused)? };
        let rule = rule.checked().map_err(RuleError::Faults)?;
        Ok(serde_json::to_value(next.insert(rule)).expect("a rule is plain JSON; this is a bug"))
    };
    let stored = store.rules().change(name, expected, is_trial, now, make).await;
    let (put, stored) = stored.map_err(RuleError::Change)??;
    let rule = next.expect("what is stored was made; this is a bug");
    if !is_trial {
        releases.refresh().await?;
    }
    let name = name.clone();
    let reviewed = task::spawn_blocking(move || {
        let (article_count, warnings) = live
            .map(|live| review(&name, &rule, &live.rules, &live.catalogue, live.serving.release().schema()))
            .unwrap_or_default();
        let rule = Rule { name: Some(name.to_string()), ..rule };
        Changed { put, version: stored.version, rule, article_count, warnings }
    });
    Ok(reviewed.await.expect("looking at a rule does not panic; this is a bug"))
}
