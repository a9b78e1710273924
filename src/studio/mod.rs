//! `/studio`: a stylist finds a customer, lays out an outfit, sees suggestions for its blanks, and saves it.

mod article;
mod board;
mod customer;
mod notices;
mod outfit;
mod pick;
mod profile_form;
mod queue;
mod saved;
mod shared;
pub(crate) mod side_by_side;
mod suggest;
mod view;
mod what_if;

use std::{str::FromStr, sync::Arc};

use askama::Template;
use atelier_core::domain::{ArticleId, Customer, Features, Method, Schema, Slot, Timestamp};
use axum::{
    Router,
    extract::State,
    response::{Html, IntoResponse, Redirect, Response},
    routing::{get, post},
};
use serde::Deserialize;

pub(crate) use self::view::View;
use self::{
    board::Board,
    customer::Known,
    pick::{Facet, Pick},
    queue::Queue,
    saved::Unsaved,
    suggest::Suggested,
    view::{Edited, Refusal},
    what_if::{Purpose, WhatIf},
};
use crate::{
    catalogue::{page::article_view, search},
    completion::{Request, Stored},
    customers::page::CustomerView,
    outcomes::{
        FeedbackKind, RefusalReason,
        feedback::{judge, refusal_key},
    },
    outfits::SavedOutfit,
    people::page::visitor::{Stylist, Visitor},
    platform::{
        fault::ServiceError,
        http::{AppState, Finding, Kind, Problem},
        page::{Address, Form, Page, Pager, Shell, address, fault, wording},
    },
    releases::{LiveRelease, ServedSchema, routing::Route},
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/studio", get(page))
        .route("/studio/feedback", post(feedback))
        .route("/studio/outfits", get(saved::page).post(saved::save))
        .route("/studio/outfits/{id}", get(outfit::page).post(outfit::change))
        .route("/studio/articles/{id}", get(article::page))
        .route("/studio/new-customer", get(profile_form::add).post(profile_form::save_new))
        .route("/studio/customers/{id}", get(profile_form::correct).post(profile_form::save_corrected))
        .route("/studio/notes", post(customer::note))
        .merge(shared::router())
}

/// The keys that static/atelier.js knows.
const KEYS: [(&str, &str); 8] = [
    ("→", "next suggestion"),
    ("←", "previous suggestion"),
    ("u", "use this suggestion"),
    ("x", "not for this customer"),
    ("z", "undo it"),
    ("s", "save the outfit"),
    ("/", "search"),
    ("?", "show this list"),
];

#[derive(Template)]
#[template(path = "studio/studio.html")]
struct StudioPage {
    shell: Shell,
    view: View,
    /// The chosen customer, if there is one and they exist.
    customer: Option<CustomerView>,
    content: Content,
    /// The last change of the board, and the board before it.
    undo: Option<(String, String)>,
}

enum Content {
    /// The queue is there until a search narrows the customers.
    Find {
        customers: Vec<CustomerView>,
        pager: Pager,
        queue: Option<Queue>,
        /// The address of an outfit without a customer.
        new_outfit: String,
    },
    Customer(Known),
    Outfit(Box<Desk>),
}

/// An outfit, what is suggested for it, and how that can be changed.
struct Desk {
    board: Board,
    /// The outfit's purpose.
    purposes: Vec<Purpose>,
    pick: Option<Pick>,
    /// The attributes to filter by.
    facets: Vec<Facet>,
    refused: Refused,
    what_if: WhatIf,
    /// By which features suggestions fit the customer.
    fit: String,
    suggested: Option<Suggested>,
    methods: Vec<Method>,
    /// With their folded names.
    stores: Vec<String>,
    /// Why there are no suggestions for the blanks.
    silent: Option<String>,
    /// The stored outfit that is on the board.
    kept: Kept,
    /// Why saving it failed just now.
    unsaved: Option<Unsaved>,
}

async fn page(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    view: View,
) -> Result<Html<String>, Problem> {
    Ok(Html(StudioPage::new(&state, &visitor, view).await?.render()?))
}

