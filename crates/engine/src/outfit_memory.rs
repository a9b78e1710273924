//! A memory of whole outfits: stylists often vary an outfit that they have made, so an article that completed similar outfits
//! is more likely.
//!
//! Training and serving ask the same code. It knows articles by their numbers in the vocabulary, and nothing of customers.

use std::{cmp::Reverse, collections::BTreeMap};

use atelier_core::domain::Mask;

use crate::pairs;

/// The numbers of a candidate, each as ln(1 + x).
pub const FEATURES: usize = 7;
/// The outfits of an article that are looked at, the latest. It bounds the time of a question: an article may be in a tenth of all
/// outfits.
const LATEST: usize = 1024;
/// Outfits, and which of them an article is in.
#[derive(Debug, Clone, PartialEq)]
pub struct OutfitMemory {
    /// Outfit by outfit, in the order in which they were made.
    outfits: Lists,
    /// By article, its outfits.
    with_article: Lists,
}

/// Lists of numbers, one after the other.
#[derive(Debug, Clone, PartialEq)]
struct Lists {
    starts: Vec<u32>,
    numbers: Vec<u32>,
}

/// An outfit that is learned from: it must not say itself what is missing.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// The missing article.
    pub target: u32,
    /// The number of its articles.
    pub size: usize,
}

/// The remembered outfits that speak for an article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    /// The visible articles that they have, in the order of the question.
    pub articles: Vec<u32>,
    /// How many they are.
    pub outfits: usize,
}

/// The candidates that remembered outfits name, ascending, with what is known of them.
pub type Candidates = Vec<(u32, [f32; FEATURES])>;

