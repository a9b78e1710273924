//! Finding customers and articles by words that people type.
//!
//! Every word must be a whole word of a text, or a part of the id. Where nothing has them all, beginnings of words count, so
//! that results come while somebody types. Commas separate words as spaces do, and a word may name its field: `colour:navy`.
//! Plurals and other names of an article count as the same word.

use std::{future::ready, pin::pin};

use futures_util::{Stream, StreamExt, TryStreamExt};

use crate::{
    domain::{Article, Customer, CustomerId, Schema, fold, singular},
    store::{Store, StoreError},
};

/// Names of the same article, in the singular.
const SYNONYMS: [&[&str]; 14] = [
    &["bag", "handbag", "purse"],
    &["beany", "bobble"],
    &["dungaree", "overall"],
    &["gilet", "waistcoat"],
    &["glove", "mitten"],
    &["grey", "gray"],
    &["loafer", "moccasin"],
    &["scarf", "scarve", "shawl"],
    &["sneaker", "trainer", "plimsoll"],
    &["sunglass", "shade"],
    &["sweater", "jumper", "pullover"],
    &["swimsuit", "swimwear"],
    &["tight", "stocking", "pantyhose"],
    &["trouser", "pant", "slack", "chino"],
];
/// The most results of a search.
const MOST: usize = 1_000;
/// The most rows that a search reads.
const MOST_READ: usize = 20_000;

/// What was found, in the order of ids.
#[derive(Debug)]
pub struct Found<T> {
    pub rows: Vec<T>,
    /// Whether there may be more.
    pub is_cut: bool,
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), is_cut: false }
    }
}

/// The customers whose profile has every word, except in what they never wear.
pub async fn customers(store: &Store, schema: &Schema, text: &str) -> Result<Found<Customer>, StoreError> {
    let search = Search::new(text);
    let fit = |customer: &Customer| search.fit_customer(schema, customer);
    collect(store.customers().with_words(search.groups(), None), fit).await
}

/// Up to `n` customers after the id `after` whose profile has every word as a whole one, except in what they never wear.
pub async fn customers_after(
    store: &Store,
    schema: &Schema,
    text: &str,
    after: Option<&CustomerId>,
    n: u32,
) -> Result<Vec<Customer>, StoreError> {
    let search = Search::new(text);
    if search.0.is_empty() {
        return store.customers().list(after, n).await;
    }
    let rows = store.customers().with_words(search.groups(), after);
    let whole = rows.try_filter(|customer| ready(search.fit_customer(schema, customer) == Fit::Whole));
    whole.take(n as usize).try_collect().await
}

/// The articles whose type and attributes have every word.
pub async fn articles(store: &Store, text: &str) -> Result<Found<Article>, StoreError> {
    let search = Search::new(text);
    let fit = |article: &Article| {
        let names = std::iter::once("type").chain(article.attributes().keys().map(String::as_str));
        let texts = names.flat_map(|name| article.words(name).map(move |word| (name, word)));
        search.fit(article.id.as_str(), texts)
    };
    collect(store.articles().with_words(search.groups()), fit).await
}

/// How well a row fits a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Not,
    Beginnings,
    Whole,
}

async fn collect<T>(
    rows: impl Stream<Item = Result<T, StoreError>>,
    fit: impl Fn(&T) -> Fit,
) -> Result<Found<T>, StoreError> {
    let mut rows = pin!(rows);
    let (mut whole, mut beginnings, mut read) = (Vec::new(), Vec::new(), 0);
    while whole.len() < MOST
        && read < MOST_READ
        && let Some(row) = rows.try_next().await?
    {
        read += 1;
        match fit(&row) {
            Fit::Whole => whole.push(row),
            Fit::Beginnings if whole.is_empty() && beginnings.len() < MOST => beginnings.push(row),
            Fit::Beginnings | Fit::Not => {}
        }
    }
    let rows = if whole.is_empty() { beginnings } else { whole };
    let is_cut = read == MOST_READ || rows.len() == MOST;
    Ok(Found { rows, is_cut })
}

/// The words of a search.
struct Search(Vec<Word>);

struct Word {
    /// The only field in which it counts.
    field: Option<String>,
    /// As it was typed, for ids.
    typed: String,
    /// Its parts, such as those of `trench-coat`, each with its other forms.
    parts: Vec<Vec<String>>,
}

impl Search {
    fn new(text: &str) -> Self {
        let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        Self(words.filter_map(Word::new).collect())
    }

    /// For the database: of each group, a row has a text.
    fn groups(&self) -> Vec<Vec<String>> {
        let group = |word: &Word| {
            let longest = word.parts.iter().max_by_key(|forms| forms[0].len()).into_iter().flatten();
            // Its plural may end in -ies.
            let stems = longest.map(|form| form.strip_suffix('y').unwrap_or(form).to_owned());
            stems.chain([word.typed.clone()]).collect()
        };
        self.0.iter().map(group).collect()
    }

