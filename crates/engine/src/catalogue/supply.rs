//! Which articles fit a customer and are in stock for them: sets that are made with the catalogue, so that a request only
//! combines them.
//!
//! A release's schema says what a customer's features require. [`Supply::add`] and [`Supply::remove`] take an article as it
//! is at its position; a copy of a supply shares its sets until one of them changes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use atelier_core::domain::{Article, Counted, Features, Mask, Requirement, Schema, SparseMask, fold};

/// Not an attribute, but compared like one.
const TYPE: &str = "type";

#[derive(Debug, Clone, Default)]
pub struct Supply {
    demands: Vec<Demand>,
    /// The attributes that requirements name, each with the articles that say a word of it.
    attributes: Vec<(String, Sets)>,
    /// The articles that say their stock, in whatever sizes and stores.
    counted: Arc<SparseMask>,
    /// What is in stock in any store.
    in_any_store: BySize,
    /// What is in stock and of no store in particular: it counts in each.
    in_every_store: BySize,
    stores: HashMap<String, Arc<Store>>,
}

/// What an article says of its sizes, its stock and whatever else is required.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The words of its type.
    kinds: Vec<String>,
    /// By attribute of the supply.
    words: Vec<Vec<String>>,
    counts: Option<Vec<Counted>>,
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
}

/// A feature's requirement, with the feature's name and label.
#[derive(Debug)]
struct Rule {
    feature: String,
    label: String,
    requirement: Requirement,
}

/// What is in stock.
#[derive(Debug, Clone, Default)]
struct BySize {
    any: Arc<SparseMask>,
    /// Counted without a size, so it fits everyone.
    sizeless: Arc<SparseMask>,
    sizes: Sets,
}

#[derive(Debug, Clone, Default)]
struct Store {
    /// The articles whose stock names it.
    named: SparseMask,
    stock: BySize,
}

