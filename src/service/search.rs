//! Finding customers and articles by words that people type.
//!
//! Every word must be a whole word of a text, or a part of the id. Where nothing has them all, beginnings of words count, so
//! that results come while somebody types. Commas separate words as spaces do, and a word may name its field: `colour:navy`.
//! Plurals count as the same word, and so do the shop's [`Synonyms`].

use std::{
    collections::{HashMap, HashSet},
    future::ready,
    pin::pin,
};

use atelier_core::domain::{Article, Customer, CustomerId, Schema, fold, singular};
use futures_util::{Stream, StreamExt, TryStreamExt};

use super::live_release::ServedSchema;
use crate::store::{Store, StoreError};

/// A search counts at least this many results, if it finds them.
const COUNTED: usize = 1_000;
/// A search reads at most this many rows for each `COUNTED` results.
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

/// A page of a search.
#[derive(Debug)]
pub struct FoundPage<T> {
    pub rows: Vec<T>,
    /// How many were found.
    pub count: usize,
    /// Whether there may be more than were counted.
    pub is_cut: bool,
}

/// A page of the customers whose profile has every word, except in what they never wear. A far page takes long, as all
/// before it are read.
pub async fn customers(
    store: &Store,
    schema: &Schema,
    synonyms: &Synonyms,
    text: &str,
    (skip, n): (usize, usize),
) -> Result<FoundPage<Customer>, StoreError> {
    let search = Search::new(text, &[], synonyms);
    if search.0.is_empty() {
        let count = usize::try_from(store.customers().count().await?).unwrap_or(usize::MAX);
        let rows = store.customers().page(skip.min(count.saturating_sub(1) / n * n), n).await?;
        return Ok(FoundPage { rows, count, is_cut: false });
    }
    let fit = |customer: &Customer| search.fit_customer(schema, customer);
    let most = (skip + n).max(COUNTED) + 1;
    let Found { rows, is_cut } =
        collect(store.customers().with_words(&search.groups(), None), fit, most).await?;
    let count = rows.len();
    let skip = skip.min(count.saturating_sub(1) / n * n);
    let rows = rows.into_iter().skip(skip).take(n).collect();
    Ok(FoundPage { rows, count, is_cut })
}

/// The customers after the id `after` whose profile has every word as a whole one, except in what they never wear, read in parts
/// of up to `part` rows.
pub fn customers_after(
    store: &Store,
    schema: ServedSchema,
    synonyms: &Synonyms,
    text: &str,
    after: Option<&CustomerId>,
    part: u32,
) -> impl Stream<Item = Result<Customer, StoreError>> + Send + use<> {
    let search = Search::new(text, &[], synonyms);
    if search.0.is_empty() {
        return store.customers().after(after, part).left_stream();
    }
    let rows = store.customers().with_words(&search.groups(), after);
    rows.try_filter(move |customer| ready(search.fit_customer(&schema, customer) == Fit::Whole))
        .right_stream()
}

/// The articles whose type and attributes have every word. `types` are those of the catalogue.
pub async fn articles(
    store: &Store,
    synonyms: &Synonyms,
    text: &str,
    types: &[&str],
) -> Result<Found<Article>, StoreError> {
    let search = Search::new(text, types, synonyms);
    let fit = |article: &Article| {
        let names = std::iter::once("type").chain(article.attributes().keys().map(String::as_str));
        let texts = names.flat_map(|name| article.words(name).map(move |word| (name, word)));
        search.fit(article.id.as_str(), texts)
    };
    collect(store.articles().with_words(&search.groups(), None), fit, MOST_READ).await
}

/// Words that mean the same to the shop's people, in the singular, with hyphens.
#[derive(Debug, Clone, Default)]
pub struct Synonyms(Vec<Group>);

#[derive(Debug, Clone)]
struct Group {
    /// The word that finds the others. Without one, each finds all.
    name: Option<String>,
    words: Vec<String>,
}

