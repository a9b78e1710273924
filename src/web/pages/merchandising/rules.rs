//! `/merchandising`: the shop's rules, and one click to turn one on or off.

use askama::Template;
use atelier_core::domain::RuleName;
use axum::{
    extract::State as Shared,
    response::{Html, Redirect},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    LIST, RULE, Tab,
    rule::{details, lines, shown},
    words::describe,
};
use crate::{
    service::{
        fault::ServiceError,
        live_release::read_rules,
        rule_changes::{RuleError, change_rule},
        rules::{Rule, State},
    },
    store::{ChangeError, Expected},
    web::{
        http::{AppState, Kind, Problem, uncancelled::uncancelled},
        pages::{
            fault,
            form::{Form, address},
            shell::{Page, Shell},
            visitor::Merchandiser,
        },
    },
};

/// How many of the deleted rules the page names.
const MOST_DELETED: u32 = 50;

#[derive(Template)]
#[template(path = "merchandising/rules.html")]
struct RulesPage {
    shell: Shell,
    tab: Tab,
    rules: Vec<RuleView>,
    /// The names of those that were deleted lately, and the addresses of their versions.
    deleted: Vec<(String, String)>,
    zone: &'static str,
}

struct RuleView {
    name: String,
    href: String,
    /// What it does.
    words: String,
    /// What it is at this moment.
    state: &'static str,
    starts: Option<String>,
    ends: Option<String>,
    owner: String,
    note: String,
    priority: u32,
    /// The state that one click leads to, and the button's words.
    next: (&'static str, &'static str),
}

impl RuleView {
    fn new(name: &RuleName, rule: Rule, state: &AppState) -> Self {
        let now = state.now();
        let moment = |millis: i64| shown(state.zone, millis);
        let words = describe(&rule, &state.notation);
        let (starts, ends) = (rule.starts(), rule.ends());
        let current = match rule.state {
            State::Draft => "draft",
            State::Off => "off",
            State::Active if now.millis() < starts => "scheduled",
            State::Active if now.millis() >= ends => "ended",
            State::Active => "active",
        };
        let next = if rule.state == State::Active { ("off", "Turn off") } else { ("active", "Turn on") };
        Self {
            name: name.to_string(),
            href: address(RULE, &[("name", name.as_str())]),
            words,
            state: current,
            starts: rule.starts_at.is_some().then(|| moment(starts)),
            ends: rule.ends_at.is_some().then(|| moment(ends)),
            owner: rule.owner.unwrap_or_default(),
            note: rule.note.unwrap_or_default(),
            priority: rule.priority,
            next,
        }
    }
}

pub(super) async fn list(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
) -> Result<Html<String>, Problem> {
    let rules = read_rules(&state.store).await?;
    let deleted = state.store.audit().deleted_rules(MOST_DELETED).await?.into_iter();
    let page = RulesPage {
        shell: visitor.shell(Page::Merchandising),
        tab: Tab::Rules,
        zone: state.zone.name(),
        deleted: deleted.map(|name| (name.clone(), address(RULE, &[("name", name)]))).collect(),
        rules: rules.into_iter().map(|(name, rule)| RuleView::new(&name, rule, &state)).collect(),
    };
    Ok(Html(page.render()?))
}

#[derive(Deserialize)]
pub(super) struct StateForm {
    name: String,
    state: State,
    /// The warnings that were shown.
    #[serde(default)]
    seen: String,
}

/// A rule with warnings is turned on only once they were shown.
pub(super) async fn set_state(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(StateForm { name, state: next, seen }): Form<StateForm>,
) -> Result<Redirect, Problem> {
    let gone =
        || Problem::new(Kind::NotFound, format!("there is no rule {name:?}; it may have been deleted"));
    let rule_name = RuleName::new(&name).map_err(|_| gone())?;
    let change = async |is_trial: bool| {
        let (state, author, name) = (state.clone(), visitor.author(), rule_name.clone());
        uncancelled(async move {
            let store = state.store.by(author);
            let make = move |stored: Option<Value>| {
                let rule: Option<Rule> = stored.and_then(|body| serde_json::from_value(body).ok());
                rule.map(|rule| Rule { state: next, ..rule }).ok_or(())
            };
            let expected = Expected::default();
            change_rule((&store, &state.releases), &name, &expected, is_trial, state.now(), make).await
        })
        .await
    };
    let turns_on = next == State::Active;
    let mut changed = change(turns_on).await;
    if let Ok(checked) = changed.as_ref()
        && turns_on
    {
        if details(checked).join("\n") != lines(&seen) {
            return Ok(Redirect::to(&address(RULE, &[("name", name.as_str()), ("state", next.as_str())])));
        }
        changed = change(false).await;
    }
    match changed {
        Ok(_) => Ok(Redirect::to(LIST)),
        Err(RuleError::Faults(faults)) => Err(fault::problem(ServiceError::Faults(faults))),
        Err(RuleError::Change(ChangeError::Store(error))) => Err(error.into()),
        Err(RuleError::Change(_) | RuleError::Refused(())) => Err(gone()),
    }
}
