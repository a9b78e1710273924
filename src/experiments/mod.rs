//! The shop's experiments: customers are split between methods, sets of rules or releases, and figures decide which is better.
//!
//! An [`Experiment`] looks the same in JSON and in the database; its changes follow its state. One that runs has its own hundredths of
//! the customers, so that no customer is in two: see [`Arms`]. Must not know the database's tables or models.

pub(crate) mod api;
pub mod guard;
pub(crate) mod page;
mod sql;
pub mod statistics;

pub use self::sql::{ArmCustomer, ArmSums, ExperimentCounts};

use std::{collections::HashSet, sync::Arc};

use atelier_core::{
    domain::{ExperimentName, Method, OutfitSize, RuleName, Timestamp},
    named,
    util::{
        calendar, csv,
        json_fields::{read_integer, read_object, read_objects, read_optional_integer},
    },
};
use atelier_engine::release::check_name;
use atelier_files::{PlainColumn, write_columns};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use self::statistics::{ALPHA, Sums};
use crate::{
    completion::rules::check_text,
    outcomes::{
        ArmCounts,
        acceptance::{Share, money},
    },
    platform::{
        db::{Consequence, Entry, Named, Store, StoreError},
        fault::{Fault, Field},
    },
    releases::{
        ACTIVATE, ActivateError, LiveRelease, RELEASE, ROUTING, Releases, SET_ROUTING,
        arms::{Arms, Chosen, PARTS, Split},
        routing::Routing,
    },
    steering::documents::{Document, EditError, Wish, read_each},
};

const MOST_ARMS: usize = 20;
const MOST_RULES: usize = 100;
const ARM_CHARS: usize = 32;
const NOTE_CHARS: usize = 2000;
/// A split that is less likely than this is no chance.
const BROKEN_SPLIT: f64 = 0.001;

named! {
    "a state is draft, running, stopped or shipped"
    /// The state of an experiment.
    #[derive(Default, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    #[schema(as = ExperimentState)]
    pub enum State {
        #[default]
        Draft = "draft",
        /// Its share of the known customers are split between the arms.
        Running = "running",
        /// It ended, and its figures stay.
        Stopped = "stopped",
        /// The winner's method and rules became those of all customers.
        Shipped = "shipped",
    }
}

named! {
    "a metric is accepted, bought, kept or revenue"
    /// The measure that arms are compared by, for each completion shown.
    #[derive(Default, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    #[schema(as = ExperimentMetric)]
    pub enum Metric {
        #[default]
        Accepted = "accepted",
        Bought = "bought",
        Kept = "kept",
        Revenue = "revenue",
    }
}

/// Customers who are split between methods, sets of rules or releases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "arms": [{"name": "today", "method": "match", "share": 1}, {"name": "new", "method": "gsu", "share": 1}],
    "metric": "accepted", "effect": 0.1, "note": "Does gsu pay?",
}))]
pub struct Experiment {
    /// Optional in a request; must be the name in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("autumn"))]
    pub name: Option<String>,
    /// The others are compared with the first.
    #[serde(deserialize_with = "read_objects")]
    #[schema(min_items = 2, max_items = 20)]
    pub arms: Vec<Arm>,
    /// The metric that decides; all are shown.
    #[serde(default)]
    pub metric: Metric,
    /// The smallest relative change that matters, such as 0.1. It says how many days are needed, and when a difference is too small to
    /// matter.
    #[serde(default = "usual_effect")]
    #[schema(minimum = 0.001, maximum = 10)]
    pub effect: f64,
    /// For the shop's own people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    pub note: Option<String>,
    #[serde(default)]
    pub state: State,
    /// An arm beyond one of these limits stops the experiment.
    #[serde(default, deserialize_with = "read_object", skip_serializing_if = "Limits::is_empty")]
    pub stop_if: Limits,
    /// The percentage of known customers who take part. Raising it keeps everybody who takes part already.
    #[serde(default = "whole", deserialize_with = "read_integer")]
    #[schema(minimum = 1, maximum = 100)]
    pub share: u8,
    /// The arm that is shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// The service sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, read_only)]
    pub started_at: Option<String>,
    /// The service sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, read_only)]
    pub ended_at: Option<String>,
    /// Why it was stopped. The service says which limit was exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    pub ended_because: Option<String>,
    /// The parts of the customers that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(ignore)]
    pub parts: Vec<u8>,
}

/// An arm beyond one of these by more than chance stops the experiment. Judged by a replica's last 200 answers or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = ExperimentLimits, example = json!({"latency_ms": 300, "errors": 0.01, "empty": 0.05, "returned": 0.6}))]
pub struct Limits {
    /// 95 % of the answers come within these milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read_optional_integer")]
    #[schema(minimum = 1, maximum = 600_000)]
    pub latency_ms: Option<u32>,
    /// The share of questions without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub errors: Option<f64>,
    /// The share of blanks without a suggestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub empty: Option<f64>,
    /// The share of all the arm's purchases that came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub returned: Option<f64>,
}

