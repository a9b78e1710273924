//! `/studio/outfits`: the saved outfits of all customers, and saving one.

use std::collections::BTreeMap;

use askama::Template;
use atelier_core::domain::{Article, ArticleId, CustomerId, OpenOutfit, Schema, Slot, Slots, Timestamp};
use axum::{
    extract::State,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::{
    Content, StudioPage, outfit,
    view::{Edited, View},
};
use crate::{
    catalogue::page::article_view::{self, ArticleView},
    customers::page::{CustomerView, CustomerViews},
    outcomes::{FeedbackKind, feedback::judge},
    outfits::{self, Origin, SavedFilter, SavedOutfit},
    people::page::visitor::{Stylist, Visitor},
    platform::{
        db::{Conflict, Put, StoreError},
        fault::ServiceError,
        http::{AppState, Problem},
        page::{Address, Form, Page, PageQuery, Pager, Refused, Shell, address, form, wording},
    },
};

const ON_A_PAGE: u32 = 24;

#[derive(Template)]
#[template(path = "studio/saved.html")]
struct SavedPage {
    shell: Shell,
    query: SavedQuery,
    customer: Option<CustomerId>,
    /// The label for people.
    label: String,
    /// Whether there is no such customer.
    is_unknown: bool,
    outfits: Vec<OutfitCard>,
    pager: Pager,
    /// The outfit that was just deleted.
    deleted: Option<i64>,
}

#[derive(Clone, Default, Deserialize, Serialize)]
pub(super) struct SavedQuery {
    find: Option<String>,
    /// The only customer.
    customer: Option<String>,
    drafts: Option<String>,
    /// Only the visitor's own.
    mine: Option<String>,
    /// Only those that were deleted and can be brought back.
    bin: Option<String>,
    /// Only those whose customers answered.
    replied: Option<String>,
    page: Option<String>,
    deleted: Option<String>,
}

impl SavedQuery {
    pub(super) fn for_customer(customer: &CustomerId) -> Self {
        Self { customer: Some(customer.to_string()), ..Self::default() }
    }

    pub(super) fn href(&self, page: usize) -> String {
        let page = (page > 1).then(|| page.to_string());
        form::address("/studio/outfits", &Self { page, deleted: None, ..self.clone() })
    }

    fn find(&self) -> &str {
        self.find.as_deref().unwrap_or_default()
    }
}

pub(super) async fn page(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<SavedQuery>,
) -> Result<Html<String>, Problem> {
    let customer = query.customer.as_deref().and_then(|id| CustomerId::new(id).ok());
    let filter = SavedFilter {
        search: query.find(),
        customer: customer.as_ref(),
        only_drafts: query.drafts.is_some(),
        only_deleted: query.bin.is_some(),
        only_replied: query.replied.is_some(),
        by: query.mine.is_some().then_some(visitor.person.id),
    };
    let saved = state.store.saved_outfits();
    let (_, count) = saved.list(&filter, 0, 0).await?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // A link that says something else shows the first page.
    let page = query.page.as_ref().and_then(|page| page.parse().ok());
    let pager = Pager::new(page, count, ON_A_PAGE as usize, false, &state.notation, |page| query.href(page));
    let skip = u32::try_from(pager.first()).unwrap_or(u32::MAX);
    let (found, _) = saved.list(&filter, skip, ON_A_PAGE).await?;
    let deleted = match query.deleted.as_ref().and_then(|seq| seq.parse().ok()) {
        Some(seq) => saved.get(seq).await?.filter(|outfit| outfit.deleted_at.is_some()),
        None => None,
    };
    let customers = CustomerViews::read(&state, &customer, &state.schema()).await?;
    let label = customer.as_ref().and_then(|id| customers.get(id)).map(CustomerView::label);
    let is_unknown = customer.is_some() && found.is_empty() && label.is_none();
    let page = SavedPage {
        shell: visitor.shell(Page::Studio),
        outfits: cards(&state, found, &state.schema()).await?,
        query,
        label: label.or_else(|| customer.as_ref().map(ToString::to_string)).unwrap_or_default(),
        customer,
        is_unknown,
        pager,
        deleted: deleted.map(|outfit| outfit.seq),
    };
    Ok(Html(page.render()?))
}

pub(super) struct OutfitCard {
    pub(super) saved: SavedOutfit,
    /// The board with it.
    pub(super) board: String,
    /// None for a blank.
    pub(super) articles: Vec<Option<ArticleView>>,
    /// Empty of a draft that is not for anybody yet.
    pub(super) customer: String,
    /// Its own features, such as the occasion, who saved it, and when.
    pub(super) about: String,
    /// Until when the customer's link is open.
    pub(super) link: Option<String>,
    /// When it was deleted.
    pub(super) deleted: Option<String>,
}

pub(super) async fn cards(
    state: &AppState,
    outfits: Vec<SavedOutfit>,
    schema: &Schema,
) -> Result<Vec<OutfitCard>, Problem> {
    let ids: Vec<ArticleId> =
        outfits.iter().flat_map(|saved| saved.outfit.slots.articles()).cloned().collect();
    let found = state.store.articles().get_many(&ids).await?;
    let kept: Vec<Article> = outfits.iter().flat_map(|saved| &saved.pieces).cloned().collect();
    let views = article_view::views(&ids, &found, &state.notation);
    let mut articles = outfit::as_kept(views, &found, &kept).into_iter();
    let customers = outfits.iter().filter_map(|saved| saved.outfit.customer.as_ref());
    let customers = CustomerViews::read(state, customers, schema).await?;
    let card = |saved: SavedOutfit| {
        let slots = saved.outfit.slots.as_slice().iter();
        let own = wording::line(&saved.outfit.features, schema);
        let day = state.notation.day(saved.changed_at.millis());
        let about = [own, saved.author.clone().unwrap_or_default(), day];
        let date = |at: Timestamp| state.notation.day(at.millis());
        OutfitCard {
            link: saved.link_until.filter(|until| *until > state.now()).map(date),
            deleted: saved.deleted_at.map(date),
            board: board(&saved, state.now()),
            articles: slots.map(|slot| slot.article().and_then(|_| articles.next())).collect(),
            customer: saved.outfit.customer.as_ref().map(|id| customers.label(id)).unwrap_or_default(),
            about: about.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" · "),
            saved,
        }
    };
    Ok(outfits.into_iter().map(card).collect())
}

