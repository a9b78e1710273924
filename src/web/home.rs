//! `/`: what this service holds, and a few outfits of it.

use askama::Template;
use axum::{Router, extract::State, response::Html, routing::get};

use super::{AppState, Problem};
use crate::{
    domain::{Article, ArticleId},
    store::Store,
};

/// How many customers' outfits are shown.
const SAMPLE: u32 = 6;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/", get(home))
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

async fn home(State(state): State<AppState>) -> Result<Html<String>, Problem> {
    let store = &state.store;
    let home = Home {
        articles: store.articles().count().await?,
        customers: store.customers().count().await?,
        outfits: store.outfits().count().await?,
        database: store.kind(),
        release: state.release.map(|release| release.manifest().name.clone()),
        onnx_runtime: state.onnx_runtime.build_info(),
        sample: sample(store).await?,
    };
    Ok(Html(home.render()?))
}

async fn sample(store: &Store) -> Result<Vec<Worn>, Problem> {
    let mut sample = Vec::new();
    for customer in store.customers().list("", None, SAMPLE).await? {
        for record in store.outfits().of_customer(&customer.id, 0, 1).await? {
            let mut articles = Vec::new();
            for id in record.outfit.articles() {
                articles.push(words(id, store.articles().get(id).await?.as_ref()));
            }
            sample.push(Worn { customer: customer.id.to_string(), articles });
        }
    }
    Ok(sample)
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
