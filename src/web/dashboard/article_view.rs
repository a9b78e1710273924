//! An article as a person sees it.

use crate::domain::{Article, ArticleId};

/// What the macros of `parts/article.html` show.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArticleView {
    pub(super) id: String,
    /// Its name, or else its attributes in words.
    pub(super) name: String,
    /// Its type in words: `trench coat`.
    pub(super) kind: String,
    /// Brand, material and colour, as far as they are known.
    pub(super) about: String,
    pub(super) price: Option<String>,
    pub(super) picture: String,
    pub(super) in_stock: bool,
}

impl ArticleView {
    pub(super) fn new(article: &Article) -> Self {
        let first = |name: &str| article.words(name).next().map(str::to_owned);
        let kind = article.kind().replace('-', " ");
        let about: Vec<String> = ["brand", "colour", "material"].into_iter().filter_map(first).collect();
        let name = first("name").unwrap_or_else(|| {
            let words = [first("colour"), first("material"), Some(kind.clone())];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        Self {
            id: article.id.to_string(),
            name,
            about: about.join(", "),
            price: article.price().map(|price| format!("{price:.2}")),
            picture: picture(article),
            in_stock: article
                .attribute("in_stock")
                .is_none_or(|there| there != &serde_json::Value::Bool(false)),
            kind,
        }
    }

    /// For an id that names nothing any more.
    pub(super) fn gone(id: &ArticleId) -> Self {
        Self {
            id: id.to_string(),
            name: "no longer in the catalogue".into(),
            kind: "article".into(),
            about: String::new(),
            price: None,
            picture: "/pictures/article.svg".to_owned(),
            in_stock: false,
        }
    }
}

/// The article's own photo, or where it is drawn.
fn picture(article: &Article) -> String {
    let photo = article.words("image").next().filter(|image| image.starts_with("https://"));
    if let Some(photo) = photo {
        return photo.to_owned();
    }
    let mut look = form_urlencoded::Serializer::new(String::new());
    for name in ["colour", "pattern", "material"] {
        if let Some(word) = article.words(name).next() {
            look.append_pair(name, word);
        }
    }
    let kind: String = form_urlencoded::byte_serialize(article.kind().as_bytes()).collect();
    format!("/pictures/{kind}.svg?{}", look.finish())
}