    fn fit_customer(&self, schema: &Schema, customer: &Customer) -> Fit {
        let is_worn = |name: &str| schema.feature(name).is_none_or(|feature| feature.excludes.is_none());
        let worn = customer.features.iter().filter(|(name, _)| is_worn(name));
        let texts =
            worn.flat_map(|(name, value)| value.words().iter().map(move |word| (name, word.as_str())));
        self.fit(customer.id.as_str(), texts)
    }

    fn fit<'t>(&self, id: &str, texts: impl Iterator<Item = (&'t str, &'t str)>) -> Fit {
        if self.0.is_empty() {
            return Fit::Whole;
        }
        let id = id.to_lowercase();
        let texts: Vec<(String, Vec<String>)> = texts
            .map(|(field, text)| (fold(field), tokens(text).map(|token| singular(&token)).collect()))
            .collect();
        self.0.iter().map(|word| word.fit(&id, &texts)).min().unwrap_or(Fit::Whole)
    }
}

impl Word {
    fn new(typed: &str) -> Option<Self> {
        let (field, word) = match typed.split_once(':') {
            Some((field, word)) if !field.is_empty() && !word.is_empty() => {
                (Some(fold(field).replace(' ', "_")), word)
            }
            _ => (None, typed),
        };
        let parts: Vec<Vec<String>> = tokens(word).map(|token| forms(&token)).collect();
        (!parts.is_empty()).then(|| Self { field, typed: word.to_lowercase(), parts })
    }

    fn fit(&self, id: &str, texts: &[(String, Vec<String>)]) -> Fit {
        if self.field.is_none() && id.contains(&self.typed) {
            return Fit::Whole;
        }
        let counts = |field: &str| self.field.as_ref().is_none_or(|own| own == field);
        let tokens = || texts.iter().filter(|(field, _)| counts(field)).flat_map(|(_, tokens)| tokens);
        let fit = |forms: &Vec<String>| match () {
            () if tokens().any(|token| forms.contains(token)) => Fit::Whole,
            () if tokens().any(|token| forms.iter().any(|form| token.starts_with(form.as_str()))) => {
                Fit::Beginnings
            }
            () => Fit::Not,
        };
        self.parts.iter().map(fit).min().unwrap_or(Fit::Not)
    }
}

/// The words of a text, folded.
fn tokens(text: &str) -> impl Iterator<Item = String> {
    let folded = fold(text);
    let tokens: Vec<String> = folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect();
    tokens.into_iter()
}

/// A word in the singular, and its other names.
fn forms(token: &str) -> Vec<String> {
    let own = singular(token);
    let others = SYNONYMS.iter().find(|names| names.contains(&own.as_str())).copied().unwrap_or_default();
    let others = others.iter().filter(|other| **other != own).map(|other| (*other).to_owned());
    let others: Vec<String> = others.collect();
    std::iter::once(own).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(search: &str, texts: &[(&str, &str)]) -> Fit {
        Search::new(search).fit("c-0148", texts.iter().copied())
    }

    #[test]
    fn words_are_whole_or_beginnings() {
        let slim = [("gender", "female"), ("fit", "slim"), ("preferred_colours", "navy")];
        for whole in ["navy", "navy, slim", "NAVY;slim", "0148", "c-01 navy", "fit:slim", "", " , "] {
            assert_eq!(fit(whole, &slim), Fit::Whole, "{whole}");
        }
        assert_eq!(fit("fem nav", &slim), Fit::Beginnings);
        for not in ["male", "navy red", "gender:slim", "fit:0148"] {
            assert_eq!(fit(not, &slim), Fit::Not, "{not}");
        }
    }

    #[test]
    fn plurals_and_other_names_are_the_same_word() {
        let article =
            [("type", "sneaker"), ("name", "White leather Sneakers"), ("material", "dresses/hoodies")];
        for whole in ["trainers", "sneakers", "white trainer", "dress", "hoody", "hoodie", "type:trainers"] {
            assert_eq!(fit(whole, &article), Fit::Whole, "{whole}");
        }
        assert_eq!(fit("boots", &article), Fit::Not);
        assert_eq!(fit("trench-coats", &[("type", "trench-coat")]), Fit::Whole);
        assert_eq!(fit("jeans", &[("type", "jeans")]), Fit::Whole);
        assert_eq!(fit("jeans", &[("type", "denim-jacket"), ("material", "denim")]), Fit::Not);
        // What the database is asked for is part of what fits.
        let groups = Search::new("accessories trench-coats").groups();
        assert_eq!(groups[0], ["accessor", "accessories"]);
        assert_eq!(groups[1], ["trench", "trench-coats"]);
    }
}
