//! An article as its JSON text. A catalogue keeps every article of the shop, and a map of attributes takes several times
//! the memory of their text.

use std::ops::Range;

use atelier_core::domain::{Article, ArticleId, Embedding, Variant};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

/// A variant, as requests look at it.
#[derive(Debug, Clone)]
pub struct Offer {
    pub variant: Variant,
    pub words: Box<[(String, Vec<String>)]>,
    /// Where it is in the article's JSON.
    range: Range<usize>,
}

#[derive(Debug, Clone)]
pub struct PackedArticle {
    pub id: ArticleId,
    kind: Box<str>,
    /// Without the embedding.
    json: Box<RawValue>,
    /// The length of the id and the type in it, with the opening brace.
    own_length: usize,
    offers: Box<[Offer]>,
    embedding: Option<Embedding>,
}

/// Of each list of an embedding, by name, its direction in bytes: enough to compare articles, in a quarter of the memory.
#[derive(Debug, Clone, Default)]
pub struct Directions(Box<[Direction]>);

type Direction = (Box<str>, Box<[i8]>);

impl PackedArticle {
    /// Its entries for baskets; empty if the article itself is one.
    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// Says whether a variant is in stock, in this store if one is named. The article may say itself what there is of each size.
    pub fn stock<'a>(&self, store: Option<&'a str>) -> impl Fn(&Offer) -> bool + use<'a> {
        let whole = (!self.offers.iter().any(|offer| offer.variant.says_stock())).then(|| self.unpack());
        move |offer| match &whole {
            Some(article) => article.offers(&offer.variant, store),
            None => offer.variant.is_in_stock(store),
        }
    }

    /// A variant's fields, and whether it is in stock.
    pub fn describe(&self, offer: &Offer, in_stock: bool) -> Box<RawValue> {
        let fields = &self.json.get()[offer.range.clone()][1..];
        let text = format!("{{\"in_stock\":{in_stock},{fields}");
        RawValue::from_string(text).expect("a variant is an object with an id")
    }

    /// All but its embedding.
    pub fn json(&self) -> &RawValue {
        &self.json
    }

    /// The article's type.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// About how many bytes it takes in a catalogue, apart from its rows in models' tables. Measured: docs/performance.md.
    pub fn memory(&self) -> usize {
        /// A catalogue's bytes for every article and every variant: ids, positions, places in sets.
        const OF_ARTICLE: usize = 1000;
        const OF_VARIANT: usize = 550;
        let numbers = self.embedding.iter().flat_map(Embedding::lists).map(|(_, list)| list.len());
        let numbers: usize = numbers.sum();
        OF_ARTICLE + self.id.as_str().len() + self.json.get().len() + OF_VARIANT * self.offers.len() + numbers
    }

    /// Without its embedding, which takes more memory than the rest.
    pub fn without_embedding(self) -> Self {
        Self { embedding: None, ..self }
    }

    /// Whether an article of this type and with this JSON of its attributes is the same, but for the embedding. Also false
    /// if the same is written otherwise.
    pub fn is_written_as(&self, kind: &str, attributes: &str) -> bool {
        let Some(fields) = attributes.strip_prefix('{') else { return false };
        let comma = usize::from(fields != "}");
        let json = self.json.get();
        *self.kind == *kind && json.len() == self.own_length + comma + fields.len() && json.ends_with(fields)
    }

    pub fn unpack(&self) -> Article {
        let mut fields: Map<String, Value> =
            serde_json::from_str(self.json.get()).expect("it was written from an article");
        fields.retain(|name, _| !["id", "type"].contains(&name.as_str()));
        Article::new(self.id.clone(), &*self.kind, fields)
            .expect("it was written from an article")
            .with_embedding(self.embedding.clone())
    }
}

/// First fields of every article.
#[derive(Serialize)]
struct Own<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

impl From<&Article> for PackedArticle {
    fn from(article: &Article) -> Self {
        let json = to_raw_value(article).expect("an article is plain JSON");
        let own = Own { id: article.id.as_str(), kind: article.kind() };
        let own = to_raw_value(&own).expect("two texts are plain JSON");
        let embedding = article.embedding().cloned();
        // Without the closing brace.
        let own_length = own.get().len() - 1;
        let offers = article.attribute("variants").map(|_| find_offers(json.get())).unwrap_or_default();
        Self { id: article.id.clone(), kind: article.kind().into(), json, own_length, offers, embedding }
    }
}

impl Directions {
    pub fn new(embedding: Option<&Embedding>) -> Self {
        let lists = embedding.into_iter().flat_map(Embedding::lists);
        Self(lists.map(|(name, list)| (name.into(), direction(list))).collect())
    }