impl StudioPage {
    async fn new(state: &AppState, visitor: &Visitor, view: View) -> Result<Self, Problem> {
        let named = Named::read(state, view).await?;
        let content = match &named.customer {
            None if named.view.slots.is_empty() => find(state, visitor, &named).await?,
            Some(_) if named.view.slots.is_empty() => {
                Content::Customer(customer::known(state, &named).await?)
            }
            _ => Content::Outfit(Box::new(Desk::new(state, visitor, &named).await?)),
        };
        let undo = undo(state, &named.view).await?;
        let Named { view, customer, schema, .. } = named;
        let customer = customer.map(|customer| CustomerView::new(&customer, &schema));
        Ok(Self { shell: visitor.shell(Page::Studio), view, customer, content, undo })
    }
}

/// The rows that the address names, as they are stored now.
struct Named {
    /// Without what is gone.
    view: View,
    /// The release that answers; None without a live release.
    route: Option<Route>,
    schema: ServedSchema,
    customer: Option<Customer>,
    /// Their profile and purchases.
    stored: Arc<Stored>,
    /// The articles of the catalogue that they refused, the latest first.
    refusals: Vec<(ArticleId, Timestamp)>,
    kept: Kept,
}

/// The stored outfit that is on the board.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    /// As it is on the board.
    Saved,
    /// Nothing, or what was opened.
    Unsaved,
    /// Something that was changed after it was opened.
    Outdated,
}

impl Named {
    async fn read(state: &AppState, mut view: View) -> Result<Self, Problem> {
        let profile = match &view.customer {
            Some(id) => state.profiles().get(id, state.times().begun).await?,
            None => None,
        };
        let stored = profile.map(|profile| profile.stored);
        let customer = view.customer.clone().zip(stored.as_ref());
        let customer = customer.map(|(id, stored)| Customer { id, features: stored.features.clone() });
        let live = state.releases().current();
        if let Some(live) = &live
            && let Some(method) = view.method.take_if(|method| !live.serving.has(*method))
        {
            view.ignored.push(format!("the method {method}"));
        }
        let known = customer.as_ref().map(|customer| customer.id.clone());
        let route = live.map(|live| live.route(view.method, known));
        let schema = ServedSchema::from(route.as_ref().map(|route| Arc::clone(&route.live)));
        view.size = schema.outfit_size();
        view.saved = confirm_saved(state, &view, &schema).await?;
        let kept = kept(state, &mut view, &schema).await?;
        let mut refusals = match &customer {
            Some(customer) => state.store.feedback().refused_by(&customer.id).await?,
            None => Vec::new(),
        };
        if let Some(Route { live, .. }) = &route {
            leave_out_what_is_gone(&mut view, live);
            refusals.retain(|(article, _)| live.catalogue.position_of(article.as_str()).is_some());
        }
        view.refused_before = refusals.iter().map(|(article, _)| article.clone()).collect();
        // Links from Side by side name them.
        view.filter.exclude.retain(|article| !view.refused_before.contains(article));
        Ok(Self { view, route, schema, customer, stored: stored.unwrap_or_default(), refusals, kept })
    }
}

impl Desk {
    /// Whether the suggestions are for this blank.
    fn shows(&self, slot: usize) -> bool {
        self.suggested
            .as_ref()
            .and_then(|suggested| suggested.blank.as_ref())
            .is_some_and(|blank| blank.slot == slot)
    }

    /// Whether something is lost with the page.
    fn is_unsaved(&self, view: &View) -> bool {
        self.kept != Kept::Saved && !view.trial && !self.board.articles.is_empty()
    }

    async fn new(state: &AppState, visitor: &Visitor, named: &Named) -> Result<Self, Problem> {
        let Named { view, schema, stored, .. } = named;
        let route = named.route.as_ref();
        let live = route.map(|route| &*route.live);
        let stores = live.map(|live| live.catalogue.sets().supply().stores()).unwrap_or_default();
        let mut board = board::board(state, view, live).await?;
        let (suggested, silent) = match answer(state, visitor, named, &mut board).await? {
            Ok(suggested) => (suggested, None),
            Err(reason) => (None, Some(reason)),
        };
        if let Some(suggested) = &suggested {
            board.type_blanks(view, &suggested.kinds);
        }
        Ok(Self {
            board,
            purposes: what_if::purposes(view, schema),
            pick: pick::pick(state, view, route, stored).await?,
            facets: live.map(|live| pick::facets(live, view)).unwrap_or_default(),
            refused: refused(state, view).await?,
            what_if: what_if::what_if(view, &stored.features, schema),
            fit: wording::fitting(&shown_features(view, stored, schema), schema),
            suggested,
            // A method that a stylist names is always one of the live release.
            methods: state
                .releases()
                .current()
                .map(|live| live.serving.methods().collect())
                .unwrap_or_default(),
            stores: stores.into_iter().map(str::to_owned).collect(),
            silent,
            kept: named.kept,
            unsaved: None,
        })
    }
}

