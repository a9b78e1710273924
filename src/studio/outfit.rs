//! `/studio/outfits/{id}`: a saved outfit, what happened to it, and the customer's link to it.

use std::{collections::HashMap, time::Duration};

use askama::Template;
use atelier_core::domain::{
    Article, ArticleId, CustomerId, Features, OpenOutfit, Role, Schema, Timestamp, fold,
};
use atelier_engine::catalogue::NoGos;
use axum::{
    extract::State,
    http::HeaderMap,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    View, saved,
    suggest::{NOT_THEIR_SIZE, variant},
};
use crate::{
    catalogue::{
        page::article_view::{self, ArticleView},
        search,
    },
    customers::page::CustomerViews,
    outfits::{self, Origin, Reply, ReplyKind, SavedOutfit, api::OutfitId},
    people::{
        Token,
        page::{
            audit::Names,
            visitor::{Stylist, Visitor},
        },
    },
    platform::{
        db::{AuditEntry, Conflict, Name, Note, Store, StoreError},
        http::{
            AppState, Kind, Problem,
            extract::Path,
            https::{Https, base_url},
        },
        page::{Address, Form, Page, PageQuery, Refused, Shell, wording},
    },
};

const HISTORY: u32 = 50;
/// Days after which a customer's link runs out, the usual number first.
const DAYS: [u32; 3] = [14, 30, 90];
const DAY: Duration = Duration::from_hours(24);

#[derive(Template)]
#[template(path = "studio/outfit.html")]
struct OutfitPage {
    shell: Shell,
    saved: SavedOutfit,
    /// None for a blank. Each with what the customer needs of it, such as `M (TSH-1-M)`, or its id.
    pieces: Vec<Option<(ArticleView, String)>>,
    total: Option<String>,
    /// The outfit's own features, such as the occasion.
    own: String,
    /// Who saved it, and when.
    origin: String,
    deleted: Option<String>,
    /// The customer's page, and what people call them.
    customer: Option<(String, String)>,
    board: String,
    link: Option<SharedLink>,
    /// Objections to pieces for this customer.
    unsuitable: Vec<String>,
    /// The history, with times and names.
    history: Vec<(String, String, String)>,
    /// The customer's answers, the latest first.
    replies: Vec<(String, String)>,
    /// Whether this person may show it on product pages.
    may_publish: bool,
    notice: Notice,
}

/// The notices after a change.
#[derive(Default)]
struct Notice {
    is_saved: bool,
    refused: Option<String>,
    /// The refused form, whose fields keep what was typed.
    typed: Option<ChangeForm>,
    /// The outfit that is in the way of restoring this one.
    same: Option<i64>,
}

/// The customer's link, which may have run out.
struct SharedLink {
    until: String,
    is_over: bool,
    /// In the session that made it.
    url: Option<String>,
}

impl OutfitPage {
    fn is_imported(&self) -> bool {
        self.saved.origin == Origin::Imported
    }

    /// The form of this change, if it was refused.
    fn typed(&self, change: Change) -> Option<&ChangeForm> {
        self.notice.typed.as_ref().filter(|form| form.change == change)
    }

    fn name(&self) -> &str {
        let saved = || self.saved.name.as_ref().map_or("", Name::as_str);
        self.typed(Change::Words).map_or_else(saved, |form| &form.name)
    }

    fn note(&self) -> &str {
        self.typed(Change::Words).map_or(self.saved.note.as_str(), |form| &form.note)
    }

    fn message(&self) -> &str {
        self.typed(Change::Words).map_or(self.saved.message.as_str(), |form| &form.message)
    }

    /// The customer in the form that gives the draft to one, or copies it for another.
    fn typed_customer(&self) -> &str {
        let typed = self.typed(Change::Give).or_else(|| self.typed(Change::Copy));
        typed.map_or("", |form| &form.customer)
    }
}

#[derive(Deserialize)]
pub(super) struct OutfitQuery {
    saved: Option<String>,
}

pub(super) async fn page(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Path(OutfitId(seq)): Path<OutfitId>,
    Https(https): Https,
    headers: HeaderMap,
    PageQuery(OutfitQuery { saved }): PageQuery<OutfitQuery>,
) -> Result<Response, Problem> {
    let notice = Notice { is_saved: saved.is_some(), ..Notice::default() };
    Ok(outfit_page(&state, &visitor, seq, &base_url(&headers, https), notice).await?.into_response())
}

