//! Articles without outfits, by articles that they are like.

use rayon::prelude::*;

use super::{Answers, Question};
use crate::{data::Data, number::real};

/// How many articles an article without outfits is like.
const NEAREST: usize = 10;

/// Another baseline, in which an article that no training outfit has is chosen as often as the mean of some others.
#[derive(Debug)]
pub struct Alike<'a, A> {
    inner: &'a A,
    /// The first article without outfits; the others follow it.
    known: usize,
    /// For each of them those that it is like.
    like: Vec<Vec<u32>>,
}

impl<'a, A> Alike<'a, A> {
    /// An article is like all of its type.
    pub fn of_type(data: &Data, inner: &'a A) -> Self {
        Self::new(data, inner, |_, others| others)
    }

    /// An article is like those of its type that have most of its attributes' values.
    pub fn by_attributes(data: &Data, inner: &'a A) -> Self {
        Self::new(data, inner, |article, mut others| {
            let values = |article: u32| data.attributes().for_article(article as usize);
            others.sort_by_cached_key(|&other| std::cmp::Reverse(shared(values(article), values(other))));
            others.truncate(NEAREST);
            others
        })
    }

    fn new(data: &Data, inner: &'a A, nearest: impl Fn(u32, Vec<u32>) -> Vec<u32> + Sync) -> Self {
        let known = data.count_known();
        let like = |article: usize| {
            let article = u32::try_from(article).expect("articles are counted in 32 bits");
            let of_type = data.articles_of_type(data.type_of(article));
            nearest(article, of_type.iter().copied().filter(|&other| data.is_known(other)).collect())
        };
        Self { inner, known, like: (known..data.articles().len()).into_par_iter().map(like).collect() }
    }
}

/// The share of two articles' values that both have, in millionths. Both are ascending.
fn shared(one: &[u32], other: &[u32]) -> usize {
    let both = one.iter().filter(|value| other.binary_search(value).is_ok()).count();
    1_000_000 * both / (one.len() + other.len() - both).max(1)
}

impl<A: Answers> Answers for Alike<'_, A> {
    fn knows_type(&self) -> bool {
        self.inner.knows_type()
    }

    fn answer(&self, question: &Question<'_>, probabilities: &mut [f64]) {
        self.inner.answer(question, probabilities);
        let (known, new) = probabilities.split_at_mut(self.known);
        for (probability, like) in new.iter_mut().zip(&self.like) {
            // An article of a type that no known article has keeps what it has.
            if !like.is_empty() {
                *probability =
                    like.iter().map(|&other| known[other as usize]).sum::<f64>() / real(like.len());
            }
        }
        let total: f64 = probabilities.iter().sum();
        for probability in probabilities {
            *probability /= total;
        }
    }
}
