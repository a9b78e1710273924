//! The catalogue: the articles that the shop has, each at a place, and the sets of them that filters need.
//!
//! Built from the database's articles and a release. It is immutable: after a change in the database comes a next one, which
//! shares what stayed with the one before.
//!
//! Must not know HTTP, SQL or models.

mod supply;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::Arc,
};

use atelier_core::{
    domain::{Article, ArticleId, Features, Mask, Schema, fold_for, fold_parts},
    util::{chunked::Chunked, notation::is_currency, sharded::Sharded},
};
use rayon::prelude::*;

use self::supply::Facts;
pub use self::supply::{Supply, Unfit};

use crate::{inference::Places, packed_article::PackedArticle, release::Release, tables::Composition};

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

    fn count_of(&mut self, is_present: bool, is_known: bool) -> &mut usize {
        match (is_present, is_known) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.only_catalogue,
            (false, _) => &mut self.only_release,
        }
    }
}

/// The articles of the shop, and those of the release that it no longer has, each at a place. Articles of one type are at
/// neighbouring places, in panels of their own.
#[derive(Debug, Clone)]
pub struct Catalogue {
    entries: Chunked<Option<Entry>>,
    places: Sharded<ArticleId, u32>,
    rows: Places,
    /// Free places, by the type whose panels they are in.
    free: BTreeMap<Box<str>, Vec<u32>>,
    /// Panels without a type, for new articles.
    unused: Range<u32>,
    present: Arc<Mask>,
    coverage: Coverage,
    /// One spelling of each type, by the form that is compared.
    types: HashMap<String, String>,
    /// The shop's. None if all prices count as of one currency.
    currency: Option<Arc<str>>,
    /// By place; NaN for articles without a price in the shop's currency.
    prices: Chunked<f64>,
    out_of_stock: Arc<Mask>,
    /// Articles whose stored price or stock an import would refuse.
    unreadable: Vec<ArticleId>,
    /// The type, and the attributes by which features of the schema exclude articles.
    attributes: Arc<[String]>,
    /// By attribute and folded word.
    words: HashMap<String, HashMap<String, Arc<Mask>>>,
    supply: Supply,
}

/// An article at its place.
#[derive(Debug, Clone)]
struct Entry {
    article: Arc<PackedArticle>,
    /// Whether the shop has it.
    is_present: bool,
}

/// The places of a type are a multiple of this: the last layer is computed for as many articles together.
const PANEL: usize = 32;
/// A catalogue has this share of its panels unused at first, and at least so many panels.
const UNUSED_SHARE: usize = 16;
const LEAST_UNUSED: usize = 16;

/// What a catalogue keeps of an article.
#[derive(Debug)]
struct Prepared {
    article: Arc<PackedArticle>,
    composition: Composition,
    price: f64,
    in_stock: bool,
    is_readable: bool,
    /// By attribute of the catalogue.
    words: Vec<Vec<String>>,
    supply: Facts,
}

impl Prepared {
    /// `trained` are its values in training, if they are at hand, `attributes` those of the catalogue, `supply` is any of the
    /// release's.
    fn new(
        article: &Article,
        trained: Option<&[u32]>,
        release: &Release,
        attributes: &[String],
        supply: &Supply,
        currency: Option<&str>,
    ) -> Self {
        let packed = PackedArticle::from(article).without_embedding();
        let own = release.vocabulary().index_of(article.id.as_str());
        let of_release = own.map(|own| &release.articles()[own as usize]);
        // Most articles are in the shop as they were in training.
        let packed =
            of_release.filter(|other| ***other == packed).map_or_else(|| Arc::new(packed), Arc::clone);
        let composition = match trained {
            Some(trained) => release.compose_beside(article, own, Some(trained)),
            None => release.compose(article),
        };
        Self::with(packed, article, composition, attributes, supply, currency)
    }

