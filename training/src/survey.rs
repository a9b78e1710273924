//! A data folder for a person's eye: how its values are spread, and outfits in words. It reads any
//! folder and knows nothing of how it was made.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    path::Path,
};

use anyhow::Result;
use atelier::domain::{
    Article, ArticleId, Customer, CustomerId, FeatureValue, Features, Kind, Outfit, Schema,
};
use serde_json::Value;

use crate::{
    data::Folder,
    number::real,
    random::{Stream, Table},
};

/// The rows of a data folder, as their owner wrote them.
#[derive(Debug)]
pub struct Rows {
    schema: Schema,
    pub articles: Vec<Article>,
    pub customers: Vec<Customer>,
    pub outfits: Vec<Outfit>,
    article_places: HashMap<ArticleId, usize>,
    customer_places: HashMap<CustomerId, usize>,
}

impl Rows {
    /// # Errors
    /// If a table is missing or a row is bad.
    pub fn read(path: &Path) -> Result<Self> {
        let mut folder = Folder::open(path)?;
        let (mut articles, mut customers, mut outfits) = (Vec::new(), Vec::new(), Vec::new());
        folder.articles(|article| {
            articles.push(article);
            Ok(())
        })?;
        folder.customers(|customer| {
            customers.push(customer);
            Ok(())
        })?;
        folder.outfits(|outfit| {
            outfits.push(outfit);
            Ok(())
        })?;
        let article_places = articles.iter().map(|article| article.id.clone()).zip(0..).collect();
        let customer_places = customers.iter().map(|customer| customer.id.clone()).zip(0..).collect();
        let schema = folder.schema().clone();
        Ok(Self { schema, articles, customers, outfits, article_places, customer_places })
    }

    fn articles_of(&self, outfit: &Outfit) -> impl Iterator<Item = &Article> {
        outfit.articles().iter().map(|id| &self.articles[self.article_places[id]])
    }
}

/// Shares of everything that can be counted.
pub fn marginals(data: &Rows) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} articles, {} customers, {} outfits\n",
        data.articles.len(),
        data.customers.len(),
        data.outfits.len()
    );
    let lengths = data.outfits.iter().map(|outfit| outfit.articles().len());
    let mean = real(lengths.clone().sum()) / real(data.outfits.len().max(1));
    spread(&mut text, &format!("articles an outfit (mean {mean:.3})"), lengths.map(|n| n.to_string()));
    for feature in data.schema.features() {
        let of_outfits: Vec<&Features> = data
            .outfits
            .iter()
            .map(|outfit| &outfit.features)
            .filter(|f| f.get(&feature.name).is_some())
            .collect();
        let (whose, features): (&str, Vec<&Features>) = if of_outfits.is_empty() {
            ("customers", data.customers.iter().map(|customer| &customer.features).collect())
        } else {
            ("outfits", data.outfits.iter().map(|outfit| &outfit.features).collect())
        };
        let missing = features.iter().filter(|f| f.get(&feature.name).is_none()).count();
        let title = format!(
            "{} of {whose} (not given {:.1} %)",
            feature.label,
            100.0 * real(missing) / real(features.len().max(1))
        );
        let values = features.iter().filter_map(|f| f.get(&feature.name));
        match &feature.kind {
            Kind::Number { unit, .. } => quantiles(&mut text, &title, unit, values),
            Kind::Category | Kind::Set => spread(&mut text, &title, values.flat_map(words)),
        }
    }
    for name in ["type", "brand", "colour", "pattern", "material", "style", "fit", "gender"] {
        let in_catalogue = data.articles.iter().flat_map(|article| owned(article, name));
        spread(&mut text, &format!("{name} in the catalogue"), in_catalogue);
        let chosen = data.outfits.iter().flat_map(|outfit| data.articles_of(outfit));
        let in_outfits = chosen.flat_map(|article| owned(article, name));
        spread(&mut text, &format!("{name} in outfits"), in_outfits);
    }
    prices(&mut text, data);
    popularity(&mut text, data);
    text
}

/// Outfits drawn at random.
pub fn sample(data: &Rows, count: usize, seed: u64) -> Vec<&Outfit> {
    let mut all: Vec<&Outfit> = data.outfits.iter().collect();
    Stream::new(seed, Table::Slots, 1).shuffle(&mut all);
    all.truncate(count);
    all
}

