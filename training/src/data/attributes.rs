//! The attribute values that articles share.

use std::collections::{BTreeMap, HashMap};

use atelier::domain::Article;
use serde_json::Value;

use super::{
    fingerprint::Fingerprint,
    outfits::{FeatureTable, place},
};

/// A numeric attribute is split into this many ranges with equally many articles.
const PARTS: usize = 16;

/// For each article the values that it shares with others, such as its type, colour, brand and price range,
/// numbered over all attributes.
#[derive(Debug, Clone)]
pub struct Attributes {
    count: usize,
    /// One row per article, with one entry for all of its values.
    values: FeatureTable,
    fingerprint: String,
}

impl Attributes {
    /// The number of values.
    pub fn count(&self) -> usize {
        self.count
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
        for (name, value) in article.attributes() {
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

    pub(super) fn finish(mut self) -> Attributes {
        for (name, mut numbers) in std::mem::take(&mut self.numbers) {
            numbers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let mut part = 0;
            let mut before = None;
            for (rank, &(number, article)) in numbers.iter().enumerate() {
                // Equal numbers are in the same part.
                if before != Some(number) {
                    part = rank * PARTS / numbers.len();
                }
                before = Some(number);
                self.words[article].push((name.clone(), part.to_string()));
            }
        }
        let mut shared: HashMap<&(String, String), usize> = HashMap::new();
        for words in &mut self.words {
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
            .map(|(word, _)| word)
            .collect();
        values.sort_unstable();
        let index: HashMap<_, u32> = values.iter().copied().zip(0..).collect();
        let mut fingerprint = Fingerprint::new();
        let mut rows = FeatureTable::new(1);
        for words in &self.words {
            let own: Vec<u32> = words.iter().filter_map(|word| index.get(word).copied()).collect();
            fingerprint.values(&own);
            rows.push(&[own]);
        }
        Attributes { count: values.len(), values: rows, fingerprint: fingerprint.finish() }
    }
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
        // In alphabetical order: red, size M, hat.
        assert_eq!(attributes.count(), 3);
        assert_eq!(
            [attributes.for_article(0), attributes.for_article(1), attributes.for_article(2)],
            [&[0, 1, 2][..], &[1, 2], &[0]]
        );
    }

    #[test]
    fn numbers_become_ranges() {
        let prices: Vec<Value> = (0..160)
            .map(|price| json!({"id": format!("a-{price}"), "type": "hat", "price": if price < 40 { 9 } else { price }}))
            .collect();
        let attributes = attributes(&prices);
        assert_eq!(attributes.count(), PARTS - 3, "the cheapest quarter has one price");
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
