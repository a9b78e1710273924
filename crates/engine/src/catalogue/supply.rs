//! Which articles fit a customer and are in stock for them: sets that are made with the catalogue, so that a request only
//! combines them.
//!
//! A release's schema says what a customer's features require. [`Supply::add`] and [`Supply::remove`] take an article as it
//! is at its position; a copy of a supply shares its sets until one of them changes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use atelier_core::domain::{Article, Features, Mask, Requirement, Schema, SparseMask, fold};
use serde_json::value::RawValue;

use super::sets::MOST_DIFFERENT;
use crate::packed_article::{Offer, PackedArticle};

/// Not an attribute, but compared like one.
const TYPE: &str = "type";
/// The most stores. What others have in stock does not count.
const MOST_STORES: usize = 10_000;
/// The most sets of all stores by words. A store says nothing of further sizes: they count as sold out there.
const MOST_IN_STORES: usize = 200_000;
/// Of an article's attribute: the most words, and the longest.
const MOST_WORDS: usize = 256;
const LONGEST_WORD: usize = 200;

#[derive(Debug, Clone, Default)]
pub struct Supply {
    demands: Vec<Demand>,
    /// The attributes that requirements name, each with the articles that say a word of it.
    attributes: Vec<(String, Sets)>,
    /// The option of variants that each attribute is about, as counts name it.
    options: Vec<String>,
    /// The articles that say their stock, in whatever sizes and stores.
    counted: Arc<SparseMask>,
    /// In stock in any store.
    in_any_store: InStock,
    /// In stock and of no store in particular: it counts in each.
    in_every_store: InStock,
    stores: HashMap<String, Arc<Store>>,
    /// The sets of all stores by words.
    in_stores: usize,
}

/// An article's sizes, stock and other required attributes.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The words of its type.
    kinds: Vec<String>,
    /// By attribute of the supply.
    pub(super) words: Vec<Vec<String>>,
    counts: Option<Vec<Count>>,
}

/// A count of an article's stock.
#[derive(Debug)]
struct Count {
    store: Option<String>,
    is_any: bool,
    /// By attribute of the supply: the words that it has of the option.
    words: Vec<Vec<String>>,
}

/// Sets of articles by a folded word.
type Sets = HashMap<String, Arc<SparseMask>>;

/// A requirement, and the articles that it is about.
#[derive(Debug, Clone)]
struct Demand {
    rule: Arc<Rule>,
    /// The index of its attribute in [`Supply::attributes`].
    attribute: usize,
    /// The articles of its types.
    about: Arc<SparseMask>,
    /// Those of them that do not fit everyone.
    restricted: Arc<SparseMask>,
    /// Those of them whose stock is counted by its attribute.
    counted: Arc<SparseMask>,
}

/// A feature's requirement, with the feature's name and label.
#[derive(Debug)]
struct Rule {
    feature: String,
    label: String,
    requirement: Requirement,
}

/// Articles in stock.
#[derive(Debug, Clone, Default)]
struct InStock {
    any: Arc<SparseMask>,
    /// By the words of some attributes, which one count has all of ([`add_word`]).
    by_words: Sets,
}

#[derive(Debug, Clone, Default)]
struct Store {
    /// The articles whose stock names it.
    named: SparseMask,
    stock: InStock,
}

/// A customer's requirements for a catalogue's articles.
#[derive(Debug)]
pub struct Needs {
    /// The demands that apply, by their index in [`Supply::demands`], each with the words of articles that fit.
    asked: Vec<(usize, Vec<String>)>,
}

/// Articles unfit for a customer.
#[derive(Debug)]
pub struct Unfit {
    pub articles: Mask,
    /// The requirements that no article meets, each with the feature's label, the attribute and the words.
    pub unmet: Vec<(String, String, Vec<String>)>,
}

