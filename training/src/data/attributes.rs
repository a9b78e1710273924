//! What articles have in common.

use std::collections::{BTreeMap, HashMap};

use atelier::domain::Article;
use serde_json::Value;

use super::{features::FeatureTable, fingerprint::Fingerprint, outfits::place};

/// Parts of a number's range, each with as many articles as the others.
const PARTS: usize = 16;

/// For each article the values that it shares with others: its type, its colour, its brand, the part of the price range
/// that it lies in. Numbered over all attributes.
#[derive(Debug, Clone)]
pub struct Attributes {
    count: usize,
    /// A row an article, with one entry for all of its values.
    values: FeatureTable,
    fingerprint: String,
}

impl Attributes {
    /// How many values there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// An article's.
    pub fn of(&self, article: usize) -> &[u32] {
        self.values.values(place(article), 0)
    }

    /// SHA-256 over which articles share what.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// Takes in articles in the vocabulary's order.
#[derive(Debug, Default)]
pub(super) struct AttributesBuilder {
    /// Each article's values, in words.
    words: Vec<Vec<(String, String)>>,
    /// By attribute: who has which number.
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
                    let number = number.as_f64().expect("a JSON number is one; this is a bug");
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
                // Equal numbers are in one part.
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
        // What one article has says nothing of another, and what all have nothing of any.
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
    fn a_value_is_shared_by_some_and_not_by_all() {
        let attributes = attributes(&[
            json!({"id": "a", "type": "hat", "colour": "red", "name": "one", "in_stock": true, "sizes": ["S", "M"]}),
            json!({"id": "b", "type": "hat", "colour": "blue", "name": "two", "in_stock": true, "sizes": ["M", "M"]}),
            json!({"id": "c", "type": "coat", "colour": "red", "in_stock": true, "image": null}),
        ]);
        // In alphabetical order: red, size M, hat.
        assert_eq!(attributes.count(), 3);
        assert_eq!([attributes.of(0), attributes.of(1), attributes.of(2)], [&[0, 1, 2][..], &[1, 2], &[0]]);
    }

    #[test]
    fn a_number_is_a_part_of_its_range() {
        let prices: Vec<Value> = (0..160)
            .map(|price| json!({"id": format!("a-{price}"), "type": "hat", "price": if price < 40 { 9 } else { price }}))
            .collect();
        let attributes = attributes(&prices);
        assert_eq!(attributes.count(), PARTS - 3, "the cheapest quarter has one price");
        assert_eq!(attributes.of(0), attributes.of(39));
        assert_eq!(attributes.of(40), attributes.of(49));
        assert_ne!(attributes.of(49), attributes.of(50));
    }

    #[test]
    fn other_attributes_are_another_fingerprint() {
        let of = |colour: &str| {
            attributes(
                &["red", "red", "blue", "blue", colour]
                    .map(|colour| json!({"id": format!("a-{colour}"), "type": "hat", "colour": colour})),
            )
            .fingerprint()
            .to_owned()
        };
        assert_eq!(of("red"), of("red"));
        assert_ne!(of("red"), of("blue"));
    }
}
