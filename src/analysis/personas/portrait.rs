//! A method's personas with their typical articles and outfits.

use std::{sync::Arc, time::Duration};

use atelier_core::domain::Method;
use atelier_engine::inference::{Articles, Serving};

use super::{
    MOST_OUTFITS,
    mixes::{Mix, mean_mix, mixes_of},
};
use crate::platform::{db::Store, fault::ServiceError};

#[derive(Debug, Clone, PartialEq)]
pub struct Portrait {
    pub personas: Vec<Persona>,
    /// The number of articles, and of stored outfits, behind the portrait.
    pub articles: usize,
    pub outfits: usize,
    /// The mean of the articles' largest shares. In even mixes it would be [`Portrait::even`].
    pub mean_largest: f32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Persona {
    /// The articles with the largest shares of it, by vocabulary index.
    pub articles: Vec<(u32, f32)>,
    /// The stored outfits with the largest shares of it, by their numbers in the store. Pages look the outfits up when
    /// they show them, as a customer may be erased at any time.
    pub outfits: Vec<(i64, f32)>,
    /// Its mean share of the articles.
    pub share: f32,
    /// The number of articles with no larger share of another persona.
    pub leads: usize,
}

/// Typical articles and outfits to keep: more outfits than pages show, as some may be erased.
const ARTICLES: usize = 6;
const OUTFITS: usize = 6;

/// Long, as completions have priority.
const PATIENCE: Duration = Duration::from_mins(1);

impl Portrait {
    /// Each persona's share in an even mix.
    pub fn even(&self) -> f32 {
        1.0 / self.personas.iter().fold(0.0, |count: f32, _| count + 1.0).max(1.0)
    }

    /// The largest share of any article: the persona's position, the article's index and the share.
    pub fn largest(&self) -> Option<(usize, u32, f32)> {
        let firsts = self.personas.iter().enumerate();
        let firsts = firsts.filter_map(|(position, persona)| {
            persona.articles.first().map(|&(index, share)| (position, index, share))
        });
        firsts.max_by(|one, other| one.2.total_cmp(&other.2))
    }

    /// Takes the articles from `before`, if there is one: they do not change, and asking about them takes longest.
    pub(super) async fn new(
        serving: &Serving,
        articles: &Arc<Articles>,
        method: Method,
        before: Option<&Portrait>,
        store: &Store,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Self, ServiceError> {
        let vocabulary = serving.release().vocabulary();
        let records = store.outfits().first(MOST_OUTFITS).await?;
        let searched = records.len();
        let outfits: Vec<(i64, Vec<u32>)> = records
            .into_iter()
            .map(|record| {
                let known = record.outfit.articles().iter().filter_map(|id| vocabulary.index_of(id.as_str()));
                (
                    record.seq,
                    known.filter_map(|index| articles.position_in_vocabulary(index)).collect::<Vec<_>>(),
                )
            })
            .filter(|(_, articles)| !articles.is_empty())
            .collect();
        let (numbers, outfits): (Vec<i64>, Vec<Vec<u32>>) = outfits.into_iter().unzip();
        let alone = if before.is_some() { 0 } else { vocabulary.len() };
        let total = alone + outfits.len();

        let mut portrait = if let Some(before) = before {
            before.clone()
        } else {
            let each =
                (0..).take(alone).map(|index| articles.position_in_vocabulary(index).into_iter().collect());
            let each: Vec<Vec<u32>> = each.collect();
            let mixes =
                mixes_of(serving, articles, method, &each, PATIENCE, |done| progress(done, total)).await?;
            Self::from_articles(&mixes)
        };
        let mixes =
            mixes_of(serving, articles, method, &outfits, PATIENCE, |done| progress(alone + done, total))
                .await?;
        for (position, persona) in portrait.personas.iter_mut().enumerate() {
            persona.outfits = largest(numbers.iter().copied().zip(&mixes), position, OUTFITS);
        }
        portrait.outfits = searched;
        Ok(portrait)
    }

    fn from_articles(mixes: &[Mix]) -> Self {
        let mean = mean_mix(mixes).unwrap_or_default();
        let most = |mix: &Mix| mix.iter().copied().fold(0.0, f32::max);
        let persona = |(position, &share): (usize, &f32)| Persona {
            articles: largest((0..).zip(mixes), position, ARTICLES),
            outfits: Vec::new(),
            share,
            leads: mixes.iter().filter(|mix| mix[position] >= most(mix)).count(),
        };
        let personas = mean.iter().enumerate().map(persona).collect();
        let largest: Vec<Mix> = mixes.iter().map(|mix| vec![most(mix)]).collect();
        let mean_largest = mean_mix(&largest).map_or(0.0, |mean| mean[0]);
        Self { personas, articles: mixes.len(), outfits: 0, mean_largest }
    }
}

/// The items with the largest shares of a persona, the largest first; equal ones in their order.
fn largest<'a, T>(mixes: impl Iterator<Item = (T, &'a Mix)>, persona: usize, most: usize) -> Vec<(T, f32)> {
    let mut shares: Vec<(T, f32)> =
        mixes.filter_map(|(which, mix)| mix.get(persona).map(|share| (which, *share))).collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    shares.truncate(most);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_articles_have_the_largest_shares() {
        let mixes = [vec![0.5, 0.5], vec![0.9, 0.1], vec![0.2, 0.8], vec![0.9, 0.1]];
        let portrait = Portrait::from_articles(&mixes);
        let first = &portrait.personas[0];
        assert_eq!(first.articles, [(1, 0.9), (3, 0.9), (0, 0.5), (2, 0.2)]);
        assert_eq!((first.leads, portrait.personas[1].leads), (3, 2), "an even mix leads twice");
        assert!((first.share - 0.625).abs() < 1e-6);
        assert!((portrait.mean_largest - 0.775).abs() < 1e-6 && (portrait.even() - 0.5).abs() < 1e-6);
        assert_eq!(portrait.largest().map(|(position, index, _)| (position, index)), Some((0, 1)));
    }
}
