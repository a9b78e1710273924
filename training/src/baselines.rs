//! Baselines that count: the figures to compare every method with.
//!
//! A baseline is fitted to the training outfits, chooses its one parameter on the development split, and
//! answers a [`Question`] with a probability for every article. It must not know the world or the true
//! article: a question holds only what a baseline may see.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    data::Data,
    metrics::{Summary, Tally, rank},
    number::real,
};

/// One blank of an outfit, without the true article.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The encoded features of the customer and the outfit, feature by feature of the schema.
    pub features: &'a [Vec<u32>],
    /// The other articles.
    pub visible: &'a [u32],
    /// The type of the missing article, for the baselines that are told it and say so in their name.
    pub told_type: usize,
}

/// Answers questions.
pub trait Answers: Sync {
    /// Writes Pr(article) for the whole vocabulary.
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]);
}

/// A baseline's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    #[serde(rename = "baseline")]
    pub name: String,
    #[serde(rename = "answers")]
    pub summary: Summary,
}

/// The figures of the three baselines that every method is compared with, on the validation split.
pub fn beside_methods(data: &Data) -> Vec<Baseline> {
    let popularity = Popularity::fit(data);
    let told = TypePopularity::fit(data);
    let pairs = Pairs::count(data);
    let cooccurrence = Cooccurrence::fit(data, &popularity, &pairs);
    let baselines: [(&str, &dyn Answers); 3] =
        [("popularity", &popularity), ("popularity, told the type", &told), ("co-occurrence", &cooccurrence)];
    baselines
        .map(|(name, baseline)| Baseline {
            name: name.to_owned(),
            summary: evaluate(data, data.validation(), baseline).summary(),
        })
        .into()
}

/// Asks about every slot of these outfits in turn.
pub fn evaluate(data: &Data, outfits: &[u32], baseline: &dyn Answers) -> Tally {
    // Chunks of a fixed size, merged in order: the same figures on any number of threads.
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
                    baseline.answer(&question, &mut probabilities);
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

/// Chooses the candidate with the lowest cross-entropy on the development split; the first if the split is
/// empty.
fn choose<T: Answers>(data: &Data, candidates: &[f64], mut make: impl FnMut(f64) -> T) -> T {
    let mut best: Option<(T, f64)> = None;
    for parameter in candidates {
        let candidate = make(*parameter);
        let loss = evaluate(data, data.development(), &candidate).summary().cross_entropy.mean;
        if best.as_ref().is_none_or(|(_, least)| loss < *least) {
            best = Some((candidate, loss));
        }
    }
    best.expect("there are candidates; this is a bug").0
}

/// Counts each article in the training split.
fn count_articles(data: &Data) -> Vec<f64> {
    let mut counts = vec![0.0; data.vocabulary().len()];
    for article in data.training().iter().flat_map(|&outfit| data.outfits().articles(outfit)) {
        counts[*article as usize] += 1.0;
    }
    counts
}

/// Candidates for the number added to every count.
const ADDED: [f64; 6] = [0.5, 0.05, 0.1, 0.2, 1.0, 2.0];

/// Pr(article) from its count in the training outfits.
#[derive(Debug)]
pub struct Popularity {
    probabilities: Vec<f64>,
    pub added: f64,
}

impl Popularity {
    pub fn fit(data: &Data) -> Self {
        let counts = count_articles(data);
        choose(data, &ADDED, |added| Self::from_counts(&counts, added))
    }

    fn from_counts(counts: &[f64], added: f64) -> Self {
        let total: f64 = counts.iter().map(|count| count + added).sum();
        Self { probabilities: counts.iter().map(|count| (count + added) / total).collect(), added }
    }
}

impl Answers for Popularity {
    fn answer(&self, _: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.copy_from_slice(&self.probabilities);
    }
}

/// Pr(article | its type) from the same counts: told the type of the missing article.
#[derive(Debug)]
pub struct TypePopularity {
    within_type: Vec<f64>,
    articles_of_type: Vec<Vec<u32>>,
    pub added: f64,
}

impl TypePopularity {
    pub fn fit(data: &Data) -> Self {
        let counts = count_articles(data);
        choose(data, &ADDED, |added| Self::from_counts(&counts, data, added))
    }

    fn from_counts(counts: &[f64], data: &Data, added: f64) -> Self {
        let mut articles_of_type = vec![Vec::new(); data.types().len()];
        for article in 0..data.vocabulary().blank() {
            articles_of_type[data.type_of(article)].push(article);
        }
        let mut within_type = vec![0.0; counts.len()];
        for articles in &articles_of_type {
            let total: f64 = articles.iter().map(|article| counts[*article as usize] + added).sum();
            for article in articles {
                within_type[*article as usize] = (counts[*article as usize] + added) / total;
            }
        }
        Self { within_type, articles_of_type, added }
    }
}

impl Answers for TypePopularity {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.fill(0.0);
        for article in &self.articles_of_type[question.told_type] {
            probabilities[*article as usize] = self.within_type[*article as usize];
        }
    }
}