    /// An article of the release, as it was in training.
    fn of_release(
        index: usize,
        release: &Release,
        attributes: &[String],
        supply: &Supply,
        currency: Option<&str>,
    ) -> Self {
        let packed = &release.articles()[index];
        let article = packed.unpack();
        let composition = release.compose_unpacked(index, &article);
        Self::with(Arc::clone(packed), &article, composition, attributes, supply, currency)
    }

    fn with(
        packed: Arc<PackedArticle>,
        article: &Article,
        composition: Composition,
        attributes: &[String],
        supply: &Supply,
        currency: Option<&str>,
    ) -> Self {
        Self {
            article: packed,
            composition,
            price: price_in(currency, article).unwrap_or(f64::NAN),
            in_stock: article.in_stock(),
            is_readable: article.is_readable(),
            words: attributes.iter().map(|attribute| article.folded_words(attribute)).collect(),
            supply: supply.read(article),
        }
    }
}

/// The price, unless the article names another currency than the shop's.
fn price_in(currency: Option<&str>, article: &Article) -> Option<f64> {
    let named = article.words("currency").next().filter(|code| is_currency(code));
    let is_other = currency.zip(named).is_some_and(|(own, named)| own != named);
    article.price().filter(|_| !is_other)
}

/// Collects the articles of a catalogue.
#[derive(Debug)]
pub struct CatalogueBuilder {
    attributes: Arc<[String]>,
    currency: Option<Arc<str>>,
    /// Without articles.
    supply: Supply,
    /// The articles that the models know, until the shop's are added.
    known: Vec<Option<Prepared>>,
    /// The shop's.
    articles: Vec<Prepared>,
}

impl CatalogueBuilder {
    /// `currency` is the shop's: limits of prices are in it. Without one, all prices count as of one currency.
    pub fn new(release: &Release, currency: Option<Arc<str>>) -> Self {
        let excluding = release.schema().features().iter().filter_map(|feature| feature.excludes.as_deref());
        let mut attributes: Vec<String> = excluding.chain([TYPE]).map(str::to_owned).collect();
        attributes.sort_unstable();
        attributes.dedup();
        let supply = Supply::new(release.schema());
        let prepare =
            |index| Some(Prepared::of_release(index, release, &attributes, &supply, currency.as_deref()));
        let known: Vec<_> = (0..release.vocabulary().len()).into_par_iter().map(prepare).collect();
        release.tell_usual(known.iter().flatten().map(|known| &*known.composition.values));
        Self { attributes: attributes.into(), currency, supply, known, articles: Vec::new() }
    }

    /// Adds an article of the shop by the JSON of its attributes, if the release has it written alike.
    pub fn add_known(&mut self, id: &str, kind: &str, attributes: &str, release: &Release) -> bool {
        let Some(own) = release.vocabulary().index_of(id) else { return false };
        let found = self.known[own as usize].take_if(|known| known.article.is_written_as(kind, attributes));
        let is_known = found.is_some();
        self.articles.extend(found);
        is_known
    }

    /// Adds articles of the shop.
    pub fn add(&mut self, articles: &[Article], release: &Release) {
        let currency = self.currency.as_deref();
        let known = &self.known;
        let prepare = |article: &Article| {
            let own = release.vocabulary().index_of(article.id.as_str());
            let known = own.and_then(|own| known[own as usize].as_ref());
            let trained = known.map(|known| &*known.composition.values);
            Prepared::new(article, trained, release, &self.attributes, &self.supply, currency)
        };
        self.articles.par_extend(articles.par_iter().map(prepare));
    }

    pub fn build(self, release: &Release) -> Catalogue {
        let Self { attributes, currency, supply, known, articles } = self;
        let mut is_in_shop = vec![false; release.vocabulary().len()];
        for own in articles.iter().filter_map(|article| article.composition.own) {
            is_in_shop[own as usize] = true;
        }
        let gone = known.into_iter().zip(is_in_shop).filter(|(_, is_in_shop)| !is_in_shop);
        let mut all: Vec<(Prepared, bool)> =
            gone.filter_map(|(article, _)| Some((article?, false))).collect();
        all.extend(articles.into_iter().map(|article| (article, true)));
        let all = in_order(all);
        Catalogue::new(all, release, attributes, supply, currency)
    }
}

