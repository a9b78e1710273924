//! A part of a batch as a tape takes it: outfits of any length, packed without padding.

use super::{Param, Rows};

/// A model's tables and their widths.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) articles: Param,
    pub(crate) features: Vec<Param>,
    /// Each feature's values in the match; empty without one.
    pub(crate) matched: Vec<Param>,
    /// Of the articles' columns that the blocks read; the match reads the rest.
    pub(crate) width: usize,
    pub(crate) feature_width: usize,
    pub(crate) heads: usize,
}

/// Packed outfits.
#[derive(Debug, Clone)]
pub(crate) struct Shard {
    /// Each slot's row of the article table.
    pub(crate) slots: Vec<u32>,
    /// Where each outfit's slots begin, and the end.
    pub(crate) starts: Vec<usize>,
    /// The slot to predict, as an index into `slots`.
    pub(crate) blanks: Vec<usize>,
    /// Rows of the features' tables: outfit by outfit, feature by feature.
    pub(crate) feature_rows: Vec<u32>,
    /// Where each (outfit, feature) begins in `feature_rows`, and the end.
    pub(crate) feature_starts: Vec<usize>,
    /// Rows of the article table from this one on are no articles.
    pub(crate) blank: u32,
}

impl Shard {
    pub(crate) fn outfits(&self) -> usize {
        self.blanks.len()
    }

    pub(super) fn rows(&self, rows: Rows) -> usize {
        match rows {
            Rows::Outfits => self.outfits(),
            Rows::Slots => self.slots.len(),
            Rows::Positions => self.slots.len() + self.outfits(),
        }
    }

    /// Where an outfit's rows begin and end.
    pub(super) fn range(&self, rows: Rows, outfit: usize) -> std::ops::Range<usize> {
        let (start, end) = (self.starts[outfit], self.starts[outfit + 1]);
        match rows {
            Rows::Outfits => outfit..outfit + 1,
            Rows::Slots => start..end,
            Rows::Positions => start + outfit..end + outfit + 1,
        }
    }

    /// The rows of an outfit's articles, without blanks.
    pub(super) fn visible(&self, outfit: usize) -> impl Iterator<Item = u32> {
        let slots = &self.slots[self.starts[outfit]..self.starts[outfit + 1]];
        slots.iter().copied().filter(|&slot| slot < self.blank)
    }

    /// The row of the slot to predict.
    pub(super) fn blank_row(&self, rows: Rows, outfit: usize) -> usize {
        match rows {
            Rows::Outfits => outfit,
            Rows::Slots => self.blanks[outfit],
            Rows::Positions => self.blanks[outfit] + outfit + 1,
        }
    }

    /// The table rows of one outfit's feature; row 0, "not given", if it has none.
    pub(super) fn values_of_feature(&self, place: usize) -> &[u32] {
        let rows = self.given_values(place);
        if rows.is_empty() { &[0] } else { rows }
    }

    /// The table rows of one outfit's feature, if it has any.
    pub(super) fn given_values(&self, place: usize) -> &[u32] {
        &self.feature_rows[self.feature_starts[place]..self.feature_starts[place + 1]]
    }

    /// For each row of `wide`, the row of `narrow` that belongs to it.
    pub(super) fn serving(&self, wide: Rows, narrow: Rows) -> Vec<u32> {
        let serve = |outfit: usize| {
            let row = u32::try_from(outfit).expect("a shard is small");
            std::iter::repeat_n(row, self.range(wide, outfit).len())
        };
        if wide == narrow {
            (0..).take(self.rows(wide)).collect()
        } else {
            assert_eq!(narrow, Rows::Outfits, "only outfits' rows are broadcast");
            (0..self.outfits()).flat_map(serve).collect()
        }
    }
}