impl Supply {
    /// Without articles.
    pub(super) fn new(schema: &Schema) -> Self {
        let mut supply = Self::default();
        for feature in schema.features() {
            for requirement in &feature.requires {
                let attributes = &mut supply.attributes;
                let found = attributes.iter().position(|(name, _)| *name == requirement.attribute);
                let attribute = found.unwrap_or_else(|| {
                    attributes.push((requirement.attribute.clone(), Sets::default()));
                    supply.options.push(requirement.option());
                    attributes.len() - 1
                });
                let rule = Rule {
                    feature: feature.name.clone(),
                    label: feature.label.clone(),
                    requirement: requirement.clone(),
                };
                let (about, restricted, counted) = Default::default();
                supply.demands.push(Demand { rule: Arc::new(rule), attribute, about, restricted, counted });
            }
        }
        supply
    }

    /// Facts of an article that the sets are made of.
    pub(super) fn read(&self, article: &Article) -> Facts {
        let words = |attribute: &str| {
            let mut words = article.folded_words(attribute);
            // Nobody needs a longer one, and a set for each of very many would take much room.
            words.retain(|word| word.len() <= LONGEST_WORD);
            words.sort_unstable();
            words.dedup();
            words.truncate(MOST_WORDS);
            words
        };
        let words_of = |counted: &[(String, Vec<String>)]| {
            let find = |option| counted.iter().find(|(name, _)| name == option);
            self.options
                .iter()
                .map(|option| find(option).map(|found| found.1.clone()).unwrap_or_default())
                .collect()
        };
        let counts = article.stock().map(|counts| {
            let count = counts.into_iter().map(|count| Count {
                words: words_of(&count.words),
                store: count.store,
                is_any: count.is_any,
            });
            count.collect()
        });
        Facts {
            kinds: if self.demands.is_empty() { Vec::new() } else { words(TYPE) },
            words: self.attributes.iter().map(|(attribute, _)| words(attribute)).collect(),
            counts,
        }
    }

    pub(super) fn add(&mut self, position: u32, article: &Facts) {
        self.change(article, &|set| set.insert(position));
    }

    /// `article` is what was added at this position.
    pub(super) fn remove(&mut self, position: u32, article: &Facts) {
        self.change(article, &|set| set.remove(position));
        let keep = |sets: &mut Sets| sets.retain(|_, set| !set.is_empty());
        self.attributes.iter_mut().for_each(|(_, sets)| keep(sets));
        keep(&mut self.in_any_store.by_words);
        keep(&mut self.in_every_store.by_words);
        let names: BTreeSet<&String> =
            article.counts.iter().flatten().filter_map(|count| count.store.as_ref()).collect();
        for name in names {
            let Some(store) = self.stores.get_mut(name) else { continue };
            let sets = &mut Arc::make_mut(store).stock.by_words;
            self.in_stores -= sets.len();
            keep(sets);
            self.in_stores += sets.len();
        }
        self.stores.retain(|_, store| !store.named.is_empty());
    }

    /// Changes the sets that the article is in.
    fn change(&mut self, article: &Facts, change: &impl Fn(&mut SparseMask)) {
        self.change_demands(article, change);
        let Some(counts) = &article.counts else { return };
        change(Arc::make_mut(&mut self.counted));
        for count in counts {
            if let Some(name) = &count.store {
                if self.stores.len() >= MOST_STORES && !self.stores.contains_key(name) {
                    continue;
                }
                let store = Arc::make_mut(self.stores.entry(name.clone()).or_default());
                change(&mut store.named);
                let before = store.stock.by_words.len();
                let room = MOST_IN_STORES.saturating_sub(self.in_stores);
                store.stock.change(count, MOST_DIFFERENT.min(before + room), change);
                self.in_stores += store.stock.by_words.len() - before;
            } else {
                self.in_every_store.change(count, MOST_DIFFERENT, change);
            }
            self.in_any_store.change(count, MOST_DIFFERENT, change);
        }
    }

