//! One pass over the table for a whole batch. It computes the logits of one panel at a time and adds them to the rows.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use std::ops::Range;

use super::{
    rounded::Input,
    simd::{Pairs, WithPairs, logits, numbers},
    table::{PANEL, Table},
    tally::Tally,
};

/// A pass over some parts of the table.
#[derive(Debug)]
pub(super) struct Pass<'a, 'q> {
    pub(super) table: &'a Table,
    pub(super) parts: Range<usize>,
    /// One per question.
    pub(super) inputs: &'a [Input<'a>],
    pub(super) rows: &'a mut [Tally<'q>],
}

impl WithPairs for Pass<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_pairs<S: Pairs, const VECTORS: usize>(self, simd: S) {
        // The rows whose logits fit in the registers.
        let sizes: &[usize] = match VECTORS {
            2 => &[12, 8, 4, 2, 1],
            4 | 8 => &[3, 2, 1],
            _ => &[1],
        };
        let Self { table, parts, inputs, rows } = self;
        for (row, input) in rows.iter_mut().zip(inputs) {
            let (inputs, _) = input.words.as_chunks::<1>();
            row.find_named(simd, |panel| logits::<S, 1, VECTORS>(simd, table.panel(panel), inputs)[0]);
            row.start_at(Table::first_position(parts.start));
        }
        let groups = groups(rows, sizes, inputs);
        for part in parts {
            for (position, panel) in table.panels(part) {
                for group in groups.iter().filter(|group| group.needs(position)) {
                    let rows = &mut rows[group.first..][..group.rows];
                    if group.is_steered {
                        step_of::<S, VECTORS, true>(simd, position, panel, group, rows);
                    } else {
                        step_of::<S, VECTORS, false>(simd, position, panel, group, rows);
                    }
                }
            }
            for row in rows.iter_mut() {
                row.end_part::<S, VECTORS>(simd);
            }
        }
    }
}

/// A pass that keeps all logits.
#[derive(Debug)]
pub(super) struct All<'a> {
    pub(super) table: &'a Table,
    pub(super) inputs: &'a [Input<'a>],
}

impl WithPairs for All<'_> {
    type Output = Vec<Vec<f32>>;

    #[inline(always)]
    fn with_pairs<S: Pairs, const VECTORS: usize>(self, simd: S) -> Vec<Vec<f32>> {
        const ROWS: usize = 4;
        let Self { table, inputs } = self;
        let mut rows = vec![Vec::with_capacity(table.positions() + PANEL); inputs.len()];
        let groups: Vec<Group> = inputs
            .chunks(ROWS)
            .zip((0..).step_by(ROWS))
            // The last group is filled up with its last row.
            .map(|(own, first)| Group::new(first, ROWS, |row| &own[row.min(own.len() - 1)], None))
            .collect();
        for (_, panel) in (0..table.parts()).flat_map(|part| table.panels(part)) {
            for group in &groups {
                let logits = logits::<S, ROWS, VECTORS>(simd, panel, group.inputs.as_chunks().0);
                for (row, logits) in rows[group.first..].iter_mut().zip(&logits) {
                    row.extend_from_slice(&numbers::<S, VECTORS>(logits));
                }
            }
        }
        for row in &mut rows {
            row.truncate(table.positions());
        }
        rows
    }
}

/// Panels of logits that a whole model computed, for one question.
#[derive(Debug)]
pub(super) struct Stored<'a, 'q> {
    pub(super) panels: &'a [[f32; PANEL]],
    pub(super) row: &'a mut Tally<'q>,
}

impl WithPairs for Stored<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_pairs<S: Pairs, const VECTORS: usize>(self, simd: S) {
        let Self { panels, row } = self;
        let load = |panel: usize| {
            let mut logits = [simd.splat_f32s(0.0); VECTORS];
            logits.copy_from_slice(S::as_simd_f32s(&panels[panel]).0);
            logits
        };
        row.find_named(simd, load);
        for panel in 0..panels.len() {
            row.add_panel::<S, VECTORS, true>(simd, panel, load(panel));
        }
        row.end_part::<S, VECTORS>(simd);
    }
}

/// Rows that are computed together, with the words of their inputs transposed.
struct Group {
    first: usize,
    rows: usize,
    inputs: Vec<i32>,
    /// A bit for each article that a row needs, 64 to a word; None if one needs all.
    needs: Option<Vec<u64>>,
    /// Whether one of the rows has steering.
    is_steered: bool,
}

impl Group {
    fn new<'a>(
        first: usize,
        rows: usize,
        input: impl Fn(usize) -> &'a Input<'a>,
        needs: Option<Vec<u64>>,
    ) -> Self {
        let words = input(0).words.len();
        let mut inputs = Vec::with_capacity(words * rows);
        for word in 0..words {
            inputs.extend((0..rows).map(|row| input(row).words[word]));
        }
        Self { first, rows, inputs, needs, is_steered: false }
    }

    fn needs(&self, panel: usize) -> bool {
        let word = |words: &Vec<u64>| words[panel / 2] >> (panel % 2 * PANEL) & u64::from(u32::MAX) != 0;
        self.needs.as_ref().is_none_or(word)
    }
}

/// The rows' needed panels.
fn needs(rows: &[Tally<'_>]) -> Option<Vec<u64>> {
    let mut masks = rows.iter().map(Tally::needs);
    let mut needs = masks.next()??.words().to_vec();
    for mask in masks {
        needs.iter_mut().zip(mask?.words()).for_each(|(word, more)| *word |= more);
    }
    Some(needs)
}

#[inline(always)]
fn step_of<S: Pairs, const VECTORS: usize, const STEERED: bool>(
    simd: S,
    position: usize,
    panel: &[i32],
    group: &Group,
    rows: &mut [Tally<'_>],
) {
    match group.rows {
        12 => step::<S, 12, VECTORS, STEERED>(simd, position, panel, group, rows),
        8 => step::<S, 8, VECTORS, STEERED>(simd, position, panel, group, rows),
        4 => step::<S, 4, VECTORS, STEERED>(simd, position, panel, group, rows),
        3 => step::<S, 3, VECTORS, STEERED>(simd, position, panel, group, rows),
        2 => step::<S, 2, VECTORS, STEERED>(simd, position, panel, group, rows),
        _ => step::<S, 1, VECTORS, STEERED>(simd, position, panel, group, rows),
    }
}

#[inline(always)]
fn step<S: Pairs, const ROWS: usize, const VECTORS: usize, const STEERED: bool>(
    simd: S,
    position: usize,
    panel: &[i32],
    group: &Group,
    rows: &mut [Tally<'_>],
) {
    let logits = logits::<S, ROWS, VECTORS>(simd, panel, group.inputs.as_chunks().0);
    for at in 0..ROWS {
        rows[at].add_panel::<S, VECTORS, STEERED>(simd, position, logits[at]);
    }
}

/// Divides the batch into groups of these sizes, the largest first.
fn groups(rows: &[Tally<'_>], sizes: &[usize], inputs: &[Input<'_>]) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut first = 0;
    for &size in sizes {
        while rows.len() - first >= size {
            let own = &inputs[first..][..size];
            let group = Group::new(first, size, |row| &own[row], needs(&rows[first..][..size]));
            groups.push(Group { is_steered: rows[first..][..size].iter().any(Tally::is_steered), ..group });
            first += size;
        }
    }
    groups
}
