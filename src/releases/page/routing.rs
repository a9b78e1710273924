//! `/operations/routing`: the method that answers by default.

use askama::Template;
use atelier_core::domain::Method;
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    people::page::visitor::{Admin, Analyst, Visitor},
    platform::page::operations::Tab,
    platform::{
        http::{AppState, Problem, uncancelled::uncancelled},
        page::{
            change::{self, Change, Undo},
            form::{Form, PageQuery},
            shell::{Page, Shell},
        },
    },
    releases::{LiveRelease, SET_ROUTING, routing::Routing},
};

#[derive(Template)]
#[template(path = "releases/routing.html")]
struct RoutingPage {
    shell: Shell,
    tab: Tab,
    release: String,
    release_default: Method,
    routing: Routing,
    proposal: Proposal,
    methods: Vec<Method>,
    wrong: Option<String>,
    undo: Option<Undo>,
}

const PAGE: &str = "/operations/routing";

impl RoutingPage {
    /// The method that the routing names and the release does not have.
    fn passed_over(&self) -> Option<Method> {
        self.routing.default_method.filter(|method| !self.methods.contains(method))
    }
}

/// The form starts with the present routing.
pub(crate) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(Change { undo }): PageQuery<Change>,
) -> Result<Html<String>, Problem> {
    let proposal = Proposal::from_routing(state.live_release()?.routing);
    let mut page = routing_page(&state, &visitor, proposal, None)?;
    let entry = change::undoable(&state, visitor.author(), SET_ROUTING, undo).await?;
    page.undo = entry.map(|entry| {
        let part = |part: &str| entry.details.get(part).and_then(Value::as_str).unwrap_or_default();
        let method =
            part("before").parse::<Method>().map_or_else(|_| String::new(), |method| method.to_string());
        let fields = vec![
            ("undo", entry.seq.to_string()),
            ("before", part("after").to_owned()),
            ("default_method", method),
        ];
        Undo {
            words: format!("The default method is {} now.", part("after")),
            action: PAGE.to_owned(),
            fields,
        }
    });
    Ok(Html(page.render()?))
}

fn routing_page(
    state: &AppState,
    visitor: &Visitor,
    proposal: Proposal,
    wrong: Option<String>,
) -> Result<RoutingPage, Problem> {
    let live = state.live_release()?;
    Ok(RoutingPage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Routing,
        release: live.name().to_owned(),
        release_default: live.serving.release().manifest().default_method,
        routing: live.routing,
        methods: live.serving.methods().collect(),
        proposal,
        wrong,
        undo: None,
    })
}

#[derive(Template)]
#[template(path = "releases/routing/change.html")]
struct ChangePage {
    shell: Shell,
    tab: Tab,
    before: String,
    after: String,
    /// Which method answers now, and which then.
    answers: [Method; 2],
    proposal: Proposal,
}

/// Shows what a proposal would change.
pub(crate) async fn confirm(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    PageQuery(proposal): PageQuery<Proposal>,
) -> Result<Response, Problem> {
    let live = state.live_release()?;
    let routing = match proposal.read(&live) {
        Ok(routing) => routing,
        Err(wrong) => return refuse(&state, &visitor, proposal, wrong, StatusCode::UNPROCESSABLE_ENTITY),
    };
    let release_default = live.serving.release().manifest().default_method;
    let page = ChangePage {
        shell: visitor.shell(Page::Operations),
        tab: Tab::Routing,
        before: live.routing.to_string(),
        after: routing.to_string(),
        answers: [live.default_method(), routing.default_method.unwrap_or(release_default)],
        proposal,
    };
    Ok(Html(page.render()?).into_response())
}

fn refuse(
    state: &AppState,
    visitor: &Visitor,
    proposal: Proposal,
    wrong: String,
    status: StatusCode,
) -> Result<Response, Problem> {
    let page = routing_page(state, visitor, proposal, Some(wrong))?;
    Ok((status, Html(page.render()?)).into_response())
}

/// Sets the confirmed routing.
pub(crate) async fn set(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Form(proposal): Form<Proposal>,
) -> Result<Response, Problem> {
    let (live, author) = (state.live_release()?, visitor.author());
    change::check_undo(&state, author, SET_ROUTING, proposal.undo).await?;
    let routing = match proposal.read(&live) {
        Ok(routing) => routing,
        Err(wrong) => return refuse(&state, &visitor, proposal, wrong, StatusCode::UNPROCESSABLE_ENTITY),
    };
    if live.routing.to_string() != proposal.before {
        let wrong = "the routing was changed in the meantime, so nothing was set; the new routing is above, yours below";
        return refuse(&state, &visitor, proposal, wrong.to_owned(), StatusCode::CONFLICT);
    }
    let (own, now) = (state.clone(), state.now());
    uncancelled(async move { own.releases().route(routing, author, now).await }).await?;
    Ok(change::made(&state, author, SET_ROUTING, PAGE).await?.into_response())
}

/// A routing as a form and an address have it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Proposal {
    /// Empty for the release's own.
    #[serde(default)]
    default_method: String,
    /// The routing in words when the page was rendered.
    #[serde(default)]
    before: String,
    /// The change that it takes back.
    undo: Option<i64>,
}

impl Proposal {
    fn from_routing(routing: Routing) -> Self {
        let default_method = routing.default_method.map(|method| method.to_string()).unwrap_or_default();
        Self { default_method, before: routing.to_string(), undo: None }
    }

    /// A routing that is valid for the release, or the reason why there is none.
    fn read(&self, live: &LiveRelease) -> Result<Routing, String> {
        let default = Some(self.default_method.as_str()).filter(|method| !method.is_empty());
        let default_method =
            default.map(str::parse::<Method>).transpose().map_err(|error| error.to_string())?;
        let routing = Routing { default_method };
        routing.check(live).map_or(Ok(routing), |fault| Err(fault.detail))
    }
}
