//! `/operations/routing`: the default method, and an experiment between methods.

use std::collections::BTreeMap;

use askama::Template;
use atelier_core::domain::Method;
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::Tab;
use crate::{
    service::{
        administration::check_routing,
        live_release::LiveRelease,
        routing::{Arm, Experiment, Routing},
    },
    web::{
        http::{AppState, Problem, uncancelled::uncancelled},
        pages::{
            form::{Form, PageQuery},
            shell::{Page, Shell},
            visitor::{Admin, Analyst, Visitor},
        },
    },
};

#[derive(Template)]
#[template(path = "operations/routing.html")]
struct RoutingPage {
    shell: Shell,
    tab: Tab,
    release: String,
    release_default: Method,
    routing: Routing,
    proposal: Proposal,
    /// The release's methods, each with its share in the form.
    methods: Vec<(Method, String)>,
    wrong: Vec<String>,
}

impl RoutingPage {
    /// The experiment's arms, with their shares of the customers in percent.
    fn arms(&self) -> Vec<(Method, u32, String)> {
        let arms = self.routing.experiment.iter().flat_map(|experiment| &experiment.arms);
        let all: u64 = arms.clone().map(|arm| u64::from(arm.share)).sum();
        let percent = |share: u32| f64::from(share) * 100.0 / count(all);
        arms.map(|arm| (arm.method, arm.share, in_words(percent(arm.share)))).collect()
    }

    /// The methods that the routing names and the release does not have.
    fn passed_over(&self) -> Vec<Method> {
        let arms = self.routing.experiment.iter().flat_map(|experiment| &experiment.arms);
        let named = self.routing.default_method.into_iter().chain(arms.map(|arm| arm.method));
        named.filter(|named| !self.methods.iter().any(|(method, _)| method == named)).collect()
    }
}

/// No arm has none or all of the customers, however small its share or the others' are.
fn in_words(percent: f64) -> String {
    match format!("{percent:.0} %").as_str() {
        "0 %" => "under 1 %".to_owned(),
        "100 %" => "over 99 %".to_owned(),
        rounded => rounded.to_owned(),
    }
}

fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The form starts with the present routing.
pub(super) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let routing = Routing::clone(&state.live_release()?.routing);
    let proposal = Proposal::from_routing(&routing);
    Ok(Html(routing_page(&state, &visitor, proposal, Vec::new())?.render()?))
}

fn routing_page(
    state: &AppState,
    visitor: &Visitor,
    proposal: Proposal,
    wrong: Vec<String>,
) -> Result<RoutingPage, Problem> {
    let live = state.live_release()?;
    Ok(RoutingPage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Routing,
        release: live.name().to_owned(),
        release_default: live.serving.release().manifest().default_method,
        routing: Routing::clone(&live.routing),
        methods: live
            .serving
            .methods()
            .map(|method| (method, proposal.share_of(method).to_owned()))
            .collect(),
        proposal,
        wrong,
    })
}

#[derive(Template)]
#[template(path = "operations/routing/change.html")]
struct ChangePage {
    shell: Shell,
    tab: Tab,
    before: String,
    after: String,
    release_default: Method,
    proposal: Proposal,
    /// The effects on customers, in sentences.
    consequences: Vec<&'static str>,
}

/// Shows what a proposal would change.
pub(super) async fn confirm(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    PageQuery(proposal): PageQuery<Proposal>,
) -> Result<Response, Problem> {
    let live = state.live_release()?;
    let routing = match proposal.read(&live) {
        Ok(routing) => routing,
        Err(wrong) => {
            return refuse(&state, &visitor, proposal, wrong, StatusCode::UNPROCESSABLE_ENTITY);
        }
    };
    let page = ChangePage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Routing,
        before: live.routing.to_string(),
        after: routing.to_string(),
        release_default: live.serving.release().manifest().default_method,
        consequences: consequences(&live.routing, &routing),
        proposal: Proposal::from_routing(&routing),
    };
    Ok(Html(page.render()?).into_response())
}

fn refuse(
    state: &AppState,
    visitor: &Visitor,
    proposal: Proposal,
    wrong: Vec<String>,
    status: StatusCode,
) -> Result<Response, Problem> {
    let page = routing_page(state, visitor, proposal, wrong)?;
    Ok((status, Html(page.render()?)).into_response())
}

