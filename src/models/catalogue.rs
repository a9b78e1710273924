//! The catalogue by a release's indices: the articles that the shop has, and the sets of them that filters need.
//!
//! Built from the database's articles and a release's vocabulary and schema. It is immutable: after a change in the
//! database, a new one is built.
//!
//! Must not know HTTP, SQL or models.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::domain::{Article, ArticleId, Features, Mask, Schema, Vocabulary, fold, fold_parts};

/// An article of the catalogue. Its JSON is cached: an answer has twenty articles, and the same ones are suggested
/// often.
#[derive(Debug)]
pub struct CatalogueArticle {
    article: Article,
    json: OnceLock<Box<RawValue>>,
}

impl From<Article> for CatalogueArticle {
    fn from(article: Article) -> Self {
        Self { article, json: OnceLock::new() }
    }
}

impl Deref for CatalogueArticle {
    type Target = Article;

    fn deref(&self) -> &Article {
        &self.article
    }
}

impl Serialize for CatalogueArticle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = || to_raw_value(&self.article).expect("an article is plain JSON; this is a bug");
        self.json.get_or_init(json).serialize(serializer)
    }
}

/// What no-gos exclude.
#[derive(Debug)]
pub struct RuledOut {
    pub articles: Mask,
    /// The no-gos that no article of the shop says, each with its attribute: a typo, perhaps.
    pub unmatched: Vec<(String, String)>,
}

/// Not an attribute, but compared like one.
const TYPE: &str = "type";

/// How the articles of a catalogue and of a release overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    pub both: usize,
    /// Articles that no model can suggest.
    pub only_catalogue: usize,
    /// Articles that the shop does not have.
    pub only_release: usize,
}

impl Coverage {
    /// Whether there are articles, and the release has none of them.
    pub fn is_none(self) -> bool {
        self.both == 0 && self.only_catalogue > 0
    }
}

/// The articles of the shop by the vocabulary's indices.
#[derive(Debug)]
pub struct Catalogue {
    articles: Vec<Option<Arc<CatalogueArticle>>>,
    /// Articles that are not in the vocabulary. No model can suggest them.
    unknown: HashMap<ArticleId, Arc<CatalogueArticle>>,
    present: Mask,
    /// One spelling of each type, by its folded form.
    types: HashMap<String, String>,
    /// NaN for articles without a price.
    prices: Vec<f64>,
    out_of_stock: Mask,
    /// Articles whose stored price or stock an import would refuse.
    unreadable: Vec<ArticleId>,
    /// By attribute and folded word, for the type and the attributes by which features of the schema exclude articles.
    /// It also has the words of unknown articles, with the empty set.
    words: HashMap<String, HashMap<String, Mask>>,
}

impl Catalogue {
    pub fn new(articles: impl Iterator<Item = Article>, vocabulary: &Vocabulary, schema: &Schema) -> Self {
        let length = vocabulary.len();
        let mut catalogue = Self {
            articles: vec![None; length],
            unknown: HashMap::new(),
            present: Mask::none(length),
            types: HashMap::new(),
            prices: vec![f64::NAN; length],
            out_of_stock: Mask::none(length),
            unreadable: Vec::new(),
            words: HashMap::new(),
        };
        let excluding = schema.features().iter().filter_map(|feature| feature.excludes.as_deref());
        let mut attributes: Vec<&str> = excluding.chain([TYPE]).collect();
        attributes.sort_unstable();
        attributes.dedup();
        for article in articles {
            if !article.is_readable() {
                catalogue.unreadable.push(article.id.clone());
            }
            let index = vocabulary.index_of(article.id.as_str());
            for &attribute in &attributes {
                catalogue.note_words(index, &article, attribute);
            }
            match index {
                Some(index) => catalogue.put(index, article),
                None => {
                    catalogue.unknown.insert(article.id.clone(), Arc::new(article.into()));
                }
            }
        }
        catalogue
    }

    fn note_words(&mut self, index: Option<u32>, article: &Article, attribute: &str) {
        let length = self.articles.len();
        for word in article.folded_words(attribute) {
            let words = self.words.entry(attribute.to_owned()).or_default();
            let mask = words.entry(word).or_insert_with(|| Mask::none(length));
            if let Some(index) = index {
                mask.insert(index);
            }
        }
    }

    fn put(&mut self, index: u32, article: Article) {
        self.present.insert(index);
        self.types.entry(fold(article.kind())).or_insert_with(|| article.kind().to_owned());
        self.prices[index as usize] = article.price().unwrap_or(f64::NAN);
        if !article.in_stock() {
            self.out_of_stock.insert(index);
        }
        self.articles[index as usize] = Some(Arc::new(article.into()));
    }

    /// None if the shop no longer has the article.
    pub fn article(&self, index: u32) -> Option<&Arc<CatalogueArticle>> {
        self.articles.get(index as usize)?.as_ref()
    }

    /// An article that the shop has but the release does not.
    pub fn unknown(&self, id: &ArticleId) -> Option<&Arc<CatalogueArticle>> {
        self.unknown.get(id)
    }

    /// The number of articles of a type that the shop has but the release does not.
    pub fn unknown_of_type(&self, kind: &str) -> usize {
        let kind = fold(kind);
        let has_type = |article: &CatalogueArticle| article.folded_words(TYPE).contains(&kind);
        self.unknown.values().filter(|article| has_type(article)).count()
    }