impl Limits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How some customers of an experiment are answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Arm)]
pub struct Arm {
    /// Feedback is counted as `experiment/arm`.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,32}$", examples("today"))]
    pub name: String,
    /// The release that answers, the live one if it is not given. Once the experiment runs, one release is loaded next to the live one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$", examples("winter"))]
    pub release: Option<String>,
    /// If it is not given, the service sets it to the default method when the experiment starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, examples("gsu"))]
    pub method: Option<Method>,
    /// Active rules that do not apply in this arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 100)]
    pub without_rules: Vec<String>,
    /// Its share of the experiment's customers, relative to the other arms' shares.
    #[serde(deserialize_with = "read_integer")]
    #[schema(minimum = 1, maximum = 1000)]
    pub share: u32,
}

fn usual_effect() -> f64 {
    0.1
}

fn whole() -> u8 {
    PARTS
}

impl Experiment {
    /// The experiment after the wished change of `before`. `taken` are the parts of other experiments that run.
    fn following(
        mut self,
        name: &ExperimentName,
        before: Option<&Self>,
        taken: &HashSet<u8>,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        use State::{Draft, Running, Shipped, Stopped};
        let was = before.map_or(Draft, |before| before.state);
        if let Some(before) = before.filter(|before| before.state != Draft) {
            self.keep_pinned(&before.arms);
        }
        let moment = || Some(now.to_string());
        // The service alone sets when it ran and which customers it has.
        (self.started_at, self.ended_at, self.parts) = before.map_or_else(Default::default, |before| {
            (before.started_at.clone(), before.ended_at.clone(), before.parts.clone())
        });
        match (was, self.state) {
            (Draft, Draft | Running)
            | (Running, Running | Stopped | Shipped)
            | (Stopped, Stopped | Shipped) => {}
            (Shipped, Shipped) if before == Some(&self) => return Ok(self),
            (was, wanted) => {
                let detail = format!(
                    "it is {was} and cannot become {wanted}: a draft runs, then stops, then is shipped; create another experiment"
                );
                return Err(Fault::new("state", detail));
            }
        }
        if let Some(before) = before.filter(|before| before.state != Draft)
            && (&self.arms, self.metric, self.effect) != (&before.arms, before.metric, before.effect)
        {
            let detail =
                format!("the arms, the metric and the effect cannot change after the start; it is {was}");
            return Err(Fault::new("arms", detail));
        }
        let is_arm = |winner: &String| self.arms.iter().any(|arm| arm.name == *winner);
        match (&self.winner, self.state) {
            (None, Shipped) => return Err(Fault::new("winner", "name the arm to ship")),
            (Some(winner), Shipped) if !is_arm(winner) => {
                return Err(Fault::new("winner", format!("there is no arm {winner:?}")));
            }
            (Some(_), Draft | Running | Stopped) => {
                return Err(Fault::new("winner", "only a shipped experiment has a winner"));
            }
            _ => {}
        }
        if self.state == Running {
            self.started_at = self.started_at.or_else(moment);
            self.parts = allot(name, std::mem::take(&mut self.parts), self.share.into(), taken)?;
        } else if self.state != Draft {
            self.ended_at = self.ended_at.or_else(moment);
            self.parts.clear();
        }
        Ok(self)
    }

    /// An arm's settings at the start of the experiment stay if a request leaves them out.
    fn keep_pinned(&mut self, before: &[Arm]) {
        for arm in &mut self.arms {
            if let Some(was) = before.iter().find(|was| was.name == arm.name) {
                arm.method = arm.method.or(was.method);
                arm.release = arm.release.take().or_else(|| was.release.clone());
            }
        }
    }

    fn shipped(&self) -> Option<&Arm> {
        let winner = self.winner.as_ref().filter(|_| self.state == State::Shipped)?;
        self.arms.iter().find(|arm| arm.name == *winner)
    }

