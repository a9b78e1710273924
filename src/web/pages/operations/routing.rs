//! `/operations/routing`: which method answers where none is named, an experiment between methods, and how their
//! suggestions are taken.

use super::{Tab, proposal::Proposal};
use crate::{
    domain::Method,
    service::{
        administration::set_routing,
        feedback::{Share, share},
        routing::Routing,
    },
    store::FeedbackCounts,
    web::{
        http::{AppState, Problem},
        pages::{
            figures::{self, percent},
            form::{Form, PageQuery},
            shell::{Page, Shell},
            visitor::{Admin, Visitor},
        },
    },
};
use askama::Template;
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
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
    /// The methods that there are, each with the share that the form has for it.
    methods: Vec<(Method, String)>,
    wrong: Vec<String>,
    counts: Vec<CountRow>,
}

impl RoutingPage {
    /// The experiment's arms, with what part of the customers each has.
    fn arms(&self) -> Vec<(Method, u32, String)> {
        let arms = self.routing.experiment.iter().flat_map(|experiment| &experiment.arms);
        let all: u64 = arms.clone().map(|arm| u64::from(arm.share)).sum();
        let percent = |share: u32| f64::from(share) * 100.0 / count(all);
        arms.map(|arm| (arm.method, arm.share, format!("{:.0} %", percent(arm.share)))).collect()
    }

    /// Whether another arm or default than the release has is passed over now.
    fn passed_over(&self) -> Vec<Method> {
        let arms = self.routing.experiment.iter().flat_map(|experiment| &experiment.arms);
        let named = self.routing.default_method.into_iter().chain(arms.map(|arm| arm.method));
        named.filter(|named| !self.methods.iter().any(|(method, _)| method == named)).collect()
    }
}

/// What became of one method's suggestions.
struct CountRow {
    method: String,
    release: String,
    arm: Option<String>,
    /// Shown, accepted, rejected, bought.
    numbers: [String; 4],
    acceptance: Option<Acceptance>,
}

/// A share with its interval: in words, and along a line of 200.
struct Acceptance {
    value: String,
    low: String,
    high: String,
    at: [String; 3],
}

impl CountRow {
    fn new(counts: FeedbackCounts) -> Self {
        let FeedbackCounts { release, method, arm, shown, accepted, rejected, bought } = counts;
        let numbers = [shown, accepted, rejected, bought].map(figures::count);
        Self { method, release, arm, numbers, acceptance: share(accepted, shown).map(Acceptance::new) }
    }
}

impl Acceptance {
    fn new(Share { value, low, high }: Share) -> Self {
        let at = [low, value, high].map(|share| format!("{:.1}", share * 200.0));
        Self { value: percent(value), low: percent(low), high: percent(high), at }
    }
}

fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The query is a proposal to go on with; without one the form begins from what is.
pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let routing = Routing::clone(&state.live_release()?.routing);
    Ok(Html(editing(&state, &visitor, Proposal::of(&routing), Vec::new()).await?.render()?))
}

async fn editing(
    state: &AppState,
    visitor: &Visitor,
    proposal: Proposal,
    wrong: Vec<String>,
) -> Result<RoutingPage, Problem> {
    let live = state.live_release()?;
    let counts = state.store.feedback().counts().await?;
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
        counts: counts.into_iter().map(CountRow::new).collect(),
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
    /// What customers in an experiment will notice.
    consequences: Vec<&'static str>,
}

/// What a proposal would change.
pub(super) async fn ask(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    PageQuery(proposal): PageQuery<Proposal>,
) -> Result<Response, Problem> {
    let live = state.live_release()?;
    let routing = match proposal.read(&live) {
        Ok(routing) => routing,
        Err(wrong) => {
            return again(&state, &visitor, proposal, wrong, StatusCode::UNPROCESSABLE_ENTITY).await;
        }
    };
    let page = ChangePage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Routing,
        before: live.routing.to_string(),
        after: routing.to_string(),
        release_default: live.serving.release().manifest().default_method,
        consequences: consequences(&live.routing, &routing),
        proposal: Proposal::of(&routing),
    };
    Ok(Html(page.render()?).into_response())
}

async fn again(
    state: &AppState,
    visitor: &Visitor,
    proposal: Proposal,
    wrong: Vec<String>,
    status: StatusCode,
) -> Result<Response, Problem> {
    let page = editing(state, visitor, proposal, wrong).await?;
    Ok((status, Html(page.render()?)).into_response())
}

fn consequences(before: &Routing, after: &Routing) -> Vec<&'static str> {
    let mut told = Vec::new();
    match (&before.experiment, &after.experiment) {
        (None, Some(_)) => {
            told.push(
                "Known customers are split between the arms and stay in theirs; feedback is counted by arm.",
            );
        }
        (Some(_), None) => {
            told.push("The experiment ends: all are answered by the default. Its counts stay.");
        }
        (Some(before), Some(after)) if before.name != after.name => {
            told.push("It is another experiment: customers are split anew, and counted under the new name.");
        }
        (Some(before), Some(after)) if before.arms != after.arms => {
            told.push("Some customers move to another arm, and what is counted mixes before and after: another name keeps them apart.");
        }
        _ => {}
    }
    if before.default_method != after.default_method {
        told.push("Whoever names no method and is in no experiment gets the new default's suggestions.");
    }
    told
}

/// Sets what was confirmed.
pub(super) async fn set(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Form(proposal): Form<Proposal>,
) -> Result<Response, Problem> {
    let live = state.live_release()?;
    let routing = match proposal.read(&live) {
        Ok(routing) => routing,
        Err(wrong) => {
            return again(&state, &visitor, proposal, wrong, StatusCode::UNPROCESSABLE_ENTITY).await;
        }
    };
    if live.routing.to_string() != proposal.before {
        let wrong = vec![
            "somebody changed the routing meanwhile, so nothing was set; this is yours, above is theirs"
                .into(),
        ];
        return again(&state, &visitor, proposal, wrong, StatusCode::CONFLICT).await;
    }
    set_routing(&state.releases, &state.store, visitor.actor(), &routing, state.now()).await?;
    Ok(Redirect::to("/operations/routing").into_response())
}
