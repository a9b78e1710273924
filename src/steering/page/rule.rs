//! `/merchandising/rule`: one rule in a form, told in words and checked before it is stored, and its earlier versions.

use std::convert::Infallible;

use askama::Template;
use atelier_core::{
    domain::{ArticleId, RuleName},
    util::zone::Zone,
};
use axum::{
    extract::State as Shared,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    LIST, RULE, Tab, expected,
    fields::{Fields, Wrong},
    form::{has_when, read, write},
    words::describe,
};
use crate::{
    catalogue::page::article_view::ArticleView,
    people::page::{
        audit::Names,
        visitor::{Merchandiser, Visitor},
    },
    platform::{
        db::{AuditEntry, ChangeError, Expected, Versions},
        fault::ServiceError,
        http::{AppState, Kind, Problem, uncancelled::uncancelled},
        page::{
            fault,
            form::{Form, PageQuery, address},
            shell::{Page, Shell},
        },
    },
    releases::LiveRelease,
    steering::{
        documents::{Changed, EditError, change},
        preview::{Preview, preview},
        rules::{Rule, State},
    },
};

/// The effects with the words of the form.
const EFFECTS: [(&str, &str); 7] = [
    ("exclude", "Never suggest the articles"),
    ("boost", "Suggest them more"),
    ("bury", "Suggest them less"),
    ("pin", "Put the likeliest at a rank"),
    ("quota", "Suggest at least some"),
    ("pair", "Put the likeliest first beside others"),
    ("never-together", "Never beside others"),
];
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
    name: String,
    /// The version that is changed; empty for a new rule.
    version: String,
    /// Names the rule, so that the address leads back to it.
    action: String,
    form: Fields,
    unwritable: Option<String>,
    is_deleted: bool,
    has_when: bool,
    words: Option<String>,
    wrong: Vec<String>,
    checked: Option<Checked>,
    versions: Vec<VersionView>,
    zone: &'static str,
}

