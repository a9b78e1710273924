//! The values of an article's attributes: what a model knows about it apart from its number.
//!
//! Training and serving both encode articles here, so a new article is encoded exactly as the articles in training
//! were.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    iter,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Article, Embedding, Projection, Use, fold, fold_for, is_used};

/// How the names of attributes begin whose values are those of another, each together with a type.
const WITH_TYPE: &str = "type and ";
/// How the names of attributes end whose values are ranges of a number among the articles of one type.
const FOR_TYPE: &str = " for its type";
const TYPE: &str = "type";

/// Numbers the values that articles have, over all attributes: words, ranges of numbers, and both together with the type.
#[derive(Debug, Clone, PartialEq)]
pub struct ArticleEncoder {
    /// By attribute, in alphabetical order.
    values: BTreeMap<String, Vec<String>>,
    ranges: BTreeMap<String, Ranges>,
    /// The models' inputs from each list of an embedding that the training's articles have.
    projections: BTreeMap<String, Projection>,
    index: Index,
    count: usize,
}

/// The ranges of a number: of all articles, and of those of a type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranges {
    pub all: Vec<f64>,
    pub of_type: BTreeMap<String, Vec<f64>>,
}

/// Finds values without building their words.
#[derive(Debug, Clone, Default, PartialEq)]
struct Index {
    /// By attribute and word, a number for the word, used below.
    words: HashMap<String, HashMap<String, u32>>,
    /// The value that is the word.
    alone: HashMap<u32, u32>,
    /// By type's word and word, the value of both together.
    with_type: HashMap<(u32, u32), u32>,
    /// The types' words by the form in which filters compare types.
    types: HashMap<String, String>,
}

/// An article as a model knows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EncodedArticle {
    /// Ascending.
    pub values: Vec<u32>,
    /// The article's words that no value has: the model learned of no two articles with them.
    pub unknown: Vec<UnknownValue>,
    /// Models' inputs from its embedding; empty if it has none, or they take none.
    pub embedding: Vec<f32>,
    /// The first list of its embedding with another length than expected.
    pub other_length: Option<OtherLength>,
}

/// A list of an embedding that does not count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherLength {
    /// The list's.
    pub name: String,
    pub length: usize,
    /// 0 if models take none.
    pub expected: usize,
}

/// A word of an article that the encoder has no value for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{attribute} {word:?}")]
pub struct UnknownValue {
    /// `type`, or one that other articles' values are known of.
    pub attribute: String,
    /// In lower case.
    pub word: String,
}

impl UnknownValue {
    pub fn is_type(&self) -> bool {
        self.attribute == TYPE
    }
}

/// An article's own words and numbers, by attribute; the first is its type. Words are folded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    pub words: Vec<(String, String)>,
    pub numbers: Vec<(String, f64)>,
}

impl Facts {
    pub fn new(article: &Article) -> Self {
        let mut facts = Self { words: vec![(TYPE.to_owned(), fold(article.kind()))], numbers: Vec::new() };
        let described = article.attributes().iter().filter(|(name, _)| !is_used(name, Use::Unseen));
        for (name, value) in described {
            match value {
                Value::Array(values) => {
                    facts.words.extend(values.iter().filter_map(word).map(|word| (name.clone(), word)));
                }
                Value::Number(number) => {
                    facts.numbers.extend(number.as_f64().map(|number| (name.clone(), number)));
                }
                value => facts.words.extend(word(value).map(|word| (name.clone(), word))),
            }
        }
        facts
    }

    /// The article's type, folded.
    pub fn kind(&self) -> &str {
        &self.words[0].1
    }

    /// Adds the ranges that the numbers are in to the words.
    fn add_ranges(&mut self, ranges: &BTreeMap<String, Ranges>) {
        for (name, number) in &self.numbers {
            let Some(Ranges { all, of_type }) = ranges.get(name) else { continue };
            let of_type = of_type.get(self.kind()).map_or(&[][..], Vec::as_slice);
            for (name, edges) in [(name.clone(), all.as_slice()), (format!("{name}{FOR_TYPE}"), of_type)] {
                if !edges.is_empty() {
                    self.words.push((name, range(edges, *number).to_string()));
                }
            }
        }
    }

    /// All values: words, ranges, and all of these together with the type. Sorted, each once.
    pub fn into_values(mut self, ranges: &BTreeMap<String, Ranges>) -> Vec<(String, String)> {
        self.add_ranges(ranges);
        let mut words = self.words;
        let kind = words[0].1.clone();
        let with_type: Vec<_> = words[1..].iter().map(|(name, word)| with_type(name, &kind, word)).collect();
        words.extend(with_type);
        words.sort_unstable();
        words.dedup();
        words
    }
}