impl Synonyms {
    /// Reads a group from each line: `sweater, jumper, pullover`, or `shoe: boot, sneaker` where only the first word
    /// finds the others. Blank lines, and those that begin with `#`, are skipped.
    ///
    /// # Errors
    /// Which line is no group, or repeats a word of another.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut groups, mut lines) = (Vec::<Group>::new(), HashMap::new());
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, words) = match line.split_once(':') {
                Some((name, words)) => (Some(normalised(name)), words),
                None => (None, line),
            };
            let words: Vec<String> = words.split(',').map(normalised).collect();
            let is_short = name.is_none() && words.len() < 2;
            if is_short || name.iter().chain(&words).any(String::is_empty) {
                return Err(format!(
                    "line {number}: expected words with commas between them, as in \"sweater, jumper\" or \"shoe: boot, \
                     sneaker\"; found {line:?}"
                ));
            }
            for word in name.as_ref().map_or(words.as_slice(), std::slice::from_ref) {
                if let Some(before) = lines.insert((name.is_some(), word.clone()), number) {
                    return Err(format!("line {number}: {word:?} is already in line {before}"));
                }
            }
            groups.push(Group { name, words });
        }
        Ok(Self(groups))
    }

    /// The group of words of which each is the same as this one.
    fn same(&self, word: &str) -> Option<&[String]> {
        let group =
            self.0.iter().find(|group| group.name.is_none() && group.words.iter().any(|other| other == word));
        group.map(|group| group.words.as_slice())
    }

    /// The words that only this one finds.
    fn kinds(&self, word: &str) -> &[String] {
        let group = self.0.iter().find(|group| group.name.as_deref() == Some(word));
        group.map_or(&[], |group| &group.words)
    }
}

/// A word as it is compared.
fn normalised(word: &str) -> String {
    singular(&hyphenated(word))
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
    most: usize,
) -> Result<Found<T>, StoreError> {
    let mut rows = pin!(rows);
    let (mut whole, mut beginnings, mut read) = (Vec::new(), Vec::new(), 0);
    let most_read = MOST_READ.max(most.div_ceil(COUNTED).saturating_mul(MOST_READ));
    while whole.len() < most
        && read < most_read
        && let Some(row) = rows.try_next().await?
    {
        read += 1;
        match fit(&row) {
            Fit::Whole => whole.push(row),
            Fit::Beginnings if whole.is_empty() && beginnings.len() < most => beginnings.push(row),
            Fit::Beginnings | Fit::Not => {}
        }
    }
    let rows = if whole.is_empty() { beginnings } else { whole };
    let is_cut = read == most_read || rows.len() == most;
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
    fn new(text: &str, types: &[&str], synonyms: &Synonyms) -> Self {
        let types: HashSet<String> = types.iter().map(|kind| normalised(kind)).collect();
        let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        Self(words.filter_map(|word| Word::new(word, &types, synonyms)).collect())
    }

    /// Whether a form consists of two words.
    fn has_pairs(&self) -> bool {
        self.0.iter().flat_map(|word| &word.parts).flatten().any(|form| form.contains('-'))
    }

    /// For the database: of each group, a row has a text.
    fn groups(&self) -> Vec<Vec<String>> {
        let group = |word: &Word| {
            let longest = word.parts.iter().max_by_key(|forms| forms[0].len()).into_iter().flatten();
            // Its plural may end in -ies.
            let stems = longest.map(|form| form.strip_suffix('y').unwrap_or(form).to_owned());
            let apart = |stem: String| [stem.contains('-').then(|| stem.replace('-', " ")), Some(stem)];
            stems.flat_map(apart).flatten().chain([word.typed.clone()]).collect()
        };
        self.0.iter().map(group).collect()
    }

    fn fit_customer(&self, schema: &Schema, customer: &Customer) -> Fit {
        let describes = |name: &str| schema.feature(name).is_none_or(|feature| feature.excludes.is_none());
        let descriptive = customer.features.iter().filter(|(name, _)| describes(name));
        let texts =
            descriptive.flat_map(|(name, value)| value.words().iter().map(move |word| (name, word.as_str())));
        self.fit(customer.id.as_str(), texts)
    }

    fn fit<'t>(&self, id: &str, texts: impl Iterator<Item = (&'t str, &'t str)>) -> Fit {
        if self.0.is_empty() {
            return Fit::Whole;
        }
        let id = fold(id);
        let has_pairs = self.has_pairs();
        let words = |text: &str| {
            let mut words: Vec<String> = tokens(text).map(|token| singular(&token)).collect();
            if has_pairs {
                let pairs: Vec<String> = words.windows(2).map(|pair| pair.join("-")).collect();
                words.extend(pairs);
            }
            words
        };
        let texts: Vec<(String, Vec<String>)> =
            texts.map(|(field, text)| (fold(field), words(text))).collect();
        self.0.iter().map(|word| word.fit(&id, &texts)).min().unwrap_or(Fit::Whole)
    }
}

