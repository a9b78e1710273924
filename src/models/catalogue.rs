//! The catalogue: the articles that the shop has, each at a place, and the sets of them that filters need.
//!
//! Built from the database's articles and a release. It is immutable: after a change in the database, a new one is built.
//!
//! Must not know HTTP, SQL or models.

mod supply;

use std::{
    collections::{HashMap, HashSet},
    ops::Deref,
    sync::{Arc, OnceLock},
};

pub use supply::{Supply, Unfit};

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    domain::{Article, ArticleId, Features, Mask, Schema, fold, fold_parts},
    models::{engine::Places, release::Release},
    util::chunked::Chunked,
};

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    pub both: usize,
    /// Articles that the release was not trained with.
    pub only_catalogue: usize,
    /// Articles that the shop does not have.
    pub only_release: usize,
}

impl Coverage {
    /// Whether there are articles, and the release was trained with none of them.
    pub fn is_none(self) -> bool {
        self.both == 0 && self.only_catalogue > 0
    }
}

/// The articles of the shop, and those of the release that it no longer has, each at a place. Articles of one type are at
/// neighbouring places, in panels of their own.
#[derive(Debug)]
pub struct Catalogue {
    entries: Chunked<Option<Entry>>,
    places: HashMap<ArticleId, u32>,
    rows: Places,
    present: Mask,
    coverage: Coverage,
    /// One spelling of each type, by its folded form.
    types: HashMap<String, String>,
    /// By place; NaN for articles without a price.
    prices: Chunked<f64>,
    out_of_stock: Mask,
    /// Articles whose stored price or stock an import would refuse.
    unreadable: Vec<ArticleId>,
    /// By attribute and folded word, for the type and the attributes by which features of the schema exclude articles.
    words: HashMap<String, HashMap<String, Mask>>,
    supply: Supply,
}

/// An article at its place.
#[derive(Debug, Clone)]
struct Entry {
    article: Arc<CatalogueArticle>,
    /// Whether the shop has it.
    is_present: bool,
}

/// The places of a type are a multiple of this: the last layer is computed for as many articles together.
const PANEL: usize = 32;

impl Catalogue {
    /// `articles` are the shop's.
    pub fn new(articles: impl Iterator<Item = Article>, release: &Release) -> Self {
        let of_shop = articles.map(|article| (article, true));
        let mut all: Vec<(Article, bool)> = of_shop.collect();
        let ids: HashSet<&ArticleId> = all.iter().map(|(article, _)| &article.id).collect();
        let of_vocabulary = &release.articles()[..release.vocabulary().len()];
        let gone = of_vocabulary.iter().filter(|article| !ids.contains(&article.id));
        let gone: Vec<_> = gone.map(|article| (article.clone(), false)).collect();
        all.extend(gone);
        let index = |article: &Article| release.vocabulary().index_of(article.id.as_str());
        all.sort_by_cached_key(|(article, _)| {
            let index = index(article).unwrap_or(u32::MAX);
            (article.kind().to_owned(), index, article.id.clone())
        });
        let mut catalogue = Self::empty(&all, release);
        let excluding = release.schema().features().iter().filter_map(|feature| feature.excludes.as_deref());
        let mut attributes: Vec<&str> = excluding.chain([TYPE]).collect();
        attributes.sort_unstable();
        attributes.dedup();
        let mut before: Option<String> = None;
        for (article, is_present) in all {
            if before.as_ref().is_some_and(|before| before != article.kind()) {
                catalogue.begin_panel();
            }
            before = Some(article.kind().to_owned());
            catalogue.add(article, is_present, release, &attributes);
        }
        catalogue.begin_panel();
        catalogue
    }

    /// Without articles, but with room for these.
    fn empty(all: &[(Article, bool)], release: &Release) -> Self {
        let panels =
            all.chunk_by(|(a, _), (b, _)| a.kind() == b.kind()).map(|same| same.len().div_ceil(PANEL));
        let length = panels.sum::<usize>() * PANEL;
        let of_index = Arc::new(vec![0; release.vocabulary().len()]);
        Self {
            entries: Chunked::default(),
            places: HashMap::with_capacity(all.len()),
            rows: Places { compositions: Chunked::default(), of_index },
            present: Mask::none(length),
            coverage: Coverage::default(),
            types: HashMap::new(),
            prices: Chunked::default(),
            out_of_stock: Mask::none(length),
            unreadable: Vec::new(),
            words: HashMap::new(),
            supply: Supply::new(release.schema()),
        }
    }