fn with_type(name: &str, kind: &str, word: &str) -> (String, String) {
    (format!("{WITH_TYPE}{name}"), format!("{kind}, {word}"))
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(fold(text)),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// The range of a number: the last that begins at or below it, or the first.
fn range(edges: &[f64], number: f64) -> usize {
    edges.partition_point(|edge| *edge <= number).saturating_sub(1)
}

impl ArticleEncoder {
    /// `values` has the words of each attribute; `ranges` the lowest number of each range.
    pub fn new(mut values: BTreeMap<String, Vec<String>>, ranges: BTreeMap<String, Ranges>) -> Self {
        for words in values.values_mut() {
            words.sort_unstable();
        }
        let index = Index::new(&values);
        let count = values.values().map(Vec::len).sum();
        Self { values, ranges, projections: BTreeMap::new(), index, count }
    }

    /// `projections` are of the lists by name.
    pub fn with_projections(self, projections: BTreeMap<String, Projection>) -> Self {
        Self { projections, ..self }
    }

    /// Reads what [`ArticleEncoder::to_json`] wrote.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("not an article encoder: {what}");
        let EncoderFile { values, ranges, embedding } =
            serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let has_twice = |words: &Vec<String>| words.iter().collect::<HashSet<_>>().len() != words.len();
        if values.values().any(has_twice) {
            return Err(wrong("`values` has a word of an attribute twice"));
        }
        let mut edges =
            ranges.values().flat_map(|ranges| iter::once(&ranges.all).chain(ranges.of_type.values()));
        if !edges.all(|edges| edges.is_sorted()) {
            return Err(wrong("`ranges` has lists of ascending numbers"));
        }
        let projections = match embedding {
            None => BTreeMap::new(),
            Some(EmbeddingFile::One(projection)) => [(String::new(), projection)].into(),
            Some(EmbeddingFile::Named(projections)) => projections,
        };
        if !projections.values().all(Projection::is_sound) {
            return Err(wrong("`embedding` has `mean`, a list of numbers, and `components`, lists as long"));
        }
        Ok(Self::new(values, ranges).with_projections(projections))
    }

    /// As the release's file has it.
    pub fn to_json(&self) -> String {
        let named = self.projections.clone();
        let embedding = match named.get("") {
            Some(only) if named.len() == 1 => Some(EmbeddingFile::One(only.clone())),
            _ => (!named.is_empty()).then_some(EmbeddingFile::Named(named)),
        };
        let file = EncoderFile { values: self.values.clone(), ranges: self.ranges.clone(), embedding };
        serde_json::to_string(&file).expect("texts and numbers are JSON")
    }

    /// How many numbers models take of an embedding.
    pub fn components(&self) -> usize {
        self.projections.values().map(|projection| projection.components.len()).sum()
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The attributes with values, in alphabetical order, each with the number of its values. Values are numbered in
    /// this order.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.values.iter().map(|(name, words)| (name.as_str(), words.len()))
    }

    /// Whether an attribute's values are those of another, each together with a type.
    pub fn is_with_type(attribute: &str) -> bool {
        attribute.starts_with(WITH_TYPE)
    }

    /// Whether an attribute's name is one of articles', not of what was made of it.
    pub fn is_plain(attribute: &str) -> bool {
        attribute != TYPE && !Self::is_with_type(attribute) && !attribute.ends_with(FOR_TYPE)
    }

    /// Models' input from an embedding, list after list: zeros, the average, of lists that it does not have. None if it has
    /// none of them.
    pub fn project(&self, embedding: &Embedding) -> Option<Vec<f32>> {
        let mut is_any = false;
        let list = |(name, projection): (&String, &Projection)| {
            let numbers = embedding.list(name).and_then(|list| projection.project(list));
            is_any |= numbers.is_some();
            numbers.unwrap_or_else(|| vec![0.0; projection.components.len()])
        };
        let numbers: Vec<f32> = self.projections.iter().flat_map(list).collect();
        is_any.then_some(numbers)
    }

    pub fn encode(&self, article: &Article) -> EncodedArticle {
        let mut facts = Facts::new(article);
        if let Some(known) = self.index.spelled_otherwise(facts.kind()) {
            known.clone_into(&mut facts.words[0].1);
        }
        let named = facts.words.len();
        facts.add_ranges(&self.ranges);
        let find = |(name, word): &(String, String)| self.index.words.get(name)?.get(word).copied();
        let kind = find(&facts.words[0]);
        let mut encoded = EncodedArticle::default();
        for (index, fact) in facts.words.iter().enumerate() {
            let word = find(fact);
            let with_type = kind.zip(word).and_then(|both| self.index.with_type.get(&both));
            let alone = word.and_then(|word| self.index.alone.get(&word));
            encoded.values.extend(alone.into_iter().chain(with_type.filter(|_| index > 0)));
            let (name, word_of) = fact;
            // An attribute without any value says nothing that could be unknown, as does one that has ranges.
            if word.is_none() && index < named && (index == 0 || self.index.words.contains_key(name)) {
                encoded.unknown.push(UnknownValue { attribute: name.clone(), word: word_of.clone() });
            }
        }
        encoded.values.sort_unstable();
        encoded.values.dedup();
        if let Some(embedding) = article.embedding() {
            encoded.embedding = self.project(embedding).unwrap_or_default();
            let other = |(name, list): (&str, &[f32])| {
                let expected = self.projections.get(name).map_or(0, |projection| projection.mean.len());
                let length = list.len();
                (length != expected).then(|| OtherLength { name: name.to_owned(), length, expected })
            };
            encoded.other_length = embedding.lists().find_map(other);
        }
        encoded
    }
}

