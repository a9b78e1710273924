//! `/rules`: what the shop's merchandisers want of suggestions.

use atelier_core::domain::RuleName;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{
    acceptance::DaysQuery,
    fault,
    resource::{check_id, delete_answer, put_answer, read_answer},
};
use crate::{
    service::{
        acceptance::Share,
        access::Scope,
        completion::Warning,
        fault::ServiceError,
        holdout,
        rule_changes::{Changed, RuleError, change_rule},
        rules::Rule,
    },
    store::{Author, Expected, NamedRule, RuleOutcomes},
    web::http::{
        AppState, Kind, Problem,
        conditions::{ChangeHeaders, Conditions, PutHeaders, ReadHeaders, unchanged},
        extract::{Json, MergePatch, Path, Query, from_value},
        keys::Caller,
        routes::Routes,
        uncancelled::uncancelled,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Rules, routes!(list))
        .scoped(Scope::Rules, routes!(get, put, patch, delete))
        .scoped(Scope::Rules, routes!(effect))
}

/// A rule that was stored, or would be, and what is to be said of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RuleStored)]
struct StoredBody {
    rule: Rule,
    /// How many of the shop's articles it is about at present.
    #[schema(examples(312))]
    article_count: usize,
    /// What may be wrong with it: no articles, all of them out of stock, or another active rule that contradicts it.
    warnings: Vec<Warning>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rules)]
struct RulesBody {
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Trial {
    /// Checks the rule and answers as if it were stored, but stores nothing.
    #[serde(default)]
    dry_run: bool,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only the description of the path")]
struct RulePath {
    /// The rule's name
    #[param(example = "new-season", min_length = 1, max_length = 128)]
    name: String,
}

fn unknown(name: &RuleName) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no rule {name:?}; PUT it first"))
}

fn read(stored: NamedRule) -> Result<Rule, Problem> {
    let rule = serde_json::from_value(stored.body).map_err(|error| Problem::inside(Kind::Internal, error))?;
    Ok(Rule { name: Some(stored.name.to_string()), ..rule })
}

/// Rules
///
/// All of them, by name.
#[utoipa::path(get, path = "/rules", operation_id = "listRules", tag = "rules", responses(
    (status = 200, description = "The rules", body = RulesBody),
))]
async fn list(State(state): State<AppState>) -> Result<Json<RulesBody>, Problem> {
    let rules = state.store.rules().list().await?.into_iter().map(|stored| read(stored.value));
    Ok(Json(RulesBody { rules: rules.collect::<Result<_, _>>()? }))
}

/// One rule
#[utoipa::path(get, path = "/rules/{name}", operation_id = "getRule", tag = "rules",
    params(RulePath, ReadHeaders),
    responses(
        (status = 200, description = "The rule", body = Rule,
            headers(("etag" = String, description = "Its version"))),
        (status = 304, description = "The rule has one of the versions in If-None-Match"),
        (status = 404, description = "There is no such rule"),
    ),
)]
async fn get(
    State(state): State<AppState>,
    Path(name): Path<RuleName>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let stored = state.store.rules().get(&name).await?.ok_or_else(|| unknown(&name))?;
    read_answer(&conditions, stored, read)
}

/// Store a rule
///
/// Adds or replaces it. An active rule counts from the next request on, on other replicas within a second. What it does is said
/// at its fields; a draft does nothing.
#[utoipa::path(put, path = "/rules/{name}", operation_id = "putRule", tag = "rules",
    params(RulePath, Trial, PutHeaders),
    request_body = Rule,
    responses(
        (status = 200, description = "The rule is replaced, or checked", body = StoredBody,
            headers(("etag" = String, description = "Its new version"))),
        (status = 201, description = "The rule is added", body = StoredBody,
            headers(("etag" = String, description = "Its version"))),
        (status = 412, description = "The rule has another version, or exists already"),
    ),
)]
async fn put(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<RuleName>,
    Query(trial): Query<Trial>,
    Conditions(expected): Conditions,
    Json(body): Json<Rule>,
) -> Result<Response, Problem> {
    check_id("/name", body.name.as_deref(), &name)?;
    store(state, author, name, expected, trial, |_| Ok(body)).await
}

/// A change of a rule: fields to set, or with null to remove. An object is merged into the stored object.
#[derive(ToSchema)]
#[schema(as = RulePatch, example = json!({"state": "off"}))]
#[expect(dead_code, reason = "only the schema of the body, which is read as a free object")]
struct RuleChange {
    #[schema(additional_properties)]
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// Change a rule
///
/// A JSON Merge Patch (RFC 7396): fields that the body leaves out stay, and null removes one. `{"state": "off"}` ends a rule.
#[utoipa::path(patch, path = "/rules/{name}", operation_id = "patchRule", tag = "rules",
    params(RulePath, Trial, ChangeHeaders),
    request_body(content(
        (RuleChange = "application/merge-patch+json"),
        (RuleChange = "application/json"),
    )),
    responses(
        (status = 200, description = "The rule as it is now, or would be", body = StoredBody,
            headers(("etag" = String, description = "Its new version"))),
        (status = 404, description = "There is no such rule"),
        (status = 412, description = "The rule has another version"),
    ),
)]
async fn patch(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<RuleName>,
    Query(trial): Query<Trial>,
    Conditions(expected): Conditions,
    MergePatch(change): MergePatch<Map<String, Value>>,
) -> Result<Response, Problem> {
    let (asked, unknown_name) = (name.clone(), name.clone());
    let make = move |stored: Option<Value>| {
        let mut body = stored.ok_or_else(|| unknown(&unknown_name))?;
        merge(&mut body, Value::Object(change));
        let rule: Rule = from_value(body)?;
        check_id("/name", rule.name.as_deref(), &asked)?;
        Ok(rule)
    };
    store(state, author, name, expected, trial, make).await
}

