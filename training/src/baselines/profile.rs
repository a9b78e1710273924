//! Popularity given the type, the customer's gender and price band.

use std::collections::{BTreeMap, HashMap};

use super::{Answers, Question, TypePopularity, choose};
use crate::data::Data;

/// Candidates for the number of observations that the coarser estimate is worth.
const STRENGTHS: [f64; 7] = [30.0, 3.0, 10.0, 100.0, 300.0, 1000.0, 3000.0];

/// Pr(article | type, gender, price band), which backs off to type and gender, and then to type. Each type
/// uses the `price…` feature with the most information about its articles; a missing gender or band is a
/// value like any other.
#[derive(Debug)]
pub struct ProfilePopularity<'a> {
    pub(super) base: &'a TypePopularity<'a>,
    pub(super) cells: &'a Cells,
    pub strength: f64,
}

/// Counts by type, gender and band.
#[derive(Debug)]
pub struct Cells {
    /// The index of the feature `gender` in the schema.
    gender: Option<usize>,
    /// For each type, the index of its price feature.
    pub(super) prices: Vec<Option<usize>>,
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
        // In order, so that equal sums are equal to the bit, and the first of equally good features is chosen.
        let mut joint = BTreeMap::<(u32, Value), f64>::new();
        let mut bands = BTreeMap::<(usize, Value), f64>::new();
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
    pub fn fit(data: &Data, base: &'a TypePopularity<'a>, cells: &'a Cells) -> Self {
        choose(data, &STRENGTHS, |strength| Self { base, cells, strength })
    }
}

impl Answers for ProfilePopularity<'_> {
    fn knows_type(&self) -> bool {
        true
    }

    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.fill(0.0);
        let kind = question.told_type;
        let gender = first_value(question.features, self.cells.gender);
        let band = first_value(question.features, self.cells.prices[kind]);
        let by_gender = self.cells.by_gender.get(&(kind, gender));
        let by_band = self.cells.by_band.get(&(kind, gender, band));
        for article in self.base.data.articles_of_type(kind) {
            let mut probability = self.base.within_type[*article as usize];
            for counted in [by_gender, by_band].into_iter().flatten() {
                probability = counted.backed_off(*article, self.strength, probability);
            }
            probabilities[*article as usize] = probability;
        }
    }
}
