//! A conditional logit over match features: how often the customer's values, and those of the visible articles, go
//! with the candidate's.
//!
//! Each feature is a logarithm of "how much more often than by chance", or says that a feature of the customer names the
//! candidate, so a few coefficients are all there is to fit.
//! They are fitted to outfits that the counts have not seen; then everything is counted.

use std::collections::{HashMap, HashSet};

use atelier_engine::outfit_memory::{Candidates, FEATURES, OutfitMemory};
use rayon::prelude::*;

use super::{
    Answers, Pairs, Question,
    history::{Histories, count_histories},
};
use crate::{
    data::{Attributes, Data},
    number::real,
    random::{Stream, Table, choose},
};

/// Training outfits on which coefficients are fitted, at most, and the part of all that they may be.
const FITTED: usize = 4000;
const PART: usize = 5;
/// Candidates besides the true article on which coefficients are fitted, drawn evenly.
const DRAWN: usize = 400;
/// Mixed with each count: this many times by chance.
const BY_CHANCE: f64 = 5.0;
/// An attribute with more values than this, as a maker's number, is not compared.
const MOST_VALUES: usize = 2000;
const STEPS: usize = 12;
/// The penalty of a squared coefficient; keeps those of features that say nothing at 0.
const PENALTY: f64 = 1.0;

/// The fitted model.
#[derive(Debug)]
pub struct Logit<'a> {
    data: &'a Data,
    counts: Counts<'a>,
    coefficients: Vec<f64>,
}

impl<'a> Logit<'a> {
    /// With the articles that features name, such as what the customer had.
    pub fn fit(data: &'a Data) -> Self {
        Self::with(data, Known { histories: true, outfits: true })
    }

    /// Without what this customer had, which a match is not told.
    pub(crate) fn fit_without_histories(data: &'a Data) -> Self {
        Self::with(data, Known { histories: false, outfits: true })
    }

    /// With what one ONNX file can hold.
    pub(crate) fn fit_for_file(data: &'a Data) -> Self {
        Self::with(data, Known { histories: false, outfits: false })
    }

    fn with(data: &'a Data, known: Known) -> Self {
        let named = named_articles(data);
        let held = FITTED.min(data.training().len() / PART).max(1);
        let held = choose(1, Table::Logit, data.training(), held);
        let rest: Vec<u32> =
            data.training().iter().copied().filter(|outfit| held.binary_search(outfit).is_err()).collect();
        let counts = Counts::new(data, &rest, named.clone(), known);
        let questions: Vec<Vec<f64>> = held.par_iter().map(|&outfit| counts.example(outfit)).collect();
        let coefficients = maximise(&questions, counts.features());
        Self { data, counts: Counts::new(data, data.training(), named, known), coefficients }
    }

    /// The same model as a sum over what is known: what a first step of learning can begin at.
    pub(crate) fn terms(&self) -> Terms {
        let counts = &self.counts;
        let width = counts.places.len();
        let values: Vec<u32> =
            (0..).zip(&counts.columns).filter_map(|(value, column)| column.map(|_| value)).collect();
        let weigh = |row: &[f32], coefficient: usize| {
            let weigh = |(lift, place): (&f32, &usize)| {
                #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
                let weight = self.coefficients[FIXED + 2 * place + coefficient] as f32;
                weight * lift
            };
            row.iter().zip(&counts.places).map(weigh).collect()
        };
        Terms {
            popularity: counts
                .popularity
                .iter()
                .map(|popularity| popularity * self.coefficients[0])
                .collect(),
            together: self.coefficients[1],
            own: self.coefficients[2],
            beside: counts.beside.chunks_exact(width.max(1)).map(|row| weigh(row, 0)).collect(),
            profile: counts
                .profile
                .iter()
                .map(|table| table.chunks_exact(width.max(1)).map(|row| weigh(row, 1)).collect())
                .collect(),
            values,
        }
    }

