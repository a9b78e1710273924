//! Describes any data folder for people: the distribution of its values, and outfits in words.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write,
    path::Path,
};

use anyhow::Result;
use atelier_core::domain::{
    Article, ArticleId, Customer, CustomerId, FeatureValue, Features, Kind, Outfit, Schema,
};
use serde_json::Value;

use crate::{
    data::Folder,
    number::real,
    random::{Stream, Table},
};

/// The rows of a data folder.
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

    fn articles_in(&self, outfit: &Outfit) -> impl Iterator<Item = &Article> {
        outfit.articles().iter().map(|id| &self.articles[self.article_places[id]])
    }
}

/// The shares and percentiles of all values, as text.
fn marginals(data: &Rows) -> String {
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
    spread(&mut text, &format!("articles per outfit (mean {mean:.3})"), lengths.map(|n| n.to_string()));
    for feature in data.schema.features() {
        let in_outfits = data.outfits.iter().any(|outfit| outfit.features.get(&feature.name).is_some());
        let (owners, features): (&str, Vec<&Features>) = if in_outfits {
            ("outfits", data.outfits.iter().map(|outfit| &outfit.features).collect())
        } else {
            ("customers", data.customers.iter().map(|customer| &customer.features).collect())
        };
        let missing = features.iter().filter(|f| f.get(&feature.name).is_none()).count();
        let title = format!(
            "{} of {owners} (not given {:.1} %)",
            feature.label,
            100.0 * real(missing) / real(features.len().max(1))
        );
        let values = features.iter().filter_map(|f| f.get(&feature.name));
        match &feature.kind {
            Kind::Number { unit, .. } => quantiles(&mut text, &title, unit, values),
            Kind::Category | Kind::Set => spread(&mut text, &title, values.flat_map(words)),
        }
    }
    for name in word_attributes(data) {
        let in_catalogue = data.articles.iter().flat_map(|article| attribute_words(article, name));
        spread(&mut text, &format!("{name} in the catalogue"), in_catalogue);
        let chosen = data.outfits.iter().flat_map(|outfit| data.articles_in(outfit));
        let in_outfits = chosen.flat_map(|article| attribute_words(article, name));
        spread(&mut text, &format!("{name} in outfits"), in_outfits);
    }
    prices(&mut text, data);
    stock(&mut text, data);
    popularity(&mut text, data);
    text
}

/// An attribute with more distinct words than this is a name, a link, or a code.
const MOST_WORDS: usize = 60;
/// The words of a set that are shown with an outfit.
const MOST_IN_A_LINE: usize = 8;
/// The attribute whose words are a range.
const SIZES: &str = "sizes";

/// The marginals of a data folder, and this many outfits in words, drawn at random.
pub fn describe(folder: &Path, outfits: usize) -> Result<String> {
    let data = Rows::read(folder)?;
    let mut all: Vec<&Outfit> = data.outfits.iter().collect();
    Stream::new(1, Table::Slots, 1).shuffle(&mut all);
    let text = all.into_iter().take(outfits).map(|outfit| in_words(&data, outfit) + "\n");
    Ok(marginals(&data) + &text.collect::<String>())
}

/// Describes an outfit and its customer, one article per line.
fn in_words(data: &Rows, outfit: &Outfit) -> String {
    let customer = &data.customers[data.customer_places[&outfit.customer]];
    let mut text = format!("\n{}: {}\n", customer.id, list(&customer.features));
    let about = list(&outfit.features);
    let _ = writeln!(text, "  {}", if about.is_empty() { "(no occasion)" } else { &about });
    for article in data.articles_in(outfit) {
        let usual = ["name", "colour", "style", "fit", "gender"];
        let mut words: Vec<String> = usual.iter().flat_map(|name| attribute_words(article, name)).collect();
        if words.is_empty() {
            let names = article.attributes().keys().filter(|name| *name != SIZES);
            words = names.flat_map(|name| attribute_words(article, name)).collect();
        }
        let sizes: Vec<&str> = article.words(SIZES).collect();
        if let (Some(first), Some(last)) = (sizes.first(), sizes.last()) {
            words.push(format!("{first}–{last}"));
        }
        words.extend(article.price().map(|price| format!("{price:.2}")));
        let _ = writeln!(text, "    {:<14} {}", article.kind(), words.join(", "));
    }
    text
}

fn list(features: &Features) -> String {
    let texts: Vec<String> = features
        .iter()
        .map(|(name, value)| match value {
            FeatureValue::Text(word) => format!("{name} {word}"),
            FeatureValue::Number(number) => format!("{name} {number}"),
            FeatureValue::Many(words) if words.len() > MOST_IN_A_LINE => {
                let more = words.len() - MOST_IN_A_LINE;
                format!("{name} {} and {more} more", words[..MOST_IN_A_LINE].join("/"))
            }
            FeatureValue::Many(words) => format!("{name} {}", words.join("/")),
        })
        .collect();
    texts.join(", ")
}

fn words(value: &FeatureValue) -> Vec<String> {
    match value {
        FeatureValue::Text(word) => vec![word.clone()],
        FeatureValue::Number(number) => vec![number.to_string()],
        FeatureValue::Many(words) => words.clone(),
    }
}

/// The type, and the attributes with few enough distinct words to count.
fn word_attributes(data: &Rows) -> Vec<&str> {
    let mut words = BTreeMap::<&str, HashSet<&str>>::new();
    for article in &data.articles {
        for name in article.attributes().keys() {
            words.entry(name).or_default().extend(article.words(name));
        }
    }
    let counted = words.into_iter().filter(|(_, words)| (1..=MOST_WORDS).contains(&words.len()));
    std::iter::once("type").chain(counted.map(|(name, _)| name)).collect()
}

fn attribute_words(article: &Article, name: &str) -> Vec<String> {
    article.words(name).map(str::to_owned).collect()
}

/// Writes each value's share, the most frequent first, and of the rest how many there are.
fn spread(text: &mut String, title: &str, values: impl Iterator<Item = String>) {
    let mut counts = BTreeMap::<String, usize>::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let total = real(counts.values().sum());
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut shares: Vec<String> = counts
        .iter()
        .take(MOST_WORDS)
        .map(|(value, count)| format!("{value} {:.1} %", 100.0 * real(*count) / total))
        .collect();
    let rest = counts.get(MOST_WORDS..).unwrap_or_default();
    if !rest.is_empty() {
        let share = 100.0 * real(rest.iter().map(|(_, count)| *count).sum()) / total;
        shares.push(format!("{} others {share:.1} %", rest.len()));
    }
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
    if data.articles.iter().all(|article| article.price().is_none()) {
        return;
    }
    let _ = writeln!(text, "prices by type, percentiles 0 | 5 | 25 | 50 | 75 | 95 | 100:");
    for (kind, prices) in by_type {
        let _ = writeln!(text, "  {kind:<15} {}", percentiles(prices));
    }
}

fn stock(text: &mut String, data: &Rows) {
    let in_stock: Vec<bool> = data
        .articles
        .iter()
        .filter_map(|article| article.attribute("in_stock").and_then(Value::as_bool))
        .collect();
    if !in_stock.is_empty() {
        let share = 100.0 * real(in_stock.iter().filter(|flag| **flag).count()) / real(in_stock.len());
        let _ = writeln!(text, "in stock: {share:.1} %");
    }
}

/// Writes how the picks are spread over the articles.
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
