//! Dropout that depends on a number's place alone, so the backward pass need not remember it.

use super::{ops::Residue, simd::vectorised};

/// The dropout of one step on one shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropout {
    /// Of what attention and the global state say.
    pub(crate) rate: f32,
    /// Of articles' vectors and of what feed-forward networks say.
    pub(crate) elsewhere: f32,
    pub(crate) key: u32,
}

/// The numbers that one operation drops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mask {
    key: u32,
    /// Hashes below this are dropped; 0 drops nothing.
    threshold: u32,
    kept: f32,
}

impl Dropout {
    /// The mask of the operation at this place on a tape.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a tape has far fewer than 2^32 nodes, and a rate is between 0 and 1"
    )]
    pub(super) fn mask(self, node: usize, kind: Residue) -> Mask {
        let rate = match kind {
            Residue::Read => self.rate,
            Residue::Computed => self.elsewhere,
        };
        let threshold = (f64::from(rate) * f64::from(u32::MAX)) as u32;
        let key = (self.key ^ (node as u32).wrapping_mul(0x85eb_ca6b)).wrapping_mul(0xc2b2_ae35);
        Mask { key, threshold, kept: 1.0 / (1.0 - rate) }
    }
}

impl Mask {
    pub(super) const NONE: Self = Self { key: 0, threshold: 0, kept: 1.0 };

    /// The factor of the number at this place.
    #[expect(clippy::inline_always, reason = "has to be inlined into a vectorised loop")]
    #[inline(always)]
    pub(super) fn at(self, place: usize) -> f32 {
        #[expect(clippy::cast_possible_truncation, reason = "a shard holds far fewer than 2^32 numbers")]
        let mut hash = (place as u32).wrapping_mul(0x9e37_79b1) ^ self.key;
        hash = (hash ^ (hash >> 16)).wrapping_mul(0x7feb_352d);
        hash = (hash ^ (hash >> 15)).wrapping_mul(0x846c_a68b);
        hash ^= hash >> 16;
        if hash >= self.threshold { self.kept } else { 0.0 }
    }

    pub(super) fn apply(self, values: &mut [f32]) {
        if self.threshold > 0 {
            apply(values, self);
        }
    }
}

vectorised! {
    fn apply<'a>(values: &'a mut [f32], mask: Mask) {
        for (place, value) in values.iter_mut().enumerate() {
            *value *= mask.at(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_dropped_and_the_mean_stays() {
        let dropout = Dropout { rate: 0.1, elsewhere: 0.2, key: 5 };
        let mut values = vec![1.0; 100_000];
        dropout.mask(3, Residue::Read).apply(&mut values);
        let dropped = values.iter().filter(|value| **value == 0.0).count();
        assert!((9_700..10_300).contains(&dropped), "{dropped}");
        let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.005, "{mean}");
        let mut other = vec![1.0; 100_000];
        dropout.mask(4, Residue::Read).apply(&mut other);
        let both = values.iter().zip(&other).filter(|(a, b)| **a == 0.0 && **b == 0.0).count();
        assert!((850..1_150).contains(&both), "operations drop independently: {both}");
        Mask::NONE.apply(&mut other);
        assert!(other.iter().any(|value| *value > 1.1));
    }
}
