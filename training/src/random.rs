//! Chance by name: whoever draws says what for, and nothing depends on the order of drawing.

/// One word out of several, each of whose bits moves every bit of it (splitmix64's finaliser).
pub(crate) fn mixed<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(0x9E37_79B9_7F4A_7C15, |mixed, word| {
        let mut mixed = (mixed ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_and_its_place_counts() {
        let words = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]];
        let mut seen: Vec<u64> = words.map(mixed).to_vec();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), words.len());
        assert_eq!(mixed([1, 2]), mixed([1, 2]));
    }
}
