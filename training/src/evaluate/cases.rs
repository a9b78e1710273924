//! The questions: every slot of every validation outfit, masked in turn.

use crate::data::Data;

/// One masked slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub outfit: u32,
    pub slot: u32,
    /// The article that was there.
    pub target: u32,
}

/// All of them: outfit by outfit as the file has them, slot by slot.
#[derive(Debug)]
pub struct Cases(Vec<Case>);

/// Cases of a batch: where ONNX Runtime is about fastest on one thread, and small in memory.
const BATCH: usize = 64;

impl Cases {
    pub fn of_validation(data: &Data) -> Self {
        let mut cases = Vec::new();
        for &outfit in data.validation() {
            let articles = data.outfits().articles(outfit);
            cases.extend((0..).zip(articles).map(|(slot, &target)| Case { outfit, slot, target }));
        }
        Self(cases)
    }

    pub fn as_slice(&self) -> &[Case] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cases of each outfit, in order.
    pub fn by_outfit(&self) -> impl Iterator<Item = &[Case]> {
        self.0.chunk_by(|one, next| one.outfit == next.outfit)
    }

    /// The places of cases to be asked together: of outfits of one length, so that nothing is padded.
    pub(super) fn batches(&self, data: &Data) -> Vec<Vec<usize>> {
        let length = |place: &usize| data.outfits().articles(self.0[*place].outfit).len();
        let mut places: Vec<usize> = (0..self.0.len()).collect();
        places.sort_by_key(length);
        places
            .chunk_by(|one, next| length(one) == length(next))
            .flat_map(|same| same.chunks(BATCH).map(<[usize]>::to_vec))
            .collect()
    }
}