impl Word {
    fn new(text: &str, types: &HashSet<String>, synonyms: &Synonyms) -> Option<Self> {
        let (field, word) = match text.split_once(':') {
            Some((field, word)) if !field.is_empty() && !word.is_empty() => {
                (Some(fold(field).replace(' ', "_")), word)
            }
            _ => (None, text),
        };
        let whole = hyphenated(word);
        let parts: Vec<Vec<String>> = if whole.contains('-') && synonyms.same(&singular(&whole)).is_some() {
            vec![forms(&whole, types, synonyms)]
        } else {
            tokens(word).map(|token| forms(&token, types, synonyms)).collect()
        };
        (!parts.is_empty()).then(|| Self { field, typed: fold(word), parts })
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

/// The words of a text with a hyphen between them: `t-shirt`.
fn hyphenated(text: &str) -> String {
    tokens(text).collect::<Vec<_>>().join("-")
}

/// The words of a text, folded. `Women's` is one word.
fn tokens(text: &str) -> impl Iterator<Item = String> {
    let folded = fold(text).replace("'s", "s").replace("’s", "s");
    let tokens: Vec<String> = folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect();
    tokens.into_iter()
}

/// A word in the singular, and its other names. Where it is a type of the catalogue, no other type is the same.
fn forms(token: &str, types: &HashSet<String>, synonyms: &Synonyms) -> Vec<String> {
    let own = singular(token);
    let is_type = types.contains(&own);
    let is_same = |other: &&String| **other != own && !(is_type && types.contains(*other));
    let same = synonyms.same(&own).unwrap_or_default().iter().filter(is_same);
    let others: Vec<String> = same.chain(synonyms.kinds(&own)).cloned().collect();
    std::iter::once(own).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(text: &str, types: &[&str]) -> Search {
        let synonyms = Synonyms::parse(include_str!("../../docs/synonyms.txt")).unwrap();
        Search::new(text, types, &synonyms)
    }

    fn fit(text: &str, texts: &[(&str, &str)]) -> Fit {
        search(text, &[]).fit("c-0148", texts.iter().copied())
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
        let groups = search("accessories trench-coats", &[]).groups();
        assert_eq!(groups[0], ["accessor", "accessories"]);
        assert_eq!(groups[1], ["trench", "trench-coats"]);
    }

    #[test]
    fn words_of_a_shop_find_what_people_mean() {
        let boot = [("type", "boot"), ("gender", "women")];
        let tee = [("type", "t-shirt"), ("name", "White Tee"), ("gender", "men")];
        for (text, is_boot, is_tee) in [
            ("shoes", true, false),
            ("women's shoe", true, false),
            ("female", true, false),
            ("woman boots", true, false),
            ("men", false, true),
            ("male", false, true),
            ("tshirt", false, true),
            ("t-shirts", false, true),
            ("tees", false, true),
        ] {
            let found = (fit(text, &boot) == Fit::Whole, fit(text, &tee) == Fit::Whole);
            assert_eq!(found, (is_boot, is_tee), "{text}");
        }
        assert_eq!(fit("tee", &[("type", "T shirt")]), Fit::Whole);
        assert_eq!(fit("pumps", &[("type", "heel")]), Fit::Whole);
        assert_eq!(fit("women", &[("gender", "female")]), Fit::Whole);
        assert_eq!(fit("men", &[("gender", "female")]), Fit::Not);
        let groups = search("tee", &[]).groups();
        assert_eq!(groups[0], ["tee", "t shirt", "t-shirt", "tshirt", "tee"]);
    }

    #[test]
    fn types_of_the_catalogue_are_different_articles() {
        let fit = |text: &str, types: &[&str], kind: &str| {
            search(text, types).fit("a", [("type", kind)].into_iter())
        };
        assert_eq!(fit("chinos", &["coat"], "trousers"), Fit::Whole);
        for (text, kind) in [("chinos", "trousers"), ("trousers", "chinos")] {
            assert_eq!(fit(text, &["chinos", "Trousers"], kind), Fit::Not, "{text}");
            assert_eq!(fit(text, &["chinos", "Trousers"], text), Fit::Whole);
        }
        // A name that is no type is all of them.
        assert_eq!(fit("pants", &["chinos", "trousers"], "trousers"), Fit::Whole);
    }

    #[test]
    fn a_line_that_is_no_group_is_refused() {
        for (text, reason) in [
            ("# ours\n\nsweater", "line 3: expected words with commas between them"),
            ("a, , b", "line 1: expected words"),
            (": a", "line 1: expected words"),
            ("shoe:", "line 1: expected words"),
            ("bag, purse\nBags, sack", "line 2: \"bag\" is already in line 1"),
            ("shoe: boot\nShoes: sandal", "line 2: \"shoe\" is already in line 1"),
        ] {
            let refused = Synonyms::parse(text).unwrap_err();
            assert!(refused.starts_with(reason), "{text}: {refused}");
        }
        let search = |text| Search::new(text, &[], &Synonyms::default());
        assert_eq!(search("tee").groups(), [["tee", "tee"]], "without a file a word is itself");
    }
}
