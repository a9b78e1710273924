//! Tables whose rows are sums: an article's own vector, and one for each of its values, such as its type and colour.
//!
//! A sum is a tensor of the model like any other, so everything reads it as it would read a table that was learned as
//! a whole. The optimiser moves what it is made of.

use std::{mem, ops::Range};

use rayon::prelude::*;

use super::{
    simd::{add, add_scaled, vectorised},
    weights::{Gradients, Param, Tensor, Weights},
};

/// Columns that are added up at once: those of all values fit into a core's cache.
const STRIPE: usize = 64;
/// Articles per task.
const ARTICLES: usize = 4096;

/// Which article has which values.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ValueRows {
    by_article: Lists,
    by_value: Lists,
    /// By value, what its vector is multiplied by in the columns of the match. With a smaller one it is learned more
    /// slowly.
    factors: Vec<f32>,
    /// The numbers of each article's embedding, article by article, and how many each has.
    embeddings: Vec<f32>,
    components: usize,
}

/// Lists of numbers, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
struct Lists {
    /// Where each list begins, and the end.
    starts: Vec<usize>,
    items: Vec<u32>,
}

impl ValueRows {
    /// `factors` has one for each value; the rows are the articles' values.
    pub(crate) fn new<'a>(factors: Vec<f32>, rows: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut by_article = Lists { starts: vec![0], items: Vec::new() };
        let mut articles = vec![Vec::new(); factors.len()];
        for (article, values) in (0..).zip(rows) {
            for &value in values {
                articles[value as usize].push(article);
            }
            by_article.push(values);
        }
        let mut by_value = Lists { starts: vec![0], items: Vec::new() };
        for articles in &articles {
            by_value.push(articles);
        }
        Self { by_article, by_value, factors, embeddings: Vec::new(), components: 0 }
    }

    /// `embeddings` has this many numbers for each article.
    pub(crate) fn with_embeddings(self, components: usize, embeddings: Vec<f32>) -> Self {
        Self { embeddings, components, ..self }
    }

    /// The numbers of an article's embedding; none of the blank or padding.
    pub(crate) fn embedding(&self, article: usize) -> &[f32] {
        self.embeddings.get(article * self.components..(article + 1) * self.components).unwrap_or_default()
    }

    /// An article's values; none of the blank or padding.
    pub(crate) fn of_article(&self, article: usize) -> &[u32] {
        self.by_article.list(article)
    }

    /// The factor of a value's vector in the columns of the match.
    pub(crate) fn factor(&self, value: usize) -> f32 {
        self.factors[value]
    }

    /// The articles with a value.
    pub(crate) fn with_value(&self, value: usize) -> &[u32] {
        self.by_value.list(value)
    }

    /// A number for each value, so that the sums over articles' values are near these numbers: least squares with a
    /// penalty, by conjugate gradients.
    pub(crate) fn explain(&self, numbers: &[f32]) -> Vec<f32> {
        const PENALTY: f64 = 1.0;
        const ROUNDS: usize = 100;
        let sums = |of_values: &[f64]| -> Vec<f64> {
            let sum = |article| self.of_article(article).iter().map(|&value| of_values[value as usize]).sum();
            (0..numbers.len()).map(sum).collect()
        };
        let pass_back = |of_articles: &[f64]| -> Vec<f64> {
            let sum =
                |value| self.with_value(value).iter().map(|&article| of_articles[article as usize]).sum();
            (0..self.by_value.len()).map(sum).collect()
        };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut found = vec![0.0; self.by_value.len()];
        let mut rest = pass_back(&numbers.iter().copied().map(f64::from).collect::<Vec<_>>());
        let mut direction = rest.clone();
        let mut error = dot(&rest, &rest);
        let enough = 1e-12 * error;
        for _ in 0..ROUNDS {
            if error <= enough {
                break;
            }
            let mut curved = pass_back(&sums(&direction));
            curved.iter_mut().zip(&direction).for_each(|(to, from)| *to += PENALTY * from);
            let step = error / dot(&direction, &curved);
            found.iter_mut().zip(&direction).for_each(|(to, from)| *to += step * from);
            rest.iter_mut().zip(&curved).for_each(|(to, from)| *to -= step * from);
            let before = mem::replace(&mut error, dot(&rest, &rest));
            direction.iter_mut().zip(&rest).for_each(|(to, from)| *to = from + error / before * *to);
        }
        #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
        found.into_iter().map(|value| value as f32).collect()
    }
}

