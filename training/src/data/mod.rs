//! A data folder: its rows, and the three tables in memory as indices for models and baselines.
//!
//! [`Folder`] reads and checks the files row by row. [`Data::load`] turns them into indices: an outfit's
//! articles, its encoded features, the numbers of a split's outfits. Features are encoded only by the
//! domain's encoder. The module must never know a model, a method, a metric, or how the folder was made.

mod attributes;
mod embeddings;
mod fingerprint;
mod folder;
mod outfits;
pub(crate) mod repeats;
#[cfg(test)]
pub(crate) mod tests;
mod unseen;

use std::{
    collections::{HashMap, HashSet},
    mem,
    path::Path,
};

use anyhow::{Context, Result};
use atelier_core::domain::{
    Article, CustomerId, Feature, Kind, Schema, Split, Vocabulary, VocabularyError, fold_for,
};
use atelier_engine::outfit_memory::OutfitMemory;

use crate::random::{Stream, Table, choose};

use fingerprint::Fingerprint;
use outfits::{FeatureTable, to_index};
use repeats::{Groups, find_repeated};

pub use attributes::Attributes;
pub use folder::Folder;
pub use outfits::Outfits;

/// Articles, customers and outfits by number: their row in the files.
#[derive(Debug)]
pub struct Data {
    name: String,
    schema: Schema,
    articles: Vec<Article>,
    vocabulary: Vocabulary,
    known: usize,
    types: Vec<String>,
    articles_of_type: Vec<Vec<u32>>,
    /// Each article's type.
    type_of: Vec<u32>,
    attributes: Attributes,
    customers: Vec<CustomerId>,
    profiles: FeatureTable,
    outfits: Outfits,
    splits: Splits,
    fingerprint: String,
}

impl Data {
    /// Reads the folder's three tables and its schema. Fails if a table is missing or a row is bad.
    pub fn load(path: &Path) -> Result<Self> {
        Self::load_with(Folder::open(path)?, path, false, None)
    }

    /// Reads a folder whose outfits are in the order of time: the latest training outfits are the development split, which a
    /// model of an earlier time has not learned. `schema` encodes features instead of the folder's.
    ///
    /// # Errors
    /// As [`Data::load`].
    pub fn load_by_time(path: &Path, schema: Option<&Schema>) -> Result<Self> {
        let folder = match schema {
            Some(schema) => Folder::open_as(path, schema.clone())?,
            None => Folder::open(path)?,
        };
        Self::load_with(folder, path, true, None)
    }

    /// Reads the folder with one of [`FOLDS`] parts of all its outfits, whatever their split, for validation.
    ///
    /// # Errors
    /// As [`Data::load`].
    pub fn load_fold(path: &Path, fold: usize) -> Result<Self> {
        Self::load_with(Folder::open(path)?, path, false, Some(fold))
    }

    fn load_with(mut folder: Folder, path: &Path, by_time: bool, fold: Option<usize>) -> Result<Self> {
        let mut fingerprint = Fingerprint::new();
        fingerprint.text(folder.schema().learned_source());
        let mut articles = read_articles(&mut folder, &mut fingerprint)?;
        let read = vocabulary(&articles).with_context(|| path.display().to_string())?;
        let (customers, profiles) = read_customers(&mut folder, &mut fingerprint)?;
        let index: HashMap<&CustomerId, u32> = customers.iter().zip(0..).collect();
        let (mut outfits, mut split_of) = read_outfits(&mut folder, &read, &index, &mut fingerprint)?;
        if let Some(fold) = fold {
            let groups = Groups::new((0..).take(outfits.len()).map(|outfit| outfits.articles(outfit)));
            fingerprint.number(fold as u64);
            for (outfit, split) in (0..).zip(&mut split_of) {
                let is_asked = fold_of(groups.first(outfit) as usize) == fold;
                *split = if is_asked { Split::Validation } else { Split::Train };
            }
        }
        let splits = Splits::new(&outfits, &split_of, customers.len(), by_time);
        let is_known = find_known_articles(&outfits, &splits.training, read.len());
        let known = is_known.iter().filter(|known| **known).count();
        let vocabulary = if known == 0 || known == read.len() {
            read
        } else {
            outfits.renumber(&put_first(&mut articles, &is_known));
            vocabulary(&articles).expect("the same articles in another order")
        };
        let known = if known == 0 { vocabulary.len() } else { known };
        let attributes = Attributes::new(&articles, known).with_context(|| path.display().to_string())?;
        let (types, type_of) = number_types(&articles);
        let mut articles_of_type = vec![Vec::new(); types.len()];
        for (article, &kind) in (0..).zip(&type_of) {
            articles_of_type[kind as usize].push(article);
        }
        Ok(Self {
            name: folder_name(path)?,
            schema: folder.schema().clone(),
            articles,
            vocabulary,
            known,
            types,
            articles_of_type,
            type_of,
            attributes,
            customers,
            profiles,
            outfits,
            splits,
            fingerprint: fingerprint.finish(),
        })
    }

