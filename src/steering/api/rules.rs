//! `/rules`: how the shop's merchandisers change suggestions.

use atelier_core::domain::RuleName;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::documents::{self, About, ApiDocument, ChangeQuery, unknown};
use crate::{
    completion::{Warning, rules::Rule},
    outcomes::{RuleOutcomes, acceptance::Share, api::acceptance::DaysQuery},
    people::Scope,
    platform::http::{
        AppState, Finding, Problem,
        extract::{Json, Path, Query},
        fault,
        routes::Routes,
    },
    steering::{
        documents::Changed,
        holdout,
        preview::{self, Preview},
    },
};

pub(crate) fn router() -> Routes {
    documents::router::<Rule>().scoped(Scope::Rules, routes!(effect))
}

/// A rule that was stored or checked, and warnings about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RuleStored)]
pub(crate) struct StoredBody {
    rule: Rule,
    /// How many of the shop's articles it matches now.
    #[schema(examples(312))]
    article_count: usize,
    /// Warnings: it has no articles, all of them out of stock, or another active rule that contradicts it.
    warnings: Vec<Warning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<Preview>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trial {
    /// Checks the rule and answers as if it were stored, but stores nothing.
    #[serde(default)]
    dry_run: bool,
    /// With `dry_run`: asks recent questions again, and answers with what would change if the rule applied now.
    #[serde(default)]
    preview: bool,
}

impl ApiDocument for Rule {
    const ABOUT: About = About {
        plural: "rules",
        one: "a rule",
        example: "new-season",
        scope: Scope::Rules,
        is_long: false,
        put: "Adds or replaces it. An active rule applies from the next request, and on other replicas within a second. Its fields say what \
              it does; a draft does nothing.",
        patch: (
            "Change a rule",
            "A JSON Merge Patch (RFC 7396): fields that the body leaves out stay, and null removes one. `{\"state\": \"off\"}` ends a rule.",
        ),
        patch_example: r#"{"state": "off"}"#,
        delete: (
            "Delete a rule",
            "The audit log keeps what it was. To end a rule, and keep it, set its state to `off`.",
        ),
    };
    type Query = Trial;
    type Answer = StoredBody;

    async fn answer(state: &AppState, changed: Changed<Self>, trial: Trial) -> Result<StoredBody, Problem> {
        let Changed { document: rule, article_count, warnings, .. } = changed;
        let mut preview = None;
        if trial.preview {
            let (live, name) = (state.live_release()?, rule.name.as_deref().unwrap_or_default());
            let name = RuleName::new(name).expect("it was in the path");
            let found = preview::preview(&live, state.profiles(), (&name, Some(&rule)), state.times()).await;
            preview = Some(found.map_err(fault::problem)?);
        }
        Ok(StoredBody { rule, article_count, warnings, preview })
    }
}

impl ChangeQuery for Trial {
    const TRIES: bool = true;

    fn is_trial(&self) -> Result<bool, Problem> {
        if self.preview && !self.dry_run {
            let detail = "a preview stores nothing: add dry_run=true";
            return Err(Problem::invalid(vec![Finding::parameter("preview", detail)]));
        }
        Ok(self.dry_run)
    }
}

/// A rule's effect
///
/// Outcomes of recent suggestions that the rule could change: in requests that it applies to, for blanks where one of its articles
/// passes the filters. The figures compare customers with rules to customers in the holdout (`/holdout`), on days with a holdout.
/// Later events count on the day when the suggestion was shown.
#[utoipa::path(get, path = "/rules/{name}/effect", operation_id = "getRuleEffect", tag = "rules",
    params(
        ("name" = String, Path, description = "The rule's name", example = "new-season", min_length = 1, max_length = 128),
        DaysQuery,
    ),
    responses(
        (status = 200, description = "The figures", body = EffectBody),
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
        with_rule: effect.with,
        without_rule: effect.without,
        acceptance_gain: effect.of_acceptance(),
        purchase_gain: effect.of_purchases(),
    }))
}

/// A rule's effect, as far as feedback shows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RuleEffects)]
struct EffectBody {
    /// Of customers with rules.
    with_rule: RuleOutcomes,
    /// Of customers in the holdout.
    without_rule: RuleOutcomes,
    /// Acceptance with the rule minus acceptance without it. The 95 % interval treats suggestions as independent; null until both
    /// sides were shown suggestions.
    acceptance_gain: Option<Share>,
    /// The same of bought suggestions.
    purchase_gain: Option<Share>,
}