impl Lists {
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn push(&mut self, items: &[u32]) {
        self.items.extend_from_slice(items);
        self.starts.push(self.items.len());
    }

    /// Empty if there is none at this place.
    fn list(&self, place: usize) -> &[u32] {
        let end = self.starts.get(place + 1).copied();
        end.map_or(&[], |end| &self.items[self.starts[place]..end])
    }
}

/// A table of sums. An article's own vector may be narrower: it is a part of the first columns only. The others are the
/// match's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Composed {
    pub(crate) sum: Param,
    pub(crate) own: Param,
    pub(crate) values: Param,
    /// Added to the own vector by each number of an embedding, if articles have embeddings.
    pub(crate) embedding: Option<Param>,
}

impl Composed {
    /// Sums up, for all articles or `only` for some. Articles that are not `kept` are made of their values alone; rows past
    /// its end are kept.
    pub(crate) fn compose(
        &self,
        weights: &mut Weights,
        rows: &ValueRows,
        kept: Option<&[bool]>,
        only: Option<&[u32]>,
    ) {
        let mut sums = mem::take(&mut weights.0[self.sum.0].data);
        let (own, values) = (weights.tensor(self.own), weights.tensor(self.values));
        let embedding = self.embedding.map(|embedding| weights.tensor(embedding));
        let (width, own_width) = (columns(values), columns(own));
        let stripes = stripes(width, own_width);
        let sum_up = |first: usize, sums: &mut [f32], own: &[f32]| {
            let articles = sums.chunks_exact_mut(width).zip(own.chunks_exact(own_width));
            for (article, (sum, own)) in (first..).zip(articles) {
                sum.fill(0.0);
                if is_kept(kept, article) {
                    sum[..own_width].copy_from_slice(own);
                }
                if let Some(embedding) = embedding {
                    add_embedding(&mut sum[..own_width], embedding, rows.embedding(article));
                }
            }
            for stripe in &stripes {
                add_values(sums, first, &values.data, rows, stripe);
            }
        };
        match only {
            Some(only) => {
                for article in only.iter().map(|&article| article as usize) {
                    let sum = &mut sums[article * width..][..width];
                    sum_up(article, sum, &own.data[article * own_width..][..own_width]);
                }
            }
            None => sums
                .par_chunks_mut(ARTICLES * width)
                .zip(own.data.par_chunks(ARTICLES * own_width))
                .enumerate()
                .for_each(|(part, (sums, own))| sum_up(part * ARTICLES, sums, own)),
        }
        weights.0[self.sum.0].data = sums;
    }

    /// Passes the gradient of the sums on to what they are made of; `only` some articles have one.
    pub(crate) fn pass_on(
        &self,
        gradients: &mut Gradients,
        weights: &Weights,
        rows: &ValueRows,
        kept: Option<&[bool]>,
        only: Option<&[u32]>,
    ) {
        let sums = mem::take(&mut gradients.dense[self.sum.0]);
        if sums.is_empty() {
            return;
        }
        let (width, own_width) = (columns(weights.tensor(self.values)), columns(weights.tensor(self.own)));
        let articles = only.map_or_else(|| (0..).take(sums.len() / width).collect(), <[u32]>::to_vec);
        let stripes = stripes(width, own_width);
        let collect = |stripe| collect_values(&sums, &articles, rows, stripe);
        let of_stripes: Vec<_> = stripes.par_iter().map(collect).collect();
        let to_values = gradients.dense_mut(self.values, weights).par_chunks_mut(width);
        to_values.enumerate().for_each(|(value, to)| {
            for (Stripe { columns, .. }, from) in stripes.iter().zip(&of_stripes) {
                let to = &mut to[columns.clone()];
                add(to, &from[value * to.len()..][..to.len()]);
            }
        });
        let of_own = |article: usize| &sums[article * width..][..own_width];
        if let Some(embedding) = self.embedding {
            let to_embedding = gradients.dense_mut(embedding, weights).par_chunks_mut(own_width);
            to_embedding.enumerate().for_each(|(component, to)| {
                for article in articles.iter().map(|&article| article as usize) {
                    if let Some(&number) = rows.embedding(article).get(component) {
                        add_scaled(to, of_own(article), number);
                    }
                }
            });
        }
        let to_own = gradients.dense_mut(self.own, weights);
        for article in articles.iter().map(|&article| article as usize) {
            if is_kept(kept, article) {
                add(&mut to_own[article * own_width..][..own_width], of_own(article));
            }
        }
    }
}