/// Suggestions for the blanks, or why there are none. A whole outfit is scored instead.
async fn answer(
    state: &AppState,
    visitor: &Visitor,
    named: &Named,
    board: &mut Board,
) -> Result<Result<Option<Suggested>, String>, Problem> {
    let Named { view, customer, stored, .. } = named;
    let Some(route) = &named.route else {
        let reason = "No release is live, so there are no suggestions. An admin can activate one.";
        return Ok(if view.blanks() > 0 { Err(reason.to_owned()) } else { Ok(None) });
    };
    if view.is_whole() {
        board.score(state, route, view, stored).await?;
    }
    if view.blanks() == 0 {
        return Ok(Ok(None));
    }
    let asker = (visitor.person.id, customer.as_ref().map(|customer| &customer.id), &**stored);
    match suggest::suggest(state, route, view, asker, board).await {
        Ok(suggested) => Ok(Ok(Some(suggested))),
        // The outfit and the filters stay on the page, so that they can be corrected.
        Err(ServiceError::Faults(faults)) => Ok(Err(fault::words(&faults))),
        Err(error) => Err(fault::problem(error)),
    }
}

/// Leaves out the parts of an old link that the release or the catalogue no longer has.
fn leave_out_what_is_gone(view: &mut View, live: &LiveRelease) {
    let catalogue = &live.catalogue;
    view.filter.exclude.retain(|id| catalogue.position_of(id.as_str()).is_some());
    view.left_out.retain(|refusal| catalogue.position_of(refusal.article.as_str()).is_some());
    let ignored = &mut view.ignored;
    // All pieces of a stored outfit stay, so that saving it loses none.
    if view.edited.is_none() && view.slots.len() > view.size.most {
        view.slots.truncate(view.size.most);
        ignored.push("a piece".to_owned());
    }
    let sets = catalogue.sets();
    for (_, kind) in view.types.extract_if(.., |_, kind| sets.of_type(kind).is_none()) {
        ignored.push(format!("the type {}", wording::spaced(&kind)));
    }
    let words = &mut view.filter.words;
    for (attribute, word) in
        words.extract_if(.., |attribute, word| sets.with_word(attribute, word).is_empty())
    {
        ignored.push(format!("the {attribute} {word}"));
    }
}

/// The last change of the board, and the address of the board before it.
async fn undo(state: &AppState, view: &View) -> Result<Option<(String, String)>, Problem> {
    if view.undo.is_empty() {
        return Ok(None);
    }
    let before = View::read(&view.undo);
    let mut parts = Vec::new();
    for (verb, old, new) in [("Removed", view, &before), ("Added", &before, view)] {
        let ids = new.slots.iter().flatten().filter(|id| !old.slots.contains(&Some((*id).clone())));
        let articles = article_view::load(state, &ids.cloned().collect::<Vec<_>>()).await?;
        let names: Vec<String> = articles.into_iter().map(|article| article.name).collect();
        parts.extend((!names.is_empty()).then(|| format!("{verb} {}.", wording::list(&names, "and"))));
    }
    let words = if parts.is_empty() { "Removed a blank.".to_owned() } else { parts.join(" ") };
    Ok(Some((words, before.href())))
}

/// The customer's refusals.
struct Refused {
    /// The article just refused.
    just: Option<RefusedArticle>,
    /// Why it was, with what may be said; empty where nothing is kept.
    reasons: Vec<(RefusalReason, bool)>,
    /// The latest.
    before: Vec<RefusedArticle>,
    count: usize,
}

struct RefusedArticle {
    name: String,
    /// The form's value to take it back.
    undone: String,
}

