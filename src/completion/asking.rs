//! Suggests articles or scores an outfit: looks up the customer's profile, asks the models of the request's route, and issues
//! the ticket for feedback.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_core::domain::{ArticleId, CustomerId, Features, Mask, Timestamp};
use atelier_engine::packed_article::PackedArticle;

use super::{
    Blank, Completion, Offered, OutfitScore, Request, Stored, Warning, complete,
    prepare::known,
    sample::{Sample, Sampled},
    score,
    tickets::{Suggested, SuggestedFor, Tickets},
};
use crate::{
    completion::profiles::Profiles,
    platform::{
        fault::{Fault, Field, ServiceError},
        http::AppState,
    },
    releases::{LiveRelease, followers::Follower, routing::Route},
};

/// When a question was asked, by the clock and for measuring, and when its answer comes too late.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub now: Timestamp,
    pub begun: Instant,
    pub deadline: Instant,
}

/// A request that has its profile.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub request: Request,
    /// Whether the shop's rules do not apply because the customer is in the holdout.
    pub held_out: bool,
    /// Set if the profile may be out of date.
    pub stale: Option<Warning>,
}

#[derive(Debug)]
pub struct Suggestions {
    pub question: Resolved,
    pub completion: Completion,
    pub ticket: String,
}

/// Hears how the suggestions of a request turned out.
pub trait Observer: fmt::Debug + Send + Sync {
    /// `answer` is None if there was none although the question was fine.
    fn answered(&self, route: &Route, took: Duration, answer: Option<&Completion>);
}

/// The observers. `app` lists them.
#[derive(Debug)]
pub struct Observers(pub Vec<Arc<dyn Observer>>);

impl Follower for Observers {}

/// Completes an outfit, and issues the ticket for feedback.
pub async fn suggest(
    route: &Route,
    profiles: &Profiles,
    tickets: &Tickets,
    request: Request,
    times: Times,
) -> Result<Suggestions, ServiceError> {
    let live = &*route.live;
    let sample = live.follower::<Sample>();
    let turn = sample.takes(times.now).filter(|_| can_be_kept(live, &request));
    let sampled = turn.map(|turn| (Sampled::new(route, &request), turn));
    let question = resolve(route, profiles, request, times.begun).await?;
    let completion = complete(live.served(), &question.request, times.deadline).await;
    if !matches!(completion, Err(ServiceError::Faults(_))) {
        let (took, answer) = (times.begun.elapsed(), completion.as_ref().ok());
        live.follower::<Observers>().0.iter().for_each(|one| one.answered(route, took, answer));
    }
    let mut completion = completion?;
    completion.warnings.extend(question.stale.clone());
    if let Some((sampled, turn)) = sampled {
        sample.add(sampled, turn, times.now);
    }
    let ticket = issue_ticket(route, tickets, &question, &completion, times.now);
    Ok(Suggestions { question, completion, ticket })
}

/// Whether the sample may have it: it has no features of a person, which could not be erased by the customer's id.
fn can_be_kept(live: &LiveRelease, request: &Request) -> bool {
    let features = live.serving.release().schema().features();
    let is_of_outfit = |name: &str| features.iter().any(|feature| feature.of_outfit && feature.name == name);
    request.rules.is_some()
        && request.given.iter().flat_map(Features::iter).all(|(name, _)| is_of_outfit(name))
}

/// Completes an outfit that no feedback is given on, and that counts for no experiment.
pub async fn complete_outfit(
    route: &Route,
    profiles: &Profiles,
    request: Request,
    times: Times,
) -> Result<Completion, ServiceError> {
    let question = resolve(route, profiles, request, times.begun).await?;
    let mut completion = complete(route.live.served(), &question.request, times.deadline).await?;
    completion.warnings.extend(question.stale);
    Ok(completion)
}

/// The articles that a person may choose for the outfit's first blank, although the method cannot rank them, and how many
/// pass the filters with them.
pub async fn unranked(
    route: &Route,
    profiles: &Profiles,
    request: Request,
    times: Times,
) -> Result<(Vec<Arc<PackedArticle>>, usize), ServiceError> {
    let question = resolve(route, profiles, request, times.begun).await?;
    let served = route.live.served();
    let Offered { blanks, .. } = Offered::new(served, &question.request)?;
    let choosable = blanks.into_iter().next().map(|blank| blank.admissible);
    let choosable = choosable.ok_or(ServiceError::Faults(Vec::new()))?;
    let mut unknown = Mask::clone(&choosable);
    unknown.subtract(known(served, question.request.method));
    let articles = unknown.iter().filter_map(|position| served.catalogue.article(position)).cloned();
    Ok((articles.collect(), choosable.count()))
}

