//! `/`: what this service holds, and a few outfits of it.

use askama::Template;
use axum::{extract::State, response::Html};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{AppState, Problem};
use crate::{
    domain::{Article, ArticleId},
    store::{OutfitRecord, Store},
};

/// How many outfits are shown.
const SAMPLE: u32 = 6;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(home))
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    articles: u64,
    customers: u64,
    outfits: u64,
    database: &'static str,
    release: Option<String>,
    onnx_runtime: &'static str,
    sample: Vec<Worn>,
}

/// An outfit in words.
struct Worn {
    customer: String,
    articles: Vec<String>,
}

/// What this service holds, as a page
#[utoipa::path(get, path = "/", tag = "documents", responses(
    (status = 200, description = "The page", body = String, content_type = "text/html"),
))]
async fn home(State(state): State<AppState>) -> Result<Html<String>, Problem> {
    let store = &state.store;
    let home = Home {
        articles: store.articles().count().await?,
        customers: store.customers().count().await?,
        outfits: store.outfits().count().await?,
        database: store.kind(),
        release: state.offers.current().map(|offer| offer.name().to_owned()),
        onnx_runtime: state.offers.engine().onnx_runtime().build_info(),
        sample: sample(store).await?,
    };
    Ok(Html(home.render()?))
}

async fn sample(store: &Store) -> Result<Vec<Worn>, Problem> {
    let records = store.outfits().first(SAMPLE).await?;
    let ids: Vec<ArticleId> = records.iter().flat_map(|record| record.outfit.articles()).cloned().collect();
    let articles = store.articles().get_many(&ids).await?;
    let article = |id: &ArticleId| words(id, articles.iter().find(|article| article.id == *id));
    let worn = |record: &OutfitRecord| Worn {
        customer: record.outfit.customer.to_string(),
        articles: record.outfit.articles().iter().map(article).collect(),
    };
    Ok(records.iter().map(worn).collect())
}

/// An outfit may name an article that has left the catalogue.
fn words(id: &ArticleId, article: Option<&Article>) -> String {
    let Some(article) = article else { return format!("{id}, no longer in the catalogue") };
    let about = ["colour", "material"].into_iter().flat_map(|name| article.words(name));
    let mut words: Vec<&str> = about.collect();
    words.push(article.kind());
    let brand: Vec<&str> = article.words("brand").collect();
    if brand.is_empty() { words.join(" ") } else { format!("{}, {}", words.join(" "), brand.join(" ")) }
}
