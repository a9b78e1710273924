//! Where a match begins: at a conditional logit over the counts of the outfits.
//!
//! The logit weighs pairs of articles, which outfits share articles and how common each article is: these weights are
//! the first ones of the memory and of the biases. It also says of each value of a visible article, and of each of the
//! customer's, how much it raises the odds of each value of a candidate. With few outfits, two narrow matrices whose product is
//! near that are the first vectors of the match. Many outfits teach more, and learn it sooner from vectors that are not
//! alike: those are drawn.

use rayon::prelude::*;

use crate::{
    baselines::{Logit, Pairs, Terms},
    data::Data,
    engine::{MATCH_GAIN, add_product, add_transposed_product, number, set_first_weights, strength},
    model::Model,
    number::real,
    random::{Stream, Table},
};

/// Rounds of the search for the two narrow matrices.
const ROUNDS: usize = 6;
/// The root mean square of each column of the candidates' vectors, and of the others if they are drawn.
const COLUMN: f64 = 0.05;
const KNOWN: f64 = 0.02;
/// A column that would have to be multiplied by more is noise.
const MOST: f32 = 1e4;
/// How often a value is counted besides its number, so that rare ones are near to theirs, too.
const AT_LEAST: f64 = 1.0;

/// Sets a model's first match, memory and biases: all at the logit.
pub(super) fn begin_at_logit(model: &mut Model, data: &Data, logit: &Logit<'_>, seed: u64) {
    let terms = logit.terms();
    let matrix = Matrix::new(data, &terms);
    let width = model.config().matching;
    let (mut known, mut values) = matrix.factors(&Weights::count(data), width, seed);
    for (value, factor) in data.attributes().factors().into_iter().enumerate() {
        for vectors in [&mut known, &mut values] {
            vectors[value * width..][..width].iter_mut().for_each(|number| *number /= factor);
        }
    }
    for number in &mut known {
        *number /= MATCH_GAIN;
    }
    set_match(model, data, &known, &values);
    // The blocks begin at nothing.
    let vocabulary = model.named_mut("vocabulary.own").expect("a match has values");
    vocabulary.data.iter_mut().for_each(|number| *number = 0.0);
    set_counts(model, logit, &terms);
}

/// Sets the weights of the memory and the biases to the logit's.
fn set_counts(model: &mut Model, logit: &Logit<'_>, terms: &Terms) {
    if model.config().memory > 0 {
        let weights = model.named_mut("memory.weights").expect("the model has a memory");
        let named: Vec<f64> = logit.named().map(|(.., worth)| worth).collect();
        set_first_weights(&mut weights.data, terms.together, terms.own, &named);
        let outfits = model.named_mut("memory.outfits").expect("the model has a memory");
        // None if it was fitted without them.
        let remembered = single(logit.remembered());
        outfits.data[..remembered.len()].copy_from_slice(&remembered);
    }
    model.set_bias(&single(&terms.popularity));
}

#[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
fn single(weights: &[f64]) -> Vec<f32> {
    weights.iter().map(|weight| *weight as f32).collect()
}

/// Draws a model's first match, and sets its memory and biases at the logit.
pub(super) fn begin_at_counts(model: &mut Model, data: &Data, logit: &Logit<'_>, seed: u64) {
    let width = model.config().matching;
    let values = data.attributes().count();
    let rows =
        values + data.schema().features().iter().map(atelier_core::domain::Feature::rows).sum::<usize>();
    let mut stream = Stream::new(seed, Table::Match, 0);
    let known = stream.normals(rows * width, KNOWN);
    let values = stream.normals(values * width, COLUMN);
    set_match(model, data, &known, &values);
    set_counts(model, logit, &logit.terms());
}

/// How much each thing that is known raises the odds of each value of a candidate: a row for each value of a visible article,
/// then for each value of each feature.
struct Matrix {
    rows: usize,
    columns: usize,
    numbers: Vec<f32>,
}

/// Sets the match's vectors of values of visible articles, then of features; and those of candidates' values.
fn set_match(model: &mut Model, data: &Data, known: &[f32], values: &[f32]) {
    let width = model.config().matching;
    let (beside, mut profile) = known.split_at(data.attributes().count() * width);
    for (name, vectors) in [("articles.values", beside), ("vocabulary.values", values)] {
        let table = model.named_mut(name).expect("the model has values");
        let stride = table.shape[1];
        for (to, from) in table.data.chunks_exact_mut(stride).zip(vectors.chunks_exact(width)) {
            to[stride - width..].copy_from_slice(from);
        }
    }
    for feature in data.schema().features() {
        let (own, rest) = profile.split_at(feature.rows() * width);
        let table = model.named_mut(&format!("match.{}.weight", feature.name));
        table.expect("the model has the schema's features").data.copy_from_slice(own);
        profile = rest;
    }
}