/// By type, then as in the vocabulary, then by id.
fn in_order(articles: Vec<(Prepared, bool)>) -> Vec<(Prepared, bool)> {
    let kinds: BTreeSet<&str> = articles.iter().map(|(article, _)| article.article.kind()).collect();
    let ranks: HashMap<&str, usize> = kinds.into_iter().zip(0..).collect();
    // Numbers are compared faster than texts, and moved faster than articles.
    let key = |(at, (article, _)): (usize, &(Prepared, bool))| {
        (ranks[article.article.kind()], article.composition.own.unwrap_or(u32::MAX), at)
    };
    let mut order: Vec<(usize, u32, usize)> = articles.iter().enumerate().map(key).collect();
    order.par_sort_unstable_by(|a, b| {
        let id = |at: usize| &articles[at].0.article.id;
        (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| id(a.2).cmp(id(b.2)))
    });
    let order: Vec<usize> = order.into_iter().map(|(_, _, at)| at).collect();
    let mut articles: Vec<Option<_>> = articles.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| articles[at].take()).collect()
}

/// The articles that say a word, by attribute and word.
fn masks_of_words(
    attributes: &[String],
    said: &[(u32, Vec<Vec<String>>, Facts)],
    length: usize,
) -> HashMap<String, HashMap<String, Arc<Mask>>> {
    let mut masks: Vec<HashMap<String, Mask>> = attributes.iter().map(|_| HashMap::new()).collect();
    for (place, words, _) in said {
        for (masks, words) in masks.iter_mut().zip(words) {
            for word in words {
                if let Some(mask) = masks.get_mut(word) {
                    mask.insert(*place);
                } else {
                    let mut mask = Mask::none(length);
                    mask.insert(*place);
                    masks.insert(word.clone(), mask);
                }
            }
        }
    }
    let shared = |masks: HashMap<String, Mask>| masks.into_iter().map(|(word, mask)| (word, Arc::new(mask)));
    let masks = attributes.iter().cloned().zip(masks).filter(|(_, masks)| !masks.is_empty());
    masks.map(|(attribute, masks)| (attribute, shared(masks).collect())).collect()
}

impl Catalogue {
    /// `articles` are the shop's.
    pub fn build(articles: &[Article], release: &Release) -> Self {
        let mut builder = CatalogueBuilder::new(release, None);
        builder.add(articles, release);
        builder.build(release)
    }

    /// `all` are sorted by type, and `supply` has no articles.
    fn new(
        mut all: Vec<(Prepared, bool)>,
        release: &Release,
        attributes: Arc<[String]>,
        supply: Supply,
        currency: Option<Arc<str>>,
    ) -> Self {
        let panels: usize = all
            .chunk_by(|(a, _), (b, _)| a.article.kind() == b.article.kind())
            .map(|same| same.len().div_ceil(PANEL))
            .sum();
        let unused = (panels / UNUSED_SHARE).max(LEAST_UNUSED);
        let length = (panels + unused) * PANEL;
        let count = |panels: usize| {
            u32::try_from(panels * PANEL).expect("articles are counted in 32 bits; this is a bug")
        };
        let of_index = Arc::new(vec![0; release.vocabulary().len()]);
        let mut catalogue = Self {
            entries: (0..length).map(|_| None).collect(),
            places: Sharded::default(),
            rows: Places {
                compositions: (0..length).map(|_| None).collect(),
                ids: (0..length).map(|_| None).collect(),
                of_index,
            },
            free: BTreeMap::new(),
            unused: 0..count(panels + unused),
            present: Arc::new(Mask::none(length)),
            coverage: Coverage::default(),
            types: HashMap::new(),
            prices: (0..length).map(|_| f64::NAN).collect(),
            out_of_stock: Arc::new(Mask::none(length)),
            unreadable: Vec::new(),
            attributes,
            currency,
            words: HashMap::new(),
            supply,
        };
        // What most of the time goes to is taken out, for several cores.
        let mut said = Vec::with_capacity(all.len());
        let mut places = Vec::with_capacity(all.len());
        for (article, is_present) in &mut all {
            let place = catalogue.take_place(article.article.kind()).expect("there is room; this is a bug");
            places.push(place);
            if *is_present {
                let (words, facts) =
                    (std::mem::take(&mut article.words), std::mem::take(&mut article.supply));
                said.push((place, words, facts));
            }
        }
        let (attributes, mut supply) = (Arc::clone(&catalogue.attributes), catalogue.supply.clone());
        let ((), words) = rayon::join(
            || said.iter().for_each(|(place, _, facts)| supply.add(*place, facts)),
            || {
                for (place, (article, is_present)) in places.into_iter().zip(all) {
                    catalogue.put(place, article, is_present);
                }
                masks_of_words(&attributes, &said, length)
            },
        );
        // Freeing so many texts takes a core half a second, for which nobody has to wait.
        rayon::spawn(|| drop(said));
        (catalogue.words, catalogue.supply) = (words, supply);
        catalogue
    }

