//! The attribute values that articles share.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use atelier::domain::Article;
use serde_json::Value;

use super::{
    fingerprint::Fingerprint,
    outfits::{FeatureTable, place},
};

/// A numeric attribute is split into this many ranges with equally many articles.
const PARTS: usize = 16;
/// The same, among the articles of a type.
const PARTS_OF_TYPE: usize = 6;
/// The largest number of values. The most common ones are kept.
const MOST: usize = 8192;
/// How the names of attributes begin whose values are those of another, each together with a type.
const WITH_TYPE: &str = "type and ";
/// What a value together with a type counts in a match beside the value itself: there are many, each of few articles.
const OF_TYPE: f32 = 0.1;
/// Attributes that say nothing of how an article is worn.
const NOT_WORN: [&str; 8] =
    ["name", "description", "image", "url", "stock", "in_stock", "availability", "embedding"];

/// For each article the values that it shares with others, such as its type, colour, brand and price range, each also
/// together with its type, numbered over all attributes.
#[derive(Debug, Clone)]
pub struct Attributes {
    count: usize,
    /// The attributes' names, `type` among them, in alphabetical order.
    names: Vec<String>,
    /// For each value the index of its attribute.
    attribute_of: Vec<u32>,
    /// One row per article, with one entry for all of its values.
    values: FeatureTable,
    fingerprint: String,
}

impl Attributes {
    /// The number of values.
    pub fn count(&self) -> usize {
        self.count
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
        let with_type: Vec<bool> = self.names.iter().map(|name| name.starts_with(WITH_TYPE)).collect();
        let factor = |&attribute: &u32| if with_type[attribute as usize] { OF_TYPE } else { 1.0 };
        self.attribute_of.iter().map(factor).collect()
    }

    /// The values of an article.
    pub fn for_article(&self, article: usize) -> &[u32] {
        self.values.values(place(article), 0)
    }

    /// SHA-256 over the values of all articles.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// Collects articles in the vocabulary's order.
#[derive(Debug, Default)]
pub(super) struct AttributesBuilder {
    /// Each article's values, as (attribute, word).
    words: Vec<Vec<(String, String)>>,
    /// By attribute: each number and its article.
    numbers: BTreeMap<String, Vec<(f64, usize)>>,
}

impl AttributesBuilder {
    pub(super) fn push(&mut self, article: &Article) {
        let place = self.words.len();
        let mut words = vec![("type".to_owned(), article.kind().to_owned())];
        let worn = article.attributes().iter().filter(|(name, _)| !NOT_WORN.contains(&name.as_str()));
        for (name, value) in worn {
            match value {
                Value::Array(values) => {
                    words.extend(values.iter().filter_map(word).map(|word| (name.clone(), word)));
                }
                Value::Number(number) => {
                    let number = number.as_f64().expect("a JSON number converts to f64; this is a bug");
                    self.numbers.entry(name.clone()).or_default().push((number, place));
                }
                value => words.extend(word(value).map(|word| (name.clone(), word))),
            }
        }
        self.words.push(words);
    }

    /// The type is an article's first word.
    fn kind(&self, article: usize) -> &str {
        &self.words[article][0].1
    }

