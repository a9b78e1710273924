//! Finding customers and articles by words that people type.
//!
//! Every word must be a whole word of a text, or a part of the id. Where nothing has them all, beginnings of words count, so
//! that results come while somebody types. Commas separate words as spaces do, and a word may name its field: `colour:navy`.
//! Plurals count as the same word, and so do the shop's [`Synonyms`]. What pages say of a customer finds them:
//! `shoe size 38`, `165 cm`, `no heels`.

use std::{
    collections::{HashMap, HashSet},
    future::ready,
    pin::pin,
};

pub use atelier_core::domain::Synonyms;
use atelier_core::domain::{
    Article, Customer, CustomerId, Feature, FeatureValue, Kind, Schema, hyphenated, search_key, singular,
    tokens,
};
use futures_util::{Stream, StreamExt, TryStreamExt};

use crate::{
    platform::page::wording,
    platform::{
        db::{Store, StoreError},
        http::AppState,
    },
    releases::ServedSchema,
};

/// A search counts at least this many results, if it finds them.
const COUNTED: usize = 1_000;
/// A search reads at most this many rows for each `COUNTED` results.
const MOST_READ: usize = 20_000;

/// The results, or a page of them, in the order of ids.
#[derive(Debug)]
pub struct Found<T> {
    pub rows: Vec<T>,
    pub count: usize,
    /// Whether there may be more than were counted.
    pub is_cut: bool,
}

/// A page of the customers whose profile has every word. What they never wear counts only after `no`. A far page takes
/// long, as all before it are read.
pub async fn customers(
    store: &Store,
    schema: &Schema,
    synonyms: &Synonyms,
    text: &str,
    (skip, n): (usize, usize),
) -> Result<Found<Customer>, StoreError> {
    let search = Search::for_customers(text, schema, synonyms);
    // No further than the last page.
    let skip_in = |count: usize| skip.min(count.saturating_sub(1) / n * n);
    if search.0.is_empty() {
        let count = usize::try_from(store.customers().count().await?).unwrap_or(usize::MAX);
        return Ok(Found { rows: store.customers().page(skip_in(count), n).await?, count, is_cut: false });
    }
    let fit = |customer: &Customer| search.fit_customer(schema, customer);
    let most = (skip + n).max(COUNTED) + 1;
    let found = collect(store.customers().with_words(&search.groups(), None), fit, most).await?;
    let rows = found.rows.into_iter().skip(skip_in(found.count)).take(n).collect();
    Ok(Found { rows, ..found })
}

/// The customers after the id `after` whose profile has every word as a whole one, read in parts of up to `part` rows.
pub fn customers_after(
    store: &Store,
    schema: ServedSchema,
    synonyms: &Synonyms,
    text: &str,
    after: Option<&CustomerId>,
    part: u32,
) -> impl Stream<Item = Result<Customer, StoreError>> + Send + use<> {
    let search = Search::for_customers(text, &schema, synonyms);
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
        let texts = names.flat_map(|name| article.words(name).map(move |word| (name, word, true)));
        search.fit(article.id.as_str(), texts)
    };
    collect(store.articles().with_words(&search.groups(), None), fit, MOST_READ).await
}

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
    let count = rows.len();
    Ok(Found { rows, count, is_cut: read == most_read || count == most })
}

struct Search(Vec<Word>);

struct Word {
    /// The only fields in which it counts; empty for all that describe.
    fields: Vec<String>,
    /// As it was typed, for ids; empty if it is no part of one.
    typed: String,
    /// Its parts, such as those of `trench-coat`, each with its other forms. Without parts, a field must say something.
    parts: Vec<Vec<String>>,
}

/// The signs between the words of a search.
fn separates(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | ';')
}

impl Search {
    fn new(text: &str, types: &[&str], synonyms: &Synonyms) -> Self {
        let types: HashSet<String> = types.iter().map(|kind| singular(&hyphenated(kind))).collect();
        Self(text.split(separates).filter_map(|word| Word::new(word, &types, synonyms)).collect())
    }