    /// The other changes once it is shipped. `second` is the winner's release unless that is live.
    fn consequences(&self, live: Option<&LiveRelease>, second: Option<&LiveRelease>) -> Vec<Consequence> {
        let Some(arm) = self.shipped() else { return Vec::new() };
        let ends = arm.without_rules.iter().filter_map(|rule| RuleName::new(rule).ok()).map(Consequence::End);
        let mut consequences: Vec<Consequence> = ends.collect();
        if let Some(second) = second {
            consequences.push(Consequence::Set {
                setting: RELEASE,
                value: second.name().to_owned(),
                action: ACTIVATE,
                subject: second.name().to_owned(),
                details: json!({"before": live.map(LiveRelease::name), "after": second.name()}),
            });
        }
        let routing = live.map(|live| live.routing).unwrap_or_default();
        if arm.method.is_some() && arm.method != second.or(live).map(LiveRelease::default_method) {
            let next = Routing { default_method: arm.method };
            consequences.push(Consequence::Set {
                setting: ROUTING,
                value: serde_json::to_string(&next).expect("a routing is plain JSON"),
                action: SET_ROUTING,
                subject: ROUTING.to_owned(),
                details: json!({"before": routing.to_string(), "after": next.to_string()}),
            });
        }
        consequences
    }

    fn names_releases(&self) -> bool {
        self.arms.iter().any(|arm| arm.release.is_some())
    }

    /// The release besides the live one that it needs, with the first arm that names it.
    /// An error if it needs two.
    pub fn second_release(&self, live: &str) -> Result<Option<(usize, &str)>, Fault> {
        let mut named = self.arms.iter().enumerate().filter_map(|(index, arm)| {
            arm.release.as_deref().filter(|release| *release != live).map(|release| (index, release))
        });
        let first = named.next();
        match named.find(|(_, release)| first.is_some_and(|(_, first)| first != *release)) {
            None => Ok(first),
            Some((index, release)) => {
                let detail = format!(
                    "one release can be loaded next to the live one, {live}; found {release} and {}",
                    first.map_or("", |(_, first)| first)
                );
                Err(Fault::new(release_of(index), detail))
            }
        }
    }

    /// Which release it needs besides the live one now that it starts or is shipped, with its place.
    /// An error if another experiment that runs needs another one, or would lose the live release with which it runs.
    fn needs(
        &self,
        before: Option<&Self>,
        live: &str,
        others: &[(ExperimentName, Self)],
    ) -> Result<Option<(Field, String)>, Fault> {
        let was = before.map_or(State::Draft, |before| before.state);
        let mut running =
            others.iter().filter(|(_, other)| other.state == State::Running && other.names_releases());
        match self.state {
            State::Running if was == State::Draft => {
                let Some((index, release)) = self.second_release(live)? else { return Ok(None) };
                let needs_another = |(_, other): &&(ExperimentName, Self)| matches!(other.second_release(live), Ok(Some((_, another))) if another != release);
                if let Some((name, _)) = running.find(needs_another) {
                    let detail = format!(
                        "the experiment {name} has loaded another release, and one can be loaded next to the live one; stop {name} first"
                    );
                    return Err(Fault::new(release_of(index), detail));
                }
                Ok(Some((release_of(index), release.to_owned())))
            }
            State::Shipped if was != State::Shipped => {
                let release = self.shipped().and_then(|arm| arm.release.clone());
                let Some(release) = release.filter(|release| release != live) else { return Ok(None) };
                if let Some((name, _)) = running.next() {
                    let detail = format!(
                        "the experiment {name} compares releases, so {release} cannot become live; stop {name} first"
                    );
                    return Err(Fault::new("winner", detail));
                }
                Ok(Some(("winner".into(), release)))
            }
            _ => Ok(None),
        }
    }

    /// Sets what each arm is, so that it stays the same whatever changes later, and says what the releases or the shop lack of it.
    fn pin(&mut self, live: &LiveRelease, second: Option<&LiveRelease>) -> Vec<Fault> {
        let mut faults = Vec::new();
        let names_releases = self.names_releases();
        for (index, arm) in self.arms.iter_mut().enumerate() {
            let field = |name: &str| Field::from("arms").item(&index).item(name);
            let release =
                second.filter(|second| arm.release.as_deref() == Some(second.name())).unwrap_or(live);
            if names_releases {
                arm.release.get_or_insert_with(|| live.name().to_owned());
            }
            let method = *arm.method.get_or_insert_with(|| release.default_method());
            if !release.serving.has(method) {
                let detail = format!("the release {} has no method {method}", release.name());
                faults.push(Fault::new(field("method"), detail));
            }
            faults.extend(lacks(release, live).map(|detail| Fault::new(field("release"), detail)));
            for rule in &arm.without_rules {
                if !live.rules().has(rule) {
                    let detail = format!("there is no active rule {rule:?}; turn it on first");
                    faults.push(Fault::new(field("without_rules"), detail));
                }
            }
        }
        faults
    }

    /// Feedback is counted by it.
    pub fn label(name: &ExperimentName, arm: &Arm) -> String {
        format!("{name}/{}", arm.name)
    }

