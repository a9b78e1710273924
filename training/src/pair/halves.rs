//! Splits outfits at random, and finds halves of other outfits that could replace theirs.

use crate::{
    data::Data,
    random::{Stream, Table},
};

/// Two halves, and whether they were one outfit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The first half's outfit, whose features the pair has.
    pub outfit: u32,
    pub first: Vec<u32>,
    pub second: Vec<u32>,
    pub same: bool,
}

/// The outfits of one split, from which strangers' halves come.
#[derive(Debug)]
pub struct Halves<'a> {
    data: &'a Data,
    outfits: Vec<u32>,
    /// By article type: the outfits that have it.
    by_type: Vec<Vec<u32>>,
}

/// A split outfit.
struct Split {
    first: Vec<u32>,
    second: Vec<u32>,
    /// Articles of another outfit with the types of `second`.
    stranger: Vec<u32>,
}

/// Outfits searched for a stranger's half; after this many there is hardly one.
const SEARCH_LIMIT: usize = 4096;
/// The questions about a split are the same for every run.
const SEED: u64 = 1;

impl<'a> Halves<'a> {
    /// `outfits` are those of one split, so no half comes from another split. Those with a new article are left out.
    pub fn new(data: &'a Data, outfits: &[u32]) -> Self {
        let is_known =
            |&outfit: &u32| data.outfits().articles(outfit).iter().all(|&article| data.is_known(article));
        let outfits: Vec<u32> = outfits.iter().copied().filter(is_known).collect();
        let mut by_type = vec![Vec::new(); data.types().len()];
        for &outfit in &outfits {
            for &article in data.outfits().articles(outfit) {
                let same_type: &mut Vec<u32> = &mut by_type[data.type_of(article)];
                if same_type.last() != Some(&outfit) {
                    same_type.push(outfit);
                }
            }
        }
        Self { data, outfits, by_type }
    }

    /// The questions about the split: for each outfit its own second half and a stranger's. Leaves out outfits for
    /// whose second half there is no stranger.
    pub fn questions(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for &outfit in &self.outfits {
            let mut stream = Stream::new(SEED, Table::Pairs, outfit as usize);
            if let Some(Split { first, second, stranger }) = self.split(outfit, &mut stream) {
                pairs.push(Pair { outfit, first: first.clone(), second, same: true });
                pairs.push(Pair { outfit, first, second: stranger, same: false });
            }
        }
        pairs
    }

    /// A pair to learn from an outfit in an epoch: with its own second half or a stranger's, equally often. None if
    /// there is no stranger, because then the types alone would give the answer away.
    pub(crate) fn training_pair(&self, seed: u64, epoch: u32, outfit: u32) -> Option<Pair> {
        let mut stream = Stream::new(seed, Table::Pairs, (epoch as usize) << 32 | outfit as usize);
        let Split { first, second, stranger } = self.split(outfit, &mut stream)?;
        let same = stream.chance(0.5);
        Some(Pair { outfit, first, second: if same { second } else { stranger }, same })
    }

    fn split(&self, outfit: u32, stream: &mut Stream) -> Option<Split> {
        let mut first = self.data.outfits().articles(outfit).to_vec();
        stream.shuffle(&mut first);
        // An odd article goes to either half.
        let odd = usize::from(first.len() % 2 == 1 && stream.chance(0.5));
        let second = first.split_off(first.len() / 2 + odd);
        let types: Vec<usize> = second.iter().map(|&article| self.data.type_of(article)).collect();
        let rarest = types.iter().min_by_key(|&&kind| (self.by_type[kind].len(), kind))?;
        let others = &self.by_type[*rarest];
        let begin = stream.below(others.len());
        let around = others[begin..].iter().chain(&others[..begin]).take(SEARCH_LIMIT);
        for &other in around.filter(|&&other| other != outfit) {
            let Some(stranger) = self.find_half(other, &types, stream) else { continue };
            // An outfit has no article twice, so a repeated one would give the stranger away.
            let repeats = stranger.iter().any(|article| first.contains(article));
            let same = second.iter().all(|article| stranger.contains(article));
            if !repeats && !same {
                return Some(Split { first, second, stranger });
            }
        }
        None
    }

    /// Articles of these types, in this order, if the outfit has them all.
    fn find_half(&self, outfit: u32, types: &[usize], stream: &mut Stream) -> Option<Vec<u32>> {
        let mut left = self.data.outfits().articles(outfit).to_vec();
        let mut half = Vec::with_capacity(types.len());
        for &kind in types {
            let of_kind = |article: &u32| self.data.type_of(*article) == kind;
            let count = left.iter().copied().filter(of_kind).count();
            if count == 0 {
                return None;
            }
            let which = if count == 1 { 0 } else { stream.below(count) };
            let (place, _) = left.iter().enumerate().filter(|(_, article)| of_kind(article)).nth(which)?;
            half.push(left.swap_remove(place));
        }
        Some(half)
    }
}