    fn change_demands(&mut self, article: &Facts, change: &impl Fn(&mut SparseMask)) {
        for ((_, sets), words) in self.attributes.iter_mut().zip(&article.words) {
            for word in words {
                change_set(sets, word, MOST_DIFFERENT, change);
            }
        }
        for demand in &mut self.demands {
            if demand.rule.requirement.is_about(&article.kinds) {
                change(Arc::make_mut(&mut demand.about));
                if demand.rule.requirement.excludes_some(&article.words[demand.attribute]) {
                    change(Arc::make_mut(&mut demand.restricted));
                }
                // Next to counts of sizes, one without a size is a total: it does not say that a size is there.
                let mut counts = article.counts.iter().flatten();
                if counts.any(|count| !count.words[demand.attribute].is_empty()) {
                    change(Arc::make_mut(&mut demand.counted));
                }
            }
        }
    }

    pub fn needs(&self, features: &Features) -> Needs {
        let asked = self.demands.iter().enumerate().filter_map(|(index, demand)| {
            let words = demand.rule.requirement.fitting_words(features.get(&demand.rule.feature)?);
            (!words.is_empty()).then_some((index, words))
        });
        Needs { asked: asked.collect() }
    }

    /// The articles that do not fit a customer, of `length` positions.
    pub fn unfit(&self, needs: &Needs, length: usize) -> Unfit {
        let mut unfit = Unfit { articles: Mask::none(length), unmet: Vec::new() };
        for (demand, words) in self.asked(needs) {
            let (attribute, sets) = &self.attributes[demand.attribute];
            let fitting = words.iter().filter_map(|word| sets.get(word)).map(|set| &**set);
            if !unfit.articles.unite_except(&demand.restricted, fitting) && !demand.restricted.is_empty() {
                unfit.unmet.push((demand.rule.label.clone(), attribute.clone(), words.to_vec()));
            }
        }
        unfit
    }

    /// Whether an article says its stock.
    pub(super) fn counts_stock(&self) -> bool {
        !self.counted.is_empty()
    }

    /// The articles that say their stock and have none of it in this store, or in any, in a size that fits the customer.
    /// Without needs, any size does.
    pub fn sold_out(&self, needs: Option<&Needs>, store: Option<&str>, length: usize) -> Mask {
        let mut sold_out = Mask::none(length);
        sold_out.unite_sparse(&self.counted);
        let named = store.and_then(|store| Some(&self.stores.get(&fold(store))?.stock));
        let stock: Vec<&InStock> = match store {
            None => vec![&self.in_any_store],
            Some(_) => [&self.in_every_store].into_iter().chain(named).collect(),
        };
        let demands: Vec<(&Demand, &[String])> = needs.map_or_else(Vec::new, |needs| {
            self.asked(needs).filter(|(demand, _)| !demand.counted.is_empty()).collect()
        });
        let mut in_stock = Mask::none(length);
        for stock in &stock {
            in_stock.unite_sparse(&stock.any);
        }
        for (demand, _) in &demands {
            in_stock.subtract_sparse(&demand.counted);
        }
        // An article is counted by some of the attributes that are asked for. One count must have a fitting word of each.
        let mut words = BTreeMap::<usize, BTreeSet<&String>>::new();
        for (demand, fitting) in &demands {
            words.entry(demand.attribute).or_default().extend(*fitting);
        }
        let mut choices = vec![(String::new(), Vec::new())];
        for (attribute, words) in words {
            for at in 0..choices.len() {
                for word in &words {
                    let (mut key, mut chosen) = choices[at].clone();
                    add_word(&mut key, attribute, word);
                    chosen.push((attribute, *word));
                    choices.push((key, chosen));
                }
            }
        }
        for (key, chosen) in choices.iter().skip(1) {
            let mut found = Mask::none(length);
            stock.iter().filter_map(|stock| stock.by_words.get(key)).for_each(|set| found.unite_sparse(set));
            for (demand, fitting) in &demands {
                match chosen.iter().find(|(attribute, _)| *attribute == demand.attribute) {
                    Some((_, word)) if fitting.contains(word) => {}
                    Some(_) => found.subtract_sparse(&demand.about),
                    None => found.subtract_sparse(&demand.counted),
                }
            }
            in_stock.unite(&found);
        }
        sold_out.subtract(&in_stock);
        sold_out
    }

    /// A customer's needs of an article's variants.
    pub fn wanted<'s>(&'s self, needs: &'s Needs) -> Wanted<'s> {
        Wanted { supply: self, demands: self.asked(needs).collect() }
    }