    fn for_customers(text: &str, schema: &Schema, synonyms: &Synonyms) -> Self {
        let words = text.split(separates).map(|word| word.trim_end_matches(':'));
        let typed: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let phrases = Phrases::new(schema, synonyms);
        let (mut words, mut rest) = (Vec::new(), &typed[..]);
        while let [first, others @ ..] = rest {
            let (word, taken) =
                phrases.read(rest).unwrap_or_else(|| (Word::new(first, &HashSet::new(), synonyms), 1));
            words.extend(word);
            rest = &others[taken - 1..];
        }
        Self(words)
    }

    /// Whether a form consists of two words.
    fn has_pairs(&self) -> bool {
        self.0.iter().flat_map(|word| &word.parts).flatten().any(|form| form.contains('-'))
    }

    /// For the database: of each group, a row has a text.
    fn groups(&self) -> Vec<Vec<String>> {
        let group = |word: &Word| {
            let longest = word.parts.iter().max_by_key(|forms| forms[0].len())?.iter();
            // Its plural may end in -ies.
            let stems = longest.map(|form| form.strip_suffix('y').unwrap_or(form).to_owned());
            let apart = |stem: String| [stem.contains('-').then(|| stem.replace('-', " ")), Some(stem)];
            let typed = Some(word.typed.clone()).filter(|typed| !typed.is_empty());
            Some(stems.flat_map(apart).flatten().chain(typed).collect())
        };
        self.0.iter().filter_map(group).collect()
    }

    fn fit_customer(&self, schema: &Schema, customer: &Customer) -> Fit {
        let describes = |name: &str| schema.feature(name).is_none_or(|feature| feature.excludes.is_none());
        let numbers = customer.features.iter().filter_map(|(name, value)| match value {
            FeatureValue::Number(number) => Some((name, number.to_string())),
            _ => None,
        });
        let numbers: Vec<(&str, String)> = numbers.collect();
        let texts = customer.features.iter().flat_map(|(name, value)| {
            let describes = describes(name);
            value.words().iter().map(move |word| (name, word.as_str(), describes))
        });
        let numbers = numbers.iter().map(|(name, number)| (*name, number.as_str(), true));
        self.fit(customer.id.as_str(), texts.chain(numbers))
    }

    /// Each text has its field, and whether it describes what has it.
    fn fit<'t>(&self, id: &str, texts: impl Iterator<Item = (&'t str, &'t str, bool)>) -> Fit {
        if self.0.is_empty() {
            return Fit::Whole;
        }
        let id = search_key(id);
        let has_pairs = self.has_pairs();
        let words = |text: &str| {
            let mut words: Vec<String> = tokens(text).map(|token| singular(&token)).collect();
            if has_pairs {
                let pairs: Vec<String> = words.windows(2).map(|pair| pair.join("-")).collect();
                words.extend(pairs);
            }
            words
        };
        let names_fields = self.0.iter().any(|word| !word.fields.is_empty());
        let key = |field: &str| if names_fields { search_key(field) } else { String::new() };
        let texts: Vec<Text> = texts
            .map(|(field, text, describes)| Text { field: key(field), describes, words: words(text) })
            .collect();
        self.0.iter().map(|word| word.fit(&id, &texts)).min().unwrap_or(Fit::Whole)
    }
}

/// A text of a row, as it is compared.
struct Text {
    field: String,
    /// A no-go does not describe its customer.
    describes: bool,
    words: Vec<String>,
}

impl Word {
    fn new(text: &str, types: &HashSet<String>, synonyms: &Synonyms) -> Option<Self> {
        let (fields, word) = match text.split_once(':') {
            Some((field, word)) if !field.is_empty() && !word.is_empty() => {
                (vec![search_key(field).replace(' ', "_")], word)
            }
            _ => (Vec::new(), text),
        };
        let whole = hyphenated(word);
        let parts: Vec<Vec<String>> = if whole.contains('-') && synonyms.has(&singular(&whole)) {
            vec![forms(&whole, types, synonyms)]
        } else {
            tokens(word).map(|token| forms(&token, types, synonyms)).collect()
        };
        (!parts.is_empty()).then(|| Self { fields, typed: search_key(word), parts })
    }