pub async fn score_outfit(
    route: &Route,
    profiles: &Profiles,
    request: Request,
    times: Times,
) -> Result<OutfitScore, ServiceError> {
    let question = resolve(route, profiles, request, times.begun).await?;
    let mut scored = score(route.live.served(), &question.request, times.deadline).await?;
    scored.warnings.extend(question.stale);
    Ok(scored)
}

/// Reads the profile, unless the caller did, and decides whether the shop's rules apply.
pub(crate) async fn resolve(
    route: &Route,
    profiles: &Profiles,
    mut request: Request,
    now: Instant,
) -> Result<Resolved, ServiceError> {
    let (holdout, mut stale) = (&route.live.holdout, None);
    let customer = route.customer.as_ref();
    if let (None, Some(id)) = (&request.stored, customer) {
        (request.stored, stale) = stored_features(profiles, id, None, &request, now).await?;
    }
    // Without some rules, the others' effects are not those that the holdout measures.
    let is_measured = customer.is_some() && holdout.is_active() && request.without_rules.is_empty();
    request.counted = request.rules.filter(|_| is_measured);
    let held_out = request.counted.is_some() && customer.is_some_and(|customer| holdout.has(customer));
    request.rules = request.rules.filter(|_| !held_out);
    Ok(Resolved { request, held_out, stale })
}

/// A stored customer's features, with a warning if the database could not confirm them, or if the features that come
/// with the request are all that is known. They may be none: a request that has them, even so, wants an answer. `index` is
/// the customer's among several.
pub async fn stored_features(
    profiles: &Profiles,
    id: &CustomerId,
    index: Option<usize>,
    request: &Request,
    now: Instant,
) -> Result<(Option<Arc<Stored>>, Option<Warning>), ServiceError> {
    let Some(profile) = profiles.get(id, now).await? else {
        if request.given.is_some() {
            let detail = format!("there is no customer {id}; only the request's features describe them");
            return Ok((None, Some(Warning::new("unknown-customer", detail))));
        }
        let detail = format!(
            "there is no customer {id}; add one with PUT /customers/{{id}}, or describe them in `features`"
        );
        let field = index.map_or("customer".into(), |index| Field::from("customers").item(&index));
        return Err(Fault::new(field, detail).into());
    };
    let warning = profile.stale.map(|age| {
        let age = age.as_secs();
        let detail = format!("the profile of {id} is {age} seconds old: the database cannot be reached");
        Warning::new("profile-stale", detail)
    });
    Ok((Some(profile.stored), warning))
}

fn issue_ticket(
    route: &Route,
    tickets: &Tickets,
    question: &Resolved,
    completion: &Completion,
    now: Timestamp,
) -> String {
    let in_sets = |slot: usize| {
        let articles = completion.sets.iter().flat_map(|set| &set.articles);
        articles.filter(move |(filled, _)| *filled == slot).map(|(_, article)| ArticleId::clone(&article.id))
    };
    let catalogue = &route.live.catalogue;
    let id = |position: &Option<u32>| Some(catalogue.any_article((*position)?)?.id.clone());
    let suggested = |blank: &Blank| SuggestedFor {
        slot: blank.slot,
        articles: blank.suggestions.iter().map(|suggestion| suggestion.article.id.clone()).collect(),
        in_sets: in_sets(blank.slot).collect(),
        rules: blank.counted.clone(),
    };
    tickets.issue(Suggested {
        release: route.live.name().to_owned(),
        method: route.method.to_string(),
        arm: route.arm.clone(),
        at: now,
        customer: route.customer.clone(),
        is_shared: false,
        held_out: question.held_out,
        outfit: completion.outfit.iter().take(question.request.outfit.len()).map(id).collect(),
        blanks: completion.blanks.iter().map(suggested).collect(),
    })
}

impl AppState {
    pub(crate) fn times(&self) -> Times {
        let begun = Instant::now();
        Times { now: self.now(), begun, deadline: begun + self.limits.deadline() }
    }
}
