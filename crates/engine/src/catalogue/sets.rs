//! The sets of the shop's articles that filters combine: those in the shop, of a type, with a word, at a price, out of stock.
//!
//! [`Sets::read`] says what counts of an article, [`Sets::add`] and [`Sets::remove`] put it into all sets and take it out of
//! them. A copy shares each set until it changes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use atelier_core::{
    domain::{
        Article, Features, Mask, Schema, SparseMask, Synonyms, fold_for, fold_parts, no_go_key, no_go_keys,
        size_order, synonym_key,
    },
    util::{chunked::Chunked, notation::is_currency},
};

use super::supply::{self, Needs, Supply};

/// Not an attribute, but compared like one.
const TYPE: &str = "type";
const BRAND: &str = "brand";
/// The most words of an attribute that are kept of an article. One that says more is excluded by every no-go, as if it said this
/// word, which no text has.
const MOST_WORDS: usize = 256;
/// The most different words of an attribute. An article with another one is excluded by every no-go, too.
pub(super) const MOST_DIFFERENT: usize = 50_000;
/// The most no-gos that an article says by an attribute, for the same reason.
const MOST_SAID: usize = 256;
/// The most bytes of an article's words of an attribute, for the same reason.
const MOST_BYTES: usize = 2000;
const EVERYTHING: &str = "\0";

/// A customer's no-gos, as articles' words are compared with them.
#[derive(Debug)]
pub struct NoGos(Vec<NoGo>);

#[derive(Debug)]
struct NoGo {
    attribute: String,
    whole: String,
    /// Each as it is said, and as it is compared, with its synonyms.
    parts: Vec<(String, Vec<String>)>,
}

impl NoGos {
    /// `sets` are those that they exclude articles of.
    pub fn new(schema: &Schema, features: &Features, sets: &Sets) -> Self {
        let no_gos = schema.exclusions(features).map(|(attribute, no_go)| {
            let compared = |part: String| {
                let forms = sets.forms(attribute, &part);
                (part, forms)
            };
            NoGo {
                attribute: attribute.to_owned(),
                whole: no_go_key(&no_go),
                parts: fold_parts(&no_go).into_iter().map(compared).collect(),
            }
        });
        Self(no_gos.collect())
    }
}

/// Excluded by no-gos.
#[derive(Debug)]
pub struct RuledOut {
    pub articles: Mask,
    /// The no-gos that no article of the shop says, each with its attribute: a typo, perhaps.
    pub unmatched: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub struct Sets {
    present: Arc<Mask>,
    out_of_stock: Arc<Mask>,
    /// NaN for articles without a price in the shop's currency.
    prices: Chunked<f64>,
    /// One spelling of each type, by the form that is compared.
    types: HashMap<String, String>,
    words: Words,
    /// By the keys of the no-gos that articles say.
    no_gos: Words,
    /// Of an attribute, the values of several words that the schema lists for no-gos.
    listed: Arc<HashMap<String, BTreeSet<String>>>,
    synonyms: Arc<Synonyms>,
    supply: Supply,
    /// The shop's. None if all prices count as of one currency.
    currency: Option<Arc<str>>,
}

/// Articles by the words of some attributes.
#[derive(Debug, Clone)]
struct Words {
    /// The type, the brand, and the attributes by which features of the schema exclude articles.
    attributes: Arc<[String]>,
    /// By attribute and folded word.
    masks: HashMap<String, HashMap<String, Arc<SparseMask>>>,
}

/// The facts that count.
#[derive(Debug)]
pub(super) struct Facts {
    kind: Box<str>,
    price: f64,
    in_stock: bool,
    /// By attribute of [`Words`].
    words: Vec<Vec<String>>,
    /// By the same: the keys of the no-gos that it says.
    no_gos: Vec<Vec<String>>,
    supply: supply::Facts,
}

impl Facts {
    /// The words of each attribute by which customers' features require something.
    pub(super) fn required(&self) -> &[Vec<String>] {
        &self.supply.words
    }
}

impl Sets {
    /// Sets without articles.
    pub(super) fn new(schema: &Schema, currency: Option<Arc<str>>, synonyms: Arc<Synonyms>) -> Self {
        let mut listed: HashMap<String, BTreeSet<String>> = HashMap::new();
        for feature in schema.features() {
            let Some(attribute) = &feature.excludes else { continue };
            let keys = feature.values.iter().map(|value| no_go_key(value)).filter(|key| key.contains('-'));
            listed.entry(attribute.clone()).or_default().extend(keys);
        }
        let excluding = listed.keys().map(String::as_str);
        let mut attributes: Vec<String> = excluding.chain([TYPE, BRAND]).map(str::to_owned).collect();
        attributes.sort_unstable();
        attributes.dedup();
        let words = Words { attributes: attributes.into(), masks: HashMap::new() };
        let (empty, supply) = (Arc::new(Mask::none(0)), Supply::new(schema));
        Self {
            present: Arc::clone(&empty),
            out_of_stock: empty,
            prices: Chunked::default(),
            types: HashMap::new(),
            no_gos: words.clone(),
            words,
            listed: listed.into(),
            synonyms,
            supply,
            currency,
        }
    }