async fn find(state: &AppState, seq: i64) -> Result<SavedOutfit, Problem> {
    let found = state.store.saved_outfits().get(seq).await?;
    found.ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no outfit {seq}")))
}

async fn outfit_page(
    state: &AppState,
    visitor: &Visitor,
    seq: i64,
    base_url: &str,
    notice: Notice,
) -> Result<Html<String>, Problem> {
    let saved = find(state, seq).await?;
    let customer = &saved.outfit.customer;
    let day = |at: Timestamp| state.notation.day(at.millis());
    let (pieces, total) = pieces(state, &saved).await?;
    let by = saved.author.as_ref().map(|author| format!(" by {author}")).unwrap_or_default();
    let verb = if saved.origin == Origin::Imported { "Imported" } else { "Saved" };
    let customers = CustomerViews::read(state, customer, &state.schema()).await?;
    let profile = match customer {
        Some(id) => state.store.customers().get(id).await?.map(|customer| customer.features),
        None => None,
    };
    let named = |id: &CustomerId| {
        (View { customer: Some(id.clone()), ..View::default() }.href(), customers.label(id))
    };
    let page = OutfitPage {
        shell: visitor.shell(Page::Studio),
        total,
        own: wording::line(&saved.outfit.features, &state.schema()),
        origin: format!("{verb}{by} on {}", day(saved.created_at)),
        deleted: saved.deleted_at.map(day),
        customer: customer.as_ref().map(named),
        board: saved::board(&saved, state.now()),
        link: match saved.link_until {
            Some(until) => Some(SharedLink {
                until: day(until),
                is_over: until <= state.now(),
                url: link_url(state, visitor, (saved.seq, until), base_url).await?,
            }),
            None => None,
        },
        unsuitable: unsuitable(state, &saved, profile.as_ref(), pieces.iter().flatten()),
        history: history(state, &saved).await?,
        replies: replies(state, &saved, &pieces),
        may_publish: visitor.person.role >= Role::Merchandiser && saved.outfit.slots.articles().count() > 1,
        notice,
        pieces: with_variants(state, &profile.unwrap_or_default(), pieces),
        saved,
    };
    Ok(Html(page.render()?))
}

/// The secret of a link. The database has only its digest, and the session that made it can make it again.
fn link_token(visitor: &Visitor, seq: i64, until: Timestamp) -> Token {
    Token::of_form(&visitor.token, &format!("link {seq} {}", until.millis()))
}

/// The address of an outfit's link, if it is open and this session made it.
async fn link_url(
    state: &AppState,
    visitor: &Visitor,
    (seq, until): (i64, Timestamp),
    base_url: &str,
) -> Result<Option<String>, Problem> {
    if until <= state.now() {
        return Ok(None);
    }
    let token = link_token(visitor, seq, until);
    let shown = outfits::shared(&state.store, token.as_str()).await?;
    let is_own = shown.is_some_and(|shown| shown.seq == seq);
    Ok(is_own.then(|| format!("{base_url}/shared/{}", token.as_str())))
}

/// Objections to the pieces for the customer: a no-go, a size, or the stock. An imported outfit, or a deleted one, is
/// only looked at.
fn unsuitable<'a>(
    state: &AppState,
    saved: &SavedOutfit,
    profile: Option<&Features>,
    pieces: impl Iterator<Item = &'a ArticleView>,
) -> Vec<String> {
    let (Some(live), Some(features)) = (state.releases().current(), profile) else { return Vec::new() };
    if saved.origin == Origin::Imported || saved.deleted_at.is_some() {
        return Vec::new();
    }
    let catalogue = &live.catalogue;
    let length = catalogue.sets().present().length();
    let no_gos = NoGos::new(live.serving.release().schema(), features, live.catalogue.sets());
    let needs = catalogue.sets().supply().needs(features);
    let no_gos = catalogue.sets().ruled_out(&no_gos).articles;
    let unfit = catalogue.sets().supply().unfit(&needs, length).articles;
    let sold_out = catalogue.sets().unavailable(Some(&needs));
    let words = |piece: &ArticleView| {
        let index = catalogue.position_of(&piece.id)?;
        let reasons =
            [(&no_gos, "is a no-go"), (&unfit, "does not fit"), (&sold_out, "is not in stock in their size")];
        let found: Vec<String> = reasons
            .into_iter()
            .filter(|(articles, _)| articles.contains(index))
            .map(|(_, words)| words.to_owned())
            .collect();
        (!found.is_empty()).then(|| format!("{} {}.", piece.name, wording::list(&found, "and")))
    };
    pieces.filter_map(words).collect()
}

