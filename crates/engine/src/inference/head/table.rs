//! The last layer's weights in the order in which they are multiplied.
#![expect(clippy::inline_always, reason = "functions that are not inlined use the baseline instructions")]

use std::sync::Arc;

use atelier_core::domain::Mask;
use memmap2::MmapMut;
use rayon::prelude::*;

use super::rounded::{self, Input, OF_WEIGHTS, Steps, round};
use crate::{catalogue::ArticleIndex, tables::Tables};

/// The number of articles whose logits are computed together: half a word of a [`Mask`].
pub(in crate::inference) const PANEL: usize = 32;
/// The number of panels in a part. Sums start at zero for each part, so that an answer has the same bits on one core
/// and on many; and a change copies a part.
pub(super) const PART: usize = 64;
/// The bias of positions without an article: far below all logits, but finite.
pub(in crate::inference) const NO_ARTICLE: f32 = -1e30;

/// A panel's articles of a set, the first in the lowest bit.
#[inline(always)]
pub(super) fn bits_of_panel(set: &Mask, panel: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "that half of the word")]
    let bits = (set.words().get(panel / 2).copied().unwrap_or(0) >> (panel % 2 * PANEL)) as u32;
    bits
}

/// A sequence of panels. A panel is rows of [`PANEL`] words: the articles' biases, and then for each [word](rounded) of their
/// weights a row.
#[derive(Debug, Clone)]
pub(in crate::inference) struct Table {
    positions: usize,
    hidden: usize,
    personas: usize,
    parts: Vec<Arc<Part>>,
}

/// Panels, and behind them a row for each article: its bias and its weights as they are, which only the best need.
///
/// They are in an anonymous mapping, which starts at a page boundary and may use huge pages: a pass reads all panels, and
/// in pages of 4 KiB they have more pages than the processor's TLB has entries.
#[derive(Debug)]
struct Part {
    memory: MmapMut,
    /// The length of its panels in bytes.
    panels: usize,
    bounds: Bounds,
}

/// Of some articles' weights, the greatest length in whole steps, and the greatest length of what is left.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    length: f32,
    rest: f32,
}

impl Bounds {
    /// How far a logit of the pass may be from the exact one, by the inequality of Cauchy and Schwarz.
    pub(super) fn error(self, input: &Input<'_>) -> f32 {
        /// Single precision adds its own errors to products, biases and boosts.
        const ROUNDING: f32 = 4e-6;
        let (length, lost) = (input.length, input.lost);
        let error = self.rest * length + self.length * lost + ROUNDING * (10.0 + self.length * length);
        if error.is_nan() { f32::INFINITY } else { error }
    }

    fn or(self, other: Self) -> Self {
        Self { length: self.length.max(other.length), rest: self.rest.max(other.rest) }
    }
}

impl Part {
    fn new(panels: usize, inputs: usize) -> Self {
        let words = panels * panel_length(inputs);
        let rows = panels * PANEL * (1 + inputs);
        Self::of_length(words * size_of::<i32>(), rows * size_of::<f32>(), Bounds::default())
    }

    fn of_length(panels: usize, rows: usize, bounds: Bounds) -> Self {
        let memory = MmapMut::map_anon(panels + rows).expect("no memory for a model's last layer");
        // Without huge pages it is slower.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Self { memory, panels, bounds }
    }

    fn copy(&self) -> Self {
        let mut copy = Self::of_length(self.panels, self.memory.len() - self.panels, self.bounds);
        copy.memory.copy_from_slice(&self.memory);
        copy
    }

    fn words(&self) -> &[i32] {
        bytemuck::cast_slice(&self.memory[..self.panels])
    }

    /// The bias and the weights of the article at a position.
    fn row(&self, position: usize, inputs: usize) -> (f32, &[f32]) {
        let rows: &[f32] = bytemuck::cast_slice(&self.memory[self.panels..]);
        let row = &rows[position * (1 + inputs)..][..=inputs];
        (row[0], &row[1..])
    }

