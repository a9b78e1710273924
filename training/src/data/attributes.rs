//! The values that articles share, counted in all articles, and the encoder that says them of any article.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use anyhow::Result;
use atelier_core::domain::{Article, ArticleEncoder, Facts, Ranges};

use super::{
    embeddings,
    fingerprint::Fingerprint,
    outfits::{FeatureTable, to_index},
};

/// A numeric attribute is split into this many ranges with equally many articles.
const PARTS: usize = 16;
/// The same, among the articles of a type.
const PARTS_OF_TYPE: usize = 6;
/// The largest number of values. The most common ones are kept.
const MOST: usize = 8192;
/// The weight of a value with its type in a match, next to the value itself: there are many, each of few articles.
const OF_TYPE: f32 = 0.1;

/// For each article the values that it shares with others, such as its type, colour, brand and price range, each also
/// together with its type, numbered over all attributes.
#[derive(Debug, Clone)]
pub struct Attributes {
    encoder: ArticleEncoder,
    /// The attributes' names, `type` among them, in alphabetical order.
    names: Vec<String>,
    /// For each value the index of its attribute.
    attribute_of: Vec<u32>,
    /// One row per article, with one entry for all of its values.
    values: FeatureTable,
    /// Models' inputs from each article's embedding: zeros, the mean, where there is none.
    embeddings: Vec<f32>,
    fingerprint: String,
}

impl Attributes {
    /// The number of values.
    pub fn count(&self) -> usize {
        self.encoder.count()
    }

    /// Says the values of any article.
    pub fn encoder(&self) -> &ArticleEncoder {
        &self.encoder
    }

    /// The names of the attributes with values.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The index of a value's attribute in [`Attributes::names`].
    pub fn attribute_of(&self, value: u32) -> usize {
        self.attribute_of[value as usize] as usize
    }

    /// By value, how much its vector counts in a match.
    pub fn factors(&self) -> Vec<f32> {
        let factor = |&attribute: &u32| {
            if ArticleEncoder::is_with_type(&self.names[attribute as usize]) { OF_TYPE } else { 1.0 }
        };
        self.attribute_of.iter().map(factor).collect()
    }

    /// The values of an article.
    pub fn for_article(&self, article: usize) -> &[u32] {
        self.values.values(to_index(article), 0)
    }

    /// How many numbers models take of an article's embedding.
    pub fn components(&self) -> usize {
        self.encoder.components()
    }

    /// These numbers of some articles, one article after the other.
    pub fn embeddings(&self, articles: Range<usize>) -> &[f32] {
        &self.embeddings[articles.start * self.components()..articles.end * self.components()]
    }

    /// SHA-256 over the values of all articles, and what models take of their embeddings.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl Attributes {
    /// `articles` are in the vocabulary's order; the first `known` are those to learn from.
    ///
    /// # Errors
    /// If embeddings differ in length.
    pub(super) fn new(all: &[Article], known: usize) -> Result<Self> {
        let facts: Vec<Facts> = all.iter().map(Facts::new).collect();
        let projections = embeddings::learn(&all[..known])?;
        let ranges = ranges(&facts[..known]);
        let articles: Vec<_> = facts.into_iter().map(|facts| facts.into_values(&ranges)).collect();
        let mut shared: HashMap<&(String, String), usize> = HashMap::new();
        for word in articles[..known].iter().flatten() {
            *shared.entry(word).or_default() += 1;
        }
        // A value that one article has, or all have, relates no articles to each other.
        let mut common: Vec<_> = shared
            .into_iter()
            .filter(|&(_, count)| (2..known).contains(&count))
            .map(|(word, count)| (Reverse(count), word))
            .collect();
        common.sort_unstable();
        common.truncate(MOST);
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (_, (name, word)) in &common {
            values.entry(name.clone()).or_default().push(word.clone());
        }
        let encoder = ArticleEncoder::new(values, ranges).with_projections(projections);
        let mut common: Vec<_> = common.into_iter().map(|(_, word)| word).collect();
        common.sort_unstable();
        let index: HashMap<_, u32> = common.into_iter().zip(0..).collect();
        let mut fingerprint = Fingerprint::new();
        let mut rows = FeatureTable::new(1);
        for words in &articles {
            let own: Vec<u32> = words.iter().filter_map(|word| index.get(word).copied()).collect();
            fingerprint.values(&own);
            rows.push(&[own]);
        }
        let mut embeddings = Vec::new();
        if encoder.components() > 0 {
            for article in all {
                let projected = article.embedding().and_then(|embedding| encoder.project(embedding));
                let numbers = projected.unwrap_or_else(|| vec![0.0; encoder.components()]);
                fingerprint.values(&numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>());
                embeddings.extend(numbers);
            }
        }
        let names = encoder.attributes().map(|(name, _)| name.to_owned()).collect();
        let attribute_of = encoder
            .attributes()
            .zip(0..)
            .flat_map(|((_, count), at)| std::iter::repeat_n(at, count))
            .collect();
        Ok(Self { encoder, names, attribute_of, values: rows, embeddings, fingerprint: fingerprint.finish() })
    }
}