/// An outfit and its customer, one article a line.
pub fn in_words(data: &Rows, outfit: &Outfit) -> String {
    let customer = &data.customers[data.customer_places[&outfit.customer]];
    let mut text = format!("\n{}: {}\n", customer.id, features(&customer.features));
    let about = features(&outfit.features);
    let _ = writeln!(text, "  {}", if about.is_empty() { "(no occasion)" } else { &about });
    for article in data.articles_of(outfit) {
        let said: Vec<String> = ["name", "colour", "style", "fit", "gender"]
            .iter()
            .flat_map(|name| owned(article, name))
            .collect();
        let sizes: Vec<&str> = article.words("sizes").collect();
        let range = match (sizes.first(), sizes.last()) {
            (Some(first), Some(last)) => format!(", {first}–{last}"),
            _ => String::new(),
        };
        let price = article.price().map_or(String::new(), |price| format!(", {price:.2}"));
        let _ = writeln!(text, "    {:<14} {}{range}{price}", article.kind(), said.join(", "));
    }
    text
}

fn features(features: &Features) -> String {
    let said: Vec<String> = features
        .iter()
        .map(|(name, value)| match value {
            FeatureValue::Text(word) => format!("{name} {word}"),
            FeatureValue::Number(number) => format!("{name} {number}"),
            FeatureValue::Many(words) => format!("{name} {}", words.join("/")),
        })
        .collect();
    said.join(", ")
}

fn words(value: &FeatureValue) -> Vec<String> {
    match value {
        FeatureValue::Text(word) => vec![word.clone()],
        FeatureValue::Number(number) => vec![number.to_string()],
        FeatureValue::Many(words) => words.clone(),
    }
}

fn owned(article: &Article, name: &str) -> Vec<String> {
    article.words(name).map(str::to_owned).collect()
}

/// Each value's share, the most frequent first.
fn spread(text: &mut String, title: &str, values: impl Iterator<Item = String>) {
    let mut counts = BTreeMap::<String, usize>::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let total = real(counts.values().sum());
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shares: Vec<String> = counts
        .iter()
        .map(|(value, count)| format!("{value} {:.1} %", 100.0 * real(*count) / total))
        .collect();
    let _ = writeln!(text, "{title}:\n  {}", shares.join(", "));
}

fn quantiles<'a>(text: &mut String, title: &str, unit: &str, values: impl Iterator<Item = &'a FeatureValue>) {
    let numbers = values.filter_map(|value| match value {
        FeatureValue::Number(number) => Some(*number),
        FeatureValue::Text(_) | FeatureValue::Many(_) => None,
    });
    let _ = writeln!(text, "{title}:\n  {} {unit}", percentiles(numbers.collect()));
}

/// The smallest, the 5th, 25th, 50th, 75th and 95th percentile, the largest.
fn percentiles(mut numbers: Vec<f64>) -> String {
    if numbers.is_empty() {
        return "none".into();
    }
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len() - 1;
    let at = |percent: usize| format!("{:.0}", numbers[last * percent / 100]);
    [0, 5, 25, 50, 75, 95, 100].map(at).join(" | ")
}

fn prices(text: &mut String, data: &Rows) {
    let mut by_type = BTreeMap::<&str, Vec<f64>>::new();
    for article in &data.articles {
        by_type.entry(article.kind()).or_default().extend(article.price());
    }
    let _ = writeln!(text, "prices by type, percentiles 0 | 5 | 25 | 50 | 75 | 95 | 100:");
    for (kind, prices) in by_type {
        let _ = writeln!(text, "  {kind:<15} {}", percentiles(prices));
    }
    let stock =
        data.articles.iter().filter(|article| article.attribute("in_stock") == Some(&Value::Bool(true)));
    let share = 100.0 * real(stock.count()) / real(data.articles.len().max(1));
    let _ = writeln!(text, "in stock: {share:.1} %");
}

/// How much of all picks the most picked articles have.
fn popularity(text: &mut String, data: &Rows) {
    let mut counts = vec![0_usize; data.articles.len()];
    for id in data.outfits.iter().flat_map(Outfit::articles) {
        counts[data.article_places[id]] += 1;
    }
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let total = real(counts.iter().sum::<usize>().max(1));
    let share = |per_thousand: usize| {
        let top = counts.len() * per_thousand / 1000;
        100.0 * real(counts[..top].iter().sum()) / total
    };
    let never = counts.iter().filter(|count| **count == 0).count();
    let _ = writeln!(
        text,
        "popularity: the top 0.1 % of articles have {:.1} % of all picks, 1 % {:.1} %, 10 % {:.1} %, 50 % {:.1} %; \
         {:.2} % are never picked; the median article is picked {} times, the most picked {} times",
        share(1),
        share(10),
        share(100),
        share(500),
        100.0 * real(never) / real(counts.len().max(1)),
        counts[counts.len() / 2],
        counts[0]
    );
}