    /// Puts an article at a position; without a bias there is none.
    fn put(&mut self, position: usize, bias: Option<f32>, weights: &mut [f32]) {
        if bias.is_none() {
            weights.fill(0.0);
        }
        let bias = bias.unwrap_or(NO_ARTICLE);
        let (panels, rows) = self.memory.split_at_mut(self.panels);
        let panel =
            &mut bytemuck::cast_slice_mut::<_, i32>(panels)[position / PANEL * panel_length(weights.len())..];
        let row: &mut [f32] = &mut bytemuck::cast_slice_mut(rows)[position * (1 + weights.len())..];
        row[0] = bias;
        row[1..=weights.len()].copy_from_slice(weights);
        let mut lane = panel.iter_mut().skip(position % PANEL).step_by(PANEL);
        let mut put = |word: i32| *lane.next().expect("a panel has a row for each word") = word;
        put(bias.to_bits().cast_signed());
        let mut squares = Bounds::default();
        round(weights, OF_WEIGHTS, put, |Steps { size, whole, rest }| {
            squares.length += (whole * size).powi(2);
            squares.rest += (rest * size).powi(2);
        });
        let bounds = Bounds { length: squares.length.sqrt(), rest: squares.rest.sqrt() };
        self.bounds = self.bounds.or(bounds);
    }
}

/// The words of a panel.
fn panel_length(inputs: usize) -> usize {
    (1 + rounded::words(inputs)) * PANEL
}

impl Table {
    /// The rows of a catalogue's articles.
    pub(in crate::inference) fn compose(tables: &Tables, articles: &ArticleIndex) -> Self {
        let widths = tables.widths();
        Self::new(articles.len(), widths.hidden(), widths.personas, |position, weights| {
            let article = articles.composition(u32::try_from(position).ok()?)?;
            tables.knows(article).then(|| tables.write_weights(article, weights))
        })
    }

    /// The bytes of an article.
    pub(in crate::inference) fn row_bytes(tables: &Tables) -> usize {
        let inputs = tables.widths().hidden() + tables.widths().personas;
        panel_length(inputs) / PANEL * size_of::<i32>() + (1 + inputs) * size_of::<f32>()
    }

    /// The table after the articles at some positions have changed. Copies only their parts.
    pub(in crate::inference) fn with_changes(
        &self,
        tables: &Tables,
        articles: &ArticleIndex,
        changed: &[u32],
    ) -> Self {
        let mut next = self.clone();
        let mut weights = vec![0.0; self.inputs()];
        let mut positions: Vec<usize> = changed.iter().map(|position| *position as usize).collect();
        positions.sort_unstable();
        for positions in positions.chunk_by(|a, b| a / (PART * PANEL) == b / (PART * PANEL)) {
            let part = &mut next.parts[positions[0] / (PART * PANEL)];
            let mut copy = part.copy();
            for &position in positions {
                let article =
                    u32::try_from(position).ok().and_then(|position| articles.composition(position));
                let article = article.filter(|article| tables.knows(article));
                let bias = article.map(|article| tables.write_weights(article, &mut weights));
                copy.put(position % (PART * PANEL), bias, &mut weights);
            }
            *part = Arc::new(copy);
        }
        next
    }

    /// `write` writes the weights of the article at a position, and returns its bias; None if there is no article.
    pub(super) fn new(
        positions: usize,
        hidden: usize,
        personas: usize,
        write: impl Fn(usize, &mut [f32]) -> Option<f32> + Sync,
    ) -> Self {
        let inputs = hidden + personas;
        let make = |first: usize| {
            let panels = PART.min((positions - first).div_ceil(PANEL));
            let mut part = Part::new(panels, inputs);
            let mut weights = vec![0.0; inputs];
            for position in 0..panels * PANEL {
                let article = first + position;
                let bias = if article < positions { write(article, &mut weights) } else { None };
                part.put(position, bias, &mut weights);
            }
            Arc::new(part)
        };
        let firsts: Vec<usize> = (0..positions).step_by(PART * PANEL).collect();
        Self { positions, hidden, personas, parts: firsts.into_par_iter().map(make).collect() }
    }

