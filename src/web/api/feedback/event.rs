//! One event of feedback, and how it is held against what was suggested.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    domain::{ArticleId, CustomerId},
    service::feedback::{self, Report},
    store::{FeedbackEvent, FeedbackKind},
    util::calendar,
    web::http::{
        Finding, Problem,
        extract::{whole, whole_option},
        schema::id_text,
    },
};

/// Something that happened to one suggested article.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FeedbackEvent)]
pub(crate) struct EventBody {
    /// The caller's own name for the event, another one for each: sent again, the event counts once.
    #[schema(examples("order-17/a-12"), min_length = 1, max_length = 256)]
    pub(crate) id: String,
    /// As the completion answered it.
    pub(crate) completion_id: String,
    pub(crate) kind: KindBody,
    /// The blank's place in the outfit, from 0.
    #[schema(examples(1))]
    #[serde(deserialize_with = "whole")]
    pub(crate) slot: u32,
    #[schema(schema_with = id_text)]
    pub(crate) article: String,
    /// The suggestion's rank, from 1. Needed where the service no longer knows it: beyond the first 20, and
    /// when another release is served by now.
    #[schema(examples(1), minimum = 1)]
    #[serde(default, deserialize_with = "whole_option")]
    pub(crate) rank: Option<u32>,
    /// Who did it, if the shop wants feedback to be found and erased with the customer.
    #[schema(examples("c-17"))]
    pub(crate) customer: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = FeedbackKind)]
pub(crate) enum KindBody {
    Shown,
    Accepted,
    Rejected,
    Bought,
}

impl From<KindBody> for FeedbackKind {
    fn from(kind: KindBody) -> Self {
        match kind {
            KindBody::Shown => Self::Shown,
            KindBody::Accepted => Self::Accepted,
            KindBody::Rejected => Self::Rejected,
            KindBody::Bought => Self::Bought,
        }
    }
}

impl EventBody {
    pub(super) fn read(self) -> Result<Report, Problem> {
        let mut findings = Vec::new();
        let article = ArticleId::new(&self.article)
            .map_err(|error| findings.push(Finding::at("/article", error.to_string())));
        let customer = self.customer.as_deref().map(CustomerId::new).transpose();
        let customer = customer.map_err(|error| findings.push(Finding::at("/customer", error.to_string())));
        findings.extend(feedback::check_id(&self.id).err().map(Finding::from));
        let (Ok(article), Ok(customer), true) = (article, customer, findings.is_empty()) else {
            return Err(Problem::invalid(findings));
        };
        Ok(Report {
            id: self.id,
            completion_id: self.completion_id,
            kind: self.kind.into(),
            slot: self.slot,
            article,
            rank: self.rank,
            customer,
        })
    }
}

/// An event as it is stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedbackStored {
    #[schema(examples("bought"))]
    kind: &'static str,
    completion_id: String,
    slot: u32,
    article: String,
    rank: u32,
    release: String,
    method: String,
    arm: Option<String>,
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
}

impl From<FeedbackEvent> for FeedbackStored {
    fn from(event: FeedbackEvent) -> Self {
        let FeedbackEvent { kind, completion_id, slot, article, rank, release, method, arm, at, .. } = event;
        let (kind, article) = (kind.as_str(), article.to_string());
        let at = calendar::moment(at.millis(), 1000, true);
        Self { kind, completion_id, slot, article, rank, release, method, arm, at }
    }
}
