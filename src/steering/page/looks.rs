//! `/merchandising/looks`: what editors have published, in its order; and a saved outfit as a look.

use askama::Template;
use atelier_core::domain::{ArticleId, LookName};
use axum::{
    extract::State as Shared,
    response::{Html, Redirect},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Current, LOOK, LOOKS as LIST, Tab, documents};
use crate::{
    catalogue::page::article_view::{self, ArticleView},
    people::page::visitor::Merchandiser,
    platform::{
        http::{AppState, Kind, Problem},
        page::{
            form::{self, Form, PageQuery},
            pager::Pager,
            shell::{Page, Shell},
        },
    },
    steering::{
        documents::{of_stored, read_all},
        looks::{Look, State},
    },
};

const ON_A_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "steering/looks.html")]
struct LooksPage {
    shell: Shell,
    tab: Tab,
    looks: Vec<LookView>,
    pager: Pager,
    zone: &'static str,
}

struct LookView {
    name: String,
    href: String,
    look: Look,
    articles: Vec<ArticleView>,
    now: Current,
    is_published: bool,
}

impl LookView {
    fn new(name: &LookName, look: Look, articles: Vec<ArticleView>, app: &AppState) -> Self {
        let is_published = look.state == State::Published;
        let state = if is_published { "published" } else { "draft" };
        Self {
            name: name.to_string(),
            href: form::address(LOOK, &[("name", name.as_str())]),
            articles,
            now: Current::new(state, is_published, &look.window(), app),
            is_published,
            look,
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct LooksQuery {
    page: Option<usize>,
}

pub(super) async fn list(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    PageQuery(query): PageQuery<LooksQuery>,
) -> Result<Html<String>, Problem> {
    let mut looks = read_all::<Look>(&state.store).await?;
    looks.sort_by(|(a, x), (b, y)| {
        (x.state == State::Draft, x.order, a).cmp(&(y.state == State::Draft, y.order, b))
    });
    let count = looks.len();
    let pager = Pager::new(query.page, count, ON_A_PAGE, false, &state.notation, |page| {
        form::address(LIST, &LooksQuery { page: (page > 1).then_some(page) })
    });
    looks = looks.into_iter().skip(pager.first()).take(ON_A_PAGE).collect();
    let named = looks.iter().flat_map(|(_, look)| &look.articles).filter_map(|id| ArticleId::new(id).ok());
    let mut articles = load_articles(&state, named.collect()).await?.into_iter();
    let view = |(name, look): (LookName, Look)| {
        let articles = articles.by_ref().take(look.articles.len()).collect();
        LookView::new(&name, look, articles, &state)
    };
    let page = LooksPage {
        shell: visitor.shell(Page::Merchandising),
        tab: Tab::Looks,
        looks: looks.into_iter().map(view).collect(),
        pager,
        zone: state.zone.name(),
    };
    Ok(Html(page.render()?))
}

/// Articles by their ids or those of variants.
pub(super) async fn load_articles(
    state: &AppState,
    mut ids: Vec<ArticleId>,
) -> Result<Vec<ArticleView>, Problem> {
    let articles = state.store.articles().named(&ids).await?;
    for id in &mut ids {
        *id = articles.get(id).unwrap_or(id).clone();
    }
    article_view::load(state, &ids).await
}

#[derive(Deserialize)]
pub(super) struct LookForm {
    name: String,
    state: Option<State>,
    order: Option<u32>,
}

/// Publishes a look, takes it back, or gives it another place.
pub(super) async fn change(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(LookForm { name, state: next, order }): Form<LookForm>,
) -> Result<Redirect, Problem> {
    let name = documents::parse_name(&name)?;
    let make = of_stored(move |look: Look| Look {
        state: next.unwrap_or(look.state),
        order: order.unwrap_or(look.order),
        ..look
    });
    documents::save_at_once((&state, &visitor), &name, false, make).await?;
    Ok(Redirect::to(LIST))
}

#[derive(Deserialize)]
pub(super) struct PublishForm {
    outfit: i64,
}

/// Publishes a saved outfit, or what it has become since then.
pub(super) async fn publish(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(PublishForm { outfit }): Form<PublishForm>,
) -> Result<Redirect, Problem> {
    let gone = || Problem::new(Kind::NotFound, format!("there is no outfit {outfit}"));
    let saved = state.store.saved_outfits().get(outfit).await?;
    let saved = saved.filter(|saved| saved.deleted_at.is_none()).ok_or_else(gone)?;
    let name = LookName::new(format!("outfit-{outfit}")).expect("a number is a name; this is a bug");
    // A customer's outfit may be named after them.
    let title = saved.name.filter(|_| saved.outfit.customer.is_none()).map(|name| name.to_string());
    let articles: Vec<String> = saved.outfit.slots.articles().map(ToString::to_string).collect();
    let make = move |stored: Option<Value>| {
        let look: Look = stored.and_then(|body| serde_json::from_value(body).ok()).unwrap_or_default();
        Ok(Look {
            articles: articles.clone(),
            title: look.title.or(title.clone()),
            state: State::Published,
            ..look
        })
    };
    documents::save_at_once((&state, &visitor), &name, false, make).await?;
    Ok(Redirect::to(LIST))
}
