//! An article as the shop describes it.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};

use super::{
    ArticleId,
    embedding::{self, Embedding},
    fold, fold_size, json_number,
    price::read_price,
    stock::{Counted, in_json, read_counts, read_stock},
    variant::{self, VARIANTS, Variant},
    words::{fold_type, fold_value, is_visible, separate_capitals, visit_words},
};

/// An article: its id, its type (`coat`, `sneaker`, …), and its other attributes.
///
/// Attributes are free JSON, because every shop has different ones. Models never see them; filters and pages
/// read the ones they find.
#[derive(Debug, Clone, PartialEq)]
pub struct Article {
    pub id: ArticleId,
    kind: String,
    attributes: Map<String, Value>,
    /// Encoders made it. Not among the attributes: it has kilobytes, and only models read it.
    embedding: Option<Embedding>,
}

/// Why an article is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArticleError {
    #[error(
        "an article's type cannot be empty or invisible, begin or end with a space, or contain control characters or '|'; found {0:?}"
    )]
    Type(String),
    #[error("an article's type has at most {MOST_TYPE} bytes; found {0}")]
    LongType(usize),
    #[error("an attribute cannot be named {0:?}: every article has a field of that name")]
    Reserved(String),
    #[error("{reason}")]
    Attribute { name: &'static str, reason: String },
}

/// A catalogue keeps a type in several forms.
const MOST_TYPE: usize = 200;
pub(super) const PRICE: &str = "price";
pub(super) const IN_STOCK: &str = "in_stock";
const EMBEDDING: &str = "embedding";
pub(super) const STOCK: &str = "stock";
pub(super) const ALL_SIZES: &str = "sizes";

impl Article {
    pub fn new(
        id: ArticleId,
        kind: impl Into<String>,
        mut attributes: Map<String, Value>,
    ) -> Result<Self, ArticleError> {
        let kind = kind.into();
        if !kind.contains(is_visible)
            || kind.trim() != kind
            || kind.chars().any(|c| c.is_control() || c == '|')
        {
            return Err(ArticleError::Type(kind));
        }
        if kind.len() > MOST_TYPE {
            return Err(ArticleError::LongType(kind.len()));
        }
        if let Some(name) = ["id", "type"].into_iter().find(|name| attributes.contains_key(*name)) {
            return Err(ArticleError::Reserved(name.into()));
        }
        let embedding = attributes.get(EMBEDDING).and_then(Embedding::read);
        if embedding.is_some() {
            attributes.remove(EMBEDDING);
        }
        Ok(Self { id, kind, attributes, embedding })
    }

