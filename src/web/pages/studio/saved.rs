//! `/studio/outfits`: the saved outfits of all customers, and saving one.

use askama::Template;
use axum::{
    extract::State,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use tracing::warn;

use super::view::{self, Edited, View};
use crate::{
    domain::{ArticleId, CustomerId, OpenOutfit, Schema, Slot, Slots},
    service::{fault::ServiceError, feedback::judge, outfits},
    store::{Conflict, FeedbackKind, Origin, SavedFilter, SavedOutfit, StoreError},
    web::{
        http::{AppState, Kind, Problem},
        pages::{
            article_view::{self, ArticleView},
            fault,
            form::{Form, PageQuery},
            pager::Pager,
            profile,
            shell::{Page, Shell},
            visitor::Stylist,
        },
    },
};

/// Outfits on a page.
const ON_A_PAGE: u32 = 24;

#[derive(Template)]
#[template(path = "studio/saved.html")]
struct SavedPage {
    shell: Shell,
    find: String,
    only_drafts: bool,
    /// The only customer, or an empty text.
    customer: String,
    outfits: Vec<OutfitCard>,
    pager: Pager,
    /// The outfit that was just deleted.
    deleted: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct SavedQuery {
    #[serde(default)]
    find: String,
    customer: Option<String>,
    drafts: Option<String>,
    #[serde(default)]
    page: String,
    #[serde(default)]
    deleted: String,
}

pub(super) async fn page(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    PageQuery(SavedQuery { find, customer, drafts, page, deleted }): PageQuery<SavedQuery>,
) -> Result<Html<String>, Problem> {
    let only_drafts = drafts.is_some();
    let customer = customer.and_then(|id| CustomerId::new(id).ok());
    let filter = SavedFilter { search: &find, customer: customer.as_ref(), only_drafts, by: None };
    let saved = state.store.saved_outfits();
    let (_, count) = saved.list(&filter, 0, 0).await?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // A link that says something else shows the first page.
    let pager = Pager::new(page.parse().ok(), count, ON_A_PAGE as usize, false, &state.notation, |page| {
        list_href(&find, customer.as_ref(), only_drafts, page)
    });
    let skip = u32::try_from(pager.first()).unwrap_or(u32::MAX);
    let (found, _) = saved.list(&filter, skip, ON_A_PAGE).await?;
    let deleted = match deleted.parse().ok() {
        Some(seq) => {
            saved.get(seq).await?.filter(|outfit| outfit.deleted_at.is_some()).map(|outfit| outfit.seq)
        }
        None => None,
    };
    let page = SavedPage {
        shell: visitor.shell(Page::Studio),
        outfits: cards(&state, found, &state.schema()).await?,
        find,
        only_drafts,
        customer: customer.map(|id| id.to_string()).unwrap_or_default(),
        pager,
        deleted,
    };
    Ok(Html(page.render()?))
}

/// The list's address.
pub(super) fn list_href(find: &str, customer: Option<&CustomerId>, only_drafts: bool, page: usize) -> String {
    let path = "/studio/outfits?";
    let mut query = form_urlencoded::Serializer::for_suffix(path.to_owned(), path.len());
    if !find.is_empty() {
        query.append_pair("find", find);
    }
    if let Some(customer) = customer {
        query.append_pair("customer", customer.as_str());
    }
    if only_drafts {
        query.append_pair("drafts", "on");
    }
    if page > 1 {
        query.append_pair("page", &page.to_string());
    }
    query.finish()
}

/// A saved outfit in a list.
pub(super) struct OutfitCard {
    pub(super) title: String,
    /// Its page.
    pub(super) href: String,
    /// The board with it.
    pub(super) board: String,
    pub(super) is_imported: bool,
    pub(super) is_draft: bool,
    /// None for a blank.
    pub(super) articles: Vec<Option<ArticleView>>,
    pub(super) customer: String,
    /// Its own features, such as the occasion, who saved it, and when.
    pub(super) about: String,
}

pub(super) async fn cards(
    state: &AppState,
    outfits: Vec<SavedOutfit>,
    schema: &Schema,
) -> Result<Vec<OutfitCard>, Problem> {
    let ids: Vec<ArticleId> =
        outfits.iter().flat_map(|saved| saved.outfit.slots.articles()).cloned().collect();
    let mut articles = article_view::load(state, &ids).await?.into_iter();
    let card = |saved: &SavedOutfit| {
        let slots = saved.outfit.slots.as_slice().iter();
        let own = profile::line(&saved.outfit.features, schema);
        let day = state.notation.day(saved.changed_at.millis());
        let about = [own, saved.author.clone().unwrap_or_default(), day];
        OutfitCard {
            title: title(saved),
            href: format!("/studio/outfits/{}", saved.seq),
            board: board(saved),
            is_imported: saved.origin == Origin::Imported,
            is_draft: saved.outfit.slots.is_draft(),
            articles: slots.map(|slot| slot.article().and_then(|_| articles.next())).collect(),
            customer: saved.outfit.customer.to_string(),
            about: about.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" · "),
        }
    };
    Ok(outfits.iter().map(card).collect())
}

pub(super) fn title(saved: &SavedOutfit) -> String {
    saved.name.as_ref().map_or_else(|| format!("Outfit {}", saved.seq), ToString::to_string)
}

/// The board with the outfit, to change it in place; an imported one to begin another with it.
pub(super) fn board(saved: &SavedOutfit) -> String {
    let outfit = &saved.outfit;
    let edited = Edited { seq: saved.seq, revision: saved.revision };
    let view = View {
        customer: Some(outfit.customer.clone()),
        slots: outfit.slots.as_slice().iter().map(|slot| slot.article().cloned()).collect(),
        own: view::values(&outfit.features),
        edited: (saved.origin != Origin::Imported).then_some(edited),
        ..View::default()
    };
    view.href()
}

#[derive(Deserialize)]
pub(super) struct SaveForm {
    view: String,
    /// Whether to save another outfit instead of changing the one that is edited.
    another: Option<String>,
}

/// Saves the outfit or draft for its customer. What was suggested is then accepted.
pub(super) async fn save(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Form(SaveForm { view, another }): Form<SaveForm>,
) -> Result<Response, Problem> {
    let view = View::parse(&view)?;
    let outfit = read(&view, &state.schema())?;
    let (store, author, now) = (&state.store, visitor.author(), state.now());
    let next = if let Some(Edited { seq, revision }) = view.edited.filter(|_| another.is_none()) {
        match outfits::replace(&store.by(author), (seq, revision), outfit, now).await {
            Ok(()) => {}
            // The board says so, and offers to save another.
            Err(ServiceError::Store(StoreError::Conflict(Conflict::OutfitChanged))) => {
                return Ok(Redirect::to(&view.href()).into_response());
            }
            Err(error) => return Err(fault::problem(error)),
        }
        format!("/studio/outfits/{seq}?saved=on")
    } else {
        let (seq, _) = outfits::save(store, author, &outfit, now).await.map_err(fault::problem)?;
        // A draft is finished in place; a whole outfit may be the beginning of another.
        let edited = match store.saved_outfits().get(seq).await? {
            Some(SavedOutfit { revision, .. }) if view.is_draft() => Some(Edited { seq, revision }),
            _ => None,
        };
        View { saved: Some(seq), edited, ..view.clone() }.href()
    };
    for (slot, name) in &view.suggested {
        if let Some(Some(article)) = view.slots.get(*slot) {
            // The outfit is saved by now, so a failure here is none of the stylist's.
            if let Err(error) =
                judge(store, &state.releases, name, article, FeedbackKind::Accepted, now).await
            {
                warn!(%error, "a suggestion that a stylist used is not counted as accepted");
            }
        }
    }
    Ok(Redirect::to(&next).into_response())
}

fn read(view: &View, schema: &Schema) -> Result<OpenOutfit, Problem> {
    let refuse = |detail: &str| Problem::new(Kind::Invalid, detail);
    let customer = view.customer.clone();
    let customer = customer.ok_or_else(|| refuse("an outfit is saved for a customer; choose one first"))?;
    let slots: Vec<Slot> = view.slots.iter().cloned().map(Slot::from).collect();
    let slots = Slots::new(slots).map_err(|error| refuse(&error.to_string()))?;
    if slots.articles().next().is_none() {
        return Err(refuse("the outfit has no article yet; choose one, then save"));
    }
    Ok(OpenOutfit { customer, slots, features: view::features(&view.own, schema) })
}
