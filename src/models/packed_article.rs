//! An article as its JSON text. A catalogue keeps every article of the shop, and a map of attributes takes several times
//! the memory of their text.

use serde::{Serialize, Serializer};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use crate::domain::{Article, ArticleId};

#[derive(Debug, Clone)]
pub struct PackedArticle {
    pub id: ArticleId,
    kind: Box<str>,
    /// Without the embedding.
    json: Box<RawValue>,
    embedding: Option<Box<[f32]>>,
}

impl PackedArticle {
    /// The article's type.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Without its embedding, which takes more memory than the rest.
    pub fn without_embedding(self) -> Self {
        Self { embedding: None, ..self }
    }

    pub fn unpack(&self) -> Article {
        let mut fields: Map<String, Value> =
            serde_json::from_str(self.json.get()).expect("it was written from an article; this is a bug");
        fields.retain(|name, _| !["id", "type"].contains(&name.as_str()));
        Article::new(self.id.clone(), &*self.kind, fields)
            .expect("it was written from an article; this is a bug")
            .with_embedding(self.embedding.clone())
    }
}

impl From<&Article> for PackedArticle {
    fn from(article: &Article) -> Self {
        let json = to_raw_value(article).expect("an article is plain JSON; this is a bug");
        let embedding = article.embedding().map(Box::from);
        Self { id: article.id.clone(), kind: article.kind().into(), json, embedding }
    }
}

impl PartialEq for PackedArticle {
    fn eq(&self, other: &Self) -> bool {
        self.json.get() == other.json.get()
    }
}

impl Serialize for PackedArticle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_article_is_unpacked_as_it_was() {
        let Value::Object(attributes) =
            json!({"price": 12.5, "sizes": ["S", "M"], "name": "a \"coat\"", "embedding": [0.5, 2]})
        else {
            panic!("an object")
        };
        let article = Article::new(ArticleId::new("a-1").unwrap(), "coat", attributes).unwrap();
        let packed = PackedArticle::from(&article);
        assert_eq!(packed.unpack(), article);
        assert_eq!(serde_json::to_value(&packed).unwrap(), serde_json::to_value(&article).unwrap());
    }
}