    fn asked<'s>(&'s self, needs: &'s Needs) -> impl Iterator<Item = (&'s Demand, &'s [String])> {
        needs.asked.iter().map(|(index, words)| (&self.demands[*index], &words[..]))
    }

    /// The attributes that requirements name, each with its folded words.
    pub(super) fn facets(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.attributes
            .iter()
            .map(|(attribute, sets)| (attribute.as_str(), sets.keys().map(String::as_str).collect()))
    }

    pub(super) fn with_word(&self, attribute: &str, word: &str) -> Option<&SparseMask> {
        let (_, sets) = self.attributes.iter().find(|(name, _)| name == attribute)?;
        sets.get(word).map(|set| &**set)
    }

    /// The folded names of the stores that articles' stock names, sorted.
    pub fn stores(&self) -> Vec<&str> {
        let mut stores: Vec<&str> = self.stores.keys().map(String::as_str).collect();
        stores.sort_unstable();
        stores
    }

    /// Whether an article's stock names the store.
    pub fn has_store(&self, store: &str) -> bool {
        self.stores.contains_key(&fold(store))
    }
}

/// A customer's needs of variants.
#[derive(Debug)]
pub struct Wanted<'s> {
    supply: &'s Supply,
    demands: Vec<(&'s Demand, &'s [String])>,
}

/// Which variant of an article a customer needs.
#[derive(Debug, Clone)]
pub enum Choice {
    /// Its fields, and whether it is in stock.
    Variant { id: String, fields: Box<RawValue> },
    /// The article has none that fits.
    NoneFits,
    /// It has several, and nothing says which fits.
    Unknown,
}

impl Wanted<'_> {
    /// The variant of the article at this position that fits, one in stock first; `None` if it has no variants.
    pub fn choose(&self, position: u32, article: &PackedArticle, store: Option<&str>) -> Option<Choice> {
        let offers = article.offers();
        if offers.is_empty() {
            return None;
        }
        let about = self.demands.iter().filter(|(demand, _)| demand.about.contains(position));
        let wanted = about.map(|(demand, words)| (&*self.supply.options[demand.attribute], *words));
        let wanted: Vec<_> =
            wanted.filter(|(option, _)| offers.iter().any(|offer| says(offer, option))).collect();
        let fitting: Vec<&Offer> = offers.iter().filter(|offer| fits(offer, &wanted)).collect();
        let Some(first) = fitting.first() else { return Some(Choice::NoneFits) };
        if fitting.iter().any(|offer| !rest(offer, &wanted).eq(rest(first, &wanted))) {
            return Some(Choice::Unknown);
        }
        let is_in_stock = article.stock(store);
        let chosen = fitting.iter().copied().find(|offer| is_in_stock(offer)).unwrap_or(first);
        Some(Choice::Variant {
            id: chosen.variant.id.clone(),
            fields: article.describe(chosen, is_in_stock(chosen)),
        })
    }
}

/// The words of an option, of which one fits.
fn words<'o>(offer: &'o Offer, option: &str) -> Option<&'o [String]> {
    offer.words.iter().find(|(name, _)| name == option).map(|(_, words)| &words[..])
}

fn says(offer: &Offer, option: &str) -> bool {
    words(offer, option).is_some_and(|words| !words.is_empty())
}

/// Whether it has one of the words of each option. One in a size for everyone fits everyone.
fn fits(offer: &Offer, wanted: &[(&str, &[String])]) -> bool {
    wanted.iter().all(|(option, fitting)| {
        words(offer, option)
            .is_some_and(|words| words.is_empty() || words.iter().any(|word| fitting.contains(word)))
    })
}

/// A customer's choices with it besides the known options. An option that is the size again is none.
fn rest<'o>(
    offer: &'o Offer,
    known: &'o [(&str, &[String])],
) -> impl Iterator<Item = &'o (String, Vec<String>)> {
    let size = offer.variant.size.as_ref().and(offer.words.first());
    let is_size_again = move |option: &(String, Vec<String>)| {
        size.is_some_and(|size| size.0 != option.0 && size.1 == option.1)
    };
    let is_known = |option: &(String, Vec<String>)| known.iter().any(|(name, _)| *name == option.0);
    offer.words.iter().filter(move |option| !is_size_again(option) && !is_known(option))
}

