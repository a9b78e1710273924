//! `/merchandising/rule`: one rule in a form, in words, and checked before it is stored, and its earlier versions.

use askama::Template;
use atelier_core::{domain::RuleName, util::zone::Zone};
use axum::{
    extract::State as Shared,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Current, LIST, PUT_RULE, RULE, STATE, Tab,
    choices::Choices,
    documents::{self, Edit, Problems},
    fields::Fields,
    form::{has_when, read, write},
    words::describe,
};
use crate::{
    catalogue::page::article_view::ArticleView,
    completion::rules::{EFFECT_NUMBERS, EFFECTS, Rule, State},
    people::page::{
        audit::Names,
        visitor::{Merchandiser, Visitor},
    },
    platform::{
        db::{AuditEntry, Expected},
        fault::ServiceError,
        http::{AppState, Problem},
        page::{
            change, fault,
            form::{Form, PageQuery, address, gone},
            shell::{Page, Shell},
        },
    },
    releases::LiveRelease,
    steering::{
        documents::Changed,
        preview::{Move, Preview, preview},
    },
};

/// How many versions the page shows.
const VERSIONS: u32 = 20;
/// The state of a version that is none.
const DELETED: &str = "deleted";
/// How many articles that gain, and that lose, the preview shows.
const MOVES: usize = 8;

#[derive(Template)]
#[template(path = "steering/rule.html")]
struct RulePage {
    shell: Shell,
    tab: Tab,
    edit: Edit,
    choices: Choices,
    is_deleted: bool,
    has_when: bool,
    words: Option<String>,
    checked: Option<Checked>,
    versions: Vec<VersionView>,
    zone: &'static str,
}

/// The checks of a rule before it is stored.
struct Checked {
    articles: String,
    warnings: Vec<String>,
    /// Its effect; None if the models have no time, or there are none.
    preview: Option<PreviewView>,
    /// The state that the rule is about to have.
    next: Option<State>,
}

struct PreviewView {
    questions: usize,
    changed: String,
    today: String,
    then: String,
    given_up: String,
    /// Which articles are suggested more and less, each with the number of answers.
    moves: Vec<(&'static str, Vec<(ArticleView, u32)>)>,
}

impl PreviewView {
    fn new(found: &Preview, live: &LiveRelease, state: &AppState) -> Self {
        let percent = |share: f64| state.notation.tenths(share);
        let view = |moves: &[Move]| {
            let shown = moves.iter().take(MOVES);
            shown.map(|one| (ArticleView::from_live_release(live, &one.article), one.answers)).collect()
        };
        #[expect(clippy::cast_precision_loss, reason = "the sample is small")]
        let changed = found.changed as f64 / found.questions.max(1) as f64;
        Self {
            questions: found.questions,
            changed: format!("{} ({})", found.changed, state.notation.percent(changed)),
            today: percent(found.share),
            then: percent(found.share_with),
            given_up: percent(found.share - found.share_with),
            moves: [("Suggested more", &found.gains), ("Suggested less", &found.losses)]
                .into_iter()
                .filter(|(_, moves)| !moves.is_empty())
                .map(|(title, moves)| (title, view(moves)))
                .collect(),
        }
    }
}

impl Checked {
    /// A rule that is turned off is compared with today's rules, too.
    async fn new(changed: &Changed<Rule>, name: &RuleName, state: &AppState) -> Result<Self, Problem> {
        let mut shown = None;
        let rule = Some(&changed.document).filter(|rule| rule.state != State::Off);
        if let Some(live) = state.releases().current() {
            match preview(&live, state.profiles(), (name, rule), state.times()).await {
                Ok(found) => shown = Some(PreviewView::new(&found, &live, state)),
                // A rule can be stored while the models have no time.
                Err(ServiceError::Ask(_)) => {}
                Err(error) => return Err(fault::problem(error)),
            }
        }
        Ok(Self {
            preview: shown,
            articles: state.notation.count(changed.article_count as u64),
            warnings: details(changed),
            next: None,
        })
    }