/// The pieces with what somebody orders: the variant in the customer's size, or the article.
fn with_variants(
    state: &AppState,
    features: &Features,
    pieces: Vec<Option<ArticleView>>,
) -> Vec<Option<(ArticleView, String)>> {
    let live = state.releases().current();
    let order = |piece: ArticleView| {
        let words = match live.as_ref().and_then(|live| variant(live, features, &piece.id)) {
            Some(choice) if choice == NOT_THEIR_SIZE => format!("{}, {choice}", piece.id),
            Some(choice) => choice,
            None => piece.id.clone(),
        };
        (piece, words)
    };
    pieces.into_iter().map(|piece| piece.map(order)).collect()
}

/// The views, of removed articles as they were when the outfit was saved.
pub(super) fn as_kept(views: Vec<ArticleView>, found: &[Article], kept: &[Article]) -> Vec<ArticleView> {
    let view = |view: ArticleView| {
        let is_there = found.iter().any(|article| article.id.as_str() == view.id);
        let kept = kept.iter().find(|article| !is_there && article.id.as_str() == view.id);
        kept.map_or(view, ArticleView::removed)
    };
    views.into_iter().map(view).collect()
}

/// The articles in their slots, and the sum of their prices.
pub(super) async fn pieces(
    state: &AppState,
    SavedOutfit { outfit, pieces, .. }: &SavedOutfit,
) -> Result<(Vec<Option<ArticleView>>, Option<String>), Problem> {
    let ids: Vec<ArticleId> = outfit.slots.articles().cloned().collect();
    let articles = state.store.articles().get_many(&ids).await?;
    let total = article_view::total(&articles, &state.notation).filter(|_| articles.len() == ids.len());
    let mut views =
        as_kept(article_view::views(&ids, &articles, &state.notation), &articles, pieces).into_iter();
    let slots = outfit.slots.as_slice().iter();
    Ok((slots.map(|slot| slot.article().and_then(|_| views.next())).collect(), total))
}

fn replies(state: &AppState, saved: &SavedOutfit, pieces: &[Option<ArticleView>]) -> Vec<(String, String)> {
    let name = |id: &String| {
        let piece = pieces.iter().flatten().find(|piece| piece.id == *id);
        piece.map_or_else(|| id.clone(), |piece| piece.name.clone())
    };
    let words = |reply: &Reply| {
        let said = match (reply.kind, &reply.article) {
            (ReplyKind::Likes, _) => "Likes it".to_owned(),
            (ReplyKind::Dislikes, Some(article)) => format!("Dislikes {}", name(article)),
            (ReplyKind::Dislikes, None) => "Dislikes it".to_owned(),
            (ReplyKind::Asks, _) => "Asks".to_owned(),
        };
        let said = if reply.text.is_empty() { said } else { format!("{said}: {}", reply.text) };
        (state.notation.minute(reply.at), said)
    };
    saved.replies.iter().rev().map(words).collect()
}

async fn history(state: &AppState, saved: &SavedOutfit) -> Result<Vec<(String, String, String)>, Problem> {
    let customer = saved.outfit.customer.as_ref();
    let entries = state.store.audit().for_outfit(customer, saved.seq, HISTORY).await?;
    let names = Names::read(&state.store).await?;
    let articles_in = |entry: &AuditEntry| {
        let lists =
            ["added", "removed"].map(|list| entry.details.get(list).and_then(Value::as_array).cloned());
        lists.into_iter().flatten().flatten().collect::<Vec<_>>()
    };
    let ids = entries.iter().flat_map(articles_in).filter_map(|id| ArticleId::new(id.as_str()?).ok());
    let mut ids: Vec<ArticleId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let articles = article_view::load(state, &ids).await?;
    let articles: HashMap<String, String> =
        articles.into_iter().map(|article| (article.id, article.name)).collect();
    let schema = state.schema();
    let event = |entry: AuditEntry| {
        (state.notation.minute(entry.at.millis()), names.get(entry.actor), words(&entry, &articles, &schema))
    };
    Ok(entries.into_iter().map(event).collect())
}