    pub(super) fn positions(&self) -> usize {
        self.positions
    }

    /// The length of a hidden vector.
    pub(in crate::inference) fn hidden(&self) -> usize {
        self.hidden
    }

    pub(in crate::inference) fn personas(&self) -> usize {
        self.personas
    }

    pub(super) fn inputs(&self) -> usize {
        self.hidden + self.personas
    }

    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The number of a part's first position.
    pub(super) fn first_position(part: usize) -> usize {
        part * PART * PANEL
    }

    /// The panels of a part, with their positions in the table.
    pub(super) fn panels(&self, part: usize) -> impl Iterator<Item = (usize, &[i32])> {
        (part * PART..).zip(self.parts[part].words().chunks_exact(panel_length(self.inputs())))
    }

    pub(super) fn panel(&self, position: usize) -> &[i32] {
        let length = panel_length(self.inputs());
        &self.parts[position / PART].words()[position % PART * length..][..length]
    }

    /// Over all articles.
    pub(super) fn bounds(&self) -> Bounds {
        self.parts.iter().fold(Bounds::default(), |bounds, part| bounds.or(part.bounds))
    }

    /// An article's logit from its exact weights.
    pub(super) fn logit(&self, article: usize, inputs: &[f32]) -> f32 {
        let (bias, weights) =
            self.parts[article / (PART * PANEL)].row(article % (PART * PANEL), inputs.len());
        let mut logit = f64::from(bias);
        for (weights, inputs) in weights.chunks(32).zip(inputs.chunks(32)) {
            let mut lanes = [0.0; 8];
            for (weights, inputs) in weights.chunks(8).zip(inputs.chunks(8)) {
                for ((lane, weight), input) in lanes.iter_mut().zip(weights).zip(inputs) {
                    *lane += weight * input;
                }
            }
            logit += f64::from(lanes.iter().sum::<f32>());
        }
        #[expect(clippy::cast_possible_truncation, reason = "logits have single precision")]
        let logit = logit as f32;
        logit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_weight_has_its_place() {
        let number = |position: usize, input: usize| {
            f32::from(u16::try_from(position * 10 + input).unwrap())
                * if input.is_multiple_of(2) { 0.37 } else { -0.01 }
        };
        // Steps are as large as the longest vectors need.
        let near = |found: f32, expected: f32, position: usize| {
            let length = 1.0 + number(position, 4) + expected.abs();
            assert!((found - expected).abs() <= 1e-6 * length, "{found} {expected}");
        };
        for positions in [1, 31, 32, 33, 70, 2100] {
            let table = Table::new(positions, 3, 2, |position, weights| {
                (0..).zip(&mut *weights).for_each(|(input, weight)| *weight = number(position, input));
                (position % 7 != 5).then(|| number(position, 9))
            });
            assert_eq!((table.positions(), table.hidden(), table.personas()), (positions, 3, 2));
            for position in 0..positions.next_multiple_of(PANEL) {
                let is_article = position < positions && position % 7 != 5;
                let bias = if is_article { number(position, 9) } else { NO_ARTICLE };
                near(table.logit(position, &[0.0; 5]), bias, position);
                for input in 0..5 {
                    let mut inputs = [0.0; 5];
                    inputs[input] = 1.0;
                    let weight = if is_article { number(position, input) } else { 0.0 };
                    near(table.logit(position, &inputs), bias + weight, position);
                }
            }
            for (position, panel) in (0..table.parts()).flat_map(|part| table.panels(part)) {
                assert_eq!(panel, table.panel(position));
            }
        }
    }
}
