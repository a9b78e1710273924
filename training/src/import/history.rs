//! What customers had before, as a feature that models read: for people who come back it says more than anything else.
//!
//! The tables say it only between the lines, so it is written into them: with each outfit what its customer's other training
//! outfits have, and with each customer what all of them have. Validation outfits are not looked at.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use atelier::{
    domain::{Article, ArticleId, Customer, CustomerId, FeatureValue, Kind, Outfit, Schema, Split},
    files::{self, Columns, Format, SCHEMA, Table, Writer},
};

use crate::number::real;

/// The feature's name.
pub(super) const NAME: &str = "had";
/// With fewer training outfits than this, as a mean over the customers of validation outfits, history says little.
const ENOUGH: f64 = 8.0;
/// The most articles of a customer: those that were had most often, and of these the latest.
const MOST: usize = 500;

/// Adds the feature to a data folder's tables and schema, unless customers come back too rarely or a feature has articles as
/// values already. Returns how many training outfits the customers of validation outfits have.
pub(super) fn add(folder: &Path, schema: &Schema) -> Result<Option<f64>> {
    let articles: HashSet<ArticleId> =
        rows::<Article>(folder, schema)?.map(|row| row.map(|article| article.id)).collect::<Result<_>>()?;
    if schema.features().iter().any(|feature| feature.name == NAME || names_articles(feature, &articles)) {
        return Ok(None);
    }
    let histories = Histories::read(folder, schema)?;
    let length = histories.mean_length();
    if length < ENOUGH {
        return Ok(None);
    }
    let path = folder.join(SCHEMA);
    let source = histories.extended_source(schema);
    let extended = Schema::parse(&source).context("the schema takes no feature \"had\"; this is a bug")?;
    fs::write(&path, source).with_context(|| format!("cannot write {}", path.display()))?;
    rewrite::<Outfit>(folder, schema, &extended, |outfit| {
        let had = histories.beside(outfit);
        if !had.is_empty() {
            outfit.features.insert(NAME, FeatureValue::Many(had));
        }
    })?;
    rewrite::<Customer>(folder, schema, &extended, |customer| {
        let had = histories.all_of(&customer.id);
        if !had.is_empty() {
            customer.features.insert(NAME, FeatureValue::Many(had));
        }
    })?;
    Ok(Some(length))
}

/// Whether most of a set's values are articles.
fn names_articles(feature: &atelier::domain::Feature, articles: &HashSet<ArticleId>) -> bool {
    let named = feature.values.iter().filter(|value| articles.contains(value.as_str())).count();
    feature.kind == Kind::Set && 2 * named > feature.values.len()
}

fn rows<T: Table>(folder: &Path, schema: &Schema) -> Result<impl Iterator<Item = Result<T>>> {
    let path = folder.join(format!("{}.{}", T::NAME, Format::JsonLines));
    Ok(files::read::<T>(&path, schema)?.map(|row| Ok(row?.value)))
}

fn rewrite<T: Table>(folder: &Path, from: &Schema, to: &Schema, change: impl Fn(&mut T)) -> Result<()> {
    let target = folder.join(format!("{}.{}", T::NAME, Format::JsonLines));
    let mut writer = Writer::create(&target, Format::JsonLines, &Columns::<T>::new(to))?;
    for row in rows::<T>(folder, from)? {
        let mut row = row?;
        change(&mut row);
        writer.write(&row)?;
    }
    Ok(writer.finish()?)
}

/// What each customer's training outfits have.
#[derive(Debug, Default)]
struct Histories {
    of: HashMap<CustomerId, History>,
    /// The customers of validation outfits.
    asked: Vec<CustomerId>,
}

#[derive(Debug, Default)]
struct History {
    outfits: usize,
    articles: HashMap<ArticleId, Had>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Had {
    times: usize,
    /// The number of the customer's last outfit with it.
    last: usize,
}

impl Histories {
    fn read(folder: &Path, schema: &Schema) -> Result<Self> {
        let mut histories = Self::default();
        for outfit in rows::<Outfit>(folder, schema)? {
            let outfit = outfit?;
            if outfit.split == Some(Split::Train) {
                histories.of.entry(outfit.customer.clone()).or_default().add(&outfit);
            } else {
                histories.asked.push(outfit.customer);
            }
        }
        Ok(histories)
    }

    fn mean_length(&self) -> f64 {
        let outfits = |customer| self.of.get(customer).map_or(0, |history| history.outfits);
        real(self.asked.iter().map(outfits).sum::<usize>()) / real(self.asked.len().max(1))
    }

    fn all_of(&self, customer: &CustomerId) -> Vec<String> {
        self.of.get(customer).map(|history| most_frequent(history.articles.iter())).unwrap_or_default()
    }

    /// What the outfit's customer has in other training outfits.
    fn beside(&self, outfit: &Outfit) -> Vec<String> {
        if outfit.split != Some(Split::Train) {
            return self.all_of(&outfit.customer);
        }
        let own: HashSet<&ArticleId> = outfit.articles().iter().collect();
        let is_of_others =
            |(article, had): &(&ArticleId, &Had)| had.times > usize::from(own.contains(article));
        let history = self.of.get(&outfit.customer);
        let articles = history.map(|history| history.articles.iter().filter(is_of_others));
        articles.map(most_frequent).unwrap_or_default()
    }

    /// The schema's text with the feature, whose values are the articles of training outfits.
    fn extended_source(&self, schema: &Schema) -> String {
        let mut values: Vec<&str> =
            self.of.values().flat_map(|history| history.articles.keys()).map(ArticleId::as_str).collect();
        values.sort_unstable();
        values.dedup();
        let values: toml::Value = values.into();
        let mut source = schema.source().trim_end().to_owned();
        write!(
            source,
            "\n\n# Written by import: what a customer had in other training outfits.\n[[feature]]\nname = \"{NAME}\"\n\
             label = \"earlier articles\"\nkind = \"set\"\nvalues = {values}\n"
        )
        .expect("a string takes any text");
        source
    }
}

impl History {
    fn add(&mut self, outfit: &Outfit) {
        self.outfits += 1;
        for article in outfit.articles() {
            let had = self.articles.entry(article.clone()).or_default();
            *had = Had { times: had.times + 1, last: self.outfits };
        }
    }
}

fn most_frequent<'a>(articles: impl Iterator<Item = (&'a ArticleId, &'a Had)>) -> Vec<String> {
    let mut articles: Vec<_> = articles.collect();
    articles.sort_unstable_by_key(|&(article, had)| (usize::MAX - had.times, usize::MAX - had.last, article));
    articles.truncate(MOST);
    articles.into_iter().map(|(article, _)| article.as_str().to_owned()).collect()
}