pub(super) fn title(saved: &SavedOutfit) -> String {
    saved.name.as_ref().map_or_else(|| format!("Outfit {}", saved.seq), ToString::to_string)
}

/// The board with the outfit, to change it in place; an imported one to begin another with it.
pub(super) fn board(saved: &SavedOutfit, now: Timestamp) -> String {
    let outfit = &saved.outfit;
    let edited = Edited { seq: saved.seq, revision: saved.revision };
    let is_new = saved.origin == Origin::Imported;
    let view = View {
        customer: outfit.customer.clone(),
        slots: outfit.slots.as_slice().iter().map(|slot| slot.article().cloned()).collect(),
        own: address::values(&outfit.features),
        suggested: saved.suggested.clone(),
        edited: (!is_new).then_some(edited),
        begun: is_new.then_some(now.millis()),
        ..View::default()
    };
    view.href()
}

#[derive(Deserialize)]
pub(super) struct SaveForm {
    view: String,
    /// Whether to save another outfit instead of changing the one that is edited.
    another: Option<String>,
    /// Whether to make a link for the customer, too.
    share: Option<String>,
}

/// Why an outfit was not saved; the board says so.
pub(super) struct Unsaved {
    pub(super) reason: String,
    /// The outfit that is the same.
    pub(super) same: Option<i64>,
}