impl OutfitMemory {
    /// `articles` is the number of articles in the vocabulary.
    ///
    /// # Panics
    /// If an outfit has an article that is not in the vocabulary, or all outfits together have more than 4 billion.
    pub fn new<'a>(articles: usize, outfits: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut all = Lists { starts: vec![0], numbers: Vec::new() };
        for outfit in outfits {
            all.numbers.extend_from_slice(outfit);
            all.starts.push(number(all.numbers.len()));
        }
        let mut starts = vec![0; articles + 1];
        all.numbers.iter().for_each(|&article| starts[article as usize + 1] += 1);
        (0..articles).for_each(|article| starts[article + 1] += starts[article]);
        let (mut next, mut numbers) = (starts.clone(), vec![0; all.numbers.len()]);
        for outfit in 0..number(all.starts.len() - 1) {
            for &article in all.of(outfit) {
                let place = &mut next[article as usize];
                numbers[*place as usize] = outfit;
                *place += 1;
            }
        }
        Self { outfits: all, with_article: Lists { starts, numbers } }
    }

    /// The outfits.
    pub fn outfits(&self) -> impl Iterator<Item = &[u32]> {
        (0..number(self.outfits.starts.len() - 1)).map(|outfit| self.outfits.of(outfit))
    }

    /// The say of outfits that share two of the visible articles on those that are wanted; single articles' is in the tables. An
    /// outfit that is learned from is left out: any with these articles and its size says the same of the target.
    pub fn describe(&self, visible: &[u32], own: Option<Own>, is_wanted: impl Fn(u32) -> bool) -> Candidates {
        let rarities: Vec<f32> = visible.iter().map(|article| self.rarity(*article, own.is_some())).collect();
        let (mut said, mut named, mut left_out) = (Vec::new(), Vec::new(), own);
        for articles in self.sharing(visible) {
            let (before, mut shared, mut rare) = (named.len(), 0, 0.0);
            for &article in articles {
                if let Some(place) = visible.iter().position(|other| *other == article) {
                    shared += 1;
                    rare += rarities[place];
                } else if is_wanted(article) {
                    named.push(pairs::pack(article, number(said.len())));
                }
            }
            let is_own = |own: Own| {
                shared == visible.len() && articles.len() == own.size && articles.contains(&own.target)
            };
            if left_out.take_if(|own| is_own(*own)).is_some() {
                named.truncate(before);
            } else if named.len() > before {
                said.push(say(visible.len(), articles.len(), shared, rare));
            }
        }
        let candidates = pairs::by_first(&mut named).map(|(article, outfits)| {
            let mut sums = [1.0; FEATURES];
            for outfit in outfits {
                sums.iter_mut().zip(said[outfit as usize]).for_each(|(sum, says)| *sum += says);
            }
            (article, sums.map(f32::ln))
        });
        candidates.collect()
    }

    /// The outfits that have the article with most of the visible ones. If several have as many, those are counted whose articles
    /// are the commonest, and of equally common ones the first in the question.
    pub fn alike(&self, visible: &[u32], article: u32) -> Option<Alike> {
        let mut found: Vec<Alike> = Vec::new();
        for outfit in self.sharing(visible).iter().filter(|outfit| outfit.contains(&article)) {
            let articles: Vec<u32> = visible.iter().copied().filter(|one| outfit.contains(one)).collect();
            match found.iter_mut().find(|alike| alike.articles == articles) {
                Some(alike) => alike.outfits += 1,
                None => found.push(Alike { articles, outfits: 1 }),
            }
        }
        let place = |alike: &Alike| {
            alike.articles.iter().map(|one| visible.iter().position(|other| other == one)).collect::<Vec<_>>()
        };
        found.into_iter().max_by_key(|alike| (alike.articles.len(), alike.outfits, Reverse(place(alike))))
    }

    /// Articles that are worn with the same others as this one, and how much so: the chance to come from it, over an article that it
    /// is worn with, to the other one, where articles that are worn with everything say little.
    pub fn worn_alike(&self, article: u32) -> BTreeMap<u32, f64> {
        /// The outfits of an article that are looked at, the latest.
        const LATEST: usize = 64;
        let latest = |article: u32| {
            let all = self.with_article.of(article);
            &all[all.len().saturating_sub(LATEST)..]
        };
        let others = |article: u32| {
            let outfits = latest(article).iter().map(|outfit| self.outfits.of(*outfit));
            outfits.flatten().copied().filter(move |other| *other != article)
        };
        let count = |article: u32| f64::from(number(self.with_article.of(article).len()));
        let mut alike: BTreeMap<u32, f64> = BTreeMap::new();
        for partner in others(article) {
            for other in others(partner).filter(|other| *other != article) {
                *alike.entry(other).or_default() += 1.0 / f64::from(number(latest(partner).len()));
            }
        }
        for (other, chance) in &mut alike {
            *chance /= count(*other).sqrt();
        }
        alike
    }

    /// The outfits that share two articles with the visible ones.
    fn sharing(&self, visible: &[u32]) -> Vec<&[u32]> {
        let mut seen = Mask::none(self.outfits.starts.len());
        let mut again = seen.clone();
        for &article in visible {
            let with_article = self.with_article.of(article);
            for &outfit in &with_article[with_article.len().saturating_sub(LATEST)..] {
                if seen.contains(outfit) {
                    again.insert(outfit);
                }
                seen.insert(outfit);
            }
        }
        again.iter().map(|outfit| self.outfits.of(outfit)).collect()
    }

    /// `own` is whether the counts include the outfit that is learned from.
    #[expect(clippy::cast_precision_loss, reason = "logarithms of counts need few digits")]
    fn rarity(&self, article: u32, own: bool) -> f32 {
        let count = |outfits: &[u32]| (outfits.len() - usize::from(own)).max(1) as f32;
        (count(&self.outfits.starts) / count(self.with_article.of(article))).ln()
    }
}

/// An outfit's say on each of its articles that is not visible. Rare articles that are `shared` say more.
#[expect(clippy::cast_precision_loss, reason = "an outfit has few articles")]
fn say(visible: usize, articles: usize, shared: usize, rare: f32) -> [f32; FEATURES] {
    let overlap = shared as f32;
    let cosine = overlap / ((visible * (articles - 1)) as f32).sqrt();
    [
        1.0,
        if shared > 2 { 1.0 } else { 0.0 },
        cosine,
        cosine.powi(3),
        overlap * overlap / (articles - shared) as f32,
        rare.powi(3),
        4.0_f32.powf(overlap),
    ]
}