    /// A visible article's part of the scores of others, and of its own.
    pub(crate) fn beside(&self, article: u32) -> Vec<(u32, f64)> {
        let (counts, mut beside) = (&self.counts, vec![(article, self.coefficients[2])]);
        let total = counts.pairs.total(article);
        beside.extend(counts.pairs.beside(article).iter().map(|&(other, times)| {
            let lift = lift_together(times, total * counts.chance[other as usize]);
            (other, self.coefficients[1] * lift)
        }));
        beside
    }

    /// Features whose values are articles: by row the article, and what it is worth.
    pub(crate) fn named(&self) -> impl Iterator<Item = (usize, &[Option<u32>], f64)> {
        let worth = &self.coefficients[FIXED + 2 * self.counts.compared.len()..];
        let named = self.counts.named.iter().zip(worth);
        named.map(|(named, worth)| (named.feature, named.articles.as_slice(), *worth))
    }

    /// Weights of whole outfits.
    pub(crate) fn remembered(&self) -> &[f64] {
        &self.coefficients[self.counts.features() - self.counts.remembered()..]
    }

    /// Each feature's name and coefficient.
    pub fn coefficients(&self) -> impl Iterator<Item = (String, f64)> {
        let names = self.counts.compared.iter().map(|&attribute| &self.data.attributes().names()[attribute]);
        let both = names.flat_map(|name| [format!("beside, {name}"), format!("profile, {name}")]);
        let fixed = ["popularity", "co-occurrence", "already in the outfit", "the customer had it"]
            .map(str::to_owned);
        let schema = self.data.schema().features();
        let by_features =
            self.counts.named.iter().map(|named| format!("named by {}", schema[named.feature].name));
        let outfits = (0..self.counts.remembered()).map(|feature| format!("like outfits, {feature}"));
        fixed.into_iter().chain(both).chain(by_features).chain(outfits).zip(self.coefficients.iter().copied())
    }
}

/// A conditional logit as a sum over what is known. Rows of `beside` and all columns are of `values`.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) popularity: Vec<f64>,
    /// The weight of co-occurrence, and of being in the outfit already.
    pub(crate) together: f64,
    pub(crate) own: f64,
    pub(crate) values: Vec<u32>,
    pub(crate) beside: Vec<Vec<f32>>,
    /// By feature and its value.
    pub(crate) profile: Vec<Vec<Vec<f32>>>,
}

impl Answers for Logit<'_> {
    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        let (counts, view) = (&self.counts, self.counts.view(question));
        let [popularity, together, own, had] = self.coefficients[..FIXED].try_into().expect("four are fixed");
        let of_attributes = self.coefficients[FIXED..].chunks_exact(2);
        let of_attributes: Vec<&[f64]> = of_attributes.take(counts.compared.len()).collect();
        let columns = counts.places.iter().zip(view.beside.iter().zip(&view.profile));
        let columns: Vec<f64> = columns
            .map(|(&place, (beside, profile))| dot(&[*beside, *profile], of_attributes[place]))
            .collect();
        for (article, score) in (0..).zip(probabilities.iter_mut()) {
            let by_values: f64 = counts.columns_of(article).map(|column| columns[column]).sum();
            let at = article as usize;
            *score = popularity * counts.popularity[at] + together * view.together[at] + by_values;
        }
        // Terms that concern few articles are added to them alone.
        let mut add = |article: u32, more: f64| {
            if let Some(score) = probabilities.get_mut(article as usize) {
                *score += more;
            }
        };
        for &article in view.visible {
            add(article, own);
        }
        for (&article, times) in view.had.into_iter().flatten() {
            add(article, had * times.ln_1p());
        }
        for (named, (.., worth)) in view.named.iter().zip(self.named()) {
            for &article in named {
                add(article, worth);
            }
        }
        for (article, says) in &view.outfits {
            add(
                *article,
                self.remembered().iter().zip(says).map(|(weight, says)| weight * f64::from(*says)).sum(),
            );
        }
        softmax(probabilities);
    }
}

/// Features before those of attributes: popularity, co-occurrence, already in the outfit, how often the customer had it.
const FIXED: usize = 4;