    /// The catalogue after changes: each article as it is now, or None if the shop no longer has it. Also the places whose
    /// articles are made of something else now: a new price within the same range changes no row. None if there is no room for
    /// all new articles.
    pub fn with_changes(
        &self,
        changes: &[(ArticleId, Option<Article>)],
        release: &Release,
    ) -> Option<(Self, Vec<u32>)> {
        let mut next = self.clone();
        let mut touched = Vec::new();
        let currency = self.currency.as_deref();
        let prepare = |article: &Article| {
            Prepared::new(article, None, release, &self.attributes, &self.supply, currency)
        };
        for (id, article) in changes {
            let place = next.place_of(id.as_str());
            if let Some(place) = place {
                next.remove(place);
            }
            let own = release.vocabulary().index_of(id.as_str());
            let (article, is_present) = match (article, own) {
                (Some(article), _) => (prepare(article), true),
                // A visible article of an outfit may be one that the shop no longer has.
                (None, Some(own)) => (prepare(&release.articles()[own as usize].unpack()), false),
                (None, None) => {
                    if let Some(place) = place {
                        next.free_place(place);
                        touched.push(place);
                    }
                    continue;
                }
            };
            let place = place.or_else(|| next.take_place(article.article.kind()))?;
            if is_present {
                next.add_words(place, &article.words);
                next.supply.add(place, &article.supply);
            }
            if next.rows.compositions.get(place as usize).and_then(Option::as_ref)
                != Some(&article.composition)
            {
                touched.push(place);
            }
            next.put(place, article, is_present);
        }
        Some((next, touched))
    }

    /// A place for a new article, among those of its type if one is free.
    fn take_place(&mut self, kind: &str) -> Option<u32> {
        if let Some(place) = self.free.get_mut(kind).and_then(Vec::pop) {
            return Some(place);
        }
        if self.unused.is_empty() {
            return None;
        }
        let first = self.unused.start;
        self.unused.start += u32::try_from(PANEL).expect("a small number; this is a bug");
        // The lowest is taken first.
        let rest = (first + 1..self.unused.start).rev();
        self.free.entry(kind.into()).or_default().extend(rest);
        Some(first)
    }

    /// Makes a place free whose article was removed.
    fn free_place(&mut self, place: u32) {
        let entry = self.entries.get_mut(place as usize).take();
        let article = entry.expect("an article was at the place; this is a bug").article;
        *self.rows.compositions.get_mut(place as usize) = None;
        *self.rows.ids.get_mut(place as usize) = None;
        self.places.remove(&article.id);
        self.free.entry(article.kind().into()).or_default().push(place);
    }

