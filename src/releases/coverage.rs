//! The gaps of the live release: articles that it was not trained with, and their values that are new to it.

use std::{collections::BTreeMap, sync::Arc};

use atelier_core::domain::{
    Article, ArticleEncoder, Embedding, MOST_PROJECTED, Method, OtherLength, UnknownValue,
};
use atelier_engine::release::Release;
use rayon::prelude::*;
use tokio::task;

use super::LiveRelease;

/// Something about a new article that a release does not know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// All of it: the release suggests only articles that it was trained with.
    Article,
    /// Its type, or a value of an attribute.
    Value(UnknownValue),
    /// Most articles of its type say something of these attributes, and it does not.
    Unsaid { attributes: Vec<String> },
    /// Its embedding: another encoder made it, or the release was trained without any, and expects 0 numbers.
    Embedding(OtherLength),
    /// Its embedding: it is far from all that the release was trained with.
    FarEmbedding,
    /// An attribute that customers' features require something of, and that says nothing that can be compared.
    Unreadable { attribute: String },
    /// No word of it is one of the schema's.
    FitsNobody { attribute: String, words: Vec<String>, expected: Vec<String> },
    /// It has sizes, and the schema requires sizes of other types only.
    AnySize { kind: String },
}

impl Unknown {
    /// For the caller that stored one article, or several, of which `articles` have it.
    pub fn describe(&self, release: &str, articles: Option<u64>) -> String {
        let is_one = articles.is_none_or(|articles| articles == 1);
        let (are, fit) = if is_one { ("is", "fits") } else { ("are", "fit") };
        let number = articles.map(count_articles);
        let of = number.as_ref().map_or_else(String::new, |number| format!(" of {number}"));
        let number = number.as_deref().unwrap_or("the article");
        match self {
            Self::Article => format!(
                "{number} {are} new to release {release}, which suggests only articles that it was trained with"
            ),
            Self::Value(value) => format!(
                "{value}{of} is new to release {release}: until a release is trained with it, only the {} count",
                known_rest(value)
            ),
            Self::Unsaid { attributes } => format!(
                "the article has no {}, which other articles have: it counts as an average one there",
                attributes.join(", ")
            ),
            Self::Embedding(other) => describe_other(other, &of, release),
            Self::FarEmbedding => format!(
                "the embedding{of} is far from those that release {release} was trained with, and counts only in part; check its \
                 encoder and its scale"
            ),
            Self::Unreadable { attribute } => format!(
                "{attribute} must be a text, a number or a list of them to be compared with what customers need, so {number} {fit} \
                 every customer"
            ),
            Self::FitsNobody { attribute, words, expected } => format!(
                "{attribute} {:?} is not one of the words that the schema of release {release} requires ({}): {number} {fit} no \
                 customer whose value is known",
                words.join(", "),
                expected.join(", ")
            ),
            Self::AnySize { kind } => format!(
                "customers get {number} in any size, because the schema of release {release} requires no sizes of the type {kind:?}"
            ),
        }
    }
}

fn count_articles(articles: u64) -> String {
    if articles == 1 { "1 article".to_owned() } else { format!("{articles} articles") }
}

fn describe_other(OtherLength { name, length, expected }: &OtherLength, of: &str, release: &str) -> String {
    let named = Embedding::show_name(name);
    let expected = if *expected == 0 { "none".to_owned() } else { expected.to_string() };
    format!(
        "the embedding{named}{of} has {length} numbers, and release {release} was trained with {expected}: it does not count"
    )
}

fn known_rest(value: &UnknownValue) -> &'static str {
    if value.is_type() { "other attributes" } else { "type and other attributes" }
}