    /// Leaves the rest of the last panel free.
    fn begin_panel(&mut self) {
        while !self.entries.len().is_multiple_of(PANEL) {
            self.entries.push(None);
            self.rows.compositions.push(None);
            self.prices.push(f64::NAN);
        }
    }

    fn add(&mut self, article: Article, is_present: bool, release: &Release, attributes: &[&str]) {
        let place =
            u32::try_from(self.entries.len()).expect("articles are counted in 32 bits; this is a bug");
        let (composition, _) = release.compose(&article);
        let own = composition.own;
        if let Some(index) = own {
            Arc::make_mut(&mut self.rows.of_index)[index as usize] = place;
        }
        self.rows.compositions.push(Some(composition));
        self.places.insert(article.id.clone(), place);
        self.prices.push(if is_present { article.price().unwrap_or(f64::NAN) } else { f64::NAN });
        match (is_present, own.is_some()) {
            (true, true) => self.coverage.both += 1,
            (true, false) => self.coverage.only_catalogue += 1,
            (false, _) => self.coverage.only_release += 1,
        }
        if is_present {
            if !article.is_readable() {
                self.unreadable.push(article.id.clone());
            }
            self.present.insert(place);
            self.types.entry(fold(article.kind())).or_insert_with(|| article.kind().to_owned());
            if !article.in_stock() {
                self.out_of_stock.insert(place);
            }
            self.supply.add(place, &article);
            for &attribute in attributes {
                self.note_words(place, &article, attribute);
            }
        }
        let entry = Entry { article: Arc::new(article.into()), is_present };
        self.entries.push(Some(entry));
    }

    fn note_words(&mut self, place: u32, article: &Article, attribute: &str) {
        let length = self.present.length();
        for word in article.folded_words(attribute) {
            let words = self.words.entry(attribute.to_owned()).or_default();
            words.entry(word).or_insert_with(|| Mask::none(length)).insert(place);
        }
    }

    /// None if the shop does not have it.
    pub fn article(&self, place: u32) -> Option<&Arc<CatalogueArticle>> {
        let entry = self.entries.get(place as usize)?.as_ref()?;
        entry.is_present.then_some(&entry.article)
    }

    /// An article of the shop or of the release.
    pub fn any_article(&self, place: u32) -> Option<&Arc<CatalogueArticle>> {
        Some(&self.entries.get(place as usize)?.as_ref()?.article)
    }

    /// The place of an article of the shop or of the release.
    pub fn place_of(&self, id: &str) -> Option<u32> {
        self.places.get(id).copied()
    }

    /// What its articles are made of.
    pub fn places(&self) -> &Places {
        &self.rows
    }

    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// The articles that the shop has.
    pub fn present(&self) -> &Mask {
        &self.present
    }