/// Columns of a table of sums.
struct Stripe {
    columns: Range<usize>,
    /// Of the table.
    width: usize,
    /// Whether they are the match's, in which values have factors.
    matched: bool,
}

impl Stripe {
    /// The factor of a value's vector.
    #[expect(clippy::inline_always, reason = "is called from vectorised loops")]
    #[inline(always)]
    fn factor(&self, rows: &ValueRows, value: u32) -> f32 {
        if self.matched { rows.factor(value as usize) } else { 1.0 }
    }
}

/// All columns, in stripes that have columns of the own vector or of the match.
fn stripes(width: usize, own_width: usize) -> Vec<Stripe> {
    let starts = (0..own_width).step_by(STRIPE).chain((own_width..width).step_by(STRIPE));
    let stripe = |start: usize| {
        let matched = start >= own_width;
        let end = if matched { width } else { own_width };
        Stripe { columns: start..end.min(start + STRIPE), width, matched }
    };
    starts.map(stripe).collect()
}

vectorised! {
    /// Adds the values' vectors to the sums of the articles from `first` on.
    fn add_values<'a>(
        sums: &'a mut [f32],
        first: usize,
        values: &'a [f32],
        rows: &'a ValueRows,
        stripe: &'a Stripe,
    ) {
        let Stripe { columns, width, .. } = stripe;
        for (article, sum) in (first..).zip(sums.chunks_exact_mut(*width)) {
            let sum = &mut sum[columns.clone()];
            // A whole stripe stays in registers.
            if let Ok(whole) = <&mut [f32; STRIPE]>::try_from(&mut *sum) {
                let mut total = *whole;
                for &value in rows.of_article(article) {
                    let factor = stripe.factor(rows, value);
                    let vector = &values[value as usize * width + columns.start..][..STRIPE];
                    for lane in 0..STRIPE {
                        total[lane] += factor * vector[lane];
                    }
                }
                *whole = total;
                continue;
            }
            for &value in rows.of_article(article) {
                let factor = stripe.factor(rows, value);
                let vector = &values[value as usize * width..][columns.clone()];
                for (to, from) in sum.iter_mut().zip(vector) {
                    *to += factor * from;
                }
            }
        }
    }
}

vectorised! {
    /// By value, the sums' gradients of all articles that have it.
    fn collect_values<'a>(
        sums: &'a [f32],
        articles: &'a [u32],
        rows: &'a ValueRows,
        stripe: &'a Stripe,
    ) -> Vec<f32> {
        let Stripe { columns, width, .. } = stripe;
        let mut values = vec![0.0; rows.factors.len() * columns.len()];
        for &article in articles {
            let sum = &sums[article as usize * width..][columns.clone()];
            for &value in rows.of_article(article as usize) {
                let factor = stripe.factor(rows, value);
                let to = &mut values[value as usize * columns.len()..][..columns.len()];
                for (to, from) in to.iter_mut().zip(sum) {
                    *to += factor * from;
                }
            }
        }
        values
    }
}

/// Adds the vectors of an embedding's numbers, each times its number.
pub(crate) fn add_embedding(to: &mut [f32], vectors: &Tensor, numbers: &[f32]) {
    for (vector, number) in vectors.data.chunks_exact(to.len()).zip(numbers) {
        add_scaled(to, vector, *number);
    }
}

fn is_kept(kept: Option<&[bool]>, article: usize) -> bool {
    kept.and_then(|kept| kept.get(article)).is_none_or(|kept| *kept)
}

fn columns(tensor: &Tensor) -> usize {
    tensor.shape.get(1).copied().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_explain_what_their_articles_have_in_common() {
        // Two values with 40 articles each, and one article with both.
        let lists: Vec<Vec<u32>> =
            (0..40).map(|_| vec![0]).chain((0..40).map(|_| vec![1])).chain([vec![0, 1]]).collect();
        let rows = ValueRows::new(vec![1.0; 2], lists.iter().map(Vec::as_slice));
        let numbers: Vec<f32> = (0..81).map(|at| [-4.0, 1.0, -3.0][at / 40]).collect();
        let found = rows.explain(&numbers);
        // (n + 1 + penalty) a + b = sum; by hand: 42 a + b = -163, a + 42 b = 37.
        assert!((found[0] + 3.904_139).abs() < 1e-4 && (found[1] - 0.973_908).abs() < 1e-4, "{found:?}");
    }
}
