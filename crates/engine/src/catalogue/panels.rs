//! Free positions. Articles of one type are neighbours, in panels of their own. The last layer computes one panel at a time,
//! so a question about one type reads only that type's panels.

use std::{collections::BTreeMap, ops::Range};

/// Positions of a panel.
pub(super) const PANEL: usize = 32;
/// A catalogue has this share of its panels unused at first, and at least this number of panels.
pub(crate) const UNUSED_SHARE: usize = 16;
pub(super) const LEAST_UNUSED: usize = 16;
/// The types that have panels of their own; all others share some. Otherwise as many types as articles would take as many panels.
const MOST_TYPES: usize = 200;
/// Stands for all other types; no type is empty.
const OTHERS: &str = "";

#[derive(Debug, Clone)]
pub(super) struct Panels {
    /// Free positions, by the type whose panels they are in.
    free: BTreeMap<Box<str>, Vec<u32>>,
    /// Panels without a type, for new articles.
    unused: Range<u32>,
}

impl Panels {
    /// Room for articles, by their number of each type, and for some more.
    pub(super) fn new(mut of_types: impl Iterator<Item = usize>) -> Self {
        let own: usize = of_types.by_ref().take(MOST_TYPES).map(|articles| articles.div_ceil(PANEL)).sum();
        let panels = own + of_types.sum::<usize>().div_ceil(PANEL);
        let positions = (panels + (panels / UNUSED_SHARE).max(LEAST_UNUSED)) * PANEL;
        let positions = u32::try_from(positions).expect("articles are counted in 32 bits");
        Self { free: BTreeMap::new(), unused: 0..positions }
    }

    /// The number of positions, all of which are free at first.
    pub(super) fn length(&self) -> usize {
        self.unused.end as usize
    }

    /// A position for an article of a type. None if there is no room.
    pub(super) fn take(&mut self, kind: &str) -> Option<u32> {
        let is_own = self.free.len() < MOST_TYPES || self.free.contains_key(kind);
        let kind = if is_own { kind } else { OTHERS };
        if let Some(position) = self.free.get_mut(kind).and_then(Vec::pop) {
            return Some(position);
        }
        // The lowest is taken first.
        let mut panel = self.unused.by_ref().take(PANEL);
        let first = panel.next()?;
        let rest: Vec<u32> = panel.collect();
        self.free.entry(kind.into()).or_default().extend(rest.into_iter().rev());
        Some(first)
    }

    pub(super) fn give_back(&mut self, kind: &str, position: u32) {
        let kind = if self.free.contains_key(kind) { kind } else { OTHERS };
        self.free.entry(kind.into()).or_default().push(position);
    }
}