/// Candidates for the weight of co-occurrence against popularity.
const WEIGHTS: [f64; 10] = [0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95];

/// `w · mean over the visible b of Pr(article | b) + (1 - w) · Pr(article)`.
#[derive(Debug)]
pub struct Cooccurrence<'a> {
    popularity: &'a Popularity,
    pairs: &'a Pairs,
    pub weight: f64,
}

/// For each article, the articles seen beside it, with Pr(other | article).
#[derive(Debug)]
pub struct Pairs {
    starts: Vec<usize>,
    others: Vec<(u32, f64)>,
}

impl Pairs {
    /// Counts pairs in the training split.
    pub fn count(data: &Data) -> Self {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for &outfit in data.training() {
            let articles = data.outfits().articles(outfit);
            for a in articles {
                pairs.extend(articles.iter().filter(|b| *b != a).map(|b| (*a, *b)));
            }
        }
        pairs.sort_unstable();
        let mut starts = vec![0; data.vocabulary().len() + 1];
        let mut others = Vec::new();
        for beside in pairs.chunk_by(|x, y| x.0 == y.0) {
            let total = real(beside.len());
            for same in beside.chunk_by(|x, y| x.1 == y.1) {
                others.push((same[0].1, real(same.len()) / total));
            }
            starts[beside[0].0 as usize + 1] = others.len();
        }
        // An article never seen beside another has an empty range.
        for article in 1..starts.len() {
            starts[article] = starts[article].max(starts[article - 1]);
        }
        Self { starts, others }
    }

    fn beside(&self, article: u32) -> &[(u32, f64)] {
        &self.others[self.starts[article as usize]..self.starts[article as usize + 1]]
    }
}

impl<'a> Cooccurrence<'a> {
    pub fn fit(data: &Data, popularity: &'a Popularity, pairs: &'a Pairs) -> Self {
        choose(data, &WEIGHTS, |weight| Self { popularity, pairs, weight })
    }
}

impl Answers for Cooccurrence<'_> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        // Articles never seen beside another are left out; if all are, popularity decides.
        let seen: Vec<&[(u32, f64)]> = question
            .visible
            .iter()
            .map(|article| self.pairs.beside(*article))
            .filter(|beside| !beside.is_empty())
            .collect();
        let weight = if seen.is_empty() { 0.0 } else { self.weight };
        for (out, popularity) in probabilities.iter_mut().zip(&self.popularity.probabilities) {
            *out = (1.0 - weight) * popularity;
        }
        let each = weight / real(seen.len().max(1));
        for (article, probability) in seen.into_iter().flatten() {
            probabilities[*article as usize] += each * probability;
        }
    }
}

/// Candidates for the number of observations that the coarser estimate is worth.
const STRENGTHS: [f64; 7] = [30.0, 3.0, 10.0, 100.0, 300.0, 1000.0, 3000.0];

/// Pr(article | type, gender, price band), which backs off to type and gender, and then to type. Each type
/// uses the `price…` feature with the most information about its articles; a missing gender or band is a
/// value like any other.
#[derive(Debug)]
pub struct ProfilePopularity<'a> {
    base: &'a TypePopularity,
    cells: &'a Cells,
    pub strength: f64,
}

/// Counts by type, gender and band.
#[derive(Debug)]
pub struct Cells {
    /// The index of the feature `gender` in the schema.
    gender: Option<usize>,
    /// For each type, the index of its price feature.
    prices: Vec<Option<usize>>,
    by_gender: HashMap<(usize, Value), Counted>,
    by_band: HashMap<(usize, Value, Value), Counted>,
}