    /// The days for which it has run, up to now or its end.
    pub fn days(&self, now: Timestamp) -> f64 {
        let moment = |text: &Option<String>| text.as_deref().and_then(calendar::parse_moment);
        let Some(start) = moment(&self.started_at) else { return 0.0 };
        let millis = moment(&self.ended_at).unwrap_or(now.millis()) - start;
        #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
        let millis = millis.max(0) as f64;
        millis / 86_400_000.0
    }
}

/// A request that the live release takes and another one would refuse.
fn lacks(release: &LiveRelease, live: &LiveRelease) -> Option<String> {
    let (name, schema) = (release.name(), release.serving.release().schema());
    let live = live.serving.release().schema();
    let (OutfitSize { least, most }, size) = (schema.outfit_size(), live.outfit_size());
    if least > size.least || most < size.most {
        return Some(format!(
            "the release {name} takes outfits of {least} to {most} articles, the live one of {} to {}",
            size.least, size.most
        ));
    }
    let is_known = |name: &str| schema.features().iter().any(|feature| feature.name == name);
    let missing = live.features().iter().find(|feature| !is_known(&feature.name))?;
    Some(format!("the release {name} has no feature {}, which the live one has", missing.name))
}

fn release_of(arm: usize) -> Field {
    Field::from("arms").item(&arm).item("release")
}

/// The first experiment that compares releases while it runs.
pub(crate) fn compares_releases(all: &[Named<ExperimentName>]) -> Option<ExperimentName> {
    let mut all = read_each::<Experiment>(all).into_iter();
    all.find(|(_, experiment)| experiment.state == State::Running && experiment.names_releases())
        .map(|(name, _)| name)
}

/// As many parts as the share has, first those that it has already, then those that no other experiment has.
fn allot(
    name: &ExperimentName,
    mut parts: Vec<u8>,
    share: usize,
    taken: &HashSet<u8>,
) -> Result<Vec<u8>, Fault> {
    // Each begins elsewhere, so that not the same customers are in every small one.
    let first = Sha256::digest(name.as_str())[0] % PARTS;
    let all = (0..PARTS).map(|part| (first + part) % PARTS);
    let free: Vec<u8> = all.filter(|part| !taken.contains(part) && !parts.contains(part)).collect();
    parts.truncate(share);
    let more = share - parts.len();
    if more > free.len() {
        let detail = format!(
            "only {} % of the customers are in no other experiment, and the share is {share} %; choose a smaller share, \
             or stop another experiment",
            free.len() + parts.len()
        );
        return Err(Fault::new("share", detail));
    }
    parts.extend(&free[..more]);
    Ok(parts)
}

/// The arms of the experiments that run, those of the experiment that started first before the others': it has its release loaded.
pub(crate) fn arms(stored: &[Named<ExperimentName>]) -> Arms {
    split(read_each(stored))
}

fn split(mut running: Vec<(ExperimentName, Experiment)>) -> Arms {
    running.retain(|(_, experiment)| experiment.state == State::Running);
    running.sort_by(|(a, x), (b, y)| x.started_at.cmp(&y.started_at).then_with(|| a.cmp(b)));
    let compile = |(name, Experiment { arms, parts, .. }): (ExperimentName, Experiment)| {
        let compile = |arm: &Arm| {
            let chosen = Chosen {
                label: Experiment::label(&name, arm),
                release: arm.release.as_deref().map(Arc::from),
                method: arm.method,
                without_rules: arm.without_rules.iter().flat_map(RuleName::new).collect(),
            };
            (chosen, arm.share)
        };
        let arms = arms.iter().map(compile).collect();
        Split::new(name, parts, arms)
    };
    Arms::new(running.into_iter().map(compile).collect())
}

/// An experiment's needs to start or to be shipped.
#[derive(Debug, Default)]
pub struct Ready {
    /// The release that is loaded for it.
    second: Option<Arc<LiveRelease>>,
    /// Whether this replica does not serve the release that was activated.
    is_behind: bool,
}

impl Document for Experiment {
    type Name = ExperimentName;
    type Ready = Ready;

    fn name_mut(&mut self) -> &mut Option<String> {
        &mut self.name
    }