    pub(super) fn finish(mut self) -> Attributes {
        for (name, mut numbers) in std::mem::take(&mut self.numbers) {
            numbers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            for (article, part) in parts(&numbers, PARTS) {
                self.words[article].push((name.clone(), part.to_string()));
            }
            let mut by_type: BTreeMap<String, Vec<(f64, usize)>> = BTreeMap::new();
            for &(number, article) in &numbers {
                by_type.entry(self.kind(article).to_owned()).or_default().push((number, article));
            }
            for (article, part) in by_type.values().flat_map(|numbers| parts(numbers, PARTS_OF_TYPE)) {
                self.words[article].push((format!("{name} for its type"), part.to_string()));
            }
        }
        let mut shared: HashMap<&(String, String), usize> = HashMap::new();
        for words in &mut self.words {
            let kind = words[0].1.clone();
            let with_type =
                |(name, word): &(String, String)| (format!("{WITH_TYPE}{name}"), format!("{kind}, {word}"));
            let with_type: Vec<_> = words[1..].iter().map(with_type).collect();
            words.extend(with_type);
            words.sort_unstable();
            words.dedup();
        }
        for word in self.words.iter().flatten() {
            *shared.entry(word).or_default() += 1;
        }
        // A value that one article has, or all have, relates no articles to each other.
        let mut values: Vec<_> = shared
            .into_iter()
            .filter(|&(_, articles)| (2..self.words.len()).contains(&articles))
            .map(|(word, articles)| (Reverse(articles), word))
            .collect();
        values.sort_unstable();
        values.truncate(MOST);
        let mut values: Vec<_> = values.into_iter().map(|(_, word)| word).collect();
        values.sort_unstable();
        let index: HashMap<_, u32> = values.iter().copied().zip(0..).collect();
        let mut fingerprint = Fingerprint::new();
        let mut rows = FeatureTable::new(1);
        for words in &self.words {
            let own: Vec<u32> = words.iter().filter_map(|word| index.get(word).copied()).collect();
            fingerprint.values(&own);
            rows.push(&[own]);
        }
        let mut names: Vec<String> = values.iter().map(|(name, _)| name.clone()).collect();
        names.dedup();
        let find = |(name, _): &&(String, String)| {
            place(names.binary_search(name).expect("it is among them; this is a bug"))
        };
        let attribute_of = values.iter().map(find).collect();
        let count = values.len();
        Attributes { count, names, attribute_of, values: rows, fingerprint: fingerprint.finish() }
    }
}

/// Splits ascending numbers into parts with equally many; equal numbers are in the same part.
fn parts(numbers: &[(f64, usize)], count: usize) -> Vec<(usize, usize)> {
    let mut part = 0;
    let mut before = None;
    let place = |(rank, &(number, article)): (usize, &(f64, usize))| {
        if before != Some(number) {
            part = rank * count / numbers.len();
        }
        before = Some(number);
        (article, part)
    };
    numbers.iter().enumerate().map(place).collect()
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use atelier::domain::ArticleId;
    use serde_json::json;

    use super::*;

    fn attributes(articles: &[Value]) -> Attributes {
        let mut builder = AttributesBuilder::default();
        for article in articles {
            let mut fields = article.as_object().unwrap().clone();
            let mut text = |name| fields.remove(name).unwrap().as_str().unwrap().to_owned();
            let (id, kind) = (ArticleId::new(text("id")).unwrap(), text("type"));
            builder.push(&Article::new(id, kind, fields).unwrap());
        }
        builder.finish()
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
        assert_eq!(
            [attributes.for_article(0), attributes.for_article(1), attributes.for_article(2)],
            [&[0, 1, 2, 3][..], &[1, 2, 3], &[0]]
        );
    }

    #[test]
    fn numbers_become_ranges() {
        let prices: Vec<Value> = (0..160)
            .map(|price| json!({"id": format!("a-{price}"), "type": "hat", "price": if price < 40 { 9 } else { price }}))
            .collect();
        let attributes = attributes(&prices);
        // The cheapest quarter has one price, so three parts of sixteen are empty. Here all are hats, so these parts,
        // and the six for the type, come again as parts of hats.
        assert_eq!(attributes.count(), 2 * (PARTS - 3) + 2 * PARTS_OF_TYPE);
        assert_eq!(attributes.for_article(0), attributes.for_article(39));
        assert_eq!(attributes.for_article(40), attributes.for_article(49));
        assert_ne!(attributes.for_article(49), attributes.for_article(50));
    }

    #[test]
    fn other_attributes_change_the_fingerprint() {
        let fingerprint = |colour: &str| {
            attributes(
                &["red", "red", "blue", "blue", colour]
                    .map(|colour| json!({"id": format!("a-{colour}"), "type": "hat", "colour": colour})),
            )
            .fingerprint()
            .to_owned()
        };
        assert_eq!(fingerprint("red"), fingerprint("red"));
        assert_ne!(fingerprint("red"), fingerprint("blue"));
    }
}