    /// The folder's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 over everything that a model can learn from, whatever the format of the files. Results with
    /// the same fingerprint can be compared.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Counts each article in these outfits.
    pub fn count_articles(&self, outfits: &[u32]) -> Vec<f64> {
        let mut counts = vec![0.0; self.vocabulary().len()];
        for article in outfits.iter().flat_map(|&outfit| self.outfits().articles(outfit)) {
            counts[*article as usize] += 1.0;
        }
        counts
    }

    /// Remembers these outfits.
    pub(crate) fn remember(&self, outfits: &[u32]) -> OutfitMemory {
        let articles = outfits.iter().map(|&outfit| self.outfits().articles(outfit));
        OutfitMemory::new(self.vocabulary().len(), articles)
    }

    /// In the vocabulary's order.
    pub fn articles(&self) -> &[Article] {
        &self.articles
    }

    /// How many articles are in training outfits: the first of the vocabulary. The others are new to a model.
    pub fn count_known(&self) -> usize {
        self.known
    }

    /// Whether a model can have learned of this article.
    pub fn is_known(&self, article: u32) -> bool {
        (article as usize) < self.known
    }

    /// The articles that a feature's values name, if models know them, by the feature's row: row 0 is "not given". `None`
    /// if its values are no articles.
    pub(crate) fn named_by(&self, feature: &Feature) -> Option<Vec<Option<u32>>> {
        let known =
            |value: &String| self.vocabulary.index_of(value).filter(|&article| self.is_known(article));
        names_articles(feature, |value| self.vocabulary.index_of(value).is_some())
            .then(|| std::iter::once(None).chain(feature.values.iter().map(known)).collect())
    }

    /// In the order of the articles' file, those that are in no training outfit last.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The types of articles, in alphabetical order.
    pub fn types(&self) -> &[String] {
        &self.types
    }

    /// The articles of a type, in the vocabulary's order.
    pub fn articles_of_type(&self, kind: usize) -> &[u32] {
        &self.articles_of_type[kind]
    }

    /// The index of an article's type in [`Data::types`].
    pub fn type_of(&self, article: u32) -> usize {
        self.type_of[article as usize] as usize
    }

    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub fn customers(&self) -> &[CustomerId] {
        &self.customers
    }

    pub fn outfits(&self) -> &Outfits {
        &self.outfits
    }

    /// Writes the features behind an outfit to `into`, feature by feature: the outfit's own features override
    /// the customer's profile.
    pub fn features_of(&self, outfit: u32, into: &mut Vec<Vec<u32>>) {
        into.resize_with(self.schema.features().len(), Vec::new);
        let customer = self.outfits.customer(outfit);
        for (feature, values) in into.iter_mut().enumerate() {
            values.clear();
            values.extend_from_slice(self.profiles.values(customer, feature));
        }
        for (feature, values) in self.outfits.overrides(outfit) {
            into[feature].clear();
            into[feature].extend_from_slice(values);
        }
    }

    /// The outfits to learn from.
    pub fn training(&self) -> &[u32] {
        &self.splits.training
    }

    /// Whether there are so few that a match begins with vectors of their counts, too.
    pub fn has_few_outfits(&self) -> bool {
        self.training().len() < MANY_OUTFITS
    }

    /// 2 % of the training outfits, kept aside for early stopping and tuning: the same for every run. More, up to a tenth, if
    /// these have fewer than 500 slots with articles of the others.
    pub fn development(&self) -> &[u32] {
        &self.splits.development
    }

    /// The outfits for evaluation.
    pub fn validation(&self) -> &[u32] {
        &self.splits.validation
    }

