//! What counting achieves: the figures that every method must be seen beside.
//!
//! A baseline is fitted to the training outfits, chooses its one strength on the development split, and
//! answers a [`Question`] with a probability for every article. It must not know the world, nor the
//! true article: a question holds what may be looked at and no more. Whatever else answers questions
//! can be put beside the baselines by [`evaluate`].

mod cooccurrence;
mod popularity;
mod profile;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    data::Data,
    metrics::{Summary, Tally, rank},
};

pub use cooccurrence::{Cooccurrence, Pairs};
pub use popularity::{Popularity, TypePopularity};
pub use profile::{Cells, ProfilePopularity};

/// One blank of an outfit, as whoever answers may see it.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The customer's, and what belongs to the outfit: encoded, feature by feature of the schema.
    pub features: &'a [Vec<u32>],
    /// The other articles.
    pub visible: &'a [u32],
    /// The type of the missing article, for those baselines that say in their name that they are told.
    pub told_type: usize,
}

/// Anything that answers questions.
pub trait Answers: Sync {
    /// Fills in Pr(article) for the whole vocabulary.
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]);
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
pub fn beside_methods(data: &Data) -> Vec<Baseline> {
    let popularity = Popularity::fit(data);
    let told = TypePopularity::fit(data);
    let pairs = Pairs::count(data);
    let cooccurrence = Cooccurrence::fit(data, &popularity, &pairs);
    let baselines: [(&str, &dyn Answers); 3] =
        [("popularity", &popularity), ("popularity, told the type", &told), ("co-occurrence", &cooccurrence)];
    baselines
        .map(|(name, who)| Baseline {
            name: name.to_owned(),
            summary: evaluate(data, data.validation(), who).summary(),
        })
        .into()
}

/// Every slot of these outfits, masked in turn.
pub fn evaluate(data: &Data, outfits: &[u32], who: &dyn Answers) -> Tally {
    // Chunks of a fixed size, summed in order: the same figures on any number of threads.
    let tallies: Vec<Tally> = outfits
        .par_chunks(64)
        .map(|outfits| {
            let mut tally = Tally::default();
            let mut probabilities = vec![0.0; data.vocabulary().len()];
            let mut features = Vec::new();
            for &outfit in outfits {
                data.features_of(outfit, &mut features);
                let articles = data.outfits().articles(outfit);
                let answers = articles.iter().enumerate().map(|(slot, &missing)| {
                    let mut visible = articles.to_vec();
                    visible.remove(slot);
                    let question =
                        Question { features: &features, visible: &visible, told_type: data.type_of(missing) };
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

/// The candidate with the lowest cross-entropy on the development split; the first one where there is
/// nothing to choose by.
fn choose<T: Answers>(data: &Data, candidates: &[f64], mut make: impl FnMut(f64) -> T) -> T {
    let mut best: Option<(T, f64)> = None;
    for strength in candidates {
        let candidate = make(*strength);
        let loss = evaluate(data, data.development(), &candidate).summary().cross_entropy.mean;
        if best.as_ref().is_none_or(|(_, least)| loss < *least) {
            best = Some((candidate, loss));
        }
    }
    best.expect("there are candidates; this is a bug").0
}

/// Counts of each article in the training outfits, the development split aside.
fn counts(data: &Data) -> Vec<f64> {
    let mut counts = vec![0.0; data.vocabulary().len()];
    for article in data.training().iter().flat_map(|&outfit| data.outfits().articles(outfit)) {
        counts[*article as usize] += 1.0;
    }
    counts
}

#[cfg(test)]
mod tests;