    /// The same for so many positions, with the shop's articles, each at its position. The halves take about as long, so they
    /// have a core each.
    pub(super) fn fill(self, length: usize, articles: &[(u32, Facts)]) -> Self {
        let Self { mut words, mut no_gos, mut supply, .. } = self;
        rayon::join(
            || articles.iter().for_each(|(position, facts)| supply.add(*position, &facts.supply)),
            || {
                rayon::join(
                    || articles.iter().for_each(|(position, facts)| words.add(*position, &facts.words)),
                    || articles.iter().for_each(|(position, facts)| no_gos.add(*position, &facts.no_gos)),
                )
            },
        );
        let none = Arc::new(Mask::none(length));
        let (present, out_of_stock) = (Arc::clone(&none), none);
        let prices = (0..length).map(|_| f64::NAN).collect();
        let mut sets = Self { present, out_of_stock, prices, words, no_gos, supply, ..self };
        for (position, facts) in articles {
            sets.add_own(*position, facts);
        }
        sets
    }

    pub(super) fn read(&self, article: &Article) -> Facts {
        let attributes = || self.words.attributes.iter();
        let words: Vec<Vec<String>> = attributes().map(|attribute| kept_words(article, attribute)).collect();
        let said = |(attribute, words): (&String, &Vec<String>)| self.said(attribute, words);
        Facts {
            kind: article.kind().into(),
            price: self.price_of(article).unwrap_or(f64::NAN),
            in_stock: article.in_stock(),
            no_gos: attributes().zip(&words).map(said).collect(),
            words,
            supply: self.supply.read(article),
        }
    }

    /// The keys of the no-gos that words of an attribute say. A type is one word.
    fn said(&self, attribute: &str, words: &[String]) -> Vec<String> {
        if attribute == TYPE {
            return words.iter().map(|word| no_go_key(word)).collect();
        }
        // No feature excludes by the brand.
        let Some(listed) = self.listed.get(attribute) else { return Vec::new() };
        let mut keys: Vec<String> = words.iter().flat_map(|word| no_go_keys(word, listed)).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() > MOST_SAID { vec![EVERYTHING.to_owned()] } else { keys }
    }

    /// A word of an attribute as no-gos are compared, and its synonyms.
    pub fn forms(&self, attribute: &str, word: &str) -> Vec<String> {
        let is_type = |kind: &str| attribute == TYPE && self.no_gos.get(TYPE, &no_go_key(kind)).is_some();
        let forms = self.synonyms.forms(synonym_key(word), is_type);
        // A digit is a word of its own to no-gos only.
        [no_go_key(word)].into_iter().chain(forms[1..].iter().map(|form| no_go_key(form))).collect()
    }

    /// Whether a word has the same synonyms with other sets.
    pub fn has_synonyms_of(&self, other: &Self) -> bool {
        let has = |own: &Self, other: &Self| own.types.keys().all(|kind| other.types.contains_key(kind));
        self.synonyms.is_empty() || (has(self, other) && has(other, self))
    }

    pub(super) fn add(&mut self, position: u32, facts: &Facts) {
        self.add_own(position, facts);
        self.words.add(position, &facts.words);
        self.no_gos.add(position, &facts.no_gos);
        self.supply.add(position, &facts.supply);
    }

