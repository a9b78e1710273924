//! `/rules`: how the shop's merchandisers change suggestions.

use atelier_core::domain::{ArticleId, RuleName};
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::documents::{Edit, JsonDocument, read};
use crate::{
    completion::Warning,
    outcomes::{Outcomes, acceptance::Share, api::acceptance::DaysQuery},
    people::{Scope, gate::Caller},
    platform::http::{
        AppState, Finding, Kind, Problem,
        conditions::{ChangeHeaders, Conditions, PutHeaders, ReadHeaders},
        extract::{Json, MergePatch, Path, Query},
        fault,
        resource::{put_answer, read_answer},
        routes::Routes,
    },
    steering::{
        documents::Changed,
        holdout,
        preview::{self, Preview},
        rules::Rule,
    },
};

/// The most articles that a preview names as gaining, and as losing.
const MOST_MOVES: usize = 50;

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Rules, routes!(list))
        .scoped(Scope::Rules, routes!(get, put, patch, delete))
        .scoped(Scope::Rules, routes!(effect))
}

/// A rule that was stored or checked, and warnings about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RuleStored)]
struct StoredBody {
    rule: Rule,
    /// How many of the shop's articles it matches now.
    #[schema(examples(312))]
    article_count: usize,
    /// What may be wrong with it: no articles, all of them out of stock, or another active rule that contradicts it.
    warnings: Vec<Warning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<PreviewBody>,
}

/// What would change if the rule applied now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RulePreview)]
struct PreviewBody {
    /// Number of recent questions that were asked again: at most 300, without features of customers.
    questions: usize,
    /// Number of answers that would change.
    changed: usize,
    /// The probability, by the models, that a stylist would choose one of the suggestions for a blank, today.
    share: f64,
    /// The same with the rule.
    share_with: f64,
    /// The articles that would be in more answers: at most 50, those that gain most first.
    gains: Vec<MoveBody>,
    /// The articles that would be in fewer answers.
    losses: Vec<MoveBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RuleMove)]
struct MoveBody {
    /// The article, by its id.
    article: String,
    /// In how many more or fewer answers it would be.
    answers: u32,
}

impl From<Preview> for PreviewBody {
    fn from(Preview { questions, changed, share, share_with, gains, losses }: Preview) -> Self {
        let moves = |moves: Vec<(ArticleId, u32)>| {
            let all = moves.into_iter().take(MOST_MOVES);
            all.map(|(article, answers)| MoveBody { article: article.to_string(), answers }).collect()
        };
        Self { questions, changed, share, share_with, gains: moves(gains), losses: moves(losses) }
    }
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
    /// With `dry_run`: asks recent questions again, and answers with what would change if the rule applied now.
    #[serde(default)]
    preview: bool,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only the description of the path")]
struct RulePath {
    /// The rule's name
    #[param(example = "new-season", min_length = 1, max_length = 128)]
    name: String,
}

impl JsonDocument for Rule {
    fn unknown(name: &RuleName) -> Problem {
        Problem::new(Kind::NotFound, format!("there is no rule {name:?}; PUT it first"))
    }
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
    let stored = state.store.rules().get(&name).await?.ok_or_else(|| Rule::unknown(&name))?;
    read_answer(&conditions, stored, read::<Rule>)
}

/// Store a rule
///
/// Adds or replaces it. An active rule applies from the next request, and on other replicas within a second. Its fields say what it
/// does; a draft does nothing.
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
    trial.check()?;
    let edit = Edit { state: state.clone(), author, name, expected, is_trial: trial.dry_run };
    answer(&state, edit.put(body).await?, trial).await
}

/// A change to a rule: set fields, or remove them with null. An object is merged into the stored object.
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
    trial.check()?;
    let edit = Edit { state: state.clone(), author, name, expected, is_trial: trial.dry_run };
    answer(&state, edit.patch(change).await?, trial).await
}

impl Trial {
    fn check(&self) -> Result<(), Problem> {
        if self.preview && !self.dry_run {
            let detail = "a preview stores nothing: add dry_run=true";
            return Err(Problem::invalid(vec![Finding::parameter("preview", detail)]));
        }
        Ok(())
    }
}

async fn answer(state: &AppState, changed: Changed<Rule>, trial: Trial) -> Result<Response, Problem> {
    let Changed { put, version, document: rule, article_count, warnings } = changed;
    let mut preview = None;
    if trial.preview {
        let (live, name) = (state.live_release()?, rule.name.as_deref().unwrap_or_default());
        let name = RuleName::new(name).expect("it was in the path; this is a bug");
        let found = preview::preview(&live, &state.profiles, (&name, &rule), state.times()).await;
        preview = Some(found.map_err(fault::problem)?.into());
    }
    let body = StoredBody { rule, article_count, warnings, preview };
    Ok(if trial.dry_run { Json(body).into_response() } else { put_answer(put, &version, body) })
}

/// What a rule changes
///
/// Outcomes of recent suggestions that the rule could change: in requests that it applies to, for blanks where one of its articles
/// passes the filters. The figures compare customers with rules to customers in the holdout (`/holdout`), on days with a holdout.
/// Later events count on the day when the suggestion was shown.
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
    state.store.rules().get(&name).await?.ok_or_else(|| Rule::unknown(&name))?;
    let effects = holdout::effects(&state.store, days, state.now()).await?;
    let effect = effects.get(&name.digest()).copied().unwrap_or_default();
    Ok(Json(EffectBody {
        with_rule: effect.with.into(),
        without_rule: effect.without.into(),
        acceptance_gain: effect.of_acceptance(),
        purchase_gain: effect.of_purchases(),
    }))
}

/// Outcomes of suggestions that a rule could change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RuleOutcomes)]
struct RuleOutcomesBody {
    /// Suggestions that were shown.
    shown: u64,
    /// Accepted suggestions, without returned ones.
    accepted: u64,
    /// Suggestions that were rejected.
    rejected: u64,
    /// By feedback on the completion.
    bought: u64,
}

impl From<Outcomes> for RuleOutcomesBody {
    fn from(Outcomes { shown, accepted, rejected, sold, .. }: Outcomes) -> Self {
        Self { shown, accepted, rejected, bought: sold.bought }
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
    /// Acceptance with the rule minus acceptance without it. The 95 % interval treats suggestions as independent; null until both
    /// sides were shown suggestions.
    acceptance_gain: Option<Share>,
    /// The same of bought suggestions.
    purchase_gain: Option<Share>,
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
    Edit::<Rule> { state, author, name, expected, is_trial: false }.delete().await
}
