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
    domain::{ArticleId, Outfit},
    store::{Origin, Put},
    util::digest,
    web::{
        api::{
            feedback::{self, EventBody, KindBody},
            outfits,
        },
        http::{AppState, Finding, Kind, Problem},
        pages::{form::Form, visitor::Stylist},
    },
};

#[derive(Deserialize)]
pub(super) struct Verdict {
    /// The studio's address as it was.
    view: String,
    completion_id: String,
    /// `accepted/1/3/a-12`: the verdict, the slot, the suggestion's rank and the article.
    #[serde(rename = "verdict")]
    said: String,
}

/// Notes it as feedback; then the article lies in the outfit, or is suggested no more.
pub(super) async fn feedback(
    Stylist(_): Stylist,
    State(state): State<AppState>,
    Form(verdict): Form<Verdict>,
) -> Result<Response, Problem> {
    let view = View::parse(&verdict.view)?;
    let (accepted, slot, rank, article) = read(&verdict.said, &view)
        .map_err(|detail| Problem::invalid(vec![Finding::parameter("verdict", detail)]))?;
    let (kind, next) = if accepted {
        (KindBody::Accepted, view.filled(slot, &article))
    } else {
        (KindBody::Rejected, view.with(|view| view.exclude.push(article.clone())))
    };
    // What is judged was shown: acceptance is counted of what was shown.
    for kind in [KindBody::Shown, kind] {
        // The same verdict, sent twice, counts once.
        let said = format!("{}/{slot}/{article}/{kind:?}", verdict.completion_id);
        let event = EventBody {
            id: format!("studio-{}", digest::sha256(said.as_bytes())),
            completion_id: verdict.completion_id.clone(),
            kind,
            slot: u32::try_from(slot).expect("an outfit is short; this is a bug"),
            article: article.to_string(),
            rank: Some(rank),
            customer: view.customer.as_ref().map(ToString::to_string),
        };
        feedback::take(&state, event, SystemTime::now().into()).await?;
    }
    Ok(Redirect::to(&next.href()).into_response())
}

/// Whether it was accepted, its slot and rank, and the article.
fn read(verdict: &str, view: &View) -> Result<(bool, usize, u32, ArticleId), String> {
    let parts: Vec<&str> = verdict.splitn(4, '/').collect();
    let [kind, slot, rank, article] = parts[..] else {
        return Err(format!("a verdict is kind/slot/rank/article, found {verdict:?}"));
    };
    let accepted = match kind {
        "accepted" => true,
        "rejected" => false,
        other => return Err(format!("a verdict is accepted or rejected, not {other:?}")),
    };
    let slot = slot.parse().ok().filter(|slot| *slot < view.slots.len());
    let slot = slot.ok_or_else(|| format!("the outfit has {} slots", view.slots.len()))?;
    let rank = rank.parse().map_err(|_| format!("a rank is a whole number, found {rank:?}"))?;
    Ok((accepted, slot, rank, ArticleId::new(article).map_err(|error| error.to_string())?))
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
    let (seq, put) = state.store.outfits().save(&outfit, Origin::Saved, Some(visitor.person.id), now).await?;
    if put == Put::Added {
        let details = Map::from_iter([("articles".to_owned(), json!(outfit.articles().len()))]);
        let subject = seq.to_string();
        state
            .store
            .audit()
            .append(visitor.actor(), "outfit.save", &subject, Some(&customer), &details, now)
            .await?;
    }
    Ok(Redirect::to(&View { saved: Some(seq), ..view }.href()).into_response())
}