    /// The words of a text, in some fields only.
    fn within(fields: &[&str], text: &str, synonyms: &Synonyms) -> Self {
        let fields = fields.iter().map(|field| search_key(field)).collect();
        let parts = tokens(text).map(|token| forms(&token, &HashSet::new(), synonyms)).collect();
        Self { fields, typed: String::new(), parts }
    }

    fn fit(&self, id: &str, texts: &[Text]) -> Fit {
        if self.fields.is_empty() && id.contains(&self.typed) {
            return Fit::Whole;
        }
        let counts = |text: &&Text| {
            if self.fields.is_empty() { text.describes } else { self.fields.contains(&text.field) }
        };
        if self.parts.is_empty() {
            return if texts.iter().any(|text| counts(&text)) { Fit::Whole } else { Fit::Not };
        }
        let tokens = || texts.iter().filter(counts).flat_map(|text| &text.words);
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

/// How pages say the features of a schema, to read the same words in a search.
struct Phrases<'s> {
    schema: &'s Schema,
    synonyms: &'s Synonyms,
    /// By its words, a value that has several: `shoe size 38`, `no heel`, `lower priced top`.
    values: HashMap<String, (Vec<&'s str>, &'s str)>,
}

impl<'s> Phrases<'s> {
    fn new(schema: &'s Schema, synonyms: &'s Synonyms) -> Self {
        let mut values: HashMap<String, (Vec<&str>, &str)> = HashMap::new();
        for feature in schema.features() {
            for value in &feature.values {
                let words = wording::words(feature, &FeatureValue::Text(value.clone()), schema);
                let phrase = phrase(&words);
                if phrase.contains(' ') {
                    values.entry(phrase).or_insert_with(|| (Vec::new(), value)).0.push(&feature.name);
                }
            }
        }
        Self { schema, synonyms, values }
    }

    /// The meaning of the first of these words, and how many they are. None if they are words like others.
    fn read(&self, words: &[&str]) -> Option<(Option<Word>, usize)> {
        const LONGEST: usize = 8;
        let plain = words.iter().take(LONGEST).take_while(|word| !word.contains(':')).count();
        let value = |(fields, text): (&[&str], &str)| Some(Word::within(fields, text, self.synonyms));
        for taken in (1..=plain).rev() {
            let said = phrase(&words[..taken].join(" "));
            if let Some((fields, text)) = self.values.get(&said) {
                return Some((value((fields, text)), taken));
            }
            let labelled = |feature: &&Feature| phrase(&feature.label) == said;
            if let Some(feature) = self.schema.features().iter().find(labelled) {
                let next = words.get(taken).filter(|next| may_be(feature, next));
                let word = value((&[feature.name.as_str()], next.copied().unwrap_or_default()));
                return Some((word, taken + next.iter().count()));
            }
        }
        if let Some((fields, number, taken)) = self.measure(words) {
            return Some((value((&fields, number)), taken));
        }
        let excluding = self.schema.features().iter().filter(|feature| feature.excludes.is_some());
        let excluding: Vec<&str> = excluding.map(|feature| feature.name.as_str()).collect();
        match words {
            [no, rest @ ..] if !excluding.is_empty() && search_key(no) == "no" => {
                let next = rest.first().and_then(|next| value((&excluding, next)));
                Some((next, 1 + rest.len().min(1)))
            }
            _ => None,
        }
    }