    /// How alike the embeddings of two articles are, from -1 to 1: the mean over the lists that both have. None without any.
    pub fn likeness(&self, other: &Self) -> Option<f64> {
        let theirs = |name: &str| other.0.iter().find(|(own, _)| **own == *name);
        let shared = self.0.iter().filter_map(|(name, own)| {
            let (_, theirs) = theirs(name).filter(|(_, theirs)| theirs.len() == own.len())?;
            let product = |a: &[i8], b: &[i8]| {
                f64::from(a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>())
            };
            let lengths = (product(own, own) * product(theirs, theirs)).sqrt();
            (lengths > 0.0).then(|| product(own, theirs) / lengths)
        });
        let shared: Vec<f64> = shared.collect();
        let count = u32::try_from(shared.len()).ok().filter(|count| *count > 0)?;
        Some(shared.iter().sum::<f64>() / f64::from(count))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a share of 127")]
fn direction(list: &[f32]) -> Box<[i8]> {
    let most = list.iter().fold(f32::MIN_POSITIVE, |most, number| most.max(number.abs()));
    list.iter().map(|number| (number / most * 127.0).round() as i8).collect()
}

/// The variants in an article's JSON.
fn find_offers(json: &str) -> Box<[Offer]> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow)]
        variants: Vec<&'a RawValue>,
    }
    let found = serde_json::from_str::<Fields<'_>>(json).map(|fields| fields.variants).unwrap_or_default();
    let offer = |raw: &RawValue| {
        let variant: Variant = serde_json::from_str(raw.get()).ok()?;
        let start = raw.get().as_ptr().addr() - json.as_ptr().addr();
        Some(Offer { words: variant.words().into(), variant, range: start..start + raw.get().len() })
    };
    found.into_iter().filter_map(offer).collect()
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

    fn coat(attributes: Value) -> Article {
        let Value::Object(attributes) = attributes else { panic!("an object") };
        Article::new(ArticleId::new("a-\"1\"").unwrap(), "coat", attributes).unwrap()
    }

    #[test]
    fn an_article_is_unpacked_as_it_was() {
        let article =
            coat(json!({"price": 12.5, "sizes": ["S", "M"], "name": "a \"coat\"", "embedding": [0.5, 2],
            "variants": [{"id": "1", "size": "S"}, {"id": "2", "size": "M", "link": "/2"}]}));
        let packed = PackedArticle::from(&article);
        assert_eq!(packed.unpack(), article);
        let variants: Vec<Variant> = packed.offers().iter().map(|offer| offer.variant.clone()).collect();
        assert_eq!(variants, article.variants());
        let second = packed.describe(&packed.offers()[1], true);
        assert_eq!(second.get(), r#"{"in_stock":true,"id":"2","link":"/2","size":"M"}"#);
        assert_eq!(serde_json::to_value(&packed).unwrap(), serde_json::to_value(&article).unwrap());
    }

    #[test]
    fn embeddings_are_compared_list_by_list() {
        let directions =
            |embedding: Value| Directions::new(coat(json!({"embedding": embedding})).embedding());
        let both = directions(json!({"image": [3, 4], "text": [0.001, 0]}));
        for (other, expected) in [
            (json!({"image": [30, 40]}), Some(1.0)),
            (json!({"image": [-4, 3], "text": [1, 0], "own": [1]}), Some(0.5)),
            (json!({"image": [3, 4, 0], "text": [0, 0]}), None),
            (json!([3, 4]), None),
        ] {
            let found = both.likeness(&directions(other.clone()));
            let rounded = found.map(|found: f64| (found * 50.0).round() / 50.0);
            assert_eq!(rounded, expected, "{other}: {found:?}");
        }
    }

    #[test]
    fn an_article_is_recognised_by_its_text() {
        let packed = PackedArticle::from(&coat(json!({"colour": "red", "price": 12.5})));
        assert!(packed.is_written_as("coat", r#"{"colour":"red","price":12.5}"#));
        for (kind, attributes) in [
            ("hat", r#"{"colour":"red","price":12.5}"#),
            ("coat", r#"{"price":12.5}"#),
            ("coat", r#"{"colour":"red","price":12.6}"#),
            ("coat", "{}"),
            ("coat", ""),
        ] {
            assert!(!packed.is_written_as(kind, attributes), "{attributes}");
        }
        let plain = PackedArticle::from(&coat(json!({})));
        assert!(plain.is_written_as("coat", "{}") && !plain.is_written_as("coat", r#"{"a":1}"#));
    }
}
