//! The similarity of two rankings.

use std::{collections::HashSet, hash::Hash};

/// How fast the weight falls down a ranking: the first five have two fifths of it, the first ten two thirds.
const PERSISTENCE: f64 = 0.9;

/// The number of common items, as a share of the longer list's length.
pub fn overlap<T: Eq + Hash>(one: &[T], other: &[T]) -> f64 {
    let most = one.len().max(other.len());
    if most == 0 {
        return 1.0;
    }
    let one: HashSet<&T> = one.iter().collect();
    real(other.iter().filter(|item| one.contains(item)).count()) / real(most)
}

/// Rank-biased overlap, extrapolated from the common depth: 1 for the same order, 0 for nothing in common. Higher
/// ranks count more.
pub fn rank_biased_overlap<T: Eq + Hash>(one: &[T], other: &[T]) -> f64 {
    let depth = one.len().min(other.len());
    if depth == 0 {
        return if one.len() == other.len() { 1.0 } else { 0.0 };
    }
    let (mut first, mut second) = (HashSet::new(), HashSet::new());
    let mut common = 0;
    let (mut sum, mut weight) = (0.0, 1.0);
    for (at, (a, b)) in one.iter().zip(other).enumerate() {
        common += if a == b { 1 } else { usize::from(second.contains(a)) + usize::from(first.contains(b)) };
        first.insert(a);
        second.insert(b);
        weight *= PERSISTENCE;
        sum += real(common) / real(at + 1) * weight;
    }
    real(common) / real(depth) * weight + (1.0 - PERSISTENCE) / PERSISTENCE * sum
}

fn real(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("lists are short"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rankings_are_alike_or_not() {
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        close(overlap(&[1, 2, 3], &[3, 4, 1]), 2.0 / 3.0);
        close(overlap::<u8>(&[], &[]), 1.0);
        close(rank_biased_overlap(&[1, 2, 3], &[1, 2, 3]), 1.0);
        close(rank_biased_overlap(&[1, 2, 3], &[4, 5, 6]), 0.0);
        // By hand: agreements 0, 1 at depths one and two; 1 · 0.81 + 0.1/0.9 · (0 + 0.81).
        close(rank_biased_overlap(&[1, 2], &[2, 1]), 0.81 + 0.1 / 0.9 * 0.81);
        let late_change = rank_biased_overlap(&[1, 2, 3, 4], &[1, 2, 4, 3]);
        assert!(late_change > rank_biased_overlap(&[1, 2, 3, 4], &[2, 1, 3, 4]));
    }
}