fn words(entry: &AuditEntry, articles: &HashMap<String, String>, schema: &Schema) -> String {
    let mut parts = Vec::new();
    match entry.action.as_str() {
        "outfit.save" => parts.push("saved".to_owned()),
        "outfit.delete" => parts.push("deleted".to_owned()),
        "outfit.restore" => parts.push("restored".to_owned()),
        "outfit.share" => parts.push("made a link for the customer".to_owned()),
        "outfit.withdraw" => parts.push("withdrew the link".to_owned()),
        "outfit.reply" => parts.push("the customer replied".to_owned()),
        "outfit.answer" => parts.push("marked the customer’s reply as done".to_owned()),
        _ => {}
    }
    for list in ["added", "removed"] {
        let ids = entry.details.get(list).and_then(Value::as_array);
        let names: Vec<&str> = ids
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|id| articles.get(id).map_or(id, String::as_str))
            .collect();
        if !names.is_empty() {
            parts.push(format!("{list} {}", names.join(", ")));
        }
    }
    match entry.details.get("name") {
        Some(Value::String(name)) => parts.push(format!("named it “{name}”")),
        Some(_) => parts.push("removed the name".to_owned()),
        None => {}
    }
    if entry.details.contains_key("given") {
        parts.push("gave it to the customer".to_owned());
    }
    for text in ["note", "message"] {
        if entry.details.contains_key(text) {
            parts.push(format!("changed the {text}"));
        }
    }
    if let Some(Value::Array(names)) = entry.details.get("features") {
        let labels: Vec<String> =
            names.iter().filter_map(Value::as_str).map(|name| wording::label(name, schema)).collect();
        parts.push(format!("changed the {}", wording::list(&labels, "and")));
    }
    if parts.is_empty() {
        parts.push("changed the blanks or the order".to_owned());
    }
    let words = parts.join("; ");
    words[..1].to_uppercase() + &words[1..]
}

#[derive(Deserialize)]
pub(super) struct ChangeForm {
    change: Change,
    revision: i64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    note: String,
    /// The time of the latest reply on the page.
    #[serde(default)]
    seen: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    customer: String,
    days: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    /// The name and the note.
    Words,
    Delete,
    Restore,
    /// To the first customer of a draft that has none.
    Give,
    /// To another customer.
    Copy,
    Share,
    /// Takes the customer's reply out of the queue.
    Answer,
    Withdraw,
}

pub(super) async fn change(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Path(OutfitId(seq)): Path<OutfitId>,
    Https(https): Https,
    headers: HeaderMap,
    Form(form): Form<ChangeForm>,
) -> Result<Response, Problem> {
    let refused = match apply(&state, &visitor, seq, &form).await {
        Ok(next) => return Ok(Redirect::to(&next).into_response()),
        Err(refused) => refused,
    };
    let (status, reason) = refused.for_form()?;
    let same = match form.change {
        Change::Restore => state.store.saved_outfits().same_as(&find(&state, seq).await?.outfit).await?,
        _ => None,
    };
    let notice = Notice { is_saved: false, refused: Some(reason), typed: Some(form), same };
    let page = outfit_page(&state, &visitor, seq, &base_url(&headers, https), notice).await?;
    Ok((status, page).into_response())
}

/// Changes the outfit. Returns the page that follows.
async fn apply(state: &AppState, visitor: &Visitor, seq: i64, form: &ChangeForm) -> Result<String, Refused> {
    let (store, now) = (state.store.by(visitor.author()), state.now());
    let saved = store.saved_outfits();
    let next = format!("/studio/outfits/{seq}");
    Ok(match form.change {
        Change::Words => {
            change_words(&store, seq, form, now).await?;
            next + "?saved=on"
        }
        Change::Delete => {
            saved.delete(seq, now).await?;
            format!("/studio/outfits?deleted={seq}")
        }
        Change::Restore => saved.restore(seq, now).await.map(|()| next)?,
        Change::Give => give(state, &store, seq, form, now).await.map(|()| next)?,
        Change::Copy => copy(state, visitor, seq, &form.customer).await?,
        Change::Share => {
            let days = form.days.filter(|days| DAYS.contains(days)).unwrap_or(DAYS[0]);
            make_link(state, visitor, seq, days).await?;
            next + "#share"
        }
        Change::Answer => saved.answer(seq, Timestamp::from_millis(form.seen), now).await.map(|()| next)?,
        Change::Withdraw => saved.set_link(seq, None, now).await.map(|()| next)?,
    })
}

async fn make_link(state: &AppState, visitor: &Visitor, seq: i64, days: u32) -> Result<(), StoreError> {
    let until = state.now() + DAY * days;
    // Only the digest is stored. It replaces that of an earlier link.
    let digest = link_token(visitor, seq, until).hash();
    let store = state.store.by(visitor.author());
    store.saved_outfits().set_link(seq, Some((&digest, until)), state.now()).await
}

