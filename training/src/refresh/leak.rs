//! Features that tell the answers: a customer's profile is as it is today, so one that lists what was bought lists it for the
//! compared weeks, too.

use std::collections::{HashMap, HashSet};

use atelier_core::domain::{Article, Feature, fold_for};

use crate::{
    data::{Data, names_articles},
    number::real,
};

/// The share of the compared articles that a list of articles may name.
const ARTICLES: f64 = 0.2;
/// The same of a list of words, such as brands: tastes have exceptions, receipts have none.
const WORDS: f64 = 0.95;
/// The same of other customers' lists. A word that everyone has says nothing of purchases.
const OF_OTHERS: f64 = 0.6;

/// Why the comparison would say nothing: a feature that names what was bought since.
pub(super) fn find(data: &Data, of_import: Option<&str>) -> Option<String> {
    let features = data.schema().features().iter().enumerate();
    features.filter(|(_, feature)| Some(&*feature.name) != of_import).find_map(|(place, feature)| {
        let ids = |value: &str| data.vocabulary().index_of(value).is_some();
        let (most, what) = if names_articles(feature, ids) { (ARTICLES, "articles") } else { (WORDS, "words") };
        let is_rule = !feature.requires.is_empty() || feature.excludes.is_some() || feature.of_outfit;
        if is_rule && most == WORDS {
            return None;
        }
        let rows = rows_by_article(data, feature, most == ARTICLES);
        let [own, others] = [0, 1].map(|shift| share_named(data, place, &rows, shift));
        (own > most && others < OF_OTHERS).then(|| {
            format!(
                "the feature {:?} names the {what} of {:.0} % of the compared slots, and of {:.0} % with another customer's profile: it \
                 lists what was bought since, so figures say nothing. Leave it out of the schema; what customers bought is added",
                feature.name,
                100.0 * own,
                100.0 * others
            )
        })
    })
}

/// By article, the rows of a feature that name it, or one of its words.
fn rows_by_article(data: &Data, feature: &Feature, of_ids: bool) -> Vec<HashSet<u32>> {
    let rows: HashMap<String, u32> =
        feature.values.iter().map(|value| fold_for("", value)).zip(1..).collect();
    let of_article = |article: &Article| {
        if of_ids {
            return rows.get(&fold_for("", article.id.as_str())).copied().into_iter().collect();
        }
        let names = article.attributes().keys().map(String::as_str).chain(["type"]);
        names
            .flat_map(|name| article.words(name))
            .filter_map(|word| rows.get(&fold_for("", word)).copied())
            .collect()
    };
    data.articles().iter().map(of_article).collect()
}

/// The share of the compared slots, of articles that the feature can name, that it names in the profile of the customer `shift`
/// outfits on.
fn share_named(data: &Data, place: usize, rows: &[HashSet<u32>], shift: usize) -> f64 {
    let outfits = data.validation();
    let (mut named, mut slots, mut features) = (0, 0, Vec::new());
    for (at, &outfit) in outfits.iter().enumerate() {
        data.features_of(outfits[(at + shift) % outfits.len()], &mut features);
        for &article in data.outfits().articles(outfit) {
            let of_article = &rows[article as usize];
            slots += usize::from(!of_article.is_empty());
            named += usize::from(features[place].iter().any(|row| of_article.contains(row)));
        }
    }
    // A few slots are chance.
    if slots < outfits.len() { 0.0 } else { real(named) / real(slots) }
}