    /// Adds what is neither in the words nor in the supply.
    fn add_own(&mut self, position: u32, facts: &Facts) {
        Arc::make_mut(&mut self.present).insert(position);
        if !facts.in_stock {
            Arc::make_mut(&mut self.out_of_stock).insert(position);
        }
        *self.prices.get_mut(position as usize) = facts.price;
        self.types.entry(fold_for(TYPE, &facts.kind)).or_insert_with(|| facts.kind.to_string());
    }

    /// `facts` are what was added at this position.
    pub(super) fn remove(&mut self, position: u32, facts: &Facts) {
        for set in [&mut self.present, &mut self.out_of_stock] {
            if set.contains(position) {
                Arc::make_mut(set).remove(position);
            }
        }
        *self.prices.get_mut(position as usize) = f64::NAN;
        self.words.remove(position, &facts.words);
        self.no_gos.remove(position, &facts.no_gos);
        self.supply.remove(position, &facts.supply);
        if self.words.get(TYPE, &fold_for(TYPE, &facts.kind)).is_none() {
            self.types.remove(&fold_for(TYPE, &facts.kind));
        }
    }

    /// The articles that the shop has.
    pub fn present(&self) -> &Mask {
        &self.present
    }

    pub fn out_of_stock(&self) -> &Mask {
        &self.out_of_stock
    }

    /// The articles that are out of stock, or not in stock in a size that fits the customer.
    pub fn unavailable(&self, needs: Option<&Needs>) -> Arc<Mask> {
        let mut unavailable = Arc::clone(&self.out_of_stock);
        if self.supply.counts_stock() {
            let sold_out = self.supply.sold_out(needs, None, unavailable.length());
            Arc::make_mut(&mut unavailable).unite(&sold_out);
        }
        unavailable
    }

    /// Which articles fit a customer and are in stock for them.
    pub fn supply(&self) -> &Supply {
        &self.supply
    }

    /// The articles of a type in any case, in the singular or plural, or None if the shop has none. `Coat/Jacket` is of both
    /// types.
    pub fn of_type(&self, kind: &str) -> Option<Mask> {
        let of_type = self.words.get(TYPE, &fold_for(TYPE, kind))?;
        let mut articles = Mask::none(self.present.length());
        articles.unite_sparse(of_type);
        Some(articles)
    }

    /// The articles of a type or of one of its synonyms.
    pub fn of_named_type(&self, name: &str) -> Option<Mask> {
        let mut articles = self.of_type(name);
        for form in self.forms(TYPE, name) {
            if let Some(others) = self.no_gos.get(TYPE, &form) {
                articles.get_or_insert_with(|| Mask::none(self.present.length())).unite_sparse(others);
            }
        }
        articles
    }

    /// In alphabetical order.
    pub fn types(&self) -> Vec<&str> {
        let mut types: Vec<&str> = self.types.values().map(String::as_str).collect();
        types.sort_unstable();
        types
    }

    /// The brand, and the attributes by which the schema excludes or requires articles, each with its folded words, sorted. Not
    /// the type.
    pub fn facets(&self) -> BTreeMap<&str, Vec<&str>> {
        let excluding = self.words.masks.iter();
        let excluding = excluding
            .map(|(attribute, words)| (attribute.as_str(), words.keys().map(String::as_str).collect()));
        let mut facets: BTreeMap<&str, Vec<&str>> = self.supply.facets().chain(excluding).collect();
        facets.remove(TYPE);
        for words in facets.values_mut() {
            words.retain(|word| *word != EVERYTHING);
            words.sort_unstable_by_key(|word| size_order(word));
        }
        facets
    }

    /// The articles with a folded word in one of the facets.
    pub fn with_word(&self, attribute: &str, word: &str) -> Mask {
        let mut articles = Mask::none(self.present.length());
        let of_word = self.words.get(attribute, word).or_else(|| self.supply.with_word(attribute, word));
        if let Some(of_word) = of_word {
            articles.unite_sparse(of_word);
        }
        articles
    }

    /// NaN without a price.
    pub fn price(&self, position: u32) -> f64 {
        self.prices.get(position as usize).copied().unwrap_or(f64::NAN)
    }

