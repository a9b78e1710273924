//! A data folder: its rows, and the three tables in memory as indices for models and baselines.
//!
//! [`Folder`] reads and checks the files row by row. [`Data::load`] turns them into indices: an outfit's
//! articles, its encoded features, the numbers of a split's outfits. Features are encoded only by the
//! domain's encoder. The module must never know a model, a method, a metric, or how the folder was made.

mod attributes;
mod fingerprint;
mod folder;
mod outfits;
#[cfg(test)]
pub(crate) mod tests;

use std::{collections::HashMap, path::Path};

use anyhow::{Context, Result};
use atelier::domain::{ArticleId, CustomerId, Schema, Split, Vocabulary};

use crate::random::{Table, choose};

use attributes::AttributesBuilder;
use fingerprint::Fingerprint;
use outfits::{FeatureTable, place};

pub use attributes::Attributes;
pub use folder::Folder;
pub use outfits::Outfits;

/// Articles, customers and outfits by number: their row in the files.
#[derive(Debug)]
pub struct Data {
    name: String,
    schema: Schema,
    vocabulary: Vocabulary,
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
        let mut folder = Folder::open(path)?;
        let mut fingerprint = Fingerprint::new();
        fingerprint.text(folder.schema().source());
        let (ids, kinds, attributes) = read_articles(&mut folder, &mut fingerprint)?;
        let vocabulary = Vocabulary::new(ids).with_context(|| path.display().to_string())?;
        let (types, type_of) = number_types(&kinds);
        let mut articles_of_type = vec![Vec::new(); types.len()];
        for (article, &kind) in (0..).zip(&type_of) {
            articles_of_type[kind as usize].push(article);
        }
        let (customers, profiles) = read_customers(&mut folder, &mut fingerprint)?;
        let index: HashMap<&CustomerId, u32> = customers.iter().zip(0..).collect();
        let (outfits, split_of) = read_outfits(&mut folder, &vocabulary, &index, &mut fingerprint)?;
        let splits = Splits::new(&outfits, &split_of, customers.len());
        Ok(Self {
            name: folder_name(path)?,
            schema: folder.schema().clone(),
            vocabulary,
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

    /// In the order of the articles' file.
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

    /// 2 % of the training outfits, kept aside for early stopping and tuning: the same for every run.
    pub fn development(&self) -> &[u32] {
        &self.splits.development
    }

    /// The outfits for evaluation.
    pub fn validation(&self) -> &[u32] {
        &self.splits.validation
    }

    /// Whether this customer has an outfit outside validation.
    pub fn seen(&self, customer: u32) -> bool {
        self.splits.seen[customer as usize]
    }
}

/// The articles' ids, types and attributes.
fn read_articles(
    folder: &mut Folder,
    fingerprint: &mut Fingerprint,
) -> Result<(Vec<ArticleId>, Vec<String>, Attributes)> {
    let (mut ids, mut kinds, mut attributes) = (Vec::new(), Vec::new(), AttributesBuilder::default());
    folder.articles(|article| {
        fingerprint.text(article.id.as_str());
        fingerprint.text(article.kind());
        kinds.push(article.kind().to_owned());
        attributes.push(&article);
        ids.push(article.id);
        Ok(())
    })?;
    Ok((ids, kinds, attributes.finish()))
}

/// The types, sorted, and each article's index among them.
fn number_types(kinds: &[String]) -> (Vec<String>, Vec<u32>) {
    let mut types = kinds.to_vec();
    types.sort_unstable();
    types.dedup();
    let index = |kind: &String| place(types.binary_search(kind).expect("it is among them; this is a bug"));
    let type_of = kinds.iter().map(index).collect();
    (types, type_of)
}

fn read_customers(
    folder: &mut Folder,
    fingerprint: &mut Fingerprint,
) -> Result<(Vec<CustomerId>, FeatureTable)> {
    let schema = folder.schema().clone();
    let mut ids = Vec::new();
    let mut profiles = FeatureTable::new(schema.features().len());
    folder.customers(|customer| {
        let encoding = schema.encode(&customer.features).expect("checked when read; this is a bug");
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
        let checked = "the checker has seen every id of the folder; this is a bug";
        let customer = *customers.get(&outfit.customer).expect(checked);
        let articles: Vec<u32> =
            outfit.articles().iter().map(|id| vocabulary.index_of(id.as_str()).expect(checked)).collect();
        let encoding = schema.encode(&outfit.features).expect("checked when read; this is a bug");
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

/// The outfits of each split, in ascending order.
#[derive(Debug, Default)]
struct Splits {
    training: Vec<u32>,
    development: Vec<u32>,
    validation: Vec<u32>,
    /// By customer: whether they have an outfit outside validation.
    seen: Vec<bool>,
}

/// One training outfit in this many is kept for development.
const DEVELOPMENT: usize = 50;
/// Not a run's seed: runs of all seeds and methods use the same development split.
const SEED: u64 = 1;

impl Splits {
    fn new(outfits: &Outfits, split_of: &[Split], customers: usize) -> Self {
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
        let kept = learnable.len().div_ceil(DEVELOPMENT);
        splits.development = choose(SEED, Table::Development, &learnable, kept);
        splits.training = learnable;
        splits.training.retain(|outfit| splits.development.binary_search(outfit).is_err());
        splits
    }
}