    /// Puts an article at a place, but for what it says.
    fn put(&mut self, place: u32, prepared: Prepared, is_present: bool) {
        let Prepared { article, composition, price, in_stock, is_readable, words: _, supply: _ } = prepared;
        if let Some(own) = composition.own
            && self.rows.of_index[own as usize] != place
        {
            Arc::make_mut(&mut self.rows.of_index)[own as usize] = place;
        }
        *self.coverage.count_of(is_present, composition.own.is_some()) += 1;
        *self.rows.compositions.get_mut(place as usize) = Some(composition);
        *self.rows.ids.get_mut(place as usize) = Some(article.id.clone());
        self.places.insert(article.id.clone(), place);
        if is_present {
            *self.prices.get_mut(place as usize) = price;
            if !is_readable {
                self.unreadable.push(article.id.clone());
            }
            Arc::make_mut(&mut self.present).insert(place);
            self.types.entry(fold_for(TYPE, article.kind())).or_insert_with(|| article.kind().to_owned());
            if !in_stock {
                Arc::make_mut(&mut self.out_of_stock).insert(place);
            }
        }
        *self.entries.get_mut(place as usize) = Some(Entry { article, is_present });
    }

    fn add_words(&mut self, place: u32, words: &[Vec<String>]) {
        let length = self.present.length();
        for (attribute, words) in self.attributes.iter().zip(words).filter(|(_, words)| !words.is_empty()) {
            let masks = self.words.entry(attribute.clone()).or_default();
            for word in words {
                let mask = masks.entry(word.clone()).or_insert_with(|| Arc::new(Mask::none(length)));
                Arc::make_mut(mask).insert(place);
            }
        }
    }

    /// Takes an article out of all sets. It keeps its place.
    fn remove(&mut self, place: u32) {
        let Some(Entry { article, is_present }) = self.entries.get(place as usize).cloned().flatten() else {
            return;
        };
        let composition = self.rows.compositions.get(place as usize).and_then(Option::as_ref);
        let is_known = composition.is_some_and(|composition| composition.own.is_some());
        *self.coverage.count_of(is_present, is_known) -= 1;
        if !is_present {
            return;
        }
        *self.prices.get_mut(place as usize) = f64::NAN;
        self.unreadable.retain(|id| *id != article.id);
        Arc::make_mut(&mut self.present).remove(place);
        if self.out_of_stock.contains(place) {
            Arc::make_mut(&mut self.out_of_stock).remove(place);
        }
        let article = article.unpack();
        let supply = self.supply.read(&article);
        self.supply.remove(place, &supply);
        for attribute in self.attributes.iter() {
            let Some(masks) = self.words.get_mut(attribute) else { continue };
            for word in article.folded_words(attribute) {
                if let Some(mask) = masks.get_mut(&word) {
                    Arc::make_mut(mask).remove(place);
                    if mask.is_empty() {
                        masks.remove(&word);
                    }
                }
            }
        }
        if self.of_type(article.kind()).is_none() {
            self.types.remove(&fold_for(TYPE, article.kind()));
        }
    }

    /// None if the shop does not have it.
    pub fn article(&self, place: u32) -> Option<&Arc<PackedArticle>> {
        let entry = self.entries.get(place as usize)?.as_ref()?;
        entry.is_present.then_some(&entry.article)
    }

    /// An article of the shop or of the release.
    pub fn any_article(&self, place: u32) -> Option<&Arc<PackedArticle>> {
        Some(&self.entries.get(place as usize)?.as_ref()?.article)
    }

    /// The place of an article of the shop or of the release.
    pub fn place_of(&self, id: &str) -> Option<u32> {
        self.places.get(id).copied()
    }