/// A logit's inputs besides articles' and customers' values.
#[derive(Debug, Clone, Copy)]
struct Known {
    histories: bool,
    outfits: bool,
}

/// A feature of the schema whose values are articles.
#[derive(Debug, Clone)]
struct Named {
    feature: usize,
    /// By row of the feature.
    articles: Vec<Option<u32>>,
}

impl Named {
    /// The articles that a customer's features name.
    fn among(&self, features: &[Vec<u32>]) -> HashSet<u32> {
        features[self.feature].iter().filter_map(|&row| self.articles[row as usize]).collect()
    }
}

fn named_articles(data: &Data) -> Vec<Named> {
    let features = data.schema().features().iter().enumerate();
    features
        .filter_map(|(place, feature)| Some(Named { feature: place, articles: data.named_by(feature)? }))
        .collect()
}

/// Features are computed from these.
#[derive(Debug)]
struct Counts<'a> {
    data: &'a Data,
    attributes: &'a Attributes,
    popularity: Vec<f64>,
    pairs: Pairs,
    histories: Histories,
    chance: Vec<f64>,
    /// The attributes that are compared.
    compared: Vec<usize>,
    /// For each value its column among the compared values, and for each column its feature's place.
    columns: Vec<Option<u32>>,
    places: Vec<usize>,
    /// By value of a visible article and column: the logarithm of the lift.
    beside: Vec<f32>,
    /// By feature of the schema, then by row and column.
    profile: Vec<Vec<f32>>,
    named: Vec<Named>,
    outfits: Option<OutfitMemory>,
}

/// A question's numbers, by column and article.
struct View<'a> {
    visible: &'a [u32],
    had: Option<&'a HashMap<u32, f64>>,
    beside: Vec<f64>,
    profile: Vec<f64>,
    together: Vec<f64>,
    /// By feature that names articles.
    named: Vec<HashSet<u32>>,
    outfits: Candidates,
}

impl<'a> Counts<'a> {
    fn new(data: &'a Data, outfits: &[u32], named: Vec<Named>, known: Known) -> Self {
        let attributes = data.attributes();
        let mut sizes = vec![0; attributes.names().len()];
        for (value, _) in (0..).zip(0..attributes.count()) {
            sizes[attributes.attribute_of(value)] += 1;
        }
        let compared: Vec<usize> = (0..sizes.len()).filter(|&at| sizes[at] <= MOST_VALUES).collect();
        let (mut columns, mut places) = (vec![None; attributes.count()], Vec::new());
        let mut next = 0..;
        for (value, column) in (0..).zip(&mut columns) {
            if let Ok(place) = compared.binary_search(&attributes.attribute_of(value)) {
                *column = next.next();
                places.push(place);
            }
        }
        let articles = data.count_articles(outfits);
        let seen = articles.iter().sum::<f64>();
        let total = seen + 0.5 * real(articles.len());
        let mut counts = Self {
            data,
            attributes,
            popularity: articles.iter().map(|count| ((count + 0.5) / total).ln()).collect(),
            pairs: Pairs::count_in(data, outfits),
            histories: count_histories(data, if known.histories { outfits } else { &[] }),
            chance: articles.iter().map(|count| count / seen).collect(),
            compared,
            columns,
            places,
            beside: Vec::new(),
            profile: Vec::new(),
            named,
            outfits: known.outfits.then(|| data.remember(outfits)),
        };
        counts.count_beside(outfits);
        counts.count_profiles(outfits);
        counts
    }

    fn features(&self) -> usize {
        FIXED + 2 * self.compared.len() + self.named.len() + self.remembered()
    }

    fn remembered(&self) -> usize {
        if self.outfits.is_some() { FEATURES } else { 0 }
    }