/// Merges as RFC 7396 says.
pub(crate) fn merge(target: &mut Value, change: Value) {
    let Value::Object(change) = change else {
        *target = change;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let fields = target.as_object_mut().expect("it is an object; this is a bug");
    for (name, value) in change {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// What a rule changes
///
/// What became of suggestions of the last days that the rule could change: those of a blank for which one of its articles passes the
/// filters, in a request that it concerns. It compares customers with rules and customers in the holdout (`/holdout`), on the days on
/// which there was one. What happened later counts for the day on which the suggestion was shown.
#[utoipa::path(get, path = "/rules/{name}/effect", operation_id = "getRuleEffect", tag = "rules",
    params(RulePath, DaysQuery),
    responses(
        (status = 200, description = "The figures", body = EffectBody),
        (status = 404, description = "There is no such rule"),
    ),
)]
async fn effect(
    State(state): State<AppState>,
    Path(name): Path<RuleName>,
    Query(query): Query<DaysQuery>,
) -> Result<Json<EffectBody>, Problem> {
    let days = query.read()?;
    state.store.rules().get(&name).await?.ok_or_else(|| unknown(&name))?;
    let effects = holdout::effects(&state.store, days, state.now()).await?;
    let effect = effects.get(&name.digest()).copied().unwrap_or_default();
    Ok(Json(EffectBody {
        with_rule: effect.with.into(),
        without_rule: effect.without.into(),
        acceptance_gain: effect.of_acceptance(),
        purchase_gain: effect.of_purchases(),
    }))
}

/// What became of suggestions that a rule could change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RuleOutcomes)]
struct RuleOutcomesBody {
    shown: u64,
    /// Without what came back.
    accepted: u64,
    rejected: u64,
    /// By feedback on the completion.
    bought: u64,
}

impl From<RuleOutcomes> for RuleOutcomesBody {
    fn from(RuleOutcomes { shown, accepted, rejected, bought }: RuleOutcomes) -> Self {
        Self { shown, accepted, rejected, bought }
    }
}

/// What a rule changes, as far as feedback shows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RuleEffects)]
struct EffectBody {
    /// Of customers with rules.
    with_rule: RuleOutcomesBody,
    /// Of customers in the holdout.
    without_rule: RuleOutcomesBody,
    /// By how much the share of accepted suggestions is higher with the rule, with a 95 % interval that takes suggestions as
    /// independent; null until both sides were shown suggestions.
    acceptance_gain: Option<Share>,
    /// The same of bought suggestions.
    purchase_gain: Option<Share>,
}

async fn store(
    state: AppState,
    author: Author,
    name: RuleName,
    expected: Expected,
    Trial { dry_run }: Trial,
    make: impl FnOnce(Option<Value>) -> Result<Rule, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    uncancelled(async move {
        let store = state.store.by(author);
        let changed =
            change_rule((&store, &state.releases), &name, &expected, dry_run, state.now(), make).await;
        let changed = changed.map_err(|error| match error {
            RuleError::Refused(problem) => problem,
            RuleError::Faults(faults) => fault::problem(ServiceError::Faults(faults)),
            RuleError::Change(error) => unchanged(error, || unknown(&name)),
        })?;
        let Changed { put, version, rule, article_count, warnings } = changed;
        let body = StoredBody { rule, article_count, warnings };
        Ok(if dry_run { Json(body).into_response() } else { put_answer(put, &version, body) })
    })
    .await
}

/// Delete a rule
///
/// The audit log keeps what it was. To end a rule, and keep it, set its state to `off`.
#[utoipa::path(delete, path = "/rules/{name}", operation_id = "deleteRule", tag = "rules",
    params(RulePath, ChangeHeaders),
    responses(
        (status = 204, description = "The rule is deleted"),
        (status = 404, description = "There is no such rule"),
        (status = 412, description = "The rule has another version"),
    ),
)]
async fn delete(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<RuleName>,
    Conditions(expected): Conditions,
) -> Result<StatusCode, Problem> {
    uncancelled(async move {
        let deleted = state.store.by(author).rules().delete(&name, &expected, state.now()).await;
        state.releases.refresh().await?;
        delete_answer(deleted, || unknown(&name))
    })
    .await
}
