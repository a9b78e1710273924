//! Outfits that repeat one another: a look that was stored for several customers, or with one article replaced. A model that has
//! learned one of them knows the answers that another one asks for, so splits are drawn of whole groups.

use std::{
    collections::{HashMap, HashSet},
    iter,
};

use crate::random::{Table, in_drawn_order, splitmix};

/// From this many articles on, outfits that share all but one repeat one another, too.
const NEAR: usize = 4;
/// The same for people.
pub(crate) const REPEATED: &str = "the same articles, or all but one of four or more";

/// Outfits by number, each in one group: an outfit with those that repeat it. Repeats of repeats are not followed, since
/// everything in a shop of basics is near something.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// By outfit, the first one of its group.
    first: Vec<u32>,
}

/// Repeats that were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repeated {
    /// Outfits that are not the first of their group.
    pub outfits: usize,
    /// The outfits of the largest group.
    pub largest: usize,
}

impl Groups {
    /// `outfits` are lists of articles.
    pub(crate) fn new<'a>(outfits: impl Iterator<Item = &'a [u32]>) -> Self {
        let (mut same, mut near) = (HashMap::new(), HashMap::new());
        let mut first: Vec<u32> = Vec::new();
        for (outfit, articles) in (0..).zip(outfits) {
            let whole = keys(articles).next().unwrap_or_default();
            let found = same.get(&whole).copied();
            let found = found.or_else(|| keys(articles).find_map(|key| near.get(&key).copied()));
            if found.is_none() {
                keys(articles).for_each(|key| _ = near.entry(key).or_insert(outfit));
            }
            let leader = found.unwrap_or(outfit);
            same.entry(whole).or_insert(leader);
            first.push(leader);
        }
        Self { first }
    }

    /// The first outfit of an outfit's group.
    pub(crate) fn first(&self, outfit: u32) -> u32 {
        self.first[outfit as usize]
    }

    pub(crate) fn count(&self) -> Repeated {
        let mut sizes = HashMap::<u32, usize>::new();
        self.first.iter().for_each(|first| *sizes.entry(*first).or_default() += 1);
        Repeated {
            outfits: self.first.len() - sizes.len(),
            largest: sizes.into_values().max().unwrap_or_default(),
        }
    }

    /// Draws up to `count` of these outfits, in whole groups as long as they fit, and returns them in ascending order.
    pub(crate) fn choose(&self, seed: u64, table: Table, from: &[u32], count: usize) -> Vec<u32> {
        let mut members = HashMap::<u32, Vec<u32>>::new();
        for &outfit in from {
            members.entry(self.first(outfit)).or_default().push(outfit);
        }
        let leaders: Vec<u32> = members.keys().copied().collect();
        let mut chosen = Vec::with_capacity(count);
        for leader in in_drawn_order(seed, table, &leaders) {
            if chosen.len() + members[&leader].len() <= count {
                chosen.extend(&members[&leader]);
            }
        }
        if 2 * chosen.len() < count {
            // Where most outfits repeat a few, whole groups are too large.
            chosen = in_drawn_order(seed, table, from);
            chosen.truncate(count);
        }
        chosen.sort_unstable();
        chosen
    }
}

/// Which of the asked outfits repeat one that was learned.
pub(crate) fn find_repeated<'a>(
    asked: impl Iterator<Item = (u32, &'a [u32])>,
    learned: impl Iterator<Item = &'a [u32]>,
) -> HashSet<u32> {
    let known: HashSet<u64> = learned.flat_map(keys).collect();
    asked
        .filter(|(_, articles)| keys(articles).any(|key| known.contains(&key)))
        .map(|(outfit, _)| outfit)
        .collect()
}

/// The keys outfits share if one repeats the other: a number of all articles, and of all but each one. Sums depend on no order.
fn keys(articles: &[u32]) -> impl Iterator<Item = u64> {
    let key = |article: &u32| splitmix(u64::from(*article));
    let whole = articles.iter().map(key).fold(0, u64::wrapping_add);
    let parts = if articles.len() < NEAR { &[] } else { articles };
    iter::once(whole).chain(parts.iter().map(move |article| whole.wrapping_sub(key(article))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(outfits: &[&[u32]]) -> Vec<u32> {
        let groups = Groups::new(outfits.iter().copied());
        (0..).take(outfits.len()).map(|outfit| groups.first(outfit)).collect()
    }

    #[test]
    fn repeats_are_the_same_articles_or_all_but_one_of_four() {
        let first: &[u32] = &[1, 2, 3, 4];
        for (other, is_repeat) in [
            (&[4, 3, 2, 1][..], true),
            (&[1, 2, 3, 9], true),
            (&[1, 2, 3], true),
            (&[1, 2, 3, 4, 5], true),
            (&[1, 2, 8, 9], false),
            (&[1, 2], false),
            (&[1, 2, 3, 5, 6], false),
        ] {
            assert_eq!(groups(&[first, other]) == [0, 0], is_repeat, "{other:?}");
            let found = find_repeated(iter::once((7, other)), iter::once(first));
            assert_eq!(found.contains(&7), is_repeat, "{other:?}");
        }
        // Two of three are what many outfits share.
        assert_eq!(groups(&[&[1, 2, 3], &[1, 2, 4]]), [0, 1]);
    }

    #[test]
    fn repeats_of_repeats_are_another_group_but_copies_never_are() {
        let all: &[&[u32]] =
            &[&[1, 2, 3, 4], &[1, 2, 3, 5], &[1, 2, 5, 6], &[6, 5, 2, 1], &[5, 3, 2, 1], &[2, 1, 5, 6]];
        assert_eq!(groups(all), [0, 0, 2, 2, 0, 2]);
        let found = Groups::new(all.iter().copied()).count();
        assert_eq!(found, Repeated { outfits: 4, largest: 3 });
    }

    #[test]
    fn whole_groups_are_drawn_and_without_repeats_what_was_drawn_before() {
        // Each outfit twice.
        let all: Vec<[u32; 2]> = (0..100).map(|outfit| [outfit % 50, 1000 + outfit % 50]).collect();
        let groups = Groups::new(all.iter().map(|outfit| &outfit[..]));
        let numbers: Vec<u32> = (0..100).collect();
        let drawn = groups.choose(1, Table::Split, &numbers, 11);
        assert_eq!(drawn.len(), 10);
        assert!(drawn.iter().all(|outfit| drawn.contains(&((outfit + 50) % 100))), "{drawn:?}");
        let single = Groups::new(all[..50].iter().map(|outfit| &outfit[..]));
        let mut expected = in_drawn_order(1, Table::Split, &numbers[..50]);
        expected.truncate(11);
        expected.sort_unstable();
        assert_eq!(single.choose(1, Table::Split, &numbers[..50], 11), expected);
        // All in one group: one by one.
        let one = Groups::new(iter::repeat_n(&[1, 2][..], 20));
        assert_eq!(one.choose(1, Table::Split, &numbers[..20], 4).len(), 4);
    }
}
