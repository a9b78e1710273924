//! How often the answer is an article without training outfits.
//!
//! An article has none for one of two reasons: it is unpopular and was not chosen, or it is new. The numbers of articles
//! that were chosen once and twice estimate how many are unpopular. The rest are new, and as likely as other articles. An
//! outfit that varies an earlier one keeps articles of it: counted as choices, these would hide how many were chosen once.

use std::collections::HashSet;

use super::Data;
use crate::number::real;

/// Chao's estimate of the number of unpopular articles without outfits is a lower bound. Up to this many times as many count
/// as unpopular, and more where few choices were seen.
const TAIL: f64 = 2.0;
/// An article's outfits, the latest, that the next one with it may vary.
const VARIED: usize = 32;
/// One in this many outfits is among the latest.
const LATEST: usize = 20;
/// The fewest slots of the latest outfits that can tell a share.
const LATEST_SLOTS: usize = 50;

impl Data {
    /// The estimated share of slots whose answer is an article without training outfits.
    pub(crate) fn share_of_unseen(&self) -> f64 {
        let outfits: Vec<&[u32]> =
            self.training().iter().map(|&outfit| self.outfits().articles(outfit)).collect();
        let choices = count_choices(&outfits, self.articles().len());
        let unseen = self.articles().len() - self.count_known();
        estimate(&choices, unseen, self.count_slots(self.training()))
            .max(share_new_to_latest(&outfits, unseen))
    }
}

/// How often each article was chosen. Outfits are in the order in which they were made.
fn count_choices(outfits: &[&[u32]], articles: usize) -> Vec<usize> {
    let mut choices = vec![0; articles];
    let mut with_article: Vec<Vec<usize>> = vec![Vec::new(); articles];
    for (place, outfit) in outfits.iter().enumerate() {
        for &article in *outfit {
            let with = &mut with_article[article as usize];
            let is_kept = with.iter().rev().take(VARIED).any(|&earlier| varies(outfit, outfits[earlier]));
            choices[article as usize] += usize::from(!is_kept);
            with.push(place);
        }
    }
    choices
}

/// Whether an outfit shares half of its articles, and at least two, with an earlier one.
fn varies(outfit: &[u32], earlier: &[u32]) -> bool {
    let shared = outfit.iter().filter(|article| earlier.contains(article)).count();
    shared >= 2 && 2 * shared >= outfit.len()
}

/// The share of the latest outfits' slots with an article that no earlier outfit has: what is bought changes with the season.
fn share_new_to_latest(outfits: &[&[u32]], unseen: usize) -> f64 {
    let (earlier, latest) = outfits.split_at(outfits.len() - outfits.len().div_ceil(LATEST));
    let slots = || latest.iter().copied().flatten();
    if unseen == 0 || slots().count() < LATEST_SLOTS {
        return 0.0;
    }
    let known: HashSet<&u32> = earlier.iter().copied().flatten().collect();
    real(slots().filter(|article| !known.contains(article)).count()) / real(slots().count())
}

fn estimate(choices: &[usize], unseen: usize, slots: usize) -> f64 {
    let chosen = |times: usize| real(choices.iter().filter(|count| **count == times).count());
    let (once, twice, none, articles) = (chosen(1), chosen(2), real(unseen), real(choices.len()));
    let all = real(choices.iter().sum());
    if unseen == 0 || slots == 0 {
        return 0.0;
    }
    let bound = once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0));
    // The part of all choices that articles chosen before are.
    let covered = ((all - once) / all).max(0.01);
    let tail = (TAIL * bound / covered).min(none);
    // Good and Turing: unseen articles are chosen as often as articles that were chosen once.
    let of_tail = if tail > 0.0 { once / real(slots) } else { 0.0 };
    let new = (none - tail) / (articles - none + tail);
    let share = (of_tail + new) / (1.0 + new);
    // Fewer than are passed over at least: the articles are those that outfits have, so these were not passed over.
    if none <= bound { share.max(none / articles) } else { share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_tail_is_rare_and_a_new_season_is_not() {
        let near = |counts: &[(usize, usize)], expected: f64| {
            let choices: Vec<usize> =
                counts.iter().flat_map(|&(count, articles)| vec![count; articles]).collect();
            let unseen = choices.iter().filter(|count| **count == 0).count();
            let found = estimate(&choices, unseen, choices.iter().sum());
            assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
        };
        // Forty were seen once, so the fifty that were not are rare.
        near(&[(0, 50), (1, 40), (2, 20), (10, 20)], 40.0 / 280.0);
        // All others were seen often, so ten more are new: one of eleven articles.
        near(&[(0, 10), (20, 100)], 1.0 / 11.0);
        // Half of the choices were the first of their article, so twice as many count as rare as with many outfits.
        let new = (1000.0 - 2.0 * (60.0 * 59.0 / 62.0) / 0.5) / (90.0 + 2.0 * (60.0 * 59.0 / 62.0) / 0.5);
        near(&[(0, 1000), (1, 60), (2, 30)], (0.5 + new) / (1.0 + new));
        // At least 37 should not have been seen. Five were listed, so these were not passed over: as likely as the others.
        near(&[(0, 5), (1, 40), (2, 20), (10, 1000)], (40.0_f64 / 10080.0).max(5.0 / 1065.0));
        near(&[(3, 5)], 0.0);
        near(&[(0, 5)], 0.0);
    }

    #[test]
    fn what_an_outfit_keeps_of_another_was_not_chosen_again() {
        // An outfit, twice again with another hat, and one that shares a single article.
        let outfits: [&[u32]; 4] = [&[0, 1, 2], &[0, 1, 3], &[0, 1, 4], &[0, 5, 6]];
        assert_eq!(count_choices(&outfits, 8), [2, 1, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn the_latest_outfits_say_how_much_is_new_to_them() {
        // Each of the last fifty outfits of a thousand has an article that no other has, half of its articles.
        let second = |place: u32| if place < 950 { 5 + place % 7 } else { place };
        let all: Vec<[u32; 2]> = (0..1000).map(|place| [place % 5, second(place)]).collect();
        let outfits: Vec<&[u32]> = all.iter().map(|outfit| &outfit[..]).collect();
        assert!((share_new_to_latest(&outfits, 1) - 0.5).abs() < 1e-9);
        for few in [&outfits[..0], &outfits[..1], &outfits[..20], &outfits[520..]] {
            assert!(share_new_to_latest(few, 1).abs() < 1e-9, "{} outfits say nothing", few.len());
        }
        assert!(share_new_to_latest(&outfits, 0).abs() < 1e-9, "all were seen");
    }
}
