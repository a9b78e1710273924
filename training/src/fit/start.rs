//! Where the match begins: at what counts of the training outfits say.
//!
//! How much more often than by chance a value of an article is beside another value, or with a customer's, is a matrix
//! with a row for each of the latter and a column for each of the former. Two narrow matrices whose product is near it
//! are the first vectors of the match, so a model starts as a naive Bayes classifier and learns from there.

use rayon::prelude::*;

use crate::{
    baselines::Pairs,
    data::Data,
    engine::{add_product, add_transposed_product, number, strength},
    model::Model,
    number::real,
    random::{Stream, Table},
};

/// What a count is mixed with: this many times by chance. Rare values then say little.
const BY_CHANCE: f64 = 20.0;
/// Rounds of the search for the two narrow matrices.
const ROUNDS: usize = 6;

/// Logarithms of lifts: rows of what is known, columns of the article's values.
struct Lifts {
    rows: usize,
    columns: usize,
    numbers: Vec<f32>,
}

/// Sets the first vectors of a model's match.
pub(super) fn set_match(model: &mut Model, data: &Data, seed: u64) {
    let width = model.config().matching;
    let lifts = Lifts::count(data);
    let (known, values) = lifts.factors(width, seed);
    let count = lifts.columns;
    let (beside, mut profile) = known.split_at(count * width);
    for (name, vectors) in [("articles.values", beside), ("vocabulary.values", &values[..])] {
        let table = model.named_mut(name).expect("the model has values; this is a bug");
        let stride = table.shape[1];
        for (to, from) in table.data.chunks_exact_mut(stride).zip(vectors.chunks_exact(width)) {
            to[stride - width..].copy_from_slice(from);
        }
    }
    for feature in data.schema().features() {
        let (own, rest) = profile.split_at(feature.rows() * width);
        let table = model.named_mut(&format!("match.{}.weight", feature.name));
        table.expect("the model has the schema's features; this is a bug").data.copy_from_slice(own);
        profile = rest;
    }
}

/// Fills a model's memory with what was beside what in the training outfits.
pub(super) fn set_memory(model: &mut Model, data: &Data) {
    let width = model.config().memory;
    let pairs = Pairs::count(data);
    let counts = data.count_articles(data.training());
    let total: f64 = counts.iter().sum();
    let best = |article: u32| {
        #[expect(clippy::cast_possible_truncation, reason = "counts of outfits")]
        let entry = |&(other, count): &(u32, f64)| Beside {
            article: other,
            count: count as f32,
            expected: (pairs.total(article) * counts[other as usize] / total) as f32,
        };
        let beside = pairs.beside(article).iter().map(entry);
        let mut more: Vec<Beside> = beside.filter(|entry| entry.count > entry.expected).collect();
        more.sort_unstable_by(|a, b| b.strength().total_cmp(&a.strength()).then(a.article.cmp(&b.article)));
        more.truncate(width);
        more
    };
    let rows: Vec<Vec<Beside>> = (0..data.vocabulary().blank()).into_par_iter().map(best).collect();
    let mut fill = |name: &str, number: fn(&Beside) -> f32| {
        let table = &mut model.named_mut(name).expect("the model has a memory; this is a bug").data;
        for (to, row) in table.chunks_exact_mut(width).zip(&rows) {
            to.iter_mut().zip(row).for_each(|(to, entry)| *to = number(entry));
        }
    };
    fill("memory.articles", |entry| number(entry.article as usize));
    fill("memory.counts", |entry| entry.count);
    fill("memory.expected", |entry| entry.expected);
    let (features, _) = model.config().rows_of_articles();
    let named = &mut model.named_mut("memory.named").expect("the model has a memory; this is a bug").data;
    for (first, feature) in features.iter().zip(data.schema().features()) {
        let Some(first) = first else { continue };
        for (row, value) in (first + 1..).zip(&feature.values) {
            let article = data.vocabulary().index_of(value);
            named[row] = article.map_or(0.0, |article| number(article as usize + 1));
        }
    }
}

/// An article that was beside something.
struct Beside {
    article: u32,
    count: f32,
    /// The count by chance.
    expected: f32,
}

impl Beside {
    fn strength(&self) -> f32 {
        strength(self.count, self.expected)
    }
}

impl Lifts {
    fn count(data: &Data) -> Self {
        let attributes = data.attributes();
        let columns = attributes.count();
        let schema = data.schema().features();
        let starts: Vec<usize> = schema
            .iter()
            .scan(columns, |next, feature| {
                let start = *next;
                *next += feature.rows();
                Some(start)
            })
            .collect();
        let rows = columns + schema.iter().map(atelier::domain::Feature::rows).sum::<usize>();
        let mut numbers = vec![0.0_f32; rows * columns];
        let mut weights = vec![0.0_f64; rows];
        let mut features = Vec::new();
        for &outfit in data.training() {
            data.features_of(outfit, &mut features);
            let articles = data.outfits().articles(outfit);
            for (place, &article) in articles.iter().enumerate() {
                let values = attributes.for_article(article as usize);
                let mut add = |row: usize, share: f32| {
                    weights[row] += f64::from(share);
                    let to = &mut numbers[row * columns..][..columns];
                    for &value in values {
                        to[value as usize] += share;
                    }
                };
                for (_, &other) in articles.iter().enumerate().filter(|(other, _)| *other != place) {
                    attributes.for_article(other as usize).iter().for_each(|&row| add(row as usize, 1.0));
                }
                for (start, known) in starts.iter().zip(&features) {
                    #[expect(clippy::cast_possible_truncation, reason = "a share of one")]
                    let share = (1.0 / real(known.len().max(1))) as f32;
                    for &row in known {
                        add(start + row as usize, share);
                    }
                }
            }
        }
        let mut lifts = Self { rows, columns, numbers };
        lifts.take_logarithms(&weights, data);
        lifts
    }