    /// The columns of an article's values.
    fn columns_of(&self, article: u32) -> impl Iterator<Item = usize> + '_ {
        let values = self.attributes.for_article(article as usize);
        values.iter().filter_map(|&value| self.columns[value as usize].map(|column| column as usize))
    }

    /// Counts values with values, of the same attribute.
    fn count_beside(&mut self, outfits: &[u32]) {
        let width = self.places.len();
        let mut counts = vec![0.0_f32; width * width];
        for &outfit in outfits {
            let articles = self.data.outfits().articles(outfit);
            for (at, &article) in articles.iter().enumerate() {
                for row in self.columns_of(article) {
                    for other in
                        articles.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, a)| *a)
                    {
                        let same =
                            self.columns_of(other).filter(|&column| self.places[column] == self.places[row]);
                        same.for_each(|column| counts[row * width + column] += 1.0);
                    }
                }
            }
        }
        self.beside = lifts(counts, width, &self.places);
    }

    /// Counts the features' values with the articles' values.
    fn count_profiles(&mut self, outfits: &[u32]) {
        let width = self.places.len();
        let schema = self.data.schema().features();
        let mut counts: Vec<Vec<f32>> =
            schema.iter().map(|feature| vec![0.0; feature.rows() * width]).collect();
        let mut features = Vec::new();
        for &outfit in outfits {
            self.data.features_of(outfit, &mut features);
            for &article in self.data.outfits().articles(outfit) {
                for (counts, values) in counts.iter_mut().zip(&features) {
                    for &value in values {
                        for column in self.columns_of(article) {
                            counts[value as usize * width + column] += 1.0;
                        }
                    }
                }
            }
        }
        self.profile = counts.into_iter().map(|counts| lifts(counts, width, &self.places)).collect();
    }

    fn view<'q>(&'q self, question: &Question<'q>) -> View<'q> {
        let width = self.places.len();
        let mut view = View {
            visible: question.visible,
            had: self.histories.get(&question.customer),
            beside: vec![0.0; width],
            profile: vec![0.0; width],
            together: vec![0.0; self.popularity.len()],
            named: self.named.iter().map(|named| named.among(question.features)).collect(),
            outfits: self
                .outfits
                .as_ref()
                .map_or_else(Candidates::new, |outfits| outfits.describe(question.visible, None, |_| true)),
        };
        for &article in question.visible {
            for row in self.columns_of(article) {
                add(&mut view.beside, &self.beside[row * width..][..width], 1.0);
            }
            let total = self.pairs.total(article);
            for &(other, times) in self.pairs.beside(article) {
                view.together[other as usize] += lift_together(times, total * self.chance[other as usize]);
            }
        }
        for (table, values) in self.profile.iter().zip(question.features) {
            for &value in values {
                let share = 1.0 / real(values.len()).sqrt();
                add(&mut view.profile, &table[value as usize * width..][..width], share);
            }
        }
        view
    }

    /// The features of one candidate.
    fn describe(&self, view: &View<'_>, article: u32, features: &mut [f64]) {
        features.fill(0.0);
        features[0] = self.popularity[article as usize];
        features[1] = view.together[article as usize];
        features[2] = f64::from(u8::from(view.visible.contains(&article)));
        features[3] = view.had.and_then(|had| had.get(&article)).map_or(0.0, |times| times.ln_1p());
        for column in self.columns_of(article) {
            let at = FIXED + 2 * self.places[column];
            features[at] += view.beside[column];
            features[at + 1] += view.profile[column];
        }
        for (feature, named) in features[FIXED + 2 * self.compared.len()..].iter_mut().zip(&view.named) {
            *feature = f64::from(u8::from(named.contains(&article)));
        }
        if let Ok(at) = view.outfits.binary_search_by_key(&article, |(article, _)| *article) {
            let says = &view.outfits[at].1;
            let from = self.features() - says.len();
            features[from..].iter_mut().zip(says).for_each(|(feature, says)| *feature = f64::from(*says));
        }
    }

    /// The features of the true article of one slot, then of the drawn candidates.
    fn example(&self, outfit: u32) -> Vec<f64> {
        let mut stream = Stream::new(1, Table::Logit, outfit as usize);
        let mut visible = self.data.outfits().articles(outfit).to_vec();
        let missing = visible.swap_remove(stream.below(visible.len()));
        let mut values = Vec::new();
        self.data.features_of(outfit, &mut values);
        let view = self.view(&Question {
            features: &values,
            customer: self.data.outfits().customer(outfit),
            visible: &visible,
            told_type: self.data.type_of(missing),
        });
        let mut features = vec![0.0; (1 + DRAWN) * self.features()];
        for (place, features) in features.chunks_exact_mut(self.features()).enumerate() {
            let mut drawn = missing;
            if place > 0 {
                let any = stream.below(self.popularity.len());
                drawn = u32::try_from(any).expect("articles fit 32 bits");
            }
            self.describe(&view, drawn, features);
        }
        features
    }
}

