//! `/studio/articles/{id}`: everything that the shop says of an article.

use askama::Template;
use atelier_core::domain::{Article, ArticleId};
use axum::{extract::State, response::Html};
use serde_json::Value;

use crate::{
    catalogue::page::article_view::ArticleView,
    people::page::visitor::Stylist,
    platform::page::wording::spaced,
    platform::{
        http::{AppState, Kind, Problem, extract::Path},
        page::{Page, Shell},
    },
};

/// Attributes that the page shows elsewhere.
const SHOWN: [&str; 6] = ["name", "image", "link", "price", "variants", "stock"];

#[derive(Template)]
#[template(path = "studio/article.html")]
struct ArticlePage {
    shell: Shell,
    article: ArticleView,
    photos: Vec<String>,
    link: Option<String>,
    /// Its other attributes in words.
    facts: Vec<(String, String)>,
    /// Its variants and its stock, with their titles.
    tables: Vec<(&'static str, Table)>,
}

/// The fields of a list's objects, and each object's values.
#[derive(Default)]
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

pub(super) async fn page(
    Stylist(visitor): Stylist,
    State(state): State<AppState>,
    Path(id): Path<ArticleId>,
) -> Result<Html<String>, Problem> {
    let stored = state.store.articles().get_stored(&id).await?;
    let article = stored.map(|stored| stored.value);
    let article = article.ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no article {id}")))?;
    let page = ArticlePage {
        shell: visitor.shell(Page::Studio),
        photos: https(&article, "image"),
        link: https(&article, "link").into_iter().next(),
        facts: facts(&article),
        tables: vec![("Variants", table(&article, "variants")), ("Stock", table(&article, "stock"))],
        article: ArticleView::new(&article, &state.notation),
    };
    Ok(Html(page.render()?))
}

/// The addresses in an attribute.
fn https(article: &Article, name: &str) -> Vec<String> {
    article.words(name).filter(|word| word.starts_with("https://")).map(str::to_owned).collect()
}

fn facts(article: &Article) -> Vec<(String, String)> {
    let attributes = article.attributes().iter().filter(|(name, _)| !SHOWN.contains(&name.as_str()));
    let facts = attributes.map(|(name, value)| (spaced(name), words(value)));
    facts.filter(|(_, words)| !words.is_empty()).collect()
}

/// The objects of a list, with a column for each field.
fn table(article: &Article, name: &str) -> Table {
    let Some(Value::Array(items)) = article.attribute(name) else { return Table::default() };
    let objects: Vec<_> = items.iter().filter_map(Value::as_object).collect();
    let mut heads: Vec<&String> = Vec::new();
    for field in objects.iter().flat_map(|object| object.keys()) {
        if !heads.contains(&field) {
            heads.push(field);
        }
    }
    let row = |object: &&serde_json::Map<String, Value>| {
        heads.iter().map(|field| object.get(*field).map(words).unwrap_or_default()).collect()
    };
    Table {
        rows: objects.iter().map(row).collect(),
        heads: heads.iter().map(|field| spaced(field)).collect(),
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{}: {}", spaced(name), words(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
    }
}
