//! Models' inputs from the articles' embeddings: their principal components, each with a variance of one.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use atelier_core::domain::{Article, Embedding, Projection};
use rayon::prelude::*;

use crate::random::{Stream, Table};

/// The most components of a list.
const MOST: usize = 64;
/// The most articles that they are learned from: every so many, if there are more.
const LEARNED_FROM: usize = 20_000;
/// Rounds of the search for the components; a seed for its beginning.
const ROUNDS: usize = 60;
const SEED: u64 = 1;
/// A component with a smaller share of the variance is rounding.
const LEAST_SHARE: f64 = 1e-9;
/// Rows of the covariance for one task.
const STRIPE: usize = 32;

/// By the lists' names. A list that fewer than two of the articles have is left out.
///
/// # Errors
/// If lists of one name differ in length.
pub(super) fn learn(articles: &[Article]) -> Result<BTreeMap<String, Projection>> {
    let mut all: BTreeMap<&str, (&Article, Vec<&[f32]>)> = BTreeMap::new();
    for article in articles {
        for (name, list) in article.embedding().into_iter().flat_map(Embedding::lists) {
            let (first, lists) = all.entry(name).or_insert_with(|| (article, Vec::new()));
            if let Some(length) =
                lists.first().map(|first| first.len()).filter(|length| *length != list.len())
            {
                bail!(
                    "the embedding{} of article {:?} has {length} numbers, that of {:?} {}: all must come from one encoder",
                    Embedding::show_name(name),
                    first.id,
                    article.id,
                    list.len()
                );
            }
            lists.push(list);
        }
    }
    let learned = all.into_iter().filter_map(|(name, (_, lists))| {
        let (length, step) = (lists[0].len(), lists.len().div_ceil(LEARNED_FROM));
        let learned: Vec<&[f32]> = lists.into_iter().step_by(step).collect();
        Some((name.to_owned(), principal_components(&learned, length)?))
    });
    Ok(learned.collect())
}

