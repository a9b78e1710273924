//! What a customer's features tell about an article, at the least: popularity given type, gender and
//! price band, beside popularity given type alone.

use std::collections::HashMap;

use atelier::domain::{Customer, FeatureValue};

use super::{Answers, Dataset, IndexedOutfit, Part, Question, TypePopularity, Types, choose};

/// How many imagined observations the coarser estimate is worth, to choose from.
const STRENGTHS: [f64; 7] = [30.0, 3.0, 10.0, 100.0, 300.0, 1000.0, 3000.0];

/// Pr(article | type, gender, price band), which backs off to type and gender, and that to type. The
/// price feature is, for each type, the one of those called `price…` whose bands tell most about the
/// type's articles; an unnamed gender or band is a value like any other.
#[derive(Debug)]
pub struct ProfilePopularity<'a> {
    pub(super) base: &'a TypePopularity,
    pub(super) cells: &'a Cells,
    pub strength: f64,
}

/// Counts by type, gender and band.
#[derive(Debug)]
pub struct Cells {
    articles_of_type: Vec<Vec<u32>>,
    /// For each type, the price feature it looks at.
    pub(super) prices: Vec<Option<String>>,
    by_gender: HashMap<(u32, Word), Counted>,
    by_band: HashMap<(u32, Word, Word), Counted>,
}

/// A feature's word, or that it was not given.
type Word = Option<String>;

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

    /// With the coarser estimate worth so many observations.
    fn backed_off(&self, article: u32, strength: f64, coarser: f64) -> f64 {
        let count = self.articles.get(&article).copied().unwrap_or_default();
        (count + strength * coarser) / (self.total + strength)
    }
}

impl Cells {
    pub fn count(data: &Dataset, types: &Types) -> Self {
        let mut articles_of_type = vec![Vec::new(); types.names.len()];
        for (article, kind) in (0..).zip(&types.of_article) {
            articles_of_type[*kind as usize].push(article);
        }
        let prices = telling_prices(data, types);
        let mut by_gender = HashMap::<_, Counted>::new();
        let mut by_band = HashMap::<_, Counted>::new();
        for (outfit, article) in trained(data) {
            let customer = &data.customers[outfit.customer as usize];
            let kind = types.of_article[article as usize];
            let gender = word(customer, "gender");
            let band = prices[kind as usize].as_deref().and_then(|feature| word(customer, feature));
            by_gender.entry((kind, gender.clone())).or_default().add(article);
            by_band.entry((kind, gender, band)).or_default().add(article);
        }
        Self { articles_of_type, prices, by_gender, by_band }
    }
}

fn trained(data: &Dataset) -> impl Iterator<Item = (&IndexedOutfit, u32)> {
    data.of_part(Part::Train).flat_map(|outfit| outfit.articles.iter().map(move |article| (outfit, *article)))
}

fn word(customer: &Customer, feature: &str) -> Word {
    match customer.features.get(feature) {
        Some(FeatureValue::Text(word)) => Some(word.clone()),
        Some(FeatureValue::Number(_) | FeatureValue::Many(_)) | None => None,
    }
}

/// For each type, the price feature that has the most information about its articles.
fn telling_prices(data: &Dataset, types: &Types) -> Vec<Option<String>> {
    let features: Vec<&str> = data
        .schema
        .features()
        .iter()
        .map(|feature| feature.name.as_str())
        .filter(|name| name.starts_with("price"))
        .collect();
    let mut best: Vec<(Option<String>, f64)> = vec![(None, f64::NEG_INFINITY); types.names.len()];
    for feature in features {
        let mut joint = HashMap::<(u32, Word), f64>::new();
        let mut bands = HashMap::<(u32, Word), f64>::new();
        for (outfit, article) in trained(data) {
            let band = word(&data.customers[outfit.customer as usize], feature);
            *joint.entry((article, band.clone())).or_default() += 1.0;
            *bands.entry((types.of_article[article as usize], band)).or_default() += 1.0;
        }
        // Up to terms that are the same for all features, the mutual information of article and band.
        let mut information = vec![0.0; types.names.len()];
        for ((article, _), n) in &joint {
            information[types.of_article[*article as usize] as usize] += n * n.ln();
        }
        for ((kind, _), n) in &bands {
            information[*kind as usize] -= n * n.ln();
        }
        for (best, information) in best.iter_mut().zip(information) {
            if information > best.1 {
                *best = (Some(feature.to_owned()), information);
            }
        }
    }
    best.into_iter().map(|(feature, _)| feature).collect()
}

impl<'a> ProfilePopularity<'a> {
    pub fn fit(data: &Dataset, types: &Types, base: &'a TypePopularity, cells: &'a Cells) -> Self {
        choose(data, types, &STRENGTHS, |strength| Self { base, cells, strength })
    }
}

impl Answers for ProfilePopularity<'_> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        probabilities.fill(0.0);
        let kind = question.told_type;
        let gender = word(question.customer, "gender");
        let price = self.cells.prices[kind as usize].as_deref();
        let band = price.and_then(|feature| word(question.customer, feature));
        let by_gender = self.cells.by_gender.get(&(kind, gender.clone()));
        let by_band = self.cells.by_band.get(&(kind, gender, band));
        for article in &self.cells.articles_of_type[kind as usize] {
            let mut probability = self.base.within_type(*article as usize);
            for counted in [by_gender, by_band].into_iter().flatten() {
                probability = counted.backed_off(*article, self.strength, probability);
            }
            probabilities[*article as usize] = probability;
        }
    }
}