    /// Compares with chance: a row's weight times how common each value is among all articles of outfits.
    fn take_logarithms(&mut self, weights: &[f64], data: &Data) {
        let (shares, each) = shares_of_values(data);
        self.numbers.par_chunks_mut(self.columns.max(1)).zip(weights).enumerate().for_each(
            |(row, (numbers, weight))| {
                // An article has several values, which say much of the same; so has each of the others.
                let factor = if row < self.columns { 4.0 / (each * each) } else { 1.0 / each };
                for (number, share) in numbers.iter_mut().zip(&shares) {
                    let lift = (f64::from(*number) + BY_CHANCE) / (weight * share + BY_CHANCE);
                    #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
                    let lift = (factor * lift.ln()) as f32;
                    *number = lift;
                }
            },
        );
    }

    /// Two matrices whose product is near this one: a vector for each row, and one for each column.
    fn factors(&self, width: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
        let mut stream = Stream::new(seed, Table::Match, 0);
        #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
        let mut right: Vec<f32> = (0..self.columns * width).map(|_| stream.normal(0.0, 1.0) as f32).collect();
        let mut left = Vec::new();
        for _ in 0..ROUNDS {
            left = self.times(&right, width);
            make_orthonormal(&mut left, width);
            right = self.transposed_times(&left, width);
        }
        // Both get the same length in each column, so that learning moves both.
        for column in 0..width {
            let norm =
                right.iter().skip(column).step_by(width).map(|value| value * value).sum::<f32>().sqrt();
            let root = norm.sqrt().max(f32::MIN_POSITIVE);
            left.iter_mut().skip(column).step_by(width).for_each(|value| *value *= root);
            right.iter_mut().skip(column).step_by(width).for_each(|value| *value /= root);
        }
        (left, right)
    }

    fn times(&self, right: &[f32], width: usize) -> Vec<f32> {
        const ROWS: usize = 64;
        let mut product = vec![0.0; self.rows * width];
        let tasks = product.par_chunks_mut(ROWS * width).zip(self.numbers.par_chunks(ROWS * self.columns));
        tasks.for_each(|(to, rows)| add_product(to, rows, self.columns, right, width));
        product
    }

    fn transposed_times(&self, left: &[f32], width: usize) -> Vec<f32> {
        const ROWS: usize = 512;
        let tasks = self.numbers.par_chunks(ROWS * self.columns).zip(left.par_chunks(ROWS * width));
        let parts: Vec<Vec<f32>> = tasks
            .map(|(rows, left)| {
                let mut part = vec![0.0; self.columns * width];
                add_transposed_product(&mut part, rows, self.columns, left, width);
                part
            })
            .collect();
        let mut product = vec![0.0; self.columns * width];
        // In order, so that the sum does not depend on the number of threads.
        for part in &parts {
            product.iter_mut().zip(part).for_each(|(to, from)| *to += from);
        }
        product
    }
}

/// How common each value is among the articles of the training outfits, and how many values an article has.
fn shares_of_values(data: &Data) -> (Vec<f64>, f64) {
    let attributes = data.attributes();
    let mut counts = vec![0.0; attributes.count()];
    let mut articles = 0.0;
    for &article in data.training().iter().flat_map(|&outfit| data.outfits().articles(outfit)) {
        articles += 1.0;
        attributes.for_article(article as usize).iter().for_each(|&value| counts[value as usize] += 1.0);
    }
    let each = counts.iter().sum::<f64>() / f64::max(articles, 1.0);
    (counts.into_iter().map(|count| count / f64::max(articles, 1.0)).collect(), each.max(1.0))
}

/// Makes the columns orthogonal and of length one, by Gram and Schmidt, twice for precision.
fn make_orthonormal(matrix: &mut [f32], width: usize) {
    let rows = matrix.len() / width;
    let mut columns: Vec<Vec<f32>> =
        (0..width).map(|column| (0..rows).map(|row| matrix[row * width + column]).collect()).collect();
    for at in 0..width {
        let (before, rest) = columns.split_at_mut(at);
        let own = &mut rest[0];
        for _ in 0..2 {
            for other in &*before {
                let shared: f32 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                own.iter_mut().zip(other).for_each(|(to, from)| *to -= shared * from);
            }
        }
        let norm = own.iter().map(|value| value * value).sum::<f32>().sqrt();
        // A matrix of a lower rank leaves nothing of a column.
        let factor = if norm > 1e-6 { 1.0 / norm } else { 0.0 };
        for value in own {
            *value *= factor;
        }
    }
    for (column, values) in columns.iter().enumerate() {
        values.iter().enumerate().for_each(|(row, value)| matrix[row * width + column] = *value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_of_low_rank_is_found_again() {
        let (rows, columns, rank) = (40, 30, 3);
        let entry = |row: usize, column: usize, at: usize| {
            number(row * (at + 2)).sin() * number(column * (at + 5)).cos()
        };
        let numbers: Vec<f32> = (0..rows * columns)
            .map(|at| (0..rank).map(|part| entry(at / columns, at % columns, part)).sum())
            .collect();
        let lifts = Lifts { rows, columns, numbers };
        // Wider than the rank.
        let (left, right) = lifts.factors(5, 1);
        for row in 0..rows {
            for column in 0..columns {
                let found: f32 = (0..5).map(|at| left[row * 5 + at] * right[column * 5 + at]).sum();
                let expected = lifts.numbers[row * columns + column];
                assert!((found - expected).abs() < 1e-3, "{row}, {column}: {found}, expected {expected}");
            }
        }
    }
}
