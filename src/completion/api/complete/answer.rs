//! The answer of `/complete`.

use std::{sync::Arc, time::Duration};

use atelier_core::domain::{ArticleId, Features};
use atelier_engine::{catalogue::Choice, packed_article::PackedArticle};
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use utoipa::ToSchema;

use crate::{
    catalogue::api::{ArticleBody, PUBLIC_OF_VARIANTS, Public, Selection},
    completion::{
        self, Blank, Cause, MovedBy, Suggestion, Variants, Warning,
        api::timing::TimingBody,
        asking::{Resolved, Suggestions},
    },
    customers::features,
    people::gate::Reader,
    platform::http::{
        AppState, Finding, Problem,
        schema::{FeaturesSchema, VariantSchema},
    },
    releases::routing::Route,
};

/// The answer's parts of a suggestion.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The attributes of an article, all without a list.
    fields: Option<Arc<[String]>>,
    /// Set if anyone may read it: then of variants, too, only these attributes.
    public: Option<Public>,
}

/// The most attributes that `fields` names.
const MOST_FIELDS: usize = 50;

impl Shown {
    pub(crate) fn new(fields: Option<Vec<String>>) -> Result<Self, Problem> {
        let named = fields.as_deref().unwrap_or_default();
        let refuse = |pointer: String, detail| Err(Problem::invalid(vec![Finding::at(pointer, detail)]));
        if named.len() > MOST_FIELDS {
            return refuse("/fields".into(), format!("at most {MOST_FIELDS} fields, found {}", named.len()));
        }
        let twice = named.iter().enumerate().find(|(index, field)| named[..*index].contains(field));
        if let Some((index, field)) = twice {
            return refuse(format!("/fields/{index}"), format!("{field:?} appears twice"));
        }
        Ok(Self { fields: fields.map(Into::into), public: None })
    }

    /// For a reader who asks for the stock of a store, or of all.
    pub(crate) fn to(reader: &Reader, state: &AppState, store: Option<&str>) -> Self {
        match reader {
            Reader::Program => Self { fields: None, public: None },
            Reader::Visitors(_) => Self {
                fields: Some(state.public_attributes()),
                public: Some(Public { store: store.map(Into::into) }),
            },
        }
    }

    pub(crate) fn is_public(&self) -> bool {
        self.public.is_some()
    }

    /// Nothing of what visitors may not read.
    pub(crate) fn private<T: Default>(&self, value: T) -> T {
        if self.is_public() { T::default() } else { value }
    }

    pub(crate) fn has(&self, attribute: &str) -> bool {
        self.fields.as_ref().is_none_or(|fields| fields.iter().any(|field| field == attribute))
    }

    pub(crate) fn article(&self, article: Arc<PackedArticle>) -> ArticleBody {
        ArticleBody::new(article, self.fields.clone(), self.public.clone())
    }

    pub(crate) fn variant(&self, variants: &Variants, article: &PackedArticle) -> VariantBody {
        let mut body = VariantBody::new(variants, article);
        if let (Some(fields), Some(variant)) = (&self.fields, &mut body.variant)
            && body.no_variant.is_none()
        {
            let always: &[&str] = if self.is_public() { &PUBLIC_OF_VARIANTS } else { &["id", "in_stock"] };
            let selection = Selection { object: variant, fields, always };
            *variant = to_raw_value(&selection).expect("a variant is an object");
        }
        body
    }
}

/// Suggestions for each blank of an outfit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Completion)]
pub(crate) struct CompletionBody {
    /// Send this id with feedback.
    completion_id: String,
    /// The release that answered.
    #[schema(examples("demo"))]
    release: String,
    /// The method that answered.
    #[schema(examples("gsu"))]
    method: String,
    /// The experiment's arm, if an experiment chose the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    arm: Option<String>,
    /// Whether the shop's rules did not apply because the customer is in the holdout.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    held_out: bool,
    /// The device that the models run on.
    #[schema(examples("cpu"))]
    device: &'static str,
    /// In the order of their slots.
    blanks: Vec<BlankBody>,
    /// The most probable outfits with all blanks filled together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sets: Vec<SetBody>,
    /// The outfit's mixture of latent personas, if the method has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    personas: Option<Vec<f32>>,
    /// Mean number of steps of a universal trunk, if the method has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<f32>,
    warnings: Vec<Warning>,
    pub(super) timing: TimingBody,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Blank)]
struct BlankBody {
    /// The blank's place in the outfit, from 0; one past the end if the outfit had no blank.
    slot: usize,
    /// Number of articles that the filters admit.
    admissible: usize,
    suggestions: Vec<SuggestionBody>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Suggestion)]
pub(crate) struct SuggestionBody {
    /// From 1, by the share and the shop's rules. Equally likely articles are in the byte order of their ids.
    rank: usize,
    article: ArticleBody,
    #[serde(flatten)]
    variant: VariantBody,
    /// Over all articles that the method knows, if the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    probability: Option<f64>,
    /// Share of the probability of all articles that the filters admit.
    share: f64,
    /// The share, over what it is for an unknown customer, for the same outfit and occasion.
    #[serde(skip_serializing_if = "Option::is_none")]
    lift: Option<f64>,
    /// The features and articles that changed the share most, by a tenth or more. The strongest comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<ReasonBody>>,
    /// The shop's rules that moved it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<MovedBy>,
}