/// A feature's first value, if it is given.
type Value = Option<u32>;

#[derive(Debug, Default)]
struct Counted {
    total: f64,
    articles: HashMap<u32, f64>,
}

impl Counted {
    fn add(&mut self, article: u32) {
        self.total += 1.0;
        *self.articles.entry(article).or_default() += 1.0;
    }

    /// The estimate, with the coarser one worth `strength` observations.
    fn backed_off(&self, article: u32, strength: f64, coarser: f64) -> f64 {
        let count = self.articles.get(&article).copied().unwrap_or_default();
        (count + strength * coarser) / (self.total + strength)
    }
}

impl Cells {
    pub fn count(data: &Data) -> Self {
        let gender = data.schema().features().iter().position(|feature| feature.name == "gender");
        let prices = choose_price_features(data);
        let mut by_gender = HashMap::<_, Counted>::new();
        let mut by_band = HashMap::<_, Counted>::new();
        for_each_trained(data, |features, article| {
            let kind = data.type_of(article);
            let (gender, band) = (first_value(features, gender), first_value(features, prices[kind]));
            by_gender.entry((kind, gender)).or_default().add(article);
            by_band.entry((kind, gender, band)).or_default().add(article);
        });
        Self { gender, prices, by_gender, by_band }
    }

    /// Whether the schema has a feature `gender` or `price…`, without which there is only the type.
    pub fn tell(&self) -> bool {
        self.gender.is_some() || self.prices.iter().any(Option::is_some)
    }
}

/// Passes on each article of the training outfits with the features behind its outfit.
fn for_each_trained(data: &Data, mut take: impl FnMut(&[Vec<u32>], u32)) {
    let mut features = Vec::new();
    for &outfit in data.training() {
        data.features_of(outfit, &mut features);
        data.outfits().articles(outfit).iter().for_each(|&article| take(&features, article));
    }
}

fn first_value(features: &[Vec<u32>], feature: Option<usize>) -> Value {
    feature.and_then(|feature| features[feature].first().copied())
}

/// Finds, for each type, the price feature with the most information about its articles.
fn choose_price_features(data: &Data) -> Vec<Option<usize>> {
    let features = data.schema().features().iter().enumerate();
    let prices = features.filter(|(_, feature)| feature.name.starts_with("price")).map(|(index, _)| index);
    let mut best: Vec<(Option<usize>, f64)> = vec![(None, f64::NEG_INFINITY); data.types().len()];
    for feature in prices.map(Some) {
        let mut joint = HashMap::<(u32, Value), f64>::new();
        let mut bands = HashMap::<(usize, Value), f64>::new();
        for_each_trained(data, |features, article| {
            let band = first_value(features, feature);
            *joint.entry((article, band)).or_default() += 1.0;
            *bands.entry((data.type_of(article), band)).or_default() += 1.0;
        });
        // The mutual information of article and band, up to terms that are the same for all features.
        let mut information = vec![0.0; data.types().len()];
        for ((article, _), n) in &joint {
            information[data.type_of(*article)] += n * n.ln();
        }
        for ((kind, _), n) in &bands {
            information[*kind] -= n * n.ln();
        }
        for (best, information) in best.iter_mut().zip(information) {
            if information > best.1 {
                *best = (feature, information);
            }
        }
    }
    best.into_iter().map(|(feature, _)| feature).collect()
}

impl<'a> ProfilePopularity<'a> {
    pub fn fit(data: &Data, base: &'a TypePopularity, cells: &'a Cells) -> Self {
        choose(data, &STRENGTHS, |strength| Self { base, cells, strength })
    }
}

impl Answers for ProfilePopularity<'_> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.fill(0.0);
        let kind = question.told_type;
        let gender = first_value(question.features, self.cells.gender);
        let band = first_value(question.features, self.cells.prices[kind]);
        let by_gender = self.cells.by_gender.get(&(kind, gender));
        let by_band = self.cells.by_band.get(&(kind, gender, band));
        for article in &self.base.articles_of_type[kind] {
            let mut probability = self.base.within_type[*article as usize];
            for counted in [by_gender, by_band].into_iter().flatten() {
                probability = counted.backed_off(*article, self.strength, probability);
            }
            probabilities[*article as usize] = probability;
        }
    }
}

#[cfg(test)]
mod tests;
