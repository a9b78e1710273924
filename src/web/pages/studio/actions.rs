//! What a stylist decides: an article taken or turned down, an outfit kept.

use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::View;
use crate::{
    domain::{ArticleId, Outfit},
    service::{
        feedback::{Report, record},
        outfits,
    },
    store::FeedbackKind,
    util::digest,
    web::{
        http::{AppState, Finding, Kind, Problem},
        pages::{form::Form, visitor::Stylist},
    },
};

#[derive(Deserialize)]
pub(super) struct Judgement {
    /// The studio's address as it was.
    view: String,
    completion_id: String,
    /// `accepted/1/3/a-12`: the verdict, the slot, the suggestion's rank and the article.
    verdict: String,
}

/// Notes it as feedback; then the article lies in the outfit, or is suggested no more.
pub(super) async fn feedback(
    Stylist(_): Stylist,
    State(state): State<AppState>,
    Form(Judgement { view, completion_id, verdict }): Form<Judgement>,
) -> Result<Response, Problem> {
    let view = View::parse(&view)?;
    let (accepted, slot, rank, article) = read(&verdict, &view)
        .map_err(|detail| Problem::invalid(vec![Finding::parameter("verdict", detail)]))?;
    let (kind, next) = if accepted {
        (FeedbackKind::Accepted, view.filled(slot, &article))
    } else {
        (FeedbackKind::Rejected, view.with(|view| view.exclude.push(article.clone())))
    };
    // An article was shown if it was judged: acceptance is counted among the shown.
    for kind in [FeedbackKind::Shown, kind] {
        // The same verdict, sent twice, counts once.
        let event = format!("{completion_id}/{slot}/{article}/{kind:?}");
        let report = Report {
            id: format!("studio-{}", digest::of(event.as_bytes())),
            completion_id: completion_id.clone(),
            kind,
            slot: u32::try_from(slot).expect("an outfit is short; this is a bug"),
            article: article.clone(),
            rank: Some(rank),
            customer: view.customer.clone(),
        };
        record(&state.store, &state.releases, &state.tickets, report, state.now()).await?;
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
    let (seq, _) = outfits::save(&state.store, visitor.actor(), &outfit, state.now()).await?;
    Ok(Redirect::to(&View { saved: Some(seq), ..view }.href()).into_response())
}