/// What does not fit a customer.
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
                    attributes.len() - 1
                });
                let rule = Rule {
                    feature: feature.name.clone(),
                    label: feature.label.clone(),
                    requirement: requirement.clone(),
                };
                let (about, restricted) = Default::default();
                supply.demands.push(Demand { rule: Arc::new(rule), attribute, about, restricted });
            }
        }
        supply
    }

    /// What an article says that the sets are made of.
    pub(super) fn read(&self, article: &Article) -> Facts {
        let words = |attribute: &str| {
            let mut words = article.folded_words(attribute);
            words.sort_unstable();
            words.dedup();
            words
        };
        Facts {
            kinds: if self.demands.is_empty() { Vec::new() } else { words(TYPE) },
            words: self.attributes.iter().map(|(attribute, _)| words(attribute)).collect(),
            counts: article.stock(),
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
        keep(&mut self.in_any_store.sizes);
        keep(&mut self.in_every_store.sizes);
        self.stores.retain(|_, store| !store.named.is_empty());
    }

    /// Changes the sets that the article is in.
    fn change(&mut self, article: &Facts, change: &impl Fn(&mut SparseMask)) {
        self.change_demands(article, change);
        let Some(counts) = &article.counts else { return };
        change(Arc::make_mut(&mut self.counted));
        // Beside counts of sizes, one without a size is a total: it does not say that a size is there.
        let names_sizes = counts.iter().any(|count| !count.sizes.is_empty());
        for count in counts {
            if let Some(name) = &count.store {
                let store = Arc::make_mut(self.stores.entry(name.clone()).or_default());
                change(&mut store.named);
                store.stock.change(count, names_sizes, change);
            } else {
                self.in_every_store.change(count, names_sizes, change);
            }
            self.in_any_store.change(count, names_sizes, change);
        }
    }

    fn change_demands(&mut self, article: &Facts, change: &impl Fn(&mut SparseMask)) {
        for ((_, sets), words) in self.attributes.iter_mut().zip(&article.words) {
            for word in words {
                change(set_of(sets, word));
            }
        }
        for demand in &mut self.demands {
            if demand.rule.requirement.is_about(&article.kinds) {
                change(Arc::make_mut(&mut demand.about));
                if demand.rule.requirement.excludes_some(&article.words[demand.attribute]) {
                    change(Arc::make_mut(&mut demand.restricted));
                }
            }
        }
    }

    /// The articles that do not fit a customer with these features, of `length` positions.
    pub fn unfit(&self, features: &Features, length: usize) -> Unfit {
        let mut unfit = Unfit { articles: Mask::none(length), unmet: Vec::new() };
        for (demand, words) in self.asked(features) {
            let (attribute, sets) = &self.attributes[demand.attribute];
            let mut others = Mask::none(length);
            others.unite_sparse(&demand.restricted);
            let mut fits_some = demand.restricted.is_empty();
            for fitting in words.iter().filter_map(|word| sets.get(word)) {
                fits_some |= others.meets_sparse(fitting);
                others.subtract_sparse(fitting);
            }
            if !fits_some {
                unfit.unmet.push((demand.rule.label.clone(), attribute.clone(), words));
            }
            unfit.articles.unite(&others);
        }
        unfit
    }

    /// The articles that say their stock and have none of it in this store, or in any, in a size that fits a customer with
    /// these features. Without features, any size does.
    pub fn sold_out(&self, features: Option<&Features>, store: Option<&str>, length: usize) -> Mask {
        let mut sold_out = Mask::none(length);
        sold_out.unite_sparse(&self.counted);
        if self.counted.is_empty() {
            return sold_out;
        }
        let named = store.and_then(|store| Some(&self.stores.get(&fold(store))?.stock));
        let stock: Vec<&BySize> = match store {
            None => vec![&self.in_any_store],
            Some(_) => [&self.in_every_store].into_iter().chain(named).collect(),
        };
        let demands: Vec<(&Demand, Vec<String>)> = features.map_or_else(Vec::new, |features| {
            self.asked(features).filter(|(demand, _)| demand.rule.requirement.is_of_sizes()).collect()
        });
        let mut in_stock = Mask::none(length);
        for stock in &stock {
            in_stock.unite_sparse(&stock.any);
        }
        for (demand, _) in &demands {
            in_stock.subtract_sparse(&demand.about);
        }
        let words: BTreeSet<&String> = demands.iter().flat_map(|(_, words)| words).collect();
        for word in words {
            let mut in_size = Mask::none(length);
            stock.iter().filter_map(|stock| stock.sizes.get(word)).for_each(|set| in_size.unite_sparse(set));
            for (demand, _) in demands.iter().filter(|(_, words)| !words.contains(word)) {
                in_size.subtract_sparse(&demand.about);
            }
            in_stock.unite(&in_size);
        }
        for stock in &stock {
            in_stock.unite_sparse(&stock.sizeless);
        }
        sold_out.subtract(&in_stock);
        sold_out
    }

    /// The requirements that apply to a customer with these features, with the words of articles that fit.
    fn asked(&self, features: &Features) -> impl Iterator<Item = (&Demand, Vec<String>)> {
        self.demands.iter().filter_map(|demand| {
            let Rule { feature, requirement, .. } = &*demand.rule;
            let words = requirement.fitting_words(features.get(feature)?);
            (!words.is_empty()).then_some((demand, words))
        })
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

impl BySize {
    /// `names_sizes` is whether any count of the article is of a size.
    fn change(&mut self, count: &Counted, names_sizes: bool, change: &impl Fn(&mut SparseMask)) {
        if !count.is_any {
            return;
        }
        change(Arc::make_mut(&mut self.any));
        if !names_sizes {
            change(Arc::make_mut(&mut self.sizeless));
        }
        for size in &count.sizes {
            change(set_of(&mut self.sizes, size));
        }
    }
}

fn set_of<'s>(sets: &'s mut Sets, word: &str) -> &'s mut SparseMask {
    if !sets.contains_key(word) {
        sets.insert(word.to_owned(), Arc::default());
    }
    Arc::make_mut(sets.get_mut(word).expect("it was just added; this is a bug"))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*, sample::select};
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

    fn supply(articles: &[Article]) -> Supply {
        let mut supply = Supply::new(&Schema::parse(SCHEMA).unwrap());
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
        let supply = supply(&[
            article("coat", json!({"sizes": ["S", "M"]})),
            article("Coat", json!({"sizes": "l"})),
            article("coat", json!({"sizes": null})),
            article("boot", json!({"sizes": ["S"]})),
            article("Coats", json!({"sizes": ["S"]})),
            article("coat", json!({"sizes": ["One Size"]})),
        ]);
        let unfit = |given: &Features| supply.unfit(given, 64);
        assert_eq!(indices(&unfit(&features(&[("top", &["M"])])).articles), [1, 4]);
        assert_eq!(indices(&unfit(&features(&[("top", &["M", "L"])])).articles), [4]);
        assert_eq!(indices(&unfit(&features(&[("top", &[]), ("other", &["M"])])).articles), [0u32; 0]);
        let both = unfit(&features(&[("top", &["S"]), ("width", &["L"])]));
        assert_eq!((indices(&both.articles), both.unmet), (vec![0, 1, 4], Vec::new()));
        let unknown = unfit(&features(&[("top", &["XS", "56"])]));
        assert_eq!(indices(&unknown.articles), [0, 1, 4]);
        assert_eq!(unknown.unmet, [("top".into(), "sizes".into(), vec!["56".to_owned(), "xs".to_owned()])]);
        let kinds = unfit(&features(&[("width", &["M"])]));
        assert_eq!(indices(&kinds.articles), [1, 4], "there are no hats");
    }

    #[test]
    fn stock_counts_in_the_customers_size_and_the_store() {
        let supply = supply(&[
            article("shirt", json!({"stock": {"M": 0, "L": 3}})),
            article("shirt", json!({"stock": 2})),
            article(
                "shirt",
                json!({"stock": [{"size": "M", "store": "Zurich", "count": 1}, {"size": "L", "count": 1}]}),
            ),
            article(
                "shirt",
                json!({"stock": [{"store": "basel", "count": 1}, {"store": "zurich", "count": 0}]}),
            ),
            article("shirt", json!({})),
            article("boot", json!({"stock": {"M": 0, "38": 1}})),
            article("shirt", json!({"stock": "plenty"})),
            article("shirt", json!({"sizes": ["O/S"], "stock": {"OS": 2}})),
            article(
                "shirt",
                json!({"stock": [{"count": 5}, {"size": "M", "count": 0}, {"size": "L", "count": 5}]}),
            ),
        ]);
        let sold_out =
            |words: &[&str], store| indices(&supply.sold_out(Some(&features(&[("top", words)])), store, 64));
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

    /// A coat must fit by both of its sizes: one count in stock is of one size.
    #[test]
    fn one_size_in_stock_must_meet_every_requirement() {
        let supply = supply(&[article("coat", json!({"stock": {"S": 1, "L": 1}}))]);
        let of = |top: &str, width: &str| features(&[("top", &[top]), ("width", &[width])]);
        assert_eq!(indices(&supply.sold_out(Some(&of("S", "L")), None, 32)), [0]);
        assert_eq!(indices(&supply.sold_out(Some(&of("L", "L")), None, 32)), [0u32; 0]);
    }

    fn any_article() -> impl Strategy<Value = Article> {
        let size = || select(&["S", "M", "L", "S/M", "One Size"][..]);
        let store = || option::of(select(&["a", "b"][..]));
        let counts = vec((option::of(size()), store(), 0..2), 0..4).prop_map(|counts| {
            let entry = |(size, store, count)| json!({"size": size, "store": store, "count": count});
            counts.into_iter().map(entry).collect::<Value>()
        });
        let kind = select(&["coat", "shirt", "hat", "cap", "boot"][..]);
        (kind, option::of(vec(size(), 0..3)), option::of(counts))
            .prop_map(|(kind, sizes, stock)| article(kind, json!({"sizes": sizes, "stock": stock})))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// A supply that articles were taken out of is the one of the others, and a copy of it before is not changed.
        #[test]
        fn removed_articles_leave_nothing(articles in vec((any_article(), any::<bool>()), 0..40)) {
            let all: Vec<Article> = articles.iter().map(|(article, _)| article.clone()).collect();
            let before = supply(&all);
            let mut after = before.clone();
            let mut others = Supply::new(&Schema::parse(SCHEMA).unwrap());
            for (index, (article, stays)) in (0..).zip(&articles) {
                if *stays { others.add(index, &others.read(article)) } else { after.remove(index, &after.read(article)) }
            }
            let given = features(&[("top", &["M"]), ("width", &["M", "L"])]);
            let seen = |supply: &Supply| {
                let stores = [None, Some("a"), Some("b")];
                let sold_out = stores.map(|store| [Some(&given), None].map(|given| supply.sold_out(given, store, 64)));
                (supply.unfit(&given, 64).articles, sold_out, supply.has_store("a"))
            };
            prop_assert_eq!(seen(&after), seen(&others));
            prop_assert_eq!(seen(&before), seen(&supply(&all)));
        }
    }
}