/// An encoder as the release's file has it.
#[derive(Serialize, Deserialize)]
struct EncoderFile {
    values: BTreeMap<String, Vec<String>>,
    ranges: BTreeMap<String, Ranges>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding: Option<EmbeddingFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum EmbeddingFile {
    One(Projection),
    Named(BTreeMap<String, Projection>),
}

impl Index {
    fn new(values: &BTreeMap<String, Vec<String>>) -> Self {
        let mut index = Self::default();
        let mut count = 0;
        let numbered = values.iter().flat_map(|(name, words)| words.iter().map(move |word| (name, word)));
        for ((name, word), value) in numbered.zip(0..) {
            let Some(name) = name.strip_prefix(WITH_TYPE) else {
                let word = index.number(name, word, &mut count);
                index.alone.insert(word, value);
                continue;
            };
            // Types and words may have commas; each way to cut is a pair that an article may have.
            for (cut, _) in word.match_indices(", ") {
                let kind = index.number(TYPE, &word[..cut], &mut count);
                let word = index.number(name, &word[cut + 2..], &mut count);
                index.with_type.insert((kind, word), value);
            }
        }
        for kind in values.get(TYPE).into_iter().flatten() {
            index.types.entry(fold_for(TYPE, kind)).or_insert_with(|| kind.clone());
        }
        index
    }

    /// The known type that this unknown one is in another form, as `dress` is `dresses`.
    fn spelled_otherwise(&self, kind: &str) -> Option<&str> {
        let is_known = self.words.get(TYPE).is_some_and(|words| words.contains_key(kind));
        if is_known { None } else { self.types.get(&fold_for(TYPE, kind)).map(String::as_str) }
    }