/// An attribute's numbers: of all articles, and of those of each type.
#[derive(Debug, Default)]
struct Numbers<'a> {
    all: Vec<f64>,
    of_type: BTreeMap<&'a str, Vec<f64>>,
}

/// The ranges of each number.
fn ranges(articles: &[Facts]) -> BTreeMap<String, Ranges> {
    let mut numbers: BTreeMap<&str, Numbers<'_>> = BTreeMap::new();
    for facts in articles {
        for (name, number) in &facts.numbers {
            let Numbers { all, of_type } = numbers.entry(name).or_default();
            all.push(*number);
            of_type.entry(facts.kind()).or_default().push(*number);
        }
    }
    let ranges = |(name, Numbers { all, of_type }): (&str, Numbers<'_>)| {
        let of_type =
            of_type.into_iter().map(|(kind, numbers)| (kind.to_owned(), edges(numbers, PARTS_OF_TYPE)));
        (name.to_owned(), Ranges { all: edges(all, PARTS), of_type: of_type.collect() })
    };
    numbers.into_iter().map(ranges).collect()
}

/// The lowest number of each part, if numbers are split into parts with equally many; equal numbers are in the same part.
fn edges(mut numbers: Vec<f64>, parts: usize) -> Vec<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    let mut edges: Vec<f64> = Vec::new();
    let mut last = None;
    for (rank, &number) in numbers.iter().enumerate() {
        let part = rank * parts / numbers.len();
        let is_new = rank == 0 || number > numbers[rank - 1];
        if is_new && last != Some(part) {
            edges.push(number);
            last = Some(part);
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::ArticleId;
    use serde_json::{Value, json};

    use super::*;

    fn attributes(articles: &[Value]) -> Attributes {
        let articles: Vec<Article> = articles.iter().map(read).collect();
        Attributes::new(&articles, articles.len()).unwrap()
    }

    fn read(article: &Value) -> Article {
        let mut fields = article.as_object().unwrap().clone();
        let [id, kind] = ["id", "type"].map(|name| fields.remove(name).unwrap().as_str().unwrap().to_owned());
        Article::new(ArticleId::new(id).unwrap(), kind, fields).unwrap()
    }

    #[test]
    fn only_values_of_some_articles_count() {
        let attributes = attributes(&[
            json!({"id": "a", "type": "hat", "colour": "red", "name": "one", "in_stock": true, "sizes": ["S", "M"]}),
            json!({"id": "b", "type": "hat", "colour": "blue", "name": "two", "in_stock": true, "sizes": ["M", "M"]}),
            json!({"id": "c", "type": "coat", "colour": "red", "in_stock": true, "image": null}),
        ]);
        // In alphabetical order: red, size M, hat, hat of size M.
        assert_eq!(attributes.count(), 4);
        let found = [0, 1, 2].map(|article| attributes.for_article(article));
        assert_eq!(found, [&[0, 1, 2, 3][..], &[1, 2, 3], &[0]]);
    }

    #[test]
    fn numbers_become_ranges() {
        let priced =
            |at| json!({"id": format!("a-{at}"), "type": "hat", "price": if at < 40 { 9 } else { at }});
        let attributes = attributes(&(0..160).map(priced).collect::<Vec<_>>());
        // The cheapest quarter has one price, so three parts of sixteen are empty. Here all are hats, so these parts,
        // and the six for the type, come again as parts of hats.
        assert_eq!(attributes.count(), 2 * (PARTS - 3) + 2 * PARTS_OF_TYPE);
        assert_eq!(attributes.for_article(0), attributes.for_article(39));
        assert_eq!(attributes.for_article(40), attributes.for_article(49));
        assert_ne!(attributes.for_article(49), attributes.for_article(50));
    }

    #[test]
    fn the_encoder_says_the_same_values() {
        let fields = |at: usize| {
            let (kind, colour) = (["hat", "Coat"][at % 2], ["red", "blue", "Grün"][at % 3]);
            json!({"id": format!("a-{at}"), "type": kind, "colour": colour,
                "sizes": &["S", "M", "L"][..at % 4], "price": f64::from(u32::try_from(at * 37 % 50).unwrap()) / 4.0,
                "lined": at.is_multiple_of(5)})
        };
        let articles: Vec<Value> = (0..200).map(fields).collect();
        let attributes = attributes(&articles);
        for (place, article) in articles.iter().enumerate() {
            let encoded = attributes.encoder().encode(&read(article));
            assert_eq!(encoded.values, attributes.for_article(place), "{article}");
        }
    }

    #[test]
    fn other_attributes_change_the_fingerprint() {
        let hat = |colour| json!({"id": format!("a-{colour}"), "type": "hat", "colour": colour});
        let fingerprint =
            |colour| attributes(&["red", "red", "blue", "blue", colour].map(hat)).fingerprint().to_owned();
        assert_eq!(fingerprint("red"), fingerprint("red"));
        assert_ne!(fingerprint("red"), fingerprint("blue"));
    }
}