fn consequences(before: &Routing, after: &Routing) -> Vec<&'static str> {
    let mut consequences = Vec::new();
    match (&before.experiment, &after.experiment) {
        (None, Some(_)) => {
            consequences.push(
                "Known customers are split between the arms and stay there; feedback is counted by arm.",
            );
        }
        (Some(_), None) => {
            consequences.push("The experiment ends: the default method answers everyone. Its counts stay.");
        }
        (Some(before), Some(after)) if before.name != after.name => {
            consequences
                .push("This is a new experiment: customers are split again and counted under the new name.");
        }
        (Some(before), Some(after)) if before.arms != after.arms => {
            consequences.push(
                "Some customers move to another arm, and the counts mix both phases: use a new name to separate them.",
            );
        }
        _ => {}
    }
    if before.default_method != after.default_method {
        consequences
            .push("Requests that name no method and are in no experiment get the new default's suggestions.");
    }
    consequences
}

/// Sets the confirmed routing.
pub(super) async fn set(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Form(proposal): Form<Proposal>,
) -> Result<Response, Problem> {
    let live = state.live_release()?;
    let routing = match proposal.read(&live) {
        Ok(routing) => routing,
        Err(wrong) => {
            return refuse(&state, &visitor, proposal, wrong, StatusCode::UNPROCESSABLE_ENTITY);
        }
    };
    if live.routing.to_string() != proposal.before {
        let wrong = vec![
            "the routing was changed in the meantime, so nothing was set; the new routing is above, yours below"
                .into(),
        ];
        return refuse(&state, &visitor, proposal, wrong, StatusCode::CONFLICT);
    }
    let author = visitor.author();
    uncancelled(async move { state.releases.route(&routing, author, state.now()).await }).await?;
    Ok(Redirect::to("/operations/routing").into_response())
}

/// A routing as a form and an address have it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Proposal {
    /// Empty for the release's own.
    #[serde(default)]
    default_method: String,
    /// The experiment's name; empty for no experiment.
    #[serde(default)]
    experiment: String,
    /// The routing in words when the page was rendered.
    #[serde(default)]
    before: String,
    /// Every other field, among them each method's share, as in `share-gsu`. A method with an empty share is not an arm.
    #[serde(flatten)]
    others: BTreeMap<String, String>,
}

/// What the name of a method's share begins with.
const SHARE: &str = "share-";

impl Proposal {
    fn from_routing(routing: &Routing) -> Self {
        let arms = routing.experiment.iter().flat_map(|experiment| &experiment.arms);
        Self {
            default_method: routing.default_method.map(|method| method.to_string()).unwrap_or_default(),
            experiment: routing
                .experiment
                .as_ref()
                .map(|experiment| experiment.name.clone())
                .unwrap_or_default(),
            before: String::new(),
            others: arms.map(|arm| (format!("{SHARE}{}", arm.method), arm.share.to_string())).collect(),
        }
    }

    fn arms(&self) -> impl Iterator<Item = (&str, &str)> {
        let shares =
            self.others.iter().filter_map(|(name, share)| Some((name.strip_prefix(SHARE)?, share.trim())));
        shares.filter(|(_, share)| !share.is_empty())
    }

    /// A method's share in the form.
    fn share_of(&self, method: Method) -> &str {
        self.arms().find(|(name, _)| *name == method.as_str()).map_or("", |(_, share)| share)
    }

    /// A routing that is valid for the release, or the reasons why there is none.
    fn read(&self, live: &LiveRelease) -> Result<Routing, Vec<String>> {
        let mut wrong = Vec::new();
        let mut valid = |arm: Result<Arm, String>| arm.map_err(|reason| wrong.push(reason)).ok();
        let mut arms: Vec<Arm> =
            self.arms().filter_map(|(method, share)| valid(arm(method, share))).collect();
        // The arms that there are stay where they are, since the order decides which customers are in which.
        let present = live.routing.experiment.iter().flat_map(|experiment| &experiment.arms);
        let present: Vec<Method> = present.map(|arm| arm.method).collect();
        arms.sort_by_key(|arm| {
            let index = present.iter().position(|method| *method == arm.method);
            (index.unwrap_or(present.len()), arm.method)
        });
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