    /// A rule with warnings, and an active one, is stored only once they were shown.
    fn seen(&self) -> String {
        told(&self.warnings)
    }
}

pub(super) fn details(changed: &Changed<Rule>) -> Vec<String> {
    changed.warnings.iter().map(|warning| warning.detail.clone()).collect()
}

struct VersionView {
    at: String,
    who: String,
    state: String,
    starts: Option<String>,
    ends: Option<String>,
    words: String,
    /// Leads to a form with this version; None for the current one.
    href: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RuleQuery {
    name: Option<String>,
    /// The entry of the audit log whose version the form has.
    entry: Option<i64>,
    /// Says what this state of the rule changes.
    state: Option<State>,
}

pub(super) async fn page(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    PageQuery(RuleQuery { name, entry, state: next }): PageQuery<RuleQuery>,
) -> Result<Html<String>, Problem> {
    let Some(name) = name else {
        let mut form = Fields::default();
        form.set("state", "draft");
        return render(&state, &visitor, Edit { form, ..Edit::default() }, None, None).await;
    };
    let rule_name: RuleName = documents::parse_name(&name)?;
    let stored = state.store.rules().get(&rule_name).await?;
    let version = stored.as_ref().map(|stored| stored.version.to_string()).unwrap_or_default();
    let body = match (entry, stored) {
        (None, Some(stored)) => Some(stored.value.body),
        (seq, _) => {
            let mut entries = state.store.audit().for_rule(&rule_name, VERSIONS).await?.into_iter();
            match seq {
                Some(seq) => entries.find(|entry| entry.seq == seq).and_then(version_of),
                // It is deleted: its last version.
                None => entries.next().and_then(|mut entry| entry.details.remove("before")),
            }
        }
    };
    let mut rule: Rule = documents::parse(body.ok_or_else(|| gone("rule", &name))?)?;
    rule.state = next.unwrap_or(rule.state);
    let mut edit = Edit::new(name, version, write(&rule, state.zone));
    let mut checked = None;
    if next.is_some() {
        let wanted = rule.clone();
        let (expected, make) = (Expected::default(), move |_| Ok(wanted.clone()));
        match documents::save((&state, &visitor), &rule_name, &expected, true, make).await? {
            Ok(changed) => {
                let found = Checked::new(&changed, &rule_name, &state).await?;
                checked = Some(Checked { next, ..found });
            }
            Err(faults) => edit.wrong = faults.into(),
        }
    }
    render(&state, &visitor, edit, Some(&rule), checked).await
}

/// The rule that an entry of the audit log stored.
fn version_of(entry: AuditEntry) -> Option<Value> {
    let mut details = entry.details;
    details.remove("after")
}

/// `rule` is that of the form, if it is one.
async fn render(
    state: &AppState,
    visitor: &Visitor,
    edit: Edit,
    rule: Option<&Rule>,
    checked: Option<Checked>,
) -> Result<Html<String>, Problem> {
    let versions = versions(state, &edit.name).await?;
    let page = RulePage {
        shell: visitor.shell(Page::Merchandising),
        tab: Tab::Rules,
        words: rule.map(|rule| describe(rule, &state.notation)),
        has_when: has_when(&edit.form),
        choices: Choices::read(state, &edit.form, &["articles.ids", "others.ids", "outfit.ids"]).await?,
        is_deleted: edit.version.is_empty()
            && versions.first().is_some_and(|version| version.state == DELETED),
        edit,
        checked,
        versions,
        zone: state.zone.name(),
    };
    Ok(Html(page.render()?))
}

async fn versions(state: &AppState, name: &str) -> Result<Vec<VersionView>, Problem> {
    let Ok(rule_name) = RuleName::new(name) else { return Ok(Vec::new()) };
    let entries = state.store.audit().for_rule(&rule_name, VERSIONS).await?;
    let names = Names::read(&state.store).await?;
    let view = |(number, entry): (usize, AuditEntry)| {
        let (at, who, seq) = (shown(state.zone, entry.at.millis()), names.get(entry.actor), entry.seq);
        let rule: Option<Rule> = version_of(entry).and_then(|body| serde_json::from_value(body).ok());
        let href = (number > 0 && rule.is_some())
            .then(|| format!("{}#rule", address(RULE, &[("name", name), ("entry", &seq.to_string())])));
        let window = rule.as_ref().map_or(i64::MIN..i64::MAX, Rule::window);
        let Current { starts, ends, .. } = Current::new(DELETED, false, &window, state);
        VersionView {
            at,
            who,
            starts,
            ends,
            state: rule.as_ref().map_or(DELETED, |rule| rule.state.as_str()).to_owned(),
            words: rule.map(|rule| describe(&rule, &state.notation)).unwrap_or_default(),
            href,
        }
    };
    Ok(entries.into_iter().enumerate().map(view).collect())
}

/// To the minute.
pub(super) fn shown(zone: Zone, millis: i64) -> String {
    zone.show(millis.div_euclid(60_000) * 60_000).replace('T', " ")
}

/// Checks the rule of a form, and stores it unless only a preview is wanted or there is something to be said of it first.
pub(super) async fn store(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(mut form): Form<Fields>,
) -> Result<Response, Problem> {
    let [seen, go] = ["seen", "go"].map(|field| form.take(field));
    let mut edit = Edit::sent(form);
    if go == "more" {
        return Ok(render(&state, &visitor, edit, None, None).await?.into_response());
    }
    let refused = async |edit: Edit, rule: Option<&Rule>| {
        let page = render(&state, &visitor, edit, rule, None).await?;
        Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
    };
    let (name, rule) = match edit.named(read(&edit.form, state.zone)) {
        Ok(named) => named,
        Err(wrong) => {
            edit.wrong = Problems(wrong);
            return refused(edit, None).await;
        }
    };
    let expected = edit.expected();
    let save = |is_trial: bool| {
        let rule: Rule = rule.clone();
        documents::save((&state, &visitor), &name, &expected, is_trial, move |_| Ok(rule.clone()))
    };
    let mut saved = save(true).await?;
    if let Ok(changed) = &saved {
        let said = details(changed);
        let is_told = lines(&seen) == told(&said) || said.is_empty() && rule.state != State::Active;
        if go != "store" || !is_told {
            let checked = Checked::new(changed, &name, &state).await?;
            return Ok(render(&state, &visitor, edit, Some(&rule), Some(checked)).await?.into_response());
        }
        saved = save(false).await?;
    }
    match saved {
        Ok(_) => Ok(change::made(&state, visitor.author(), PUT_RULE, LIST).await?.into_response()),
        Err(faults) => {
            edit.wrong = faults.into();
            refused(edit, Some(&rule)).await
        }
    }
}

/// The warnings that a page has shown, as its form tells them.
pub(super) fn told(warnings: &[String]) -> String {
    if warnings.is_empty() { "none".to_owned() } else { warnings.join("\n") }
}

/// Forms end lines as mails do.
pub(super) fn lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[derive(Deserialize)]
pub(super) struct Deleted {
    name: String,
    version: String,
}

pub(super) async fn delete(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(Deleted { name, version }): Form<Deleted>,
) -> Result<Redirect, Problem> {
    if let Ok(name) = RuleName::new(&name) {
        documents::delete::<Rule>((&state, &visitor), &name, &version).await?;
    }
    Ok(Redirect::to(LIST))
}