impl Lists {
    fn of(&self, place: u32) -> &[u32] {
        let place = place as usize;
        &self.numbers[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("outfits have fewer than 4 billion articles")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(outfits: &[&[u32]]) -> OutfitMemory {
        OutfitMemory::new(12, outfits.iter().copied())
    }

    fn articles(candidates: &Candidates) -> Vec<u32> {
        candidates.iter().map(|(article, _)| *article).collect()
    }

    #[test]
    fn outfits_that_share_two_articles_name_their_others() {
        let memory = memory(&[&[0, 1, 2, 3], &[0, 1, 2, 4, 5], &[0, 6, 7], &[8, 9]]);
        let describe = |visible: &[u32]| memory.describe(visible, None, |_| true);
        let found = describe(&[2, 0, 1, 11]);
        assert_eq!(articles(&found), [3, 4, 5]);
        // Five of four outfits, so that no article is in all.
        let rare = ((5.0_f32 / 3.0).ln() + 2.0 * (5.0_f32 / 2.0).ln()).powi(3);
        let cosine = 3.0 / 4.0_f32.sqrt() / 4.0_f32.sqrt();
        let expected = [1.0, 1.0, cosine, cosine.powi(3), 9.0 / 2.0, rare, 64.0].map(f32::ln_1p);
        for (found, expected) in found[1].1.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert_eq!(articles(&describe(&[6, 0])), [7], "two of three");
        assert!(describe(&[8, 9]).is_empty() && describe(&[0]).is_empty());
        assert_eq!(memory.describe(&[2, 0, 1, 11], None, |article| article != 4), [found[0], found[2]]);
    }

    #[test]
    fn the_outfits_that_speak_for_an_article_share_most() {
        let memory =
            memory(&[&[0, 1, 5], &[0, 1, 5], &[2, 1, 0, 5], &[3, 0, 1, 5], &[0, 1, 3, 5, 6], &[0, 5]]);
        let alike = |visible: &[u32]| memory.alike(visible, 5).map(|alike| (alike.articles, alike.outfits));
        assert_eq!(alike(&[1, 0, 9]), Some((vec![1, 0], 5)));
        assert_eq!(alike(&[0, 1, 2, 3]), Some((vec![0, 1, 3], 2)), "three articles, and twice");
        assert_eq!(alike(&[0, 9]), None, "one article says little");
    }

    /// A count that includes the outfit that is learned from tells what is missing.
    #[test]
    fn an_outfit_that_is_learned_from_says_nothing() {
        let all: [&[u32]; 6] =
            [&[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 4], &[0, 1, 2], &[0, 1, 3, 5, 6], &[7, 8, 9]];
        for (own, outfit) in all.iter().enumerate() {
            let others = [&all[..own], &all[own + 1..]].concat();
            for &target in *outfit {
                let visible: Vec<u32> = outfit.iter().copied().filter(|&article| article != target).collect();
                let left_out = Some(Own { target, size: outfit.len() });
                let left_out = memory(&all).describe(&visible, left_out, |_| true);
                let expected = memory(&others).describe(&visible, None, |_| true);
                assert_eq!(left_out, expected, "{outfit:?} without {target}");
            }
        }
    }

    #[test]
    fn articles_that_are_worn_with_the_same_others_are_alike() {
        let memory = memory(&[&[0, 1, 2], &[3, 1, 2], &[4, 1], &[4, 5], &[4, 6], &[7, 8]]);
        let alike = memory.worn_alike(0);
        assert!(alike[&3] > alike[&4], "{alike:?}");
        assert!(!alike.contains_key(&0) && !alike.contains_key(&5), "{alike:?}");
        assert!(memory.worn_alike(9).is_empty());
    }

    #[test]
    fn only_the_latest_outfits_of_an_article_are_looked_at() {
        let mut outfits: Vec<&[u32]> = vec![&[0, 1, 2]];
        outfits.resize(LATEST, &[0, 1, 3]);
        let describe = |outfits: &[&[u32]]| articles(&memory(outfits).describe(&[0, 1], None, |_| true));
        assert_eq!(describe(&outfits), [2, 3]);
        outfits.push(&[0, 1, 3]);
        assert_eq!(describe(&outfits), [3]);
    }
}