    /// The outfits for evaluation that repeat one of the others: what a model says of them, it may have read.
    pub fn repeated(&self) -> HashSet<u32> {
        let articles = |outfit: &u32| self.outfits.articles(*outfit);
        find_repeated(
            self.validation().iter().map(|outfit| (*outfit, articles(outfit))),
            self.training().iter().chain(self.development()).map(articles),
        )
    }

    /// Whether this customer has an outfit outside validation.
    pub fn is_seen(&self, customer: u32) -> bool {
        self.splits.seen[customer as usize]
    }

    /// How many slots these outfits have.
    pub fn count_slots(&self, outfits: &[u32]) -> usize {
        outfits.iter().map(|&outfit| self.outfits.articles(outfit).len()).sum()
    }
}

/// With fewer training outfits than this, what is counted is known as well as what is learned.
const MANY_OUTFITS: usize = 50_000;

/// Puts these articles first, and returns the new index of each.
fn put_first(articles: &mut Vec<Article>, is_first: &[bool]) -> Vec<u32> {
    let mut order: Vec<(bool, usize, Article)> = mem::take(articles)
        .into_iter()
        .enumerate()
        .map(|(at, article)| (!is_first[at], at, article))
        .collect();
    order.sort_by_key(|(is_last, at, _)| (*is_last, *at));
    let mut index = vec![0; order.len()];
    for (to, (_, from, article)) in (0..).zip(order) {
        index[from] = to;
        articles.push(article);
    }
    index
}

/// Whether a feature is a set of articles, such as what the customer had: most of its values are ids of articles. A few may be
/// by chance, where ids are numbers.
pub(crate) fn names_articles(feature: &Feature, is_article: impl Fn(&str) -> bool) -> bool {
    let named = feature.values.iter().filter(|value| is_article(value)).count();
    feature.kind == Kind::Set && 2 * named > feature.values.len()
}

fn read_articles(folder: &mut Folder, fingerprint: &mut Fingerprint) -> Result<Vec<Article>> {
    let mut articles = Vec::new();
    folder.articles(|article| {
        fingerprint.text(article.id.as_str());
        fingerprint.text(article.kind());
        articles.push(article);
        Ok(())
    })?;
    Ok(articles)
}

fn vocabulary(articles: &[Article]) -> Result<Vocabulary, VocabularyError> {
    Vocabulary::new(articles.iter().map(|article| article.id.clone()).collect())
}

/// The articles that are in one of these outfits.
fn find_known_articles(outfits: &Outfits, training: &[u32], articles: usize) -> Vec<bool> {
    let mut is_known = vec![false; articles];
    for &article in training.iter().flat_map(|&outfit| outfits.articles(outfit)) {
        is_known[article as usize] = true;
    }
    is_known
}

/// The types in their first spelling, sorted, and each article's index among them. Spellings that the service's filters take
/// for one type are one.
fn number_types(articles: &[Article]) -> (Vec<String>, Vec<u32>) {
    let folded: Vec<String> = articles.iter().map(|article| fold_for("type", article.kind())).collect();
    let mut spellings: HashMap<&str, &str> = HashMap::new();
    for (folded, article) in folded.iter().zip(articles) {
        spellings.entry(folded).or_insert(article.kind());
    }
    let mut types: Vec<(&str, &str)> = spellings.into_iter().map(|(folded, first)| (first, folded)).collect();
    types.sort_unstable();
    let places: HashMap<&str, u32> =
        types.iter().enumerate().map(|(at, (_, folded))| (*folded, to_index(at))).collect();
    let type_of = folded.iter().map(|folded| places[folded.as_str()]).collect();
    (types.into_iter().map(|(first, _)| first.to_owned()).collect(), type_of)
}

fn read_customers(
    folder: &mut Folder,
    fingerprint: &mut Fingerprint,
) -> Result<(Vec<CustomerId>, FeatureTable)> {
    let schema = folder.schema().clone();
    let mut ids = Vec::new();
    let mut profiles = FeatureTable::new(schema.features().len());
    folder.customers(|customer| {
        let encoding = schema.encode(&customer.features).expect("checked when read");
        fingerprint.text(customer.id.as_str());
        encoding.indices.iter().for_each(|values| fingerprint.values(values));
        profiles.push(&encoding.indices);
        ids.push(customer.id);
        Ok(())
    })?;
    Ok((ids, profiles))
}