    pub fn coverage(&self) -> Coverage {
        let both = self.present.count();
        Coverage { both, only_catalogue: self.unknown.len(), only_release: self.articles.len() - both }
    }

    /// The articles of the vocabulary that the shop has.
    pub fn present(&self) -> &Mask {
        &self.present
    }

    /// The articles of a type in any case, or None if there are none. `Coat/Jacket` is of both types.
    pub fn of_type(&self, kind: &str) -> Option<&Mask> {
        self.words.get(TYPE)?.get(&fold(kind)).filter(|articles| articles.count() > 0)
    }

    /// In alphabetical order.
    pub fn types(&self) -> Vec<&str> {
        let mut types: Vec<&str> = self.types.values().map(String::as_str).collect();
        types.sort_unstable();
        types
    }

    pub fn out_of_stock(&self) -> &Mask {
        &self.out_of_stock
    }

    /// The articles whose stored price or stock an import would refuse.
    pub fn unreadable(&self) -> &[ArticleId] {
        &self.unreadable
    }

    /// The articles with a price within the limits.
    pub fn priced(&self, least: Option<f64>, most: Option<f64>) -> Mask {
        let mut mask = Mask::none(self.prices.len());
        for (index, price) in (0..).zip(&self.prices) {
            // Comparisons with NaN are false, so an unknown price is never within a limit.
            if *price >= least.unwrap_or(f64::NEG_INFINITY) && *price <= most.unwrap_or(f64::INFINITY) {
                mask.insert(index);
            }
        }
        mask
    }

    /// What the customer's features exclude (no-gos). A no-go excludes the articles that say it, all of it or one of its
    /// parts.
    pub fn ruled_out(&self, schema: &Schema, features: &Features) -> RuledOut {
        let mut ruled_out = RuledOut { articles: Mask::none(self.articles.len()), unmatched: Vec::new() };
        for (attribute, no_go) in schema.exclusions(features) {
            let words = self.words.get(attribute);
            let find = |word: &String| words.and_then(|words| words.get(word));
            let whole = find(&fold(&no_go));
            for part in fold_parts(&no_go) {
                let found = find(&part);
                if found.or(whole).is_none() {
                    ruled_out.unmatched.push((attribute.to_owned(), part));
                } else if let Some(articles) = found {
                    ruled_out.articles.unite(articles);
                }
            }
            if let Some(articles) = whole {
                ruled_out.articles.unite(articles);
            }
        }
        ruled_out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::FeatureValue;

    fn article(id: &str, kind: &str, attributes: Value) -> Article {
        let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
        Article::new(ArticleId::new(id).unwrap(), kind, attributes).unwrap()
    }

    #[test]
    fn articles_are_grouped_into_sets() {
        let schema = Schema::parse(
            "name = \"s\"\n[[feature]]\nname = \"avoids\"\nkind = \"set\"\nvalues = [\"wool\", \"fur\"]\n\
             excludes = \"material\"\n",
        )
        .unwrap();
        let ids = ["a", "b", "c", "d", "gone"].map(|id| ArticleId::new(id).unwrap());
        let vocabulary = Vocabulary::new(ids.to_vec()).unwrap();
        let articles = [
            article("a", "coat", json!({"price": 100, "material": ["wool", "silk"], "in_stock": true})),
            article("b", "coat", json!({"price": 50.5, "material": "fur", "in_stock": 0})),
            article("c", "boot", json!({"in_stock": 3})),
            article("d", "boot", json!({"price": 10})),
            article("new", "hat", json!({"material": "Felt"})),
        ];
        let catalogue = Catalogue::new(articles.into_iter(), &vocabulary, &schema);
        let ids = |mask: &Mask| mask.iter().collect::<Vec<_>>();
        assert_eq!(ids(catalogue.present()), [0, 1, 2, 3]);
        assert_eq!(catalogue.types(), ["boot", "coat"]);
        assert_eq!(ids(catalogue.of_type("coat").unwrap()), [0, 1]);
        assert_eq!(ids(catalogue.out_of_stock()), [1]);
        assert_eq!(ids(&catalogue.priced(Some(20.0), None)), [0, 1]);
        assert_eq!(ids(&catalogue.priced(None, Some(50.5))), [1, 3]);
        let avoids = FeatureValue::Many(vec![" Wool / Plastic".into(), "felt".into()]);
        let features: Features = [("avoids".to_owned(), avoids)].into_iter().collect();
        let ruled_out = catalogue.ruled_out(&schema, &features);
        assert_eq!(ids(&ruled_out.articles), [0]);
        assert_eq!(ruled_out.unmatched, [("material".to_owned(), "plastic".to_owned())]);
        assert_eq!(ids(catalogue.of_type("COAT").unwrap()), [0, 1]);
        assert!(catalogue.of_type("hat").is_none(), "the release does not have it");
        assert_eq!(catalogue.coverage(), Coverage { both: 4, only_catalogue: 1, only_release: 1 });
        assert_eq!((catalogue.unknown_of_type("hat"), catalogue.unknown_of_type("coat")), (1, 0));
        assert_eq!(catalogue.unknown(&ArticleId::new("new").unwrap()).unwrap().kind(), "hat");
        assert!(catalogue.article(4).is_none());
    }
}