    /// Takes outer spaces away.
    fn checked(mut self) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        if !(2..=MOST_ARMS).contains(&self.arms.len()) {
            let detail = format!("an experiment has two to twenty arms, this one has {}", self.arms.len());
            faults.push(Fault::new("arms", detail));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let mut names = HashSet::new();
        for (index, Arm { name, release, without_rules, share, .. }) in self.arms.iter().enumerate() {
            let field = |name: &str| Field::from("arms").item(&index).item(name);
            if let Some(Err(detail)) = release.as_deref().map(check_name) {
                faults.push(Fault::new(field("release"), detail));
            }
            if name.is_empty() || name.len() > ARM_CHARS || !name.chars().all(plain) {
                let detail = format!(
                    "an arm's name has 1 to {ARM_CHARS} letters, digits, dots, hyphens or underscores, found {name:?}"
                );
                faults.push(Fault::new(field("name"), detail));
            } else if !names.insert(name) {
                faults.push(Fault::new(field("name"), format!("two arms have the name {name:?}")));
            }
            if !(1..=1000).contains(share) {
                faults.push(Fault::new(field("share"), format!("from 1 to 1000, found {share}")));
            }
            if without_rules.len() > MOST_RULES {
                let detail = format!("at most {MOST_RULES} rules, found {}", without_rules.len());
                faults.push(Fault::new(field("without_rules"), detail));
            }
        }
        if !(0.001..=10.0).contains(&self.effect) {
            faults.push(Fault::new("effect", format!("from 0.001 to 10, found {}", self.effect)));
        }
        if !(1..=PARTS).contains(&self.share) {
            faults.push(Fault::new("share", format!("from 1 to 100 percent, found {}", self.share)));
        }
        let Limits { latency_ms, errors, empty, returned } = self.stop_if;
        if let Some(found) = latency_ms.filter(|found| !(1..=600_000).contains(found)) {
            faults.push(Fault::new("stop_if.latency_ms", format!("from 1 to 600000, found {found}")));
        }
        for (name, limit) in [("errors", errors), ("empty", empty), ("returned", returned)] {
            if let Some(found) = limit.filter(|found| !(0.0..=1.0).contains(found)) {
                faults.push(Fault::new(&*format!("stop_if.{name}"), format!("from 0 to 1, found {found}")));
            }
        }
        for (field, text) in [("note", &mut self.note), ("ended_because", &mut self.ended_because)] {
            check_text(field, text, NOTE_CHARS, &mut faults);
        }
        if faults.is_empty() { Ok(self) } else { Err(faults) }
    }

    /// A release that the experiment needs is loaded before the transaction, because that takes seconds.
    async fn prepare(
        wish: Option<Wish<'_, Self>>,
        store: &Store,
        releases: &Releases,
    ) -> Result<Ready, EditError> {
        let second = match wish {
            Some(wish) => load_needed(wish, store, releases).await?,
            None => None,
        };
        Ok(Ready { second, is_behind: releases.is_behind().await? })
    }

    fn follow(
        Wish { name, before, wanted, others, now }: Wish<'_, Self>,
        ready: &Ready,
        releases: &Releases,
    ) -> Result<(Self, Vec<Consequence>), Vec<Fault>> {
        let faults = |fault| vec![fault];
        let taken: HashSet<u8> = others.iter().flat_map(|(_, other)| other.parts.iter().copied()).collect();
        let mut experiment = wanted.following(name, before.as_ref(), &taken, now).map_err(faults)?;
        let becomes =
            |state| experiment.state == state && before.as_ref().is_none_or(|before| before.state != state);
        if ready.is_behind && (becomes(State::Running) || becomes(State::Shipped)) {
            let detail =
                "this replica does not serve the release that was activated; try again, or see /readyz";
            return Err(faults(Fault::new("state", detail)));
        }
        let live = releases.current();
        let needs = match &live {
            Some(live) => experiment.needs(before.as_ref(), live.name(), &others).map_err(faults)?,
            None => None,
        };
        let second = ready.second.as_deref();
        if let Some((field, release)) = &needs
            && second.is_none_or(|second| second.name() != release)
        {
            let detail =
                format!("{release} is not loaded yet, because something else was changed; try again");
            return Err(faults(Fault::new(field.clone(), detail)));
        }
        let second = second.filter(|_| needs.is_some());
        if experiment.state == State::Running && before.is_none_or(|before| before.state == State::Draft) {
            let found = match &live {
                Some(live) => experiment.pin(live, second),
                None => vec![Fault::new("state", "there is no live release; activate one first")],
            };
            if !found.is_empty() {
                return Err(found);
            }
        }
        let consequences = experiment.consequences(live.as_deref(), second);
        Ok((experiment, consequences))
    }

    /// Late events still count for one that has begun, so its name must not be another's.
    fn check_deletion(stored: &Value) -> Result<(), Fault> {
        if stored["state"] != "draft" {
            let detail = "only a draft can be deleted; an experiment that ran keeps its figures";
            return Err(Fault::new("state", detail));
        }
        Ok(())
    }
}

