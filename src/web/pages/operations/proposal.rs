//! A routing as an admin proposes it: what stands in the form and in the address of the question, read or refused.

use serde::Deserialize;

use crate::{
    domain::Method,
    service::{
        administration::check_routing,
        live_release::LiveRelease,
        routing::{Arm, Experiment, Routing},
    },
};

/// A routing as a form has it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Proposal {
    /// Empty is the release's own.
    #[serde(default)]
    pub(super) default_method: String,
    /// The experiment's name; empty where there is none.
    #[serde(default)]
    pub(super) experiment: String,
    /// The methods and, in the same order, their shares; an empty share is no arm.
    #[serde(default)]
    method: Vec<String>,
    #[serde(default)]
    share: Vec<String>,
    /// The routing that was there when the page was made, in words.
    #[serde(default)]
    pub(super) before: String,
}

impl Proposal {
    pub(super) fn of(routing: &Routing) -> Self {
        let arms = routing.experiment.iter().flat_map(|experiment| &experiment.arms);
        Self {
            default_method: routing.default_method.map(|method| method.to_string()).unwrap_or_default(),
            experiment: routing.experiment.as_ref().map(|one| one.name.clone()).unwrap_or_default(),
            method: arms.clone().map(|arm| arm.method.to_string()).collect(),
            share: arms.map(|arm| arm.share.to_string()).collect(),
            before: String::new(),
        }
    }

    pub(super) fn arms(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs =
            self.method.iter().zip(&self.share).map(|(method, share)| (method.as_str(), share.trim()));
        pairs.filter(|(_, share)| !share.is_empty())
    }

    /// What was typed for a method.
    pub(super) fn share_of(&self, method: Method) -> &str {
        self.arms().find(|(one, _)| *one == method.as_str()).map_or("", |(_, share)| share)
    }

    /// As a routing that the release can keep, or what is wrong with it.
    pub(super) fn read(&self, live: &LiveRelease) -> Result<Routing, Vec<String>> {
        let mut wrong = Vec::new();
        let mut keep = |read: Result<Arm, String>| read.map_err(|reason| wrong.push(reason)).ok();
        let arms: Vec<Arm> = self.arms().filter_map(|(method, share)| keep(arm(method, share))).collect();
        let default = Some(self.default_method.as_str()).filter(|method| !method.is_empty());
        let default_method = default.map(str::parse::<Method>).transpose().unwrap_or_else(|error| {
            wrong.push(error.to_string());
            None
        });
        let name = self.experiment.trim().to_owned();
        let experiment =
            (!name.is_empty() || self.arms().next().is_some()).then_some(Experiment { name, arms });
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let routing = Routing { default_method, experiment };
        let wrong: Vec<String> =
            check_routing(&routing, live).into_iter().map(|fault| fault.detail).collect();
        if wrong.is_empty() { Ok(routing) } else { Err(wrong) }
    }
}

fn arm(method: &str, share: &str) -> Result<Arm, String> {
    let method: Method = method.parse().map_err(|error| format!("{error}"))?;
    let share =
        share.parse().map_err(|_| format!("the share of {method} is a whole number, found {share:?}"))?;
    Ok(Arm { method, share })
}