/// How much more often than by chance two articles were in one outfit, as a logarithm; 0 if never.
fn lift_together(times: f64, expected: f64) -> f64 {
    (1.0 + times / (expected + 1.0)).ln()
}

#[expect(clippy::cast_possible_truncation, reason = "a logarithm needs no more digits")]
fn log_lift(count: f64, expected: f64) -> f32 {
    ((count + BY_CHANCE) / (expected + BY_CHANCE)).ln() as f32
}

/// Turns counts into logarithms of lifts: how much more often than by chance, within each attribute.
fn lifts(mut counts: Vec<f32>, width: usize, places: &[usize]) -> Vec<f32> {
    let attributes = places.last().map_or(0, |last| last + 1);
    let mut of_column = vec![0.0; width];
    let mut of_attribute = vec![0.0; attributes];
    for row in counts.chunks_exact(width.max(1)) {
        for (column, &count) in row.iter().enumerate() {
            of_column[column] += f64::from(count);
            of_attribute[places[column]] += f64::from(count);
        }
    }
    for row in counts.chunks_exact_mut(width.max(1)) {
        let mut of_row = vec![0.0; attributes];
        row.iter().enumerate().for_each(|(column, &count)| of_row[places[column]] += f64::from(count));
        for (column, count) in row.iter_mut().enumerate() {
            let place = places[column];
            let expected = of_row[place] * of_column[column] / of_attribute[place].max(1.0);
            *count = log_lift(f64::from(*count), expected);
        }
    }
    counts
}

/// Newton's method on the penalised likelihood of the first candidate of each question. A step that does not raise it is
/// halved.
fn maximise(questions: &[Vec<f64>], features: usize) -> Vec<f64> {
    let mut at = Hill::climb(questions, vec![0.0; features]);
    for _ in 0..STEPS {
        let mut step = at.step();
        let next = loop {
            let moved =
                at.coefficients.iter().zip(&step).map(|(coefficient, step)| coefficient + step).collect();
            let next = Hill::climb(questions, moved);
            if next.height > at.height {
                break next;
            }
            for step in &mut step {
                *step /= 2.0;
            }
            if step.iter().all(|step| step.abs() < 1e-6) {
                return at.coefficients;
            }
        };
        at = next;
    }
    at.coefficients
}

/// The penalised likelihood at some coefficients.
struct Hill {
    coefficients: Vec<f64>,
    height: f64,
    slope: Vec<f64>,
    /// The negative second derivative.
    curvature: Vec<f64>,
}

impl Hill {
    fn climb(questions: &[Vec<f64>], coefficients: Vec<f64>) -> Self {
        let features = coefficients.len();
        let parts = questions.par_chunks(64).map(|questions| {
            let mut sums = vec![0.0; 1 + features * (features + 1)];
            for question in questions {
                add_slope(question, &coefficients, &mut sums);
            }
            sums
        });
        // In order, so that the sums do not depend on the number of threads.
        let parts: Vec<Vec<f64>> = parts.collect();
        let mut total = vec![0.0; 1 + features * (features + 1)];
        for part in &parts {
            total.iter_mut().zip(part).for_each(|(total, sum)| *total += sum);
        }
        let mut curvature = total.split_off(1 + features);
        let mut slope = total.split_off(1);
        for at in 0..features {
            slope[at] -= PENALTY * coefficients[at];
            curvature[at * features + at] += PENALTY;
            for column in 0..at {
                curvature[at * features + column] = curvature[column * features + at];
            }
        }
        let height = total[0] - PENALTY / 2.0 * dot(&coefficients, &coefficients);
        Self { coefficients, height, slope, curvature }
    }

