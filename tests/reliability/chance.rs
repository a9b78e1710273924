//! Random numbers from a seed, and damage to input.

/// `SplitMix64`.
pub struct Chance(u64);

/// Texts with a meaning in some format, between bars.
const WORDS: &[u8] =
    b"null|\"|{|}|[|]|,|:|\\u0000|\\ud800|-1|1e999|9223372036854775808|0.0000001|\xff|\r\n|\n|=|true|\
                       \xef\xbb\xbf|PAR1|../|\0|\"\"";

impl Chance {
    /// The random numbers of one case.
    pub fn for_case(seed: u64, case: u64) -> Self {
        Self(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `most`, exclusive.
    pub fn below(&mut self, most: usize) -> usize {
        let most = u64::try_from(most.max(1)).expect("a length fits");
        usize::try_from(self.next() % most).expect("it is below a length")
    }

    pub fn one<'c, T>(&mut self, of: &'c [T]) -> &'c T {
        &of[self.below(of.len())]
    }

    /// One of the texts between bars.
    pub fn word<'c>(&mut self, texts: &'c [u8]) -> &'c [u8] {
        let texts: Vec<&[u8]> = texts.split(|byte| *byte == b'|').collect();
        texts[self.below(texts.len())]
    }

    /// One of the inputs, damaged in a few places, sometimes in none.
    pub fn spoil(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one(corpus).clone();
        for _ in 0..self.below(6) {
            self.spoil_once(&mut input, corpus);
        }
        input
    }

    fn spoil_once(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let place = self.below(input.len() + 1);
        let end = (place + self.below(32)).min(input.len());
        match self.below(8) {
            0 if place < input.len() => input[place] ^= 1 << self.below(8),
            1 if place < input.len() => input[place] = self.next().to_le_bytes()[0],
            2 => drop(input.drain(place..end)),
            3 => {
                let piece = input[place..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            4 => input.truncate(place),
            5 => {
                let other = self.one(corpus);
                let from = self.below(other.len() + 1);
                let to = (from + self.below(64)).min(other.len());
                input.splice(place..end, other[from..to].iter().copied());
            }
            _ => {
                input.splice(place..end, self.word(WORDS).iter().copied());
            }
        }
    }
}