/// Loads the release that an experiment needs if it starts or is shipped.
async fn load_needed(
    Wish { before, mut wanted, others, now, .. }: Wish<'_, Experiment>,
    store: &Store,
    releases: &Releases,
) -> Result<Option<Arc<LiveRelease>>, EditError> {
    let Some(live) = releases.current() else { return Ok(None) };
    if let Some(before) = before.as_ref().filter(|before| before.state != State::Draft) {
        wanted.keep_pinned(&before.arms);
    }
    let Ok(Some((field, release))) = wanted.needs(before.as_ref(), live.name(), &others) else {
        return Ok(None);
    };
    match releases.load_beside(&release, wanted.state == State::Shipped).await {
        Ok(loaded) => Ok(Some(loaded)),
        Err(ActivateError::Store(error)) if !error.is_too_large() => Err(error.into()),
        Err(error) => {
            let detail = match error {
                ActivateError::CoversLittle { name, figures, advice } => {
                    format!("release {name} has {figures}; {advice}, or compare another release")
                }
                error => error.to_string(),
            };
            let entry = Entry::new("release.refused", &release, json!({"reason": detail}));
            store.audit().append(&entry, now).await?;
            Err(EditError::Faults(vec![Fault::new(field, detail)]))
        }
    }
}

/// The customers of an experiment, each with its arm's own name, read in parts as needed.
pub fn customers(
    store: &Store,
    name: &ExperimentName,
    experiment: &Experiment,
) -> impl Stream<Item = Result<ArmCustomer, StoreError>> + Send + use<> {
    let arms: Vec<(String, String)> =
        experiment.arms.iter().map(|arm| (Experiment::label(name, arm), arm.name.clone())).collect();
    let store = store.clone();
    stream::iter(arms).flat_map(move |(label, arm)| {
        let customers = store.experiment_counts().customers(&label);
        customers.map_ok(move |customer| ArmCustomer { arm: arm.clone(), ..customer })
    })
}

const COLUMNS: [&str; 9] =
    ["customer", "arm", "completions", "shown", "accepted", "bought", "returned", "kept", "revenue"];

pub fn to_csv(rows: &[ArmCustomer]) -> String {
    let mut lines = csv::Lines::exact();
    lines.push(&COLUMNS);
    for ArmCustomer { number, arm, counts } in rows {
        let ArmCounts { completions, shown, accepted, bought, returned, kept, revenue } = counts;
        let numbers = [completions, shown, accepted, bought, returned, kept].map(i64::to_string);
        let mut cells = vec![number.to_string(), arm.clone()];
        cells.extend(numbers);
        cells.push(money(*revenue).to_string());
        lines.push(&cells);
    }
    lines.into_text()
}

pub fn to_parquet(rows: &[ArmCustomer]) -> Vec<u8> {
    let longs = |value: fn(&ArmCustomer) -> i64| PlainColumn::Longs(rows.iter().map(value).collect());
    let columns = [
        longs(|row| row.number),
        PlainColumn::Texts(rows.iter().map(|row| row.arm.as_str().into()).collect()),
        longs(|row| row.counts.completions),
        longs(|row| row.counts.shown),
        longs(|row| row.counts.accepted),
        longs(|row| row.counts.bought),
        longs(|row| row.counts.returned),
        longs(|row| row.counts.kept),
        PlainColumn::Doubles(rows.iter().map(|row| money(row.counts.revenue)).collect()),
    ];
    let columns = COLUMNS.into_iter().zip(columns).collect();
    write_columns("customers", columns).expect("the columns have a value for each row")
}

/// The release that an experiment needs besides the live one, while it is a draft or runs.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = ExperimentRelease)]
pub struct SecondRelease {
    /// Its name.
    pub release: String,
    /// Whether the replica that answers has loaded it.
    pub is_loaded: bool,
    /// About how much memory it takes on each replica, by the sizes of its files and the shop's catalogue.
    pub memory_bytes: Option<u64>,
    /// Why it is not loaded, or cannot be.
    pub reason: Option<String>,
}

impl SecondRelease {
    /// None if it needs none, or if it has ended.
    pub async fn find(releases: &Releases, experiment: &Experiment) -> Option<Self> {
        let live = releases.current()?;
        if !matches!(experiment.state, State::Draft | State::Running) {
            return None;
        }
        // One that needs two does not start.
        let release = experiment.second_release(live.name()).ok()??.1.to_owned();
        let is_loaded = live.find(&release).is_some();
        let failed = live.beside.as_ref().filter(|beside| beside.release == release);
        let memory = match failed.and_then(|beside| beside.loaded.as_ref().err().cloned()) {
            Some(reason) => Err(reason),
            None => releases.estimate_memory(&release).await.map_err(|error| error.to_string()),
        };
        Some(Self { release, is_loaded, memory_bytes: memory.as_ref().ok().copied(), reason: memory.err() })
    }
}