/// Makes a link for the customer, unless one is open. Returns the part of the outfit's page that shows it.
pub(super) async fn share(state: &AppState, visitor: &Visitor, seq: i64) -> Result<String, Problem> {
    if find(state, seq).await?.link_until.is_none_or(|until| until <= state.now()) {
        make_link(state, visitor, seq, DAYS[0]).await?;
    }
    Ok(format!("/studio/outfits/{seq}#share"))
}

async fn change_words(store: &Store, seq: i64, form: &ChangeForm, now: Timestamp) -> Result<(), Refused> {
    let name = form.name.trim();
    let name = (!name.is_empty()).then(|| Name::new(name)).transpose().map_err(Refused::invalid)?;
    let note = Note::new(&form.note).map_err(Refused::invalid)?;
    let message = Note::new(&form.message).map_err(Refused::invalid)?;
    let edit = |saved: &mut SavedOutfit| (saved.name, saved.note, saved.message) = (name, note, message);
    match store.saved_outfits().change(seq, form.revision, edit, now).await {
        Err(StoreError::Conflict(Conflict::OutfitChanged)) => Err(Refused::conflict(
            "this outfit was changed after you opened it. The name and the note below are yours: save again to keep them",
        )),
        changed => Ok(changed?),
    }
}

/// Gives a draft that has no customer to one. What was suggested is accepted if that makes it complete.
async fn give(
    state: &AppState,
    store: &Store,
    seq: i64,
    form: &ChangeForm,
    now: Timestamp,
) -> Result<(), Refused> {
    let customer = find_one(state, form.customer.trim()).await?;
    let saved = SavedOutfit { revision: form.revision, ..find(state, seq).await? };
    let given = OpenOutfit { customer: Some(customer.clone()), ..saved.outfit.clone() };
    let change = outfits::Change { customer: Some(customer), ..outfits::Change::default() };
    let size = state.schema().outfit_size();
    outfits::change(store, &saved, change, size, now).await?;
    if !size.is_draft(&given) {
        let slots: Vec<_> = given.slots.as_slice().iter().map(|slot| slot.article().cloned()).collect();
        saved::count_accepted(state, &saved.suggested, &slots, now).await;
    }
    Ok(())
}

/// Saves the outfit for another customer, with its name unless that has the customer's id. Returns the copy's page.
async fn copy(state: &AppState, visitor: &Visitor, seq: i64, customer: &str) -> Result<String, Refused> {
    let saved = find(state, seq).await?;
    let customer = find_one(state, customer.trim()).await?;
    if saved.outfit.customer.as_ref() == Some(&customer) {
        let reason = format!("{customer} already has this outfit; enter another customer");
        return Err(Refused::invalid(reason));
    }
    let owner = saved.outfit.customer.as_ref().map(|owner| fold(owner.as_str()));
    let names_owner = |name: &Name| owner.as_ref().is_some_and(|owner| fold(name.as_str()).contains(owner));
    let name = saved.name.filter(|name| !names_owner(name));
    let outfit = OpenOutfit { customer: Some(customer), ..saved.outfit };
    let (author, now) = (visitor.author(), state.now());
    let size = state.schema().outfit_size();
    let (copied, _) = outfits::save(&state.store, author, size, &outfit, now).await?;
    let copy = find(state, copied).await?;
    if copy.name.is_none() && copy.origin != Origin::Imported && name.is_some() {
        let edit = |copy: &mut SavedOutfit| copy.name = name;
        state.store.by(author).saved_outfits().change(copied, copy.revision, edit, now).await?;
    }
    Ok(format!("/studio/outfits/{copied}"))
}

/// The customer with this id, or the only one whom a search finds.
async fn find_one(state: &AppState, text: &str) -> Result<CustomerId, Refused> {
    if let Ok(id) = CustomerId::new(text)
        && state.store.customers().get(&id).await?.is_some()
    {
        return Ok(id);
    }
    let found = search::customers(&state.store, &state.schema(), state.synonyms(), text, (0, 1)).await?;
    match (found.count, found.rows.into_iter().next()) {
        (1, Some(customer)) => Ok(customer.id),
        (0, _) => {
            Err(Refused::invalid(format!("there is no such customer: no id or profile contains “{text}”")))
        }
        (count, _) => {
            let count = state.notation.count(count as u64);
            Err(Refused::invalid(format!("{count} customers match “{text}”; enter an id")))
        }
    }
}
