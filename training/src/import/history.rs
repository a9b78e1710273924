//! A feature that says which articles a customer had before. For customers who come back it tells a model more than their
//! other features.
//!
//! A customer has the articles of all their training outfits. A training outfit has those of its customer's other training
//! outfits, or only of the earlier ones if outfits are in order of time. Validation outfits add nothing.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use atelier_core::domain::{
    Article, ArticleId, Customer, CustomerId, Feature, FeatureValue, HAD, Outfit, Schema, Split,
};
use atelier_files::SCHEMA;

use super::{rewrite, rows};
use crate::{
    data::{Data, names_articles},
    number::real,
};

/// The feature's name.
pub(super) const NAME: &str = HAD;
/// The line of a schema above the feature. What follows it was added by an earlier import of the same folder.
const MARK: &str = "# Added by import: the articles of a customer's training outfits.";
/// Follows the mark where outfits are in the order of time.
const BY_TIME: &str = " An outfit has those of earlier outfits.";
/// The feature needs this many training outfits for the customer of a validation outfit, on average.
const ENOUGH: f64 = 8.0;
/// The most outfits of a customer that count towards that, so that one account of many customers does not decide.
const MOST_COUNTED: usize = 100;
/// The most articles of a customer: the most frequent ones, then the latest.
const MOST: usize = 500;

/// Adds the feature to a data folder's tables and schema. Returns how many training outfits the customer of a validation outfit
/// has on average, or `None` if these are too few, or if the schema has a feature whose values are articles. A feature that an earlier import
/// added is computed anew. `by_time` says that outfits are in the order of time.
pub(super) fn add(folder: &Path, schema: &Schema, by_time: bool) -> Result<Option<f64>> {
    let articles: HashSet<ArticleId> =
        rows::<Article>(folder, schema)?.map(|row| row.map(|article| article.id)).collect::<Result<_>>()?;
    let own = own_part(schema.source());
    let has_history = |feature: &Feature| names_articles(feature, |value| articles.contains(value));
    if Schema::parse(own)?.features().iter().any(|feature| feature.name == NAME || has_history(feature)) {
        return Ok(None);
    }
    let histories = Histories::read(folder, schema)?;
    let average = histories.outfits_per_customer();
    let was_added = own.len() < schema.source().len();
    let by_time =
        by_time || was_added && schema.source()[own.len()..].starts_with(&format!("{MARK}{BY_TIME}"));
    if average < ENOUGH && !was_added {
        return Ok(None);
    }
    let path = folder.join(SCHEMA);
    let source = histories.extended_source(own, by_time);
    let extended = Schema::parse(&source).context(
        "the schema takes no further [[feature]]: write its features as [[feature]] tables, or leave out the feature \"had\" \
         with --no-history",
    )?;
    fs::write(&path, source).with_context(|| format!("cannot write {}", path.display()))?;
    let mut so_far: HashMap<CustomerId, Counts> = HashMap::new();
    rewrite::<Outfit>(folder, schema, &extended, |outfit| {
        outfit.features.remove(NAME);
        // An empty list counts, too: without it, the customer's list applies, which includes the outfit's own articles.
        if is_training(outfit) {
            let had = if by_time {
                let before = so_far.entry(outfit.customer.clone()).or_default();
                let had = before.sort().select(|_, _| true);
                before.add(outfit);
                had
            } else {
                histories.had_in_others(outfit)
            };
            outfit.features.insert(NAME, FeatureValue::Many(had));
        }
    })?;
    rewrite::<Customer>(folder, schema, &extended, |customer| {
        customer.features.remove(NAME);
        let had = histories.had_by(&customer.id);
        if !had.is_empty() {
            customer.features.insert(NAME, FeatureValue::Many(had));
        }
    })?;
    Ok(Some(average))
}

/// Why models of this data do not see what customers had; `None` if a feature says it.
pub fn why_unseen(data: &Data) -> Option<String> {
    if data.schema().features().iter().any(|feature| feature.name == NAME || data.named_by(feature).is_some())
    {
        return None;
    }
    let mut outfits = vec![0; data.customers().len()];
    for outfit in data.training().iter().chain(data.development()) {
        outfits[data.outfits().customer(*outfit) as usize] += 1;
    }
    let customers = data.validation().iter().map(|outfit| data.outfits().customer(*outfit) as usize);
    let average = average_of(customers.map(|customer| outfits[customer]));
    Some(format!(
        "models do not see what customers had: on average, the customer of a validation outfit has {average:.1} training outfits; \
         from {ENOUGH} on, `import` adds the feature {NAME:?}, unless --no-history"
    ))
}

/// The mean of the numbers of training outfits of the customers of validation outfits.
fn average_of(outfits: impl ExactSizeIterator<Item = usize>) -> f64 {
    let all = outfits.len().max(1);
    real(outfits.map(|outfits| outfits.min(MOST_COUNTED)).sum::<usize>()) / real(all)
}

