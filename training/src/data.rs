//! A data folder as training and evaluation read it: the three tables, checked, by numbers.
//!
//! The folder may hold a synthetic world or a shop's own tables: this module cannot tell, and must
//! not. Any bad row ends the reading: a method is not fitted to half of somebody's data.

use std::{collections::HashMap, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use atelier::{
    domain::{Article, Customer, CustomerId, Features, Outfit, Schema, Split, Vocabulary},
    exchange::{self, Files, Table},
};

use crate::random::{Stream, Table as Randomness};

/// The share of the training outfits that early stopping and tuning look at.
pub const DEVELOPMENT_SHARE: f64 = 0.02;

/// A whole data folder.
#[derive(Debug)]
pub struct Dataset {
    pub schema: Schema,
    /// In the order of the file, which is the vocabulary's.
    pub articles: Vec<Article>,
    pub vocabulary: Vocabulary,
    pub customers: Vec<Customer>,
    pub outfits: Vec<IndexedOutfit>,
}

/// An outfit by numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedOutfit {
    /// Row in [`Dataset::customers`].
    pub customer: u32,
    /// Indices of the vocabulary.
    pub articles: Vec<u32>,
    pub part: Part,
    /// What belongs to the outfit, such as the occasion.
    pub features: Features,
}

/// What an outfit may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Train,
    /// Taken out of the training split, to choose by.
    Development,
    Validation,
}

impl Dataset {
    /// Reads a folder with articles, customers and outfits in any of the three formats, and
    /// `schema.toml` where it is not the built-in schema. The seed draws the development part.
    pub fn read(folder: &Path, seed: u64) -> Result<Self> {
        let schema = exchange::schema_of(folder)?;
        let files = Files::in_folder(folder)?;
        let articles: Vec<Article> = rows(files.articles.as_deref(), folder, &schema)?;
        let customers: Vec<Customer> = rows(files.customers.as_deref(), folder, &schema)?;
        let vocabulary = Vocabulary::new(articles.iter().map(|article| article.id.clone()).collect())
            .with_context(|| format!("the articles of {}", folder.display()))?;
        let mut numbers = HashMap::with_capacity(customers.len());
        for (number, customer) in (0..).zip(&customers) {
            if numbers.insert(customer.id.clone(), number).is_some() {
                bail!("{}: customer {} stands in it twice", folder.display(), customer.id);
            }
        }
        let mut outfits = Vec::new();
        let path = needed::<Outfit>(files.outfits.as_deref(), folder)?;
        for row in exchange::read::<Outfit>(path, &schema)? {
            let row = row.map_err(|error| anyhow!("{}, {error}", path.display()))?;
            let outfit = indexed(&row.value, outfits.len(), seed, &numbers, &vocabulary)
                .with_context(|| format!("{}, line {}", path.display(), row.line))?;
            outfits.push(outfit);
        }
        Ok(Self { schema, articles, vocabulary, customers, outfits })
    }

    pub fn of_part(&self, part: Part) -> impl Iterator<Item = &IndexedOutfit> {
        self.outfits.iter().filter(move |outfit| outfit.part == part)
    }
}

fn indexed(
    outfit: &Outfit,
    number: usize,
    seed: u64,
    customers: &HashMap<CustomerId, u32>,
    vocabulary: &Vocabulary,
) -> Result<IndexedOutfit> {
    let customer = *customers
        .get(&outfit.customer)
        .ok_or_else(|| anyhow!("customer {} is not among the customers", outfit.customer))?;
    let articles = outfit
        .articles()
        .iter()
        .map(|id| {
            let index = vocabulary.index_of(id.as_str());
            index.ok_or_else(|| anyhow!("article {id} is not among the articles"))
        })
        .collect::<Result<_>>()?;
    let part = match outfit.split {
        Some(Split::Validation) => Part::Validation,
        Some(Split::Train) | None => {
            let chosen = Stream::new(seed, Randomness::Development, number).chance(DEVELOPMENT_SHARE);
            if chosen { Part::Development } else { Part::Train }
        }
    };
    Ok(IndexedOutfit { customer, articles, part, features: outfit.features.clone() })
}

fn rows<T: Table>(file: Option<&Path>, folder: &Path, schema: &Schema) -> Result<Vec<T>> {
    let path = needed::<T>(file, folder)?;
    exchange::read::<T>(path, schema)?
        .map(|row| Ok(row.map_err(|error| anyhow!("{}, {error}", path.display()))?.value))
        .collect()
}

fn needed<'p, T: Table>(file: Option<&'p Path>, folder: &Path) -> Result<&'p Path> {
    let name = T::NAME;
    file.with_context(|| {
        format!(
            "{} has no {name}.jsonl, {name}.csv or {name}.parquet; make a data folder with \
             `atelier-training synthesise`, or put your tables there",
            folder.display()
        )
    })
}