    /// The article's type; named `kind` in code, where `type` is a keyword.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    pub fn embedding(&self) -> Option<&Embedding> {
        self.embedding.as_ref()
    }

    /// With an embedding, or without one: it takes more memory than the rest.
    pub fn with_embedding(self, embedding: Option<Embedding>) -> Self {
        Self { embedding, ..self }
    }

    /// All that files and the database keep: the attributes, and the embedding.
    pub fn kept_attributes(&self) -> Cow<'_, Map<String, Value>> {
        let Some(embedding) = &self.embedding else { return Cow::Borrowed(&self.attributes) };
        let mut kept = self.attributes.clone();
        kept.insert(EMBEDDING.to_owned(), embedding.to_json());
        Cow::Owned(kept)
    }

    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name)
    }

    /// That of its dearest variant: a limit of prices must hold for what is bought. None if it has no price, or one that cannot be
    /// read: databases and releases hold articles from before prices were checked.
    pub fn price(&self) -> Option<f64> {
        read_price(self.attribute(PRICE)?).ok()
    }

    /// Whether `in_stock` and `stock` say so, in any size and store. True if the article does not say. A stored value that
    /// cannot be read is not in stock, and an old count in `in_stock` is if it is above 0.
    pub fn in_stock(&self) -> bool {
        let is_flagged = self.given(IN_STOCK).is_none_or(|value| {
            read_stock(value).unwrap_or_else(|_| value.as_f64().is_some_and(|count| count > 0.0))
        });
        is_flagged && self.stock().is_none_or(|counts| counts.iter().any(|count| count.is_any))
    }

    /// The counts by size and store, or those of its variants; none of them if they cannot be read. None if the article does
    /// not say.
    pub fn stock(&self) -> Option<Vec<Counted>> {
        let stock = self.given(STOCK);
        let variants = self.variants();
        if !variants.is_empty() && (stock.is_none() || variant::say_stock(&variants)) {
            return Some(variants.iter().flat_map(Variant::counted).collect());
        }
        Some(read_counts(stock?).unwrap_or_default())
    }

    /// Whether one of its variants is in stock, which may only say so by its size in the article's own stock.
    pub fn offers(&self, variant: &Variant, store: Option<&str>) -> bool {
        let sizes = variant.size.as_deref().and_then(fold_size).unwrap_or_default();
        let store = store.map(fold);
        let Some(counts) = self.given(STOCK).map(|stock| read_counts(stock).unwrap_or_default()) else {
            return self.in_stock();
        };
        let names_sizes = counts.iter().any(|count| !count.words.is_empty());
        let is_of_size = |count: &Counted| {
            !names_sizes || count.words.iter().flat_map(|(_, words)| words).any(|word| sizes.contains(word))
        };
        let is_there = |count: &Counted| store.is_none() || count.store.is_none() || count.store == store;
        self.in_stock() && counts.iter().any(|count| count.is_any && is_of_size(count) && is_there(count))
    }

    /// Its entries for baskets; empty if the article itself is one.
    pub fn variants(&self) -> Vec<Variant> {
        self.given(VARIANTS).map(variant::parse).unwrap_or_default()
    }

    /// The ids by which it is known besides its own.
    pub fn variant_ids(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.given(VARIANTS).into_iter().flat_map(variant::ids)
    }

    /// An attribute that is not null.
    fn given(&self, name: &str) -> Option<&Value> {
        self.attribute(name).filter(|value| !value.is_null())
    }

    /// Turns price, `in_stock` and `stock` into a number, a boolean and counts. Variants get their stored form, and the
    /// article's sizes, stock and price follow from theirs. Every way in calls it; what is stored may be older.
    pub fn normalise(&mut self) -> Result<(), ArticleError> {
        let price = |value: &Value| read_price(value).map(|price| Value::from(json_number(price)));
        self.replace(PRICE, price)?;
        self.replace(VARIANTS, variant::normalise)?;
        self.sum_up();
        self.replace(IN_STOCK, |value| read_stock(value).map(Value::Bool))?;
        self.replace(STOCK, |value| read_counts(value).and_then(|_| in_json(value).map(Cow::into_owned)))?;
        // One that can be read is no attribute any more.
        self.replace(EMBEDDING, |_| Err(embedding::EXPECTED.to_owned()))
    }

    /// Says of the article what its variants say.
    fn sum_up(&mut self) {
        let variants = self.variants();
        let sizes: Value = variant::sizes(&variants).into();
        if sizes != json!([]) {
            self.attributes.insert(ALL_SIZES.to_owned(), sizes);
        }
        if variant::say_stock(&variants) {
            match variant::total(&variants) {
                Some(stock) => self.attributes.insert(STOCK.to_owned(), stock),
                None => self.attributes.remove(STOCK),
            };
            let in_stock = variants.iter().any(|variant| variant.is_in_stock(None));
            self.attributes.insert(IN_STOCK.to_owned(), in_stock.into());
        }
        if let Some(dearest) = variants.iter().filter_map(|variant| variant.price).reduce(f64::max) {
            let own = self.attributes.insert(PRICE.to_owned(), json_number(dearest).into());
            // The article's price was that of the variants which say none.
            if variants.iter().any(|variant| variant.price.is_none())
                && let Some(own) = own.filter(|own| !own.is_null())
            {
                variant::set_prices(&mut self.attributes, &own);
                self.sum_up();
            }
        }
    }

    fn replace(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Value) -> Result<Value, String>,
    ) -> Result<(), ArticleError> {
        if let Some(value) = self.attributes.get_mut(name).filter(|value| !value.is_null()) {
            *value = read(value).map_err(|reason| ArticleError::Attribute { name, reason })?;
        }
        Ok(())
    }

    /// Its values of a field or attribute, or its variants' of an option.
    fn said(&self, name: &str) -> impl Iterator<Item = &Value> {
        let own = self.attribute(name);
        let variants = if own.is_none() { self.given(VARIANTS) } else { None };
        own.into_iter().chain(variants.into_iter().flat_map(move |variants| variant::said(variants, name)))
    }

    /// The texts of a field or attribute, at any depth.
    pub fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        let mut words = Vec::new();
        if name == "type" {
            words.push(self.kind());
        }
        for value in self.said(name) {
            visit_words(value, &mut |word| {
                if let Cow::Borrowed(text) = word {
                    words.push(text);
                }
            });
        }
        words.into_iter()
    }

    /// A field's or attribute's words, as compared with no-gos and the types of filters
    /// ([`fold_for`](super::fold_for)): its texts at any depth, the parts of texts that are lists, and the digits of its
    /// numbers.
    pub fn folded_words(&self, name: &str) -> Vec<String> {
        if name == "type" {
            return fold_type(&self.kind);
        }
        let mut words = Vec::new();
        for value in self.said(name) {
            visit_words(value, &mut |word| match word {
                Cow::Borrowed(text) => {
                    words.extend(fold_value(text));
                    words.extend(separate_capitals(text).iter().flat_map(|text| fold_value(text)));
                }
                Cow::Owned(digits) => words.push(digits),
            });
        }
        words
    }
}