/// An experiment's figures. Look as often as you like.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExperimentFigures)]
pub struct Figures {
    /// The metric that decides.
    pub metric: Metric,
    /// How many days it has run.
    pub days: f64,
    /// Whether the numbers of customers contradict the shares, so that no figure can be trusted.
    pub is_split_broken: bool,
    /// The probability of so uneven a split, by a chi-squared test. Below 0.001 it is broken.
    pub split_p: f64,
    pub arms: Vec<ArmFigures>,
    /// Of each arm but the first, for each metric.
    pub differences: Vec<Difference>,
    pub decision: Decision,
    /// The release that it needs besides the live one, while it is a draft or runs.
    pub second_release: Option<SecondRelease>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ArmFigures {
    /// The name of the arm.
    #[schema(examples("today"))]
    pub arm: String,
    /// Number of customers who were shown a completion.
    pub customers: i64,
    #[serde(flatten)]
    pub counts: ArmCounts,
}

/// How an arm differs from the first one, for each completion that was shown.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ArmDifference)]
pub struct Difference {
    /// The name of the arm.
    pub arm: String,
    pub metric: Metric,
    /// The first arm's.
    pub control: Option<f64>,
    /// This arm's.
    pub value: Option<f64>,
    /// `value` less `control`, with an interval that is right at every look in 95 of 100 experiments; null until both arms have 100 customers.
    pub difference: Option<Share>,
    /// How many more days it takes to find a change of `effect`.
    pub days_needed: Option<f64>,
}

/// The conclusion from the figures.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExperimentDecision)]
pub struct Decision {
    /// `collecting`: not yet. `winner`: this arm is better. `no-difference`: no arm differs by as much as `effect`. `broken-split`: the
    /// figures must not be trusted.
    #[schema(value_type = String, pattern = "^(collecting|winner|no-difference|broken-split)$")]
    pub state: Conclusion,
    /// The better arm, if there is one.
    pub winner: Option<String>,
}

/// A conclusion, valid at any look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    Collecting,
    Winner,
    NoDifference,
    BrokenSplit,
}

impl Figures {
    pub async fn read(
        store: &Store,
        releases: &Releases,
        name: &ExperimentName,
        experiment: &Experiment,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut arms = Vec::with_capacity(experiment.arms.len());
        for arm in &experiment.arms {
            arms.push(store.experiment_counts().sums(&Experiment::label(name, arm)).await?);
        }
        let days = experiment.days(now);
        let customers = |arm: &ArmSums| arm.customers.unsigned_abs();
        let counts: Vec<(u64, u32)> =
            arms.iter().map(customers).zip(experiment.arms.iter().map(|arm| arm.share)).collect();
        let split_p = statistics::split_probability(&counts);
        // All comparisons by one metric are right together in 95 of 100 experiments.
        #[expect(clippy::cast_precision_loss, reason = "there are few arms")]
        let alpha = ALPHA / (arms.len() - 1) as f64;
        let mut differences = Vec::new();
        for index in 1..arms.len() {
            for metric in Metric::ALL {
                let (control, other) = (sums(&arms[0], metric), sums(&arms[index], metric));
                differences.push(Difference {
                    arm: experiment.arms[index].name.clone(),
                    metric,
                    control: control.ratio(),
                    value: other.ratio(),
                    difference: statistics::difference(&other, &control, alpha),
                    days_needed: statistics::days_needed(&other, &control, experiment.effect, days, alpha),
                });
            }
        }
        let arm = |(arm, ArmSums { customers, counts, .. }): (&Arm, ArmSums)| ArmFigures {
            arm: arm.name.clone(),
            customers,
            counts,
        };
        Ok(Self {
            metric: experiment.metric,
            days,
            is_split_broken: split_p < BROKEN_SPLIT,
            split_p,
            arms: experiment.arms.iter().zip(arms).map(arm).collect(),
            decision: decide(experiment, &differences, split_p),
            differences,
            second_release: SecondRelease::find(releases, experiment).await,
        })
    }
}

fn decide(experiment: &Experiment, differences: &[Difference], split: f64) -> Decision {
    let without_winner = |state| Decision { state, winner: None };
    let winner = |arm: &str| Decision { state: Conclusion::Winner, winner: Some(arm.to_owned()) };
    if split < BROKEN_SPLIT {
        return without_winner(Conclusion::BrokenSplit);
    }
    let all: Vec<&Difference> =
        differences.iter().filter(|difference| difference.metric == experiment.metric).collect();
    let better = |found: &Share| found.low > 0.0;
    let best = all.iter().filter(|one| one.difference.as_ref().is_some_and(better));
    let best = best.max_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
    if let Some(best) = best {
        return winner(&best.arm);
    }
    let every = |holds: &dyn Fn(&Difference, &Share) -> bool| {
        all.iter().all(|one| one.difference.as_ref().is_some_and(|found| holds(one, found)))
    };
    if every(&|_, found| found.high < 0.0) {
        return winner(&experiment.arms[0].name);
    }
    let is_small = |one: &Difference, found: &Share| {
        let matters = one.control.unwrap_or(0.0).abs() * experiment.effect;
        found.high < matters && found.low > -matters
    };
    without_winner(if every(&is_small) { Conclusion::NoDifference } else { Conclusion::Collecting })
}