/// The unknown parts of an article; none if the release was trained with it.
pub fn find_unknown(release: &Release, article: &Article) -> Vec<Unknown> {
    if release.vocabulary().index_of(article.id.as_str()).is_some() {
        return Vec::new();
    }
    match release.encoder() {
        None => vec![Unknown::Article],
        Some(encoder) => {
            let said = encoder.encode(article);
            let embedding = said.other_length.map(Unknown::Embedding);
            let is_far = said.embedding.iter().any(|number| number.abs() >= MOST_PROJECTED);
            let embedding = embedding.or_else(|| is_far.then_some(Unknown::FarEmbedding));
            let lacking: Vec<&str> = release.attributes_lacking(&said.values).collect();
            // New words of its attributes are named with them.
            let unsaid = lacking
                .into_iter()
                .filter(|name| ArticleEncoder::is_plain(name))
                .filter(|name| said.unknown.iter().all(|value| value.attribute != **name));
            let attributes: Vec<String> = unsaid.map(str::to_owned).collect();
            let unsaid = (!attributes.is_empty()).then_some(Unknown::Unsaid { attributes });
            said.unknown.into_iter().map(Unknown::Value).chain(unsaid).chain(embedding).collect()
        }
    }
}

/// Attributes that keep an article from customers it would fit, or give it to others, by the release's schema.
pub fn find_misfits(release: &Release, article: &Article) -> Vec<Unknown> {
    let schema = release.schema();
    let unreadable = schema.unreadable_requirements(article).into_iter();
    let unreadable = unreadable.map(|attribute| Unknown::Unreadable { attribute: attribute.to_owned() });
    let fits_nobody = schema.unmet_requirements(article).into_iter().map(|required| Unknown::FitsNobody {
        attribute: required.attribute.clone(),
        words: article.folded_words(&required.attribute),
        expected: required.words_of_articles().into_iter().map(str::to_owned).collect(),
    });
    let any_size =
        schema.ignores_sizes(article).then(|| Unknown::AnySize { kind: article.kind().to_owned() });
    unreadable.chain(fits_nobody).chain(any_size).collect()
}

/// Counts the articles that have something that a release does not know.
#[derive(Debug)]
pub struct Census {
    release: Arc<Release>,
    unknown: BTreeMap<Unknown, u64>,
    /// By attribute of [`Unknown::Unsaid`], which are counted one by one.
    unsaid: BTreeMap<String, u64>,
    /// About the bytes of those that are counted, and the number of those that came when these were too many.
    bytes: usize,
    more: u64,
}

impl Census {
    pub fn new(release: Arc<Release>) -> Self {
        Self { release, unknown: BTreeMap::new(), unsaid: BTreeMap::new(), bytes: 0, more: 0 }
    }

    pub fn count(&mut self, article: &Article) {
        self.add(find_unknown(&self.release, article));
        self.add(find_misfits(&self.release, article));
    }

    fn add(&mut self, unknown: Vec<Unknown>) {
        for unknown in unknown {
            if let Unknown::Unsaid { attributes } = unknown {
                for attribute in attributes {
                    *self.unsaid.entry(attribute).or_insert(0) += 1;
                }
            } else if let Some(articles) = self.unknown.get_mut(&unknown) {
                *articles += 1;
            } else if self.bytes < MOST_BYTES {
                self.bytes += if let Unknown::Value(value) = &unknown { 128 + value.word.len() } else { 128 };
                self.unknown.insert(unknown, 1);
            } else {
                self.more += 1;
            }
        }
    }

    /// The most frequent first.
    pub fn into_sorted(self) -> Vec<(Unknown, u64)> {
        let mut sorted: Vec<_> = self.unknown.into_iter().collect();
        sorted.sort_by_key(|(_, articles)| std::cmp::Reverse(*articles));
        sorted
    }

