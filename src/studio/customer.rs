//! A customer's page: sizes, notes, outfits, and what they bought and refused.

use askama::Template;
use atelier_core::domain::{ArticleId, CustomerId, Timestamp};
use axum::{
    extract::State,
    response::{Html, IntoResponse, Redirect, Response},
};
use futures_util::TryStreamExt;
use serde::Deserialize;

use super::{
    Content, Named, StudioPage, View,
    saved::{self, OutfitCard, SavedQuery},
    view::Refusal,
    what_if::{self, Purpose},
};
use crate::{
    catalogue::page::article_view::{self, ArticleView},
    customers::CustomerNote,
    people::page::visitor::{Stylist, Visitor},
    platform::{
        db::Note,
        http::{AppState, Finding, Kind, Problem},
        page::{
            Address, Form, Pager, Refused,
            wording::{self, ProfileWord},
        },
    },
};

const OUTFITS: u32 = 12;
/// The latest purchases shown, and refusals on a page.
const ARTICLES: u32 = 12;

/// A customer's record without the profile.
pub(super) struct Known {
    /// Gender and sizes: the features by which articles fit.
    pub(super) sizes: Vec<ProfileWord>,
    /// The latest first, each with its day.
    pub(super) notes: Vec<(CustomerNote, String)>,
    /// A note that cannot be stored as it is, which the form keeps, and why.
    pub(super) refused_note: Option<(String, String)>,
    pub(super) new_outfit: String,
    /// The purposes of a new outfit.
    pub(super) purposes: Vec<Purpose>,
    pub(super) outfits: Vec<OutfitCard>,
    /// Where there may be more.
    pub(super) all_outfits: String,
    pub(super) bought: Vec<(ArticleView, String)>,
    /// Each with the form's value to take the refusal back.
    pub(super) refused: Vec<(ArticleView, String, String)>,
    pub(super) refused_pager: Pager,
}

pub(super) async fn known(
    state: &AppState,
    Named { view, schema, customer, refusals, .. }: &Named,
) -> Result<Known, Problem> {
    let customer = customer.as_ref().expect("the customer is chosen");
    let id = &customer.id;
    let store = &state.store;
    let outfits = store.saved_outfits().latest_for(id, OUTFITS).await?;
    let notes: Vec<CustomerNote> = store.notes().for_customer(id).try_collect().await?;
    let dated_note = |note: CustomerNote| {
        let day = state.notation.day(note.at.millis());
        (note, day)
    };
    let bought = store.events().latest_purchases(id, ARTICLES).await?;
    let size = ARTICLES as usize;
    let refused_pager = Pager::new(view.page, refusals.len(), size, false, &state.notation, |page| {
        format!("{}#refused-title", view.with(|view| view.page = Some(page)).href())
    });
    let refused: Vec<_> = refusals.iter().skip(refused_pager.first()).take(size).cloned().collect();
    let undone: Vec<String> =
        refused.iter().map(|(article, _)| Refusal::of(article.clone()).to_string()).collect();
    let refused = dated(state, refused).await?.into_iter().zip(undone);
    let new_outfit = view.new_outfit(state.now());
    Ok(Known {
        sizes: wording::sizes(&customer.features, schema),
        notes: notes.into_iter().rev().map(dated_note).collect(),
        refused_note: None,
        purposes: what_if::purposes(&new_outfit, schema),
        new_outfit: new_outfit.href(),
        outfits: saved::cards(state, outfits, schema).await?,
        all_outfits: SavedQuery::for_customer(id).href(1),
        bought: dated(state, bought).await?,
        refused: refused.map(|((article, day), undone)| (article, day, undone)).collect(),
        refused_pager,
    })
}

async fn dated(
    state: &AppState,
    events: Vec<(ArticleId, Timestamp)>,
) -> Result<Vec<(ArticleView, String)>, Problem> {
    let (ids, days): (Vec<ArticleId>, Vec<Timestamp>) = events.into_iter().unzip();
    let days = days.into_iter().map(|at| state.notation.day(at.millis()));
    Ok(article_view::load(state, &ids).await?.into_iter().zip(days).collect())
}

#[derive(Deserialize)]
pub(super) struct NoteForm {
    customer: String,
    #[serde(default)]
    note: String,
    /// A note to delete instead.
    deleted: Option<i64>,
}

pub(super) async fn note(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Form(NoteForm { customer, note, deleted }): Form<NoteForm>,
) -> Result<Response, Problem> {
    let customer = CustomerId::new(customer)
        .map_err(|error| Problem::invalid(vec![Finding::parameter("customer", error.to_string())]))?;
    let view = View { customer: Some(customer.clone()), ..View::default() };
    let Err(refused) = change_notes(&state, &visitor, &customer, &note, deleted).await else {
        return Ok(Redirect::to(&format!("{}#notes-title", view.href())).into_response());
    };
    let (status, reason) = refused.for_form()?;
    let mut page = StudioPage::new(&state, &visitor, view).await?;
    if let Content::Customer(known) = &mut page.content {
        known.refused_note = Some((note, reason));
    }
    Ok((status, Html(page.render()?)).into_response())
}

async fn change_notes(
    state: &AppState,
    visitor: &Visitor,
    customer: &CustomerId,
    note: &str,
    deleted: Option<i64>,
) -> Result<(), Refused> {
    let store = state.store.by(visitor.author());
    if let Some(id) = deleted {
        let is_deleted = store.notes().delete(id, state.now()).await?;
        let gone = || Problem::new(Kind::NotFound, "the note is already gone").into();
        return is_deleted.then_some(()).ok_or_else(gone);
    }
    let note = Note::new(note).map_err(Refused::invalid)?;
    if note.as_str().is_empty() {
        return Err(Refused::invalid("write something, then add it"));
    }
    Ok(store.notes().add(customer, &note, visitor.person.id, state.now()).await?)
}