    /// Newton's.
    fn step(&self) -> Vec<f64> {
        let mut step = self.slope.clone();
        solve(&mut self.curvature.clone(), &mut step);
        step
    }
}

/// Adds one question's logarithm of the likelihood, its gradient, and the upper half of its negative second derivative to
/// `sums`.
fn add_slope(question: &[f64], coefficients: &[f64], sums: &mut [f64]) {
    let features = coefficients.len();
    let candidates = question.chunks_exact(features);
    let mut shares: Vec<f64> = candidates.clone().map(|candidate| dot(candidate, coefficients)).collect();
    softmax(&mut shares);
    let mut mean = vec![0.0; features];
    for (candidate, share) in candidates.clone().zip(&shares) {
        mean.iter_mut().zip(candidate).for_each(|(mean, value)| *mean += share * value);
    }
    let (height, rest) = sums.split_at_mut(1);
    let (slope, curvature) = rest.split_at_mut(features);
    height[0] += shares[0].ln();
    for at in 0..features {
        slope[at] += question[at] - mean[at];
    }
    let mut distance = vec![0.0; features];
    for (candidate, share) in candidates.zip(&shares) {
        distance
            .iter_mut()
            .zip(candidate.iter().zip(&mean))
            .for_each(|(to, (value, mean))| *to = value - mean);
        // The other half is the same.
        for (at, row) in curvature.chunks_exact_mut(features).enumerate() {
            let factor = share * distance[at];
            row[at..].iter_mut().zip(&distance[at..]).for_each(|(to, distance)| *to += factor * distance);
        }
    }
}

/// Solves a positive definite system in place by elimination; the solution replaces `right`.
fn solve(matrix: &mut [f64], right: &mut [f64]) {
    let size = right.len();
    for at in 0..size {
        let pivot = matrix[at * size..][..size].to_vec();
        for row in at + 1..size {
            let factor = matrix[row * size + at] / pivot[at];
            matrix[row * size..][..size].iter_mut().zip(&pivot).for_each(|(value, p)| *value -= factor * p);
            right[row] -= factor * right[at];
        }
    }
    for at in (0..size).rev() {
        let known = dot(&matrix[at * size + at + 1..(at + 1) * size], &right[at + 1..]);
        right[at] = (right[at] - known) / matrix[at * size + at];
    }
}

fn softmax(scores: &mut [f64]) {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for score in &mut *scores {
        *score = (*score - highest).exp();
    }
    let total: f64 = scores.iter().sum();
    for score in &mut *scores {
        *score /= total;
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], from: &[f32], share: f64) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += share * f64::from(*from));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::patterned_data;

    /// An answer adds up what fitting describes candidate by candidate.
    #[test]
    fn answers_are_of_what_was_fitted() {
        let data = patterned_data(300);
        let logit = Logit::fit(&data);
        assert!(logit.coefficients.iter().filter(|coefficient| coefficient.abs() > 1e-3).count() > 6);
        let mut values = Vec::new();
        for &outfit in &data.training()[..20] {
            data.features_of(outfit, &mut values);
            let visible = &data.outfits().articles(outfit)[1..];
            let customer = data.outfits().customer(outfit);
            let question = Question { features: &values, customer, visible, told_type: 0 };
            let mut expected = vec![0.0; data.vocabulary().len()];
            let (view, mut features) = (logit.counts.view(&question), vec![0.0; logit.coefficients.len()]);
            assert!(view.had.is_some_and(|had| !had.is_empty()) && !view.outfits.is_empty());
            for (article, score) in (0..).zip(&mut expected) {
                logit.counts.describe(&view, article, &mut features);
                *score = dot(&features, &logit.coefficients);
            }
            softmax(&mut expected);
            let mut found = vec![f64::NAN; expected.len()];
            logit.answer(&question, &mut found);
            let is_near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9);
            assert!(is_near, "{found:?}, {expected:?}");
        }
    }
}
