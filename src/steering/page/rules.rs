//! `/merchandising`: the shop's rules, and turning one on or off.

use askama::Template;
use atelier_core::{domain::RuleName, util::notation::Notation};
use axum::{
    extract::State as Shared,
    response::{Html, Redirect},
};
use serde::Deserialize;

use super::{
    Current, LIST, PUT_RULE, RULE, Tab, UNDO, documents,
    rule::{details, lines, told},
    words::describe,
};
use crate::{
    completion::rules::{Rule, State},
    outcomes::acceptance::{Share, USUAL_DAYS, share},
    people::page::visitor::Merchandiser,
    platform::{
        http::{AppState, Finding, Problem, uncancelled::uncancelled},
        page::{
            change::{self, Change, Undo},
            form::{Form, PageQuery, address},
            shell::{Page, Shell},
        },
    },
    releases::routing::Holdout,
    steering::{
        documents::{of_stored, read_all},
        holdout::{self, RuleEffect},
    },
};

/// How many of the deleted rules the page names.
const MOST_DELETED: u32 = 50;

#[derive(Template)]
#[template(path = "steering/rules.html")]
struct RulesPage {
    shell: Shell,
    tab: Tab,
    undo: Option<Undo>,
    rules: Vec<RuleView>,
    /// Whether some customers are, or were lately, answered without rules.
    is_measured: bool,
    /// The share of these customers, in percent.
    held_out: f64,
    days: u32,
    /// The names of those that were deleted lately, and the addresses of their versions.
    deleted: Vec<(String, String)>,
    zone: &'static str,
}

struct RuleView {
    name: String,
    href: String,
    words: String,
    rule: Rule,
    now: Current,
    /// How many of the suggestions that it could change were accepted and bought, with it and without; empty without feedback.
    effect: Vec<String>,
    /// The address of what its next state changes, and the link's words.
    next: (String, &'static str),
}

impl RuleView {
    fn new(name: &RuleName, rule: Rule, effect: Option<&RuleEffect>, state: &AppState) -> Self {
        let is_active = rule.state == State::Active;
        let (next, words) = if is_active { ("off", "Turn off …") } else { ("active", "Turn on …") };
        Self {
            name: name.to_string(),
            href: address(RULE, &[("name", name.as_str())]),
            words: describe(&rule, &state.notation),
            now: Current::new(rule.state.as_str(), is_active, &rule.window(), state),
            effect: effect.map_or_else(Vec::new, |effect| tell(effect, &state.notation)),
            next: (address(RULE, &[("name", name.as_str()), ("state", next)]), words),
            rule,
        }
    }
}

fn tell(effect: &RuleEffect, notation: &Notation) -> Vec<String> {
    let RuleEffect { with, without } = effect;
    let figure = |verb, (hits, others): (u64, u64), gain: Option<Share>| {
        let share =
            |hits, of| share(hits, of).map_or_else(|| "–".into(), |share| notation.tenths(share.value));
        let (one, other) = (share(hits, with.shown), share(others, without.shown));
        let points = |share: f64| notation.tenths(share).replace(" %", "").replace('-', "−");
        let gain = gain.map_or_else(String::new, |Share { value, low, high }| {
            format!(": {} points ({} to {})", points(value), points(low), points(high))
        });
        format!("{one} {verb}, {other} without{gain}")
    };
    let [shown, held_out] = [with.shown, without.shown].map(|count| notation.count(count));
    let mut lines = vec![
        figure("accepted", (with.accepted, without.accepted), effect.of_acceptance()),
        format!("{shown} suggestions, {held_out} without"),
    ];
    let bought = (with.bought, without.bought);
    if bought.0 + bought.1 > 0 {
        lines.insert(1, figure("bought", bought, effect.of_purchases()));
    }
    lines
}

pub(super) async fn list(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    PageQuery(Change { undo }): PageQuery<Change>,
) -> Result<Html<String>, Problem> {
    let rules = read_all(&state.store).await?;
    let effects = holdout::effects(&state.store, USUAL_DAYS, state.now()).await?;
    let holdout = Holdout::read(&state.store).await?;
    let deleted = state.store.audit().deleted_rules(MOST_DELETED).await?.into_iter();
    let page = RulesPage {
        shell: visitor.shell(Page::Merchandising),
        tab: Tab::Rules,
        undo: documents::offer((&state, &visitor), PUT_RULE, undo, UNDO).await?,
        zone: state.zone.name(),
        deleted: deleted.map(|name| (name.clone(), address(RULE, &[("name", name)]))).collect(),
        is_measured: holdout.is_active() || !effects.is_empty(),
        // 12.3 is not a binary fraction.
        held_out: (holdout.share() * 1e4).round() / 100.0,
        days: USUAL_DAYS,
        rules: rules
            .into_iter()
            .map(|(name, rule)| RuleView::new(&name, rule, effects.get(&name.digest()), &state))
            .collect(),
    };
    Ok(Html(page.render()?))
}

#[derive(Deserialize)]
pub(super) struct HoldoutForm {
    percent: f64,
}

pub(super) async fn set_holdout(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(HoldoutForm { percent }): Form<HoldoutForm>,
) -> Result<Redirect, Problem> {
    let holdout = Holdout::new(percent / 100.0).map_err(|_| {
        let detail = format!("a holdout is from 0 to 50 % of the customers, found {percent} %");
        Problem::invalid(vec![Finding::parameter("percent", detail)])
    })?;
    let author = visitor.author();
    uncancelled(async move { state.releases().hold_out(holdout, author, state.now()).await }).await?;
    Ok(Redirect::to(LIST))
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
    let name: RuleName = documents::parse_name(&name)?;
    let scene = (&state, &visitor);
    let make = || of_stored(move |rule: Rule| Rule { state: next, ..rule });
    if next == State::Active {
        let checked = documents::save_at_once(scene, &name, true, make()).await?;
        let said = details(&checked);
        if !said.is_empty() && lines(&seen) != told(&said) {
            return Ok(Redirect::to(&address(RULE, &[("name", name.as_str()), ("state", next.as_str())])));
        }
    }
    documents::save_at_once(scene, &name, false, make()).await?;
    change::made(&state, visitor.author(), PUT_RULE, LIST).await
}
