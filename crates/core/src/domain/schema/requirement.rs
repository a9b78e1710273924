//! The requirement of a customer's feature for the articles suggested to them.

use std::{collections::BTreeMap, iter};

use crate::domain::{FeatureValue, fold, fold_for, number::integer_word, stock::SIZES, words::is_one_size};

/// An article fits if its attribute says one of the customer's words. Where the customer or the article says nothing, it
/// fits too.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// The attribute of articles, or their field `type`.
    pub attribute: String,
    /// The article types that it is about, as they are compared; empty for all.
    pub types: Vec<String>,
    /// The articles' words, as they are compared, by the folded value of the customer; for values where the two differ.
    values: BTreeMap<String, Vec<String>>,
}

impl Requirement {
    pub(super) fn new(attribute: &str, types: &[String], values: &BTreeMap<String, Vec<String>>) -> Self {
        let fold_all = |attribute: &str, words: &[String]| -> Vec<String> {
            words.iter().map(|word| fold_for(attribute, word)).collect()
        };
        Self {
            attribute: attribute.to_owned(),
            types: fold_all("type", types),
            values: values.iter().map(|(value, words)| (fold(value), fold_all(attribute, words))).collect(),
        }
    }

    /// The articles' words of customers' values that have others than their own, each once.
    pub fn words_of_articles(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self.values.values().flatten().map(String::as_str).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Whether it is about sizes, which articles may have in stock or not.
    pub fn is_of_sizes(&self) -> bool {
        SIZES.contains(&self.attribute.as_str())
    }

    /// The option of variants that it is about, as [`Counted`](super::super::Counted) names options.
    pub fn option(&self) -> String {
        if self.is_of_sizes() { SIZES[0].to_owned() } else { fold(&self.attribute) }
    }

    /// Whether it is about an article whose type says these words.
    pub fn is_about(&self, kinds: &[String]) -> bool {
        self.types.is_empty() || self.types.iter().any(|kind| kinds.contains(kind))
    }

    /// Whether an article that says these words fits only some customers. One that comes in one size fits all.
    pub fn excludes_some(&self, words: &[String]) -> bool {
        let is_everyones = self.is_of_sizes() && words.iter().any(|word| is_one_size(word));
        !words.is_empty() && !is_everyones
    }

    /// The words of articles that fit a customer with this value, as they are compared; none if the value says nothing.
    pub fn fitting_words(&self, value: &FeatureValue) -> Vec<String> {
        let words: Vec<String> = match value {
            FeatureValue::Text(word) => vec![fold(word)],
            FeatureValue::Many(words) => words.iter().map(|word| fold(word)).collect(),
            FeatureValue::Number(number) => integer_word(*number).into_iter().collect(),
        };
        let said = words.into_iter().filter(|word| !word.is_empty());
        let mut fitting: Vec<String> = said
            .flat_map(|word| {
                self.values.get(&word).cloned().unwrap_or_else(|| vec![fold_for(&self.attribute, &word)])
            })
            .collect();
        fitting.sort_unstable();
        fitting.dedup();
        fitting
    }
}

/// The schema's text without the lines of some values, nor the comments right above them. `spans` are the bytes of the
/// values.
pub(super) fn without_values(source: &str, spans: &[std::ops::Range<usize>]) -> String {
    let line_start = |at: usize| source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let mut kept = String::with_capacity(source.len());
    let mut from = 0;
    for span in spans {
        let mut start = line_start(span.start);
        let above = |start: usize| start.checked_sub(1).map(line_start);
        let mut lines = iter::successors(above(start), |&start| above(start));
        while let Some(line) =
            lines.next().filter(|&line| source[line..].trim_start_matches([' ', '\t']).starts_with('#'))
        {
            start = line;
        }
        kept.push_str(&source[from.min(start)..start]);
        from = source[span.end..].find('\n').map_or(source.len(), |newline| span.end + newline + 1);
    }
    kept.push_str(&source[from..]);
    kept
}