impl ReasonBody {
    pub(crate) fn new(reason: completion::Reason, outfit: &[Option<ArticleId>]) -> Self {
        let mut body =
            Self { feature: None, slot: None, article: None, outfits: None, factor: reason.factor };
        match reason.cause {
            Cause::Feature { name, value } => {
                let feature: Features = [(name, value)].into_iter().collect();
                body.feature = Some(features::write(&feature));
            }
            Cause::Article { slot } => {
                body.slot = Some(slot);
                let id = outfit.get(slot).and_then(Option::as_ref);
                body.article = id.map(ToString::to_string);
            }
            Cause::Outfits { slots, count } => body.outfits = Some(OutfitsBody { count, slots }),
        }
        body
    }
}

/// The variant to put into the basket.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = SuggestedVariant)]
pub(crate) struct VariantBody {
    /// Of an article with variants, the one that fits the customer, one in stock first, with all its fields and whether it is
    /// `in_stock`. Null if no variant fits, or if nothing says which one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<VariantSchema>)]
    variant: Option<Box<RawValue>>,
    /// Why `variant` is null: `none-fits`, or `size-unknown` if the customer's features do not say which one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("size-unknown"))]
    no_variant: Option<&'static str>,
}

impl VariantBody {
    pub(crate) fn new(variants: &Variants, article: &PackedArticle) -> Self {
        match variants.get(&article.id) {
            None => Self::default(),
            Some(Choice::Variant { fields, .. }) => Self { variant: Some(fields.clone()), no_variant: None },
            Some(Choice::NoneFits) => {
                Self { variant: Some(RawValue::NULL.to_owned()), no_variant: Some("none-fits") }
            }
            Some(Choice::Unknown) => {
                Self { variant: Some(RawValue::NULL.to_owned()), no_variant: Some("size-unknown") }
            }
        }
    }
}

/// A feature or article that changed a suggestion's share.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Reason)]
pub(crate) struct ReasonBody {
    /// A feature of the customer and its value, if the schema says that it is about articles of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<FeaturesSchema>)]
    feature: Option<Map<String, Value>>,
    /// The slot of another article of the outfit.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<usize>,
    /// Another article of the outfit, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    article: Option<String>,
    /// Outfits of the training data with the suggestion and some of this outfit's articles.
    #[serde(skip_serializing_if = "Option::is_none")]
    outfits: Option<OutfitsBody>,
    /// The share, over what it is without this: above 1 for, below 1 against the suggestion.
    factor: f64,
}

/// Outfits that the method remembers.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = RememberedOutfits)]
struct OutfitsBody {
    /// Number of outfits.
    count: usize,
    /// The slots whose articles they have.
    slots: Vec<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutfitSet)]
struct SetBody {
    articles: Vec<PlacedBody>,
    /// Of these articles together.
    probability: f64,
    /// The natural logarithm of `probability`.
    log_probability: f64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Placed)]
struct PlacedBody {
    /// Its place in the outfit, from 0.
    slot: usize,
    article: ArticleBody,
    #[serde(flatten)]
    variant: VariantBody,
}

impl CompletionBody {
    pub(super) fn new(route: Route, answer: Suggestions, shown: &Shown, took: Duration) -> Self {
        let Suggestions { question: Resolved { request, held_out, .. }, completion, ticket } = answer;
        let Route { live, method, arm, .. } = route;
        let variants = &completion.variants;
        let set = |set: completion::OutfitSet| SetBody {
            probability: set.log_probability.exp(),
            log_probability: set.log_probability,
            articles: set
                .articles
                .into_iter()
                .map(|(slot, article)| PlacedBody {
                    slot,
                    variant: shown.variant(variants, &article),
                    article: shown.article(article),
                })
                .collect(),
        };
        Self {
            completion_id: ticket,
            release: live.name().to_owned(),
            method: method.to_string(),
            arm: shown.private(arm),
            held_out: shown.private(held_out),
            device: live.serving.device().as_str(),
            blanks: completion
                .blanks
                .into_iter()
                .map(|Blank { slot, admissible, suggestions, .. }| {
                    let suggestions = suggestion_bodies(suggestions, &request.outfit, variants, shown);
                    BlankBody { slot, admissible, suggestions }
                })
                .collect(),
            sets: completion.sets.into_iter().map(set).collect(),
            personas: completion.personas,
            steps: completion.steps,
            warnings: shown.private(completion.warnings),
            timing: TimingBody::new(completion.cost, took),
        }
    }
}

pub(crate) fn suggestion_bodies(
    suggestions: Vec<Suggestion>,
    outfit: &[Option<ArticleId>],
    variants: &Variants,
    shown: &Shown,
) -> Vec<SuggestionBody> {
    let reason = |reason| ReasonBody::new(reason, outfit);
    let suggestion = |(rank, suggestion): (usize, Suggestion)| SuggestionBody {
        rank,
        variant: shown.variant(variants, &suggestion.article),
        article: shown.article(suggestion.article),
        probability: suggestion.probability,
        share: suggestion.share,
        lift: suggestion.lift,
        reasons: suggestion.reasons.map(|reasons| reasons.into_iter().map(reason).collect()),
        rules: shown.private(suggestion.rules),
    };
    (1..).zip(suggestions).map(suggestion).collect()
}
