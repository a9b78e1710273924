//! What a stylist decides: an article taken or turned down, an outfit kept.

use std::time::SystemTime;

use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::{Map, json};

use super::View;
use crate::{
    digest,
    domain::{ArticleId, Outfit},
    store::Origin,
    web::{
        AppState, Finding, Kind, Problem,
        dashboard::{form::Form, visitor::Stylist},
        feedback::{self, EventBody, KindBody},
        outfits,
    },
};

#[derive(Deserialize)]
pub(super) struct Verdict {
    /// The studio's address as it was.
    view: String,
    completion_id: String,
    slot: usize,
    article: String,
    rank: u32,
    verdict: VerdictKind,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum VerdictKind {
    Accepted,
    Rejected,
}

/// Notes it as feedback; then the article lies in the outfit, or is suggested no more.
pub(super) async fn feedback(
    Stylist(_): Stylist,
    State(state): State<AppState>,
    Form(verdict): Form<Verdict>,
) -> Result<Response, Problem> {
    let view = View::parse(&verdict.view)?;
    let article = ArticleId::new(verdict.article.as_str())
        .map_err(|error| Problem::invalid(vec![Finding::parameter("article", error.to_string())]))?;
    if verdict.slot >= view.slots.len() {
        let detail = format!("the outfit has {} slots, found slot {}", view.slots.len(), verdict.slot);
        return Err(Problem::invalid(vec![Finding::parameter("slot", detail)]));
    }
    let (kind, next) = match verdict.verdict {
        VerdictKind::Accepted => (KindBody::Accepted, view.filled(verdict.slot, &article)),
        VerdictKind::Rejected => (KindBody::Rejected, view.with(|view| view.exclude.push(article.clone()))),
    };
    // The same verdict, sent twice, counts once.
    let said = format!("{}/{}/{article}/{kind:?}", verdict.completion_id, verdict.slot);
    let event = EventBody {
        id: format!("studio-{}", digest::of(said.as_bytes())),
        completion_id: verdict.completion_id,
        kind,
        slot: u32::try_from(verdict.slot).expect("an outfit is short; this is a bug"),
        article: verdict.article,
        rank: Some(verdict.rank),
        customer: view.customer.map(|customer| customer.to_string()),
    };
    feedback::take(&state, event, SystemTime::now().into()).await?;
    Ok(Redirect::to(&next.href()).into_response())
}

#[derive(Deserialize)]
pub(super) struct Keep {
    view: String,
}

/// Keeps the outfit among the customer's.
pub(super) async fn save(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Form(Keep { view }): Form<Keep>,
) -> Result<Response, Problem> {
    let view = View::parse(&view)?;
    let refuse = |detail: &str| Err(Problem::new(Kind::Invalid, detail));
    let Some(customer) = view.customer.clone() else {
        return refuse("an outfit is kept for a customer; choose one first");
    };
    let Some(articles) = view.slots.iter().cloned().collect::<Option<Vec<ArticleId>>>() else {
        return refuse("the outfit still has a blank; fill it or remove it, then save");
    };
    let own = super::view::features(&view.own, &state.schema());
    let outfit = Outfit::new(customer.clone(), articles, None, own)
        .map_err(|error| Problem::new(Kind::Invalid, error.to_string()))?;
    outfits::check_articles(&state.store, &outfit).await?;
    let now = SystemTime::now().into();
    let (seq, _) = state.store.outfits().save(&outfit, Origin::Saved, Some(visitor.person.id), now).await?;
    let details = Map::from_iter([("articles".to_owned(), json!(outfit.articles().len()))]);
    let subject = seq.to_string();
    state
        .store
        .audit()
        .append(visitor.actor(), "outfit.save", &subject, Some(&customer), &details, now)
        .await?;
    Ok(Redirect::to(&View { saved: Some(seq), ..view }.href()).into_response())
}