    /// The price of an article, if it has one in the shop's currency.
    pub fn price_of(&self, article: &Article) -> Option<f64> {
        let named = article.words("currency").next().filter(|code| is_currency(code));
        let is_other = self.currency.as_deref().zip(named).is_some_and(|(own, named)| own != named);
        article.price().filter(|_| !is_other)
    }

    /// The two cheapest of some articles, with their prices; fewer if fewer have a price.
    pub fn cheapest(&self, of: &Mask) -> Vec<(u32, f64)> {
        let mut cheapest = Vec::with_capacity(3);
        let prices = (0..).zip(self.prices.iter()).filter(|(position, _)| of.contains(*position));
        for (position, &price) in prices.filter(|(_, price)| !price.is_nan()) {
            if cheapest.get(1).is_none_or(|(_, second)| price < *second) {
                cheapest.push((position, price));
                cheapest.sort_by(|(_, a), (_, b)| f64::total_cmp(a, b));
                cheapest.truncate(2);
            }
        }
        cheapest
    }

    /// The articles with a price within the limits.
    pub fn priced(&self, least: Option<f64>, most: Option<f64>) -> Mask {
        let mut mask = Mask::none(self.prices.len());
        for (position, price) in (0..).zip(self.prices.iter()) {
            // Comparisons with NaN are false, so an unknown price is never within a limit.
            if *price >= least.unwrap_or(f64::NEG_INFINITY) && *price <= most.unwrap_or(f64::INFINITY) {
                mask.insert(position);
            }
        }
        mask
    }

    /// A no-go excludes the articles that say it, all of it or one of its parts, or a synonym.
    pub fn ruled_out(&self, no_gos: &NoGos) -> RuledOut {
        let mut ruled_out = RuledOut { articles: Mask::none(self.present.length()), unmatched: Vec::new() };
        for NoGo { attribute, whole, parts } in &no_gos.0 {
            let whole = self.no_gos.get(attribute, whole);
            let articles = self.no_gos.get(attribute, EVERYTHING).into_iter().chain(whole);
            articles.for_each(|articles| ruled_out.articles.unite_sparse(articles));
            for (part, forms) in parts {
                let mut found = forms.iter().filter_map(|form| self.no_gos.get(attribute, form)).peekable();
                if found.peek().is_none() && whole.is_none() {
                    ruled_out.unmatched.push((attribute.clone(), part.clone()));
                }
                found.for_each(|articles| ruled_out.articles.unite_sparse(articles));
            }
        }
        ruled_out
    }
}

/// The different words of an attribute.
fn kept_words(article: &Article, attribute: &str) -> Vec<String> {
    let mut words = article.folded_words(attribute);
    words.sort_unstable();
    words.dedup();
    if words.len() > MOST_WORDS || words.iter().map(String::len).sum::<usize>() > MOST_BYTES {
        words = vec![EVERYTHING.to_owned()];
    }
    words
}

impl Words {
    fn get(&self, attribute: &str, word: &str) -> Option<&SparseMask> {
        self.masks.get(attribute)?.get(word).map(|mask| &**mask)
    }

    /// `words` are by attribute.
    fn add(&mut self, position: u32, words: &[Vec<String>]) {
        for (attribute, words) in self.attributes.iter().zip(words).filter(|(_, words)| !words.is_empty()) {
            if !self.masks.contains_key(attribute) {
                self.masks.insert(attribute.clone(), HashMap::new());
            }
            let masks = self.masks.get_mut(attribute).expect("it was just added");
            for word in words {
                let is_kept = masks.len() < MOST_DIFFERENT || masks.contains_key(word);
                let word = if is_kept { word } else { EVERYTHING };
                Arc::make_mut(masks.entry(word.to_owned()).or_default()).insert(position);
            }
        }
    }

    fn remove(&mut self, position: u32, words: &[Vec<String>]) {
        for (attribute, words) in self.attributes.iter().zip(words) {
            let Some(masks) = self.masks.get_mut(attribute) else { continue };
            for word in words.iter().map(String::as_str).chain([EVERYTHING]) {
                if let Some(mask) = masks.get_mut(word) {
                    Arc::make_mut(mask).remove(position);
                    if mask.is_empty() {
                        masks.remove(word);
                    }
                }
            }
        }
    }
}
