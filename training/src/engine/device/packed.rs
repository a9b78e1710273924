//! A whole batch on a device: one piece of memory with every index that the tape's kernels ask for.

use super::{Device, Parameters};
use crate::engine::{
    ops::Rows,
    shard::{Shard, Tables},
};

/// The dropout keys of the shards that a CPU would cut the batch into, so that a device drops what a CPU
/// drops.
#[derive(Debug, Clone)]
pub(crate) struct ShardKeys {
    /// Outfits a shard.
    pub(crate) size: usize,
    pub(crate) keys: Vec<u32>,
}

/// Where the indices of one kind of rows lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of {
    pub(super) rows: usize,
    /// Where each outfit's rows begin, and the end.
    pub(super) starts: usize,
    /// Each row's outfit.
    pub(super) outfits: usize,
    /// Each row's dropout key and its place among its shard's rows.
    pub(super) keys: usize,
    pub(super) places: usize,
    /// Each outfit's row of the slot that was asked for.
    pub(super) blanks: usize,
    /// Most rows of an outfit.
    pub(super) longest: usize,
}

/// A batch as the tape takes it.
#[derive(Debug)]
pub(crate) struct Packed<D: Device> {
    pub(super) indices: D::Indices,
    of_outfits: Of,
    of_slots: Of,
    of_positions: Of,
    /// 0, 1, 2 … up to the number of positions.
    pub(super) identity: usize,
    /// What is in each slot.
    pub(super) slots: usize,
    /// The positions of the slots, and those of the contexts.
    pub(super) slot_positions: usize,
    pub(super) context_positions: usize,
    /// Each outfit's features: which numbers of the weights, from where in that list, to where.
    pub(super) feature_sources: usize,
    pub(super) feature_starts: usize,
    pub(super) feature_targets: usize,
    /// One over the number of values of each outfit's features.
    pub(super) feature_parts: D::Floats,
    /// Slots of each outfit, for what is counted on the host.
    pub(super) lengths: Vec<usize>,
}

impl<D: Device> Packed<D> {
    pub(crate) fn new(
        device: &D,
        parameters: &Parameters<D>,
        tables: &Tables,
        shard: &Shard,
        keys: &ShardKeys,
    ) -> Self {
        let mut words = Words::default();
        let features = Features::new(parameters, tables, shard);
        let positions = index(shard.rows(Rows::Positions));
        let identity = words.put(0..=positions);
        let slots = words.put(shard.slots.iter().copied());
        let of_outfits = Of::new(&mut words, shard, Rows::Outfits, keys);
        let of_slots = Of::new(&mut words, shard, Rows::Slots, keys);
        let of_positions = Of::new(&mut words, shard, Rows::Positions, keys);
        let outfits = 0..shard.outfits();
        let position = |outfit| index(shard.range(Rows::Positions, outfit).start);
        let context_positions = words.put(outfits.clone().map(position));
        let slot_positions = words.put(outfits.clone().flat_map(|outfit| {
            let positions = shard.range(Rows::Positions, outfit);
            (positions.start + 1..positions.end).map(index)
        }));
        let feature_sources = words.put(features.sources);
        let feature_starts = words.put(features.starts);
        let places = shard.outfits() * tables.features.len();
        let feature_targets = words.put((0..places).map(|place| index(place * tables.feature_width)));
        Self {
            indices: device.indices(&words.0),
            of_outfits,
            of_slots,
            of_positions,
            identity,
            slots,
            slot_positions,
            context_positions,
            feature_sources,
            feature_starts,
            feature_targets,
            feature_parts: device.floats(&features.parts),
            lengths: outfits.map(|outfit| shard.range(Rows::Slots, outfit).len()).collect(),
        }
    }

    pub(super) fn of(&self, rows: Rows) -> Of {
        match rows {
            Rows::Outfits => self.of_outfits,
            Rows::Slots => self.of_slots,
            Rows::Positions => self.of_positions,
        }
    }

    pub(super) fn rows(&self, rows: Rows) -> usize {
        self.of(rows).rows
    }

    /// Where it says which row of `narrow` serves each row of `wide`.
    pub(super) fn serving(&self, wide: Rows, narrow: Rows) -> usize {
        if wide == narrow { self.identity } else { self.of(wide).outfits }
    }

    /// Where it says from which row of `wide` on each row of `narrow` serves.
    pub(super) fn served(&self, wide: Rows, narrow: Rows) -> usize {
        if wide == narrow { self.identity } else { self.of(wide).starts }
    }
}

impl Of {
    fn new(words: &mut Words, shard: &Shard, rows: Rows, keys: &ShardKeys) -> Self {
        let outfits = || 0..shard.outfits();
        let range = |outfit| shard.range(rows, outfit);
        let in_shard = |outfit: usize| range(outfit / keys.size * keys.size).start;
        let last = index(shard.rows(rows));
        Self {
            rows: shard.rows(rows),
            starts: words.put(outfits().map(|outfit| index(range(outfit).start)).chain([last])),
            outfits: words.put(outfits().flat_map(|at| range(at).map(move |_| index(at)))),
            keys: words.put(outfits().flat_map(|at| range(at).map(move |_| keys.keys[at / keys.size]))),
            places: words.put(outfits().flat_map(|at| range(at).map(move |row| index(row - in_shard(at))))),
            blanks: words.put(outfits().map(|outfit| index(shard.blank_row(rows, outfit)))),
            longest: outfits().map(|outfit| range(outfit).len()).max().unwrap_or_default(),
        }
    }
}

/// Every outfit's features as numbers of the weights' memory.
pub(super) struct Features {
    pub(super) sources: Vec<u32>,
    pub(super) starts: Vec<u32>,
    parts: Vec<f32>,
}

impl Features {
    pub(super) fn new<D: Device>(parameters: &Parameters<D>, tables: &Tables, shard: &Shard) -> Self {
        let mut all = Self { sources: Vec::new(), starts: vec![0], parts: Vec::new() };
        for place in 0..shard.outfits() * tables.features.len() {
            let rows = shard.given(place);
            let table = parameters.at(tables.features[place % tables.features.len()]);
            all.sources.extend(rows.iter().map(|&row| index(table + row as usize * tables.feature_width)));
            all.starts.push(index(all.sources.len()));
            all.parts.push(1.0 / crate::engine::number(rows.len()));
        }
        all
    }
}

/// Lists of indices, one after the other.
#[derive(Default)]
pub(super) struct Words(pub(super) Vec<u32>);

impl Words {
    /// Says where the list begins.
    pub(super) fn put(&mut self, list: impl IntoIterator<Item = u32>) -> usize {
        let start = self.0.len();
        self.0.extend(list);
        start
    }
}

pub(super) fn index(number: usize) -> u32 {
    super::count(number)
}