async fn refused(state: &AppState, view: &View) -> Result<Refused, Problem> {
    let without_names = view.refused_before.iter().chain(&view.filter.exclude).cloned().map(Refusal::of);
    let mut before: Vec<Refusal> = without_names.chain(view.left_out.iter().cloned()).collect();
    let count = before.len();
    // The customer's page has all.
    before.truncate(LISTED);
    // An old address may name one that was taken back.
    let just = view.refused.as_ref().filter(|just| view.refused_articles().any(|id| *id == just.article));
    let all = before.iter().chain(just);
    let ids: Vec<ArticleId> = all.map(|refusal| refusal.article.clone()).collect();
    let articles = article_view::load(state, &ids).await?;
    let with_name = |refusal: &Refusal| {
        let id = refusal.article.as_str();
        let name = articles.iter().find(|article| article.id == id).map(|article| article.name.clone());
        RefusedArticle { name: name.unwrap_or_else(|| id.to_owned()), undone: refusal.to_string() }
    };
    let given = match just {
        Some(just) => state.store.feedback().by_key(&refusal_key(&just.name)).await?,
        None => None,
    };
    let reasons =
        given.map(|given| RefusalReason::ALL.map(|reason| (reason, given.reason == Some(reason))).to_vec());
    Ok(Refused {
        reasons: reasons.unwrap_or_default(),
        just: just.map(with_name),
        before: before.iter().map(with_name).collect(),
        count,
    })
}

/// The outfit that the address says was just saved, if it is stored and is the one on the page.
async fn confirm_saved(state: &AppState, view: &View, schema: &Schema) -> Result<Option<i64>, Problem> {
    let Some(seq) = view.saved else { return Ok(None) };
    let stored = state.store.saved_outfits().get(seq).await?;
    Ok(stored.filter(|saved| is_shown(saved, view, schema)).map(|_| seq))
}

/// If the outfit that is being edited is gone, the board goes on without it.
async fn kept(state: &AppState, view: &mut View, schema: &Schema) -> Result<Kept, Problem> {
    let Some(Edited { seq, revision }) = view.edited else {
        return Ok(if view.saved.is_some() { Kept::Saved } else { Kept::Unsaved });
    };
    let Some(stored) = state.store.saved_outfits().get(seq).await? else {
        view.edited = None;
        view.ignored.push("the saved outfit, which no longer exists".to_owned());
        return Ok(Kept::Unsaved);
    };
    // The own change comes back, too: by the browser's Back, for one.
    if stored.deleted_at.is_none() && is_shown(&stored, view, schema) {
        view.edited = Some(Edited { seq, revision: stored.revision });
        return Ok(Kept::Saved);
    }
    Ok(if stored.revision == revision { Kept::Unsaved } else { Kept::Outdated })
}

/// Whether the page shows what is stored.
fn is_shown(SavedOutfit { outfit, .. }: &SavedOutfit, view: &View, schema: &Schema) -> bool {
    outfit.customer == view.customer
        && outfit.slots.as_slice().iter().map(Slot::article).eq(view.slots.iter().map(Option::as_ref))
        && outfit.features == address::features(&view.own, schema)
}

/// The question that the address asks: its features override those of the profile.
fn question(view: &View, stored: &Stored, schema: &Schema, with_changes: bool, request: Request) -> Request {
    let (profile, given) = override_features(view, stored, schema, with_changes);
    let stored = Stored::new(profile, stored.bought.clone());
    Request { stored: Some(Arc::new(stored)), given: Some(given), ..request }
}

/// The profile with the features that the address changes.
fn shown_features(view: &View, stored: &Stored, schema: &Schema) -> Features {
    let (profile, given) = override_features(view, stored, schema, true);
    profile.overridden_by(given)
}

/// The profile, and the features that override it. A feature that the address marks as not given is removed from the
/// profile.
fn override_features(
    view: &View,
    stored: &Stored,
    schema: &Schema,
    with_changes: bool,
) -> (Features, Features) {
    let (mut profile, mut overrides) = (stored.features.clone(), view.own.clone());
    if with_changes {
        overrides.extend(view.changed.clone());
    }
    overrides.retain(|name, words| {
        let removed = words.iter().any(|word| word == address::NOT_GIVEN);
        if removed {
            profile.remove(name);
        }
        !removed
    });
    (profile, address::features(&overrides, schema))
}

