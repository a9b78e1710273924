//! A set of a vocabulary's articles.

/// One bit for each article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    words: Vec<u64>,
    length: usize,
}

const BITS: usize = u64::BITS as usize;

impl Mask {
    pub fn none(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(BITS)], length }
    }

    pub fn all(length: usize) -> Self {
        let mut mask = Self { words: vec![u64::MAX; length.div_ceil(BITS)], length };
        // Bits past the end stay zero, so that they are never counted.
        if let Some(last) = mask.words.last_mut()
            && !length.is_multiple_of(BITS)
        {
            *last = (1 << (length % BITS)) - 1;
        }
        mask
    }

    pub fn insert(&mut self, article: u32) {
        let index = self.index(article);
        self.words[index / BITS] |= 1 << (index % BITS);
    }

    pub fn remove(&mut self, article: u32) {
        let index = self.index(article);
        self.words[index / BITS] &= !(1 << (index % BITS));
    }

    pub fn contains(&self, article: u32) -> bool {
        let index = self.index(article);
        self.words[index / BITS] >> (index % BITS) & 1 == 1
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// One bit for each article, 64 to a word, lowest bit first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number of articles in the vocabulary.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether an article is in both.
    pub fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(own, other)| own & other != 0)
    }

    /// The number of articles that are in both.
    pub fn count_common(&self, other: &Self) -> usize {
        self.words.iter().zip(&other.words).map(|(own, other)| (own & other).count_ones() as usize).sum()
    }

    pub fn intersect(&mut self, other: &Self) {
        self.zip(other, |own, other| own & other);
    }

    pub fn unite(&mut self, other: &Self) {
        self.zip(other, |own, other| own | other);
    }

    pub fn subtract(&mut self, other: &Self) {
        self.zip(other, |own, other| own & !other);
    }

    /// The indices of its articles, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().zip(0u32..).flat_map(|(&word, index)| {
            std::iter::successors((word != 0).then_some(word), |rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| index * u64::BITS + rest.trailing_zeros())
        })
    }

    fn zip(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        assert_eq!(self.length, other.length, "both masks belong to one vocabulary");
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own = with(*own, *other);
        }
    }

    fn index(&self, article: u32) -> usize {
        let index = article as usize;
        assert!(index < self.length, "article {article} is not one of {}", self.length);
        index
    }
}

/// A set of few articles, or of neighbours: only its blocks with articles take memory. It does not know how many articles
/// there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SparseMask {
    /// Indices of blocks of a mask's words, ascending, and the blocks, each with an article.
    blocks: Vec<(u32, Block)>,
}

/// Neighbouring words of a mask, of as many articles.
type Block = [u64; 4];
const BLOCK: u32 = 4 * u64::BITS;

impl SparseMask {
    pub fn insert(&mut self, article: u32) {
        let (index, word, bit) = Self::index(article);
        let at = self.find(index).unwrap_or_else(|at| {
            self.blocks.insert(at, (index, Block::default()));
            at
        });
        self.blocks[at].1[word] |= bit;
    }