/// Removes the feature from a data folder's tables and schema if an earlier import added it.
pub(super) fn remove(folder: &Path, schema: &Schema) -> Result<()> {
    let own = own_part(schema.source());
    if own.len() == schema.source().len() {
        return Ok(());
    }
    let path = folder.join(SCHEMA);
    fs::write(&path, own).with_context(|| format!("cannot write {}", path.display()))?;
    let without = Schema::parse(own)?;
    rewrite::<Outfit>(folder, schema, &without, |outfit| {
        outfit.features.remove(NAME);
    })?;
    rewrite::<Customer>(folder, schema, &without, |customer| {
        customer.features.remove(NAME);
    })
}

/// A schema's text without the feature that an earlier import added, if that is its last.
fn own_part(source: &str) -> &str {
    match source.split_once(MARK) {
        Some((own, added)) if added.matches("[[feature]]").count() == 1 => own,
        _ => source,
    }
}

/// An outfit without a split is for training.
fn is_training(outfit: &Outfit) -> bool {
    outfit.split != Some(Split::Validation)
}

/// The articles of each customer's training outfits.
#[derive(Debug)]
struct Histories {
    by_customer: HashMap<CustomerId, History>,
    /// The customer of each validation outfit.
    validation: Vec<CustomerId>,
}

#[derive(Debug, Default)]
struct History {
    outfits: usize,
    /// The most frequent first, then the latest; each with the number of outfits that have it.
    articles: Vec<(ArticleId, usize)>,
}

impl Histories {
    fn read(folder: &Path, schema: &Schema) -> Result<Self> {
        let mut counts: HashMap<CustomerId, Counts> = HashMap::new();
        let mut validation = Vec::new();
        for outfit in rows::<Outfit>(folder, schema)? {
            let outfit = outfit?;
            if is_training(&outfit) {
                counts.entry(outfit.customer.clone()).or_default().add(&outfit);
            } else {
                validation.push(outfit.customer);
            }
        }
        let histories = counts.into_iter().map(|(customer, counts)| (customer, counts.sort()));
        Ok(Self { by_customer: histories.collect(), validation })
    }

    fn outfits_per_customer(&self) -> f64 {
        let outfits = |customer| self.by_customer.get(customer).map_or(0, |history| history.outfits);
        average_of(self.validation.iter().map(outfits))
    }

    fn had_by(&self, customer: &CustomerId) -> Vec<String> {
        self.by_customer.get(customer).map_or_else(Vec::new, |history| history.select(|_, _| true))
    }

    /// The articles of the customer's other training outfits.
    fn had_in_others(&self, outfit: &Outfit) -> Vec<String> {
        let is_in_others =
            |article: &ArticleId, times| times > usize::from(outfit.articles().contains(article));
        self.by_customer.get(&outfit.customer).map_or_else(Vec::new, |history| history.select(is_in_others))
    }

    /// A schema's text with the feature added. Its values are the articles of training outfits.
    fn extended_source(&self, own: &str, by_time: bool) -> String {
        let mut values: Vec<&str> = self
            .by_customer
            .values()
            .flat_map(|history| &history.articles)
            .map(|(article, _)| article.as_str())
            .collect();
        values.sort_unstable();
        values.dedup();
        let values: toml::Value = values.into();
        let mut source = own.trim_end().to_owned();
        let by_time = if by_time { BY_TIME } else { "" };
        write!(
            source,
            "\n\n{MARK}{by_time}\n[[feature]]\nname = \"{NAME}\"\nlabel = \"earlier articles\"\n\
             kind = \"set\"\nvalues = {values}\n"
        )
        .expect("a string takes any text");
        source
    }
}

impl History {
    /// The first articles for which `takes` is true.
    fn select(&self, takes: impl Fn(&ArticleId, usize) -> bool) -> Vec<String> {
        let selected = self.articles.iter().filter(|(article, times)| takes(article, *times)).take(MOST);
        selected.map(|(article, _)| article.as_str().to_owned()).collect()
    }
}

/// A history while its outfits are read.
#[derive(Debug, Default)]
struct Counts {
    outfits: usize,
    articles: HashMap<ArticleId, Had>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Had {
    times: usize,
    /// The number of the customer's last outfit with it.
    last: usize,
}

impl Counts {
    fn add(&mut self, outfit: &Outfit) {
        self.outfits += 1;
        for article in outfit.articles() {
            let had = self.articles.entry(article.clone()).or_default();
            *had = Had { times: had.times + 1, last: self.outfits };
        }
    }

    fn sort(&self) -> History {
        let mut articles: Vec<(&ArticleId, &Had)> = self.articles.iter().collect();
        articles.sort_unstable_by(|(a, had_a), (b, had_b)| {
            let key = |had: &Had| (Reverse(had.times), Reverse(had.last));
            key(had_a).cmp(&key(had_b)).then_with(|| a.cmp(b))
        });
        let articles = articles.into_iter().map(|(article, had)| (article.clone(), had.times)).collect();
        History { outfits: self.outfits, articles }
    }
}
