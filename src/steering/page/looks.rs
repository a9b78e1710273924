//! `/merchandising/looks`: what editors have published, in its order.

use askama::Template;
use atelier_core::domain::{ArticleId, LookName};
use axum::{
    extract::State as Shared,
    response::{Html, Redirect},
};
use serde::{Deserialize, Serialize};

use super::{Current, LOOK, LOOKS as LIST, PUT_LOOK, Tab, UNDO_LOOK, documents, words::requests};
use crate::{
    catalogue::page::article_view::{self, ArticleView},
    people::page::visitor::Merchandiser,
    platform::{
        http::{AppState, Problem},
        page::{
            change::{self, Undo},
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
    undo: Option<Undo>,
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
    undo: Option<i64>,
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
        form::address(LIST, &LooksQuery { page: (page > 1).then_some(page), undo: None })
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
        undo: documents::offer((&state, &visitor), PUT_LOOK, query.undo, UNDO_LOOK).await?,
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
    order: u32,
}

/// The pages, customers and times of a look, in sentences.
pub(super) fn tell(look: &Look, state: &AppState) -> Vec<String> {
    let requests = requests(&look.when, &state.notation).join(", and ");
    let to = if requests.is_empty() { "all customers".to_owned() } else { format!("customers {requests}") };
    let Current { starts, ends, .. } = Current::new("published", true, &look.window(), state);
    let when = |at: Option<String>, else_: &str| at.map_or_else(|| else_.to_owned(), |at| format!("at {at}"));
    vec![
        format!("The product pages of its {} articles show it to {to}.", look.articles.len()),
        format!("It starts {} and ends {}.", when(starts, "at once"), when(ends, "never")),
    ]
}

/// Gives a look another place.
pub(super) async fn change(
    Merchandiser(visitor): Merchandiser,
    Shared(state): Shared<AppState>,
    Form(LookForm { name, order }): Form<LookForm>,
) -> Result<Redirect, Problem> {
    let name = documents::parse_name(&name)?;
    let make = of_stored(move |look: Look| Look { order, ..look });
    documents::save_at_once((&state, &visitor), &name, false, make).await?;
    change::made(&state, visitor.author(), PUT_LOOK, LIST).await
}
