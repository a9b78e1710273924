//! Taking outfits apart at random, and finding halves of other outfits that could stand in.

use crate::{
    data::Data,
    random::{Stream, Table},
};

/// Two halves, and whether they were one outfit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Where the first half is from; its features are the pair's.
    pub outfit: u32,
    pub first: Vec<u32>,
    pub second: Vec<u32>,
    pub same: bool,
}

/// Outfits that lend each other halves.
#[derive(Debug)]
pub struct Halves<'a> {
    data: &'a Data,
    outfits: &'a [u32],
    /// By article type: the outfits that have one of it.
    by_type: Vec<Vec<u32>>,
}

/// An outfit taken apart.
struct Apart {
    first: Vec<u32>,
    second: Vec<u32>,
    /// A half of another outfit, of the same types as the second.
    stranger: Vec<u32>,
}

/// Outfits that are looked into for a stranger's half, at most: past so many there is hardly one.
const LOOKED_INTO: usize = 4096;
/// What is asked about a split is the same for every run.
const SEED: u64 = 1;

impl<'a> Halves<'a> {
    /// Of the outfits of one split, so that none lends a half to another's.
    pub fn new(data: &'a Data, outfits: &'a [u32]) -> Self {
        let mut by_type = vec![Vec::new(); data.types().len()];
        for &outfit in outfits {
            for &article in data.outfits().articles(outfit) {
                let of_type: &mut Vec<u32> = &mut by_type[data.type_of(article)];
                if of_type.last() != Some(&outfit) {
                    of_type.push(outfit);
                }
            }
        }
        Self { data, outfits, by_type }
    }

    /// What is asked about the split: of each outfit its own second half and a stranger's. Outfits whose
    /// second half has types that no other outfit has together are left out.
    pub fn questions(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for &outfit in self.outfits {
            let mut stream = Stream::new(SEED, Table::Pairs, outfit as usize);
            if let Some(Apart { first, second, stranger }) = self.apart(outfit, &mut stream) {
                pairs.push(Pair { outfit, first: first.clone(), second, same: true });
                pairs.push(Pair { outfit, first, second: stranger, same: false });
            }
        }
        pairs
    }

    /// What is learned from an outfit in an epoch: as often its own second half as a stranger's; nothing
    /// where no other outfit has the second half's types, for then the types would tell.
    pub(crate) fn lesson(&self, seed: u64, epoch: u32, outfit: u32) -> Option<Pair> {
        let mut stream = Stream::new(seed, Table::Pairs, (epoch as usize) << 32 | outfit as usize);
        let Apart { first, second, stranger } = self.apart(outfit, &mut stream)?;
        let same = stream.chance(0.5);
        Some(Pair { outfit, first, second: if same { second } else { stranger }, same })
    }

    fn apart(&self, outfit: u32, stream: &mut Stream) -> Option<Apart> {
        let mut first = self.data.outfits().articles(outfit).to_vec();
        stream.shuffle(&mut first);
        // An odd article goes with either half.
        let odd = usize::from(first.len() % 2 == 1 && stream.chance(0.5));
        let second = first.split_off(first.len() / 2 + odd);
        let kinds: Vec<usize> = second.iter().map(|&article| self.data.type_of(article)).collect();
        let rarest = kinds.iter().min_by_key(|&&kind| (self.by_type[kind].len(), kind))?;
        let lenders = &self.by_type[*rarest];
        let begin = stream.below(lenders.len());
        let around = lenders[begin..].iter().chain(&lenders[..begin]).take(LOOKED_INTO);
        for &lender in around.filter(|&&lender| lender != outfit) {
            let Some(stranger) = self.lent(lender, &kinds, stream) else { continue };
            // Articles are worn once: one that stands in both halves would give the stranger away.
            let told = stranger.iter().any(|article| first.contains(article));
            let same = second.iter().all(|article| stranger.contains(article));
            if !told && !same {
                return Some(Apart { first, second, stranger });
            }
        }
        None
    }

    /// Articles of these types, one after the other, if the outfit has them all.
    fn lent(&self, lender: u32, kinds: &[usize], stream: &mut Stream) -> Option<Vec<u32>> {
        let mut left = self.data.outfits().articles(lender).to_vec();
        let mut half = Vec::with_capacity(kinds.len());
        for &kind in kinds {
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
