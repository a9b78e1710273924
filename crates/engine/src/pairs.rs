//! Pairs of numbers as one number, which is sorted in a fraction of the time.

pub(crate) fn pack(first: u32, second: u32) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

#[expect(clippy::cast_possible_truncation, reason = "each half is what was packed")]
pub(crate) fn unpack(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// Sorts pairs; those of one first number together, with that number.
pub(crate) fn by_first(pairs: &mut [u64]) -> impl Iterator<Item = (u32, impl Iterator<Item = u32>)> {
    pairs.sort_unstable();
    let same = pairs.chunk_by(|one, next| unpack(*one).0 == unpack(*next).0);
    same.map(|same| (unpack(same[0]).0, same.iter().map(|pair| unpack(*pair).1)))
}