/// The most combinations of words by which a count is found: one more option of a variant than that is not looked for.
const MOST_KEYS: usize = 128;

impl InStock {
    /// `most` is the number of sets from which on there are no others.
    fn change(&mut self, count: &Count, most: usize, change: &impl Fn(&mut SparseMask)) {
        if !count.is_any {
            return;
        }
        change(Arc::make_mut(&mut self.any));
        let mut keys = vec![String::new()];
        for (attribute, words) in count.words.iter().enumerate() {
            if keys.len() * (words.len() + 1) > MOST_KEYS {
                break;
            }
            for at in 0..keys.len() {
                for word in words {
                    let mut key = keys[at].clone();
                    add_word(&mut key, attribute, word);
                    change_set(&mut self.by_words, &key, most, change);
                    keys.push(key);
                }
            }
        }
    }
}

/// Adds a word of one more attribute to a key of [`InStock::by_words`]. Folded words have no control characters.
fn add_word(key: &mut String, attribute: usize, word: &str) {
    key.extend([&*attribute.to_string(), "\u{1f}", word, "\u{1e}"]);
}

/// Changes the set of a word. Words beyond the most have none, as if no article said them.
fn change_set(sets: &mut Sets, word: &str, most: usize, change: &impl Fn(&mut SparseMask)) {
    if sets.len() < most || sets.contains_key(word) {
        change(Arc::make_mut(sets.entry(word.to_owned()).or_default()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use atelier_core::domain::{ArticleId, FeatureValue};

    const SCHEMA: &str = r#"
        name = "s"
        [[feature]]
        name = "top"
        kind = "category"
        values = ["S", "M", "L"]
        requires = {attribute = "sizes", types = ["coat", "shirt"]}
        [[feature]]
        name = "width"
        kind = "set"
        values = ["M", "L"]
        requires = [{attribute = "sizes", types = ["coat"]}, {attribute = "type", types = ["hat"], values = {M = "cap"}}]
    "#;

    fn article(kind: &str, attributes: Value) -> Article {
        let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
        Article::new(ArticleId::new("a").unwrap(), kind, attributes).unwrap()
    }

    /// Articles with these attributes, of this type unless they name another.
    fn articles(kind: &str, all: Value) -> Vec<Article> {
        let Value::Array(all) = all else { panic!("a list of objects") };
        let one = |mut attributes: Value| {
            let own = attributes.as_object_mut().unwrap().remove("type");
            article(own.as_ref().and_then(Value::as_str).unwrap_or(kind), attributes)
        };
        all.into_iter().map(one).collect()
    }

    fn supply(articles: &[Article]) -> Supply {
        supply_of(SCHEMA, articles)
    }

    fn supply_of(schema: &str, articles: &[Article]) -> Supply {
        let mut supply = Supply::new(&Schema::parse(schema).unwrap());
        for (index, article) in (0..).zip(articles) {
            supply.add(index, &supply.read(article));
        }
        supply
    }

    fn indices(mask: &Mask) -> Vec<u32> {
        mask.iter().collect()
    }

    fn features(given: &[(&str, &[&str])]) -> Features {
        let many = |words: &[&str]| FeatureValue::Many(words.iter().map(ToString::to_string).collect());
        given.iter().map(|(name, words)| ((*name).to_owned(), many(words))).collect()
    }

    #[test]
    fn what_is_not_said_excludes_nothing() {
        let coats = json!([
            {"sizes": ["S", "M"]}, {"sizes": "l", "type": "Coat"}, {"sizes": null}, {"sizes": ["S"], "type": "boot"},
            {"sizes": ["S"], "type": "Coats"}, {"sizes": ["One Size"]},
        ]);
        let supply = supply(&articles("coat", coats));
        let unfit = |given: &[(&str, &[&str])]| {
            let found = supply.unfit(&supply.needs(&features(given)), 64);
            (indices(&found.articles), found.unmet)
        };
        assert_eq!(unfit(&[("top", &["M"])]), (vec![1, 4], vec![]));
        assert_eq!(unfit(&[("top", &["M", "L"])]).0, [4]);
        assert_eq!(unfit(&[("top", &[]), ("other", &["M"])]).0, [0u32; 0]);
        assert_eq!(unfit(&[("top", &["S"]), ("width", &["L"])]), (vec![0, 1, 4], vec![]));
        let unmet = ("top".into(), "sizes".into(), vec!["56".to_owned(), "xs".to_owned()]);
        assert_eq!(unfit(&[("top", &["XS", "56"])]), (vec![0, 1, 4], vec![unmet]));
        assert_eq!(unfit(&[("width", &["M"])]).0, [1, 4], "there are no hats");
    }

    #[test]
    fn stock_counts_in_the_customers_size_and_the_store() {
        let shirts = json!([
            {"stock": {"M": 0, "L": 3}},
            {"stock": 2},
            {"stock": [{"size": "M", "store": "Zurich", "count": 1}, {"size": "L", "count": 1}]},
            {"stock": [{"store": "basel", "count": 1}, {"store": "zurich", "count": 0}]},
            {},
            {"stock": {"M": 0, "38": 1}, "type": "boot"},
            {"stock": "plenty"},
            {"sizes": ["O/S"], "stock": {"OS": 2}},
            {"stock": [{"count": 5}, {"size": "M", "count": 0}, {"size": "L", "count": 5}]},
        ]);
        let supply = supply(&articles("shirt", shirts));
        let sold_out = |words: &[&str], store| {
            indices(&supply.sold_out(Some(&supply.needs(&features(&[("top", words)]))), store, 64))
        };
        assert_eq!(sold_out(&["M"], None), [0, 6, 8], "a total says nothing of a size");
        assert_eq!(sold_out(&["L"], None), [6]);
        assert_eq!(sold_out(&["M", "L"], None), [6]);
        assert_eq!(sold_out(&[], None), [6]);
        assert_eq!(sold_out(&["S"], None), [0, 2, 6, 8]);
        assert_eq!(sold_out(&["M"], Some("zurich")), [0, 3, 6, 8]);
        assert_eq!(sold_out(&["M"], Some(" BASEL")), [0, 2, 6, 8]);
        assert_eq!(sold_out(&["M"], Some("bern")), [0, 2, 3, 6, 8]);
        assert_eq!(indices(&supply.sold_out(None, Some("zurich"), 64)), [3, 6]);
        assert!(supply.has_store("ZURICH") && !supply.has_store("bern"));
    }

    /// Issue 65: each store had its own bound, and there may be thousands of stores.
    #[test]
    fn sizes_of_all_stores_have_one_bound() {
        let mut supply = supply(&[]);
        let count = |number: u32| {
            let words = vec![vec![format!("size {}", number % 500)], Vec::new()];
            Count { store: Some(format!("store {}", number / 500)), is_any: true, words }
        };
        let counts = Some((0..250_000).map(count).collect());
        let all = Facts { counts, words: vec![Vec::new(); 2], ..Facts::default() };
        let sets =
            |supply: &Supply| supply.stores.values().map(|store| store.stock.by_words.len()).sum::<usize>();
        supply.add(1, &all);
        assert_eq!((supply.stores.len(), sets(&supply)), (500, MOST_IN_STORES));
        supply.add(2, &all);
        supply.remove(1, &all);
        assert_eq!((sets(&supply), supply.in_stores), (MOST_IN_STORES, MOST_IN_STORES));
        supply.remove(2, &all);
        assert_eq!((supply.stores.len(), supply.in_stores), (0, 0));
    }

    /// A coat must fit by both of its sizes: one count in stock is of one size.
    #[test]
    fn one_size_in_stock_must_meet_every_requirement() {
        let supply = supply(&[article("coat", json!({"stock": {"S": 1, "L": 1}}))]);
        let of = |top: &str, width: &str| supply.needs(&features(&[("top", &[top]), ("width", &[width])]));
        assert_eq!(indices(&supply.sold_out(Some(&of("S", "L")), None, 32)), [0]);
        assert_eq!(indices(&supply.sold_out(Some(&of("L", "L")), None, 32)), [0u32; 0]);
    }

    /// A trouser of one width and another one of the length do not make one of both.
    #[test]
    fn one_variant_must_meet_every_requirement() {
        let schema = r#"
            name = "s"
            [[feature]]
            name = "width"
            kind = "category"
            values = ["W32", "W33"]
            requires = {attribute = "sizes", types = ["jeans"]}
            [[feature]]
            name = "length"
            kind = "set"
            values = ["L30", "L32", "L34"]
            requires = {attribute = "Länge", types = ["jeans"]}
        "#;
        let jeans = json!([
            {"variants": [
                {"id": "a", "size": "W32", "options": {"LÄNGE": "L34"}, "stock": 1},
                {"id": "b", "size": "W32", "options": {"LÄNGE": "L32"}, "stock": 0},
                {"id": "c", "size": "W33", "options": {"LÄNGE": "L32"}, "stock": {"Basel": 2}},
            ]},
            {"variants": [{"id": "d", "size": "W32"}, {"id": "e", "size": "W33", "stock": 0}]},
            {"variants": [{"id": "f", "options": {"Länge": "L34"}}]},
            {"stock": 1},
            {"stock": {"W32": 0, "W33": 1}, "variants": [{"id": "g", "size": "W32"}, {"id": "h", "size": "W33"}]},
        ]);
        let articles = articles("jeans", jeans);
        let supply = supply_of(schema, &articles);
        // Words with spaces between them.
        let needs = |width: &str, length: &str| {
            let [width, length] = [width, length].map(|words| words.split_whitespace().collect::<Vec<_>>());
            supply.needs(&features(&[("width", &width), ("length", &length)]))
        };
        let sold_out = |width: &str, length: &str, store| {
            indices(&supply.sold_out(Some(&needs(width, length)), store, 64))
        };
        assert_eq!(sold_out("W32", "L34", None), [4]);
        assert_eq!(sold_out("W32", "L32", None), [0, 2, 4]);
        assert_eq!(sold_out("W32", "L32 L34", None), [4]);
        assert_eq!(sold_out("W33", "L34", None), [0, 1]);
        assert_eq!(sold_out("W33", "", None), [1]);
        assert_eq!(sold_out("", "L32", Some("basel")), [2]);
        assert_eq!(sold_out("", "L32", Some("bern")), [0, 2]);
        assert_eq!(sold_out("", "L30", None), [0, 2], "the others do not say their length");
        assert_eq!(indices(&supply.unfit(&needs("", "L30"), 64).articles), [0, 2]);

        let choose = |index: u32, width: &str, length: &str, store| {
            let article = (&articles[index as usize]).into();
            match supply.wanted(&needs(width, length)).choose(index, &article, store) {
                Some(Choice::Variant { id, fields }) => {
                    let fields: Value = serde_json::from_str(fields.get()).unwrap();
                    format!("{id} {}", fields["in_stock"])
                }
                other => format!("{other:?}"),
            }
        };
        assert_eq!(choose(0, "W32", "L32 L34", None), "a true");
        assert_eq!(choose(0, "W32", "L32", None), "b false");
        assert_eq!(choose(0, "", "L32", None), "Some(Unknown)", "in either width");
        assert_eq!(choose(0, "W33", "", Some("basel")), "c true");
        assert_eq!(choose(0, "W33", "", Some("bern")), "c false");
        assert_eq!(choose(0, "W33", "L34", None), "Some(NoneFits)");
        assert_eq!(choose(1, "", "L32", None), "Some(Unknown)");
        assert_eq!(choose(2, "", "", None), "f true", "there is no other");
        assert_eq!(choose(3, "", "", None), "None");
        assert_eq!(choose(4, "W32", "", None), "g false", "the article says its stock by size");
        assert_eq!(choose(4, "W33", "", None), "h true");
    }
}