fn sums(arm: &ArmSums, metric: Metric) -> Sums {
    let counts = &arm.counts;
    let (index, x, unit) = match metric {
        Metric::Accepted => (0, counts.accepted, 1.0),
        Metric::Bought => (1, counts.bought, 1.0),
        Metric::Kept => (2, counts.kept, 1.0),
        Metric::Revenue => (3, counts.revenue, 1000.0),
    };
    let (square, joint) = arm.products[index];
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let [x, d] = [x as f64, counts.completions as f64];
    Sums {
        customers: arm.customers.unsigned_abs(),
        d,
        dd: arm.completions_squared,
        x: x / unit,
        xx: square / (unit * unit),
        xd: joint / unit,
    }
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::CustomerId;

    use super::*;

    fn arm(name: &str, method: Option<Method>, without_rules: &[&str], share: u32) -> Arm {
        let without_rules = without_rules.iter().map(ToString::to_string).collect();
        Arm { name: name.into(), release: None, method, without_rules, share }
    }

    fn running(arms: Vec<Arm>, share: u8) -> Arms {
        let name = ExperimentName::new("autumn").unwrap();
        let wanted = Experiment { arms, share, state: State::Running, ..Experiment::default() };
        let started = wanted.following(&name, None, &HashSet::new(), Timestamp::from_millis(0)).unwrap();
        split(vec![(name, started)])
    }

    fn customers() -> impl Iterator<Item = CustomerId> {
        (0..10_000).map(|number| CustomerId::new(format!("c-{number}")).unwrap())
    }

    #[test]
    fn customers_are_split_by_share_and_stay_as_the_experiment_grows() {
        let arms = || vec![arm("a", Some(Method::Gsu), &[], 3), arm("b", None, &[], 1)];
        let [tenth, half] = [10, 50].map(|share| running(arms(), share));
        let choose = |running: &Arms, customer: &CustomerId| {
            running.choose(customer, || true).map(|chosen| chosen.label.clone())
        };
        let (mut in_tenth, mut in_half, mut in_a) = (0, 0, 0);
        for customer in customers() {
            let (before, after) = (choose(&tenth, &customer), choose(&half, &customer));
            assert!(before.is_none() || before == after, "{customer}");
            in_tenth += usize::from(before.is_some());
            in_half += usize::from(after.is_some());
            in_a += usize::from(after.as_deref() == Some("autumn/a"));
        }
        // Standard deviations are 30, 50 and 48.
        assert!((880..1120).contains(&in_tenth) && (4800..5200).contains(&in_half), "{in_tenth} {in_half}");
        assert!((3550..3950).contains(&in_a), "{in_a}");
    }

    #[test]
    fn without_a_method_of_an_arm_or_with_a_holdout_from_its_rules_nobody_is_in_it() {
        let methods = running(vec![arm("a", Some(Method::Gsu), &[], 1), arm("b", None, &[], 1)], 100);
        let lacking = methods.with_releases(|_, method| method != Some(Method::Gsu));
        let rules = running(vec![arm("a", None, &["sale"], 1), arm("b", None, &[], 1)], 100);
        for customer in customers().take(100) {
            assert!(lacking.choose(&customer, || false).is_none());
            assert!(methods.choose(&customer, || true).is_some());
            assert!(rules.choose(&customer, || true).is_none());
            let chosen = rules.choose(&customer, || false).unwrap();
            assert_eq!(chosen.without_rules.len(), usize::from(chosen.label == "autumn/a"));
        }
    }

    #[test]
    fn experiments_share_the_customers() {
        let name = ExperimentName::new("autumn").unwrap();
        let taken: HashSet<u8> = (0..70).collect();
        let parts = allot(&name, vec![80, 90], 20, &taken).unwrap();
        assert_eq!((parts.len(), &parts[..2]), (20, &[80, 90][..]));
        assert!(parts.iter().all(|part| (70..100).contains(part)));
        assert_eq!(parts.iter().collect::<HashSet<_>>().len(), 20);
        assert_eq!(allot(&name, vec![80, 90], 1, &taken), Ok(vec![80]));
        let wrong = allot(&name, vec![80, 90], 31, &taken).unwrap_err();
        let expected = "only 30 % of the customers are in no other experiment";
        assert!(wrong.detail.starts_with(expected), "{}", wrong.detail);
    }
}