    fn number(&mut self, name: &str, word: &str, count: &mut u32) -> u32 {
        let words = self.words.entry(name.to_owned()).or_default();
        *words.entry(word.to_owned()).or_insert_with(|| {
            *count += 1;
            *count
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::ArticleId;

    fn article(kind: &str, attributes: Value) -> Article {
        let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
        Article::new(ArticleId::new("a").unwrap(), kind, attributes).unwrap()
    }

    fn encoder() -> ArticleEncoder {
        let words = |name: &str, words: &[&str]| {
            (name.to_owned(), words.iter().copied().map(str::to_owned).collect::<Vec<_>>())
        };
        let values = [
            words("type", &["hat", "coat, long"]),
            words("colour", &["red", "blue"]),
            words("type and colour", &["coat, long, red", "hat, red", "hat, white"]),
            words("price", &["0", "1"]),
            words("price for its type", &["1"]),
            words("type and price", &["hat, 1"]),
        ];
        let ranges = Ranges {
            all: vec![5.0, 20.0],
            of_type: [("hat".to_owned(), vec![5.0, 8.0])].into_iter().collect(),
        };
        ArticleEncoder::new(
            values.into_iter().collect(),
            [("price".to_owned(), ranges)].into_iter().collect(),
        )
    }

    /// The encoder's values, in the order of their numbers.
    const VALUES: &str = "colour blue; colour red; price 0; price 1; price for its type 1; type coat, long; type hat; \
                          type and colour coat, long, red; type and colour hat, red; type and colour hat, white; \
                          type and price hat, 1";

    fn says(encoded: &EncodedArticle) -> String {
        let values: Vec<_> = VALUES.split("; ").collect();
        encoded.values.iter().map(|&value| values[value as usize]).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn an_article_has_the_values_of_its_words_and_numbers() {
        let encoder = encoder();
        assert_eq!(encoder.count(), VALUES.split("; ").count());
        let hat = encoder
            .encode(&article("Hat", json!({"colour": ["RED ", "white", "red"], "price": 20, "name": "x"})));
        let expected = "colour red; price 1; price for its type 1; type hat; type and colour hat, red; \
                        type and colour hat, white; type and price hat, 1";
        assert_eq!(says(&hat), expected);
        assert_eq!(hat.unknown, [], "white is known together with hats");
        let coat = encoder
            .encode(&article("coat, long", json!({"colour": "red", "price": 1, "width": 3, "line": "a"})));
        assert_eq!(says(&coat), "colour red; price 0; type coat, long; type and colour coat, long, red");
        assert_eq!(coat.unknown, [], "no article of the training has a line");
        let hats = encoder.encode(&article("HATS", json!({"colour": ["red", "white"], "price": 20})));
        assert_eq!(hats, hat, "a type in another form, as filters compare types");
    }

    #[test]
    fn what_no_value_says_is_named() {
        let boot = encoder().encode(&article("boot", json!({"colour": "mauve", "price": 6})));
        assert_eq!(says(&boot), "price 0");
        let unknown: Vec<String> = boot.unknown.iter().map(ToString::to_string).collect();
        assert_eq!(unknown, ["type \"boot\"", "colour \"mauve\""]);
        assert_eq!([true, false], [0, 1].map(|index: usize| boot.unknown[index].is_type()));
    }

    #[test]
    fn an_encoder_is_read_as_it_was_written() {
        let encoder = encoder();
        assert_eq!(ArticleEncoder::parse(&encoder.to_json()).unwrap(), encoder);
        let projection = Projection { mean: vec![0.1, 0.0], components: vec![vec![1.0 / 3.0, -1e-9]] };
        let with_embedding = encoder.clone().with_projections([(String::new(), projection.clone())].into());
        assert_eq!(ArticleEncoder::parse(&with_embedding.to_json()).unwrap(), with_embedding);
        assert_eq!(with_embedding.components(), 1);
        let seen = with_embedding.encode(&article("hat", json!({"embedding": [0.4, 2]})));
        assert_eq!(seen.embedding, projection.project(&[0.4, 2.0]).unwrap());
        let longer = with_embedding.encode(&article("hat", json!({"embedding": [0.4, 2, 3]})));
        let other =
            |name: &str, length, expected| Some(OtherLength { name: name.to_owned(), length, expected });
        assert_eq!((longer.embedding, longer.other_length), (vec![], other("", 3, 2)));
        let flat = Projection { mean: vec![1.0], components: vec![vec![2.0]] };
        let both = [("image".to_owned(), projection.clone()), ("text".to_owned(), flat)];
        let both = encoder.with_projections(both.into());
        assert_eq!(ArticleEncoder::parse(&both.to_json()).unwrap(), both);
        let read = both.encode(&article("hat", json!({"embedding": {"text": [4]}})));
        assert_eq!((read.embedding, read.other_length), (vec![0.0, 6.0], None), "an average picture");
        let longer = both.encode(&article("hat", json!({"embedding": {"image": [1], "text": [4]}})));
        assert_eq!((longer.embedding, longer.other_length), (vec![0.0, 6.0], other("image", 1, 2)));
        assert_eq!(both.encode(&article("hat", json!({"embedding": [1]}))).other_length, other("", 1, 0));
        for (text, said) in [
            (
                r#"{"values": {}, "ranges": {}, "embedding": {"mean": [1], "components": [[1, 2]]}}"#,
                "`embedding`",
            ),
            ("{", "EOF"),
            ("{}", "`values`"),
            (r#"{"values": {"a": [1]}, "ranges": {}}"#, "expected a string"),
            (r#"{"values": {"a": ["x", "x"]}, "ranges": {}}"#, "twice"),
            (r#"{"values": {}, "ranges": {"a": {"all": [2, 1], "of_type": {}}}}"#, "ascending"),
        ] {
            let reason = ArticleEncoder::parse(text).unwrap_err();
            assert!(reason.contains(said), "{text}: {reason}");
        }
    }
}