    /// Whether the article at a place is one that the release was not trained with.
    pub fn is_new(&self, place: u32) -> bool {
        let composition = self.rows.compositions.get(place as usize).and_then(Option::as_ref);
        composition.is_some_and(|composition| composition.own.is_none())
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

    /// The articles of a type in any case, in the singular or plural, or None if the shop has none. `Coat/Jacket` is of both
    /// types.
    pub fn of_type(&self, kind: &str) -> Option<&Mask> {
        Some(self.words.get(TYPE)?.get(&fold_for(TYPE, kind))?)
    }

    /// In alphabetical order.
    pub fn types(&self) -> Vec<&str> {
        let mut types: Vec<&str> = self.types.values().map(String::as_str).collect();
        types.sort_unstable();
        types
    }

    /// The attributes by which the schema excludes or requires articles, each with its folded words, sorted. Not the type.
    pub fn facets(&self) -> BTreeMap<&str, Vec<&str>> {
        let excluding = self.words.iter().map(|(attribute, words)| (attribute.as_str(), words.keys()));
        let excluding = excluding.map(|(attribute, words)| (attribute, words.map(String::as_str).collect()));
        let mut facets: BTreeMap<&str, Vec<&str>> = self.supply.facets().chain(excluding).collect();
        facets.remove(TYPE);
        for words in facets.values_mut() {
            words.sort_unstable();
        }
        facets
    }

    /// The articles with a folded word in one of the facets.
    pub fn saying(&self, attribute: &str, word: &str) -> Mask {
        let mut articles = Mask::none(self.present.length());
        if let Some(of_word) = self.words.get(attribute).and_then(|words| words.get(word)) {
            articles.unite(of_word);
        } else if let Some(of_word) = self.supply.saying(attribute, word) {
            articles.unite_sparse(of_word);
        }
        articles
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

    /// NaN without a price.
    pub fn price(&self, place: u32) -> f64 {
        self.prices.get(place as usize).copied().unwrap_or(f64::NAN)
    }

    /// The price of an article, if it has one in the shop's currency.
    pub fn price_of(&self, article: &Article) -> Option<f64> {
        price_in(self.currency.as_deref(), article)
    }

    /// The two cheapest of some articles, with their prices; fewer if fewer have a price.
    pub fn cheapest(&self, of: &Mask) -> Vec<(u32, f64)> {
        let mut cheapest = Vec::with_capacity(3);
        let prices = (0..).zip(self.prices.iter()).filter(|(place, _)| of.contains(*place));
        for (place, &price) in prices.filter(|(_, price)| !price.is_nan()) {
            if cheapest.get(1).is_none_or(|(_, second)| price < *second) {
                cheapest.push((place, price));
                cheapest.sort_by(|(_, a), (_, b)| f64::total_cmp(a, b));
                cheapest.truncate(2);
            }
        }
        cheapest
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
            let find = |word: &str| words.and_then(|words| words.get(&fold_for(attribute, word)));
            let whole = find(&no_go);
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
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use atelier_core::domain::FeatureValue;

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
        let schema = Schema::parse(schema).unwrap();
        Release::assemble("r".as_ref(), manifest, schema, articles, None).unwrap()
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
        let catalogue = Catalogue::build(&articles, &release);
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
        assert_eq!(catalogue.places().compositions.len(), (3 + LEAST_UNUSED) * PANEL);
        assert_eq!(catalogue.place_of("nowhere"), None);
    }

    /// What a catalogue says, by ids instead of places.
    fn describe(catalogue: &Catalogue) -> Value {
        let ids = |mask: &Mask| {
            let mut ids: Vec<String> =
                mask.iter().map(|place| catalogue.article(place).unwrap().id.to_string()).collect();
            ids.sort_unstable();
            ids
        };
        let mut all = Vec::new();
        for place in 0..u32::try_from(catalogue.entries.len()).unwrap() {
            let composition = catalogue.rows.compositions.get(place as usize).unwrap();
            assert_eq!(catalogue.any_article(place).is_some(), composition.is_some());
            let Some(article) = catalogue.any_article(place) else { continue };
            assert_eq!(catalogue.place_of(article.id.as_str()), Some(place));
            if let Some(own) = composition.as_ref().unwrap().own {
                assert_eq!(catalogue.rows.of_index[own as usize], place);
            }
            let own = composition.as_ref().unwrap().own;
            all.push((article.id.to_string(), article.unpack(), own, catalogue.article(place).is_some()));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let words: BTreeMap<_, BTreeMap<_, _>> = catalogue
            .words
            .iter()
            .map(|(attribute, words)| {
                (attribute, words.iter().map(|(word, mask)| (word, ids(mask))).collect())
            })
            .collect();
        let words: BTreeMap<_, _> = words.into_iter().filter(|(_, words)| !words.is_empty()).collect();
        let mut unreadable: Vec<_> = catalogue.unreadable.iter().map(ToString::to_string).collect();
        unreadable.sort_unstable();
        json!({
            "all": all, "present": ids(&catalogue.present), "stock": ids(catalogue.out_of_stock()), "words": words,
            "priced": ids(&catalogue.priced(Some(2.0), None)), "types": catalogue.types(),
            "coverage": format!("{:?}", catalogue.coverage), "unreadable": unreadable,
        })
    }

    proptest! {
        #[test]
        fn changes_give_the_catalogue_that_is_built_anew(
            changes in prop::collection::vec((0u8..60, 0u8..4, 0u8..6), 1..150),
            together in 1usize..20,
        ) {
            let schema = "name = \"s\"\n[[feature]]\nname = \"avoids\"\nkind = \"set\"\nvalues = [\"red\"]\n\
                          excludes = \"colour\"\n";
            let made = |number: u8, version: u8| {
                let colour = ["red", "blue", "green / red"][usize::from(version) % 3];
                let in_stock = [json!(true), json!(false), json!("perhaps")][usize::from(version) % 3].clone();
                let attributes = json!({"price": version, "colour": colour, "in_stock": in_stock});
                article(&format!("a-{number}"), ["boot", "coat"][usize::from(number + version) % 2], attributes)
            };
            let of_release: Vec<Article> = (0..20).map(|number| made(number, 0)).collect();
            let release = release(&of_release, schema);
            let mut shop: BTreeMap<u8, Article> = (10..40).map(|number| (number, made(number, 1))).collect();
            let articles: Vec<Article> = shop.values().cloned().collect();
            let mut catalogue = Catalogue::build(&articles, &release);
            for changes in changes.chunks(together) {
                let change = |(number, version, what): &(u8, u8, u8)| {
                    let article = (*what > 1).then(|| made(*number, *version));
                    match &article {
                        Some(article) => shop.insert(*number, article.clone()),
                        None => shop.remove(number),
                    };
                    (ArticleId::new(format!("a-{number}")).unwrap(), article)
                };
                let changes: Vec<_> = changes.iter().map(change).collect();
                let before = describe(&catalogue);
                let (next, touched) = catalogue.with_changes(&changes, &release).unwrap();
                prop_assert_eq!(describe(&catalogue), before);
                for place in 0..u32::try_from(next.entries.len()).unwrap() {
                    let composition =
                        |catalogue: &Catalogue| catalogue.rows.compositions.get(place as usize).unwrap().clone();
                    prop_assert!(touched.contains(&place) || composition(&next) == composition(&catalogue));
                    let id = next.any_article(place).map(|article| article.id.clone());
                    prop_assert_eq!(next.rows.ids.get(place as usize), Some(&id));
                }
                catalogue = next;
            }
            let articles: Vec<Article> = shop.into_values().collect();
            prop_assert_eq!(describe(&catalogue), describe(&Catalogue::build(&articles, &release)));
        }
    }

    #[test]
    fn a_full_catalogue_is_built_anew() {
        let schema = "name = \"s\"\n[[feature]]\nname = \"age\"\nkind = \"number\"\nedges = [1]\n";
        let release = release(&[article("a", "boot", json!({}))], schema);
        let mut catalogue = Catalogue::build(&[], &release);
        let mut added = 1;
        loop {
            let new = article(&format!("b-{added}"), "boot", json!({}));
            let Some((next, changed)) = catalogue.with_changes(&[(new.id.clone(), Some(new))], &release)
            else {
                break;
            };
            assert_eq!(changed.len(), 1);
            (catalogue, added) = (next, added + 1);
        }
        assert_eq!(added, PANEL * (1 + LEAST_UNUSED));
        assert_eq!(catalogue.present().count(), added - 1);
    }
}