/// Saves the outfit or draft, which may have no customer yet. What was suggested is accepted once the outfit is complete.
pub(super) async fn save(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Form(SaveForm { view, another, share }): Form<SaveForm>,
) -> Result<Response, Problem> {
    let view = View::parse(&view)?;
    let schema = state.schema();
    let outfit = match read(&view, &schema) {
        Ok(outfit) => outfit,
        Err(reason) => return refuse(&state, &visitor, view, Refused::invalid(reason), None).await,
    };
    let (store, author, now) = (&state.store, visitor.author(), state.now());
    let size = schema.outfit_size();
    let edited = view.edited.filter(|_| another.is_none());
    let saved = match edited {
        Some(Edited { seq, revision }) => {
            outfits::replace(&store.by(author), (seq, revision), size, outfit.clone(), now)
                .await
                .map(|()| (seq, true))
        }
        // An outfit that was there may be a colleague's.
        None => outfits::save(store, author, size, &outfit, now)
            .await
            .map(|(seq, put)| (seq, put != Put::Unchanged)),
    };
    let (seq, is_own) = match saved {
        Ok((seq, _)) if another.is_some() && view.edited.is_some_and(|edited| edited.seq == seq) => {
            let refused = Refused::invalid("this is still the same outfit; change it, then save another");
            return refuse(&state, &visitor, view, refused, None).await;
        }
        Ok(saved) => saved,
        // The board says so, and offers to save another.
        Err(ServiceError::Store(StoreError::Conflict(Conflict::OutfitChanged) | StoreError::NotFound(_))) => {
            return Ok(Redirect::to(&view.href()).into_response());
        }
        Err(error) => {
            let same = match error {
                ServiceError::Store(StoreError::Conflict(_)) => {
                    store.saved_outfits().same_as(&outfit).await?
                }
                _ => None,
            };
            return refuse(&state, &visitor, view, error.into(), same).await;
        }
    };
    if is_own {
        store.saved_outfits().keep_suggested(seq, &view.suggested).await?;
    }
    if !size.is_draft(&outfit) {
        count_accepted(&state, &view.suggested, &view.slots, now).await;
    }
    let next = match share {
        Some(_) => outfit::share(&state, &visitor, seq).await?,
        None => saved_view(&state, &view, seq, is_own).await?.href(),
    };
    Ok(Redirect::to(&next).into_response())
}

/// The board again, with why the outfit was not saved.
async fn refuse(
    state: &AppState,
    visitor: &Visitor,
    view: View,
    refused: Refused,
    same: Option<i64>,
) -> Result<Response, Problem> {
    let (status, reason) = refused.for_form()?;
    let mut page = StudioPage::new(state, visitor, view).await?;
    if let Content::Outfit(desk) = &mut page.content {
        desk.unsaved = Some(Unsaved { reason, same });
    }
    Ok((status, Html(page.render()?)).into_response())
}

/// Counts what was suggested and is in the outfit as accepted, by the names of the suggestions.
pub(super) async fn count_accepted(
    state: &AppState,
    suggested: &BTreeMap<usize, String>,
    slots: &[Option<ArticleId>],
    now: Timestamp,
) {
    for (slot, name) in suggested {
        if let Some(Some(article)) = slots.get(*slot) {
            // The outfit is saved by now, so a failure here is none of the stylist's.
            if let Err(error) =
                judge(&state.store, state.releases(), name, article, Some(slots), FeedbackKind::Accepted, now)
                    .await
            {
                warn!(%error, "a suggestion that a stylist used is not counted as accepted");
            }
        }
    }
}

/// The board after saving, on which the saved outfit is changed from then on.
async fn saved_view(state: &AppState, view: &View, seq: i64, is_own: bool) -> Result<View, Problem> {
    let saved = state.store.saved_outfits().get(seq).await?.filter(|_| is_own);
    let edited = saved.map(|SavedOutfit { revision, .. }| Edited { seq, revision });
    Ok(View { saved: Some(seq), edited, ..view.with(|_| ()) })
}

fn read(view: &View, schema: &Schema) -> Result<OpenOutfit, String> {
    let slots: Vec<Slot> = view.slots.iter().cloned().map(Slot::from).collect();
    let slots = Slots::new(slots).map_err(|error| error.to_string())?;
    if slots.articles().next().is_none() {
        return Err("the outfit has no article yet; choose one, then save".to_owned());
    }
    Ok(OpenOutfit { customer: view.customer.clone(), slots, features: address::features(&view.own, schema) })
}