fn principal_components(embeddings: &[&[f32]], length: usize) -> Option<Projection> {
    let count = real(embeddings.len());
    let mut mean = vec![0.0; length];
    for embedding in embeddings {
        mean.iter_mut().zip(*embedding).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    for sum in &mut mean {
        *sum /= count;
    }
    let covariance = covariance(embeddings, &mean);
    let variance: f64 = (0..length).map(|at| covariance[at * length + at]).sum();
    let wanted = MOST.min(length).min(embeddings.len().saturating_sub(1));
    let mut stream = Stream::new(SEED, Table::Embedding, 0);
    let mut vectors: Vec<Vec<f64>> =
        (0..wanted).map(|_| stream.normals(length, 1.0).into_iter().map(f64::from).collect()).collect();
    make_orthonormal(&mut vectors);
    for _ in 0..ROUNDS {
        vectors = vectors.par_iter().map(|vector| multiply(&covariance, vector)).collect();
        make_orthonormal(&mut vectors);
    }
    let scaled = vectors.iter().filter_map(|vector| {
        let own = dot(vector, &multiply(&covariance, vector));
        (own > LEAST_SHARE * variance).then(|| vector.iter().map(|x| single(x / own.sqrt())).collect())
    });
    let components: Vec<Vec<f32>> = scaled.collect();
    let mean = mean.into_iter().map(single).collect();
    (!components.is_empty()).then_some(Projection { mean, components })
}

fn covariance(embeddings: &[&[f32]], mean: &[f64]) -> Vec<f64> {
    let length = mean.len();
    let mut covariance = vec![0.0; length * length];
    covariance.par_chunks_mut(STRIPE * length).enumerate().for_each(|(stripe, rows)| {
        let mut centred = vec![0.0; length];
        for embedding in embeddings {
            let numbers = centred.iter_mut().zip(*embedding).zip(mean);
            numbers.for_each(|((to, x), mean)| *to = f64::from(*x) - mean);
            for (row, by) in rows.chunks_exact_mut(length).zip(&centred[stripe * STRIPE..]) {
                row.iter_mut().zip(&centred).for_each(|(sum, x)| *sum += by * x);
            }
        }
        for sum in rows {
            *sum /= real(embeddings.len());
        }
    });
    covariance
}

fn multiply(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(vector.len()).map(|row| dot(row, vector)).collect()
}

/// By Gram and Schmidt, twice for precision. What is left of a vector within the others' space becomes zero.
fn make_orthonormal(vectors: &mut [Vec<f64>]) {
    for at in 0..vectors.len() {
        let (before, rest) = vectors.split_at_mut(at);
        let own = &mut rest[0];
        let length = dot(own, own).sqrt();
        for _ in 0..2 {
            for other in &*before {
                let shared = dot(own, other);
                own.iter_mut().zip(other).for_each(|(to, from)| *to -= shared * from);
            }
        }
        let left = dot(own, own).sqrt();
        let factor = if left > 1e-10 * length { 1.0 / left } else { 0.0 };
        for x in own {
            *x *= factor;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn real(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, reason = "models compute in single precision")]
fn single(number: f64) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::ArticleId;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{assert_has, near};

    fn article(at: usize, embedding: &Value) -> Article {
        let Value::Object(attributes) = json!({"embedding": embedding}) else { unreachable!() };
        Article::new(ArticleId::new(format!("a-{at}")).unwrap(), "hat", attributes).unwrap()
    }

    #[test]
    fn components_have_unit_variance_and_no_correlation() {
        // Of eight numbers three are sums of the others, and one is always 2.
        let numbers = |at: usize| {
            let x: Vec<f64> =
                (0..4).map(|k| (real(at * (k + 2) * 7 % 31) - 15.0) * [9.0, 4.0, 2.0, 1.0][k]).collect();
            json!([x[0], x[1], x[2], x[3], x[0] + x[1], x[2] - x[0], x[3] + 3.0 * x[1], 2.0])
        };
        let articles: Vec<Article> = (0..300).map(|at| article(at, &numbers(at))).collect();
        let projections = learn(&articles).unwrap();
        let projection = &projections[""];
        assert_eq!((projection.mean.len(), projection.components.len()), (8, 4), "the rank");
        let list = |article: &Article| article.embedding().unwrap().list("").unwrap().to_vec();
        let project = |article| projection.project(&list(article)).unwrap();
        let projected: Vec<Vec<f32>> = articles.iter().map(project).collect();
        for (one, two) in (0..4).flat_map(|one| (0..4).map(move |two| (one, two))) {
            let product = |row: &Vec<f32>| f64::from(row[one]) * f64::from(row[two]);
            let mean = projected.iter().map(product).sum::<f64>() / 300.0;
            near(mean, if one == two { 1.0 } else { 0.0 }, 2e-2);
        }
        assert_eq!(learn(&articles).unwrap(), projections, "the same again");
    }

    #[test]
    fn embeddings_come_from_one_encoder() {
        assert_eq!(learn(&[]).unwrap(), BTreeMap::new());
        assert_eq!(learn(&[article(0, &json!([1, 2]))]).unwrap(), BTreeMap::new(), "one varies in nothing");
        let two = [json!({"image": [1], "text": [1, 2]}), json!({"text": [3, 1]}), json!({"image": [5]})];
        let two: Vec<Article> = two.iter().enumerate().map(|(at, two)| article(at, two)).collect();
        let means = learn(&two).unwrap().into_iter().map(|(name, learned)| (name, learned.mean));
        assert_eq!(means.collect::<Vec<_>>(), [("image".into(), vec![3.0]), ("text".into(), vec![2.0, 1.5])]);
        let error = learn(&[article(0, &json!([1, 2])), article(1, &json!([1]))]).unwrap_err().to_string();
        assert_has(&error, &["the embedding of article \"a-0\" has 2 numbers, that of \"a-1\" 1"]);
    }
}