/// Fills a model's memory with the training outfits' pairs.
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
        let mut more: Vec<Beside> = beside.collect();
        more.sort_unstable_by(|a, b| b.strength().total_cmp(&a.strength()).then(a.article.cmp(&b.article)));
        more.truncate(width);
        more
    };
    let rows: Vec<Vec<Beside>> = (0..model.config().blank()).into_par_iter().map(best).collect();
    let mut fill = |name: &str, number: fn(&Beside) -> f32| {
        let table = &mut model.named_mut(name).expect("the model has a memory").data;
        for (to, row) in table.chunks_exact_mut(width).zip(&rows) {
            to.iter_mut().zip(row).for_each(|(to, entry)| *to = number(entry));
        }
    };
    fill("memory.articles", |entry| number(entry.article as usize));
    fill("memory.counts", |entry| entry.count);
    fill("memory.expected", |entry| entry.expected);
    let (features, _) = model.config().rows_of_articles();
    let named = &mut model.named_mut("memory.named").expect("the model has a memory").data;
    for (first, feature) in features.iter().zip(data.schema().features()) {
        let Some(first) = first else { continue };
        for (row, article) in (*first..).zip(data.named_by(feature).into_iter().flatten()) {
            named[row] = article.map_or(0.0, |article| number(article as usize + 1));
        }
    }
}

/// An article of a pair.
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

impl Matrix {
    fn new(data: &Data, terms: &Terms) -> Self {
        let columns = data.attributes().count();
        let profile = terms.profile.iter().flatten();
        let rows = columns + profile.clone().count();
        let mut numbers = vec![0.0; rows * columns];
        let beside = terms.values.iter().map(|&value| value as usize).zip(&terms.beside);
        for (row, from) in beside.chain((columns..).zip(profile)) {
            for (&value, &number) in terms.values.iter().zip(from) {
                numbers[row * columns + value as usize] = number;
            }
        }
        Self { rows, columns, numbers }
    }

    /// Two matrices whose product is near this one, nearest where both row and column are common: a vector for each row,
    /// and one for each column.
    fn factors(mut self, weights: &Weights, width: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
        for (row, by_row) in self.numbers.chunks_exact_mut(self.columns.max(1)).zip(&weights.rows) {
            row.iter_mut()
                .zip(&weights.columns)
                .for_each(|(number, by_column)| *number *= by_row * by_column);
        }
        let mut stream = Stream::new(seed, Table::Match, 0);
        let mut right = stream.normals(self.columns * width, 1.0);
        let mut left = Vec::new();
        for _ in 0..ROUNDS {
            left = self.times(&right, width);
            make_orthonormal(&mut left, width);
            right = self.transposed_times(&left, width);
        }
        for (vectors, weights) in [(&mut left, &weights.rows), (&mut right, &weights.columns)] {
            for (vector, weight) in vectors.chunks_exact_mut(width).zip(weights) {
                for number in vector {
                    *number /= weight;
                }
            }
        }
        // The columns of the vectors that learning compares with have one length, so that it moves all of them.
        let length = COLUMN * real(self.columns).sqrt();
        for column in 0..width {
            let norm: f64 =
                right.iter().skip(column).step_by(width).map(|value| f64::from(value * value)).sum();
            #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
            let factor = (length / norm.sqrt()) as f32;
            let of_left = left.iter_mut().skip(column).step_by(width);
            let of_right = right.iter_mut().skip(column).step_by(width);
            if factor.is_finite() && factor < MOST {
                of_right.for_each(|value| *value *= factor);
                of_left.for_each(|value| *value /= factor);
            } else {
                // The matrix has a lower rank.
                of_left.for_each(|value| *value = 0.0);
                of_right.zip(stream.normals(self.columns, COLUMN)).for_each(|(value, drawn)| *value = drawn);
            }
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

/// The square roots of how common rows and columns are.
struct Weights {
    rows: Vec<f32>,
    columns: Vec<f32>,
}

impl Weights {
    fn count(data: &Data) -> Self {
        let attributes = data.attributes();
        let mut values = vec![AT_LEAST; attributes.count()];
        let mut known: Vec<Vec<f64>> =
            data.schema().features().iter().map(|feature| vec![AT_LEAST; feature.rows()]).collect();
        let mut features = Vec::new();
        for &outfit in data.training() {
            let articles = data.outfits().articles(outfit);
            for &value in articles.iter().flat_map(|&article| attributes.for_article(article as usize)) {
                values[value as usize] += 1.0;
            }
            data.features_of(outfit, &mut features);
            for (counts, values) in known.iter_mut().zip(&features) {
                for &value in values {
                    counts[value as usize] += real(articles.len());
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "a weight needs no more digits")]
        let root = |count: &f64| count.sqrt() as f32;
        Self {
            rows: values.iter().chain(known.iter().flatten()).map(root).collect(),
            columns: values.iter().map(root).collect(),
        }
    }
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
