//! A method's personas by what is typical of them.

use std::time::Duration;

use super::{
    MOST_OUTFITS,
    mixes::{Mix, mix_of, mixes_of},
};
use crate::{
    domain::Method,
    models::engine::{AskError, Serving},
    store::{Store, StoreError},
};

/// All personas of a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Portrait {
    pub personas: Vec<Persona>,
    /// How many articles, and how many stored outfits, were looked at.
    pub articles: usize,
    pub outfits: usize,
    /// The largest share that an article has on the average; of an even mix it is `even`.
    pub mean_largest: f32,
}

/// One persona.
#[derive(Debug, Clone, PartialEq)]
pub struct Persona {
    /// By the vocabulary's indices, those with the largest share of it, and the shares.
    pub articles: Vec<(u32, f32)>,
    /// The same of stored outfits, by the numbers that the store knows them by: what they are is looked up when
    /// they are shown, since a customer may be erased at any time.
    pub outfits: Vec<(i64, f32)>,
    /// Its mean share of the articles.
    pub share: f32,
    /// How many articles have no larger share of another.
    pub leads: usize,
}

/// How many typical ones are kept: a few more outfits than are shown, some of which may be gone by then.
const ARTICLES: usize = 6;
const OUTFITS: usize = 6;

/// Nobody waits for it, and everybody else goes first.
const PATIENCE: Duration = Duration::from_mins(1);

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum PortraitError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Portrait {
    /// What each persona's share would be if all were alike.
    pub fn even(&self) -> f32 {
        1.0 / self.personas.iter().fold(0.0, |count: f32, _| count + 1.0).max(1.0)
    }

    /// The largest share that any article has of any persona.
    pub fn largest(&self) -> Option<(usize, u32, f32)> {
        let firsts = self.personas.iter().enumerate();
        let firsts = firsts.filter_map(|(place, persona)| {
            persona.articles.first().map(|&(index, share)| (place, index, share))
        });
        firsts.max_by(|one, other| one.2.total_cmp(&other.2))
    }

    /// What is known of the articles is taken from `before`: they do not change, and asking about them takes longest.
    pub(super) async fn new(
        serving: &Serving,
        method: Method,
        before: Option<&Portrait>,
        store: &Store,
        mut told: impl FnMut(usize, usize),
    ) -> Result<Self, PortraitError> {
        let vocabulary = serving.release().vocabulary();
        let records = store.outfits().first(MOST_OUTFITS).await?;
        let looked = records.len();
        let worn: Vec<(i64, Vec<u32>)> = records
            .into_iter()
            .map(|record| {
                let known = record.outfit.articles().iter().filter_map(|id| vocabulary.index_of(id.as_str()));
                (record.seq, known.collect::<Vec<_>>())
            })
            .filter(|(_, articles)| !articles.is_empty())
            .collect();
        let (numbers, outfits): (Vec<i64>, Vec<Vec<u32>>) = worn.into_iter().unzip();
        let articles = if before.is_some() { 0 } else { vocabulary.len() };
        let total = articles + outfits.len();

        let mut portrait = if let Some(before) = before {
            before.clone()
        } else {
            let each: Vec<Vec<u32>> = (0..).take(articles).map(|index| vec![index]).collect();
            Self::of_articles(&mixes_of(serving, method, &each, PATIENCE, |done| told(done, total)).await?)
        };
        let mixes =
            mixes_of(serving, method, &outfits, PATIENCE, |done| told(articles + done, total)).await?;
        for (place, persona) in portrait.personas.iter_mut().enumerate() {
            persona.outfits = largest(numbers.iter().copied().zip(&mixes), place, OUTFITS);
        }
        portrait.outfits = looked;
        Ok(portrait)
    }

    fn of_articles(mixes: &[Mix]) -> Self {
        let mean = mix_of(mixes).unwrap_or_default();
        let most = |mix: &Mix| mix.iter().copied().fold(0.0, f32::max);
        let persona = |(place, &share): (usize, &f32)| Persona {
            articles: largest((0..).zip(mixes), place, ARTICLES),
            outfits: Vec::new(),
            share,
            leads: mixes.iter().filter(|mix| mix[place] >= most(mix)).count(),
        };
        let personas = mean.iter().enumerate().map(persona).collect();
        let largest: Vec<Mix> = mixes.iter().map(|mix| vec![most(mix)]).collect();
        let mean_largest = mix_of(&largest).map_or(0.0, |mean| mean[0]);
        Self { personas, articles: mixes.len(), outfits: 0, mean_largest }
    }
}

/// Those with the largest share of a persona, the largest first; equal ones in their order.
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
    fn what_is_typical_has_the_largest_share() {
        let mixes = [vec![0.5, 0.5], vec![0.9, 0.1], vec![0.2, 0.8], vec![0.9, 0.1]];
        let portrait = Portrait::of_articles(&mixes);
        let first = &portrait.personas[0];
        assert_eq!(first.articles, [(1, 0.9), (3, 0.9), (0, 0.5), (2, 0.2)]);
        assert_eq!((first.leads, portrait.personas[1].leads), (3, 2), "an even one leads twice");
        assert!((first.share - 0.625).abs() < 1e-6);
        assert!((portrait.mean_largest - 0.775).abs() < 1e-6 && (portrait.even() - 0.5).abs() < 1e-6);
        assert_eq!(portrait.largest().map(|(place, index, _)| (place, index)), Some((0, 1)));
    }
}
