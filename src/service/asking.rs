//! Asking for suggestions or a score: looks up the customer's profile and the method, then completes the outfit and
//! issues the ticket that feedback comes back with.

use std::time::Instant;

use super::{
    completion::{
        self, Blank, Completion, OutfitScore, REMEMBERED, Request, Secret, Ticket, Warning, complete, score,
    },
    fault::{Fault, Field, ServiceError},
    live_release::LiveRelease,
    profiles::Profiles,
    routing::Choice,
};
use crate::domain::{CustomerId, Features, Method, Timestamp};

/// A question in the caller's terms.
#[derive(Debug, Clone)]
pub struct Question {
    pub customer: Option<CustomerId>,
    /// The routing decides if the caller names no method.
    pub method: Option<Method>,
    /// `stored` and `method` are filled in from the profile and the routing.
    pub request: Request,
}

/// A question that has its profile and its method.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub request: Request,
    /// The experiment's arm, if one chose the method.
    pub arm: Option<String>,
    /// Set if the profile may be out of date.
    pub stale: Option<Warning>,
}

/// Suggestions, and the ticket for feedback on them.
#[derive(Debug)]
pub struct Suggestions {
    pub asked: Resolved,
    pub completion: Completion,
    pub ticket: String,
}

/// Completes an outfit.
pub async fn suggest(
    live: &LiveRelease,
    profiles: &Profiles,
    secret: &Secret,
    question: Question,
    (now, begun, deadline): (Timestamp, Instant, Instant),
) -> Result<Suggestions, ServiceError> {
    let asked = resolve(live, profiles, question, begun).await?;
    let mut completion = complete(live.served(), &asked.request, deadline).await?;
    completion.warnings.extend(asked.stale.clone());
    let ticket = ticket(live, secret, &asked.request, asked.arm.as_deref(), &completion, now);
    Ok(Suggestions { asked, completion, ticket })
}

/// Scores an outfit.
pub async fn score_outfit(
    live: &LiveRelease,
    profiles: &Profiles,
    question: Question,
    (begun, deadline): (Instant, Instant),
) -> Result<(Resolved, OutfitScore), ServiceError> {
    let asked = resolve(live, profiles, question, begun).await?;
    let mut scored = score(live.served(), &asked.request, deadline).await?;
    scored.warnings.extend(asked.stale.clone());
    Ok((asked, scored))
}

async fn resolve(
    live: &LiveRelease,
    profiles: &Profiles,
    question: Question,
    now: Instant,
) -> Result<Resolved, ServiceError> {
    let Question { customer, method, request } = question;
    let (stored, stale) = match &customer {
        Some(id) => stored_features(profiles, id, Field::Customer, now).await?,
        None => (Features::default(), None),
    };
    let Choice { method, arm } = live.choose_unless(method, customer.as_ref());
    Ok(Resolved { request: Request { stored, method, ..request }, arm, stale })
}

/// A stored customer's features, with a warning if the database could not confirm them.
pub async fn stored_features(
    profiles: &Profiles,
    id: &CustomerId,
    field: Field,
    now: Instant,
) -> Result<(Features, Option<Warning>), ServiceError> {
    let Some(profile) = profiles.get(id, now).await? else {
        let detail = format!(
            "there is no customer {id}; add one with PUT /customers/{{id}}, or describe them in `features`"
        );
        return Err(Fault::new(field, detail).into());
    };
    let warning = profile.stale.map(|age| Warning {
        code: "profile-stale",
        detail: format!(
            "the profile of {id} is {} seconds old: the database cannot be reached",
            age.as_secs()
        ),
    });
    Ok((profile.features, warning))
}

/// The signed id of a completion.
pub fn ticket(
    live: &LiveRelease,
    secret: &Secret,
    request: &Request,
    arm: Option<&str>,
    completion: &Completion,
    now: Timestamp,
) -> String {
    let remembered = |blank: &Blank| {
        let first = blank.suggestions.iter().take(REMEMBERED);
        (blank.slot, first.map(|suggestion| suggestion.index).collect())
    };
    let ticket = Ticket {
        release: live.name().to_owned(),
        vocabulary: Some(live.serving.release().vocabulary_mark()),
        method: request.method,
        arm: arm.map(ToOwned::to_owned),
        at: now.millis(),
        slots: completion.slots.clone(),
        blanks: completion.blanks.iter().map(remembered).collect(),
    };
    ticket.seal(secret)
}

impl From<completion::CompletionError> for ServiceError {
    fn from(error: completion::CompletionError) -> Self {
        match error {
            completion::CompletionError::Faults(faults) => Self::Faults(faults),
            completion::CompletionError::Ask(error) => Self::Ask(error),
        }
    }
}
