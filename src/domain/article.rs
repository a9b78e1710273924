//! An article as the shop describes it.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::ArticleId;

/// An article: its id, its type (`coat`, `sneaker`, …), and its other attributes.
///
/// Attributes are free JSON, because every shop has different ones. Models never see them; filters and pages
/// read the ones they find.
#[derive(Debug, Clone, PartialEq)]
pub struct Article {
    pub id: ArticleId,
    kind: String,
    attributes: Map<String, Value>,
}

/// Why an article is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArticleError {
    #[error(
        "an article's type cannot be empty, begin or end with a space, or contain control characters or '|'; found {0:?}"
    )]
    Type(String),
    #[error("an attribute cannot be named {0:?}: every article has a field of that name")]
    Reserved(String),
}

impl Article {
    /// # Errors
    /// If the type is empty or unprintable, or an attribute is named `id` or `type`.
    pub fn new(
        id: ArticleId,
        kind: impl Into<String>,
        attributes: Map<String, Value>,
    ) -> Result<Self, ArticleError> {
        let kind = kind.into();
        if kind.is_empty() || kind.trim() != kind || kind.chars().any(|c| c.is_control() || c == '|') {
            return Err(ArticleError::Type(kind));
        }
        if let Some(name) = ["id", "type"].into_iter().find(|name| attributes.contains_key(*name)) {
            return Err(ArticleError::Reserved(name.into()));
        }
        Ok(Self { id, kind, attributes })
    }

    /// The article's type; named `kind` in code, where `type` is a keyword.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name)
    }

    pub fn price(&self) -> Option<f64> {
        self.attribute("price")?.as_f64()
    }

    /// The string values of a field or attribute: one, several or none. A schema's `excludes` (no-gos) is
    /// compared with these.
    pub fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        let one =
            if name == "type" { Some(self.kind()) } else { self.attribute(name).and_then(Value::as_str) };
        let many = self.attribute(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        one.into_iter().chain(many.iter().filter_map(Value::as_str))
    }
}

/// One JSON object: the fields, then the attributes.
impl Serialize for Article {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let own = [("id", self.id.as_str()), ("type", self.kind())];
        serializer.collect_map(
            own.into_iter()
                .map(|(name, text)| (name, Field::Text(text)))
                .chain(self.attributes.iter().map(|(name, value)| (name.as_str(), Field::Value(value)))),
        )
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Text(&'a str),
    Value(&'a Value),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn article(kind: &str, attributes: Value) -> Result<Article, ArticleError> {
        let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
        Article::new(ArticleId::new("a-1").unwrap(), kind, attributes)
    }

    #[test]
    fn attributes_are_free_except_for_field_names() {
        let coat =
            article("coat", json!({"colour": "red", "price": 79.9, "material": ["wool", "silk"]})).unwrap();
        assert_eq!(coat.price(), Some(79.9));
        assert_eq!(coat.words("type").collect::<Vec<_>>(), ["coat"]);
        assert_eq!(coat.words("colour").collect::<Vec<_>>(), ["red"]);
        assert_eq!(coat.words("material").collect::<Vec<_>>(), ["wool", "silk"]);
        assert_eq!(coat.words("brand").count(), 0);
        assert_eq!(article("coat", json!({"type": "x"})), Err(ArticleError::Reserved("type".into())));
        assert_eq!(article(" ", json!({})), Err(ArticleError::Type(" ".into())));
    }
}