/// What is to be said of a rule before it is stored.
struct Checked {
    articles: String,
    warnings: Vec<String>,
    /// What it would change; None if the models have no time, or there are none.
    preview: Option<PreviewView>,
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
        let view = |moves: &[(ArticleId, u32)]| {
            let shown = moves.iter().take(MOVES);
            shown.map(|(id, lists)| (ArticleView::from_live_release(live, id), *lists)).collect()
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
    async fn new(changed: &Changed<Rule>, name: &RuleName, state: &AppState) -> Result<Self, Problem> {
        let mut shown = None;
        if let Some(live) = state.releases().current() {
            match preview(&live, state.profiles(), (name, &changed.document), state.times()).await {
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
        })
    }

    /// A rule is stored only once its warnings, if it has any, were shown.
    fn seen(&self) -> String {
        self.warnings.join("\n")
    }
}

pub(super) fn details(changed: &Changed<Rule>) -> Vec<String> {
    changed.warnings.iter().map(|warning| warning.detail.clone()).collect()
}

struct VersionView {
    at: String,
    who: String,
    state: String,
    words: String,
    /// Leads to a form with this version; None for the current one.
    href: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RuleQuery {
    name: Option<String>,
    /// The entry of the audit log whose version the form has.
    entry: Option<i64>,
    /// Shows what there is to be said of the rule in this state.
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
        return render(&state, &visitor, Edited::new(String::new(), form)).await;
    };
    let gone =
        || Problem::new(Kind::NotFound, format!("there is no rule {name:?}; it may have been deleted"));
    let rule_name = RuleName::new(&name).map_err(|_| gone())?;
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
    let body = body.ok_or_else(gone)?;
    let mut rule: Rule =
        serde_json::from_value(body).map_err(|error| Problem::inside(Kind::Internal, error))?;
    rule.state = next.unwrap_or(rule.state);
    let (form, unwritable) = match write(&rule, state.zone) {
        Ok(form) => (form, None),
        Err(field) => (Fields::default(), Some(field)),
    };
    let mut edited = Edited { version, unwritable, rule: Some(rule.clone()), ..Edited::new(name, form) };
    if next.is_some() {
        let make = |_| Ok(rule);
        let (store, expected) = (&state.store, Expected::default());
        let trial = change((store, state.releases()), &rule_name, &expected, true, state.now(), make);
        match trial.await {
            Ok(checked) => edited.checked = Some(Checked::new(&checked, &rule_name, &state).await?),
            Err(error) => edited.wrong = reasons(error)?,
        }
    }
    render(&state, &visitor, edited).await
}

/// Why a rule was not changed, in words.
fn reasons(error: EditError<Infallible>) -> Result<Vec<String>, Problem> {
    match error {
        EditError::Refused(never) => match never {},
        EditError::Faults(faults) => {
            Ok(faults.iter().map(|fault| format!("{}: {}", fault.field, fault.detail)).collect())
        }
        EditError::Change(ChangeError::Store(error)) => Err(error.into()),
        EditError::Change(_) => Ok(vec![
            "a rule of this name was added, changed or deleted meanwhile; open it again and repeat your change".to_owned(),
        ]),
    }
}

/// The rule that an entry of the audit log stored.
fn version_of(entry: AuditEntry) -> Option<Value> {
    let mut details = entry.details;
    details.remove("after")
}

/// What the page shows of a rule.
struct Edited {
    name: String,
    version: String,
    form: Fields,
    /// The field that the form cannot write as it is.
    unwritable: Option<String>,
    /// The rule of the form, if it is one.
    rule: Option<Rule>,
    wrong: Vec<String>,
    checked: Option<Checked>,
}

impl Edited {
    fn new(name: String, form: Fields) -> Self {
        let (version, wrong) = (String::new(), Vec::new());
        Self { name, version, form, unwritable: None, rule: None, wrong, checked: None }
    }
}

async fn render(state: &AppState, visitor: &Visitor, edited: Edited) -> Result<Html<String>, Problem> {
    let Edited { name, version, form, unwritable, rule, wrong, checked } = edited;
    let versions = versions(state, &name).await?;
    let named = [("name", &name)];
    let page = RulePage {
        shell: visitor.shell(Page::Merchandising),
        tab: Tab::Rules,
        words: rule.as_ref().map(|rule| describe(rule, &state.notation)),
        has_when: has_when(&form),
        action: if version.is_empty() { RULE.to_owned() } else { address(RULE, &named) },
        is_deleted: version.is_empty() && versions.first().is_some_and(|version| version.state == DELETED),
        name,
        version,
        form,
        unwritable,
        wrong,
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
        VersionView {
            at,
            who,
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
    let [name, version, seen, go] = ["name", "version", "seen", "go"].map(|field| form.take(field));
    let mut edited = Edited { version, ..Edited::new(name, form) };
    let rule = read(&edited.form, state.zone);
    let rule_name = RuleName::new(&edited.name).map_err(|error| vec![("name".to_owned(), error.to_string())]);
    let (rule, name) = match (rule, rule_name) {
        (Ok(rule), Ok(name)) => (rule, name),
        (rule, name) => {
            let wrong: Wrong = [name.err(), rule.err()].into_iter().flatten().flatten().collect();
            edited.wrong = wrong.into_iter().map(|(field, detail)| format!("{field}: {detail}")).collect();
            return Ok(
                (StatusCode::UNPROCESSABLE_ENTITY, render(&state, &visitor, edited).await?).into_response()
            );
        }
    };
    edited.rule = Some(rule.clone());
    let expected = expected(&edited.version);
    let change_it = async |is_trial: bool| {
        let (state, author, rule) = (state.clone(), visitor.author(), rule.clone());
        let (name, expected) = (name.clone(), expected.clone());
        uncancelled(async move {
            let make = |_| Ok(rule);
            let store = state.store.by(author);
            change((&store, state.releases()), &name, &expected, is_trial, state.now(), make).await
        })
        .await
    };
    let mut changed = change_it(true).await;
    if let Ok(checked) = &changed {
        if go == "store" && details(checked).join("\n") == lines(&seen) {
            changed = change_it(false).await;
        } else {
            edited.checked = Some(Checked::new(checked, &name, &state).await?);
        }
    }
    edited.wrong = match changed {
        Ok(_) if edited.checked.is_none() => return Ok(Redirect::to(LIST).into_response()),
        Ok(_) => return Ok(render(&state, &visitor, edited).await?.into_response()),
        Err(error) => reasons(error)?,
    };
    Ok((StatusCode::UNPROCESSABLE_ENTITY, render(&state, &visitor, edited).await?).into_response())
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
    let differs = || {
        let detail =
            format!("the rule {name:?} was changed in the meantime, so it was not deleted; open it again");
        Problem::new(Kind::Conflict, detail)
    };
    let Ok(name) = RuleName::new(&name) else { return Ok(Redirect::to(LIST)) };
    let author = visitor.author();
    let expected = Expected { one_of: Some(Versions::OneOf(vec![version])), none_of: None };
    let deleted = uncancelled(async move {
        let deleted = state.store.by(author).rules().delete(&name, &expected, state.now()).await?;
        state.releases().apply_change().await;
        Ok(deleted)
    });
    match deleted.await {
        Err(ChangeError::Store(error)) => Err(error.into()),
        Err(ChangeError::Differs(Some(_))) => Err(differs()),
        _ => Ok(Redirect::to(LIST)),
    }
}
