//! `/pictures/{type}.svg`: drawn garments, and the address of each article's picture.

use atelier_core::{
    domain::Article,
    drawing::garments::{self, Look},
};
use axum::{Router, response::Response, routing::get};
use serde::Deserialize;

use crate::platform::http::{
    AppState, Kind, Problem,
    conditions::{Conditions, Document},
    extract::{Path, Query},
};

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/pictures/{file}", get(picture))
}

pub(crate) fn photo_of(article: &Article) -> Option<&str> {
    article.words("image").find(|image| image.starts_with("https://"))
}

pub(crate) fn drawing_of(article: &Article) -> String {
    // Form encoding differs from path encoding only in spaces.
    let kind: String = form_urlencoded::byte_serialize(article.kind().as_bytes()).collect();
    let path = format!("/pictures/{}.svg", kind.replace('+', "%20"));
    let words = ["colour", "pattern", "material", "gender"]
        .into_iter()
        .filter_map(|name| Some((name, article.words(name).next()?)));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(words).finish();
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

/// A garment's attributes in a query. Any word is allowed; without a drawing for it the garment stays plain.
#[derive(Debug, Deserialize)]
struct Words {
    #[serde(default)]
    colour: String,
    #[serde(default)]
    pattern: String,
    #[serde(default)]
    material: String,
    #[serde(default)]
    gender: String,
}

async fn picture(
    Path(file): Path<String>,
    Query(words): Query<Words>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let Some(kind) = file.strip_suffix(".svg") else {
        let detail =
            format!("there is no /pictures/{file}; the name is an article type and .svg, such as coat.svg");
        return Err(Problem::new(Kind::NotFound, detail));
    };
    let Words { colour, pattern, material, gender } = &words;
    let svg = garments::garment(&Look { kind, colour, pattern, material, gender });
    Document::new("image/svg+xml", svg).answer("public, max-age=86400", &conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use atelier_core::domain::ArticleId;
    use serde_json::{Value, json};

    fn article(kind: &str, attributes: Value) -> Article {
        let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
        Article::new(ArticleId::new("a-1").unwrap(), kind, attributes).unwrap()
    }

    #[test]
    fn a_photo_has_a_safe_address() {
        let photo = "https://shop.example/1.jpg";
        let of = |image: Value| photo_of(&article("coat", json!({ "image": image }))).map(str::to_owned);
        assert_eq!(of(json!(photo)).as_deref(), Some(photo));
        assert_eq!(of(json!(["javascript:1", photo])).as_deref(), Some(photo));
        assert_eq!((of(json!("javascript:1")), of(json!(7))), (None, None));
    }

    #[test]
    fn a_path_has_the_known_attributes_only() {
        let photo = json!({"image": "https://shop.example/1.jpg", "colour": "red"});
        let all = json!({"price": 7, "gender": "men", "material": ["wool", "silk"], "colour": "light-blue",
            "pattern": "plain"});
        for (kind, attributes, path) in [
            ("coat", photo, "coat.svg?colour=red"),
            ("trench-coat", all, "trench-coat.svg?colour=light-blue&pattern=plain&material=wool&gender=men"),
            ("Ärmel / lang+?", json!({"colour": "a&b"}), "%C3%84rmel%20%2F%20lang%2B%3F.svg?colour=a%26b"),
        ] {
            assert_eq!(drawing_of(&article(kind, attributes)), format!("/pictures/{path}"));
        }
    }
}