    /// `165 cm` or `165cm`: the features with this unit, the number, and how many words they are.
    fn measure<'w>(&self, words: &[&'w str]) -> Option<(Vec<&'s str>, &'w str, usize)> {
        let (first, next) = (words.first()?, words.get(1).copied().unwrap_or_default());
        let end = first.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(first.len());
        let (number, rest) = first.split_at(end);
        let (unit, taken) = if rest.is_empty() { (next, 2) } else { (rest, 1) };
        // A unit such as € is no word, and neither is nothing.
        let unit = phrase(unit);
        let is_in = |feature: &&Feature| match &feature.kind {
            Kind::Number { unit: own, .. } => !unit.is_empty() && phrase(own) == unit,
            _ => false,
        };
        let fields: Vec<&str> =
            self.schema.features().iter().filter(is_in).map(|feature| feature.name.as_str()).collect();
        (!number.is_empty() && !fields.is_empty()).then_some((fields, number, taken))
    }
}

/// Whether a word may be a value of the feature, or the beginning of one.
fn may_be(feature: &Feature, word: &str) -> bool {
    if let Kind::Number { .. } = feature.kind {
        return word.parse::<f64>().is_ok();
    }
    let Some(first) = tokens(word).next().map(|token| singular(&token)) else { return false };
    feature.values.iter().any(|value| tokens(value).any(|token| token.starts_with(&first)))
}

/// The words of a text in the singular, with a space between them.
fn phrase(text: &str) -> String {
    tokens(text).map(|token| singular(&token)).collect::<Vec<_>>().join(" ")
}

/// A word in the singular, and its other names.
fn forms(token: &str, types: &HashSet<String>, synonyms: &Synonyms) -> Vec<String> {
    synonyms.forms(singular(token), |word| types.contains(word))
}

impl AppState {
    pub(crate) fn synonyms(&self) -> &Synonyms {
        self.releases().synonyms()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::db::json::parse_features;

    const SYNONYMS: &str = include_str!("../../docs/synonyms.txt");

    fn search(text: &str, types: &[&str]) -> Search {
        Search::new(text, types, &Synonyms::parse(SYNONYMS).unwrap())
    }

    fn fit(text: &str, texts: &[(&str, &str)]) -> Fit {
        search(text, &[]).fit("c-0148", texts.iter().map(|(field, text)| (*field, *text, true)))
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
        let sneaker =
            [("type", "sneaker"), ("name", "White leather Sneakers"), ("material", "dresses/hoodies")];
        let denim = [("type", "denim-jacket"), ("material", "denim")];
        let boot = [("type", "boot"), ("gender", "women")];
        let tee = [("type", "t-shirt"), ("name", "White Tee"), ("gender", "men")];
        for (article, whole, not) in [
            (&sneaker[..], "trainers, sneakers, white trainer, dress, hoody, hoodie, type:trainers", "boots"),
            (&denim, "denim", "jeans"),
            (&boot, "shoes, women's shoe, female, woman boots", "men, male, tshirt, t-shirts, tees"),
            (&tee, "men, male, tshirt, t-shirts, tees", "shoes, women's shoe, female, woman boots"),
            (&[("type", "trench-coat")], "trench-coats", "boots"),
            (&[("type", "jeans")], "jeans", "boots"),
            (&[("type", "T shirt")], "tee", "boots"),
            (&[("type", "heel")], "pumps", "boots"),
            (&[("gender", "female")], "women", "men"),
        ] {
            for (texts, expected) in [(whole, Fit::Whole), (not, Fit::Not)] {
                for text in texts.split(", ") {
                    assert_eq!(fit(text, article), expected, "{text} in {article:?}");
                }
            }
        }
        // The database is asked for a part of what fits.
        let groups = search("accessories trench-coats tee", &[]).groups();
        assert_eq!(groups[..2], [["accessor", "accessories"], ["trench", "trench-coats"]]);
        assert_eq!(groups[2], ["tee", "t shirt", "t-shirt", "tshirt", "tee"]);
    }

    #[test]
    fn a_customer_is_found_by_what_pages_say() {
        let features = r#"{"name": "Jana Müller", "age": 45, "height": 165, "hair_colour": "blond", "fit": "slim",
            "shoe_size": "38", "bottom_size": "40", "price_tops": "lower", "price_shoes": "luxury",
            "preferred_colours": ["light-blue"], "nogo_types": ["heel", "trench-coat"], "nogo_materials": ["leather"]}"#;
        let features = parse_features(features).unwrap();
        let customer = Customer { id: CustomerId::new("c-1").unwrap(), features };
        let (schema, synonyms) = (Schema::default_schema(), Synonyms::parse(SYNONYMS).unwrap());
        let fit =
            |text: &str| Search::for_customers(text, &schema, &synonyms).fit_customer(&schema, &customer);
        let shown = wording::line(&customer.features, &schema);
        assert_eq!(fit(&shown), Fit::Whole, "{shown}");
        let whole = "shoe size 38, Shoe size: 38, slim shoe size 38 no heels, 165 cm, 165cm, 45 years, age:45, age 45, \
                     height 165, no heels, no trench coats, no leather, blonde, muller, mueller, MÜLLER, \
                     lower-priced tops, light blue, slim fit, shoe size";
        let not = "shoe size 40, 38 cm, heels, leather, luxury tops, lower-priced shoes, no slim, height 45";
        let beginnings = "shoe size 3, no hee, jana mul, age 4";
        for (texts, expected) in
            [(&*shown, Fit::Whole), (whole, Fit::Whole), (not, Fit::Not), (beginnings, Fit::Beginnings)]
        {
            for text in texts.split(", ") {
                assert_eq!(fit(text), expected, "{text}");
            }
        }
    }