/// One JSON object: the fields, then the attributes, without the embedding.
impl Serialize for Article {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("id", self.id.as_str())?;
        fields.serialize_entry("type", self.kind())?;
        self.attributes.iter().try_for_each(|(name, value)| fields.serialize_entry(name, value))?;
        fields.end()
    }
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
        let nested =
            article("coat", json!({"material": [["Leather"], {"outer": ["Wool/Silk", 7]}]})).unwrap();
        assert_eq!(nested.words("material").collect::<Vec<_>>(), ["Leather", "Wool/Silk", "outer"]);
        assert_eq!(nested.folded_words("material"), ["leather", "wool", "silk", "wool/silk", "7", "outer"]);
        let mut stored = article("coat", json!({"price": "64,55", "in_stock": "nein"})).unwrap();
        assert_eq!((stored.price(), stored.in_stock()), (Some(64.55), false));
        stored.normalise().unwrap();
        assert_eq!(Value::Object(stored.attributes), json!({"price": 64.55, "in_stock": false}));
        let mut odd = article("coat", json!({"price": "NaN", "in_stock": "perhaps"})).unwrap();
        assert_eq!((odd.price(), odd.in_stock()), (None, false));
        assert!(matches!(odd.normalise(), Err(ArticleError::Attribute { name: "price", .. })));
        let seen = article("coat", json!({"embedding": [0.5, -1], "colour": "red"})).unwrap();
        let own = seen.embedding().and_then(|embedding| embedding.list(""));
        assert_eq!((own, seen.attribute("embedding")), (Some(&[0.5, -1.0][..]), None));
        assert_eq!(
            serde_json::to_value(&seen).unwrap(),
            json!({"id": "a-1", "type": "coat", "colour": "red"})
        );
        let kept = Value::Object(seen.kept_attributes().into_owned());
        assert_eq!(kept, json!({"embedding": [0.5, -1], "colour": "red"}));
        assert_eq!(seen.with_embedding(None).embedding(), None);
        let mut blurred = article("coat", json!({"embedding": "a picture"})).unwrap();
        assert!(matches!(blurred.normalise(), Err(ArticleError::Attribute { name: "embedding", .. })));
        assert!(article("coat", json!({"in_stock": 3})).unwrap().in_stock(), "an old count");
        for (attributes, in_stock) in [
            (json!({"stock": {"M": 0, "L": 3}}), true),
            (json!({"stock": {"M": 0, "L": 0}, "in_stock": true}), false),
            (json!({"stock": 3, "in_stock": false}), false),
            (json!({"stock": {}}), false),
            (json!({"stock": "plenty"}), false),
            (json!({"stock": null}), true),
        ] {
            assert_eq!(article("coat", attributes.clone()).unwrap().in_stock(), in_stock, "{attributes}");
        }
        let variants = json!([{"id": "s"}, {"id": "l", "price": 95}]);
        for (price, expected) in [(20, [20, 95]), (99, [99, 95])] {
            let mut garment = article("coat", json!({"price": price, "variants": variants})).unwrap();
            garment.normalise().unwrap();
            let prices = expected.map(|price| Some(f64::from(price)));
            assert_eq!(garment.variants().iter().map(|variant| variant.price).collect::<Vec<_>>(), prices);
            assert_eq!(garment.price(), Some(f64::from(price.max(95))), "the dearest's");
        }
        let mut text = article("coat", json!({"stock": "{\"M\": 3}"})).unwrap();
        text.normalise().unwrap();
        assert_eq!(text.attribute("stock"), Some(&json!({"M": 3})));
        assert_eq!(article("coat", json!({"type": "x"})), Err(ArticleError::Reserved("type".into())));
        for kind in [" ", "", "\u{200b}"] {
            assert_eq!(article(kind, json!({})), Err(ArticleError::Type(kind.into())));
        }
        assert_eq!(article(&"é".repeat(101), json!({})), Err(ArticleError::LongType(202)));
    }
}
