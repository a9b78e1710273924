//! What counting achieves: the figures that every method must be seen beside.
//!
//! A baseline is fitted to the training outfits, chooses its one strength on the development part, and
//! answers a [`Question`] with a probability for every article. It must not know the world, nor the
//! true article: a question holds what may be looked at and no more. Whatever else answers questions
//! can be put beside the baselines by [`evaluate`].

mod cooccurrence;
mod popularity;
mod profile;

use atelier::domain::{Customer, Features};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    dataset::{Dataset, IndexedOutfit, Part},
    metrics::{Summary, Tally, rank},
};

pub use cooccurrence::{Cooccurrence, Pairs};
pub use popularity::{Popularity, TypePopularity};
pub use profile::{Cells, ProfilePopularity};

/// One blank of an outfit, as whoever answers may see it.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub customer: &'a Customer,
    /// What belongs to the outfit, such as the occasion.
    pub features: &'a Features,
    /// The other articles.
    pub visible: &'a [u32],
    /// The type of the missing article, for those baselines that say in their name that they are told.
    pub told_type: u32,
}

/// Anything that answers questions.
pub trait Answers: Sync {
    /// Fills in Pr(article) for the whole vocabulary.
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]);
}

/// The types of the articles, numbered.
#[derive(Debug)]
pub struct Types {
    pub of_article: Vec<u32>,
    pub names: Vec<String>,
}

impl Types {
    pub fn new(data: &Dataset) -> Self {
        let mut names: Vec<String> = data.articles.iter().map(|article| article.kind().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        let number = |kind: &str| names.binary_search_by(|name| name.as_str().cmp(kind));
        let of_article = data
            .articles
            .iter()
            .map(|article| {
                let found = number(article.kind()).expect("every type is listed; this is a bug");
                u32::try_from(found).expect("types are few; this is a bug")
            })
            .collect();
        Self { of_article, names }
    }
}

/// What one baseline achieves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    #[serde(rename = "baseline")]
    pub name: String,
    #[serde(rename = "answers")]
    pub summary: Summary,
}

/// The three baselines that stand beside every method, on the validation split.
pub fn beside_methods(data: &Dataset) -> Vec<Baseline> {
    let types = Types::new(data);
    let popularity = Popularity::fit(data, &types);
    let told = TypePopularity::fit(data, &types);
    let pairs = Pairs::count(data);
    let cooccurrence = Cooccurrence::fit(data, &types, &popularity, &pairs);
    let baselines: [(&str, &dyn Answers); 3] =
        [("popularity", &popularity), ("popularity, told the type", &told), ("co-occurrence", &cooccurrence)];
    baselines
        .map(|(name, who)| Baseline {
            name: name.to_owned(),
            summary: evaluate(data, &types, Part::Validation, who).summary(),
        })
        .into()
}

/// Every slot of every outfit of one part, masked in turn.
pub fn evaluate(data: &Dataset, types: &Types, part: Part, who: &dyn Answers) -> Tally {
    let outfits: Vec<&IndexedOutfit> = data.of_part(part).collect();
    // Chunks of a fixed size, summed in order: the same figures on any number of threads.
    let tallies: Vec<Tally> = outfits
        .par_chunks(64)
        .map(|outfits| {
            let mut tally = Tally::default();
            let mut probabilities = vec![0.0; data.vocabulary.len()];
            for outfit in outfits {
                let answers = (0..outfit.articles.len()).map(|slot| {
                    let missing = outfit.articles[slot];
                    let mut visible = outfit.articles.clone();
                    visible.remove(slot);
                    let question = Question {
                        customer: &data.customers[outfit.customer as usize],
                        features: &outfit.features,
                        visible: &visible,
                        told_type: types.of_article[missing as usize],
                    };
                    who.answer(&question, &mut probabilities);
                    let missing = missing as usize;
                    (probabilities[missing], rank(&probabilities, missing))
                });
                tally.add_outfit(answers);
            }
            tally
        })
        .collect();
    tallies.iter().fold(Tally::default(), Tally::merge)
}

/// The candidate with the lowest cross-entropy on the development part; the first one where there is
/// nothing to choose by.
fn choose<T: Answers>(
    data: &Dataset,
    types: &Types,
    candidates: &[f64],
    mut make: impl FnMut(f64) -> T,
) -> T {
    let mut best: Option<(T, f64)> = None;
    for strength in candidates {
        let candidate = make(*strength);
        let loss = evaluate(data, types, Part::Development, &candidate).summary().cross_entropy.mean;
        if best.as_ref().is_none_or(|(_, least)| loss < *least) {
            best = Some((candidate, loss));
        }
    }
    best.expect("there are candidates; this is a bug").0
}

/// Counts of each article in the training outfits, the development part aside.
fn counts(data: &Dataset) -> Vec<f64> {
    let mut counts = vec![0.0; data.vocabulary.len()];
    for article in data.of_part(Part::Train).flat_map(|outfit| &outfit.articles) {
        counts[*article as usize] += 1.0;
    }
    counts
}

#[cfg(test)]
mod tests;