    #[test]
    fn a_number_alone_needs_no_unit() {
        let schema =
            "name = \"s\"\n[[feature]]\nname = \"budget\"\nkind = \"number\"\nedges = [50]\nunit = \"€\"";
        let (schema, synonyms) = (Schema::parse(schema).unwrap(), Synonyms::default());
        let features = parse_features(r#"{"budget": 45}"#).unwrap();
        let customer = Customer { id: CustomerId::new("c-1").unwrap(), features };
        for words in ["45", "45 €", "45€", "€", "45 45"] {
            let found = Search::for_customers(words, &schema, &synonyms).fit_customer(&schema, &customer);
            assert_eq!(found, Fit::Whole, "{words}");
        }
    }

    #[test]
    fn types_of_the_catalogue_are_different_articles() {
        for (text, types, kind, expected) in [
            ("chinos", &["coat"][..], "trousers", Fit::Whole),
            ("chinos", &["chinos", "Trousers"], "trousers", Fit::Not),
            ("chinos", &["chinos", "Trousers"], "chinos", Fit::Whole),
            ("trousers", &["chinos", "Trousers"], "chinos", Fit::Not),
            ("trousers", &["chinos", "Trousers"], "trousers", Fit::Whole),
            // A name that is no type is all of them.
            ("pants", &["chinos", "trousers"], "trousers", Fit::Whole),
        ] {
            let found = search(text, types).fit("a", [("type", kind, true)].into_iter());
            assert_eq!(found, expected, "{text} for {kind} among {types:?}");
        }
    }

    #[test]
    fn a_line_that_is_no_group_is_refused() {
        for (text, reason) in [
            ("# ours\n\nsweater", "line 3: expected words with commas between them"),
            ("a, , b", "line 1: expected words"),
            (": a", "line 1: expected words"),
            ("shoe:", "line 1: expected words"),
            ("bag, purse\nBags, sack", "line 2: \"Bags\" is already in line 1"),
            ("shoe: boot\nShoes: sandal", "line 2: \"Shoes\" is already in line 1"),
        ] {
            let refused = Synonyms::parse(text).unwrap_err();
            assert!(refused.starts_with(reason), "{text}: {refused}");
        }
        let groups = Search::new("tee", &[], &Synonyms::default()).groups();
        assert_eq!(groups, [["tee", "tee"]], "without a file a word is itself");
    }
}
