//! One pass over the table for a whole batch. It computes the logits of one panel at a time and adds them to the rows.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::{
    row::Row,
    simd::{logits, numbers},
    table::{PANEL, Table},
};

/// A pass over some parts of the table.
#[derive(Debug)]
pub(super) struct Pass<'a, 'q> {
    pub(super) table: &'a Table,
    pub(super) parts: Range<usize>,
    /// The inputs of the layer, one row per question.
    pub(super) inputs: &'a [f32],
    pub(super) rows: &'a mut [Row<'q>],
}

impl WithSimd for Pass<'_, '_> {
    type Output = ();

    /// A panel is two vectors of 16 lanes or four of 8. The group sizes are the rows whose logits fit in the registers.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.run::<S, 2>(simd, &[12, 8, 4, 2, 1]),
            8 => self.run::<S, 4>(simd, &[3, 2, 1]),
            4 => self.run::<S, 8>(simd, &[3, 2, 1]),
            _ => self.run::<S, 32>(simd, &[1]),
        }
    }
}

/// A pass that keeps all logits.
#[derive(Debug)]
pub(super) struct All<'a> {
    pub(super) table: &'a Table,
    pub(super) inputs: &'a [f32],
}

impl WithSimd for All<'_> {
    type Output = Vec<Vec<f32>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<Vec<f32>> {
        match S::F32_LANES {
            16 => self.run::<S, 2>(simd),
            8 => self.run::<S, 4>(simd),
            4 => self.run::<S, 8>(simd),
            _ => self.run::<S, 32>(simd),
        }
    }
}

impl All<'_> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) -> Vec<Vec<f32>> {
        const ROWS: usize = 4;
        let Self { table, inputs } = self;
        let (width, count) = (table.inputs(), inputs.len() / table.inputs());
        let mut rows = vec![Vec::with_capacity(table.places() + PANEL); count];
        let groups: Vec<(usize, Vec<f32>)> = (0..count)
            .step_by(ROWS)
            .map(|first| {
                // The last group is filled up with its last row.
                let row = |at: usize| &inputs[(first + at).min(count - 1) * width..][..width];
                (first, (0..width).flat_map(|input| (0..ROWS).map(move |at| row(at)[input])).collect())
            })
            .collect();
        for (_, panel) in (0..table.parts()).flat_map(|part| table.panels(part)) {
            for (first, inputs) in &groups {
                let (inputs, _) = inputs.as_chunks::<ROWS>();
                let logits = logits::<S, ROWS, VECTORS>(simd, panel, inputs);
                for (row, logits) in rows[*first..].iter_mut().zip(&logits) {
                    row.extend_from_slice(&numbers::<S, VECTORS>(logits));
                }
            }
        }
        for row in &mut rows {
            row.truncate(table.places());
        }
        rows
    }
}

/// Rows that are computed together, with their inputs transposed.
struct Group {
    first: usize,
    rows: usize,
    inputs: Vec<f32>,
    /// A bit for each article that a row needs, 64 to a word; None if one needs all.
    needs: Option<Vec<u64>>,
}

impl Group {
    fn needs(&self, panel: usize) -> bool {
        let word = |words: &Vec<u64>| words[panel / 2] >> (panel % 2 * PANEL) & u64::from(u32::MAX) != 0;
        self.needs.as_ref().is_none_or(word)
    }
}

/// What any of the rows needs.
fn needs(rows: &[Row<'_>]) -> Option<Vec<u64>> {
    let mut masks = rows.iter().map(Row::needs);
    let mut needs = masks.next()??.words().to_vec();
    for mask in masks {
        needs.iter_mut().zip(mask?.words()).for_each(|(word, more)| *word |= more);
    }
    Some(needs)
}

impl Pass<'_, '_> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S, sizes: &[usize]) {
        let Self { table, parts, inputs, rows } = self;
        let width = table.inputs();
        for (row, inputs) in rows.iter_mut().zip(inputs.chunks_exact(width)) {
            let (inputs, _) = inputs.as_chunks::<1>();
            row.find_named(simd, parts.start == 0, |panel| {
                logits::<S, 1, VECTORS>(simd, table.panel(panel), inputs)[0]
            });
            row.start_at(Table::first_place(parts.start));
        }
        let groups = groups(rows, sizes, inputs, width);
        for part in parts {
            for (place, panel) in table.panels(part) {
                for group in groups.iter().filter(|group| group.needs(place)) {
                    let Group { first, rows: count, inputs, .. } = group;
                    let rows = &mut rows[*first..][..*count];
                    match count {
                        12 => step::<S, 12, VECTORS>(simd, place, panel, inputs, rows),
                        8 => step::<S, 8, VECTORS>(simd, place, panel, inputs, rows),
                        4 => step::<S, 4, VECTORS>(simd, place, panel, inputs, rows),
                        3 => step::<S, 3, VECTORS>(simd, place, panel, inputs, rows),
                        2 => step::<S, 2, VECTORS>(simd, place, panel, inputs, rows),
                        _ => step::<S, 1, VECTORS>(simd, place, panel, inputs, rows),
                    }
                }
            }
            rows.iter_mut().for_each(Row::end_part);
        }
    }
}

#[inline(always)]
fn step<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    place: usize,
    panel: &[f32],
    inputs: &[f32],
    rows: &mut [Row<'_>],
) {
    let (inputs, _) = inputs.as_chunks::<ROWS>();
    let logits = logits::<S, ROWS, VECTORS>(simd, panel, inputs);
    for at in 0..ROWS {
        rows[at].add_panel(simd, place, logits[at]);
    }
}

/// Divides the batch into groups of these sizes, the largest first.
fn groups(rows: &[Row<'_>], sizes: &[usize], inputs: &[f32], width: usize) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut first = 0;
    for &size in sizes {
        while rows.len() - first >= size {
            let own = &inputs[first * width..][..size * width];
            let transposed = (0..width).flat_map(|input| own.iter().skip(input).step_by(width).copied());
            let needs = needs(&rows[first..][..size]);
            groups.push(Group { first, rows: size, inputs: transposed.collect(), needs });
            first += size;
        }
    }
    groups
}
