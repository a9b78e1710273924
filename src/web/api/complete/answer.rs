//! What `/complete` answers.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    domain::{ArticleId, Features},
    service::{
        asking::{Resolved, Suggestions},
        completion::{self, Blank, Cause, Placement, Suggestion},
        live_release::LiveRelease,
    },
    web::{
        api::{articles::ArticleBody, features},
        http::{schema::free_object, timing::TimingBody},
    },
};

/// Suggestions for each blank of an outfit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Completion)]
pub(crate) struct Answer {
    /// Send it back with feedback.
    completion_id: String,
    #[schema(examples("demo"))]
    release: String,
    #[schema(examples("gsu"))]
    method: String,
    /// The experiment's arm, where one chose the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    arm: Option<String>,
    /// What the models compute on.
    #[schema(examples("cpu"))]
    device: &'static str,
    blanks: Vec<BlankBody>,
    /// The most probable outfits with all blanks filled together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sets: Vec<SetBody>,
    /// The outfit's mix of latent personas, where the method has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    personas: Option<Vec<f32>>,
    /// Mean steps of a universal trunk, where the method has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<f32>,
    warnings: Vec<WarningBody>,
    pub(super) timing: TimingBody,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Blank)]
struct BlankBody {
    /// Its place in the outfit, from 0; one past the end where the outfit had no blank.
    slot: usize,
    /// How many articles the filters let through.
    admissible: usize,
    suggestions: Vec<SuggestionBody>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Suggestion)]
pub(crate) struct SuggestionBody {
    rank: usize,
    article: ArticleBody,
    /// Over the release's whole vocabulary.
    probability: f64,
    /// Of the probability of all that the filters let through.
    share: f64,
    /// How many times as likely as without knowing the customer.
    #[serde(skip_serializing_if = "Option::is_none")]
    lift: Option<f64>,
    /// What moved it most, the strongest first; only what changed its probability by a tenth or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<ReasonBody>>,
}

/// Without this, the suggestion would be so many times less likely.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Reason)]
struct ReasonBody {
    /// A feature of the customer, with its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = free_object)]
    feature: Option<Map<String, Value>>,
    /// Another article of the outfit, by its slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    article: Option<String>,
    /// Above 1 it speaks for the suggestion, below 1 against it.
    factor: f64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutfitSet)]
struct SetBody {
    articles: Vec<PlacedBody>,
    /// Of all these articles together.
    probability: f64,
    log_probability: f64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Placed)]
struct PlacedBody {
    slot: usize,
    article: ArticleBody,
}

/// What the caller should know though there is an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Warning)]
pub(crate) struct WarningBody {
    #[schema(examples("article-not-in-release"))]
    code: &'static str,
    detail: String,
}

/// Where an article stands that was asked for by name.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Standing)]
pub(crate) struct PlacementBody {
    /// Among all that the filters let through.
    rank: usize,
    probability: f64,
    /// Whether the filters let it through.
    admissible: bool,
}

impl Answer {
    pub(super) fn new(live: &LiveRelease, answered: Suggestions, took: Duration) -> Self {
        let Suggestions { asked: Resolved { request, arm, .. }, completion, ticket } = answered;
        let set = |set: completion::OutfitSet| SetBody {
            probability: set.log_probability.exp(),
            log_probability: set.log_probability,
            articles: set
                .articles
                .into_iter()
                .map(|(slot, article)| PlacedBody { slot, article: article.into() })
                .collect(),
        };
        Self {
            completion_id: ticket,
            release: live.name().to_owned(),
            method: request.method.to_string(),
            arm,
            device: live.serving.device().as_str(),
            blanks: completion
                .blanks
                .into_iter()
                .map(|blank| BlankBody::new(blank, &request.outfit))
                .collect(),
            sets: completion.sets.into_iter().map(set).collect(),
            personas: completion.personas,
            steps: completion.steps,
            warnings: completion.warnings.into_iter().map(WarningBody::from).collect(),
            timing: TimingBody::new(completion.cost, took),
        }
    }
}

impl BlankBody {
    fn new(blank: Blank, outfit: &[Option<ArticleId>]) -> Self {
        let suggestions = suggestions(blank.suggestions, outfit);
        Self { slot: blank.slot, admissible: blank.admissible, suggestions }
    }
}

pub(crate) fn suggestions(found: Vec<Suggestion>, outfit: &[Option<ArticleId>]) -> Vec<SuggestionBody> {
    let reason = |reason: completion::Reason| {
        let mut body = ReasonBody { feature: None, slot: None, article: None, factor: reason.factor };
        match reason.cause {
            Cause::Feature { name, value } => {
                let one: Features = [(name, value)].into_iter().collect();
                body.feature = Some(features::write(&one));
            }
            Cause::Article { slot } => {
                body.slot = Some(slot);
                let id = outfit.get(slot).and_then(Option::as_ref);
                body.article = id.map(ToString::to_string);
            }
        }
        body
    };
    let suggestion = |(place, suggestion): (usize, Suggestion)| SuggestionBody {
        rank: place + 1,
        article: suggestion.article.into(),
        probability: suggestion.probability,
        share: suggestion.share,
        lift: suggestion.lift,
        reasons: suggestion.reasons.map(|reasons| reasons.into_iter().map(reason).collect()),
    };
    found.into_iter().enumerate().map(suggestion).collect()
}

impl From<completion::Warning> for WarningBody {
    fn from(warning: completion::Warning) -> Self {
        Self { code: warning.code, detail: warning.detail }
    }
}

impl From<Placement> for PlacementBody {
    fn from(stands: Placement) -> Self {
        Self { rank: stands.rank, probability: stands.probability, admissible: stands.admissible }
    }
}