    /// A warning for each of the most frequent, one that counts the others, one of what articles do not say, and one of sizes that
    /// no customer is asked for.
    pub fn into_warnings(mut self) -> Vec<String> {
        let release = self.release.manifest().name.clone();
        let mut unsaid: Vec<(String, u64)> = std::mem::take(&mut self.unsaid).into_iter().collect();
        unsaid.sort_by_key(|(_, articles)| std::cmp::Reverse(*articles));
        let any_size = self.unknown.extract_if(.., |unknown, _| matches!(unknown, Unknown::AnySize { .. }));
        let of_any_size = any_size.filter_map(|(unknown, articles)| match unknown {
            Unknown::AnySize { kind } => Some((kind, articles)),
            _ => None,
        });
        let of_any_size: Vec<(String, u64)> = of_any_size.collect();
        let more = self.more;
        let sorted = self.into_sorted();
        let listed = sorted.iter().take(MOST_WARNINGS);
        let mut warnings: Vec<String> =
            listed.map(|(unknown, articles)| unknown.describe(&release, Some(*articles))).collect();
        if !unsaid.is_empty() {
            let unsaid = unsaid.iter().map(|(attribute, articles)| (attribute.as_str(), *articles));
            warnings.push(describe_unsaid(unsaid));
        }
        warnings.extend(describe_sizes(of_any_size, &release));
        if let others @ 1.. = more + sorted.len().saturating_sub(MOST_WARNINGS) as u64 {
            warnings.push(format!("{others} more values are new to release {release}"));
        }
        warnings
    }
}

/// Warns of attributes that new articles lack, each with how many lack it.
fn describe_unsaid<'u>(unsaid: impl Iterator<Item = (&'u str, u64)>) -> String {
    let listed: Vec<String> =
        unsaid.map(|(attribute, articles)| format!("{attribute} ({articles})")).collect();
    let listed = listed.join(", ");
    format!("new articles have no {listed}, which other articles have: they count as average there")
}

/// Warns of types whose articles are suggested in any size.
fn describe_sizes(mut types: Vec<(String, u64)>, release: &str) -> Option<String> {
    let articles: u64 = types.iter().map(|(_, articles)| articles).sum();
    types.sort_by_key(|(_, articles)| std::cmp::Reverse(*articles));
    let listed: Vec<String> = types.iter().take(MOST_TYPES).map(|(kind, _)| format!("{kind:?}")).collect();
    let others = match types.len().saturating_sub(MOST_TYPES) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let number = count_articles(articles);
    (articles > 0).then(|| {
        format!(
            "customers get {number} in any size, because the schema of release {release} requires sizes of none of these \
             types: {}{others}",
            listed.join(", ")
        )
    })
}

/// The most types that the warning of sizes lists.
const MOST_TYPES: usize = 8;
/// The most values that an import warns of.
const MOST_WARNINGS: usize = 20;
/// About the most bytes of different values that are counted: those of far more articles than one looks at.
const MOST_BYTES: usize = 16 << 20;

/// The articles that are looked at together.
const LOOKED_AT: usize = 4096;

/// How the catalogue and the live release overlap.
#[derive(Debug)]
pub struct Report {
    /// Articles of the shop that the release was trained with.
    pub known: usize,
    /// Articles of the shop that it was not trained with.
    pub new: usize,
    /// Articles that it was trained with and the shop no longer has.
    pub retired: usize,
    /// The methods that suggest new articles.
    pub open: Vec<Method>,
    /// The gaps in what the release knows of new articles, how often; most frequent first.
    pub unknown: Vec<(UnknownValue, u64)>,
}

pub async fn report(live: &Arc<LiveRelease>) -> Report {
    let taken = Arc::clone(live);
    let count = task::spawn_blocking(move || {
        let release = taken.serving.release();
        let places: Vec<u32> = taken.catalogue.sets().present().iter().collect();
        let mut census = Census::new(Arc::clone(release));
        for places in places.chunks(LOOKED_AT) {
            let articles = places.par_iter().filter_map(|place| taken.catalogue.article(*place));
            // Those that it knows need no look.
            let new = articles.filter(|article| release.vocabulary().index_of(article.id.as_str()).is_none());
            let unknown: Vec<_> = new.map(|article| find_unknown(release, &article.unpack())).collect();
            for unknown in unknown {
                census.add(unknown);
            }
        }
        census.into_sorted()
    });
    let counted = count.await.expect("counting does not panic");
    let value = |(unknown, articles)| match unknown {
        Unknown::Value(value) => Some((value, articles)),
        _ => None,
    };
    let coverage = live.catalogue.coverage();
    Report {
        known: coverage.both,
        new: coverage.only_catalogue,
        retired: coverage.only_release,
        open: live.open_methods().collect(),
        unknown: counted.into_iter().filter_map(value).collect(),
    }
}