fn read_outfits(
    folder: &mut Folder,
    vocabulary: &Vocabulary,
    customers: &HashMap<&CustomerId, u32>,
    fingerprint: &mut Fingerprint,
) -> Result<(Outfits, Vec<Split>)> {
    let schema = folder.schema().clone();
    let mut outfits = Outfits::default();
    let mut split_of = Vec::new();
    folder.outfits(|outfit| {
        let checked = "the checker has seen every id of the folder";
        let customer = *customers.get(&outfit.customer).expect(checked);
        let articles: Vec<u32> =
            outfit.articles().iter().map(|id| vocabulary.index_of(id.as_str()).expect(checked)).collect();
        let encoding = schema.encode(&outfit.features).expect("checked when read");
        // A feature with an unknown value still overrides the profile's.
        let is_set = schema.features().iter().map(|feature| outfit.features.get(&feature.name).is_some());
        let overrides: Vec<(usize, Vec<u32>)> = is_set
            .zip(encoding.indices)
            .enumerate()
            .filter_map(|(feature, (is_set, values))| is_set.then_some((feature, values)))
            .collect();
        let split = outfit.split.unwrap_or(Split::Train);
        fingerprint.number(customer.into());
        fingerprint.values(&articles);
        fingerprint.text(split.as_str());
        fingerprint.number(overrides.len() as u64);
        for (feature, values) in &overrides {
            fingerprint.number(*feature as u64);
            fingerprint.values(values);
        }
        outfits.push(customer, articles, overrides);
        split_of.push(split);
        Ok(())
    })?;
    Ok((outfits, split_of))
}

/// The folder's own name, even for `.`.
fn folder_name(folder: &Path) -> Result<String> {
    let absolute = folder.canonicalize().with_context(|| folder.display().to_string())?;
    Ok(absolute.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// The parts of a cross-validation.
pub const FOLDS: usize = 5;

/// The part of a group of repeats by its first outfit: of five in a row, each is in another one.
fn fold_of(outfit: usize) -> usize {
    let mut stream = Stream::new(SEED, Table::Folds, outfit / FOLDS);
    let keys = [(); FOLDS].map(|()| stream.uniform());
    keys.iter().filter(|key| **key < keys[outfit % FOLDS]).count()
}

/// The outfits of each split, in ascending order.
#[derive(Debug, Default)]
struct Splits {
    training: Vec<u32>,
    development: Vec<u32>,
    validation: Vec<u32>,
    /// By customer: whether they have an outfit outside validation.
    seen: Vec<bool>,
}

/// One training outfit in this many is kept for development, and one in this many at most.
const DEVELOPMENT: usize = 50;
const MOST_DEVELOPMENT: usize = 10;
/// Fewer slots whose answers were learned decide little.
const SLOTS: usize = 500;
/// Not a run's seed: runs of all seeds and methods use the same development split.
const SEED: u64 = 1;

impl Splits {
    fn new(outfits: &Outfits, split_of: &[Split], customers: usize, by_time: bool) -> Self {
        let mut splits = Self { seen: vec![false; customers], ..Self::default() };
        let mut learnable = Vec::new();
        for (outfit, split) in (0..).zip(split_of) {
            match split {
                Split::Validation => splits.validation.push(outfit),
                Split::Train => {
                    learnable.push(outfit);
                    splits.seen[outfits.customer(outfit) as usize] = true;
                }
            }
        }
        let all: Vec<u32> = (0..).take(split_of.len()).collect();
        let articles = all.iter().flat_map(|&outfit| outfits.articles(outfit)).max();
        let articles = articles.map_or(0, |last| *last as usize + 1);
        let most = learnable.len().div_ceil(MOST_DEVELOPMENT);
        let mut kept = learnable.len().div_ceil(DEVELOPMENT);
        loop {
            splits.development = if by_time {
                learnable[learnable.len() - kept..].to_vec()
            } else {
                choose(SEED, Table::Development, &learnable, kept)
            };
            splits.training.clone_from(&learnable);
            splits.training.retain(|outfit| splits.development.binary_search(outfit).is_err());
            let is_known = find_known_articles(outfits, &splits.training, articles);
            let asked = splits.development.iter().flat_map(|&outfit| outfits.articles(outfit));
            let slots = asked.filter(|article| is_known[**article as usize]).count();
            if slots >= SLOTS || kept == most {
                return splits;
            }
            // As many more as are missing if all slots are asked about.
            kept = (kept + kept * (SLOTS - slots) / SLOTS + 1).min(most);
        }
    }
}