    pub fn remove(&mut self, article: u32) {
        let (index, word, bit) = Self::index(article);
        if let Ok(at) = self.find(index) {
            self.blocks[at].1[word] &= !bit;
            if self.blocks[at].1 == Block::default() {
                self.blocks.remove(at);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn contains(&self, article: u32) -> bool {
        let (index, word, bit) = Self::index(article);
        self.find(index).is_ok_and(|at| self.blocks[at].1[word] & bit != 0)
    }

    fn find(&self, index: u32) -> Result<usize, usize> {
        self.blocks.binary_search_by_key(&index, |(index, _)| *index)
    }

    /// The index of its block, that of its word in there, and its bit.
    fn index(article: u32) -> (u32, usize, u64) {
        let of_block = article % BLOCK;
        (article / BLOCK, of_block as usize / BITS, 1 << (of_block % u64::BITS))
    }
}

impl Mask {
    /// The other set's articles are in the vocabulary, as those of [`Mask::subtract_sparse`].
    pub fn unite_sparse(&mut self, other: &SparseMask) {
        for (index, block) in &other.blocks {
            self.zip_block(*index, block, |own, other| own | other);
        }
    }

    /// Adds what is in `of` and in none of `others`. Whether they have an article in common.
    pub fn unite_except<'a>(
        &mut self,
        of: &SparseMask,
        others: impl IntoIterator<Item = &'a SparseMask>,
    ) -> bool {
        let mut rests: Vec<&[(u32, Block)]> = others.into_iter().map(|other| &other.blocks[..]).collect();
        let mut meets = false;
        for (index, block) in &of.blocks {
            let mut added = *block;
            for rest in &mut rests {
                // Both ascend.
                while let [(at, other), after @ ..] = *rest
                    && at <= index
                {
                    if at == index {
                        added.iter_mut().zip(other).for_each(|(added, other)| *added &= !other);
                    }
                    *rest = after;
                }
            }
            meets |= added != *block;
            self.zip_block(*index, &added, |own, added| own | added);
        }
        meets
    }

    pub fn subtract_sparse(&mut self, other: &SparseMask) {
        for (index, block) in &other.blocks {
            self.zip_block(*index, block, |own, other| own & !other);
        }
    }

    fn zip_block(&mut self, index: u32, other: &Block, with: impl Fn(u64, u64) -> u64) {
        let own = &mut self.words[index as usize * other.len()..];
        // The last block may be longer than the mask's rest, where it has no article.
        own.iter_mut().zip(other).for_each(|(own, other)| *own = with(*own, *other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(length: usize, articles: &[u32]) -> Mask {
        let mut mask = Mask::none(length);
        for &article in articles {
            mask.insert(article);
        }
        mask
    }

    fn sparse(articles: &[u32]) -> SparseMask {
        let mut mask = SparseMask::default();
        for &article in articles {
            mask.insert(article);
        }
        mask
    }

    #[test]
    fn masks_are_sets() {
        for length in [1, 63, 64, 65, 200] {
            let mut all = Mask::all(length);
            assert_eq!(all.count(), length);
            assert_eq!(all.iter().count(), length);
            all.remove(0);
            assert!(!all.contains(0));
            assert_eq!(all.count(), length - 1);
        }
        let mut some = mask(130, &[0, 63, 64, 129]);
        assert_eq!(some.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
        let other = mask(130, &[64, 5]);
        let mut both = some.clone();
        both.intersect(&other);
        assert!(some.meets(&other) && !some.meets(&Mask::none(130)));
        assert_eq!((some.count_common(&other), some.count_common(&Mask::all(130))), (1, 4));
        assert_eq!(both.iter().collect::<Vec<_>>(), [64]);
        let mut either = some.clone();
        either.unite(&other);
        assert_eq!(either.iter().collect::<Vec<_>>(), [0, 5, 63, 64, 129]);
        some.subtract(&other);
        assert_eq!(some.iter().collect::<Vec<_>>(), [0, 63, 129]);
    }

    #[test]
    fn a_sparse_mask_is_the_same_set() {
        let articles = [700, 3, 64, 3, 127, 5];
        let mut sparse = self::sparse(&articles);
        let mut mask = self::mask(701, &[1]);
        mask.unite_sparse(&sparse);
        assert_eq!(mask.iter().collect::<Vec<_>>(), [1, 3, 5, 64, 127, 700]);
        assert!((0..800).all(|article| sparse.contains(article) == articles.contains(&article)));
        let others = self::sparse(&[1, 5, 100, 700]);
        let mut rest = Mask::none(701);
        assert!(rest.unite_except(&sparse, [&others, &SparseMask::default()]));
        assert_eq!(rest.iter().collect::<Vec<_>>(), [3, 64, 127]);
        assert!(!rest.unite_except(&others, []), "nothing in common");
        sparse.remove(64);
        sparse.remove(6);
        mask.subtract_sparse(&sparse);
        assert_eq!(mask.iter().collect::<Vec<_>>(), [1, 64]);
        for article in articles {
            sparse.remove(article);
        }
        assert!(sparse.is_empty());
    }
}