    /// The articles of a type in any case, or None if the shop has none. `Coat/Jacket` is of both types.
    pub fn of_type(&self, kind: &str) -> Option<&Mask> {
        self.words.get(TYPE)?.get(&fold(kind))
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

    /// Which of the shop's articles fit a customer and are in stock for them.
    pub fn supply(&self) -> &Supply {
        &self.supply
    }

    /// The articles whose stored price or stock an import would refuse.
    pub fn unreadable(&self) -> &[ArticleId] {
        &self.unreadable
    }

    /// The articles with a price within the limits.
    pub fn priced(&self, least: Option<f64>, most: Option<f64>) -> Mask {
        let mut mask = Mask::none(self.prices.len());
        for (place, price) in (0..).zip(self.prices.iter()) {
            // Comparisons with NaN are false, so an unknown price is never within a limit.
            if *price >= least.unwrap_or(f64::NEG_INFINITY) && *price <= most.unwrap_or(f64::INFINITY) {
                mask.insert(place);
            }
        }
        mask
    }

    /// What the customer's features exclude (no-gos). A no-go excludes the articles that say it, all of it or one of its
    /// parts.
    pub fn ruled_out(&self, schema: &Schema, features: &Features) -> RuledOut {
        let mut ruled_out = RuledOut { articles: Mask::none(self.present.length()), unmatched: Vec::new() };
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

    fn release(articles: &[Article], schema: &str) -> Release {
        let manifest = json!({
            "format": 2, "name": "r", "created": "", "commands": [], "data": {"name": "", "fingerprint": ""},
            "schema": "", "articles": "", "default_method": "none", "methods": [], "files": {}
        });
        let manifest = serde_json::from_value(manifest).unwrap();
        Release::assemble("r".as_ref(), manifest, Schema::parse(schema).unwrap(), articles.to_vec(), None)
            .unwrap()
    }

    #[test]
    fn articles_are_grouped_into_sets() {
        let schema = "name = \"s\"\n[[feature]]\nname = \"avoids\"\nkind = \"set\"\nvalues = [\"wool\", \"fur\"]\n\
             excludes = \"material\"\n";
        let of_release = ["d", "c", "b", "a", "gone"].map(|id| article(id, "boot", json!({})));
        let release = release(&of_release, schema);
        let articles = [
            article("a", "coat", json!({"price": 100, "material": ["wool", "silk"], "in_stock": true})),
            article("b", "coat", json!({"price": 50.5, "material": "fur", "in_stock": 0})),
            article("c", "boot", json!({"in_stock": 3})),
            article("d", "boot", json!({"price": 10})),
            article("new", "hat", json!({"material": "Felt"})),
        ];
        let catalogue = Catalogue::new(articles.into_iter(), &release);
        let ids = |mask: &Mask| -> Vec<String> {
            mask.iter().map(|place| catalogue.article(place).unwrap().id.to_string()).collect()
        };
        // By type, then in the vocabulary's order.
        assert_eq!(ids(catalogue.present()), ["d", "c", "b", "a", "new"]);
        assert_eq!(catalogue.present().iter().collect::<Vec<_>>(), [0, 1, 32, 33, 64]);
        assert_eq!(catalogue.types(), ["boot", "coat", "hat"]);
        assert_eq!(ids(catalogue.of_type("coat").unwrap()), ["b", "a"]);
        assert_eq!(ids(catalogue.out_of_stock()), ["b"]);
        assert_eq!(ids(&catalogue.priced(Some(20.0), None)), ["b", "a"]);
        assert_eq!(ids(&catalogue.priced(None, Some(50.5))), ["d", "b"]);
        let avoids = FeatureValue::Many(vec![" Wool / Plastic".into(), "felt".into()]);
        let features: Features = [("avoids".to_owned(), avoids)].into_iter().collect();
        let ruled_out = catalogue.ruled_out(release.schema(), &features);
        assert_eq!(ids(&ruled_out.articles), ["a", "new"]);
        assert_eq!(ruled_out.unmatched, [("material".to_owned(), "plastic".to_owned())]);
        assert_eq!(ids(catalogue.of_type("COAT").unwrap()), ["b", "a"]);
        assert_eq!(ids(catalogue.of_type("hat").unwrap()), ["new"]);
        assert_eq!(catalogue.coverage(), Coverage { both: 4, only_catalogue: 1, only_release: 1 });
        let gone = catalogue.place_of("gone").unwrap();
        let is_known = |place: u32| {
            let composition = catalogue.places().compositions.get(place as usize).unwrap();
            composition.as_ref().unwrap().own.is_some()
        };
        assert!(catalogue.article(gone).is_none() && is_known(gone));
        assert_eq!(catalogue.any_article(gone).unwrap().kind(), "boot");
        assert!(!is_known(catalogue.place_of("new").unwrap()));
        assert_eq!(catalogue.places().of_index.as_slice(), [0, 1, 32, 33, gone]);
        assert_eq!(catalogue.places().compositions.len(), 96);
        assert_eq!(catalogue.place_of("nowhere"), None);
    }
}