/// Refused articles in the list beside the suggestions.
const LISTED: usize = 40;
/// Customers on a page of a search.
const FOUND: usize = 12;
/// The most customers before such a page.
const MOST_SKIPPED: usize = 10_000_000;

/// The customers whose id or profile has every word, and without words the queue.
async fn find(
    state: &AppState,
    visitor: &Visitor,
    Named { view, schema, .. }: &Named,
) -> Result<Content, Problem> {
    let skip = view.page.unwrap_or(1).saturating_sub(1).saturating_mul(FOUND).min(MOST_SKIPPED);
    let page = (skip, FOUND);
    let found = search::customers(&state.store, schema, state.synonyms(), &view.find, page).await?;
    let pager = Pager::new(view.page, found.count, FOUND, found.is_cut, &state.notation, |page| {
        view.with(|view| view.page = Some(page)).href()
    });
    let customers = found.rows.iter().map(|customer| CustomerView::new(customer, schema)).collect();
    let queue = match &*view.find {
        "" => Some(queue::queue(state, visitor.person.id, schema).await?),
        _ => None,
    };
    Ok(Content::Find { customers, pager, queue, new_outfit: view.new_outfit(state.now()).href() })
}

#[derive(Deserialize)]
struct Judgement {
    /// The query of the studio's address.
    view: String,
    refused: Option<String>,
    /// A refusal to take back.
    undone: Option<String>,
    /// Why the latest refusal was made.
    reason: Option<String>,
}

fn parse<T: FromStr<Err = String>>(parameter: &str, value: &str) -> Result<T, Problem> {
    value.parse().map_err(|detail| Problem::invalid(vec![Finding::parameter(parameter, detail)]))
}

/// Records a refusal as feedback, or takes it back. A refused article is no longer suggested for the customer; without a
/// customer, or where nothing counts, while the address says so.
async fn feedback(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Form(Judgement { view, refused, undone, reason }): Form<Judgement>,
) -> Result<Response, Problem> {
    // The best ideas change with what is refused.
    let view = View::parse(&view)?;
    let just = view.refused.clone();
    let view = view.with_best_sets();
    let (store, now) = (state.store.by(visitor.author()), state.now());
    let customer = view.customer.as_ref();
    let (slot, next) = match (refused, undone, reason) {
        (None, None, Some(reason)) => {
            let reason: RefusalReason = parse("reason", &reason)?;
            let Some(refusal) = just else {
                return Err(Problem::new(Kind::Invalid, "nothing was refused just now"));
            };
            store.feedback().give_reason(&refusal_key(&refusal.name), reason, now).await?;
            (refusal.slot, View { refused: Some(refusal), ..view.with(|_| ()) })
        }
        (Some(refused), None, None) => {
            let refusal: Refusal = parse("refused", &refused)?;
            let Refusal { slot, name, article } = &refusal;
            judge(&store, state.releases(), name, article, None, FeedbackKind::Rejected, now).await?;
            let is_remembered = match customer.filter(|_| !view.trial) {
                Some(id) => state.store.customers().get(id).await?.is_some(),
                None => false,
            };
            let next = view.with(|view| {
                if !is_remembered {
                    view.left_out.push(refusal.clone());
                }
                view.refused = Some(refusal.clone());
            });
            (*slot, next)
        }
        (None, Some(undone), None) => {
            let Refusal { slot, name, article } = parse("undone", &undone)?;
            let key = refusal_key(&name);
            store.feedback().withdraw_refusal(&key, customer, &article, now).await?;
            let next = view.with(|view| {
                view.filter.exclude.retain(|other| *other != article);
                view.left_out.retain(|other| other.article != article);
            });
            (slot, next)
        }
        _ => return Err(Problem::new(Kind::Invalid, "send one of `refused`, `undone` and `reason`")),
    };
    // Without scripts the browser goes to where the click was.
    let part = if next.slots.is_empty() { "refused-title".to_owned() } else { format!("blank-{slot}") };
    Ok(Redirect::to(&format!("{}#{part}", next.href())).into_response())
}
