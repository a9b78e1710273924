//! What learning from a batch needs beside computing it: targets, weights, and which of its rows add to
//! which rows of the tables. It holds for the next step only: it says how long ago articles last moved.
//!
//! A table's row may be touched a thousand times (the blank is in every outfit), and floats are added in a
//! fixed order here: rows are sorted by where they go, added up in short pieces side by side, then the
//! pieces.

use super::{
    Argument, Device, Parameters,
    packed::{Features, Words, index},
};
use crate::engine::{
    Param,
    ops::Rows,
    shard::{Shard, Tables},
};

/// Rows that one thread adds up.
const PIECE: usize = 32;

/// A batch as the backward pass takes it.
#[derive(Debug)]
pub(crate) struct Learning<D: Device> {
    pub(super) indices: D::Indices,
    pub(super) targets: usize,
    /// What each outfit's loss is multiplied with.
    pub(super) weights: D::Floats,
    pub(super) articles: Sums,
    pub(super) features: Option<Sums>,
    pub(super) personas: Option<Sums>,
    /// Rows of the article table that the batch touches, rising.
    pub(super) touched_rows: Vec<u32>,
    /// Where they lie, and how many steps have passed each by.
    pub(super) touched: usize,
    pub(super) missed: usize,
}

impl<D: Device> Learning<D> {
    pub(crate) fn new(
        device: &D,
        parameters: &Parameters<D>,
        (tables, personas): (&Tables, Option<Param>),
        shard: &Shard,
        (targets, weights): (&[u32], &[f32]),
    ) -> Self {
        let mut words = Words::default();
        let targets = words.put(targets.iter().copied());
        let table = parameters.at(tables.articles);
        let row = |at: usize| index(table + shard.slots[at] as usize * tables.width);
        let slots = (0..shard.slots.len()).map(|at| (row(at), index(at * tables.width)));
        let articles = Sums::new(&mut words, slots.collect(), tables.width);
        let features = (!tables.features.is_empty()).then(|| {
            let Features { sources, starts, .. } = Features::new(parameters, tables, shard);
            let places = starts.windows(2).enumerate().flat_map(|(place, ends)| {
                let from = index(place * tables.feature_width);
                sources[ends[0] as usize..ends[1] as usize].iter().map(move |&to| (to, from))
            });
            Sums::new(&mut words, places.collect(), tables.feature_width)
        });
        let personas = personas.map(|personas| {
            let (table, width) = (parameters.at(personas), parameters.shape(personas)[1]);
            let visible = (0..shard.outfits()).flat_map(|outfit| {
                let slots = shard.slots[shard.range(Rows::Slots, outfit)].iter();
                let articles = slots.filter(|&&slot| slot < shard.blank);
                articles.map(move |&slot| (index(table + slot as usize * width), index(outfit * width)))
            });
            Sums::new(&mut words, visible.collect(), width)
        });
        let mut touched_rows = shard.slots.clone();
        touched_rows.sort_unstable();
        touched_rows.dedup();
        let touched = words.put(touched_rows.iter().copied());
        let passed = |row: &u32| parameters.steps - parameters.touched[*row as usize];
        let missed = words.put(touched_rows.iter().map(passed));
        Self {
            indices: device.indices(&words.0),
            targets,
            weights: device.floats(weights),
            articles,
            features,
            personas,
            touched_rows,
            touched,
            missed,
        }
    }

    /// Adds rows of `from` to those of the gradients that they belong to.
    pub(super) fn add(&self, device: &D, sums: Sums, from: &D::Floats, gradients: &mut D::Floats) {
        let Sums { pieces, rows, width } = sums;
        let mut parts = device.zeros(pieces.count * width);
        self.gather(device, pieces, width, from, &mut parts);
        self.gather(device, rows, width, &parts, gradients);
    }

    fn gather(&self, device: &D, stage: Stage, width: usize, from: &D::Floats, to: &mut D::Floats) {
        device.launch(
            "gather",
            stage.count * width,
            &mut [
                Argument::write(to),
                Argument::read(from),
                Argument::Indices(&self.indices, stage.sources),
                Argument::Indices(&self.indices, stage.starts),
                Argument::Indices(&self.indices, stage.targets),
                Argument::size(stage.count),
                Argument::size(width),
            ],
        );
    }
}

/// How rows are added up, in two stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pieces: Stage,
    rows: Stage,
    width: usize,
}

/// Where the lists of one stage lie, and how many targets it has.
#[derive(Debug, Clone, Copy)]
struct Stage {
    sources: usize,
    starts: usize,
    targets: usize,
    count: usize,
}

impl Sums {
    /// From pairs of where a row goes and where it comes from, in numbers.
    fn new(words: &mut Words, mut pairs: Vec<(u32, u32)>, width: usize) -> Self {
        // Sources rise within a target: the order of the outfits, as on the CPU.
        pairs.sort_unstable();
        let (mut lengths, mut row_starts, mut row_targets) = (vec![], vec![], vec![]);
        for row in pairs.chunk_by(|one, next| one.0 == next.0) {
            row_starts.push(index(lengths.len()));
            row_targets.push(row[0].0);
            lengths.extend(row.chunks(PIECE).map(|piece| index(piece.len())));
        }
        row_starts.push(index(lengths.len()));
        let count = lengths.len();
        let mut starts = vec![0];
        starts.extend(lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        let numbers = || (0..count).map(|piece| index(piece * width));
        let pieces = Stage {
            sources: words.put(pairs.iter().map(|pair| pair.1)),
            starts: words.put(starts),
            targets: words.put(numbers()),
            count,
        };
        let rows = Stage {
            sources: words.put(numbers()),
            starts: words.put(row_starts),
            count: row_targets.len(),
            targets: words.put(row_targets),
        };
        Self { pieces, rows, width }
    }
}
